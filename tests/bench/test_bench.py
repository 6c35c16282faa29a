from __future__ import annotations

import json

import pytest

from tests.bench.__main__ import BENCHES, main
from tests.bench.figures import LIMITS, figure

KEYS = {"name", "value", "unit", "target", "beyond", "of_target", "bare", "ok"}
PREFIXES = {
    "accept": "accept_",
    "turn": "turn_",
    "chats": "chats_",
    "start": ("start_", "idle_", "help"),
    "request": "request_",
    "index": ("index_", "search_", "context_"),
    "files": "files_",
    "stream": "stream_",
    "classify": "classify_",
}
"""Each figure belongs to one bench."""


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_prints_its_figures_as_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--tiny"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert all(set(one) == KEYS and one["value"] >= 0 for one in figures)
    printed = sorted(one["name"] for one in figures)
    assert printed == sorted(limit for limit in LIMITS if limit.startswith(PREFIXES[name]))


def test_a_figure_is_shown_as_a_multiple_of_its_limit() -> None:
    slow = figure("turn_inapp_p50", 12, 0.6)
    assert (slow["of_target"], slow["ok"], slow["bare"]) == (1.5, False, 0.6)
    fast = figure("chats_inapp_turns_per_second", 240)
    assert (fast["of_target"], fast["ok"], fast["bare"]) == (0.5, True, None)
    assert figure("accept_direct_1_p50", 3)["ok"] is None


def test_an_unknown_bench_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["speed"])
    assert "accept" in capsys.readouterr().err
