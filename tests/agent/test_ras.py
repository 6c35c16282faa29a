"""The budget is shared and candidates are ranked the same way each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.limits import BUDGET_SHARES
from agent.ras import Candidate, Ras

kinds = st.sampled_from(sorted(BUDGET_SHARES))
wants_of = st.dictionaries(kinds, st.integers(0, 50_000))


@given(st.integers(0, 200_000), wants_of)
def test_a_budget_is_shared_fairly(total: int, wants: dict[str, int]) -> None:
    given_tokens = Ras().share_budget(total, wants)
    assert given_tokens.keys() == wants.keys()
    assert sum(given_tokens.values()) <= total
    for kind, tokens in given_tokens.items():
        assert min(wants[kind], int(total * BUDGET_SHARES[kind])) <= tokens <= wants[kind]
    # Nothing is kept back while somebody is short.
    assert sum(given_tokens.values()) == min(total, sum(wants.values()))
    assert given_tokens == Ras().share_budget(total, wants)


def test_unused_share_flows_to_those_who_are_short() -> None:
    shared = Ras().share_budget(1_000, {"identity": 10, "prefrontal": 0, "memory": 900, "skills": 0, "history": 900})
    assert shared["identity"] == 10
    assert shared["memory"] + shared["history"] == 990
    assert shared["memory"] > 300
    assert shared["history"] > 250


def test_nothing_is_shared_out_of_less_than_nothing() -> None:
    assert Ras().share_budget(-5, {"memory": 3, "history": 4}) == {"memory": 0, "history": 0}


def test_the_words_of_the_question_decide_between_equal_weights() -> None:
    ranked = Ras().rank(
        "flight plan to Riyadh",
        [
            Candidate("a", "lunch menu", 1.0),
            Candidate("b", "the Flight plan, Riyadh", 1.0),
            Candidate("c", "plan", 1.0),
        ],
    )
    assert [item.candidate.key for item in ranked] == ["b", "c", "a"]
    assert all(0 <= item.score <= 1 for item in ranked)


def test_arabic_spellings_and_unspaced_scripts_count_as_words() -> None:
    arabic = Ras().rank("أين خطّة الرحلة", [Candidate("a", "قائمة الطعام", 1.0), Candidate("b", "خطه الرحله", 1.0)])
    assert arabic[0].candidate.key == "b"
    chinese = Ras().rank("航班计划", [Candidate("a", "午餐菜单", 1.0), Candidate("b", "这是航班的计划", 1.0)])
    assert chinese[0].candidate.key == "b"


@given(st.permutations([Candidate(key, "same words", 2.0) for key in "abcd"]))
def test_the_order_does_not_depend_on_the_order_given(candidates: list[Candidate]) -> None:
    assert [item.candidate.key for item in Ras().rank("words", candidates)] == ["a", "b", "c", "d"]
