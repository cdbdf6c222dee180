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

AB_BLIND = Decided(10.0, 18.5, ("AB",), "S", ("Body", "Clothing"), "low", is_blind=True, id=ID.format(2))
AB_SIGHT = Decided(10.0, 18.5, ("AB",), "EN", id=ID.format(3))
AB_LATER = Decided(12.0, 30.25, ("AB",), "HN", ("Activity",), id=ID.format(4))
CD_BLIND = Decided(10.0, 18.5, ("C_D é",), "EN", is_blind=True, id=ID.format(5))
BOTH = ("AB", "C_D é")
SETTLED = Decided(10.0, 18.5, BOTH, "HN", ("Body",), is_blind=True, is_agreed=True, id=ID.format(6))
NOTE = Decided(40.0, 41.0, ("AB",), note=HOSTILE, id=ID.format(7))
ALL_DECISIONS = (AB_BLIND, AB_SIGHT, AB_LATER, CD_BLIND, SETTLED, NOTE)


@pytest.fixture(scope="module")
def film():
    return ten_minute_film()


READ_BACK = [kind for kind in FORMATS if FORMATS[kind].read_as]
"""Formats from which people's decisions are read back."""


def exported(film, kind, tmp_path, *decided, **options):
    """Export a film with what people decided, by default `ALL_DECISIONS`; return the path of the file."""
    path = tmp_path / f"film{FORMATS[kind].suffix}"
    text = export(film, kind, people=decided or ALL_DECISIONS, **options)
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


def test_by_default_no_export_holds_what_people_decided(film, kind):
    assert "human: level, blind" not in export(film, kind).replace("_", " ")


def test_every_format_says_who_decided_and_how(film, kind):
    text = export(film, kind, people=(AB_BLIND, AB_SIGHT, CD_BLIND, SETTLED))
    if kind == "rttm":  # it has no spaces in a label: it writes _ for them, and %5F for the _ of a name
        text = text.replace("_", " ").replace("%5F", "_")
    for words in ("AB", "C_D", "blind", "in sight", "agreed"):
        assert words in text
    assert "no annotation by people" not in text


@pytest.mark.parametrize("kind", READ_BACK)
def test_our_reader_gets_back_who_decided_what_and_how(film, kind, tmp_path):
    """What they settled together, and a note without a level, change nothing of what each one decided."""
    decided = (AB_BLIND, AB_SIGHT, AB_LATER, CD_BLIND)
    path = exported(film, kind, tmp_path, *decided, SETTLED, NOTE)
    imported = import_spans([path], tmp_path, movie=film.movie)
    assert [account.kind for account in imported.accounts] == [FORMATS[kind].read_as]
    by_one_person = [clip for clip in imported.manifest if clip.annotator != SETTLED.annotator]
    assert labels_of_clips(by_one_person) == labels_of_decisions(*decided)


def test_subtitles_that_an_editor_saved_as_ass_come_back_with_who_decided_what(film, tmp_path):
    pysubs2 = pytest.importorskip("pysubs2")
    decided = (AB_BLIND, AB_SIGHT, AB_LATER, CD_BLIND)
    pysubs2.load(exported(film, "srt", tmp_path, *decided)).save(tmp_path / "film.ass")
    manifest = import_spans([tmp_path / "film.ass"], tmp_path, movie=film.movie).manifest
    assert labels_of_clips(manifest) == labels_of_decisions(*decided)


@pytest.mark.parametrize("kind", ["eaf", "csv"])
def test_an_imported_label_names_the_decision_that_it_shows(film, kind, tmp_path):
    decided = (AB_BLIND, AB_SIGHT, AB_LATER, CD_BLIND, SETTLED)
    manifest = import_spans([exported(film, kind, tmp_path, *decided)], tmp_path).manifest
    shown = {clip.extras["decision"]: (clip.annotator, clip.level) for clip in manifest if clip.level}
    assert shown == {decision.id: (decision.annotator, decision.level) for decision in decided}


@pytest.mark.parametrize("kind", READ_BACK)
def test_a_file_shows_model_output_only_if_it_has_the_models_tiers(film, kind, tmp_path):
    with_model = import_spans([exported(film, kind, tmp_path, AB_BLIND)], tmp_path)
    assert with_model.accounts[0].shows_model_output
    people_alone = import_spans([exported(film, kind, tmp_path, AB_BLIND, tiers=["people"])], tmp_path)
    assert not people_alone.accounts[0].shows_model_output
    assert labels_of_clips(people_alone.manifest) == labels_of_decisions(AB_BLIND)


def test_elan_has_a_tier_of_levels_for_each_person_and_way_of_deciding(film, tmp_path):
    pympi = pytest.importorskip("pympi")
    path = exported(film, "eaf", tmp_path, AB_BLIND, AB_SIGHT, AB_LATER, CD_BLIND, SETTLED, NOTE)
    eaf = pympi.Elan.Eaf(str(path))
    tiers = {name for name in eaf.get_tier_names() if name.startswith("human: level")}
    assert tiers == {
        "human: level",  # an empty tier, for whoever annotates in ELAN
        "human: level, blind@AB",
        "human: level, in sight@AB",
        "human: level, in sight (2)@AB",  # of AB_LATER, which overlaps AB_SIGHT
        "human: level, blind@C_D é",
        "human: level, agreed@AB, C_D é",
    }


def test_elan_has_levels_with_their_annotator_and_concepts_below_them(film, tmp_path):
    pympi = pytest.importorskip("pympi")
    read = pympi.Elan.Eaf(str(exported(film, "eaf", tmp_path, AB_BLIND)))
    assert read.get_annotation_data_for_tier("human: level, blind@AB") == [(10000, 18500, "S")]
    assert read.get_parameters_for_tier("human: level, blind@AB")["ANNOTATOR"] == "AB"
    concepts = read.get_ref_annotation_data_for_tier("human: concepts, blind@AB")
    assert [text for _, _, text, *_ in concepts] == ["Body;Clothing"]


def test_pympi_can_add_an_annotation_to_our_tiers(film, tmp_path):
    """It numbers annotations itself, and fails on ids that it cannot read."""
    pympi = pytest.importorskip("pympi")
    read = pympi.Elan.Eaf(str(exported(film, "eaf", tmp_path, AB_BLIND)))
    read.add_annotation("human: level, blind@AB", 20000, 21000, "EN")
    levels = read.get_annotation_data_for_tier("human: level, blind@AB")
    assert sorted(levels) == [(10000, 18500, "S"), (20000, 21000, "EN")]


def test_elans_schema_holds(film, tmp_path):
    xmlschema = pytest.importorskip("xmlschema")
    schema = xmlschema.XMLSchema(Path(__file__).with_name("eaf-3.0.xsd"))
    schema.validate(str(exported(film, "eaf", tmp_path)))


def test_praats_own_reader_sees_the_tiers_of_people(film, tmp_path):
    textgrid = pytest.importorskip("praatio.textgrid")
    path = exported(film, "textgrid", tmp_path, CD_BLIND, SETTLED)
    read = textgrid.openTextgrid(str(path), includeEmptyIntervals=False)
    (level,) = read.getTier("human: level, blind@C_D é").entries
    assert tuple(level) == (10.0, 18.5, "EN")
    (concepts,) = read.getTier("human: concepts, agreed@AB, C_D é").entries
    assert tuple(concepts) == (10.0, 18.5, "Body")


@pytest.mark.parametrize("kind", ["vtt", "srt"])
def test_players_readers_see_who_decided(film, kind, tmp_path):
    pysubs2 = pytest.importorskip("pysubs2")
    cues = pysubs2.load(str(exported(film, kind, tmp_path, AB_BLIND, SETTLED)), encoding="utf-8")
    at_10_s = [cue.plaintext for cue in cues if (cue.start, cue.end) == (10000, 18500)]
    assert "human: labels, blind@AB = S; Body; Clothing" in at_10_s
    assert "human: labels, agreed@AB, C_D é = HN; Body" in at_10_s


@pytest.mark.parametrize(("kind", "adapter"), [("otio", "otio_json"), ("fcpxml7", "fcp_xml")])
def test_video_editors_readers_see_who_decided(film, kind, adapter, tmp_path):
    otio = pytest.importorskip("opentimelineio")
    if adapter == "fcp_xml":
        pytest.importorskip("otio_fcp_adapter")
    text = exported(film, kind, tmp_path, AB_BLIND, SETTLED).read_text(encoding="utf-8")
    read = otio.adapters.read_from_string(text, adapter)
    names = [marker.name for clip in read.find_clips() for marker in clip.markers]
    assert "human: labels, blind@AB = S; Body; Clothing" in names
    assert "human: labels, agreed@AB, C_D é = HN; Body" in names


def test_markers_of_opentimelineio_hold_the_facts_of_a_decision(film, tmp_path):
    otio = pytest.importorskip("opentimelineio")
    text = exported(film, "otio", tmp_path, AB_BLIND).read_text(encoding="utf-8")
    read = otio.adapters.read_from_string(text, "otio_json")
    facts = [marker.metadata["obygaze"] for clip in read.find_clips() for marker in clip.markers]
    (decision,) = [fact for fact in facts if fact["tier"] == "human: labels, blind@AB"]
    assert decision["annotator"] == "AB"
    assert decision["level"] == "S"
    assert (decision["how"], decision["seen_score"]) == ("blind", 0)


def test_an_edit_list_names_who_decided(film, tmp_path):
    text = exported(film, "edl", tmp_path, AB_BLIND, rate=Fraction(24)).read_text(encoding="utf-8")
    n_frames = 204  # 8.5 seconds
    assert f"|M:human: labels, blind@AB = S; Body; Clothing |D:{n_frames}" in text


def test_opentimelineio_reads_an_edit_list_of_decisions(film, tmp_path):
    otio = pytest.importorskip("opentimelineio")
    if "cmx_3600" not in otio.adapters.available_adapter_names():
        pytest.skip("OpenTimelineIO's adapter of edit lists is not installed")
    text = exported(film, "edl", tmp_path).read_text(encoding="utf-8")
    assert any(otio.adapters.read_from_string(text, "cmx_3600", rate=24).find_clips())


def test_pyannotes_columns_name_who_decided(film, tmp_path):
    pandas = pytest.importorskip("pandas")
    path = exported(film, "rttm", tmp_path, CD_BLIND)
    read = pandas.read_csv(path, names=range(10), sep=r"\s+", dtype={3: float, 4: float})
    start_s, duration_s, speaker = 3, 4, 7  # columns
    rows = read[read[speaker] == "human:_labels,_blind@C%5FD_é_=_EN"]
    assert rows[[start_s, duration_s]].to_numpy().tolist() == [[10.0, 8.5]]


def annotations_of_people(film, tmp_path, *decided):
    """Return the web annotations that have people as their creators."""
    collection = json.loads(exported(film, "jsonld", tmp_path, *decided).read_text(encoding="utf-8"))
    return [item for item in collection["first"]["items"] if "creator" in item]


def test_a_web_annotation_has_its_people_and_the_facts_of_their_decision(film, tmp_path):
    """The people are its creators, and the last body has the facts. A note is an annotation that comments."""
    note = Decided(40.0, 41.0, ("AB",), note="dark", id=ID.format(7))
    annotations = annotations_of_people(film, tmp_path, SETTLED, note)
    by_motivation = {item["motivation"]: item for item in annotations}
    settled, comment = by_motivation["classifying"], by_motivation["commenting"]

    assert [person["name"] for person in settled["creator"]] == ["AB", "C_D é"]
    facts = json.loads(settled["body"][-1]["value"])
    assert (facts["how"], facts["level"], facts["concepts"]) == ("agreed", "HN", ["Body"])
    assert facts["seen_score"] == 0  # "agreed" does not say whether the score was in sight
    assert replace(SETTLED, is_blind=False).facts["seen_score"] == 1
    assert "seen_score" not in NOTE.facts
    assert [person["name"] for person in comment["creator"]] == ["AB"]

    of_all = annotations_of_people(film, tmp_path)
    assert len({item["id"] for item in of_all}) == len(of_all) == 7  # six, of which one notes more


def test_iiifs_own_parser_sees_who_decided(film, tmp_path):
    iiif = pytest.importorskip("iiif_prezi3")
    text = exported(film, "iiif", tmp_path, AB_BLIND).read_text(encoding="utf-8")
    (canvas,) = iiif.Manifest.model_validate_json(text).items
    values = [item.body.value for item in canvas.annotations[0].items]
    assert "human: labels, blind@AB = S; Body; Clothing" in values


HOSTILE_DECISIONS = (
    Decided(1.0, 5.0, ("=cmd() <b> | -->",), "S", note=HOSTILE, id=ID.format(9)),
    NOTE,
    CD_BLIND,
)
"""A decision whose name and note are hostile, a hostile note without a level, and a plain decision."""


@pytest.mark.parametrize("kind", READ_BACK)
def test_a_hostile_note_or_name_keeps_no_decision_from_being_read_back(film, kind, tmp_path):
    path = exported(film, kind, tmp_path, *HOSTILE_DECISIONS)
    labels = labels_of_clips(import_spans([path], tmp_path, movie=film.movie).manifest)
    assert labels_of_decisions(CD_BLIND)[0] in labels
    assert len(labels) == 2  # the other one, too; the note has no level


def test_hostile_notes_leave_json_valid_and_are_text_in_xml(film):
    pytest.importorskip("opentimelineio")
    for kind in ("jsonld", "iiif", "otio"):
        json.loads(export(film, kind, people=HOSTILE_DECISIONS))
    for kind in ("eaf", "fcpxml7"):
        assert "<script>" not in export(film, kind, people=HOSTILE_DECISIONS)


def test_hostile_notes_add_no_formula_no_event_and_no_cue(film):
    """A formula is a cell that begins with =, + or @. An arrow begins a cue of subtitles.

    Each event of an edit list, a line with a cut (C) of the video (V), has one marker (* LOC).
    """
    table = export(film, "csv", people=HOSTILE_DECISIONS)
    assert not re.search(r"(^|,)\"?[=+@]", table, re.MULTILINE)

    edit_list = export(film, "edl", people=HOSTILE_DECISIONS)
    assert edit_list.isascii()
    assert edit_list.count("  V     C  ") == edit_list.count("* LOC")

    for kind in ("vtt", "srt"):
        subtitles = export(film, kind, people=HOSTILE_DECISIONS)
        cues = re.findall(r"^\d\d:.* --> ", subtitles, re.MULTILINE)
        assert subtitles.count(" --> ") == len(cues)
