"""Sizes, names and habits that keep the tree readable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import ROOT, Module, check, functions, modules, modules_of_tests, source_files

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
REASON = "long because:"

BANNED_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"}

BROAD_HANDLERS = {
    "gateway/supervise.py": "a channel fell",
    "gateway/queue.py": "a turn broke",
    "agent/motor.py": "a tool call broke",
    "heartbeat/runner.py": "a scheduled run broke",
    "agent/cerebellum.py": "a capability could not be loaded",
    "agent/mcp.py": "a server of tools, which is a capability too, fell",
    "gateway/http.py": "a request broke",
    "gateway/cli.py": "a command broke",
}
"""The seven places that may catch everything, one handler each: there a failure becomes a state or a sentence. A
server of tools is a capability, though in a file of its own."""

HANDED_ON = {
    "gateway/store/database.py": "one commit serves many callers: whatever one of them caused is raised at that caller",
}
"""Places that catch everything to hand it on to whoever waits for it; one handler each."""


def test_files_are_short_or_say_why_not() -> None:
    faults = [
        f"{path.relative_to(ROOT).as_posix()} has {len(lines)} lines"
        for path in source_files(".py", ".js", ".css", ".html", ".sql")
        if len(lines := path.read_text(encoding="utf-8").splitlines()) > FILE_LINES_MAX
        and REASON not in "\n".join(lines[:10])
    ]
    check(
        f"A file has at most {FILE_LINES_MAX} lines. Split it by what its parts are about, or put the comment "
        f"`# {REASON} ...` into its first ten lines:",
        faults,
    )


def test_functions_are_short_or_say_why_not() -> None:
    faults = [
        f"{module.place}:{function.lineno} {function.name} has {length} lines"
        for module in modules()
        for function in functions(module)
        if (length := _length(function)) > FUNCTION_LINES_MAX and not _has_reason(module, function)
    ]
    check(
        f"A function has at most {FUNCTION_LINES_MAX} lines. Take steps out of it, or put the comment "
        f"`# {REASON} ...` right under its head:",
        faults,
    )


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _has_reason(module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """The reason stands above the first statement that is no docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    last = body[0].lineno if body else function.lineno
    return REASON in "\n".join(module.text.splitlines()[function.lineno - 2 : last])


def modules_of_tests_are_named_after_what_they_hold() -> None:
    faults = [
        module.place
        for module in modules() + modules_of_tests()
        if BANNED_NAMES & set(re.split(r"[._]", module.name.rpartition(".")[2]))
    ]
    check("A module is named after what it holds, not after being useful. Rename:", faults)


def test_everything_is_caught_in_the_seven_places_only() -> None:
    faults: list[str] = []
    for module in modules():
        lines = list(_broad_handlers(module.tree))
        allowed = 1 if module.place in BROAD_HANDLERS | HANDED_ON else 0
        if len(lines) > allowed:
            faults += [f"{module.place}:{line}" for line in lines[allowed:]]
    check(
        "`except Exception` is allowed once in each of " + ", ".join(BROAD_HANDLERS) + " (cleaning up and raising "
        "again with a bare `raise` is no catching). Here, name the errors that can come:",
        faults,
    )


def _broad_handlers(tree: ast.AST) -> Iterator[int]:
    """Lines of handlers that swallow everything, `contextlib.suppress(Exception)` included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            raises_again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            if _is_broad(node.type) and not raises_again:
                yield node.lineno
        elif isinstance(node, ast.Call) and _name(node.func) == "suppress" and any(map(_is_broad, node.args)):
            yield node.lineno


def _is_broad(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    if isinstance(caught, ast.Tuple):
        return any(map(_is_broad, caught.elts))
    return _name(caught) in {"Exception", "BaseException"}


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_the_finder_of_broad_handlers_knows_their_forms() -> None:
    broad = "try: f()\nexcept {}: g()"
    for form in ("Exception", "(ValueError, BaseException)", "builtins.Exception as e", ""):
        assert list(_broad_handlers(ast.parse(broad.format(form)))), form
    assert list(_broad_handlers(ast.parse("with contextlib.suppress(Exception): f()")))
    assert not list(_broad_handlers(ast.parse(broad.format("ValueError"))))
    assert not list(_broad_handlers(ast.parse("try: f()\nexcept BaseException:\n  g()\n  raise")))


def test_tests_use_fakes_not_mocks() -> None:
    word = re.compile(r"^\s*(from|import)\s+(unittest(\.mock)?|mock|pytest_mock)\b|\bmocker\b", re.MULTILINE)
    faults = [
        f"{module.place}:{module.text.count(chr(10), 0, found.start()) + 1}"
        for module in modules() + modules_of_tests()
        if module.path != Path(__file__).resolve() and (found := word.search(module.text))
    ]
    check("Mocks are banned. Write a small fake in tests/fakes/ with the real interface:", faults)


def test_nothing_is_left_for_later() -> None:
    word = re.compile(r"\b(TODO|FIXME|XXX)\b")
    paths = [*source_files(".py", ".js", ".css", ".html", ".sql", ".md"), *(m.path for m in modules_of_tests())]
    faults = [
        f"{path.relative_to(ROOT).as_posix()}:{number}"
        for path in paths
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if word.search(line)
    ]
    check("Finish it, or open an issue and leave no mark in the code:", faults)


def test_only_the_commands_print() -> None:
    faults = [
        f"{module.place}:{node.lineno}"
        for module in modules()
        if not module.is_in("gateway/cli", "gateway/cli_*")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    check("Only gateway/cli*.py talk to the terminal. Log, or return the text:", faults)
