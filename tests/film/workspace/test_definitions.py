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
from obygaze_film.workspace.pages import desk_page, next_window, shown_decisions
from tests.files import rows_of
from tests.film.workspace.deciding import film_at_desk, judge, judge_blindly, levels_in_force, lines_in_force

NEW_MEANING_OF_VIOLENT = "any shot in which a weapon is on the table"


def with_other_meaning_of_violent(book):
    """Return the codebook with another meaning of the level "violent"; its name and levels are the same."""
    levels = [
        structs.replace(level, means=NEW_MEANING_OF_VIOLENT) if level.name == "violent" else level
        for level in book.levels
    ]
    changed = replace(book, levels=tuple(levels))
    assert changed.name == book.name
    assert changed.digest() == book.digest()
    return changed


class JudgedUnderOriginal(NamedTuple):
    """A film with 11 judgements under the original wording of its codebook, and the codebook reworded.

    The 11 are ten windows that AB judged blindly, and one span in sight of the model's score.
    """

    folder: Path
    film: Timeline
    original: Codebook
    with_other_definition: Codebook

    def open_with(self, codebook, **options):
        """Read the decisions as the desk does with a codebook."""
        return Decisions(self.folder, self.film, codebook, **options)


@pytest.fixture
def judged_film(scored_tt1):
    """AB judged ten windows blindly and one span in sight of the score; then the codebook is reworded."""
    decisions = Decisions(*scored_tt1)
    judge_blindly(decisions, *["violent"] * 10, in_all=10)
    judge(decisions, start=10, end=20, level="violent")
    return JudgedUnderOriginal(
        scored_tt1.folder,
        scored_tt1.timeline,
        scored_tt1.codebook,
        with_other_meaning_of_violent(scored_tt1.codebook),
    )


def shown_under_other_definitions(decisions):
    """Return the decisions that the desk marks as made under other definitions than its own."""
    shown = shown_decisions(film_at_desk(decisions), "AB")
    return [decision for decision in shown if decision["otherwise"]]


@pytest.mark.long
def test_each_sitting_stores_its_codebook_and_its_digest(judged_film):
    """A sitting (one file of the ledger) begins with the wording that its decisions were made under.

    In the first sitting a film was judged under the original codebook. In the second one a span is judged
    under the codebook reworded: it has another meaning of the level "violent".
    """
    second_sitting = judged_film.open_with(judged_film.with_other_definition)
    judge(second_sitting, start=30, end=38, level="calm")

    codebook_by_digest = {}
    for path in judged_film.folder.glob("ledger/*.jsonl"):
        first_line, *_ = path.read_text("utf-8").splitlines()
        header = json.loads(first_line)["entry"]["header"]
        stored_codebook = StoredCodebook(**header["codebook"])
        codebook_by_digest[stored_codebook.definition] = codebook_in(stored_codebook)
    assert codebook_by_digest == {
        judged_film.original.definition(): judged_film.original,
        judged_film.with_other_definition.definition(): judged_film.with_other_definition,
    }


@pytest.mark.long
def test_judgements_under_an_earlier_wording_stand_and_do_not_count(judged_film):
    """AB judged ten windows blindly and one span in sight of the score; then the codebook was reworded.

    All eleven judgements stay, and none counts. AB is asked for the windows again, from the first of the draw
    on.
    """
    decisions = judged_film.open_with(judged_film.with_other_definition)
    film = film_at_desk(decisions)

    assert len(levels_in_force(decisions)) == 11
    assert len(decisions.judgements()) == 0  # which count
    assert next_window(film, "AB", n_planned=10)["window"]["place"] == 1


@pytest.mark.long
def test_windows_judged_again_under_the_new_wording_count(judged_film):
    """AB judged ten windows as violent; then the codebook was reworded, so that these do not count.

    AB judges the ten again, as calm. Ten windows are enough for a share.
    """
    decisions = judged_film.open_with(judged_film.with_other_definition)
    film = film_at_desk(decisions)

    judge_blindly(decisions, *["calm"] * 10, annotator="AB", in_all=10)

    assert {clip.level for clip in decisions.judgements()} == {"calm"}
    assert "share" in next_window(film, "AB", n_planned=10)


@pytest.mark.long
def test_a_judgement_in_sight_is_under_the_new_wording_once_it_is_made_again(judged_film):
    """Under the original wording AB judged ten windows blindly, and 10 to 20 s in sight of the score.

    Then the codebook was reworded. AB judges the ten windows again under the new wording, so that one
    judgement under the original is left, the one in sight. AB makes it again, with the same level: then none
    is left, and again ten and one are in force.
    """
    decisions = judged_film.open_with(judged_film.with_other_definition)
    judge_blindly(decisions, *["calm"] * 10, annotator="AB", in_all=10)
    (in_sight,) = shown_under_other_definitions(decisions)

    decisions.keep("judgement", 10, 20, "AB", level="violent", changed_id=in_sight["id"])

    assert shown_under_other_definitions(decisions) == []
    assert len(levels_in_force(decisions)) == 10 + 1


def test_a_notice_counts_judgements_under_an_earlier_wording(judged_film):
    """Eleven judgements were made under the original codebook, and the film is opened with it reworded.

    Nothing counts, and a notice says why: how many decisions there are under which wording. The two wordings
    have one name and version, so the digest of the definitions tells them apart. If the reworded codebook has
    a new version, name and version are enough, and no digest is printed.
    """
    original = judged_film.original
    digits_of_original = original.definition()[:12]

    def notice_on_opening_with(codebook):
        notices = judged_film.open_with(codebook).notices
        (notice,) = [notice for notice in notices if "11 decisions" in notice]
        return notice

    of_same_version = notice_on_opening_with(judged_film.with_other_definition)
    assert digits_of_original in of_same_version

    of_next_version = notice_on_opening_with(replace(judged_film.with_other_definition, version="2"))
    name = f"{original.name}, version {original.version}"
    assert f"under other definitions ({name}), and not counted" in of_next_version
    assert digits_of_original not in of_next_version


def test_wordings_of_one_version_are_named_with_their_digests(judged_film):
    """One wording is named by its codebook and version; a second one of the same version adds the digest.

    A wording that no ledger stores has no name, so the first 12 digits of its digest stand for it.
    """
    original = judged_film.original
    name = f"{original.name}, version {original.version}"
    digest = original.definition()

    of_one_wording = meanings_in([judged_film.folder])
    of_two_wordings = meanings_in(
        [judged_film.folder], [judged_film.with_other_definition]
    )  # of the same version

    assert of_one_wording.names()[digest] == name
    assert of_two_wordings.names()[digest] == f"{name} ({digest[:12]})"
    unknown_digest = "a" * 64
    assert of_two_wordings.name(unknown_digest) == "a" * 12


def test_the_desk_offers_to_judge_again_under_the_new_wording(judged_film):
    """All 11 judgements were made under the earlier wording: the desk marks them, and shows the new one.

    The desk of the unchanged codebook offers nothing.
    """
    with_reworded = film_at_desk(judged_film.open_with(judged_film.with_other_definition))
    with_original = film_at_desk(judged_film.open_with(judged_film.original))

    page_with_reworded = desk_page([with_reworded], with_reworded, "read", "en")
    page_with_original = desk_page([with_original], with_original, "read", "en")

    assert len(shown_under_other_definitions(with_reworded.decisions)) == 11
    assert NEW_MEANING_OF_VIOLENT in page_with_reworded
    button_to_judge_again = 'id="d-again"'
    assert button_to_judge_again in page_with_reworded
    assert button_to_judge_again not in page_with_original


def test_judgements_count_under_a_wording_declared_to_mean_the_same(judged_film):
    """AB judged 11 spans under the original wording; then the codebook was reworded.

    With `--same-meaning` the user declares that only words changed: all 11 count under the new wording. The
    ledger stores the declaration, so that later readers need not repeat it, whichever wording they use.
    """
    decisions = judged_film.open_with(judged_film.with_other_definition, same_meaning=True)

    assert len(decisions.judgements()) == 11
    assert not any("other definitions" in notice for notice in decisions.notices)
    assert len(judged_film.open_with(judged_film.original).judgements()) == 11
    assert len(judged_film.open_with(judged_film.with_other_definition).judgements()) == 11


def test_judgements_under_two_wordings_declared_to_mean_the_same_are_tabled_under_one_definition(judged_film):
    """AB judged 11 spans under the original wording, and one under the new one, declared to mean the same.

    Judgements of two definitions are not counted together: so the table gives all 12 one definition, and
    `meanings_in` knows of the film's folder that both wordings have the same meaning.
    """
    judged_film.open_with(judged_film.with_other_definition, same_meaning=True)
    judge(judged_film.open_with(judged_film.with_other_definition), start=40, end=48, level="calm")

    tables = [judged_film.folder / JUDGEMENTS]
    imported = import_spans(tables, judged_film.folder, "judgements", codebook=judged_film.original).manifest
    assert len(imported) == 11 + 1
    assert len(judgements_of(imported).definitions) == 1

    meanings = meanings_in([judged_film.folder])
    meaning_of_original = meanings.representative(judged_film.original.definition())
    meaning_of_reworded = meanings.representative(judged_film.with_other_definition.definition())
    assert meaning_of_original == meaning_of_reworded


def test_a_table_without_its_ledger_keeps_the_wording_of_each_row(judged_film, tmp_path):
    """AB made 11 judgements under the first wording of a codebook, one of them at 10 s; then it was reworded.

    AB makes a twelfth at 30 s. The table, copied to a folder without the ledger, still tells that of all
    judgements only this one is under the new wording, and counts.
    """
    decisions = judged_film.open_with(judged_film.with_other_definition)
    judge(decisions, start=30, end=38, level="calm")

    table = judged_film.folder / JUDGEMENTS
    definition_by_start = {row["start_s"]: row["definition"] for row in rows_of(table)}
    assert definition_by_start["10"] == judged_film.original.definition()
    assert definition_by_start["30"] == judged_film.with_other_definition.definition()

    folder_without_ledger = tmp_path / "alone"
    folder_without_ledger.mkdir()
    shutil.copy(table, folder_without_ledger)
    read_back = Decisions(folder_without_ledger, judged_film.film, judged_film.with_other_definition)
    assert lines_in_force(read_back) == lines_in_force(decisions)
    assert len(read_back.judgements()) == 1


def test_judgements_without_a_stored_wording_count_with_one_notice(judged_film):
    """Earlier versions of the program stored no codebook in a sitting, a file of the ledger.

    So the first line of a sitting with 11 judgements is removed. All of them count, and a notice says once
    that their wording is unknown, however many decisions are made later.
    """
    (sitting,) = judged_film.folder.glob("ledger/*.jsonl")
    _line_of_codebook, *lines_of_judgements = sitting.read_bytes().splitlines(keepends=True)
    sitting.write_bytes(b"".join(lines_of_judgements))
    (judged_film.folder / JUDGEMENTS).unlink()  # the table, which names the wording of each row

    decisions = judged_film.open_with(judged_film.original)
    assert len(decisions.judgements()) == 11

    judge(decisions, start=30, end=38, level="calm")
    notices_on_it = [notice for notice in decisions.notices if "earlier version" in notice]
    assert len(notices_on_it) == 1


def test_films_judged_under_two_wordings_are_not_compared(judged_film):
    """AB judged ten windows of a film blindly under one wording of its codebook, and CD one under another.

    Levels under two wordings are no one measure, so `compare` refuses them and counts those of each.
    """
    decisions_under_other_wording = judged_film.open_with(judged_film.with_other_definition)
    judge_blindly(decisions_under_other_wording, "calm", annotator="CD", in_all=10)
    tables = read_judged({judged_film.folder: judged_film.film}, judged_film.original, (JUDGEMENTS,))

    with pytest.raises(ManifestError, match="10 judgements under"):
        compare_films([judged_film.film], tables.manifest)


# --- declarations and claims
# ---------------------------------------------------------------------------
def declaration(definition, *same):
    """Make the header of a sitting under one definition, which declares that others mean the same."""
    return Header(StoredCodebook(definition, ""), same)


def test_definitions_mean_the_same_if_a_chain_of_declarations_joins_them():
    """If c means b, and b means a, all three have the meaning of the first by name, a.

    A definition is known by its digest, here one letter. The header of a sitting, under one definition, may
    declare that others mean the same. A declaration that a means c, and so closes the circle, changes
    nothing. Nothing is declared of g.
    """
    c_means_b = declaration("c", "b")
    b_means_a = declaration("b", "a")
    a_means_c_and_a = declaration("a", "c", "a")
    d_means_e_and_f = declaration("d", "e", "f")
    no_declaration = Header()

    meanings = Meanings([c_means_b, b_means_a, a_means_c_and_a, d_means_e_and_f, no_declaration])

    assert [meanings.representative(definition) for definition in ("a", "b", "c")] == ["a", "a", "a"]
    assert [meanings.representative(definition) for definition in ("d", "e", "f")] == ["d", "d", "d"]
    assert meanings.representative("g") == "g"


def test_a_decision_has_no_definition_if_the_digest_in_its_sitting_is_not_of_the_codebook_there(decisions):
    """A file of a ledger begins with the codebook that its decisions were made under, and with its digest.

    In a forged file these contradict each other: the digest is that of the desk's codebook, and the text one
    in which "violent" has another meaning. Neither is believed. The desk's own file is as before.
    """
    book = decisions.codebook
    own_id = judge(decisions, start=10, end=20)
    text_of_another = with_other_meaning_of_violent(book).to_toml()

    def forged_header():
        return Header(StoredCodebook(definition=book.definition(), text=text_of_another))

    forged_sitting = Ledger(decisions.folder, print, forged_header)
    row = {**decisions.lines[own_id].row, "start_s": "30", "end_s": "38"}
    forged_line = forged_sitting.add("judgement", row)

    decisions.refresh()

    assert decisions.definition_of(decisions.lines[own_id]) == book.definition()
    assert decisions.definition_of(decisions.lines[forged_line.id]) == ""


def test_a_stored_codebook_is_read_only_if_its_digest_is_right(decisions):
    """A ledger stores the text of a codebook with the digest of its definitions.

    A text that has another digest, as that of the codebook reworded, or that is no codebook at all is not
    read.
    """
    book = decisions.codebook
    with_text_of_another = StoredCodebook(book.definition(), with_other_meaning_of_violent(book).to_toml())
    with_broken_text = StoredCodebook(book.definition(), "name = ")

    assert codebook_in(stored(book)) == book
    assert codebook_in(with_text_of_another) is None
    assert codebook_in(with_broken_text) is None


@pytest.mark.long
def test_the_former_and_the_new_wording_of_a_changed_level_are_listed(decisions):
    """Of two wordings of a codebook only the meaning of "violent" differs: one pair of texts is listed."""
    original = decisions.codebook

    (text,) = changed_texts(original, with_other_meaning_of_violent(original))

    assert text.name == "violent"
    assert NEW_MEANING_OF_VIOLENT in text.now
    assert NEW_MEANING_OF_VIOLENT not in text.before


def test_same_meaning_is_declared_once_for_all_later_commands(serve, judged_film, tmp_path):
    """AB judged ten windows and one span; then the codebook was reworded.

    Opened with it, the command reports 11 decisions under the other wording, and none of AB's ten windows
    counts as done. With `--same-meaning` all ten do, in this command and in a later one without it.
    """
    path = tmp_path / "reworded.codebook.toml"
    path.write_text(judged_film.with_other_definition.to_toml(), "utf-8")
    undeclared = serve(judged_film.folder, path)
    assert "11 decisions" in undeclared.said
    assert undeclared.next(who="AB", n=10)["done"] == 0

    declared = serve(judged_film.folder, path, "--same-meaning")
    assert "other definitions" not in declared.said
    assert declared.next(who="AB", n=10)["done"] == 10
    assert serve(judged_film.folder, path).next(who="AB", n=10)["done"] == 10


@pytest.mark.parametrize("wording", ["original", "with_other_definition"])
def test_a_figure_of_the_desk_draws_only_judgements_under_the_wording_that_the_desk_has(
    serve, judged_film, tmp_path, wording
):
    """AB judged a film under the original wording of a codebook, in which "violent" is defined anew later.

    A desk with the original codebook draws AB's judgements in a figure, with AB's name, as an export has
    them. A desk with the changed one draws none: under it AB judged nothing.
    """
    codebook_of_desk = tmp_path / f"{wording}.codebook.toml"
    codebook_of_desk.write_text(getattr(judged_film, wording).to_toml(), "utf-8")
    desk = serve(judged_film.folder, codebook_of_desk)

    _answer, figure = desk.ask("GET", "/film/0/figure.svg?a=0&b=120&who=AB")

    draws_judgements_of_ab = ", AB" in figure.decode()
    assert draws_judgements_of_ab == (wording == "original")
