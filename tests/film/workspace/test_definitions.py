"""A definition that is changed between judgements: what was judged before is kept, said, and not counted."""

import json
from dataclasses import replace

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans, judgements_of
from obygaze_film import compare_films
from obygaze_film.workspace.decisions import JUDGEMENTS, Decisions
from obygaze_film.workspace.definitions import Meanings, changed_texts, codebook_in, stored
from obygaze_film.workspace.judged_tables import meanings_in, read_judged
from obygaze_film.workspace.ledger import Ledger
from obygaze_film.workspace.ledger_lines import Header, StoredCodebook
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import desk_page, next_window, shown_decisions
from tests.files import rows_of
from tests.film.workspace.deciding import judge, judge_blindly, standing_levels, stands


def reworded(book, means="any shot in which a weapon is on the table"):
    """The same codebook, by name, digest and levels, with another meaning of one level."""
    changed = [
        type(level)(**{name: getattr(level, name) for name in level.__struct_fields__} | {"means": means})
        if level.name == "violent"
        else level
        for level in book.levels
    ]
    made = replace(book, levels=tuple(changed))
    assert (made.name, made.digest()) == (book.name, book.digest())
    return made


@pytest.fixture
def judged(scored_tt1):
    """Ten windows judged blindly and one passage in sight, then the codebook is reworded."""
    folder, film, book = scored_tt1
    made = Decisions(*scored_tt1)
    judge_blindly(made, *["violent"] * 10, in_all=10)
    judge(made, 10, 20, "violent")
    return folder, film, book, reworded(book)


def test_each_sitting_begins_with_the_text_and_the_digest_of_its_codebook(judged):
    folder, film, book, other = judged
    judge(Decisions(folder, film, other), 30, 38)
    sittings = [path.read_text("utf-8").splitlines() for path in folder.glob("ledger/*.jsonl")]
    firsts = [json.loads(lines[0])["entry"] for lines in sittings]
    kept = {first["header"]["codebook"]["definition"] for first in firsts}
    assert kept == {book.definition(), other.definition()}
    texts = [codebook_in(StoredCodebook(**first["header"]["codebook"])) for first in firsts]
    assert all(text in (book, other) for text in texts)


def test_what_was_judged_before_is_kept_said_and_not_counted(judged):
    folder, film, book, other = judged
    made = Decisions(folder, film, other)
    assert len(standing_levels(made)) == 11
    assert any("11 decisions" in notice and book.definition()[:12] in notice for notice in made.notices)
    assert len(made.judgements()) == 0
    opened = OpenFilm(0, film, made)
    assert next_window(opened, "AB", 10)["window"]["place"] == 1  # the windows of the draw come again
    assert {one["otherwise"] for one in shown_decisions(opened, "AB")} == {True}
    page = desk_page([opened], opened, "read", "en")
    assert "any shot in which a weapon is on the table" in page
    assert 'id="d-again"' in page
    assert 'id="d-again"' not in desk_page(
        [opened], OpenFilm(0, film, Decisions(folder, film, book)), "read", "en"
    )


def test_a_definition_is_named_by_its_codebook_and_version_and_by_its_digest_where_these_are_not_enough(
    judged,
):
    folder, film, book, other = judged
    later = replace(other, version="2")
    notice = next(text for text in Decisions(folder, film, later).notices if "11 decisions" in text)
    assert f"under other definitions ({book.name}, version {book.version}), and not counted" in notice
    assert book.definition()[:12] not in notice
    # The words alone were changed: name and version do not tell them apart.
    names = meanings_in([folder], [other]).names()
    assert names[book.definition()] == f"{book.name}, version {book.version} ({book.definition()[:12]})"
    assert meanings_in([folder]).names()[book.definition()] == f"{book.name}, version {book.version}"
    assert meanings_in([folder]).name("a" * 64) == "a" * 12


def test_what_is_judged_again_counts_and_stands_in_place_of_what_was_judged_before(judged):
    folder, film, _, other = judged
    made = Decisions(folder, film, other)
    judge_blindly(made, *["calm"] * 10, in_all=10)
    assert len(standing_levels(made)) == 11
    assert {clip.level for clip in made.judgements()} == {"calm"}
    assert "share" in next_window(OpenFilm(0, film, made), "AB", 10)
    (passage,) = [one for one in shown_decisions(OpenFilm(0, film, made), "AB") if one["otherwise"]]
    made.keep("judgement", 10, 20, "AB", level="violent", changed_id=passage["id"])
    assert [one for one in shown_decisions(OpenFilm(0, film, made), "AB") if one["otherwise"]] == []
    assert len(standing_levels(made)) == 11


def test_a_wording_that_is_declared_to_change_nothing_is_recorded_and_counts_everywhere(judged):
    folder, film, book, other = judged
    made = Decisions(folder, film, other, same_meaning=True)
    assert len(made.judgements()) == 11
    assert not any("other definitions" in notice for notice in made.notices)
    for codebook in (book, other):  # for whoever opens it later, under either text
        later = Decisions(folder, film, codebook)
        assert len(later.judgements()) == 11
    judge(later, 40, 48)
    table = import_spans([folder / JUDGEMENTS], folder, "judgements", codebook=book).manifest
    assert len(judgements_of(table).definitions) == 1
    assert meanings_in([folder]).of(book.definition()) == meanings_in([folder]).of(other.definition())


def test_tables_say_under_which_definition_each_row_was_judged_and_take_it_back_in(judged):
    folder, film, book, other = judged
    made = Decisions(folder, film, other)
    judge(made, 30, 38)
    by_start = {row["start_s"]: row["definition"] for row in rows_of(folder / JUDGEMENTS)}
    assert (by_start["10"], by_start["30"]) == (book.definition(), other.definition())
    table = (folder / JUDGEMENTS).read_text("utf-8")
    alone = folder.parent / "alone"
    alone.mkdir()
    (alone / JUDGEMENTS).write_text(table, "utf-8")
    again = Decisions(alone, film, other)
    assert stands(again) == stands(made)
    assert len(again.judgements()) == 1


def test_old_sittings_without_a_codebook_count_and_that_is_said_once(judged):
    folder, film, book, _ = judged
    (path,) = folder.glob("ledger/*.jsonl")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    (folder / JUDGEMENTS).unlink()
    made = Decisions(folder, film, book)
    assert len(made.judgements()) == 11
    judge(made, 30, 38)
    assert sum("earlier version" in notice for notice in made.notices) == 1


def test_groups_are_not_compared_of_what_was_judged_under_two_definitions(judged):
    folder, film, book, other = judged
    judge(Decisions(folder, film, other), 30, 38)
    tables = read_judged({folder: film}, book, (JUDGEMENTS,))
    with pytest.raises(ManifestError, match="11 judgements under"):
        compare_films([film], tables.manifest)


# --- declarations and claims
# ---------------------------------------------------------------------------
def test_declarations_join_definitions_however_they_are_given():
    def header(own, *others):
        return Header(StoredCodebook(own, ""), others)

    declared = [header("c", "b"), header("d", "e", "f"), header("b", "a"), header("a", "c", "a"), Header()]
    meanings = Meanings(declared)
    assert [meanings.of(name) for name in "abcdefg"] == ["a", "a", "a", "d", "d", "d", "g"]


def test_a_digest_that_is_not_of_its_text_is_believed_by_nobody(scored_tt1):
    book = scored_tt1[2]
    made = Decisions(*scored_tt1)
    first = judge(made, 10, 20)
    header = Header(StoredCodebook(book.definition(), reworded(book).to_toml()))
    row = {**made.lines[first].row, "start_s": "30", "end_s": "38"}
    second = Ledger(scored_tt1[0], print, lambda: header).add("judgement", row).id
    made.refresh()
    definitions = [made.definition_of(made.lines[name]) for name in (first, second)]
    assert definitions == [book.definition(), ""]
    assert codebook_in(StoredCodebook(book.definition(), "name = ")) is None
    assert codebook_in(stored(book)) == book


def test_both_texts_of_what_changed_are_listed(scored_tt1):
    (text,) = changed_texts(scored_tt1[2], reworded(scored_tt1[2]))
    assert (text.name, "on the table" in text.before, "on the table" in text.now) == ("violent", False, True)


def test_the_desk_starts_with_a_declaration_and_keeps_it(serve, judged, tmp_path):
    folder, _, book, other = judged
    path = tmp_path / "other.codebook.toml"
    path.write_text(other.to_toml(), "utf-8")
    plain = serve(folder, path)
    assert "11 decisions" in plain.said
    assert plain.next(who="AB", n=10)["done"] == 0
    declared = serve(folder, path, "--same-meaning")
    assert "other definitions" not in declared.said
    assert declared.next(who="AB", n=10)["done"] == 10
    assert serve(folder, path).next(who="AB", n=10)["done"] == 10
    assert meanings_in([folder]).of(book.definition()) == meanings_in([folder]).of(other.definition())
