"""`hudhud memory`, `hudhud conversations` and `hudhud tool`: what is remembered, without and beside a gateway."""

from __future__ import annotations

import json

import pytest

from tests.fakes.terminal import Shell

PASSPORT = "my passport is in the blue folder"


def remember(shell: Shell, text: str = PASSPORT) -> str:
    """Keeps a fact by writing to the agent; the conversation."""
    said = shell("chat", f"remember that {text}", "--json")
    assert said.code == 0
    return said.json["conversation"]


@pytest.mark.parametrize("beside_a_gateway", [False, True])
def test_a_fact_is_saved_found_and_opened(shell: Shell, beside_a_gateway: bool) -> None:
    def use() -> None:
        saved = shell("memory", "save", "The dentist is Dr. Amin", "--type", "people", "--topic", "Health", "--json")
        assert saved.code == 0
        assert saved.json["status"] == "saved"
        assert shell("memory", "save", "the dentist is dr. amin.", "--json").json["status"] == "known"
        (hit,) = shell("memory", "search", "dentist", "--sources", "knowledge", "--json").json["hits"]
        assert "Amin" in hit["snippet"]
        opened = shell("memory", "get", hit["ref"])
        assert opened.code == 0
        assert "The dentist is Dr. Amin" in opened.out

    shell.prepared()
    if beside_a_gateway:
        with shell.gateway():
            use()
    else:
        use()


def test_a_fact_can_take_the_place_of_another(shell: Shell) -> None:
    shell.prepared()
    ref = shell("memory", "save", "The key is under the mat", "--json").json["ref"]
    said = shell("memory", "save", "The key is with Layla", "--replaces", ref)
    assert (said.code, said.out.partition(":")[0]) == (0, "Replaced")
    assert shell("memory", "search", "mat", "--sources", "knowledge").out == ""


def test_what_a_person_wrote_into_the_workspace_is_found(shell: Shell) -> None:
    shell.prepared()
    shell.write("workspace/memory.md", "# Memory\n\nThe boiler was serviced in October.\n")
    said = shell("memory", "search", "boiler")
    assert said.out.splitlines()[0].startswith("file:memory.md")
    assert "serviced in October" in said.out


def test_words_that_are_nowhere_are_no_failure_and_no_output(shell: Shell) -> None:
    said = shell.prepared()("memory", "search", "xyzzy")
    assert (said.code, said.out, said.err) == (0, "", "")
    found = shell("memory", "search", "xyzzy", "--json").json
    assert found["hits"] == []
    assert found["indexing"] is False


def test_filters_are_the_tool_s_parameters(shell: Shell) -> None:
    shell.prepared()
    remember(shell)
    assert shell("memory", "search", "passport", "--role", "user", "--json").json["hits"][0]["role"] == "user"
    assert shell("memory", "search", "passport", "--before", "2001-01-01", "--json").json["hits"] == []
    assert len(shell("memory", "search", "passport", "--limit", "1", "--json").json["hits"]) == 1


@pytest.mark.parametrize("option", [["--after", "yesterday"], ["--sources", "dreams"]])
def test_a_filter_that_cannot_be_is_wrong_use(option: list[str], shell: Shell) -> None:
    said = shell.prepared()("memory", "search", "x", *option)
    assert said.code == 2
    assert option[1] in said.err


@pytest.mark.parametrize("ref", ["conversation:nothing#1", "file:../config.toml", "file:absent.md", "task:none"])
def test_a_reference_to_nothing_is_exit_code_3(ref: str, shell: Shell) -> None:
    said = shell.prepared()("memory", "get", ref)
    assert (said.code, said.out) == (3, "")
    assert said.err.count("\n") == 1


def test_an_empty_fact_is_wrong_use(shell: Shell) -> None:
    assert shell.prepared()("memory", "save", "  ").code == 2


def test_conversations_are_listed_and_read(shell: Shell) -> None:
    shell.prepared()
    conversation = remember(shell)
    listed = shell("conversations", "list")
    assert listed.out.splitlines()[0].split() == ["id", "updated", "channel", "messages", "title"]
    assert conversation in listed.out
    assert PASSPORT in listed.out
    read = shell("conversations", "read", conversation[-6:])
    assert read.code == 0
    assert f"remember that {PASSPORT}" in read.out
    assert "memory_save" in read.out
    assert "memory_save" not in shell("conversations", "read", conversation, "--what", "messages").out
    found = shell("conversations", "read", conversation, "--from", "2", "--json").json
    assert [message["n"] for message in found["messages"]] == [2]


def test_a_conversation_that_is_not_there_or_not_clear(shell: Shell) -> None:
    shell.prepared()
    assert shell("conversations", "read", "nothing").code == 3
    shell("chat", "hello")
    shell("chat", "/new")
    shell("chat", "hello again")
    said = shell("conversations", "read", "-")
    assert said.code == 2
    assert "Several" in said.err


def test_an_empty_list_of_conversations_is_silent(shell: Shell) -> None:
    said = shell.prepared()("conversations", "list")
    assert (said.code, said.out, said.err) == (0, "", "")
    assert shell("conversations", "list", "--json").json == {"conversations": []}


def test_conversations_by_words(shell: Shell) -> None:
    shell.prepared()
    conversation = remember(shell)
    found = shell("conversations", "list", "--query", "passport", "--json").json["conversations"]
    assert [item["id"] for item in found] == [conversation]
    assert shell("conversations", "list", "--query", "xyzzy", "--json").json == {"conversations": []}


def test_a_tool_is_called_as_the_model_would_and_leaves_its_task(shell: Shell) -> None:
    shell.prepared()
    said = shell("tool", "memory_save", json.dumps({"fact": PASSPORT}))
    assert (said.code, said.out.partition(":")[0]) == (0, "Saved")
    assert PASSPORT in shell("tool", "memory_search", '{"query": "passport"}').out
    tasks = list((shell.home / "workspace" / "brain" / "motor" / "tasks").glob("TASK-*.md"))
    assert any("memory_save" in task.read_text(encoding="utf-8") for task in tasks)


@pytest.mark.parametrize(
    ("name", "arguments", "code", "wanted"),
    [
        ("memory_serch", "{}", 3, "memory_search"),
        ("memory_search", "{query}", 2, "not JSON"),
        ("memory_search", "[]", 2, "JSON object"),
        ("memory_search", "{}", 2, "query"),
        ("memory_search", '{"query": "x", "limit": 900}', 2, "900"),
        ("memory_get", '{"ref": "conversation:nothing#1"}', 1, "nothing"),
    ],
)
def test_a_call_that_cannot_be_made_says_why(name: str, arguments: str, code: int, wanted: str, shell: Shell) -> None:
    said = shell.prepared()("tool", name, arguments)
    assert (said.code, said.out) == (code, "")
    assert wanted in said.err
    assert "Traceback" not in said.err


def test_the_channels_as_a_tool_with_and_without_a_gateway(shell: Shell) -> None:
    shell.prepared()
    assert "no gateway runs" in shell("tool", "channel_status", "{}").out
    with shell.gateway():
        said = shell("tool", "channel_status", "{}", "--json").json
    assert said["outcome"] == "success"
    assert "inapp: connected" in said["text"]


def test_a_call_that_needs_consent_runs_with_yes_only(shell: Shell) -> None:
    shell.prepared('[safety]\nconfirm = "always"\n')
    call = ("tool", "memory_save", json.dumps({"fact": PASSPORT}))
    said = shell(*call)
    assert said.code == 1
    assert f"fact: {PASSPORT}" in said.err
    assert "--yes" in said.err
    assert PASSPORT not in shell("tool", "memory_search", '{"query": "passport"}').out
    assert shell(*call, "--yes").code == 0
    assert PASSPORT in shell("tool", "memory_search", '{"query": "passport"}').out


def test_a_fact_is_retained_recalled_and_reflected_on(shell: Shell) -> None:
    shell.prepared()
    kept = shell("memory", "retain", "O(c=0.90) @Peter: Prefers tea in the morning.", "--json")
    assert kept.code == 0
    assert kept.json["status"] == "saved"
    assert shell("memory", "retain", "O @Peter: prefers tea in the morning").out.startswith(
        "Known already: file:brain/"
    )
    done = shell("memory", "reflect", "--since", "7d", "--json")
    assert done.code == 0
    assert done.json["changed"] == ["bank/entities/Peter.md", "bank/opinions.md"]
    assert shell("memory", "reflect", "--json").json == {"taken": 0, "changed": [], "refused": [], "faults": []}
    (hit,) = shell("memory", "recall", "what does Peter prefer?", "--kind", "opinion", "--json").json["hits"]
    assert hit["content"] == "Prefers tea in the morning"
    assert hit["entities"] == ["Peter"]
    assert hit["confidence"] == 0.9
    assert set(hit) == {"kind", "timestamp", "entities", "content", "source", "confidence", "evidence", "score"}
    assert shell("memory", "get", hit["source"]).out.strip() == "- O(c=0.90) @Peter: Prefers tea in the morning."
    said = shell("memory", "recall", "Peter", "--k", "1", "--since", "30d", "--entity", "Peter", "--max-tokens", "400")
    assert said.code == 0
    assert "Peter" in said.out


def test_malformed_bullets_are_listed_with_file_and_line(shell: Shell) -> None:
    shell.prepared()
    shell.write("workspace/brain/hippocampus/episodes/2026-01-05.md", "## Retain\n- W: It rains.\n- rubbish\n")
    (fault,) = shell("memory", "reflect", "--json").json["faults"]
    assert (fault["file"], fault["line"]) == ("brain/hippocampus/episodes/2026-01-05.md", 3)
    assert "2026-01-05.md:3: not of the form" in shell("memory", "reflect").err


def test_past_weeks_are_summed_up(shell: Shell) -> None:
    shell.prepared()
    shell.write("workspace/brain/hippocampus/episodes/2026-01-07.md", "## Retain\n- W: It rains.\n")
    assert shell("memory", "consolidate", "--week", "2026-W03", "--json").json["changed"] == []
    page = "brain/hippocampus/consolidated/2026-W02.md"
    assert shell("memory", "consolidate", "--json").json["changed"] == [page]
    assert shell("memory", "consolidate").out == ""
    assert shell("memory", "consolidate", "--since", "2026-01-01", "--json").json["changed"] == []
    assert "It rains" in shell("memory", "get", page).out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("retain", "Peter likes tea"), "Write for example"),
        (("recall", "Peter", "--since", "soonish"), "is no date"),
        (("reflect", "--since", "soonish"), "is no date"),
        (("consolidate", "--week", "soon"), "is no week"),
    ],
)
def test_what_is_used_wrongly_is_one_sentence(shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    said = shell.prepared()("memory", *arguments)
    assert said.code == 2
    assert words in said.err
    assert said.err.count("\n") == 1
