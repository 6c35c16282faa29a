"""A progress bar for a person at a terminal; programs do not see it."""

from __future__ import annotations

from collections.abc import Callable

Told = Callable[[int, int], None]
"""Is told how much is done, of how much."""


class Progress:
    """Shows how far something is, on stderr, while the `with` block runs."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> Told:
        from rich.console import Console
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        self._bar = Bar(console=console, transient=True, disable=not console.is_terminal)
        self._bar.start()
        task = self._bar.add_task(self._what, total=None)
        shown = -1

        def told(done: int, total: int) -> None:
            nonlocal shown
            # A thousand steps are as many as anybody sees.
            step = done * 1000 // max(total, 1)
            if step != shown:
                shown = step
                self._bar.update(task, completed=done, total=total)

        return told

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
