"""A definition that is changed between judgements: what was judged before is kept, said, and not counted."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec import structs

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Codebook, import_spans, judgements_of
from obygaze_film import Timeline, compare_films
from obygaze_film.workspace.decisions import JUDGEMENTS, Decisions
from obygaze_film.workspace.definitions import Meanings, changed_texts, codebook_in, stored
from obygaze_film.workspace.judged_tables import meanings_in, read_judged
from obygaze_film.workspace.ledger import Ledger
from obygaze_film.workspace.ledger_lines import Header, StoredCodebook
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import desk_page, next_window, shown_decisions
from tests.files import rows_of
from tests.film.workspace.deciding import judge, judge_blindly, standing_levels, stands

REWORDED = "any shot in which a weapon is on the table"


def reworded(book):
    """Return the codebook with another meaning of the level "violent"; its name and levels are the same."""
    levels = [
        structs.replace(level, means=REWORDED) if level.name == "violent" else level for level in book.levels
    ]
    changed = replace(book, levels=tuple(levels))
    assert changed.name == book.name
    assert changed.digest() == book.digest()
    return changed


class Judged(NamedTuple):
    """A film with 11 judgements under one text of its codebook, whose text is then changed."""

    folder: Path
    film: Timeline
    book: Codebook
    reworded: Codebook

    def opened(self, codebook, **options):
        """Read the decisions as the desk does with a codebook."""
        return Decisions(self.folder, self.film, codebook, **options)


@pytest.fixture
def judged(scored_tt1):
    """AB judged ten windows blindly and one span in sight of the score; then the codebook is reworded."""
    folder, film, book = scored_tt1
    decisions = Decisions(folder, film, book)
    judge_blindly(decisions, *["violent"] * 10, in_all=10)
    judge(decisions, 10, 20, "violent")
    return Judged(folder, film, book, reworded(book))


def shown_under_other_definitions(decisions):
    """Return the decisions that the desk marks as made under other definitions than its own."""
    shown = shown_decisions(OpenFilm(0, decisions.film, decisions), "AB")
    return [decision for decision in shown if decision["otherwise"]]


@pytest.mark.long
def test_each_sitting_begins_with_the_text_and_the_digest_of_its_codebook(judged):
    judge(judged.opened(judged.reworded), 30, 38)
    stored_books = []
    for path in judged.folder.glob("ledger/*.jsonl"):
        first_line, *_ = path.read_text("utf-8").splitlines()
        header = json.loads(first_line)["entry"]["header"]
        stored_books.append(StoredCodebook(**header["codebook"]))
    by_digest = {stored_book.definition: codebook_in(stored_book) for stored_book in stored_books}
    assert by_digest == {
        judged.book.definition(): judged.book,
        judged.reworded.definition(): judged.reworded,
    }


@pytest.mark.long
def test_what_was_judged_under_another_text_stands_and_is_not_counted(judged):
    decisions = judged.opened(judged.reworded)
    assert len(standing_levels(decisions)) == 11
    assert len(decisions.judgements()) == 0
    next_one = next_window(OpenFilm(0, judged.film, decisions), "AB", 10)["window"]
    assert next_one["place"] == 1  # the windows of the draw come again


def test_a_notice_says_how_much_was_judged_under_which_other_text(judged):
    notices = judged.opened(judged.reworded).notices
    digest = judged.book.definition()[:12]
    assert any("11 decisions" in notice and digest in notice for notice in notices)


def test_a_notice_names_a_definition_by_its_codebook_and_version_if_these_tell_it_apart(judged):
    of_next_version = replace(judged.reworded, version="2")
    notices = judged.opened(of_next_version).notices
    (notice,) = [notice for notice in notices if "11 decisions" in notice]
    name = f"{judged.book.name}, version {judged.book.version}"
    assert f"under other definitions ({name}), and not counted" in notice
    assert judged.book.definition()[:12] not in notice


def test_definitions_of_one_codebook_and_version_are_named_with_their_digests(judged):
    name = f"{judged.book.name}, version {judged.book.version}"
    digest = judged.book.definition()
    assert meanings_in([judged.folder]).names()[digest] == name
    both_texts = meanings_in([judged.folder], [judged.reworded])
    assert both_texts.names()[digest] == f"{name} ({digest[:12]})"


def test_an_unknown_definition_is_named_by_its_digest(judged):
    assert meanings_in([judged.folder]).name("a" * 64) == "a" * 12


def test_the_desk_marks_what_was_judged_under_another_text_and_offers_to_judge_it_again(judged):
    decisions = judged.opened(judged.reworded)
    assert len(shown_under_other_definitions(decisions)) == 11
    opened = OpenFilm(0, judged.film, decisions)
    page = desk_page([opened], opened, "read", "en")
    assert REWORDED in page
    assert 'id="d-again"' in page


def test_the_desk_of_an_unchanged_codebook_offers_to_judge_nothing_again(judged):
    opened = OpenFilm(0, judged.film, judged.opened(judged.book))
    assert 'id="d-again"' not in desk_page([opened], opened, "read", "en")


@pytest.mark.long
def test_windows_that_are_judged_again_count_and_replace_what_was_judged_of_them(judged):
    decisions = judged.opened(judged.reworded)
    judge_blindly(decisions, *["calm"] * 10, in_all=10)
    assert len(standing_levels(decisions)) == 11  # and the one in sight
    assert {clip.level for clip in decisions.judgements()} == {"calm"}
    assert "share" in next_window(OpenFilm(0, judged.film, decisions), "AB", 10)


@pytest.mark.long
def test_a_decision_in_sight_that_is_made_again_is_no_longer_under_another_text(judged):
    decisions = judged.opened(judged.reworded)
    judge_blindly(decisions, *["calm"] * 10, in_all=10)
    (in_sight,) = shown_under_other_definitions(decisions)
    decisions.keep("judgement", 10, 20, "AB", level="violent", changed_id=in_sight["id"])
    assert shown_under_other_definitions(decisions) == []
    assert len(standing_levels(decisions)) == 11


def test_judgements_count_under_a_text_that_is_declared_to_mean_the_same(judged):
    decisions = judged.opened(judged.reworded, same_meaning=True)
    assert len(decisions.judgements()) == 11
    assert not any("other definitions" in notice for notice in decisions.notices)


@pytest.mark.parametrize("text", ["book", "reworded"])
def test_a_declaration_counts_for_whoever_opens_the_film_later_under_either_text(judged, text):
    judged.opened(judged.reworded, same_meaning=True)
    assert len(judged.opened(getattr(judged, text)).judgements()) == 11


def test_tables_and_ledgers_have_one_definition_for_texts_that_are_declared_the_same(judged):
    judged.opened(judged.reworded, same_meaning=True)
    judge(judged.opened(judged.reworded), 40, 48)
    tables = [judged.folder / JUDGEMENTS]
    table = import_spans(tables, judged.folder, "judgements", codebook=judged.book).manifest
    assert len(judgements_of(table).definitions) == 1
    meanings = meanings_in([judged.folder])
    assert meanings.of(judged.book.definition()) == meanings.of(judged.reworded.definition())


def test_tables_say_under_which_definition_each_row_was_judged(judged):
    judge(judged.opened(judged.reworded), 30, 38)
    by_start = {row["start_s"]: row["definition"] for row in rows_of(judged.folder / JUDGEMENTS)}
    assert by_start["10"] == judged.book.definition()
    assert by_start["30"] == judged.reworded.definition()


def test_a_table_without_its_ledger_is_read_with_the_definition_of_each_row(judged, tmp_path):
    decisions = judged.opened(judged.reworded)
    judge(decisions, 30, 38)
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(judged.folder / JUDGEMENTS, alone)
    read_back = Decisions(alone, judged.film, judged.reworded)
    assert stands(read_back) == stands(decisions)
    assert len(read_back.judgements()) == 1  # the one under the text of now


def test_sittings_of_an_earlier_version_without_a_codebook_count_and_one_notice_says_so(judged):
    (path,) = judged.folder.glob("ledger/*.jsonl")
    _, *decided = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(decided))
    (judged.folder / JUDGEMENTS).unlink()
    decisions = judged.opened(judged.book)
    assert len(decisions.judgements()) == 11
    judge(decisions, 30, 38)
    assert sum("earlier version" in notice for notice in decisions.notices) == 1


def test_films_that_were_judged_under_two_definitions_are_not_compared(judged):
    judge(judged.opened(judged.reworded), 30, 38)
    tables = read_judged({judged.folder: judged.film}, judged.book, (JUDGEMENTS,))
    with pytest.raises(ManifestError, match="11 judgements under"):
        compare_films([judged.film], tables.manifest)


# --- declarations and claims
# ---------------------------------------------------------------------------
def declaration(definition, *same):
    """Make the header of a sitting under one definition, which declares that others mean the same."""
    return Header(StoredCodebook(definition, ""), same)


def test_definitions_mean_the_same_if_a_chain_of_declarations_joins_them():
    """All that are joined have the meaning of the first by name; a digest is one letter here."""
    meanings = Meanings(
        [
            declaration("c", "b"),
            declaration("b", "a"),
            declaration("a", "c", "a"),
            declaration("d", "e", "f"),
            Header(),
        ]
    )
    assert [meanings.of(definition) for definition in ("a", "b", "c")] == ["a", "a", "a"]
    assert [meanings.of(definition) for definition in ("d", "e", "f")] == ["d", "d", "d"]
    assert meanings.of("g") == "g"  # nothing is declared of it


def test_a_decision_has_no_definition_if_the_digest_in_its_sitting_is_not_that_of_the_text_there(decisions):
    """A sitting begins with the codebook that its decisions were made under, and the codebook's digest."""
    book = decisions.codebook
    own_id = judge(decisions, 10, 20)
    forged = Header(StoredCodebook(book.definition(), reworded(book).to_toml()))
    row = {**decisions.lines[own_id].row, "start_s": "30", "end_s": "38"}
    forged_line = Ledger(decisions.folder, print, lambda: forged).add("judgement", row)
    decisions.refresh()
    assert decisions.definition_of(decisions.lines[own_id]) == book.definition()
    assert decisions.definition_of(decisions.lines[forged_line.id]) == ""


def test_a_stored_codebook_is_read_only_if_its_text_is_a_codebook_of_its_digest(decisions):
    book = decisions.codebook
    assert codebook_in(stored(book)) == book
    assert codebook_in(StoredCodebook(book.definition(), reworded(book).to_toml())) is None
    assert codebook_in(StoredCodebook(book.definition(), "name = ")) is None


@pytest.mark.long
def test_both_texts_of_what_changed_are_listed(decisions):
    (text,) = changed_texts(decisions.codebook, reworded(decisions.codebook))
    assert text.name == "violent"
    assert REWORDED in text.now
    assert REWORDED not in text.before


@pytest.fixture
def reworded_path(judged, tmp_path):
    """The file of the reworded codebook."""
    path = tmp_path / "reworded.codebook.toml"
    path.write_text(judged.reworded.to_toml(), "utf-8")
    return path


def test_the_command_says_how_much_was_judged_under_another_text(serve, judged, reworded_path):
    served = serve(judged.folder, reworded_path)
    assert "11 decisions" in served.said
    assert served.next(who="AB", n=10)["done"] == 0


@pytest.mark.long
def test_the_command_declares_that_a_text_means_the_same_for_itself_and_for_later_ones(
    serve, judged, reworded_path
):
    declared = serve(judged.folder, reworded_path, "--same-meaning")
    assert "other definitions" not in declared.said
    assert declared.next(who="AB", n=10)["done"] == 10
    later = serve(judged.folder, reworded_path)
    assert later.next(who="AB", n=10)["done"] == 10
    meanings = meanings_in([judged.folder])
    assert meanings.of(judged.book.definition()) == meanings.of(judged.reworded.definition())
