"""Who may import whom. The rules are section 1 of docs/architecture.md."""

from __future__ import annotations

from collections.abc import Iterator

from tests.architecture.tree import ROOT, Module, check, imports, modules, own_imports

GATEWAY_LINE = (
    "cli",
    "client",
    "app",
    "wiring",
    "doctor",
    "backend",
    "clock",
    "chores",
    "schedules",
    "library",
    "upkeep",
    "http",
    "supervise",
    "inbox",
    "commands",
    "importer",
    "removal",
    "arrivals",
    "queue",
    "lanes",
    "port",
    "drafts",
    "messenger",
    "linking",
    "spending",
    "alerts",
    "approvals",
    "history",
    "words",
    "outbox",
    "readlog",
    "transcribe",
    "people",
    "metrics",
    "uploads",
    "health",
    "events",
    "observe",
    "sentences",
    "backup",
    "home",
    "store",
    "config",
)
"""Left may import right, never back. `cli_*.py` count as cli, the folder store/ as store."""

REGIONS = (
    "prefrontal",
    "ras",
    "thalamus",
    "broca",
    "wernicke",
    "amygdala",
    "motor",
    "cerebellum",
    "basalganglia",
    "cortex",
    "hippocampus",
)
REGION_TO_REGION = {
    "prefrontal": {"ras", "cortex", "cerebellum", "hippocampus"},
    "motor": {"cerebellum"},
    "thalamus": {"providers"},
}
ROOMS = {"turn", "brain", "compaction", "providers", "capabilities"}
"""The other rooms of the agent with rules of their own. Every further module there is plain: see `_agent_fault`."""

LIBRARIES = {
    "sqlite3": ("gateway/store", "agent/cortex"),
    "aiosqlite": ("gateway/store", "agent/cortex"),
    # web_fetch is a client of the web: it needs one whose look-ups it can check.
    "mcp": ("agent/mcp", "gateway/cli_mcp"),
    "mcp_types": ("agent/mcp", "gateway/cli_mcp"),
    "aiohttp": (
        "gateway/http",
        "channels/inapp",
        "channels/telegram",
        "gateway/transcribe",
        "agent/capabilities/web_fetch",
    ),
    "telegram": ("channels/telegram",),
    "telegramify_markdown": ("channels/telegram",),
    "ijson": ("channels/telegram",),
    "neonize": ("channels/whatsapp",),
    "magic": ("channels/whatsapp",),
    "google": ("channels/whatsapp",),
    "segno": ("channels/inapp", "gateway/cli_*"),
    "openai": ("agent/providers",),
    "Stemmer": ("agent/cortex/stems",),
    "tree_sitter": ("agent/amygdala",),
    "tree_sitter_bash": ("agent/amygdala",),
    "detect_secrets": ("agent/redaction",),
    "genai_prices": ("agent/usage", "agent/model_sizes"),
    "anthropic": ("agent/providers",),
    "ollama": ("agent/providers",),
    "apscheduler": ("heartbeat",),
    "prometheus_client": ("gateway/metrics",),
    "cronsim": ("heartbeat",),
    "jinja2": ("channels/inapp",),
    "nh3": ("channels/inapp",),
    "typer": ("gateway/cli", "gateway/cli_*"),
    "watchfiles": ("agent/cortex",),
    "rich": ("gateway/cli", "gateway/cli_*"),
}
"""A library and the only places that may know it."""


def test_the_leaves_of_the_star_import_only_themselves() -> None:
    faults = [
        f"{module.place}:{found.line} imports {found.target}"
        for module in modules()
        for found in own_imports(module)
        if _top(module.name) != "gateway" and _top(found.target) != _top(module.name)
    ]
    check(
        "channels, agent and heartbeat import nothing of ours but themselves. Declare a Protocol in the package's "
        "own types file and let gateway/app.py hand the object in:",
        faults,
    )


def test_the_gateway_imports_along_its_line() -> None:
    faults: list[str] = []
    for module in _modules_of("gateway"):
        here = _gateway_rank(module.name)
        if here is None:
            faults.append(f"{module.place} has no place in the line")
            continue
        for found in own_imports(module):
            there = _gateway_rank(found.target) if _top(found.target) == "gateway" else None
            if there is not None and there < here:
                faults.append(f"{module.place}:{found.line} imports {found.target}, which stands to its left")
    check(
        f"Inside gateway left may import right only: {', '.join(GATEWAY_LINE)}. Move the shared piece to the right, "
        "hand a callable in at construction, or give a new module its place in GATEWAY_LINE and in "
        "docs/architecture.md:",
        faults,
    )


def _gateway_rank(name: str) -> int | None:
    """0 is leftmost; None for a module that the line does not know. limits is free to all and imports nothing."""
    room = name.split(".")[1] if "." in name else ""
    if room in {"", "__main__"}:
        return -1 if room else len(GATEWAY_LINE)
    if room == "limits":
        return len(GATEWAY_LINE)
    room = "cli" if room.startswith("cli_") else room
    return GATEWAY_LINE.index(room) if room in GATEWAY_LINE else None


def test_the_line_is_the_one_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert f"`{', '.join(GATEWAY_LINE)}`" in text, "Write the line as it stands in GATEWAY_LINE into rule 2."


def test_the_agent_imports_from_turn_to_types() -> None:
    faults = [
        f"{module.place}:{found.line} imports {found.target}: {fault}"
        for module in _modules_of("agent")
        for found in own_imports(module)
        if _top(found.target) == "agent" and (fault := _agent_fault(_room(module.name), _room(found.target)))
    ]
    check(
        "Inside agent imports go turn -> brain -> regions -> types, from region to region only as "
        "docs/architecture.md says. Let turn.py carry the value, or take a Protocol at construction:",
        faults,
    )


def _agent_fault(here: str, there: str) -> str | None:
    """Why the room `here` may not import the room `there`, or None.

    Plain modules (types, limits, and those that several regions share) are below the regions: all may import
    them, they import only each other.
    """
    if there in {here, ""}:
        return None
    is_plain = there not in ROOMS and there not in REGIONS
    if is_plain or here == "turn":
        return None
    if here == "brain":
        return None if there in {*REGIONS, "compaction", "providers"} else "brain names the regions, nothing else"
    if here in REGIONS:
        return None if there in REGION_TO_REGION.get(here, set()) else f"{here} may not know {there}"
    return f"{here} stands below the regions"


def test_a_channel_imports_the_message_and_channel_types_and_itself() -> None:
    allowed = {"channels.message", "channels.channel", "channels.text", "channels.typing_sign"}
    faults: list[str] = []
    for module in _modules_of("channels"):
        if module.place.count("/") == 1:
            continue
        folder = ".".join(module.name.split(".")[:2])
        faults += [
            f"{module.place}:{found.line} imports {found.target}"
            for found in own_imports(module)
            if found.target not in allowed and not f"{found.target}.".startswith(f"{folder}.")
        ]
    check(
        "A channel folder imports channels.message, channels.channel, channels.text, channels.typing_sign and itself. "
        "What it needs from the gateway is a Protocol in its own folder, handed in by ChannelContext:",
        faults,
    )


def test_a_library_is_known_in_its_own_places_only() -> None:
    faults = [
        f"{module.place}:{found.line} imports {found.target}; allowed in {', '.join(places)}"
        for module in modules()
        for found in imports(module)
        if (places := LIBRARIES.get(_top(found.target))) and not module.is_in(*places)
    ]
    check(
        "These libraries have one room each, so that they can be replaced there. Move the code into that room, or "
        "widen LIBRARIES in this file with a reason:",
        faults,
    )


def test_there_are_no_import_circles() -> None:
    names = {module.name for module in modules()}
    graph = {
        module.name: sorted({found.target for found in own_imports(module)} & names - {module.name})
        for module in modules()
    }
    circle = _find_circle(graph)
    assert circle is None, (
        f"Import circle: {' -> '.join(circle)}. Move what both sides need into a module that imports neither."
    )


def _find_circle(graph: dict[str, list[str]]) -> list[str] | None:
    """A circle as the list of its members, the first one repeated at the end; None when there is none."""
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str] | None:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return None
        for target in graph[name]:
            if circle := walk(target, [*path, name]):
                return circle
        done.add(name)
        return None

    return next((circle for name in graph if (circle := walk(name, []))), None)


def test_the_circle_finder_finds_one() -> None:
    assert _find_circle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert _find_circle({"a": ["b", "c"], "b": ["c"], "c": []}) is None


def _modules_of(package: str) -> Iterator[Module]:
    return (module for module in modules() if _top(module.name) == package)


def _top(name: str) -> str:
    return name.partition(".")[0]


def _room(name: str) -> str:
    """`agent.cortex.index` lies in the room `cortex`."""
    return name.split(".")[1] if "." in name else ""
