"""What people decided, in every format: read by the tools' own readers with who and how, and back by ours."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from obygaze_features.manifest import import_spans
from obygaze_film.exchange import FORMATS, Decided, export
from tests.film.page.invented import ten_minute_film

ID = "0123456789abcdef-{}"
HOSTILE = "</script><script>alert(1)</script>\n\nNOTE --> ]]> \" ' & =1+1 |M:"

BLIND_JUDGEMENT_OF_AB = Decided(
    start_s=10.0,
    end_s=18.5,
    judges=("AB",),
    level="S",
    concepts=("Body", "Clothing"),
    note="low",
    is_blind=True,
    id=ID.format(2),
)
JUDGEMENT_OF_AB_IN_SIGHT = Decided(start_s=10.0, end_s=18.5, judges=("AB",), level="EN", id=ID.format(3))
LATER_JUDGEMENT_OF_AB = Decided(
    start_s=12.0, end_s=30.25, judges=("AB",), level="HN", concepts=("Activity",), id=ID.format(4)
)
BLIND_JUDGEMENT_OF_CD = Decided(
    start_s=10.0, end_s=18.5, judges=("C_D é",), level="EN", is_blind=True, id=ID.format(5)
)
BOTH = ("AB", "C_D é")
AGREED_LEVEL_OF_BOTH = Decided(
    start_s=10.0,
    end_s=18.5,
    judges=BOTH,
    level="HN",
    concepts=("Body",),
    is_blind=True,
    is_agreed=True,
    id=ID.format(6),
)
HOSTILE_NOTE_OF_AB = Decided(start_s=40.0, end_s=41.0, judges=("AB",), note=HOSTILE, id=ID.format(7))
ALL_DECISIONS = (
    BLIND_JUDGEMENT_OF_AB,
    JUDGEMENT_OF_AB_IN_SIGHT,
    LATER_JUDGEMENT_OF_AB,
    BLIND_JUDGEMENT_OF_CD,
    AGREED_LEVEL_OF_BOTH,
    HOSTILE_NOTE_OF_AB,
)


@pytest.fixture(scope="module")
def film_of_ten_minutes():
    """An invented film of ten minutes, scored by one model."""
    return ten_minute_film()


FORMATS_READ_BACK = [export_format for export_format in FORMATS if FORMATS[export_format].read_as]
"""Formats from which people's decisions are read back."""


def export_decisions(film, export_format, tmp_path, *decided, **options):
    """Export a film with what people decided, by default `ALL_DECISIONS`; return the path of the file."""
    path = tmp_path / f"film{FORMATS[export_format].suffix}"
    text = export(film, export_format, people=decided or ALL_DECISIONS, **options)
    path.write_text(text, encoding="utf-8")
    return path


def labels_of_clips(clips):
    """Return annotator, start, end, level, concepts and whether the score was in sight, of labelled clips."""
    labels = []
    for clip in clips:
        if clip.level:
            times = round(clip.start_s, 3), round(clip.end_s, 3)
            seen_score = clip.extras.get("seen_score", "")
            labels.append((clip.annotator, *times, clip.level, clip.concepts, seen_score))
    return sorted(labels)


def labels_of_decisions(*decided):
    """Return of decisions what `labels_of_clips` returns of the clips that they are imported as."""
    labels = []
    for decision in decided:
        seen_score = "0" if decision.is_blind else "1"
        labels.append(
            (
                decision.annotator,
                decision.start_s,
                decision.end_s,
                decision.level,
                decision.concepts,
                seen_score,
            )
        )
    return sorted(labels)


def test_by_default_no_export_holds_what_people_decided(film_of_ten_minutes, export_format):
    """Tiers of people are called "human: ...", as "human: level, blind"; RTTM writes _ for a space."""
    text = export(film_of_ten_minutes, export_format).replace("_", " ")
    assert "human: level, blind" not in text


def test_every_format_says_who_decided_and_how(film_of_ten_minutes, export_format):
    """AB decided blindly and in sight of the score, C_D blindly; they agreed on a level together (`SETTLED`).

    RTTM has no spaces in a label: it writes _ for them, and %5F for the _ of a name.
    """
    text = export(
        film_of_ten_minutes,
        export_format,
        people=(BLIND_JUDGEMENT_OF_AB, JUDGEMENT_OF_AB_IN_SIGHT, BLIND_JUDGEMENT_OF_CD, AGREED_LEVEL_OF_BOTH),
    )
    if export_format == "rttm":
        text = text.replace("_", " ").replace("%5F", "_")

    for words in ("AB", "C_D", "blind", "in sight", "agreed"):
        assert words in text
    assert "no annotation by people" not in text  # which an export of scores alone says


@pytest.mark.parametrize("export_format", FORMATS_READ_BACK)
def test_our_reader_gets_back_who_decided_what_and_how(film_of_ten_minutes, export_format, tmp_path):
    """Three decisions of AB and one of C_D are exported, with a level that both agreed on and a note of AB.

    Imported again, each of the four has its annotator, times, level, concepts, and whether the model's score
    was in sight. What was agreed, and a note without a level, change nothing of this.
    """
    of_one_person_each = (
        BLIND_JUDGEMENT_OF_AB,
        JUDGEMENT_OF_AB_IN_SIGHT,
        LATER_JUDGEMENT_OF_AB,
        BLIND_JUDGEMENT_OF_CD,
    )
    path = export_decisions(
        film_of_ten_minutes,
        export_format,
        tmp_path,
        *of_one_person_each,
        AGREED_LEVEL_OF_BOTH,
        HOSTILE_NOTE_OF_AB,
    )

    imported = import_spans([path], tmp_path, movie=film_of_ten_minutes.movie)

    clips_of_one_person = [
        clip for clip in imported.manifest if clip.annotator != AGREED_LEVEL_OF_BOTH.annotator
    ]
    assert labels_of_clips(clips_of_one_person) == labels_of_decisions(*of_one_person_each)


@pytest.mark.parametrize("name", ["{i}", "<AB>", "A > B"])
@pytest.mark.parametrize("export_format", [name for name in FORMATS_READ_BACK if name != "srt"])
def test_a_name_with_signs_of_markup_comes_back(film_of_ten_minutes, export_format, name, tmp_path):
    """A judge's name has signs that players of subtitles would take for markup, such as {i} and <AB>.

    Every format but SubRip ("srt"), which another test is on, has a way to write such signs as they are: read
    back, the judgement has the same name.
    """
    judgement = replace(BLIND_JUDGEMENT_OF_AB, judges=(name,))
    path = export_decisions(film_of_ten_minutes, export_format, tmp_path, judgement)

    imported = import_spans([path], tmp_path, movie=film_of_ten_minutes.movie)

    assert labels_of_clips(imported.manifest) == labels_of_decisions(judgement)


def test_subrip_writes_other_signs_for_markup_in_a_name_which_its_list_of_losses_says(
    film_of_ten_minutes, tmp_path
):
    """A judge is called {AB}. SubRip has no way to write braces, and gets (AB), which is read back.

    Each format states what it loses of people's decisions (`loses_of_people`), and SubRip this, too.
    """
    judgement = replace(BLIND_JUDGEMENT_OF_AB, judges=("{AB}",))
    path = export_decisions(film_of_ten_minutes, "srt", tmp_path, judgement)

    imported = import_spans([path], tmp_path, movie=film_of_ten_minutes.movie)

    annotators_of_labels = [clip.annotator for clip in imported.manifest if clip.level]
    assert annotators_of_labels == ["(AB)"]
    assert "in a name, signs of markup are replaced" in FORMATS["srt"].loses_of_people


@pytest.mark.parametrize("export_format", FORMATS_READ_BACK)
def test_our_reader_knows_an_export_by_its_content(film_of_ten_minutes, export_format, tmp_path):
    """A file that we exported, with decisions of AB and C_D, is read as what it is, though nobody says it."""
    path = export_decisions(
        film_of_ten_minutes,
        export_format,
        tmp_path,
        BLIND_JUDGEMENT_OF_AB,
        JUDGEMENT_OF_AB_IN_SIGHT,
        LATER_JUDGEMENT_OF_AB,
        BLIND_JUDGEMENT_OF_CD,
        AGREED_LEVEL_OF_BOTH,
        HOSTILE_NOTE_OF_AB,
    )

    imported = import_spans([path], tmp_path, movie=film_of_ten_minutes.movie)

    (account,) = imported.accounts
    assert account.kind == FORMATS[export_format].read_as


def test_subtitles_that_an_editor_saved_as_ass_come_back_with_who_decided_what(film_of_ten_minutes, tmp_path):
    """Three decisions of AB and one of C_D are exported as subtitles (SubRip); an editor saves them as ASS.

    The library pysubs2 stands in for the editor. Imported, each decision has its annotator, times, level,
    concepts, and whether the model's score was in sight.
    """
    pysubs2 = pytest.importorskip("pysubs2")
    decisions = (
        BLIND_JUDGEMENT_OF_AB,
        JUDGEMENT_OF_AB_IN_SIGHT,
        LATER_JUDGEMENT_OF_AB,
        BLIND_JUDGEMENT_OF_CD,
    )
    subrip_file = export_decisions(film_of_ten_minutes, "srt", tmp_path, *decisions)

    subtitles_in_editor = pysubs2.load(subrip_file)
    subtitles_in_editor.save(tmp_path / "film.ass")
    manifest = import_spans([tmp_path / "film.ass"], tmp_path, movie=film_of_ten_minutes.movie).manifest

    assert labels_of_clips(manifest) == labels_of_decisions(*decisions)


@pytest.mark.parametrize("export_format", ["eaf", "csv"])
def test_an_imported_label_names_the_decision_that_it_shows(film_of_ten_minutes, export_format, tmp_path):
    """Three decisions of AB, one of C_D and one of both have ids, and are exported and imported again.

    Each imported clip has the id of its decision in the column `decision`, beside annotator and level.
    """
    decisions = (
        BLIND_JUDGEMENT_OF_AB,
        JUDGEMENT_OF_AB_IN_SIGHT,
        LATER_JUDGEMENT_OF_AB,
        BLIND_JUDGEMENT_OF_CD,
        AGREED_LEVEL_OF_BOTH,
    )
    path = export_decisions(film_of_ten_minutes, export_format, tmp_path, *decisions)

    manifest = import_spans([path], tmp_path).manifest

    exported = {decision.id: (decision.annotator, decision.level) for decision in decisions}
    clips_with_level = [clip for clip in manifest if clip.level]
    imported = {clip.extras["decision"]: (clip.annotator, clip.level) for clip in clips_with_level}
    assert imported == exported


@pytest.mark.parametrize("export_format", FORMATS_READ_BACK)
@pytest.mark.parametrize(
    ("options", "has_tiers_of_model"),
    [({}, True), ({"tiers": ["people"]}, False)],
    ids=["all tiers", "people alone"],
)
def test_a_file_shows_model_output_only_if_it_has_the_models_tiers(
    film_of_ten_minutes, export_format, tmp_path, options, has_tiers_of_model
):
    """A decision of AB is exported, with the model's passages or without them.

    The account of the import says whether the file shows what a model says.
    """
    path = export_decisions(film_of_ten_minutes, export_format, tmp_path, BLIND_JUDGEMENT_OF_AB, **options)
    account = import_spans([path], tmp_path).accounts[0]
    assert account.shows_model_output == has_tiers_of_model


@pytest.mark.parametrize("export_format", FORMATS_READ_BACK)
def test_decisions_alone_come_back_without_the_models_tiers(film_of_ten_minutes, export_format, tmp_path):
    """With `tiers=["people"]` a file has AB's blind judgement and nothing of the model: one label is read."""
    path = export_decisions(
        film_of_ten_minutes, export_format, tmp_path, BLIND_JUDGEMENT_OF_AB, tiers=["people"]
    )
    manifest = import_spans([path], tmp_path).manifest
    assert labels_of_clips(manifest) == labels_of_decisions(BLIND_JUDGEMENT_OF_AB)


def test_elan_has_a_tier_of_levels_for_each_person_and_way_of_deciding(film_of_ten_minutes, tmp_path):
    """AB gave a level blindly and two in sight of the score, "C_D é" one blindly; on one they agreed.

    The tool ELAN allows no spans that overlap on one tier (row). AB's levels in sight overlap, at 12 to 18.5
    s: the later one gets a tier with a number.
    """
    pympi = pytest.importorskip("pympi")
    decisions = (
        BLIND_JUDGEMENT_OF_AB,
        JUDGEMENT_OF_AB_IN_SIGHT,
        LATER_JUDGEMENT_OF_AB,
        BLIND_JUDGEMENT_OF_CD,
        AGREED_LEVEL_OF_BOTH,
        HOSTILE_NOTE_OF_AB,
    )
    path = export_decisions(film_of_ten_minutes, "eaf", tmp_path, *decisions)

    eaf = pympi.Elan.Eaf(str(path))

    tiers_of_levels = {name for name in eaf.get_tier_names() if name.startswith("human: level")}
    assert tiers_of_levels == {
        "human: level",  # an empty tier, for whoever annotates in ELAN
        "human: level, blind@AB",
        "human: level, in sight@AB",
        "human: level, in sight (2)@AB",
        "human: level, blind@C_D é",
        "human: level, agreed@AB, C_D é",
    }


def test_elan_has_levels_with_their_annotator_and_concepts_below_them(film_of_ten_minutes, tmp_path):
    """AB called 10 to 18.5 s S blindly, and saw Body and Clothing. ELAN has times in milliseconds."""
    pympi = pytest.importorskip("pympi")
    document = pympi.Elan.Eaf(
        str(export_decisions(film_of_ten_minutes, "eaf", tmp_path, BLIND_JUDGEMENT_OF_AB))
    )

    assert document.get_annotation_data_for_tier("human: level, blind@AB") == [(10000, 18500, "S")]
    assert document.get_parameters_for_tier("human: level, blind@AB")["ANNOTATOR"] == "AB"
    concepts = document.get_ref_annotation_data_for_tier("human: concepts, blind@AB")
    assert [text for _start, _end, text, *_ in concepts] == ["Body;Clothing"]


def test_pympi_can_add_an_annotation_to_our_tiers(film_of_ten_minutes, tmp_path):
    """AB called 10 to 18.5 s S; 20 to 21 s are added.

    pympi numbers annotations itself, and fails on ids that it cannot read.
    """
    pympi = pytest.importorskip("pympi")
    document = pympi.Elan.Eaf(
        str(export_decisions(film_of_ten_minutes, "eaf", tmp_path, BLIND_JUDGEMENT_OF_AB))
    )

    document.add_annotation("human: level, blind@AB", 20000, 21000, "EN")

    levels = document.get_annotation_data_for_tier("human: level, blind@AB")
    assert sorted(levels) == [(10000, 18500, "S"), (20000, 21000, "EN")]


def test_a_document_with_decisions_is_valid_by_elans_schema(film_of_ten_minutes, tmp_path):
    """The document has the decisions of all kinds (`ALL_DECISIONS`), by two people, one called C_D é."""
    xmlschema = pytest.importorskip("xmlschema")
    schema = xmlschema.XMLSchema(Path(__file__).with_name("eaf-3.0.xsd"))
    schema.validate(str(export_decisions(film_of_ten_minutes, "eaf", tmp_path)))


def test_praatio_sees_the_tiers_of_people(film_of_ten_minutes, tmp_path):
    """C_D é called 10 to 18.5 s EN blindly; AB and C_D é agreed on HN with the concept Body there.

    The library praatio reads files of Praat.
    """
    textgrid = pytest.importorskip("praatio.textgrid")
    path = export_decisions(
        film_of_ten_minutes, "textgrid", tmp_path, BLIND_JUDGEMENT_OF_CD, AGREED_LEVEL_OF_BOTH
    )

    document = textgrid.openTextgrid(str(path), includeEmptyIntervals=False)

    (level,) = document.getTier("human: level, blind@C_D é").entries
    assert tuple(level) == (10.0, 18.5, "EN")
    (concepts,) = document.getTier("human: concepts, agreed@AB, C_D é").entries
    assert tuple(concepts) == (10.0, 18.5, "Body")


@pytest.mark.parametrize("export_format", ["vtt", "srt"])
def test_players_readers_see_who_decided(film_of_ten_minutes, export_format, tmp_path):
    """AB called 10 to 18.5 s S blindly; AB and C_D é agreed on HN there.

    The library pysubs2 reads subtitles, with times in milliseconds.
    """
    pysubs2 = pytest.importorskip("pysubs2")
    path = export_decisions(
        film_of_ten_minutes, export_format, tmp_path, BLIND_JUDGEMENT_OF_AB, AGREED_LEVEL_OF_BOTH
    )

    cues = pysubs2.load(str(path), encoding="utf-8")

    texts = [cue.plaintext for cue in cues if (cue.start, cue.end) == (10000, 18500)]
    assert "human: labels, blind@AB = S; Body; Clothing" in texts
    assert "human: labels, agreed@AB, C_D é = HN; Body" in texts


def markers_read_by_opentimelineio(text, adapter):
    """Return the markers that OpenTimelineIO reads in a file for a video editor."""
    otio = pytest.importorskip("opentimelineio")
    markers = []
    for clip in otio.adapters.read_from_string(text, adapter).find_clips():
        markers += clip.markers
    return markers


@pytest.mark.parametrize(("export_format", "adapter"), [("otio", "otio_json"), ("fcpxml7", "fcp_xml")])
def test_video_editors_readers_see_who_decided(film_of_ten_minutes, export_format, adapter, tmp_path):
    """AB called 10 to 18.5 s S blindly; AB and C_D é agreed on HN there."""
    pytest.importorskip("opentimelineio")
    if adapter == "fcp_xml":
        pytest.importorskip("otio_fcp_adapter")
    text = export_decisions(
        film_of_ten_minutes, export_format, tmp_path, BLIND_JUDGEMENT_OF_AB, AGREED_LEVEL_OF_BOTH
    ).read_text(encoding="utf-8")

    names = [marker.name for marker in markers_read_by_opentimelineio(text, adapter)]

    assert "human: labels, blind@AB = S; Body; Clothing" in names
    assert "human: labels, agreed@AB, C_D é = HN; Body" in names


def test_markers_of_opentimelineio_hold_the_facts_of_a_decision(film_of_ten_minutes, tmp_path):
    """AB called 10 to 18.5 s S blindly. A marker of that span has who, what and how as data as well."""
    pytest.importorskip("opentimelineio")
    text = export_decisions(film_of_ten_minutes, "otio", tmp_path, BLIND_JUDGEMENT_OF_AB).read_text(
        encoding="utf-8"
    )

    markers = markers_read_by_opentimelineio(text, "otio_json")

    facts = [marker.metadata["obygaze"] for marker in markers]
    (decision,) = [fact for fact in facts if fact["tier"] == "human: labels, blind@AB"]
    assert decision["annotator"] == "AB"
    assert decision["level"] == "S"
    assert decision["how"] == "blind"
    assert decision["seen_score"] == 0


def test_an_edit_list_names_who_decided(film_of_ten_minutes, tmp_path):
    """AB called 10 to 18.5 s S blindly: 8.5 s are 204 frames, at 24 frames a second."""
    text = export_decisions(
        film_of_ten_minutes, "edl", tmp_path, BLIND_JUDGEMENT_OF_AB, rate=Fraction(24)
    ).read_text(encoding="utf-8")
    assert "|M:human: labels, blind@AB = S; Body; Clothing |D:204" in text


def test_opentimelineio_reads_an_edit_list_of_decisions(film_of_ten_minutes, tmp_path):
    """The edit list has the decisions of all kinds (`ALL_DECISIONS`), a hostile note among them."""
    otio = pytest.importorskip("opentimelineio")
    if "cmx_3600" not in otio.adapters.available_adapter_names():
        pytest.skip("OpenTimelineIO's adapter of edit lists is not installed")
    text = export_decisions(film_of_ten_minutes, "edl", tmp_path).read_text(encoding="utf-8")
    assert any(otio.adapters.read_from_string(text, "cmx_3600", rate=24).find_clips())


def test_the_speaker_of_a_line_in_rttm_says_which_level_somebody_gave_and_how(film_of_ten_minutes, tmp_path):
    """A judge called "C_D é" called 10 to 18.5 s EN blindly.

    RTTM is a table of ten columns between blanks, which the package pyannote reads as turns of speakers. The
    speaker is "human: labels, blind@C_D é = EN", with _ for each space, and %5F for the _ of the name.
    """
    pandas = pytest.importorskip("pandas")
    path = export_decisions(film_of_ten_minutes, "rttm", tmp_path, BLIND_JUDGEMENT_OF_CD)
    start_column, duration_column, speaker_column = 3, 4, 7
    types = {start_column: float, duration_column: float}

    turns = pandas.read_csv(path, names=range(10), sep=r"\s+", dtype=types)

    (turn,) = turns[turns[speaker_column] == "human:_labels,_blind@C%5FD_é_=_EN"].to_numpy()
    assert turn[start_column] == 10.0
    assert turn[duration_column] == 8.5


def annotations_of_people(film, tmp_path, *decided):
    """Return the web annotations that have people as their creators."""
    collection = json.loads(export_decisions(film, "jsonld", tmp_path, *decided).read_text(encoding="utf-8"))
    return [item for item in collection["first"]["items"] if "creator" in item]


def test_a_web_annotation_has_its_people_and_the_facts_of_their_decision(film_of_ten_minutes, tmp_path):
    """AB and C_D é agreed on HN with the concept Body. They are its creators; the last body has the facts.

    "agreed" does not say whether the score was in sight: `seen_score` does.
    """
    (annotation,) = annotations_of_people(film_of_ten_minutes, tmp_path, AGREED_LEVEL_OF_BOTH)

    assert annotation["motivation"] == "classifying"
    assert [person["name"] for person in annotation["creator"]] == ["AB", "C_D é"]
    facts = json.loads(annotation["body"][-1]["value"])
    assert facts["how"] == "agreed"
    assert facts["level"] == "HN"
    assert facts["concepts"] == ["Body"]
    assert facts["seen_score"] == 0


def test_a_note_is_a_web_annotation_that_comments(film_of_ten_minutes, tmp_path):
    """AB noted "dark" of 40 to 41 s, without a level, so that nothing is classified."""
    note = Decided(start_s=40.0, end_s=41.0, judges=("AB",), note="dark", id=ID.format(7))
    (comment,) = annotations_of_people(film_of_ten_minutes, tmp_path, note)
    assert comment["motivation"] == "commenting"
    assert [person["name"] for person in comment["creator"]] == ["AB"]


def test_web_annotations_of_decisions_have_ids_of_their_own(film_of_ten_minutes, tmp_path):
    """All six decisions are exported. AB's blind one has a level and a note, and so is two annotations."""
    annotations = annotations_of_people(film_of_ten_minutes, tmp_path)

    assert len(annotations) == 6 + 1
    assert len({annotation["id"] for annotation in annotations}) == 7


def test_the_facts_of_a_decision_say_if_the_score_was_in_sight():
    """Two people agreed on a level in sight of the score: `seen_score` is 1.

    A note without a level is no judgement, and says nothing of the score.
    """
    in_sight = replace(AGREED_LEVEL_OF_BOTH, is_blind=False)
    assert in_sight.facts["seen_score"] == 1
    assert "seen_score" not in HOSTILE_NOTE_OF_AB.facts


def test_iiifs_own_parser_sees_who_decided(film_of_ten_minutes, tmp_path):
    """AB called 10 to 18.5 s S blindly, and saw Body and Clothing."""
    iiif = pytest.importorskip("iiif_prezi3")
    text = export_decisions(film_of_ten_minutes, "iiif", tmp_path, BLIND_JUDGEMENT_OF_AB).read_text(
        encoding="utf-8"
    )
    (canvas,) = iiif.Manifest.model_validate_json(text).items
    values = [item.body.value for item in canvas.annotations[0].items]
    assert "human: labels, blind@AB = S; Body; Clothing" in values


HOSTILE_DECISIONS = (
    Decided(start_s=1.0, end_s=5.0, judges=("=cmd() <b> | -->",), level="S", note=HOSTILE, id=ID.format(9)),
    HOSTILE_NOTE_OF_AB,
    BLIND_JUDGEMENT_OF_CD,
)
"""A decision whose name and note are hostile, a hostile note without a level, and a plain decision."""


@pytest.mark.parametrize("export_format", FORMATS_READ_BACK)
def test_a_hostile_note_or_name_keeps_no_decision_from_being_read_back(
    film_of_ten_minutes, export_format, tmp_path
):
    """A film's three decisions: a level S by a judge whose name and note have markup, formulas and line ends.

    Then a note alone with the same signs, which has no level; and a plain level EN by C_D. Both levels are
    read back, and C_D's as it was.
    """
    path = export_decisions(film_of_ten_minutes, export_format, tmp_path, *HOSTILE_DECISIONS)
    labels = labels_of_clips(import_spans([path], tmp_path, movie=film_of_ten_minutes.movie).manifest)
    (label_by_cd,) = labels_of_decisions(BLIND_JUDGEMENT_OF_CD)
    assert label_by_cd in labels
    assert len(labels) == 2


@pytest.mark.parametrize("export_format", ["jsonld", "iiif", "otio"])
def test_hostile_notes_leave_json_valid(film_of_ten_minutes, export_format):
    """Notes of decisions and a judge's name hold quotes, an end of lines and markup: none may break JSON."""
    pytest.importorskip("opentimelineio")
    exported = export(film_of_ten_minutes, export_format, people=HOSTILE_DECISIONS)
    json.loads(exported)


@pytest.mark.parametrize("export_format", ["eaf", "fcpxml7"])
def test_hostile_notes_are_text_in_xml(film_of_ten_minutes, export_format):
    """Notes of decisions hold "<script>", which must be written as text in XML and not as a tag."""
    pytest.importorskip("opentimelineio")
    exported = export(film_of_ten_minutes, export_format, people=HOSTILE_DECISIONS)
    assert "<script>" not in exported


def test_hostile_notes_add_no_formula_to_a_table(film_of_ten_minutes):
    """A formula is a cell that begins with =, + or @; the notes and a name hold some."""
    table = export(film_of_ten_minutes, "csv", people=HOSTILE_DECISIONS)
    assert not re.search(r"(^|,)\"?[=+@]", table, re.MULTILINE)


def test_hostile_notes_add_no_event_to_an_edit_list(film_of_ten_minutes):
    """Each event, a line with a cut (C) of the video (V), has one marker (* LOC)."""
    edit_list = export(film_of_ten_minutes, "edl", people=HOSTILE_DECISIONS)
    assert edit_list.isascii()
    assert edit_list.count("  V     C  ") == edit_list.count("* LOC")


@pytest.mark.parametrize("export_format", ["vtt", "srt"])
def test_hostile_notes_add_no_cue_to_subtitles(film_of_ten_minutes, export_format):
    """A cue begins with its times around an arrow, and the notes hold arrows."""
    subtitles = export(film_of_ten_minutes, export_format, people=HOSTILE_DECISIONS)
    cues = re.findall(r"^\d\d:.* --> ", subtitles, re.MULTILINE)
    assert subtitles.count(" --> ") == len(cues)
