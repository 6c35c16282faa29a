"""Recordings into words: by a program on this machine, or by a server that speaks OpenAI's protocol."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import aiohttp

from agent.programs import child_environment, run_program
from gateway.config import TranscribeSettings
from gateway.limits import TRANSCRIBE_SECONDS_MAX, TRANSCRIPT_CHARS_MAX

LOG = logging.getLogger(__name__)


class Transcriber:
    """Gives the words of a recording. `is_on` False: nothing is set up for that."""

    def __init__(self, settings: TranscribeSettings, workspace: Path) -> None:
        self._settings = settings
        self._workspace = workspace
        self.is_on = settings.is_on

    async def words(self, path: str) -> str | None:
        """What is said in a file of the workspace; None when that failed, the log says why."""
        try:
            text = await (self._by_program(path) if self._settings.command else self._by_server(path))
        except (OSError, ValueError, aiohttp.ClientError, TimeoutError, LookupError, TypeError) as error:
            LOG.warning("a recording could not be transcribed: %s: %s", type(error).__name__, self._safe(error))
            return None
        return text.strip()[:TRANSCRIPT_CHARS_MAX] or None

    def _safe(self, error: Exception) -> str:
        key = self._settings.api_key.get_secret_value()
        return str(error).replace(key, "<api_key>") if key else str(error)

    async def _by_program(self, path: str) -> str:
        file = str(self._workspace / path)
        command = [word.replace("{file}", file) for word in self._settings.command]
        if not any("{file}" in word for word in self._settings.command):
            command.append(file)
        ended = await run_program(
            command,
            folder=self._workspace,
            environment=child_environment(os.environ),
            chars_max=TRANSCRIPT_CHARS_MAX,
            timeout_seconds=TRANSCRIBE_SECONDS_MAX,
            errors=False,
        )
        if ended.timed_out or ended.exit_code:
            raise ValueError(f"`{command[0]}`: {'it took too long' if ended.timed_out else ended.how}")
        return ended.output

    async def _by_server(self, path: str) -> str:
        """https://platform.openai.com/docs/api-reference/audio/createTranscription"""
        settings, file = self._settings, self._workspace / path
        key = settings.api_key.get_secret_value()
        with file.open("rb") as recording:
            form = aiohttp.FormData({"model": settings.model, "response_format": "json"})
            form.add_field("file", recording, filename=f"recording{file.suffix}")
            async with (
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=TRANSCRIBE_SECONDS_MAX),
                    headers={"Authorization": f"Bearer {key}"} if key else {},
                    trust_env=True,
                ) as session,
                session.post(f"{settings.base_url.rstrip('/')}/audio/transcriptions", data=form) as response,
            ):
                if response.status != 200:
                    raise ValueError(f"the server answered {response.status}")
                answer: Any = await response.json(content_type=None)
        text = answer["text"]
        if not isinstance(text, str):
            raise TypeError("the answer holds no text")
        return text
