"""`memory_forget`: shows what would be removed, and removes it once the owner has agreed to just that."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Protocol, TypeVar

from agent.capabilities.introspect.arguments import owners_only, required
from agent.redaction import Redactor
from agent.types import CallContext, JsonObject, ToolFailure, Viewer

PLANS_KEPT = 100
"""Of calls whose owner was asked and that were not run yet."""


class ForgetPlan(Protocol):
    def shown(self) -> str: ...

    def as_json(self) -> dict[str, Any]: ...


class ForgetResult(Protocol):
    @property
    def messages(self) -> int: ...

    @property
    def kept(self) -> tuple[str, ...]: ...

    def text(self) -> str: ...


P = TypeVar("P", bound=ForgetPlan)


class Forgetter(Protocol[P]):
    """What the tool asks of the memory. Both raise ToolFailure."""

    async def plan(self, viewer: Viewer, what: str, *, current: str = "") -> P: ...

    async def carry_out(self, plan: P) -> ForgetResult: ...


class Forgetting:
    """The tool's code. A call that was asked about removes what the question showed, whatever came since."""

    def __init__(self, forgetter: Forgetter[Any], redact: Redactor) -> None:
        self._forgetter = forgetter
        self._redact = redact
        self._asked: OrderedDict[tuple[str, str], ForgetPlan] = OrderedDict()

    async def memory_forget(self, ctx: CallContext, args: JsonObject) -> str:
        key = (ctx.turn_id, ctx.call_id)
        if ctx.preview:
            plan = await self.plan(ctx, args)
            self._asked[key] = plan
            if len(self._asked) > PLANS_KEPT:
                self._asked.popitem(last=False)
            return self._redact(plan.shown())
        plan = self._asked.pop(key, None) or await self.plan(ctx, args)
        return self._redact((await self._forgetter.carry_out(plan)).text())

    async def plan(self, ctx: CallContext, args: JsonObject) -> ForgetPlan:
        """What a call would remove. Raises ToolFailure, its matches without secrets."""
        owners_only(ctx, "make it forget")
        try:
            return await self._forgetter.plan(ctx.viewer, required(args, "what"), current=ctx.conversation_id)
        except ToolFailure as failure:
            raise type(failure)(self._redact(str(failure)), transient=failure.transient) from failure

    async def carry_out(self, plan: ForgetPlan) -> dict[str, Any]:
        """Removes what a plan shows: the shape of `memory forget`."""
        done = await self._forgetter.carry_out(plan)
        return {"status": "removed", **self.as_json(plan), "messages": done.messages, "kept": list(done.kept)}

    def as_json(self, plan: ForgetPlan) -> dict[str, Any]:
        return self._redact.deep(plan.as_json())
