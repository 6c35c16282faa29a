"""Servers of tools that speak the Model Context Protocol: each is a capability, kept running, and harms nothing when it
is down. The protocol itself is the official SDK's business; it is loaded only where a server is set up."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.limits import (
    SECRET_CHARS_MIN,
    SERVER_CALL_SECONDS_MAX,
    SERVER_DESCRIPTION_CHARS,
    SERVER_ERROR_CHARS,
    SERVER_PAUSES_SECONDS,
    SERVER_REFRESH_SECONDS,
    SERVER_SCHEMA_CHARS_MAX,
    SERVER_START_SECONDS_MAX,
    SERVER_STEADY_SECONDS,
    SERVER_TOOLS_MAX,
    TOOL_NAME_CHARS_MAX,
    TOOL_OUTPUT_CHARS,
)
from agent.lines import bounded, flat
from agent.programs import Tail
from agent.redaction import without
from agent.skills import Capability
from agent.types import CallContext, JsonObject, ToolFailure, ToolFunction, ToolSpec

if TYPE_CHECKING:
    import mcp_types
    from mcp.client._transport import TransportStreams
    from mcp.client.client import Client

_log = logging.getLogger(__name__)
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_STARTING = "it is being started."


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server as the owner set it up: a program to start (`command`, `args`, `env`), or the `url` of one that runs.

    `env` may hold secrets; the program gets nothing of our own environment beside what is harmless.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str = ""


class McpServers:
    """All servers, as `agent.cerebellum.CapabilitySource`. `run` keeps them running until it is cancelled.

    `folder` is where their programs start; `sleep` is awaited before one is started again, with growing pauses.
    """

    def __init__(
        self,
        servers: Sequence[McpServer],
        folder: Path,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._version = 0
        self._servers = [_Server(server, folder, sleep, self._changed) for server in servers]

    @property
    def version(self) -> int:
        return self._version

    def offers(self) -> Sequence[tuple[Capability, Mapping[str, ToolFunction]]]:
        return [server.offer() for server in self._servers]

    async def run(self) -> None:
        """Starts the servers and starts them again when they go down. Ends them when it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for server in self._servers:
                group.create_task(server.run(), name=f"server {server.name}")

    def _changed(self) -> None:
        self._version += 1


class _Server:
    """One server: what it offers now, or why it does not."""

    def __init__(
        self,
        settings: McpServer,
        folder: Path,
        sleep: Callable[[float], Awaitable[None]],
        changed: Callable[[], None],
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._folder = folder
        self._sleep = sleep
        self._changed = changed
        self._client: Client | None = None
        self._fault: str | None = _STARTING
        self._tools: dict[str, tuple[ToolSpec, str]] = {}
        self._wake = asyncio.Event()
        self._errors: Tail | None = None

    def offer(self) -> tuple[Capability, Mapping[str, ToolFunction]]:
        name = self.name
        description = f"Tools of the server {name}, which the owner set up."
        if self._fault is not None:
            return Capability(name, description, fault=self._fault), {}
        functions = {called: self._function(tool) for called, (_, tool) in self._tools.items()}
        return Capability(name, description, tools=tuple(spec for spec, _ in self._tools.values())), functions

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            begun = loop.time()
            try:
                await self._serve()
                reason = "it has ended"
            except Exception as error:  # noqa: BLE001
                # One of the broad handlers: whatever happens to one server must not touch the others.
                reason = _reason(error)
            finally:
                self._client = None
            self._down(reason)
            if loop.time() - begun >= SERVER_STEADY_SECONDS:
                failures = 0
            await self._sleep(SERVER_PAUSES_SECONDS[min(failures, len(SERVER_PAUSES_SECONDS) - 1)])
            failures += 1

    async def _serve(self) -> None:
        """Runs the server until it goes down. Raises whatever the SDK lets through."""
        try:
            # Most of a second, which must not hold up what runs.
            module = await asyncio.to_thread(importlib.import_module, "mcp.client.client")
        except ImportError as error:
            raise ToolFailure("it needs the package mcp (install hudhud[mcp])") from error
        self._wake.clear()
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(SERVER_START_SECONDS_MAX):
                target = self._settings.url or _program(
                    self._settings, self._folder, await self._errlog(stack), self._wake
                )
                client: Client = await stack.enter_async_context(module.Client(target, cache=None))
                await self._list(client)
            _log.info("the server %s is there with %d tools", self.name, len(self._tools))
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SERVER_REFRESH_SECONDS):
                        await self._wake.wait()
                if self._wake.is_set() and not self._settings.url:
                    return
                self._wake.clear()
                async with asyncio.timeout(SERVER_START_SECONDS_MAX):
                    await self._list(client)

    async def _errlog(self, stack: contextlib.AsyncExitStack) -> Any:
        """Where the program's stderr goes: its end says why it went down."""
        self._errors = Tail(SERVER_ERROR_CHARS)
        log = os.fdopen(await self._errors.open(), "w")
        stack.callback(self._errors.close)
        stack.callback(log.close)
        return log

    async def _list(self, client: Client) -> None:
        """Takes up the tools as they are now."""
        found: list[mcp_types.Tool] = []
        cursor: str | None = None
        while len(found) < SERVER_TOOLS_MAX:
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        specs = [_spec(self.name, tool) for tool in found[:SERVER_TOOLS_MAX]]
        tools = {spec.name: (spec, tool.name) for spec, tool in zip(specs, found, strict=False)}
        self._client = client
        if tools != self._tools or self._fault is not None:
            self._tools, self._fault = tools, None
            self._changed()

    def _down(self, reason: str) -> None:
        said = self._errors.text().strip().rpartition("\n")[2] if self._errors is not None else ""
        reason = flat(self._without_secrets(f"{reason}: {said}" if said else reason), SERVER_ERROR_CHARS)
        fault = f"{reason.rstrip('.')}. It is tried again."
        if fault != self._fault:
            _log.warning("the server %s is down: %s", self.name, fault)
            self._tools, self._fault = {}, fault
            self._changed()

    def _without_secrets(self, text: str) -> str:
        """What the server was set up with may hold keys, and its errors may repeat them."""
        secrets = [value for value in self._settings.env.values() if len(value) >= SECRET_CHARS_MIN]
        _, mark, query = self._settings.url.partition("?")
        return without(text, [*secrets, *([f"{mark}{query}"] if query else [])])

    def _function(self, tool: str) -> ToolFunction:
        async def call(context: CallContext, args: JsonObject) -> str:
            client = self._client
            if client is None:
                raise ToolFailure(f"The server {self.name} is down: {self._fault or _STARTING}")
            from mcp.shared.exceptions import MCPError
            from mcp_types import CONNECTION_CLOSED

            try:
                result = await client.call_tool(tool, dict(args))
            except MCPError as error:
                closed = error.code == CONNECTION_CLOSED
                if closed or self._settings.url:
                    self._wake.set()  # It may be down: that is looked into at once.
                broke = "It went down; nobody knows whether it did it. " if closed else ""
                said = flat(self._without_secrets(error.message), SERVER_ERROR_CHARS)
                raise ToolFailure(f"{broke}{said}") from error
            text = bounded(_text(result), TOOL_OUTPUT_CHARS)
            if result.is_error:
                raise ToolFailure(text or "The server says that it failed.")
            return text or "Done."

        return call


def _program(
    server: McpServer, folder: Path, errlog: Any, ended: asyncio.Event
) -> contextlib.AbstractAsyncContextManager[TransportStreams]:
    """The transport to a program that is started for it; `ended` is set when the program ends."""
    import anyio
    from mcp.client.stdio import StdioServerParameters, stdio_client

    @contextlib.asynccontextmanager
    async def transport() -> AsyncGenerator[TransportStreams, None]:
        parameters = StdioServerParameters(
            command=server.command, args=list(server.args), env=dict(server.env), cwd=folder
        )
        async with stdio_client(parameters, errlog=errlog) as (read, write):
            send, receive = anyio.create_memory_object_stream[Any](0)

            async def pass_on() -> None:
                async with send:
                    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                        async for item in read:
                            await send.send(item)
                ended.set()

            async with anyio.create_task_group() as group:
                group.start_soon(pass_on)
                yield receive, write
                group.cancel_scope.cancel()

    return transport()


def _spec(server: str, tool: mcp_types.Tool) -> ToolSpec:
    """A tool as the model sees it. What the server says of itself is bounded, and believed only as far as its owner
    trusts it: a tool that does not call itself harmless is asked about each time."""
    hints = tool.annotations
    read_only = hints is not None and hints.read_only_hint is True
    harmless = read_only or (hints is not None and hints.destructive_hint is False)
    schema: dict[str, Any] = {**tool.input_schema, "type": "object"}
    if len(json.dumps(schema, default=str)) > SERVER_SCHEMA_CHARS_MAX:
        schema = {"type": "object"}
    return ToolSpec(
        name=_NO_NAME.sub("_", tool.name)[:TOOL_NAME_CHARS_MAX] or "tool",
        description=flat(tool.description or tool.title or tool.name, SERVER_DESCRIPTION_CHARS),
        parameters=schema,
        read_only=read_only,
        repeatable=read_only,
        timeout_seconds=SERVER_CALL_SECONDS_MAX,
        capability=server,
        outside=True,
        asks="" if harmless else f"It may change something at the server {server}.",
    )


def _text(result: mcp_types.CallToolResult) -> str:
    """What a result holds, as text; other things by their kind and size."""
    parts: list[str] = []
    for block in result.content:
        match block.type:
            case "text":
                parts.append(block.text)
            case "image" | "audio":
                parts.append(f"[{block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]")
            case "resource_link":
                parts.append(f"[{block.name}: {block.uri}]")
            case "resource":
                resource: Any = block.resource
                parts.append(getattr(resource, "text", "") or f"[{resource.uri}, not shown]")
    if not parts and result.structured_content is not None:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False, default=str))
    return "\n".join(parts)


def _reason(error: BaseException) -> str:
    """The innermost of nested groups of errors, in a few words."""
    while isinstance(error, BaseExceptionGroup):
        inner: tuple[BaseException, ...] = error.exceptions  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        error = inner[0]
    if isinstance(error, TimeoutError):
        return f"it did not answer within {SERVER_START_SECONDS_MAX:g} seconds"
    return str(error) or type(error).__name__
