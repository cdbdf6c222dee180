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
from tests.film.workspace.deciding import judge, judge_blindly, standing_levels, what_stands

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
    """A film with 11 judgements under one wording of its codebook, and the codebook reworded.

    The 11 are ten windows that AB judged blindly, and one span in sight of the model's score.
    """

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
def test_each_sitting_stores_its_codebook_and_its_digest(judged):
    """A sitting (one file of the ledger) begins with the wording that its decisions were made under.

    The first sitting was under the original codebook, the second one is under the reworded codebook.
    """
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
def test_judgements_under_an_earlier_wording_stand_and_count_once_judged_again(judged):
    """The judge is asked for the windows again, from the first of the draw on, as none of them counts.

    AB judges the ten windows again as calm: these count, and replace the ten that were violent. Ten windows
    are enough for a share. The judgement in sight of the score is not replaced: judged again, even with the
    same level, it is under the new wording.
    """
    decisions = judged.opened(judged.reworded)
    film = OpenFilm(0, judged.film, decisions)
    assert len(standing_levels(decisions)) == 11  # ten windows, and one span in sight
    assert len(decisions.judgements()) == 0
    assert next_window(film, "AB", 10)["window"]["place"] == 1

    judge_blindly(decisions, *["calm"] * 10, in_all=10)
    assert {clip.level for clip in decisions.judgements()} == {"calm"}
    assert "share" in next_window(film, "AB", 10)

    (in_sight,) = shown_under_other_definitions(decisions)
    decisions.keep("judgement", 10, 20, "AB", level="violent", changed_id=in_sight["id"])
    assert shown_under_other_definitions(decisions) == []
    assert len(standing_levels(decisions)) == 11


def test_a_notice_counts_judgements_under_an_earlier_wording(judged):
    """A reader who finds nothing counted is told why: how many decisions there are under which wording.

    The two wordings have one name and version, so the digest of the definitions tells them apart. If the
    reworded codebook has a new version, name and version are enough, and no digest is printed.
    """
    name = f"{judged.book.name}, version {judged.book.version}"
    digest = judged.book.definition()[:12]
    (notice,) = [one for one in judged.opened(judged.reworded).notices if "11 decisions" in one]
    assert digest in notice

    of_next_version = replace(judged.reworded, version="2")
    (notice,) = [one for one in judged.opened(of_next_version).notices if "11 decisions" in one]
    assert f"under other definitions ({name}), and not counted" in notice
    assert digest not in notice


def test_wordings_of_one_version_are_named_with_their_digests(judged):
    """One wording is named by its codebook and version; a second one of the same version adds the digest.

    A wording that no ledger stores has no name, so the first 12 digits of its digest stand for it.
    """
    name = f"{judged.book.name}, version {judged.book.version}"
    digest = judged.book.definition()
    assert meanings_in([judged.folder]).names()[digest] == name
    both_texts = meanings_in([judged.folder], [judged.reworded])
    assert both_texts.names()[digest] == f"{name} ({digest[:12]})"
    assert both_texts.name("a" * 64) == "a" * 12


def test_the_desk_offers_to_judge_again_under_the_new_wording(judged):
    """All 11 judgements were made under the earlier wording: the desk marks them, and shows the new one.

    The desk of the unchanged codebook offers nothing.
    """
    decisions = judged.opened(judged.reworded)
    assert len(shown_under_other_definitions(decisions)) == 11
    opened = OpenFilm(0, judged.film, decisions)
    page = desk_page([opened], opened, "read", "en")
    assert REWORDED in page
    assert 'id="d-again"' in page

    unchanged = OpenFilm(0, judged.film, judged.opened(judged.book))
    assert 'id="d-again"' not in desk_page([unchanged], unchanged, "read", "en")


def test_judgements_count_under_a_wording_declared_to_mean_the_same(judged):
    """With `--same-meaning` the user declares that only words changed: all 11 judgements count again.

    The ledger stores the declaration, so later readers need not repeat it, whichever wording they use.
    Judgements under both wordings are tabled under one definition, so that they count together.
    """
    decisions = judged.opened(judged.reworded, same_meaning=True)
    assert len(decisions.judgements()) == 11  # all that AB judged
    assert not any("other definitions" in notice for notice in decisions.notices)
    for book in (judged.book, judged.reworded):
        assert len(judged.opened(book).judgements()) == 11

    judge(judged.opened(judged.reworded), 40, 48)
    tables = [judged.folder / JUDGEMENTS]
    table = import_spans(tables, judged.folder, "judgements", codebook=judged.book).manifest
    assert len(judgements_of(table).definitions) == 1
    meanings = meanings_in([judged.folder])
    assert meanings.representative(judged.book.definition()) == meanings.representative(
        judged.reworded.definition()
    )


def test_a_table_without_its_ledger_keeps_the_wording_of_each_row(judged, tmp_path):
    """The judgement at 10 s was made under the first wording, and that at 30 s after the change.

    The table alone tells which rows count: of 12 judgements only that at 30 s is under the new wording.
    """
    decisions = judged.opened(judged.reworded)
    judge(decisions, 30, 38)
    by_start = {row["start_s"]: row["definition"] for row in rows_of(judged.folder / JUDGEMENTS)}
    assert by_start["10"] == judged.book.definition()
    assert by_start["30"] == judged.reworded.definition()

    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(judged.folder / JUDGEMENTS, alone)
    read_back = Decisions(alone, judged.film, judged.reworded)
    assert what_stands(read_back) == what_stands(decisions)
    assert len(read_back.judgements()) == 1  # the one under the text of now


def test_judgements_without_a_stored_wording_count_with_one_notice(judged):
    """Earlier versions of the program stored no codebook in a sitting. Their 11 judgements count.

    A notice says once that their wording is unknown.
    """
    (path,) = judged.folder.glob("ledger/*.jsonl")
    _, *decided = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(decided))
    (judged.folder / JUDGEMENTS).unlink()
    decisions = judged.opened(judged.book)
    assert len(decisions.judgements()) == 11

    judge(decisions, 30, 38)
    assert sum("earlier version" in notice for notice in decisions.notices) == 1


def test_films_judged_under_two_wordings_are_not_compared(judged):
    """Levels under two wordings are no one measure, so `compare` refuses them and counts those of each."""
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
    """If c means b, and b means a, all three have the meaning of the first by name, a.

    Here a digest is one letter. A declaration that c means a, and so closes the circle, changes nothing.
    """
    meanings = Meanings(
        [
            declaration("c", "b"),
            declaration("b", "a"),
            declaration("a", "c", "a"),
            declaration("d", "e", "f"),
            Header(),
        ]
    )

    assert [meanings.representative(definition) for definition in ("a", "b", "c")] == ["a", "a", "a"]
    assert [meanings.representative(definition) for definition in ("d", "e", "f")] == ["d", "d", "d"]
    assert meanings.representative("g") == "g"  # nothing is declared of it


def test_a_digest_that_is_not_of_the_stored_wording_is_ignored(decisions):
    """A sitting begins with the codebook that its decisions were made under, and the codebook's digest.

    A forged sitting stores the digest of one wording with the text of another: its decision has no
    definition.
    """
    book = decisions.codebook
    own_id = judge(decisions, 10, 20)
    forged = Header(StoredCodebook(book.definition(), reworded(book).to_toml()))
    row = {**decisions.lines[own_id].row, "start_s": "30", "end_s": "38"}
    forged_line = Ledger(decisions.folder, print, lambda: forged).add("judgement", row)
    decisions.refresh()

    assert decisions.definition_of(decisions.lines[own_id]) == book.definition()
    assert decisions.definition_of(decisions.lines[forged_line.id]) == ""


def test_a_stored_codebook_is_read_only_if_its_digest_is_right(decisions):
    """A stored text that has another digest, or that is no codebook at all, is not read."""
    book = decisions.codebook
    assert codebook_in(stored(book)) == book
    assert codebook_in(StoredCodebook(book.definition(), reworded(book).to_toml())) is None
    assert codebook_in(StoredCodebook(book.definition(), "name = ")) is None


@pytest.mark.long
def test_the_former_and_the_new_wording_of_a_changed_level_are_listed(decisions):
    """Only the meaning of "violent" was changed, so that one pair of texts is listed."""
    (text,) = changed_texts(decisions.codebook, reworded(decisions.codebook))
    assert text.name == "violent"
    assert REWORDED in text.now
    assert REWORDED not in text.before


def test_same_meaning_is_declared_once_for_all_later_commands(serve, judged, tmp_path):
    """Opened with the reworded codebook, the command reports 11 decisions under the other wording.

    With `--same-meaning` AB's ten windows count as done, in this command and in a later one without it.
    """
    path = tmp_path / "reworded.codebook.toml"
    path.write_text(judged.reworded.to_toml(), "utf-8")
    undeclared = serve(judged.folder, path)
    assert "11 decisions" in undeclared.said
    assert undeclared.next(who="AB", n=10)["done"] == 0

    declared = serve(judged.folder, path, "--same-meaning")
    assert "other definitions" not in declared.said
    assert declared.next(who="AB", n=10)["done"] == 10
    assert serve(judged.folder, path).next(who="AB", n=10)["done"] == 10
