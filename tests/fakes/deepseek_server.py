"""A server with DeepSeek's rules: the chat-completions fake that wants reasoning back from the models that think."""

from __future__ import annotations

from tests.fakes.openai_server import (
    OpenAiServer,
    begun,
    broken,
    call_reply,
    cut_call,
    half_call,
    plain_document,
    small,
    text_reply,
)
from tests.fakes.stream_server import Json, error_reply
from tests.fakes.strict_api import check_chat_completions

__all__ = [
    "begun", "broken", "call_reply", "cut_call", "error_reply", "half_call", "plain_document", "small", "text_reply",
]  # fmt: skip
PROVIDER = "deepseek"


class DeepSeekServer(OpenAiServer):
    """Use as an async context manager."""

    def check(self, body: Json) -> None:
        check_chat_completions(body, reasoning=body["model"] != "deepseek-chat")


Server = DeepSeekServer
