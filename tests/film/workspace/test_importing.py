"""One's own decisions go out into a file, are changed there, and come back: what was changed and no more."""

import re
import shutil
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from obygaze_features.manifest import Level, Subtitle, load_codebook, write_textgrid
from obygaze_film import read_films
from obygaze_film.errors import FilmError
from obygaze_film.exchange import FORMATS, export
from obygaze_film.workspace import ledger
from obygaze_film.workspace.decisions import JUDGEMENTS, NOTES, PASSAGES, Decisions, read_decided
from obygaze_film.workspace.importing import read_annotations
from obygaze_film.workspace.open_film import OpenFilm, shown_judgements_of
from tests.film.workspace.deciding import judge, judge_blindly, open_again, stands
from tests.planted_models import codebook

READ_BACK = ("eaf", "textgrid", "csv", "rttm", "vtt", "srt")
"""Formats in which the tests below change a level, and read it back."""
ALL_KINDS = tuple(kind for kind in FORMATS if FORMATS[kind].read_as)
"""Formats from which people's decisions are read back."""
IN_FRAMES = ("fcpxml7", "markers", "edl")
"""Formats whose times are numbers of frames."""
WITH_IDS = ("eaf", "csv")
"""Formats in which a span names the decision that it shows."""


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory, scored_once):
    """The folder of the film tt1 as `judged` has it; nobody may change it."""
    folder, film = scored_once
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("judged") / folder.name)
    decisions = Decisions(copy, film, codebook(copy.parent))
    judge_blindly(decisions, "calm", "violent", "unsure", "calm", who="AB")
    judge_blindly(decisions, "calm", "calm", "violent", who="C D")
    judge(decisions, 40, 48.0625, "violent", who="AB", concepts=["Gun", "Dim light"])
    judge(decisions, 44, 52, "calm", who="C D")
    decisions.keep("passage", 42.123, 60.5, "AB", level="violent", note="a note")
    decisions.keep("note", 3, 4, "AB", note="a note alone")
    decisions.ledger.close()
    return copy


@pytest.fixture
def judged(tmp_path, judged_once, scored_once):
    """Two people's decisions of all kinds, some on spans that overlap: 6 of AB (and a note), 4 of C D."""
    _, film = scored_once
    folder = shutil.copytree(judged_once, tmp_path / judged_once.name)
    return Decisions(folder, film, codebook(tmp_path))


def exported(decisions, kind, **options):
    """Export the film with what people decided of it, as a file of a kind; return its path."""
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


def test_subtitles_that_an_editor_saved_with_hundredths_of_seconds_change_nothing(judged):
    """AB's passage begins at 42.123 s, which the editor rounds to 42.12 s: it is the same passage."""
    subrip = exported(judged, "srt", tiers=("people",))
    saved = subrip.with_suffix(".ass")
    saved.write_text(as_substation(subrip.read_text(encoding="utf-8")), encoding="utf-8")
    assert ":42.12," in saved.read_text(encoding="utf-8")

    assert import_file(judged, saved) == {"AB": Imported(unchanged=6), "C D": Imported(unchanged=4)}


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
        for clip in decisions.kept[kind]:
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
def test_an_export_changes_nothing_where_it_was_made_and_gives_all_to_an_empty_ledger(
    judged, nobody_decided, kind
):
    """Every annotation in the file is that of a decision in the ledger: 6 of AB, and 4 of C D.

    No sitting is written, since there is nothing new. A colleague without the ledger gets all decisions, with
    times, levels and concepts. Blind judgements stay blind: four of AB, and three of C D.
    """
    before, n_before = stands(judged), n_sittings(judged)
    path = exported(judged, kind, tiers=["people"])
    assert import_file(judged, path) == {"AB": Imported(unchanged=6), "C D": Imported(unchanged=4)}
    assert stands(judged) == stands(open_again(judged)) == before
    assert n_sittings(judged) == n_before

    assert import_file(nobody_decided, path) == {"AB": Imported(new=6), "C D": Imported(new=4)}
    # Times are exact to half a frame (of 25 a second) where a format counts frames, or to a millisecond.
    slack_s = 0.021 if kind in IN_FRAMES else 0.001
    for label, expected in zip(labels_of(nobody_decided), labels_of(judged), strict=True):
        assert label.start_s == pytest.approx(expected.start_s, abs=slack_s)
        assert label.end_s == pytest.approx(expected.end_s, abs=slack_s)
        assert label._replace(start_s=0, end_s=0) == expected._replace(start_s=0, end_s=0)
    n_blind = {judge: len(by_place) for judge, by_place in nobody_decided.blind_judgements().items()}
    assert n_blind == {"AB": 4, "C D": 3}


@pytest.mark.long
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_an_export_with_the_scores_changes_nothing_where_it_was_made(judged, kind):
    """The model's passages beside people's decisions are not taken for decisions."""
    before = stands(judged)
    path = exported(judged, kind)
    assert import_file(judged, path) == {"AB": Imported(unchanged=6), "C D": Imported(unchanged=4)}
    assert stands(judged) == before


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
    interval = 'xmin = 40\n            xmax = 48.0625\n            text = "{level}"'
    return text.replace(interval.format(level="violent"), interval.format(level="calm"))


def violent_at_40_s_to_calm_in_csv(text):
    beginning_of_row = r"^([^\n]*,40\.0,48\.0625,.*?)"
    return re.sub(beginning_of_row + ",violent,", r"\1,calm,", text, flags=re.MULTILINE)


def violent_with_gun_to_calm_in_subtitles(text):
    """Only this judgement has both concepts. RTTM writes _ for a space."""
    edited = text.replace("= violent; Gun; Dim light", "= calm; Gun; Dim light")
    return edited.replace("=_violent;_Gun;_Dim_light", "=_calm;_Gun;_Dim_light")


@pytest.mark.long
@pytest.mark.parametrize("kind", READ_BACK)
def test_a_level_changed_in_a_file_replaces_one_judgement_only(judged, kind):
    """AB's judgement of 40 to 48.0625 s is called calm in the file: one is changed, AB's other five are not.

    Only its level was edited, so that the concepts stay, and the version before is the history. The file
    imported once more changes nothing.
    """
    before = stands(judged)
    path = exported(judged, kind)
    change_violent_at_40_s_to_calm(path, kind)
    assert import_file(judged, path) == {"AB": Imported(changed=1, unchanged=5), "C D": Imported(unchanged=4)}

    after = stands(judged)
    assert stands(open_again(judged)) == after
    assert judged.conflicts() == set()
    judgements_before, judgements_after = before.pop("judgement"), after.pop("judgement")
    judgements_before.remove(("AB", 40.0, 48.0625, "violent", ""))
    assert sorted(judgements_after) == sorted([*judgements_before, ("AB", 40.0, 48.0625, "calm", "")])
    assert after == before  # passages and notes

    (changed,) = [clip for clip in judged.kept["judgement"] if clip.start_s == 40]
    assert changed.concepts == ("Gun", "Dim light")
    assert len(judged.history(changed.clip_id)) == 1

    n_before = n_sittings(judged)
    assert import_file(judged, path)["AB"] == Imported(unchanged=6)
    assert n_sittings(judged) == n_before


def move_time_slot(path, time_ms, by_ms):
    """Move the first time slot at a time in an ELAN document; `by_ms` below 0 moves it back."""
    slot, moved_slot = f'TIME_VALUE="{time_ms}"', f'TIME_VALUE="{time_ms + by_ms}"'
    edit(path, lambda text: text.replace(slot, moved_slot, 1))


@pytest.mark.long
@pytest.mark.parametrize("kind", WITH_IDS)
def test_a_file_changed_and_imported_again_replaces_its_first_import(judged, kind):
    """First a level is changed and then an end is moved in one file: both are of one judgement.

    The file names the decision's id as it was exported, and the second import must find the version of
    the first import.
    """
    path = exported(judged, kind)
    change_violent_at_40_s_to_calm(path, kind)
    import_file(judged, path)

    if kind == "eaf":
        move_time_slot(path, 48062, by_ms=400)
    else:
        edit(path, lambda text: text.replace("40.0,48.0625", "40.0,48.462"))

    assert import_file(judged, path)["AB"] == Imported(changed=1, unchanged=5)
    assert ("AB", 40.0, 48.462, "calm", "") in stands(judged)["judgement"]
    assert judged.conflicts() == set()
    assert stands(open_again(judged)) == stands(judged)


def test_a_span_whose_start_is_moved_in_elan_is_the_same_decision(judged):
    """A passage begins half a second earlier: it is a change of AB's passage, and not a new one."""
    assert stands(judged)["passage"] == [("AB", 42.123, 60.5, "violent", "a note")]
    path = exported(judged, "eaf")
    move_time_slot(path, 42123, by_ms=-500)
    assert import_file(judged, path)["AB"] == Imported(changed=1, unchanged=5)
    assert stands(judged)["passage"] == [("AB", 41.623, 60.5, "violent", "a note")]


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


def test_an_annotation_with_another_ones_id_is_known_by_its_times(judged):
    """A program may renumber annotations, so that ids are of the wrong ones.

    The times decide, and nothing changes.
    """
    path = exported(judged, "eaf")
    edit(path, with_ids_of_decisions_rotated)
    before = stands(judged)
    import_file(judged, path)
    assert stands(judged) == before


def test_an_old_unchanged_file_does_not_undo_later_judgements(judged):
    """The file was exported on Monday, and the span judged again on Tuesday: Tuesday's judgement stands."""
    path = exported(judged, "eaf")
    judge(judged, 40, 48.0625, "unsure")
    after = stands(judged)
    assert import_file(judged, path)["AB"] == Imported(unchanged=6)
    assert stands(judged) == after


def test_a_change_in_an_old_file_stands_beside_a_later_judgement(judged):
    """The span was judged "unsure" at the desk after the export, and changed to "calm" in the file.

    Neither was made in knowledge of the other, so that both stand and are marked as a conflict.
    """
    path = exported(judged, "eaf")
    judge(judged, 40, 48.0625, "unsure")
    change_violent_at_40_s_to_calm(path, "eaf")
    import_file(judged, path)
    at_40_s = [judgement for judgement in stands(judged)["judgement"] if judgement[1] == 40]

    assert {level for _, _, _, level, _ in at_40_s} == {"unsure", "calm"}
    assert len(judged.conflicts()) == 2


@pytest.fixture
def first_of_ab(judged):
    """AB's blind judgement of the first window of the draw, which is calm."""
    return judged.blind_judgements()["AB"][1]


def import_with_violent_for_calm(judged, judgement, tiers):
    """Export decisions to a table, call one judgement violent there instead of calm, and import it."""

    def with_violent_for_calm(text):
        (row,) = [line for line in text.splitlines() if judgement.clip_id in line]
        return text.replace(row, row.replace(",calm,", ",violent,"))

    path = exported(judged, "csv", tiers=tiers)
    edit(path, with_violent_for_calm)
    import_file(judged, path)


def levels_of_window(judged, judgement):
    """Return AB's levels of a window, by whether the score was seen: "0" is blind, "1" in sight of it."""
    return {
        label.seen_score: label.level
        for label in labels_of(judged)
        if label.annotator == "AB" and label.start_s == judgement.start_s
    }


@pytest.mark.parametrize(
    ("tiers", "levels", "blind_level"),
    [((), {"0": "calm", "1": "violent"}, "calm"), (("people",), {"0": "violent"}, "violent")],
    ids=["a file with scores", "a file without scores"],
)
def test_a_change_of_a_blind_judgement_is_blind_only_in_a_file_without_scores(
    judged, first_of_ab, tiers, levels, blind_level
):
    """Whoever edits a file that shows the model's scores may be swayed by them.

    So the change there is a judgement in sight of the score ("1"), beside the blind one ("0"), which still
    counts.
    """
    import_with_violent_for_calm(judged, first_of_ab, tiers)
    assert levels_of_window(judged, first_of_ab) == levels
    assert judged.blind_judgements()["AB"][1].level == blind_level


def test_a_blind_judgement_of_a_moved_window_is_left_out(judged):
    """A blind judgement is of a window of the draw: with its start moved by .3 s it is of none."""
    path = exported(judged, "eaf", tiers=["people"])
    start_of_fourth_window_s, _ = judged.windows[3]
    move_time_slot(path, round(1000 * start_of_fourth_window_s), by_ms=300)
    before = stands(judged)
    assert import_file(judged, path)["AB"] == Imported(unchanged=5, left_out=1)  # of six
    assert stands(judged) == before


@pytest.fixture
def table_of_ef(judged):
    """A table of another program: EF labelled two spans, and the sixth window of the draw."""
    path = judged.folder.parent / "own.csv"
    start_s, end_s = judged.windows[5]
    path.write_text(
        "movie,start_s,end_s,level,annotator\n"
        "tt1,20,28,violent,EF\n"
        "tt1,70,80.5,calm,EF\n"
        f"tt1,{start_s},{end_s},calm,EF\n",
        encoding="utf-8",
    )
    return path


def test_foreign_annotations_must_be_declared_blind_or_in_sight(judged, table_of_ef):
    """A table of another program does not say whether its author saw the model's scores.

    The refusal names the option that says it.
    """
    with pytest.raises(FilmError, match="--blind"):
        import_file(judged, table_of_ef)


def test_annotations_without_a_level_need_not_be_declared_blind(judged):
    """They give no decision, so that it does not matter what their author saw."""
    path = judged.folder.parent / "own.csv"
    path.write_text("movie,start_s,end_s,level,annotator\ntt1,20,28,,EF\n", encoding="utf-8")
    assert import_file(judged, path) == {"EF": Imported(left_out=1)}


@pytest.mark.parametrize(("is_blind", "seen_score", "n_judgements"), [(True, "0", 1), (False, "1", 0)])
def test_foreign_annotations_are_blind_or_in_sight_as_declared(
    judged, table_of_ef, is_blind, seen_score, n_judgements
):
    """Of EF's three annotations one has the times of a window of the draw.

    Declared blind, that one is a judgement that counts in a share. All others are passages.
    """
    assert import_file(judged, table_of_ef, is_blind=is_blind) == {"EF": Imported(new=3)}
    of_ef = [label for label in labels_of(judged) if label.annotator == "EF"]
    assert [label.seen_score for label in of_ef] == [seen_score] * 3
    judgements = [clip for clip in judged.kept["judgement"] if clip.annotator == "EF"]
    assert len(judgements) == n_judgements


def test_the_ledger_names_the_annotator_the_file_and_the_codebook_of_an_import(judged, table_of_ef):
    """The decisions of an import are behind one line of its own, which says whose they are and where from.

    They are under the codebook of the desk, so that a later change of its wording is known.
    """
    import_file(judged, table_of_ef, is_blind=True)
    (line_of_import,) = [line for line in judged.ledger.lines.values() if line.row.get("kind") == "import"]
    assert line_of_import.row["annotator"] == "EF"
    assert line_of_import.row["file"] == "own.csv"
    definitions = {judged.definition_of(decision) for decision in judged.lines.values()}
    assert definitions == {judged.codebook.definition()}


@pytest.mark.parametrize(
    ("tiers", "is_blind", "option"),
    [(["people"], None, "--blind"), ((), True, "--in-sight")],
    ids=["without the scores, undeclared", "beside the scores, declared blind"],
)
def test_tiers_that_do_not_say_blind_or_in_sight_are_refused(judged, tiers, is_blind, option):
    """The names of tiers say "in sight". With that gone nobody knows, and the user must say it.

    In a file that shows the model's scores beside the tiers nobody can have annotated blindly.
    """
    path = exported(judged, "eaf", tiers=tiers)
    edit(path, lambda text: text.replace(", in sight", ""))
    with pytest.raises(FilmError, match=option):
        import_file(judged, path, is_blind=is_blind)


def test_a_tier_of_spoken_words_is_no_tier_of_levels(judged):
    """In a tier of levels every text is a level, unless its name says that it is one.

    Of these words "calm" is a level's name, but the others are not: all three are left out.
    """
    path = judged.folder.parent / "words.TextGrid"
    words = [Subtitle(0, 4, "he is calm"), Subtitle(4, 9, "calm"), Subtitle(9, 12, "violent waves")]
    path.write_text(write_textgrid({"words": words}, 12), encoding="utf-8")
    before = stands(judged)
    assert import_file(judged, path, is_blind=True, annotator="EF") == {"EF": Imported(left_out=3)}
    assert stands(judged) == before


@pytest.mark.parametrize(
    "first_row",
    ["tt1,20,28,violent,EF", "tt1,20,28,,EF", "tt2,20,28,violent,EF", "tt1,20,9000,violent,EF"],
    ids=["it gives a decision", "it has no level", "it is of another film", "it ends after the film"],
)
def test_the_number_of_a_row_counts_all_rows_before_it(judged, first_row):
    """The row is that of the ledger's ids, by which two machines that import one file know its decisions.

    The table's header is line 1, so its second annotation is in line 3, whatever became of the first.
    """
    path = judged.folder.parent / "own.csv"
    path.write_text(
        f"movie,start_s,end_s,level,annotator\n{first_row}\ntt1,70,80.5,calm,EF\n", encoding="utf-8"
    )
    import_file(judged, path, is_blind=True)
    (line,) = [line for line in judged.lines.values() if line.row.get("start_s") == "70"]
    assert line.id.endswith("-3")


def test_an_imported_judgement_keeps_the_definitions_of_its_file(judged):
    """The meaning of "calm" was changed after the export: whoever edited the file judged by the earlier one.

    So the judgement is not current under the newer codebook.
    """
    path = exported(judged, "eaf")
    change_violent_at_40_s_to_calm(path, "eaf")
    earlier = judged.codebook
    calm, *others = earlier.levels
    assert calm.name == "calm"
    newer = replace(earlier, levels=(Level("calm", means="now otherwise"), *others))
    decisions = Decisions(judged.folder, judged.film, newer)
    import_file(decisions, path)

    lines = [line for line in decisions.lines.values() if line.annotator == "AB"]
    (line,) = [line for line in lines if line.row["start_s"] == "40"]
    assert line.row["level"] == "calm"
    assert decisions.definition_of(line) == earlier.definition()
    assert not decisions.is_current(line.id)


def remove_all_decisions(folder):
    """Remove the ledger of a film and the tables that are written from it."""
    shutil.rmtree(folder / "ledger", ignore_errors=True)
    for table in (JUDGEMENTS, PASSAGES, NOTES):
        (folder / table).unlink(missing_ok=True)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(READ_BACK),
    note=st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=40),
    name=st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=12),
)
def test_any_name_and_note_survive_export_and_import(scored_tt1, kind, note, name):
    """Whatever letters, marks and signs they have, the file is recognised as unchanged."""
    remove_all_decisions(scored_tt1[0])  # of the example before
    decisions = Decisions(*scored_tt1)
    judge(decisions, 40, 48, "violent", name, note=note)
    before = stands(decisions)
    (imported,) = import_file(decisions, exported(decisions, kind)).values()

    assert imported == Imported(unchanged=1)
    assert stands(decisions) == before


@pytest.mark.long
def test_a_table_of_two_films_gives_decisions_with_different_ids(copied, tmp_path):
    """The desk joins the decisions of all its films, and refuses two with one id."""
    scored, codebook_path = copied
    table = tmp_path / "judged.csv"
    table.write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score\n"
        "film-1,tt1,,0,8,calm,,AB,1\n"
        "film-2,tt2,,0,8,calm,,AB,1\n"
    )
    codebook = load_codebook(codebook_path)
    ids = set()
    for film in read_films([scored / "tt1", scored / "tt2"]):
        decisions = Decisions(scored / film.movie, film, codebook)
        decisions.import_annotations(read_annotations(table, codebook).of_film(film.movie))
        (passage,) = decisions.kept["passage"]
        ids.add(passage.clip_id)

    assert len(ids) == 2


def test_films_whose_decisions_have_the_same_ids_open_together(scored_tt1, films, tmp_path, monkeypatch):
    """An earlier version wrote such ledgers when it imported one file of several films."""
    monkeypatch.setattr(ledger, "token_hex", lambda _n_bytes: "b4eb22ea28378d85")  # the id of each sitting
    _, _, codebook = scored_tt1
    folder_tt2 = shutil.copytree(films / "scored" / "tt2", tmp_path / "tt2")
    (timeline_tt2,) = read_films([folder_tt2])
    of_tt1, of_tt2 = Decisions(*scored_tt1), Decisions(folder_tt2, timeline_tt2, codebook)
    for decisions in (of_tt1, of_tt2):
        judge(decisions, 0, 8, "calm")
    assert [*of_tt1.lines] == [*of_tt2.lines]  # their ids

    opened = [OpenFilm(0, of_tt1.film, of_tt1), OpenFilm(1, of_tt2.film, of_tt2)]
    judged = shown_judgements_of(opened, codebook).judged
    assert [(clip.movie, clip.level) for clip in judged] == [("tt1", "calm"), ("tt2", "calm")]
