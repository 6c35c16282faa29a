"""Who is who: pages, names and file names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.hippocampus.entities import Entities, load_entities, safe_slug
from tests.fakes.house_words import HouseWords


def loaded(workspace: Path, **pages: str) -> Entities:
    folder = workspace / "bank" / "entities"
    folder.mkdir(parents=True, exist_ok=True)
    for slug, text in pages.items():
        (folder / f"{slug.replace('_', '-')}.md").write_text(text, encoding="utf-8")
    return load_entities(workspace, HouseWords())


def test_a_page_is_found_by_file_heading_and_alias_in_both_scripts(tmp_path: Path) -> None:
    found = loaded(tmp_path, Peter="# Peter Smith\naliases: بيتر, Pete، بيتر سميث\n\nA friend.\n")
    names = ("Peter", "peter", "Peter-Smith", "PETE", "بيتر", "بِيتر", "بيتر-سميث")
    assert {found.slug_of(name) for name in names} == {"Peter"}


def test_the_article_matters_only_where_nothing_fits_better(tmp_path: Path) -> None:
    found = loaded(tmp_path, القلعة="# القلعة\n", حسن="# حسن\n", الحسن="# الحسن\n")
    assert found.find("قلعة") == found.find("القلعة") == found.pages["القلعة"]
    assert found.find("حسن") == found.pages["حسن"]
    assert found.find("الحسن") == found.pages["الحسن"]
    assert found.find("nobody") is None


def test_an_alias_that_is_another_page_makes_them_one(tmp_path: Path) -> None:
    found = loaded(tmp_path, Peter="# Peter\naliases: Pete\n", Pete="# Pete\naliases: Petey\n")
    assert found.merged == {"Pete": "Peter"}
    assert {found.slug_of(name) for name in ("Peter", "Pete", "Petey")} == {"Peter"}


def test_two_pages_that_name_each_other_are_still_two_names_for_one(tmp_path: Path) -> None:
    found = loaded(tmp_path, Ann="# Ann\naliases: Bob\n", Bob="# Bob\naliases: Ann\n")
    assert len(found.merged) == 1
    assert found.slug_of("Ann") == found.slug_of("Bob")


def test_the_owner_has_a_page_of_any_name(tmp_path: Path) -> None:
    found = loaded(tmp_path, Layla="# Layla\naliases: Owner\n")
    assert found.slug_of("Owner") == found.slug_of("me") == found.slug_of("أنا") == "Layla"


@pytest.mark.parametrize(
    ("name", "slug"),
    [("Peter", "Peter"), ("The-Castle", "The-Castle"), ("سارة", "سارة"), ("../../etc", "etc"), ("a/b\\c", "a-b-c")],
)
def test_slugs_stay_readable(name: str, slug: str) -> None:
    assert safe_slug(name) == slug


@given(st.lists(st.text(min_size=1), max_size=12, unique=True))
def test_slugs_are_safe_stable_and_never_shared(names: list[str]) -> None:
    found = Entities(HouseWords())
    slugs = {name: found.slug_of(name) for name in names}
    for name, slug in slugs.items():
        assert slug
        assert len(f"{slug}.md".encode()) <= 255
        assert "/" not in slug
        assert not slug.startswith(".")
        assert found.slug_of(name) == slug
    pages = [slug.casefold() for slug in found.pages]
    assert len(pages) == len(set(pages))
    for one in names:
        for other in names:
            assert (slugs[one] == slugs[other]) == (found.key(one) == found.key(other))


@pytest.mark.parametrize("name", ["CON", "nul", "…", "x" * 400, "م" * 300])
def test_odd_names_get_a_name_of_their_own(name: str) -> None:
    slug = safe_slug(name)
    assert len(slug.encode()) <= 200
    assert slug.casefold() not in {"con", "nul", ""}
