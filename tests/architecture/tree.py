"""The source tree as the guards see it: modules, what each imports and where, functions, words in code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gateway", "channels", "agent", "heartbeat")


@dataclass(frozen=True, slots=True)
class Import:
    """One import of one module, written out in full; `line` counts from 1."""

    target: str
    line: int


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """One Python file. `name` is its dotted name, a package's being the folder's."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def place(self) -> str:
        """The path as a person would type it, from the root of the repository."""
        return self.path.relative_to(ROOT).as_posix()

    def is_in(self, *places: str) -> bool:
        """True when the file is one of `places` or lies in one of them; a place may end in `*`."""
        return any(
            self.place.startswith(place[:-1]) if place.endswith("*") else self.place in {place, f"{place}.py"}
            for place in places
        ) or any(self.place.startswith(f"{place}/") for place in places)


def read_module(path: Path, root: Path = ROOT) -> Module:
    parts = path.relative_to(root).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    return Module(name, path, text, ast.parse(text, filename=str(path)))


@cache
def modules() -> tuple[Module, ...]:
    """Every Python file of the four packages, in the order of their paths."""
    return tuple(read_module(path) for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))


@cache
def modules_of_tests() -> tuple[Module, ...]:
    return tuple(read_module(path) for path in sorted((ROOT / "tests").rglob("*.py")))


def source_files(*suffixes: str) -> Iterator[Path]:
    """Files of the four packages with one of these endings."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in suffixes and "__pycache__" not in path.parts:
                yield path


def imports(module: Module) -> Iterator[Import]:
    """Every import, those inside functions and under TYPE_CHECKING too: all of them are dependencies.

    `from a import b` is the module `a.b` where such a module exists here, else `a`.
    """
    package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield Import(inner if _is_module(inner) else base, node.lineno)


def own_imports(module: Module) -> Iterator[Import]:
    """The imports of our own modules."""
    return (found for found in imports(module) if found.target.partition(".")[0] in PACKAGES)


@cache
def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def words_in_code(module: Module) -> Iterator[tuple[str, int]]:
    """String literals that are no docstrings, and the names that code gives things."""
    documentation = set(_docstrings(module.tree))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documentation:
            yield node.value, node.lineno
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Bare strings that stand as statements: docstrings, and the notes under constants and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def check(rule: str, faults: list[str]) -> None:
    """Fails with the rule, which says what to do, and each fault on a line of its own."""
    if faults:
        pytest.fail("\n".join([rule, *(f"  {fault}" for fault in faults)]), pytrace=False)
