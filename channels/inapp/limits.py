"""Every limit of the page and its API, with its unit in the name."""

from __future__ import annotations

TEXT_BYTES_MAX = 1024 * 1024
"""One message, as UTF-8."""
BODY_BYTES_MAX = 6 * TEXT_BYTES_MAX + 4096
"""One posted message as JSON: each byte of its text may be written as a six-character escape."""
KEY_CHARS_MAX = 200
SESSION_CHARS_MAX = 200
EVENTS_KEPT = 2_000
HEARTBEAT_SECONDS = 15.0
CODE_SECONDS = 600.0
CODES_KEPT = 32
COOKIE_SECONDS = 90 * 24 * 3600
RENDER_CHARS_MAX = 100_000
"""A longer text is shown as it is, without formats."""
RENDERED_KEPT = 128
RETRY_SECONDS = 2
"""How long a client that got 503 is asked to wait."""
UPLOAD_BYTES_MAX = 50_000_000
FILES_MAX = 10
"""Files of one request, and of one message."""
CHUNK_BYTES = 64 * 1024
