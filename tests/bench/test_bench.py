from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.bench import recall
from tests.bench.__main__ import BENCHES, main
from tests.bench.figures import LIMITS, figure

KEYS = {"name", "value", "unit", "target", "beyond", "floor", "of_target", "bare", "ok"}
PREFIXES = {
    "accept": "accept_",
    "turn": "turn_",
    "chats": "chats_",
    "start": ("start_", "idle_", "help"),
    "request": "request_",
    "index": ("index_", "search_", "context_"),
    "files": "files_",
    "find": "find_6000_",
    "recall": (),
    "rebuild": "rebuild_",
    "reflect": "reflect_",
    "stream": "stream_",
    "backlog": "backlog_",
    "classify": "classify_",
    "clock": "clock_",
}
"""Each figure belongs to one bench."""


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_prints_its_figures_as_json(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(recall.DATA, str(tmp_path / "none"))
    assert main([name, "--tiny"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert all(set(one) == KEYS and one["value"] >= 0 for one in figures)
    printed = sorted(one["name"] for one in figures)
    assert printed == sorted(limit for limit in LIMITS if limit.startswith(PREFIXES[name]))


def made_up_sets(folder: Path) -> None:
    """Sets in the shape of the public ones, with text of our own."""
    turns = [
        {"speaker": "Rana", "dia_id": "D1:1", "text": "We moved to the harbour street"},
        {"speaker": "Omar", "dia_id": "D1:2", "text": "Is the kitchen large?", "blip_caption": "a blue door"},
        {"speaker": "Rana", "dia_id": "D1:3", "text": "It has room for six"},
    ]
    questions = [
        {"question": "Where did Rana move?", "evidence": ["D1:1"], "category": 4},
        {"question": "What is blue, and where did they move?", "evidence": ["D1:2; D1:01"], "category": 1},
        {"question": "Who sold the boat?", "evidence": ["D1:1"], "category": 5},
        {"question": "Named by nothing?", "evidence": ["D9:9"], "category": 2},
    ]
    conversation = {"speaker_a": "Rana", "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns}
    sample = {"sample_id": "conv-26", "conversation": conversation, "qa": questions}
    (folder / "locomo-a.json").write_text(json.dumps([sample]))
    context = "The heron fishes at dawn. The owl hunts by night."
    answer = {"text": "by night", "answer_start": context.index("by night")}
    paragraph = {"context": context, "qas": [{"question": "When does the owl hunt?", "answers": [answer]}]}
    for name in recall.PASSAGES:
        (folder / f"{name}-a.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))


def test_recall_is_measured_on_the_sets_of_a_folder(tmp_path: Path) -> None:
    made_up_sets(tmp_path)
    figures = asyncio.run(recall.run(tmp_path))
    by_name = {one["name"]: one["value"] for one in figures}
    assert sorted(by_name) == sorted(limit for limit in LIMITS if limit.startswith("recall_"))
    assert by_name["recall_inside_r5"] == by_name["recall_multi_hop_r10"] == 1
    assert by_name["recall_inside_mrr"] == 1
    assert by_name["recall_arabic_arcd_sentence_r10"] == 1
    assert all(one["name"] in recall.table(figures) for one in figures)


def test_without_sets_recall_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(recall.DATA, str(tmp_path / "none"))
    assert main(["recall"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == []
    assert recall.DATA in printed.err


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
