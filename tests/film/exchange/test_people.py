"""What people decided, in every format: read by the tools' own readers with who and how, and back by ours."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from obygaze_features.manifest import import_spans
from obygaze_film.exchange import FORMATS, Decided, export
from tests.film.page.invented import invented_film

SMALL = {"n_rows": 40, "duration_s": 600.0}
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

WITH_TIERS = ("eaf", "textgrid")
LINES = ("vtt", "srt", "rttm")
READ_BACK = tuple(FORMATS)


@pytest.fixture(scope="module")
def film():
    return invented_film(**SMALL)


def written(film, kind, tmp_path, *decided, **options):
    path = tmp_path / f"film{FORMATS[kind].suffix}"
    path.write_text(export(film, kind, people=decided or ALL_DECISIONS, **options), encoding="utf-8")
    return path


def labelled(clips):
    found = []
    for clip in clips:
        if clip.level:
            times = round(clip.start_s, 3), round(clip.end_s, 3)
            found.append(
                (clip.annotator, *times, clip.level, clip.concepts, clip.extras.get("seen_score", ""))
            )
    return sorted(found)


def as_labelled(*decided):
    return sorted(
        (one.annotator, one.start_s, one.end_s, one.level, one.concepts, "0" if one.is_blind else "1")
        for one in decided
    )


def test_without_asking_no_export_holds_what_people_decided(film, kind):
    assert "human: level, blind" not in export(film, kind).replace("_", " ")


def test_every_format_says_who_decided_what_and_how(film, kind):
    """RTTM has no spaces in a label: it writes _ for them, and %5F for the _ of a name."""
    text = export(film, kind, people=ALL_DECISIONS)
    with_spaces = text.replace("_", " ").replace("%5F", "_")
    for words in ("AB", "blind", "in sight", "agreed"):
        assert words in with_spaces
    assert "C_D" in text or "C_D" in with_spaces
    assert "no annotation by people" not in with_spaces


@pytest.mark.parametrize("kind", READ_BACK)
def test_our_reader_gets_back_who_decided_what_and_how(film, kind, tmp_path):
    people = ALL_DECISIONS if kind in {"eaf", "csv"} else (AB_BLIND, AB_SIGHT, AB_LATER, CD_BLIND)
    path = written(film, kind, tmp_path, *people)
    manifest = import_spans([path], tmp_path, movie=film.movie).manifest
    own = [clip for clip in manifest if "," not in clip.annotator]
    assert labelled(own) == as_labelled(AB_BLIND, AB_SIGHT, AB_LATER, CD_BLIND)


def test_subtitles_that_an_editor_saved_as_ass_come_back_with_who_decided_what(film, tmp_path):
    pysubs2 = pytest.importorskip("pysubs2")
    decided = (AB_BLIND, AB_SIGHT, AB_LATER, CD_BLIND)
    pysubs2.load(written(film, "srt", tmp_path, *decided)).save(tmp_path / "film.ass")
    manifest = import_spans([tmp_path / "film.ass"], tmp_path, movie=film.movie).manifest
    assert labelled(manifest) == as_labelled(*decided)


@pytest.mark.parametrize("kind", ["eaf", "csv"])
def test_a_span_names_the_decision_that_it_shows(film, kind, tmp_path):
    manifest = import_spans([written(film, kind, tmp_path)], tmp_path).manifest
    found = {clip.extras["decision"]: (clip.annotator, clip.level) for clip in manifest if clip.level}
    assert found == {one.id: (one.annotator, one.level) for one in ALL_DECISIONS if one.level}


@pytest.mark.parametrize("kind", ["eaf", "textgrid", "srt", "vtt"])
def test_a_file_without_the_models_tiers_is_blind_of_them(film, kind, tmp_path):
    beside = import_spans([written(film, kind, tmp_path, AB_BLIND)], tmp_path)
    alone = import_spans([written(film, kind, tmp_path, AB_BLIND, tiers=["people"])], tmp_path)
    assert [one.accounts[0].shows_model_output for one in (beside, alone)] == [True, False]
    assert labelled(alone.manifest) == as_labelled(AB_BLIND)


def test_elans_own_reader_sees_the_tiers_of_people(film, tmp_path):
    pympi = pytest.importorskip("pympi")
    read = pympi.Elan.Eaf(str(written(film, "eaf", tmp_path)))
    tiers = {name for name in read.get_tier_names() if name.startswith("human: level")}
    assert tiers == {
        "human: level",
        "human: level, blind@AB",
        "human: level, in sight@AB",
        "human: level, in sight (2)@AB",
        "human: level, blind@C_D é",
        "human: level, agreed@AB, C_D é",
    }
    assert read.get_annotation_data_for_tier("human: level, blind@AB") == [(10000, 18500, "S")]
    assert read.get_parameters_for_tier("human: level, blind@AB")["ANNOTATOR"] == "AB"
    below = read.get_ref_annotation_data_for_tier("human: concepts, blind@AB")
    assert [one[2] for one in below] == ["Body;Clothing"]
    # Whoever adds annotations by a program does not trip over the ids of ours.
    read.add_annotation("human: level, blind@AB", 20000, 21000, "EN")


def test_elans_schema_holds(film, tmp_path):
    xmlschema = pytest.importorskip("xmlschema")
    schema = xmlschema.XMLSchema(Path(__file__).with_name("eaf-3.0.xsd"))
    schema.validate(str(written(film, "eaf", tmp_path)))


def test_praats_own_reader_sees_the_tiers_of_people(film, tmp_path):
    textgrid = pytest.importorskip("praatio.textgrid")
    read = textgrid.openTextgrid(str(written(film, "textgrid", tmp_path)), includeEmptyIntervals=False)
    assert [tuple(one) for one in read.getTier("human: level, blind@C_D é").entries] == [(10.0, 18.5, "EN")]
    assert [tuple(one) for one in read.getTier("human: concepts, agreed@AB, C_D é").entries] == [
        (10.0, 18.5, "Body")
    ]


@pytest.mark.parametrize("kind", ["vtt", "srt"])
def test_players_readers_see_who_decided(film, kind, tmp_path):
    pysubs2 = pytest.importorskip("pysubs2")
    read = pysubs2.load(str(written(film, kind, tmp_path)), encoding="utf-8")
    texts = {(event.start, event.end): [] for event in read}
    for event in read:
        texts[event.start, event.end].append(event.plaintext)
    assert "human: labels, blind@AB = S; Body; Clothing" in texts[10000, 18500]
    assert "human: labels, agreed@AB, C_D é = HN; Body" in texts[10000, 18500]


@pytest.mark.parametrize(("kind", "adapter"), [("otio", "otio_json"), ("fcpxml7", "fcp_xml")])
def test_video_editors_readers_see_who_decided(film, kind, adapter, tmp_path):
    otio = pytest.importorskip("opentimelineio")
    if adapter == "fcp_xml":
        pytest.importorskip("otio_fcp_adapter")
    read = otio.adapters.read_from_string(written(film, kind, tmp_path).read_text(encoding="utf-8"), adapter)
    names = [marker.name for clip in read.find_clips() for marker in clip.markers]
    assert "human: labels, blind@AB = S; Body; Clothing" in names
    assert "human: labels, agreed@AB, C_D é = HN; Body" in names
    if kind == "otio":
        facts = [marker.metadata["obygaze"] for clip in read.find_clips() for marker in clip.markers]
        (own,) = [fact for fact in facts if fact["tier"] == "human: labels, blind@AB"]
        assert (own["annotator"], own["how"], own["level"], own["seen_score"]) == ("AB", "blind", "S", 0)


def test_an_edit_list_names_who_decided(film, tmp_path):
    text = written(film, "edl", tmp_path).read_text(encoding="utf-8")
    assert "|M:human: labels, blind@AB = S; Body; Clothing |D:204" in text
    otio = pytest.importorskip("opentimelineio")
    if "cmx_3600" in otio.adapters.available_adapter_names():
        read = otio.adapters.read_from_string(text, "cmx_3600", rate=24)
        assert any(read.find_clips())


def test_pyannotes_columns_name_who_decided(film, tmp_path):
    pandas = pytest.importorskip("pandas")
    path = written(film, "rttm", tmp_path)
    read = pandas.read_csv(path, names=range(10), sep=r"\s+", dtype={3: float, 4: float})
    rows = read[read[7] == "human:_labels,_blind@C%5FD_é_=_EN"]
    assert rows[[3, 4]].to_numpy().tolist() == [[10.0, 8.5]]


def test_web_annotations_have_people_as_their_creators(film, tmp_path):
    document = json.loads(written(film, "jsonld", tmp_path).read_text(encoding="utf-8"))
    items = [item for item in document["first"]["items"] if "creator" in item]
    assert len(items) == 7  # five decisions, and two notes
    (settled,) = [item for item in items if len(item["creator"]) == 2]
    assert [person["name"] for person in settled["creator"]] == ["AB", "C_D é"]
    facts = json.loads(settled["body"][2]["value"])
    assert (facts["how"], facts["level"], facts["concepts"]) == ("agreed", "HN", ["Body"])
    assert facts["seen_score"] == 0  # the tier's name does not say it of what was agreed
    assert replace(SETTLED, is_blind=False).facts["seen_score"] == 1
    assert "seen_score" not in NOTE.facts
    assert {item["motivation"] for item in items} == {"classifying", "commenting"}
    assert len({item["id"] for item in items}) == len(items)


def test_iiifs_own_parser_sees_who_decided(film, tmp_path):
    iiif = pytest.importorskip("iiif_prezi3")
    manifest = iiif.Manifest.model_validate_json(written(film, "iiif", tmp_path).read_text(encoding="utf-8"))
    values = [item.body.value for item in manifest.items[0].annotations[0].items]
    assert "human: labels, blind@AB = S; Body; Clothing" in values


def test_a_hostile_note_or_name_breaks_no_format(film, kind, tmp_path):
    name = "=cmd() <b> | -->"
    people = (Decided(1.0, 5.0, (name,), "S", note=HOSTILE, id=ID.format(9)), NOTE, CD_BLIND)
    path = written(film, kind, tmp_path, *people)
    text = path.read_text(encoding="utf-8")
    if kind in {"jsonld", "iiif", "otio"}:
        json.loads(text)
    elif kind in {"eaf", "fcpxml7"}:
        assert "<script>" not in text
    elif kind == "csv":
        assert not re.search(r"(^|,)\"?[=+@]", text, re.MULTILINE)
    elif kind == "edl":
        assert text.isascii()
        assert text.count("  V     C  ") == text.count("* LOC")
    elif kind in {"vtt", "srt"}:
        assert text.count(" --> ") == len(re.findall(r"^\d\d:.* --> ", text, re.MULTILINE))
    if kind in READ_BACK:
        found = labelled(import_spans([path], tmp_path, movie=film.movie).manifest)
        assert as_labelled(CD_BLIND)[0] in found
        assert len(found) == 2
