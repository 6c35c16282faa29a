"""Lasting facts: one bullet each, never twice, and no hand edit lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.cortex.text import sameness_key
from agent.hippocampus import knowledge as module
from agent.hippocampus.knowledge import FOLDER, Knowledge
from agent.types import ToolFailure
from tests.fakes.library import OWNER, open_library


class Index:
    """Knows which sentences say the same, and remembers which files it was told of."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def sameness_key(self, text: str) -> str:
        return sameness_key(text)

    async def file_changed(self, path: Path) -> None:
        self.told.append(path.name)


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
def knowledge(tmp_path: Path, index: Index) -> Knowledge:
    return Knowledge(tmp_path, index)


def read(tmp_path: Path, type: str = "technical") -> str:
    return (tmp_path / FOLDER / f"{type}.md").read_text(encoding="utf-8")


async def test_a_fact_becomes_a_bullet_and_its_line_is_the_reference(
    tmp_path: Path, knowledge: Knowledge, index: Index
) -> None:
    saved = await knowledge.save("The server is\n called  falcon.")
    assert saved.as_json() == {"status": "saved", "ref": f"file:{FOLDER}/technical.md#L3"}
    assert read(tmp_path) == "# Technical\n\n- The server is called falcon.\n"
    assert index.told == ["technical.md"]
    again = await knowledge.save("Backups run at three.")
    assert again.ref.endswith("#L4")
    assert read(tmp_path).splitlines()[3] == "- Backups run at three."


async def test_topics_are_sections(tmp_path: Path, knowledge: Knowledge) -> None:
    await knowledge.save("Sara likes tea.", "people", "Sara")
    await knowledge.save("Omar lives in Jeddah.", "people", "Omar")
    saved = await knowledge.save("Sara works at night.", "people", "sara")
    await knowledge.save("Everybody comes on Fridays.", "people")
    assert read(tmp_path, "people") == (
        "# People\n\n- Everybody comes on Fridays.\n\n## Sara\n\n- Sara likes tea.\n- Sara works at night.\n\n"
        "## Omar\n\n- Omar lives in Jeddah.\n"
    )
    assert saved.ref.endswith("#L6")


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("Sara likes tea.", "sara   LIKES tea"),
        ("أحمد يعمل في المدرسة", "احمد يعمل في المدرسه!"),
        ("الاجتماع الساعة ٩", "الاجتماع الساعة 9"),
    ],
)
async def test_what_is_known_is_not_saved_again_whatever_its_type(
    tmp_path: Path, knowledge: Knowledge, index: Index, known: str, said: str
) -> None:
    first = await knowledge.save(known, "people")
    again = await knowledge.save(said, "decisions")
    assert (again.status, again.ref) == ("known", first.ref)
    assert not (tmp_path / FOLDER / "decisions.md").exists()
    assert index.told == ["people.md"]


async def test_signs_that_carry_meaning_make_another_fact(knowledge: Knowledge) -> None:
    await knowledge.save("Sara writes C.")
    assert (await knowledge.save("Sara writes C++.")).status == "saved"


@pytest.mark.parametrize("by", ["sentence", "bullet", "reference"])
async def test_a_new_fact_takes_the_place_of_an_old_one(tmp_path: Path, knowledge: Knowledge, by: str) -> None:
    await knowledge.save("The standup is at nine.", "decisions")
    old = await knowledge.save("Reports go out on Monday.", "decisions")
    names = {"sentence": "reports go out on monday", "bullet": "- Reports go out on Monday.", "reference": old.ref}
    saved = await knowledge.save("Reports go out on Sunday.", "technical", replaces=names[by])
    assert (saved.status, saved.ref) == ("replaced", old.ref)
    assert read(tmp_path, "decisions") == "# Decisions\n\n- The standup is at nine.\n- Reports go out on Sunday.\n"
    assert not (tmp_path / FOLDER / "technical.md").exists()


async def test_when_the_new_sentence_stands_already_the_old_one_goes(tmp_path: Path, knowledge: Knowledge) -> None:
    await knowledge.save("Old way.", "decisions")
    await knowledge.save("New way.", "decisions")
    saved = await knowledge.save("New way", "decisions", replaces="Old way")
    assert saved.as_json() == {"status": "replaced", "ref": f"file:{FOLDER}/decisions.md#L3"}
    assert read(tmp_path, "decisions") == "# Decisions\n\n- New way.\n"


@pytest.mark.parametrize("replaces", ["never said", f"file:{FOLDER}/people.md#L99", "file:memory.md#L1"])
async def test_an_old_fact_that_is_not_there_is_a_failure_and_nothing_is_written(
    tmp_path: Path, knowledge: Knowledge, replaces: str
) -> None:
    await knowledge.save("Sara likes tea.", "people")
    before = read(tmp_path, "people")
    with pytest.raises(ToolFailure):
        await knowledge.save("Sara likes coffee.", "people", replaces=replaces)
    assert read(tmp_path, "people") == before


@pytest.mark.parametrize(("fact", "type"), [("", "people"), (" ? ", "people"), ("x" * 5_000, "people"), ("ok", "pets")])
async def test_what_cannot_be_saved_is_one_sentence(knowledge: Knowledge, fact: str, type: str) -> None:
    with pytest.raises(ToolFailure):
        await knowledge.save(fact, type)


async def test_hand_edits_stay_as_they_are(tmp_path: Path, knowledge: Knowledge) -> None:
    await knowledge.save("First.", "projects")
    path = tmp_path / FOLDER / "projects.md"
    edited = (
        "# My projects\r\n\r\nA word before.\r\n\r\n* First, changed by hand.\r\n1. numbered\r\n\r\n## Kept\r\n- x\r\n"
    )
    path.write_bytes(edited.encode())
    await knowledge.save("Second.", "projects")
    after = path.read_bytes().decode()
    assert [line for line in after.split("\n") if "Second" not in line] == edited.split("\n")


async def test_an_edit_in_the_very_moment_is_kept(
    tmp_path: Path, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    await knowledge.save("First.", "projects")
    path = tmp_path / FOLDER / "projects.md"
    real, edits = module._read, []  # pyright: ignore[reportPrivateUsage]

    def read_then_edit(file: Path) -> str | None:
        text = real(file)
        if file == path and not edits:
            edits.append(1)
            path.write_text(f"{text}- By hand.\n", encoding="utf-8")
        return text

    monkeypatch.setattr(module, "_read", read_then_edit)
    saved = await knowledge.save("Second.", "projects")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines == ["# Projects", "", "- First.", "- By hand.", "- Second."]
    assert saved.ref.endswith("#L5")


async def test_a_file_that_never_rests_is_given_up_and_not_overwritten(
    tmp_path: Path, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    await knowledge.save("First.", "projects")
    path = tmp_path / FOLDER / "projects.md"
    real = module._read  # pyright: ignore[reportPrivateUsage]

    def read_then_edit(file: Path) -> str | None:
        text = real(file)
        if file == path:
            path.write_text(f"{text}- more\n", encoding="utf-8")
        return text

    monkeypatch.setattr(module, "_read", read_then_edit)
    with pytest.raises(ToolFailure, match="being edited"):
        await knowledge.save("Second.", "projects")
    assert "Second" not in path.read_text(encoding="utf-8")


async def test_facts_that_come_together_are_all_kept(tmp_path: Path, knowledge: Knowledge) -> None:
    await asyncio.gather(*(knowledge.save(f"Fact number {n}.") for n in range(20)))
    assert read(tmp_path).count("- Fact number") == 20


async def test_bytes_that_are_no_text_are_not_overwritten(tmp_path: Path, knowledge: Knowledge) -> None:
    path = tmp_path / FOLDER / "people.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"# People\n- caf\xe9\n")
    with pytest.raises(ToolFailure, match="UTF-8"):
        await knowledge.save("Sara likes tea.", "people")
    assert path.read_bytes() == b"# People\n- caf\xe9\n"


async def test_a_saved_fact_is_found_at_once_and_opened_by_its_reference(tmp_path: Path) -> None:
    async with open_library(tmp_path) as library:
        knowledge = Knowledge(library.workspace, library.cortex)
        saved = await knowledge.save("The flamingo visa needs two photos.", "projects", "Visa")
        answer = await library.cortex.search(OWNER, "flamingo photos")
        assert answer.hits[0].source == "knowledge"
        assert await library.cortex.get(OWNER, saved.ref, 1) == "- The flamingo visa needs two photos."
        await knowledge.save("The flamingo visa needs three photos.", replaces=saved.ref)
        snippets = [hit.snippet for hit in (await library.cortex.search(OWNER, "flamingo photos")).hits]
        assert snippets == ["- The flamingo visa needs three photos."]


@pytest.mark.parametrize(
    ("asked", "is_near"),
    [
        ("The dentist is Dr. Salem", True),
        ("the old dentist is dr amin", True),
        ("The dentist of Ann is Dr. Salem", False),
        ("I like tea", False),
    ],
)
async def test_the_old_sentence_may_be_named_roughly(knowledge: Knowledge, asked: str, is_near: bool) -> None:
    await knowledge.save("The dentist is Dr. Amin")
    await knowledge.save("The boiler is old")
    if is_near:
        assert (await knowledge.save("Dr. Salem took over", replaces=asked)).status == "replaced"
    else:
        with pytest.raises(ToolFailure, match="No saved fact"):
            await knowledge.save("Dr. Salem took over", replaces=asked)


async def test_of_two_that_are_as_near_none_is_replaced(knowledge: Knowledge) -> None:
    await knowledge.save("The red car is fast")
    await knowledge.save("The blue car is fast")
    with pytest.raises(ToolFailure, match="No saved fact"):
        await knowledge.save("The car is gone", replaces="The green car is fast")
