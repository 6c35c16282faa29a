"""Each implementation of a seam runs that seam's contract suite."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import get_args

import pytest

from channels.registry import CHANNELS
from gateway.config import ProviderName
from tests.architecture.tree import ROOT, check, modules_of_tests


def _implementations(seam: str) -> list[str]:
    """What implements a seam. The store has two: its own, and heartbeat's RunStore in gateway/store/runs.py."""
    match seam:
        case "Channel":
            return sorted(CHANNELS)
        case "Provider":
            return sorted(get_args(ProviderName))
        case "Capability":
            return sorted(path.parent.name for path in (ROOT / "agent" / "capabilities").glob("*/SKILL.md"))
        case "RunStore":
            return ["runs"]
        case _:
            return ["store"]


def _suites(seam: str) -> Iterator[str]:
    """Names of the test classes that derive from `<seam>Contract`, lower case."""
    for module in modules_of_tests():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and f"{seam}Contract" in {_name(base) for base in node.bases}:
                yield node.name.lower()


def _name(base: ast.expr) -> str:
    base = base.value if isinstance(base, ast.Subscript) else base
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


@pytest.mark.parametrize("seam", ["Channel", "Provider", "Capability", "RunStore", "Store"])
def test_every_implementation_runs_the_contract_suite(seam: str) -> None:
    suites = list(_suites(seam))
    missing = [name for name in _implementations(seam) if not any(name.replace("_", "") in suite for suite in suites)]
    check(
        f"Each {seam.lower()} runs the suite {seam}Contract of tests/contracts/. Write a class "
        f"`Test<Name>({seam}Contract)` whose name holds the implementation's name, for:",
        missing,
    )
