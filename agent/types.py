"""The types that walk through the agent, and the Protocols it is given. Knows no chat platform."""

# long because: every type that crosses a room of the agent stands here, so that nobody looks for one twice.

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

Role = Literal["user", "assistant", "tool"]
Rights = Literal["owner", "allowed"]
Outcome = Literal["success", "failed", "denied", "blocked", "interrupted"]
Decision = Literal["safe", "confirm", "block"]
TurnStatus = Literal["done", "stopped", "failed"]
JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Person:
    """Who is speaking. `id` is `<channel>:<platform id>`; rights decide, the name never does."""

    id: str
    name: str
    rights: Rights


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asks for. `fault` says why it cannot be run (arguments cut off, not an object); such a
    call is never executed, its fault goes back to the model. `cut_off`: the fault is that the arguments broke off."""

    id: str
    name: str
    args: JsonObject
    fault: str | None = None
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call. `text` is what the model reads. `files` are workspace paths that the tool made."""

    call_id: str
    ok: bool
    text: str
    outcome: Outcome
    files: tuple[str, ...] = ()
    attempts: int = 1
    took_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. `parameters` is a JSON schema of type object.

    `read_only`: changes nothing, so calls of it may run side by side. `repeatable`: a failed try may be made again.
    `rights`: who may call it. `capability`: whose tool it is. What the safety gate reads:

    - `paths`: names of the arguments that are paths in the workspace.
    - `shell`: names of the arguments that a shell runs.
    - `command`: the program, with its arguments, that a call runs; the call's own arguments are its input.
    - `outside`: its result is text from outside (pages, files, other programs), which may be written to mislead.
    - `asks`: why each call needs the owner's consent; empty: what the gate finds decides.
    - `previews`: it can say what a call would do; the owner is shown that with the question.
    """

    name: str
    description: str
    parameters: JsonObject
    read_only: bool = False
    repeatable: bool = False
    rights: Rights = "owner"
    timeout_seconds: float = 30.0
    capability: str = ""
    paths: tuple[str, ...] = ()
    shell: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    outside: bool = False
    asks: str = ""
    previews: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """Words that came with a turn and are not its person's: a forwarded text, a quoted one, what others said in the
    group. They are fenced in the prompt, never obeyed, and can consent to nothing.

    `source` says what they are. `is_own`: the agent's own earlier words, quoted; nobody wrote them to mislead.
    """

    text: str
    source: str
    sender: str = ""
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt. An assistant message may carry calls; a `tool` message answers one of them.

    `images`: pictures of a user message as workspace paths, read when the request is made. `reasoning`: what came as
    a chunk of that kind with an assistant message; it lives within its turn and is nobody's to read but the provider's.
    `ref`: where the whole text can be read again (`memory_get`), for the program only; empty: not known.
    `is_data`: a user message that is one fence, nobody's words to the agent.
    """

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    images: tuple[str, ...] = ()
    reasoning: JsonObject | None = None
    ref: str = field(default="", compare=False)
    is_data: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to the model."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls. `input_tokens` does not count the two cache figures."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.requests + other.requests,
        )


@dataclass(frozen=True, slots=True)
class StreamChunk:
    """One piece of a model's stream, the same for every provider.

    - `text`, `thinking`: `text` holds the piece.
    - `call`: a fragment of a tool call. `index` groups fragments (None: the provider gave none); `call_id` and
      `name` come when the provider sends them; `arguments` is a piece of JSON text, or `arguments_object` the whole.
    - `reasoning`: `reasoning` is what the provider wants back with this reply's calls. It goes into the Message as it
      is; it is never shown, logged or stored, and another provider or model leaves it out.
    - `usage`: `usage` holds the call's figures.
    - `stop`: the stream is complete; `text` is `end`, `calls` or `length`. A stream without it broke off.
    - `reset`: the stream broke off and begins anew: forget text, thinking and calls so far (usage stays spent).
      Comes from the thalamus, never from a provider.
    """

    kind: Literal["text", "thinking", "call", "reasoning", "usage", "stop", "reset"]
    text: str = ""
    index: int | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    arguments_object: JsonObject | None = None
    usage: Usage | None = None
    reasoning: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """Something a person may see while the turn runs.

    `text`: a piece of the answer. `reset`: forget the text shown so far. `tool`: call number `n` of the turn is
    `running` or ended with an Outcome (`state`); `detail` is one line.
    """

    kind: Literal["text", "reset", "tool"]
    text: str = ""
    n: int = 0
    name: str = ""
    state: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's word on one call. `arabic` is the reason in Arabic, as far as there is one."""

    decision: Decision
    reason: str = ""
    arabic: str = ""


@dataclass(frozen=True, slots=True)
class GatePattern:
    """A pattern of a SKILL.md: a regular expression searched, whatever the case, in each string argument of a call.

    `tools`: the names of the tools it applies to; None: every tool.
    """

    expression: str
    level: Literal["confirm", "block"]
    reason: str
    tools: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Question:
    """What the owner is asked before a call runs: `what` is exactly what would run.

    `fades`: it repeats what is to be forgotten, so its own text is not kept once it is answered.
    """

    what: str
    reason: str
    asked_by: str
    fades: bool = False


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """A call that an earlier, broken-off run of this turn recorded. `result` is None when nobody knows how it ended."""

    round: int
    round_text: str
    call: ToolCall
    result: ToolResult | None


@dataclass(frozen=True, slots=True)
class Turn:
    """Everything one turn starts from. `text` is all waiting messages of one person, each kept whole.

    `allows`: tools that the owner allowed this job of the clock; a run that cannot ask may call them. `previous_at`:
    when the conversation's message before was written. `session_keys`: the person's own sessions, beside this one.
    `foreign`: words of others that came along. `reads`: files of the workspace that a job's author wants the model to
    see; `model`: the one chosen for that job, empty: the owner's usual one.
    """

    id: str
    session_key: str
    conversation_id: str
    text: str
    person: Person
    started_at: datetime
    origin: Literal["person", "scheduled"] = "person"
    channel: str = ""
    style: str = ""
    files: tuple[str, ...] = ()
    history: tuple[Message, ...] = ()
    may_ask: bool = False
    earlier_calls: tuple[EarlierCall, ...] = ()
    allows: tuple[str, ...] = ()
    previous_at: datetime | None = None
    session_keys: tuple[str, ...] = ()
    foreign: tuple[Foreign, ...] = ()
    reads: tuple[str, ...] = ()
    model: str = ""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What one turn came to. `reply` is what is sent; `rounds` the text of each model round, the last the final one.

    `error` is for the log; a failed turn's `reply` says in one plain sentence what the person can do. `waits`: there is
    no network for the model; the turn is to be run again when there is.
    """

    turn_id: str
    status: TurnStatus
    reply: str
    rounds: tuple[str, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    waits: bool = False


class TurnPort(Protocol):
    """The turn's line to the outside while it runs. All of it is the queue's business."""

    @property
    def stopped(self) -> bool:
        """True when a person stopped this turn: what cancels it then is not the program's end."""
        ...

    def emit(self, segment: Segment) -> None: ...

    async def ask(self, question: Question) -> bool | None:
        """True or False as the owner answered; None when nobody answered in time."""
        ...

    async def heard(self, round: int) -> Sequence[str]:
        """Messages that came since the turn began, each whole; from now on this turn answers them."""
        ...

    async def calls_begin(self, round: int, text: str, calls: Sequence[ToolCall]) -> None:
        """Records the calls of one round before any of them runs. Returns after the commit."""
        ...

    async def call_ended(self, call: ToolCall, result: ToolResult) -> None:
        """Records one result before the model sees it. Returns after the commit."""
        ...


class Provider(Protocol):
    """One model service. Raises `ProviderError` and nothing else; never retries by itself."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def local(self) -> bool:
        """True when no network is needed."""
        ...

    def stream(self, prompt: Prompt) -> AsyncIterator[StreamChunk]: ...

    async def close(self) -> None: ...


class ProviderError(Exception):
    """A model call that failed. `transient` may be tried again after `retry_after_seconds` (None: not named).

    `str()` is one plain sentence for the person: what, and what to do; `arabic` the same in Arabic (empty: none).
    Neither holds a secret.
    """

    def __init__(
        self,
        sentence: str,
        *,
        transient: bool,
        status: int | None = None,
        retry_after_seconds: float | None = None,
        arabic: str = "",
    ) -> None:
        super().__init__(sentence)
        self.transient = transient
        self.status = status
        self.retry_after_seconds = retry_after_seconds
        self.arabic = arabic


class ContextOverflow(ProviderError):
    """The request is longer than the model takes: nothing was answered, a shorter one may be."""


class NoNetwork(ProviderError):
    """The machine has no network, known before the model was called: nothing was sent, the message can wait."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whose eyes a retrieval tool looks with. `session_keys` None: all (the owner); else only these sessions."""

    person: Person
    session_keys: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a tool knows of the call it serves. `call_id` is unique within the turn.

    `preview`: the owner is about to be asked; the tool says what the call would do, and does nothing.
    """

    viewer: Viewer
    session_key: str
    conversation_id: str
    turn_id: str
    now: datetime
    call_id: str = ""
    preview: bool = False


ToolFunction = Callable[[CallContext, JsonObject], Awaitable[str]]
"""A tool: takes checked arguments, gives back the text for the model. Raises ToolFailure with one sentence."""


class ToolFailure(Exception):
    """A tool could not do it. `str()` is one sentence for the model. `transient`: may pass on another try."""

    def __init__(self, sentence: str, *, transient: bool = False) -> None:
        super().__init__(sentence)
        self.transient = transient


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """A tool call as the transcripts show it; `n` counts from 1 within its message."""

    n: int
    name: str
    args: JsonObject
    output: str
    outcome: str


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """A saved message as the transcripts show it; `n` counts from 1 within its conversation. `at` is UTC."""

    n: int
    id: str
    role: str
    text: str
    sender: str
    sender_id: str
    at: datetime
    state: str
    flags: tuple[str, ...] = ()
    attachments: tuple[JsonObject, ...] = ()
    tool_calls: tuple[ToolCallRecord, ...] = ()
    turn_id: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """One conversation, without its messages."""

    id: str
    session_key: str
    channel: str
    chat: str
    title: str
    updated_at: datetime
    message_count: int
    last_text: str = ""
    open: bool = True


class Transcripts(Protocol):
    """The saved conversations, as the retrieval tools read them. Visibility is applied before any limit."""

    async def conversations(
        self,
        viewer: Viewer,
        *,
        channel: str | None = None,
        ids: Sequence[str] | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        limit: int = 20,
    ) -> list[ConversationRecord]:
        """Newest update first; `ids` narrows to these, in any order. `after` is inclusive, `before` exclusive."""
        ...

    async def conversation(self, viewer: Viewer, part: str) -> list[ConversationRecord]:
        """Those whose id contains `part`; exactly one when `part` is a whole id."""
        ...

    async def session(self, viewer: Viewer, session_key: str) -> list[ConversationRecord]:
        """The conversations of one session, oldest first; none when there is no such session to see."""
        ...

    async def messages(
        self, conversation_id: str, first: int | None = None, last: int | None = None
    ) -> list[MessageRecord]:
        """Messages first..last inclusive, with their tool calls; None: from the start, to the end."""
        ...


class StateSource(Protocol):
    """What the state tools ask of the running program; each answer is a JSON shape of docs/formats.md."""

    async def channels(self) -> JsonObject: ...

    async def status(self) -> JsonObject:
        """The shape of `status`; `uptime_seconds` is None while no gateway runs."""
        ...

    async def usage(self, after: datetime | None, before: datetime | None) -> JsonObject:
        """The shape of `usage` without `period`, of the calls from `after` to `before` (exclusive)."""
        ...

    async def performance(self, since: datetime) -> JsonObject:
        """`{"turns": [{"state", "count", "average_seconds", "longest_seconds"}], "tools": [{"name", "calls",
        "not_successful", "average_seconds"}]}` of what began since then."""
        ...
