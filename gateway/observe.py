"""What the gateway tells to whoever watches: the page's event stream, and nobody when it is off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Observer = Callable[[str, Mapping[str, Any]], None]
"""Takes a kind (`message`, `delta`, `reset`, `tool`, `approval`, `status`, `done`, `error`) and its data; quick."""


class Observers:
    """Tells all that listen, in the order they came."""

    def __init__(self) -> None:
        self._observers: list[Observer] = []

    def add(self, observer: Observer) -> None:
        self._observers.append(observer)

    def __call__(self, kind: str, data: Mapping[str, Any]) -> None:
        for observer in self._observers:
            observer(kind, data)

    @property
    def any(self) -> bool:
        return bool(self._observers)
