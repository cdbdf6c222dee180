"""One's own decisions go out into a file, are changed there, and come back: what was changed and no more."""

import re
import shutil
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from obygaze_features.manifest import Level, Subtitle, load_codebook, write_textgrid
from obygaze_film import read_films
from obygaze_film.errors import FilmError
from obygaze_film.exchange import FORMATS, export
from obygaze_film.workspace import ledger
from obygaze_film.workspace.decisions import JUDGEMENTS, NOTES, PASSAGES, Decisions, read_decided
from obygaze_film.workspace.importing import notice_on_unused_declaration, read_annotations
from obygaze_film.workspace.open_film import OpenFilm, shown_judgements_of
from tests.film.workspace.deciding import Standing, judge, judge_blindly, lines_in_force, reopen
from tests.planted_models import codebook

READ_BACK = ("eaf", "textgrid", "csv", "rttm", "vtt", "srt")
"""Formats in which the tests below change a level, and read it back."""
ALL_KINDS = tuple(kind for kind in FORMATS if FORMATS[kind].read_as)
"""Formats from which people's decisions are read back."""


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory, scored_once):
    """The folder of the film tt1 as `decisions_of_two` has it; nobody may change it."""
    folder, film = scored_once
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("judged") / folder.name)
    decisions = Decisions(copy, film, codebook(copy.parent))
    judge_blindly(decisions, "calm", "violent", "unsure", "calm", annotator="AB")
    judge_blindly(decisions, "calm", "calm", "violent", annotator="C D")
    judge(decisions, start=40, end=48.0625, level="violent", annotator="AB", concepts=["Gun", "Dim light"])
    judge(decisions, start=44, end=52, level="calm", annotator="C D")
    decisions.keep("passage", 42.123, 60.5, "AB", level="violent", note="a note")
    decisions.keep("note", 3, 4, "AB", note="a note alone")
    decisions.ledger.close()
    return copy


@pytest.fixture
def decisions_of_two(tmp_path, judged_once, scored_once):
    """Two people's decisions of all kinds, some on spans that overlap: 6 of AB (and a note), 4 of C D."""
    _, film = scored_once
    folder = shutil.copytree(judged_once, tmp_path / judged_once.name)
    return Decisions(folder, film, codebook(tmp_path))


def export_file(decisions, kind, **options):
    """Export the film with what people decided of it, as a file of a kind; return its path.

    With `tiers=["people"]` the file has no scores of the model.
    """
    folder, film = decisions.folder, decisions.film
    path = folder.parent / f"film{FORMATS[kind].suffix}"
    content = export(film, kind, people=read_decided(folder, film).decided, **options)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def edit(path, edited):
    """Replace a file's text by what a function makes of it."""
    path.write_text(edited(path.read_text(encoding="utf-8")), encoding="utf-8")


class Imported(NamedTuple):
    """How many annotations of one person in a file are new to the ledger, changed, unchanged, or left out."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    left_out: int = 0


def import_file(decisions, path, is_blind=None, **options):
    """Take a file of annotations into the ledger; return what became of each annotator's annotations."""
    file = read_annotations(path, decisions.codebook, movie=decisions.film.movie, **options)
    imported = {}
    for account in decisions.import_annotations(file, is_blind=is_blind):
        imported[account.annotator] = Imported(
            new=account.n_new,
            changed=account.n_changed,
            unchanged=account.n_same,
            left_out=account.left_out.total(),
        )
    return imported


def n_sittings(decisions):
    """Count the files of the ledger: each process that decides writes one of its own."""
    return len([*decisions.folder.glob("ledger/*.jsonl")])


def with_hundredths(subrip_time):
    """Write a time of SubRip, such as 00:01:02,345, as Advanced SubStation has it: 0:01:02.34."""
    hours_and_minutes, seconds = subrip_time.rsplit(":", 1)
    return f"{hours_and_minutes[1:]}:{float(seconds.replace(',', '.')):05.2f}"


def as_substation(subrip):
    """Write SubRip subtitles as Advanced SubStation, as a subtitle editor does."""
    lines = ["[Script Info]", "ScriptType: v4.00+", "", "[Events]", "Format: Layer, Start, End, Style, Text"]
    for cue in subrip.strip().split("\n\n"):
        _, times, *texts = cue.split("\n")
        start, end = map(with_hundredths, times.split(" --> "))
        text = "\\N".join(texts)
        lines.append(f"Dialogue: 0,{start},{end},Default,{text}")
    return "\n".join(lines) + "\n"


def test_subtitles_that_an_editor_saved_with_hundredths_of_seconds_change_nothing(decisions_of_two):
    """AB's passage begins at 42.123 s, which the editor rounds to 42.12 s: it is the same passage.

    AB has made 6 decisions in all, and C D 4.
    """
    subrip_file = export_file(decisions_of_two, "srt", tiers=["people"])
    saved_by_editor = subrip_file.with_suffix(".ass")
    saved_by_editor.write_text(as_substation(subrip_file.read_text(encoding="utf-8")), encoding="utf-8")
    assert ":42.12," in saved_by_editor.read_text(encoding="utf-8")

    imported = import_file(decisions_of_two, saved_by_editor)

    assert imported == {"AB": Imported(unchanged=6), "C D": Imported(unchanged=4)}


class Label(NamedTuple):
    """What a judgement or a passage says of its span."""

    annotator: str
    start_s: float
    end_s: float
    level: str
    concepts: tuple[str, ...]
    seen_score: str


def labels_of(decisions):
    """Return the judgements and passages that stand, ordered by annotator and time."""
    labels = []
    for kind in ("judgement", "passage"):
        for clip in decisions.clips_by_kind[kind]:
            times = clip.start_s, clip.end_s
            labels.append(Label(clip.annotator, *times, clip.level, clip.concepts, clip.extras["seen_score"]))
    return sorted(labels)


@pytest.fixture
def nobody_decided(scored_once, tmp_path):
    """Another folder of the same scored film, in which nobody has decided anything."""
    folder, film = scored_once
    copy = shutil.copytree(folder, tmp_path / "elsewhere" / folder.name)
    return Decisions(copy, film, codebook(tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_an_export_gives_all_decisions_to_an_empty_ledger(decisions_of_two, nobody_decided, kind):
    """A colleague without the ledger gets a file with what AB and C D decided, but for AB's note alone.

    AB judged four windows blindly and a span in sight of the score, and marked a passage: six decisions. C D
    judged three windows blindly and a span in sight: four. All come back with their levels, concepts and
    whether they are blind. Times are exact to half a frame (of 25 a second) where a format counts frames, or
    to a millisecond.
    """
    path = export_file(decisions_of_two, kind, tiers=["people"])

    imported = import_file(nobody_decided, path)

    assert imported == {"AB": Imported(new=4 + 1 + 1), "C D": Imported(new=3 + 1)}
    counts_frames = kind in ("fcpxml7", "markers", "edl")
    half_a_frame_s = 0.021  # rounded up
    slack_s = half_a_frame_s if counts_frames else 0.001
    for label, expected in zip(labels_of(nobody_decided), labels_of(decisions_of_two), strict=True):
        assert label.start_s == pytest.approx(expected.start_s, abs=slack_s)
        assert label.end_s == pytest.approx(expected.end_s, abs=slack_s)
        assert label._replace(start_s=0, end_s=0) == expected._replace(start_s=0, end_s=0)  # all but times

    n_blind_of_judge = {judge: len(by_place) for judge, by_place in nobody_decided.blind_judgements().items()}
    assert n_blind_of_judge == {"AB": 4, "C D": 3}


@pytest.mark.long
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_an_export_changes_nothing_where_it_was_made(decisions_of_two, kind):
    """A file is exported and imported on the same machine, so that nothing is new and nothing is left out.

    It has six decisions of AB, four of C D, and the model's passages, which are not taken for decisions. No
    sitting (a file of the ledger) is written.
    """
    lines_before = lines_in_force(decisions_of_two)
    n_sittings_before = n_sittings(decisions_of_two)
    path = export_file(decisions_of_two, kind)

    imported = import_file(decisions_of_two, path)

    assert imported == {"AB": Imported(unchanged=6), "C D": Imported(unchanged=4)}
    assert lines_in_force(decisions_of_two) == lines_before
    assert lines_in_force(reopen(decisions_of_two)) == lines_before
    assert n_sittings(decisions_of_two) == n_sittings_before


def change_violent_at_40_s_to_calm(path, kind):
    """Change AB's judgement of 40 to 48.0625 s from "violent" to "calm" in an exported file of a kind."""
    text = path.read_text(encoding="utf-8")
    change_in_format = {
        "eaf": violent_at_40_s_to_calm_in_elan,
        "textgrid": violent_at_40_s_to_calm_in_praat,
        "csv": violent_at_40_s_to_calm_in_csv,
    }
    edited = change_in_format.get(kind, violent_with_gun_to_calm_in_subtitles)(text)
    assert edited != text
    path.write_text(edited, encoding="utf-8")


def violent_at_40_s_to_calm_in_elan(text):
    """Edit the level of AB's judgement. ELAN keeps times apart, as slots that an annotation refers to.

        <TIME_SLOT TIME_SLOT_ID="ts7" TIME_VALUE="40000"/>
        ...
        <ALIGNABLE_ANNOTATION ANNOTATION_ID="a3" TIME_SLOT_REF1="ts7" TIME_SLOT_REF2="ts8">
            <ANNOTATION_VALUE>violent</ANNOTATION_VALUE>

    Several slots may have the same time; the first one at 40 s is that of the judgement.
    """
    slot, *_ = re.findall(r'"(ts\d+)" TIME_VALUE="40000"', text)
    up_to_level = rf'({slot}" [^>]*>\s*<ANNOTATION_VALUE>)'
    return re.sub(up_to_level + "violent", r"\1calm", text)


def violent_at_40_s_to_calm_in_praat(text):
    """Edit the level of AB's judgement. A TextGrid has the times of an interval right above its text."""
    interval = 'xmin = 40\n            xmax = 48.0625\n            text = "{level}"'
    return text.replace(interval.format(level="violent"), interval.format(level="calm"))


def violent_at_40_s_to_calm_in_csv(text):
    """Edit the level of AB's judgement, in the row with its times."""
    beginning_of_row = r"^([^\n]*,40\.0,48\.0625,.*?)"
    return re.sub(beginning_of_row + ",violent,", r"\1,calm,", text, flags=re.MULTILINE)


def violent_with_gun_to_calm_in_subtitles(text):
    """Edit the level of AB's judgement, which alone has the concepts Gun and Dim light.

    RTTM writes _ for a space.
    """
    edited = text.replace("= violent; Gun; Dim light", "= calm; Gun; Dim light")
    return edited.replace("=_violent;_Gun;_Dim_light", "=_calm;_Gun;_Dim_light")


@pytest.mark.long
@pytest.mark.parametrize("kind", READ_BACK)
def test_a_level_changed_in_a_file_replaces_one_judgement_only(decisions_of_two, kind):
    """AB has made six decisions that a file can have, and C D four; all are exported.

    In the file AB's judgement of 40 to 48.0625 s is changed from violent to calm, and the file is imported.
    Only this judgement is replaced: AB's five others, C D's four, passages and notes stay.
    """
    before = lines_in_force(decisions_of_two)
    path = export_file(decisions_of_two, kind)
    change_violent_at_40_s_to_calm(path, kind)

    imported = import_file(decisions_of_two, path)

    assert imported == {"AB": Imported(changed=1, unchanged=5), "C D": Imported(unchanged=4)}
    after = lines_in_force(decisions_of_two)
    assert lines_in_force(reopen(decisions_of_two)) == after
    assert decisions_of_two.conflicts() == set()
    judgements_before = before.pop("judgement")
    judgements_after = after.pop("judgement")
    judgements_before.remove(Standing("AB", start_s=40.0, end_s=48.0625, level="violent"))
    judgements_before.append(Standing("AB", start_s=40.0, end_s=48.0625, level="calm"))
    assert sorted(judgements_after) == sorted(judgements_before)
    assert after == before  # passages and notes


@pytest.mark.long
@pytest.mark.parametrize("kind", READ_BACK)
def test_a_level_changed_in_a_file_leaves_the_concepts_and_has_a_history(decisions_of_two, kind):
    """In an exported file, AB's judgement at 40 s, with the concepts Gun and Dim light, is made calm.

    Once it is imported, the violent version is the judgement's history. Imported once more the file changes
    none of AB's six decisions: no sitting, a file of the ledger, is added.
    """
    path = export_file(decisions_of_two, kind)
    change_violent_at_40_s_to_calm(path, kind)

    import_file(decisions_of_two, path)

    (changed,) = [clip for clip in decisions_of_two.clips_by_kind["judgement"] if clip.start_s == 40]
    assert changed.level == "calm"
    assert changed.concepts == ("Gun", "Dim light")
    earlier_versions = decisions_of_two.history(changed.clip_id)
    assert len(earlier_versions) == 1

    n_sittings_before = n_sittings(decisions_of_two)
    imported_again = import_file(decisions_of_two, path)
    assert imported_again["AB"] == Imported(unchanged=6)
    assert n_sittings(decisions_of_two) == n_sittings_before


def move_time_slot(path, time_ms, by_ms):
    """Move the first time slot at a time in an ELAN document; `by_ms` below 0 moves it back."""
    slot, moved_slot = f'TIME_VALUE="{time_ms}"', f'TIME_VALUE="{time_ms + by_ms}"'
    edit(path, lambda text: text.replace(slot, moved_slot, 1))


def move_end_from_48_0625_to_48_462_s(path, kind):
    """Move the end of AB's judgement at 40 s by 400 ms; ELAN has whole milliseconds, and CSV all digits."""
    if kind == "eaf":
        move_time_slot(path, time_ms=48062, by_ms=400)
    else:
        edit(path, lambda text: text.replace("40.0,48.0625", "40.0,48.462"))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["eaf", "csv"])
def test_a_file_changed_and_imported_again_replaces_its_first_import(decisions_of_two, kind):
    """In an exported file, AB's judgement of 40 to 48.0625 s is made calm, and the file is imported.

    Then its end is moved to 48.462 s in the same file, which is imported again. ELAN (eaf) and CSV name the
    id that the judgement had when it was exported: the second import must find the version of the first.
    """
    path = export_file(decisions_of_two, kind)
    change_violent_at_40_s_to_calm(path, kind)
    import_file(decisions_of_two, path)
    move_end_from_48_0625_to_48_462_s(path, kind)

    imported = import_file(decisions_of_two, path)

    assert imported["AB"] == Imported(changed=1, unchanged=5)
    judgements = lines_in_force(decisions_of_two)["judgement"]
    assert Standing("AB", start_s=40.0, end_s=48.462, level="calm") in judgements
    assert decisions_of_two.conflicts() == set()
    assert lines_in_force(reopen(decisions_of_two)) == lines_in_force(decisions_of_two)


def test_a_span_whose_start_is_moved_in_elan_is_the_same_decision(decisions_of_two):
    """AB marked a passage from 42.123 s on. In the exported file it begins half a second earlier.

    This is a change of AB's passage, and not a new one; AB's five other decisions are unchanged.
    """
    passage = Standing("AB", start_s=42.123, end_s=60.5, level="violent", note="a note")
    assert lines_in_force(decisions_of_two)["passage"] == [passage]
    path = export_file(decisions_of_two, "eaf")
    move_time_slot(path, time_ms=42123, by_ms=-500)

    imported = import_file(decisions_of_two, path)

    assert imported["AB"] == Imported(changed=1, unchanged=5)
    moved_passage = Standing("AB", start_s=41.623, end_s=60.5, level="violent", note="a note")
    assert lines_in_force(decisions_of_two)["passage"] == [moved_passage]


def with_ids_of_decisions_rotated(text):
    """Give each annotation of an ELAN document the id of the next one's decision.

    The document lists them in a property, as "a1=0123456789abcdef-1 a2=0123456789abcdef-2".
    """
    (listed,) = re.findall(r'NAME="decisions">([^<]*)', text)
    pairs = [pair.split("=") for pair in listed.split()]
    annotations, decision_ids = zip(*pairs, strict=True)
    rotated_ids = [*decision_ids[1:], decision_ids[0]]
    rotated = [
        f"{annotation}={line_id}" for annotation, line_id in zip(annotations, rotated_ids, strict=True)
    ]
    return text.replace(listed, " ".join(rotated))


def test_an_annotation_with_another_ones_id_is_known_by_its_times(decisions_of_two):
    """A program may renumber annotations, so that the file gives each the id of another one's decision.

    The times decide, and nothing changes.
    """
    path = export_file(decisions_of_two, "eaf")
    edit(path, with_ids_of_decisions_rotated)
    before = lines_in_force(decisions_of_two)

    import_file(decisions_of_two, path)

    assert lines_in_force(decisions_of_two) == before


def test_an_old_unchanged_file_does_not_undo_later_judgements(decisions_of_two):
    """AB judged 40 to 48.0625 s violent, and the film was exported on Monday with all that people decided.

    On Tuesday AB judges the span again. The file is imported as it was: Tuesday's judgement stands. All six
    of AB's annotations in the file count as unchanged, as nobody edited any.
    """
    path_of_monday = export_file(decisions_of_two, "eaf")
    judge(decisions_of_two, start=40, end=48.0625, level="unsure", annotator="AB")
    stands_on_tuesday = lines_in_force(decisions_of_two)

    imported = import_file(decisions_of_two, path_of_monday)

    assert imported["AB"] == Imported(unchanged=6)
    assert lines_in_force(decisions_of_two) == stands_on_tuesday


def test_a_change_in_an_old_file_stands_beside_a_later_judgement(decisions_of_two):
    """AB's judgement of 40 to 48.0625 s, "violent", is exported.

    Then AB judges the span "unsure" at the desk, and it is changed to "calm" in the file. Neither was made in
    knowledge of the other, so that both stand, and both are marked as a conflict.
    """
    path = export_file(decisions_of_two, "eaf")
    judge(decisions_of_two, start=40, end=48.0625, level="unsure", annotator="AB")
    change_violent_at_40_s_to_calm(path, "eaf")

    import_file(decisions_of_two, path)

    judgements = lines_in_force(decisions_of_two)["judgement"]
    levels_at_40_s = {judgement.level for judgement in judgements if judgement.start_s == 40}
    assert levels_at_40_s == {"unsure", "calm"}
    assert len(decisions_of_two.conflicts()) == 2


@pytest.fixture
def first_of_ab(decisions_of_two):
    """AB's blind judgement of the first window of the draw, which is calm."""
    return decisions_of_two.blind_judgements()["AB"][1]


def import_with_violent_for_calm(decisions, judgement, tiers):
    """Export decisions to a table, call one judgement violent there instead of calm, and import it."""

    def with_violent_for_calm(text):
        (row,) = [line for line in text.splitlines() if judgement.clip_id in line]
        return text.replace(row, row.replace(",calm,", ",violent,"))

    path = export_file(decisions, "csv", tiers=tiers)
    edit(path, with_violent_for_calm)
    import_file(decisions, path)


def levels_of_window(decisions, judgement):
    """Return AB's levels of a window, by whether the score was seen or the judgement is blind."""
    name_of_seen_score = {"0": "blind", "1": "in sight"}
    return {
        name_of_seen_score[label.seen_score]: label.level
        for label in labels_of(decisions)
        if label.annotator == "AB" and label.start_s == judgement.start_s
    }


def test_a_blind_judgement_stays_blind_if_its_level_is_changed_in_a_file_without_scores(
    decisions_of_two, first_of_ab
):
    """AB judged the first window of the draw blindly as calm. In an exported file it is made violent.

    The file has what people decided and none of the model's scores, which could have swayed whoever edited
    it: imported again, the judgement is violent, and blind.
    """
    import_with_violent_for_calm(decisions_of_two, first_of_ab, tiers=["people"])

    judgement_by_place = decisions_of_two.blind_judgements()["AB"]
    assert levels_of_window(decisions_of_two, first_of_ab) == {"blind": "violent"}
    assert judgement_by_place[1].level == "violent"


def test_a_change_of_a_blind_judgement_in_a_file_with_scores_is_in_sight_of_them(
    decisions_of_two, first_of_ab
):
    """Whoever edits a file that shows the model's scores may be swayed by them.

    AB judged the first window blindly as calm. The change to violent is a judgement in sight of the score,
    beside the blind one, which still counts.
    """
    all_tiers = ()
    import_with_violent_for_calm(decisions_of_two, first_of_ab, tiers=all_tiers)

    levels = levels_of_window(decisions_of_two, first_of_ab)
    assert levels == {"blind": "calm", "in sight": "violent"}
    assert decisions_of_two.blind_judgements()["AB"][1].level == "calm"


def test_a_blind_judgement_of_a_moved_window_is_left_out(decisions_of_two):
    """A blind judgement is of a window of the draw: with its start moved by .3 s it is of none.

    AB has made six decisions, of which one is the blind judgement of the fourth window.
    """
    path = export_file(decisions_of_two, "eaf", tiers=["people"])
    start_of_fourth_window_s, _ = decisions_of_two.windows[3]
    move_time_slot(path, round(1000 * start_of_fourth_window_s), by_ms=300)
    before = lines_in_force(decisions_of_two)

    imported = import_file(decisions_of_two, path)

    assert imported["AB"] == Imported(unchanged=5, left_out=1)
    assert lines_in_force(decisions_of_two) == before


@pytest.fixture
def table_of_ef(decisions_of_two):
    """A table of another program: EF labelled two spans, and the sixth window of the draw."""
    path = decisions_of_two.folder.parent / "own.csv"
    start_s, end_s = decisions_of_two.windows[5]
    path.write_text(
        "movie,start_s,end_s,level,annotator\n"
        "tt1,20,28,violent,EF\n"
        "tt1,70,80.5,calm,EF\n"
        f"tt1,{start_s},{end_s},calm,EF\n",
        encoding="utf-8",
    )
    return path


def test_foreign_annotations_must_be_declared_blind_or_in_sight(decisions_of_two, table_of_ef):
    """A table of another program does not say whether its author saw the model's scores.

    The refusal names the option that says it.
    """
    with pytest.raises(FilmError, match="--blind"):
        import_file(decisions_of_two, table_of_ef)


def test_annotations_without_a_level_need_not_be_declared_blind(decisions_of_two):
    """EF's table has one span without a level, and does not say whether EF saw the score.

    It gives no decision, so that it does not matter what EF saw: the span is left out, and no option needed.
    """
    path = decisions_of_two.folder.parent / "own.csv"
    path.write_text("movie,start_s,end_s,level,annotator\ntt1,20,28,,EF\n", encoding="utf-8")
    assert import_file(decisions_of_two, path) == {"EF": Imported(left_out=1)}


@pytest.mark.parametrize(
    ("is_blind", "seen_score", "n_judgements"),
    [(True, "0", 1), (False, "1", 0)],
    ids=["declared blind", "declared in sight of the scores"],
)
def test_foreign_annotations_are_blind_or_in_sight_as_declared(
    decisions_of_two, table_of_ef, is_blind, seen_score, n_judgements
):
    """EF made three annotations in another program, of which one has the times of a window of the draw.

    Declared blind, that one is a judgement that counts in a share. All others are passages, and what was
    annotated in sight of the model's scores (`seen_score` 1) is no judgement of a window.
    """
    imported = import_file(decisions_of_two, table_of_ef, is_blind=is_blind)

    assert imported == {"EF": Imported(new=3)}
    seen_scores = [label.seen_score for label in labels_of(decisions_of_two) if label.annotator == "EF"]
    assert seen_scores == [seen_score, seen_score, seen_score]
    judgements = [clip for clip in decisions_of_two.clips_by_kind["judgement"] if clip.annotator == "EF"]
    assert len(judgements) == n_judgements


def test_the_ledger_names_the_annotator_the_file_and_the_codebook_of_an_import(decisions_of_two, table_of_ef):
    """The decisions of an import are behind one line of its own, which says whose they are and where from.

    They are under the codebook of the desk, so that a later change of its wording is known.
    """
    import_file(decisions_of_two, table_of_ef, is_blind=True)

    lines_of_ledger = decisions_of_two.ledger.lines.values()
    (line_of_import,) = [line for line in lines_of_ledger if line.row.get("kind") == "import"]
    assert line_of_import.row["annotator"] == "EF"
    assert line_of_import.row["file"] == "own.csv"
    for decision in decisions_of_two.lines.values():
        assert decisions_of_two.definition_of(decision) == decisions_of_two.codebook.definition()


@pytest.mark.parametrize(
    ("tiers", "is_blind", "option"),
    [(["people"], None, "--blind"), ((), True, "--in-sight")],
    ids=["without the scores, undeclared", "beside the scores, declared blind"],
)
def test_tiers_that_do_not_say_blind_or_in_sight_are_refused(decisions_of_two, tiers, is_blind, option):
    """The names of tiers in an export say "in sight"; with that removed the user must declare it.

    A file with the model's scores beside the tiers cannot have been annotated blindly. The refusal names the
    option that is missing, or the right one.
    """
    path = export_file(decisions_of_two, "eaf", tiers=tiers)
    edit(path, lambda text: text.replace(", in sight", ""))

    with pytest.raises(FilmError, match=option):
        import_file(decisions_of_two, path, is_blind=is_blind)


def test_a_declaration_that_tiers_contradict_is_told_as_not_used(decisions_of_two):
    """The tiers of an export say of each annotation whether it was made blindly or in sight of the score.

    The user declares the one or the other of the whole file. A notice counts the annotations of which the
    tiers say otherwise, as the tiers count; without a declaration there is nothing to tell.
    """
    path = export_file(decisions_of_two, "eaf", tiers=["people"])
    file = read_annotations(path, decisions_of_two.codebook, movie=decisions_of_two.film.movie)
    labels = [clip for clip in file.clips if clip.level]
    n_blind = sum(clip.extras["seen_score"] == "0" for clip in labels)
    n_in_sight = len(labels) - n_blind
    assert n_blind > 1
    assert n_in_sight > 1

    on_blind = notice_on_unused_declaration(file, is_blind=True)
    on_in_sight = notice_on_unused_declaration(file, is_blind=False)

    assert f"--blind is not used for {n_in_sight} annotations" in on_blind
    assert f"--in-sight is not used for {n_blind} annotations" in on_in_sight
    assert notice_on_unused_declaration(file, is_blind=None) == ""


def test_a_tier_of_spoken_words_is_no_tier_of_levels(decisions_of_two):
    """A file has a tier "words", with what is said in the film: "he is calm", "calm" and "violent waves".

    A tier whose name does not say that it holds levels does so only if every text in it is a level. Here only
    "calm" is the name of one, so that the tier is no tier of levels: all three are left out, "calm" as well.
    """
    path = decisions_of_two.folder.parent / "words.TextGrid"
    words = [
        Subtitle(start_s=0, end_s=4, text="he is calm"),
        Subtitle(start_s=4, end_s=9, text="calm"),
        Subtitle(start_s=9, end_s=12, text="violent waves"),
    ]
    path.write_text(write_textgrid({"words": words}, end_s=12), encoding="utf-8")
    before = lines_in_force(decisions_of_two)

    imported = import_file(decisions_of_two, path, is_blind=True, annotator="EF")

    assert imported == {"EF": Imported(left_out=3)}
    assert lines_in_force(decisions_of_two) == before


@pytest.mark.parametrize(
    "first_row",
    ["tt1,20,28,violent,EF", "tt1,20,28,,EF", "tt2,20,28,violent,EF", "tt1,20,9000,violent,EF"],
    ids=["it gives a decision", "it has no level", "it is of another film", "it ends after the film"],
)
def test_the_id_of_an_imported_decision_ends_in_its_row_counting_all_rows_before_it(
    decisions_of_two, first_row
):
    """By these ids two machines that import one file know that its decisions are the same.

    The table's header is line 1, so its second annotation is in line 3, whatever became of the first.
    """
    path = decisions_of_two.folder.parent / "own.csv"
    path.write_text(
        f"movie,start_s,end_s,level,annotator\n{first_row}\ntt1,70,80.5,calm,EF\n", encoding="utf-8"
    )

    import_file(decisions_of_two, path, is_blind=True)

    (second,) = [line for line in decisions_of_two.lines.values() if line.row.get("start_s") == "70"]
    assert second.id.endswith("-3")


def with_other_meaning_of_calm(codebook):
    """Return a codebook whose first level, "calm", means something else."""
    calm, *other_levels = codebook.levels
    assert calm.name == "calm"
    newer_calm = Level("calm", means="now otherwise")
    return replace(codebook, levels=(newer_calm, *other_levels))


def test_an_imported_judgement_keeps_the_definitions_of_its_file(decisions_of_two):
    """Decisions are exported, and AB's judgement at 40 s is edited in the file, from violent to calm.

    Meanwhile the codebook got another meaning of "calm". Whoever edited the file judged by the earlier one,
    so the imported judgement is not current under the newer codebook.
    """
    path = export_file(decisions_of_two, "eaf")
    change_violent_at_40_s_to_calm(path, "eaf")
    earlier_codebook = decisions_of_two.codebook
    newer_codebook = with_other_meaning_of_calm(earlier_codebook)

    decisions = Decisions(decisions_of_two.folder, decisions_of_two.film, newer_codebook)
    import_file(decisions, path)

    lines_of_ab = [line for line in decisions.lines.values() if line.annotator == "AB"]
    (changed,) = [line for line in lines_of_ab if line.row["start_s"] == "40"]
    assert changed.row["level"] == "calm"
    assert decisions.definition_of(changed) == earlier_codebook.definition()
    assert not decisions.is_current(changed.id)


def paste_row_without_definition(decisions):
    """Add to a film's table EF's judgement of 70 to 80 s, under no definition; return the decisions."""
    path = decisions.folder / JUDGEMENTS
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    pasted = dict.fromkeys(table.columns, "") | {"clip_id": "pasted", "movie": "tt1", "annotator": "EF"}
    pasted |= {"start_s": "70", "end_s": "80", "level": "calm", "seen_score": "1"}
    pd.concat([table, pd.DataFrame([pasted])]).to_csv(path, index=False)
    return Decisions(decisions.folder, decisions.film, decisions.codebook)


def test_a_changed_level_in_a_file_keeps_its_definition_if_another_label_of_the_file_has_none(
    decisions_of_two,
):
    """A film is exported to ELAN, where AB's level of 40 to 48.0625 s is changed to "calm".

    AB judged by the codebook's definition, and EF's row, pasted into the table, names none. Before the file
    is imported the codebook gives "calm" another meaning. AB's new level was still given by the earlier one,
    under which it must be recorded, whatever EF's is.
    """
    earlier_codebook = decisions_of_two.codebook
    with_ef = paste_row_without_definition(decisions_of_two)
    definitions = {with_ef.definition_of(line) for line in with_ef.lines.values()}
    assert definitions == {earlier_codebook.definition(), ""}

    path = export_file(with_ef, "eaf")
    change_violent_at_40_s_to_calm(path, "eaf")
    _calm, *other_levels = earlier_codebook.levels
    newer_codebook = replace(earlier_codebook, levels=(Level("calm", means="now otherwise"), *other_levels))
    decisions = Decisions(with_ef.folder, with_ef.film, newer_codebook)
    import_file(decisions, path)

    lines_of_ab = [line for line in decisions.lines.values() if line.annotator == "AB"]
    (changed,) = [line for line in lines_of_ab if line.row["start_s"] == "40"]
    assert changed.row["level"] == "calm"
    assert decisions.definition_of(changed) == earlier_codebook.definition()


def remove_all_decisions(folder):
    """Remove the ledger of a film and the tables that are written from it."""
    shutil.rmtree(folder / "ledger", ignore_errors=True)
    for table in (JUDGEMENTS, PASSAGES, NOTES):
        (folder / table).unlink(missing_ok=True)


NOTES_OF_ONE_LINE = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=40)
"""Without control characters (category C) and separators of lines (Zl, Zp), which the desk refuses."""

NAMES_OF_LETTERS_DIGITS_AND_SIGNS = st.text(
    st.characters(categories=("L", "N", "P")), min_size=1, max_size=12
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    format_of_file=st.sampled_from(READ_BACK),
    note=NOTES_OF_ONE_LINE,
    name=NAMES_OF_LETTERS_DIGITS_AND_SIGNS,
)
def test_any_name_and_note_survive_export_and_import(scored_tt1, format_of_file, note, name):
    """A judgement by a random name, with a random note, is exported in a random format and imported.

    Whatever letters and signs they have, the import finds one annotation: the judgement that stands.
    """
    remove_all_decisions(scored_tt1.folder)  # of the example before
    decisions = Decisions(*scored_tt1)
    judge(decisions, start=40, end=48, level="violent", annotator=name, note=note)
    lines_before = lines_in_force(decisions)
    path = export_file(decisions, format_of_file)

    (imported_of_only_annotator,) = import_file(decisions, path).values()

    assert imported_of_only_annotator == Imported(unchanged=1)
    assert lines_in_force(decisions) == lines_before


@pytest.mark.long
def test_a_table_of_two_films_gives_decisions_with_different_ids(scored_films_and_codebook, tmp_path):
    """A colleague's table has the first 8 s of two films. It is imported into the ledger of each film.

    The desk joins the decisions of all its films, and refuses two with one id.
    """
    scored_films, codebook_file = scored_films_and_codebook
    table = tmp_path / "judged.csv"
    table.write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score\n"
        "film-1,tt1,,0,8,calm,,AB,1\n"
        "film-2,tt2,,0,8,calm,,AB,1\n"
    )
    codebook = load_codebook(codebook_file)
    ids = []
    for film in read_films([scored_films / "tt1", scored_films / "tt2"]):
        decisions = Decisions(scored_films / film.movie, film, codebook)
        decisions.import_annotations(read_annotations(table, codebook).of_film(film.movie))
        (passage,) = decisions.clips_by_kind["passage"]
        ids.append(passage.clip_id)

    id_in_tt1, id_in_tt2 = ids
    assert id_in_tt1 != id_in_tt2


def test_films_whose_decisions_have_the_same_ids_open_together(scored_tt1, films, tmp_path, monkeypatch):
    """The films tt1 and tt2 have a judgement each. Both have the same id, and both must be shown.

    The id of a decision is the random number of its sitting and the number of its line. Ledgers of different
    films may have sittings of the same number, as here, where each sitting gets one and the same.
    """
    number_of_every_sitting = "b4eb22ea28378d85"
    monkeypatch.setattr(ledger, "token_hex", lambda _n_bytes: number_of_every_sitting)
    decisions_on_tt1 = Decisions(*scored_tt1)
    judge(decisions_on_tt1, start=0, end=8, level="calm")
    folder_tt2 = shutil.copytree(films / "scored" / "tt2", tmp_path / "tt2")
    (timeline_tt2,) = read_films([folder_tt2])
    decisions_on_tt2 = Decisions(folder_tt2, timeline_tt2, scored_tt1.codebook)
    judge(decisions_on_tt2, start=0, end=8, level="calm")
    assert list(decisions_on_tt1.lines) == list(decisions_on_tt2.lines)  # their ids

    open_films = [
        OpenFilm(0, scored_tt1.timeline, decisions_on_tt1),
        OpenFilm(1, timeline_tt2, decisions_on_tt2),
    ]
    judged = shown_judgements_of(open_films, scored_tt1.codebook).judged

    assert [(clip.movie, clip.level) for clip in judged] == [("tt1", "calm"), ("tt2", "calm")]
