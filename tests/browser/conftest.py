from __future__ import annotations

from tests.fakes.browser import browser

__all__ = ["browser"]
