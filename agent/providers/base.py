"""What all providers share: the registry, their settings, and the message list as a strict service wants it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from agent.types import Message, Provider, ProviderError, ToolCall

PROVIDERS = {
    "offline": "agent.providers.offline:OfflineProvider",
    "anthropic": "agent.providers.anthropic:AnthropicProvider",
    "openai": "agent.providers.openai:OpenAIProvider",
    "deepseek": "agent.providers.deepseek:DeepSeekProvider",
    "ollama": "agent.providers.ollama:OllamaProvider",
}
"""Name in the settings -> module and class. The module is imported when that provider is created."""

INTERRUPTED = "interrupted, not known whether it ran"
_NAME_CHARS_MAX = 64
_ID_CHARS_MAX = 36
"""The strictest service takes 40; the rest is for making it unique."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The `[model]` section. `context_tokens` 0: what the model is known to take. An empty `base_url`: the service's
    own address. `images` False: the model takes no pictures. `workspace`: where the paths of pictures begin; None:
    there are none. The key is kept out of `repr`."""

    provider: str = "offline"
    name: str = ""
    base_url: str = ""
    api_key: str = ""
    context_tokens: int = 0
    timeout_seconds: float = 120.0
    images: bool = True
    workspace: Path | None = None

    def __repr__(self) -> str:
        return f"ProviderSettings(provider={self.provider!r}, name={self.name!r}, base_url={self.base_url!r})"


class _Class(Protocol):
    def __call__(self, settings: ProviderSettings) -> Provider: ...


@runtime_checkable
class _Warmable(Protocol):
    async def warm(self) -> None: ...


@runtime_checkable
class _Plain(Protocol):
    @property
    def writes(self) -> bool: ...


@runtime_checkable
class _Remote(Protocol):
    @property
    def host(self) -> str: ...


BUILT_IN = "offline"
"""The model that needs no network and no key."""


def create(settings: ProviderSettings) -> Provider:
    """The provider the settings name. Raises ProviderError for a name that is not in PROVIDERS."""
    target = PROVIDERS.get(settings.provider)
    if target is None:
        known = ", ".join(sorted(PROVIDERS))
        raise ProviderError(
            f"There is no model provider {settings.provider!r}: set provider under [model] in config.toml to one of "
            f"{known}.",
            transient=False,
            arabic=f"لا يوجد مزوّد نماذج بالاسم {settings.provider!r}: اجعل قيمة provider في قسم [model] من الملف "
            f"config.toml إحدى القيم الآتية: {known}.",
        )
    module_name, _, class_name = target.partition(":")
    make: _Class = getattr(importlib.import_module(module_name), class_name)
    return make(settings)


async def warm(provider: Provider) -> None:
    """Loads what the provider's first call would load (an SDK), off the event loop. Does nothing for the others."""
    if isinstance(provider, _Warmable):
        await provider.warm()


def writes(provider: Provider) -> bool:
    """False for a provider that can only answer, not sum up a text; all write but those that say otherwise."""
    return provider.writes if isinstance(provider, _Plain) else True


def host_of(provider: Provider) -> str:
    """The host name the provider calls, empty when it calls none or does not say."""
    return provider.host if isinstance(provider, _Remote) else ""


def repaired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The list as a strict service accepts it, nothing else changed.

    Every call is followed at once by its one result, in the order of the calls: a missing result becomes
    INTERRUPTED; a result without a call, or a second one, is dropped; a call id that came before in the list is made
    unique, and one that not every service takes (a conversation may have begun with another) is written anew.
    Assistant messages with neither text nor calls are dropped.
    """
    waiting: dict[str, tuple[int, int]] = {}
    results: dict[tuple[int, int], Message] = {}
    for position, message in enumerate(messages):
        for n, call in enumerate(message.calls):
            waiting[call.id] = (position, n)
        if message.role == "tool" and message.call_id is not None:
            place = waiting.pop(message.call_id, None)
            if place is not None:
                results[place] = message
    out: list[Message] = []
    used: set[str] = set()
    for position, message in enumerate(messages):
        if message.role == "tool" or (message.role == "assistant" and not message.calls and not message.text):
            continue
        if not message.calls:
            out.append(message)
            continue
        calls = tuple(_unique(call, used) for call in message.calls)
        out.append(replace(message, calls=calls))
        for n, call in enumerate(calls):
            result = results.get((position, n))
            out.append(Message("tool", INTERRUPTED if result is None else result.text, call_id=call.id))
    return tuple(out)


def tool_name(name: str) -> str:
    """A tool's name as every service takes it. A call that was refused for its name stays in the history."""
    return name if _NAME.fullmatch(name) else _NOT_IN_IDS.sub("_", name)[:_NAME_CHARS_MAX] or "unknown"


def _unique(call: ToolCall, used: set[str]) -> ToolCall:
    """`call`, with another id when its own is taken; notes the id as taken."""
    base = call.id if _ID.fullmatch(call.id) else _NOT_IN_IDS.sub("_", call.id)[:_ID_CHARS_MAX] or "call"
    name, n = base, 1
    while name in used:
        n += 1
        name = f"{base}_{n}"
    used.add(name)
    return call if name == call.id else replace(call, id=name)
