"""What the services refuse: written from their documentation, with nothing of ours, so that it can prove us wrong.

Each check takes the body of a request and raises `Refused` with the reason, as the service would answer 400.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from typing import Any

Json = dict[str, Any]
_ID = re.compile(r"[A-Za-z0-9_-]+")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Refused(Exception):
    """`str()` is the reason."""


def _need(true: Any, reason: str) -> None:
    if not true:
        raise Refused(reason)


def _keys(fields: Json, allowed: Collection[str], where: str) -> None:
    unknown = set(fields) - set(allowed)
    _need(not unknown, f"{where}: unknown fields {sorted(unknown)}")


def _text(text: Any, where: str) -> None:
    _need(isinstance(text, str), f"{where}: must be a string")
    try:
        str(text).encode()
    except UnicodeEncodeError as error:
        raise Refused(f"{where}: not valid Unicode") from error


def _tools(tools: list[Json]) -> None:
    names: set[str] = set()
    for tool in tools:
        _need(_NAME.fullmatch(tool["name"]), f"tools: name {tool['name']!r}")
        _need(tool["name"] not in names, f"tools: {tool['name']} twice")
        names.add(tool["name"])
        schema: Any = tool.get("parameters", tool.get("input_schema"))
        _need(bool(schema) and schema["type"] == "object", f"tools: schema of {tool['name']}")


def check_chat_completions(body: Json, *, reasoning: bool | None = None) -> None:
    """OpenAI's format. `reasoning` (DeepSeek's addition): True: an assistant message with calls must have
    `reasoning_content`; False: none may have it; None: the field is unknown."""
    _keys(body, {"model", "messages", "stream", "stream_options", "tools"}, "body")
    _need(body["model"] and body["messages"], "body: model and messages")
    tools = body.get("tools")
    _need(tools is None or tools, "tools: must not be empty")
    for tool in tools or ():
        _keys(tool, {"type", "function"}, "tools")
    _tools([tool["function"] for tool in tools or ()])
    open_ids: set[str] = set()
    seen: set[str] = set()
    for n, message in enumerate(body["messages"]):
        where = f"messages[{n}]"
        role = message["role"]
        if role == "tool":
            _keys(message, {"role", "content", "tool_call_id"}, where)
            _text(message["content"], where)
            _need(message["tool_call_id"] in open_ids, f"{where}: answers no call of the message before")
            open_ids.remove(message["tool_call_id"])
            continue
        _need(not open_ids, f"{where}: {sorted(open_ids)} have no result")
        if role == "assistant":
            open_ids = _assistant(message, where, seen, reasoning)
        else:
            _need(role in {"system", "user"}, f"{where}: role {role}")
            _keys(message, {"role", "content"}, where)
            _content(message["content"], where, parts=role == "user")
    _need(not open_ids, f"{sorted(open_ids)} have no result")
    _need(body["messages"][-1]["role"] != "assistant", "the last message is the assistant's")


def _assistant(message: Json, where: str, seen: set[str], reasoning: bool | None) -> set[str]:
    _keys(message, {"role", "content", "tool_calls"} | (set() if reasoning is None else {"reasoning_content"}), where)
    calls = message.get("tool_calls")
    if reasoning is False:
        _need("reasoning_content" not in message, f"{where}: reasoning_content is not taken")
    if reasoning and calls:
        _need(
            isinstance(message.get("reasoning_content"), str),
            f"{where}: the reasoning_content in the thinking mode must be passed back to the API",
        )
    if calls is None:
        _content(message["content"], where, parts=False)
        _need(message["content"], f"{where}: neither content nor calls")
        return set()
    _need(calls, f"{where}: tool_calls must not be empty")
    if message["content"] is not None:
        _content(message["content"], where, parts=False)
    ids: set[str] = set()
    for call in calls:
        _keys(call, {"id", "type", "function"}, where)
        _keys(call["function"], {"name", "arguments"}, where)
        _need(0 < len(call["id"]) <= 40, f"{where}: id {call['id']!r}")
        _need(call["id"] not in seen, f"{where}: id {call['id']} came before")
        _need(call["type"] == "function" and _NAME.fullmatch(call["function"]["name"]), f"{where}: name")
        arguments = call["function"]["arguments"]
        _text(arguments, where)
        try:
            value = json.loads(arguments)
        except ValueError as error:
            raise Refused(f"{where}: arguments {arguments!r} are no JSON") from error
        _need(isinstance(value, dict), f"{where}: arguments must be an object")
        ids.add(call["id"])
        seen.add(call["id"])
    return ids


def _content(content: Any, where: str, *, parts: bool) -> None:
    if isinstance(content, str):
        _text(content, where)
        return
    _need(parts and content, f"{where}: content must be a string")
    part: Any
    for part in content:
        if part["type"] == "text":
            _text(part["text"], where)
        else:
            _need(part["image_url"]["url"].startswith("data:image/"), f"{where}: image")


def signature(body: Json, messages: list[Json]) -> str:
    """What signs a thinking block that follows `messages`: it stands for everything before it."""
    tools = [{key: tool[key] for key in tool if key != "cache_control"} for tool in body.get("tools", ())]
    system = [block["text"] for block in body.get("system", ())]
    plain = [
        (
            message["role"],
            [{key: block[key] for key in block if key != "cache_control"} for block in message["content"]],
        )
        for message in messages
    ]
    return hashlib.sha256(json.dumps([tools, system, plain]).encode()).hexdigest()[:16]


def check_messages(body: Json) -> None:
    """Anthropic's format."""
    _keys(body, {"model", "max_tokens", "stream", "system", "tools", "tool_choice", "messages"}, "body")
    _need(isinstance(body["max_tokens"], int) and body["max_tokens"] > 0, "max_tokens")
    tools = body.get("tools", [])
    for tool in tools:
        _keys(tool, {"name", "description", "input_schema", "cache_control"}, "tools")
    _tools(tools)
    _need("tool_choice" not in body or tools, "tool_choice without tools")
    for block in body.get("system", ()):
        _keys(block, {"type", "text", "cache_control"}, "system")
        _need(block["text"].strip(), "system: text content blocks must be non-empty")
    marks = json.dumps(body).count('"cache_control"')
    _need(marks <= 4, f"{marks} cache marks")
    messages = body["messages"]
    _need(messages and messages[-1]["role"] == "user", "the conversation must end with a user message")
    open_ids: list[str] = []
    seen: set[str] = set()
    for n, message in enumerate(messages):
        where = f"messages.{n}"
        _keys(message, {"role", "content"}, where)
        _need(message["role"] == ("assistant" if n % 2 else "user"), f"{where}: roles must alternate")
        _need(isinstance(message["content"], list) and message["content"], f"{where}: content must not be empty")
        kinds = [block["type"] for block in message["content"]]
        answered = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        _need(sorted(answered) == sorted(open_ids), f"{where}: results {answered} for calls {open_ids}")
        _need(kinds[: len(answered)] == ["tool_result"] * len(answered), f"{where}: results must come first")
        open_ids = []
        for block in message["content"]:
            _block(block, message["role"], where, signature(body, messages[:n]))
            if block["type"] == "tool_use":
                _need(block["id"] not in seen, f"{where}: id {block['id']} came before")
                seen.add(block["id"])
                open_ids.append(block["id"])
    _need(not seen or tools, "requests with tool_use blocks must define tools")


_BLOCKS = {
    "user": {
        "text": {"text"},
        "image": {"source"},
        "tool_result": {"tool_use_id", "content"},
    },
    "assistant": {
        "text": {"text"},
        "tool_use": {"id", "name", "input"},
        "thinking": {"thinking", "signature"},
        "redacted_thinking": {"data"},
    },
}


def _block(block: Json, role: str, where: str, signed: str) -> None:
    kind = block["type"]
    _need(kind in _BLOCKS[role], f"{where}: {kind} block of {role}")
    marked: set[str] = set() if "thinking" in kind else {"cache_control"}
    _keys(block, {"type"} | marked | _BLOCKS[role][kind], where)
    if kind == "text":
        _text(block["text"], where)
        _need(block["text"].strip(), f"{where}: text content blocks must contain non-whitespace text")
    elif kind == "tool_use":
        _need(_ID.fullmatch(block["id"]) and _NAME.fullmatch(block["name"]), f"{where}: id or name")
        _need(isinstance(block["input"], dict), f"{where}: input must be an object")
    elif kind == "tool_result":
        _text(block["content"], where)
    elif kind == "thinking":
        _need(block["signature"] == signed, f"{where}: the thinking block is bound to a different conversation")
    elif kind == "image":
        _keys(block["source"], {"type", "media_type", "data"}, where)


def check_ollama(body: Json) -> None:
    """Ollama's format; the real server takes unknown fields without a word, this one does not."""
    _keys(body, {"model", "messages", "stream", "tools", "options"}, "body")
    _need(body["options"]["num_ctx"] > 0, "options: num_ctx")
    _tools([tool["function"] for tool in body.get("tools", ())])
    waiting: list[tuple[str, str]] = []
    for n, message in enumerate(body["messages"]):
        where = f"messages[{n}]"
        role = message["role"]
        _text(message["content"], where)
        if role == "tool":
            _keys(message, {"role", "content", "tool_name", "tool_call_id"}, where)
            _need(waiting, f"{where}: a result without a call")
            _need((message["tool_call_id"], message["tool_name"]) == waiting.pop(0), f"{where}: of another call")
            continue
        _need(not waiting, f"{where}: {waiting} have no result")
        _need(role in {"system", "user", "assistant"}, f"{where}: role {role}")
        more: set[str] = {"tool_calls", "thinking"} if role == "assistant" else {"images"} if role == "user" else set()
        _keys(message, {"role", "content"} | more, where)
        for call in message.get("tool_calls", ()):
            _keys(call, {"id", "function"}, where)
            _keys(call["function"], {"index", "name", "arguments"}, where)
            _need(isinstance(call["function"]["arguments"], dict), f"{where}: arguments must be an object")
            waiting.append((call["id"], call["function"]["name"]))
    _need(not waiting, f"{waiting} have no result")
