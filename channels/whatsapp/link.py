"""Linking with an account: what is asked for, what is shown meanwhile, and where the session lies."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from channels.channel import LinkState
from channels.whatsapp.ids import phone_digits

AUTH_MODE = 0o700


class Link:
    """The state of the linking, for whoever shows it. `phone`: link by a code that is typed on that phone."""

    def __init__(self) -> None:
        self.state = LinkState()
        self.phone = ""
        self.is_wanted = False

    def want(self, phone: str | None) -> None:
        """Raises ValueError for what is no phone number."""
        self.phone = phone_digits(phone) if phone else ""
        self.is_wanted = True
        self._become("starting")

    def show_qr(self, qr: str) -> None:
        self._become("shown", qr=qr)

    def show_code(self, code: str) -> None:
        self._become("shown", code=code)

    def end(self, state: Any, detail: str = "") -> None:
        """`linked`, `expired`, `failed`, or `off`."""
        self.is_wanted = False
        self.phone = ""
        self._become(state, detail=detail)

    def _become(self, state: Any, **shown: Any) -> None:
        self.state = replace(LinkState(), state=state, version=self.state.version + 1, **shown)


class SessionFiles:
    """`whatsapp/auth/` in the home folder: the credentials of the linked device. Never indexed, never shown."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "whatsapp" / "auth"
        self.database = self.folder / "session.db"

    def prepare(self) -> None:
        """Raises OSError."""
        self.folder.mkdir(mode=AUTH_MODE, parents=True, exist_ok=True)
        self.folder.chmod(AUTH_MODE)

    def forget(self) -> None:
        """Raises OSError."""
        if self.folder.is_dir():
            shutil.rmtree(self.folder)
