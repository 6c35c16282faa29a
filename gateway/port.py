"""A running turn's line to the outside: what it shows, asks, hears and records."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime

from agent.types import Question, Segment, ToolCall, ToolResult, Turn
from gateway.approvals import Approvals
from gateway.observe import Observers
from gateway.readlog import ReadLog
from gateway.sentences import Language
from gateway.store import Store
from gateway.store.results import CallRow
from gateway.store.types import Claim
from gateway.words import said


class Port:
    """`agent.types.TurnPort` of one turn. `said` takes the text that is shown; `has_news` says whether anything came
    in the session while the turn ran, `was_stopped` whether a person stopped it."""

    def __init__(
        self,
        turn: Turn,
        claim: Claim,
        said: list[str],
        has_news: Callable[[], bool],
        was_stopped: Callable[[], bool],
        *,
        store: Store,
        readlog: ReadLog,
        approvals: Approvals,
        observers: Observers,
        now: Callable[[], datetime],
        language: Language,
    ) -> None:
        self._turn = turn
        self._claim = claim
        self._said = said
        self._has_news = has_news
        self._was_stopped = was_stopped
        self._store = store
        self._readlog = readlog
        self._approvals = approvals
        self._observe = observers
        self._now = now
        self._language: Language = language
        self._rounds: list[str] = list(claim.reply_so_far.rounds) if claim.reply_so_far is not None else []

    @property
    def stopped(self) -> bool:
        return self._was_stopped()

    def emit(self, segment: Segment) -> None:
        about = {"conversation": self._claim.conversation_id, "turn": self._claim.turn_id}
        if segment.kind == "text":
            self._said.append(segment.text)
            self._observe("delta", {**about, "text": segment.text})
        elif segment.kind == "reset":
            self._said.clear()
            self._observe("reset", about)
        else:
            tool = {"n": segment.n, "name": segment.name, "state": segment.state, "detail": segment.detail}
            self._observe("tool", {**about, **tool})

    async def ask(self, question: Question) -> bool | None:
        """The owner's answer, wherever the owner is."""
        return await self._approvals.ask(
            question,
            person=self._turn.person,
            spoken_at=self._claim.messages[0].address,
            conversation_id=self._claim.conversation_id,
            turn_id=self._claim.turn_id,
            language=self._language,
        )

    async def heard(self, round: int) -> Sequence[str]:
        # Nothing came while this turn ran: the database need not be asked.
        if not self._has_news():
            return ()
        heard = await self._store.hear(self._claim.turn_id, round)
        if heard:
            await self._readlog.caught_up(heard[0].address.channel, heard[0].address.chat_id)
        return [words for message in heard if (words := said([message]))]

    async def calls_begin(self, round: int, text: str, calls: Sequence[ToolCall]) -> None:
        del self._rounds[round - 1 :]
        self._rounds.append(text)
        rows = [
            CallRow(call.id, call.name, json.dumps(dict(call.args), ensure_ascii=False), call.fault) for call in calls
        ]
        await self._store.begin_calls(self._claim.turn_id, round, self._rounds, rows, self._now())

    async def call_ended(self, call: ToolCall, result: ToolResult) -> None:
        await self._store.end_call(
            self._claim.turn_id, call.id, result.text, result.outcome, result.attempts, self._now()
        )
