"""Which capabilities a conversation has loaded, within limits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from agent.limits import CAPABILITIES_LOADED_MAX, CONVERSATIONS_LOADED_MAX


class Loading:
    """Remembers for each conversation the loaded capabilities: the order they were loaded in and their last use."""

    def __init__(self) -> None:
        self._conversations: OrderedDict[str, dict[str, int]] = OrderedDict()
        self._uses = 0

    def use(self, conversation_id: str, name: str) -> None:
        """The capability is loaded, or used again. Beyond the limit the longest unused gives way."""
        uses = self._conversations.setdefault(conversation_id, {})
        self._conversations.move_to_end(conversation_id)
        if len(self._conversations) > CONVERSATIONS_LOADED_MAX:
            self._conversations.popitem(last=False)
        self._uses += 1
        uses[name] = self._uses
        if len(uses) > CAPABILITIES_LOADED_MAX:
            del uses[min(uses, key=lambda other: uses[other])]

    def names(self, conversation_id: str) -> Iterable[str]:
        """What is loaded, in the order of loading."""
        return tuple(self._conversations.get(conversation_id, ()))
