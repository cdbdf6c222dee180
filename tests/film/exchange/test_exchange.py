"""Exports read back by other tools: no millisecond off, caveats in each, nothing dangerous in any."""

import csv
import io
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import PLANTED, import_spans, time_code
from obygaze_film.claims import Words, of_film, phrases
from obygaze_film.errors import FilmError
from obygaze_film.exchange import FORMATS, KINDS, export, write_export
from obygaze_film.exchange.eaf import BINS, to_eaf
from obygaze_film.exchange.frames import COLOURS
from obygaze_film.exchange.registry import collect
from obygaze_film.exchange.tiers import Tier, TierSpan
from tests.film.page.invented import invented_film, with_model

NASTY = "A <b> & \"x\" 'y' --> </script> =1+1\n\nNOTE"
SMALL = {"n_rows": 40, "duration_s": 600.0}


@pytest.fixture(scope="module")
def film():
    return invented_film(**SMALL)


@pytest.fixture(scope="module")
def segments(film):
    """Start and end of all listed segments in milliseconds, in the order of time."""
    table = film.segments(top=20).sort_values("start_s")
    return [(round(1000 * a), round(1000 * b)) for a, b in table[["start_s", "end_s"]].to_numpy()]


@pytest.fixture(scope="module")
def eaf(film, tmp_path_factory):
    path = tmp_path_factory.mktemp("eaf") / "film.eaf"
    path.write_text(export(film, "eaf", top=20), encoding="utf-8")
    return path


def test_every_format_says_what_the_scores_are_not_and_gives_the_same_bytes_again(film, kind):
    text = export(film, kind)
    assert "no annotation by people" in text.replace("_", " ")
    assert text == export(invented_film(**SMALL), kind)


def test_exports_of_a_model_of_planted_labels_say_that_nobody_judged_them(film, kind):
    notes = collect(with_model(film, labelled_by=[PLANTED], human=None), kind).caveats
    assert Words("en")["about_1_planted"] in notes
    assert not any("Disagreement is data" in note for note in notes)
    text = export(with_model(film, labelled_by=[PLANTED], human=None), kind)
    assert "nobody judged them" in " ".join(text.replace("_", " ").replace("\n* ", " ").split())
    assert any("Disagreement is data" in note for note in collect(film, kind).caveats)


def test_exports_of_a_model_of_labels_of_a_program_and_of_people_say_whose_they_are(film):
    partly = with_model(film, labelled_by=["AB", PLANTED], human=None)
    (note,) = (note for note in collect(partly, "eaf").caveats if "A program gave" in note)
    assert note.endswith("the others were labelled by AB.")


def test_our_part_of_elans_schema_holds(eaf):
    xmlschema = pytest.importorskip("xmlschema")
    xmlschema.XMLSchema(Path(__file__).with_name("eaf-3.0.xsd")).validate(str(eaf))


def test_pympi_and_speach_read_elan_back_to_the_millisecond(eaf, film, segments):
    pympi = pytest.importorskip("pympi")
    read = pympi.Elan.Eaf(str(eaf))
    assert [(a, b) for a, b, *_ in sorted(read.get_annotation_data_for_tier("obygaze: segments"))] == segments
    rows = film.rows()
    rows = rows[rows["p"].notna()]
    level = sorted(read.get_annotation_data_for_tier("obygaze: level (p)"))
    spans = [(round(1000 * a), round(1000 * b)) for a, b in rows[["start_s", "end_s"]].to_numpy()]
    assert [(a, b) for a, b, *_ in level] == spans
    # Probabilities are one of five bins of a vocabulary.
    for (_, _, value), p in zip(level, rows["p"], strict=True):
        low, high = map(float, value.split(" to "))
        assert low <= p <= high
        assert value in BINS
    assert {value for *_, value in read.get_annotation_data_for_tier("obygaze: Body")} <= set(BINS)
    assert list(read.get_annotation_data_for_tier("human: level")) == []
    assert read.get_parameters_for_tier("human: concepts")["PARENT_REF"] == "human: level"
    elan = pytest.importorskip("speach.elan")
    document = elan.read_eaf(str(eaf))
    tier = document["obygaze: segments"]
    found = sorted((one.from_ts.value, one.to_ts.value) for one in tier.annotations)
    assert found == segments


def test_a_span_of_no_millisecond_has_one_in_elan():
    film = invented_film(**SMALL)
    film.shots.loc[0, "end_s"] = 0.0004
    assert re.findall('TIME_VALUE="(.*?)"', export(film, "eaf", tiers=["shots"]))[:2] == ["0", "1"]


def test_a_shot_of_which_nothing_is_marked_is_called_a_shot_and_not_by_its_detector():
    film = invented_film(**SMALL)
    film.shots.loc[0, "flags"] = "black"
    words = re.findall('text = "(.*?)"', export(film, "textgrid", tiers=["shots"]))
    assert words[:2] == ["black", "shot"]
    assert "own" not in words


def test_only_concepts_that_are_found_have_tiers(eaf):
    names = re.findall('TIER_ID="obygaze: ([^"]*)"', eaf.read_text(encoding="utf-8"))
    found = ["Type of shot", "Body", "Clothing", "Expression of emotion", "Activity"]
    assert names == ["segments", "level (p)", *found, "shots"]


def test_captions_read_back_to_the_millisecond(film, segments):
    webvtt = pytest.importorskip("webvtt")

    def milliseconds(clock):
        hours, minutes, seconds = clock.replace(",", ".").split(":")
        return round(1000 * (3600 * int(hours) + 60 * int(minutes) + float(seconds)))

    cues = list(webvtt.from_string(export(film, "vtt", top=20)))
    assert [(milliseconds(cue.start), milliseconds(cue.end)) for cue in cues] == segments
    blocks = export(film, "srt", top=20).strip().split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == [str(n) for n in range(1, len(segments) + 2)]
    clocks = [block.split("\n")[1].split(" --> ") for block in blocks[1:]]
    assert [tuple(map(milliseconds, both)) for both in clocks] == segments


def test_caveats_of_subtitles_are_no_span(film, segments, tmp_path):
    (tmp_path / "a.srt").write_text(export(film, "srt", top=20), encoding="utf-8")
    assert len(import_spans([tmp_path / "a.srt"], tmp_path).manifest) == len(segments)


@pytest.mark.parametrize(("kind", "adapter"), [("otio", "otio_json"), ("fcpxml7", "fcp_xml")])
def test_video_editors_get_markers_to_the_frame(film, segments, kind, adapter):
    otio = pytest.importorskip("opentimelineio")
    rate = Fraction(24000, 1001)
    text = export(film, kind, tiers=["segments"], rate=rate, top=20)
    if adapter == "fcp_xml":
        pytest.importorskip("otio_fcp_adapter")
    read = otio.adapters.read_from_string(text, adapter)
    markers = [marker for clip in read.find_clips() for marker in clip.markers]
    frames = [
        (one.marked_range.start_time.value, one.marked_range.end_time_exclusive().value) for one in markers
    ]
    assert frames == [(round(a * rate / 1000), round(b * rate / 1000)) for a, b in segments]
    assert "rounded to frames" in FORMATS[kind].loses


EVENT = re.compile(
    r"(\d{3})  001      V     C        (\S+) (\S+) \2 \3  \n"
    r" \|C:ResolveColor(\w+) \|M:([^|]*) \|D:(\d+)\n\* LOC: \2 "
)


@pytest.mark.parametrize(
    ("rate", "start"),
    [("25", ""), ("25", "01:00:00:00"), ("30000/1001", "01:00:00;00"), ("24000/1001", "10:00:00:00")],
)
def test_an_edit_list_has_markers_of_resolve_with_their_ends_from_the_start_time_code(
    film, segments, rate, start
):
    """An event lasts one frame; its marker says how many frames the segment has."""
    fps = Fraction(rate)

    def frame_of(label):
        return round(Fraction(time_code(label, fps)) * fps)

    text = export(film, "edl", rate=fps, top=20, start=start)
    offset = frame_of(start or "0")
    found = []
    for event in EVENT.findall(text):
        first, end, n_frames = frame_of(event[1]) - offset, frame_of(event[2]) - offset, int(event[5])
        assert end == first + 1
        found.append((first, first + n_frames))
    assert found == [tuple(round(Fraction(ms, 1000) * fps) for ms in segment) for segment in segments]
    # OpenTimelineIO takes a comment above the first event for an event.
    assert f"FCM: {'DROP' if ';' in start else 'NON-DROP'} FRAME\n\n001 " in text
    assert text.isascii()


def test_pyannote_reads_turns_with_their_caveats(film, segments):
    text = export(film, "rttm", tiers=["segments"], top=20)
    read = pd.read_csv(io.StringIO(text), names=range(10), sep=r"\s+", dtype={3: float, 4: float})
    assert [(round(1000 * a), round(1000 * (a + n))) for a, n in read[[3, 4]].to_numpy()] == segments
    assert set(read[7]) == {"obygaze:_segments"}


@pytest.fixture(scope="module")
def without_a_passage(film):
    """The film by a model whose threshold no place reaches."""
    return with_model(film, threshold_p=0.999)


def test_pyannote_reads_a_file_of_caveats_alone_as_one_without_turns(without_a_passage):
    text = export(without_a_passage, "rttm", tiers=["segments"])
    assert text.startswith(";;_Scores_of_a_model_")
    # As pyannote.database reads it: columns by name, and turns by the second one.
    read = pd.read_csv(io.StringIO(text), names=range(10), sep=r"\s+", dtype={1: str, 3: float, 4: float})
    assert len(read) == 1
    assert len(read.groupby(1)) == 0


@pytest.mark.parametrize("format_name", ["edl", "csv"])
def test_caveats_that_a_file_has_no_place_for_are_told(without_a_passage, film, tmp_path, format_name):
    path = tmp_path / "out"
    told = write_export(without_a_passage, format_name, path, tiers=["segments"])
    assert told.startswith("The file has no span, and so no place for these notes: Scores of a model")
    assert "No passage that the model can judge reaches the threshold" in told
    assert "Scores of a model" not in path.read_text(encoding="utf-8")
    assert write_export(film, format_name, path, tiers=["segments"]) == ""
    assert "Scores of a model" in path.read_text(encoding="utf-8")


def test_concepts_without_a_tier_are_named_in_the_file_and_told(film, kind, tmp_path):
    """Of the eight concepts the tests of the model show five to be found better than chance."""
    left_out = "The tiers of concepts leave out Look, Posture and Appearance: "
    told = write_export(film, kind, tmp_path / "out", tiers=["segments", "concepts"])
    assert told.startswith(left_out)
    assert left_out in " ".join(collect(film, kind, tiers=["segments", "concepts"]).caveats)
    assert "leave out" not in write_export(film, kind, tmp_path / "out", tiers=["segments"])


def test_every_format_says_how_many_decimals_its_probabilities_have(film, kind):
    text = export(film, kind, tiers=["segments"])
    loses = FORMATS[kind].loses
    passage = film.segments(top=0).iloc[0]
    four, two = f"{passage['p']:.4f}".rstrip("0"), f"{passage['p']:.2f}"
    if kind == "rttm":
        assert "without probabilities" in loses
        assert two not in text
    elif "four decimals" in loses:
        assert four in text
    else:
        assert "two decimals" in loses
        assert two in text
        assert four not in text


@pytest.mark.parametrize(
    ("rate", "start"), [("12.5", ""), ("120", ""), ("25", "01:00:00;00"), ("29.97", "00:01:00;00")]
)
def test_a_start_or_rate_without_time_code_is_refused(film, rate, start):
    with pytest.raises((ManifestError, FilmError)):
        export(film, "edl", rate=Fraction(rate) if rate != "29.97" else Fraction(30000, 1001), start=start)


def test_a_rate_without_time_code_is_refused_for_an_editor_too(film):
    pytest.importorskip("opentimelineio")
    with pytest.raises(FilmError, match=r"12\.5"):
        export(film, "fcpxml7", rate=Fraction("12.5"))


def test_a_day_of_time_codes_begins_anew_and_an_absent_tier_is_named(film):
    text = export(film, "edl", rate=Fraction(25), start="23:59:59:24")
    assert {label[:2] for label in re.findall(r"\d\d:\d\d:\d\d:\d\d", text)} <= {"23", "00"}
    assert "no subtitles" in collect(film, "vtt", tiers=("subtitles",)).notice


def test_praat_reads_its_tiers_back(film, tmp_path):
    path = tmp_path / "film.TextGrid"
    path.write_text(export(film, "textgrid"), encoding="utf-8")
    textgrid = pytest.importorskip("praatio.textgrid")
    read = textgrid.openTextgrid(str(path), includeEmptyIntervals=False)
    table = film.segments(top=0).sort_values("start_s")
    found = [(one.start, one.end) for one in read.getTier("obygaze: segments").entries]
    assert found == [(round(a, 6), round(b, 6)) for a, b in table[["start_s", "end_s"]].to_numpy()]
    assert read.maxTimestamp == film.record.duration_s


def test_no_export_comes_back_as_a_label(film, tmp_path):
    for kind in (
        "textgrid",
        "rttm",
        "eaf",
        "otio",
        "fcpxml7",
        "markers",
        "edl",
        "jsonld",
        "iiif",
        "refi-qda",
    ):
        if kind in {"otio", "fcpxml7"}:
            pytest.importorskip("opentimelineio")
        (tmp_path / f"film.{kind}").write_text(export(film, kind, top=20), encoding="utf-8")
        imported = import_spans([tmp_path / f"film.{kind}"], tmp_path, annotator="AB", rate=Fraction(24))
        assert not imported.manifest.clips, kind
        assert imported.accounts[0].shows_model_output, kind
        (account,) = imported.accounts
        assert account.seen == len(account.left_out)


def test_lines_that_overlap_are_on_tiers_of_their_own_in_elan(film):
    said = film.subtitles.iloc[:0].copy()
    said.loc[0], said.loc[1] = [1.0, 10.0, "Sign"], [2.0, 3.0, "Line"]
    both = replace(film, subtitles=said)
    names = re.findall('TIER_ID="(obygaze: [^"]*)"', export(both, "eaf", tiers=["subtitles"]))
    assert names == ["obygaze: subtitles", "obygaze: subtitles (2)"]


def test_web_annotations_have_media_fragments_and_name_the_model(film):
    found = json.loads(export(film, "jsonld"))
    assert found["type"] == "AnnotationCollection"
    assert found["creator"]["type"] == "Software"
    assert "1f" * 32 in found["creator"]["id"]
    items = found["first"]["items"]
    assert found["total"] == len(items)
    row = film.segments(top=0).sort_values("start_s").iloc[0]
    assert items[0]["target"]["selector"]["value"] == f"t={row['start_s']},{row['end_s']}"
    assert {one["motivation"] for one in items} == {"classifying"}


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")  # rdflib's own parser of JSON-LD
def test_web_annotations_are_linked_data_each_with_one_iri(film):
    rdflib = pytest.importorskip("rdflib")
    document = json.loads(export(film, "jsonld", top=20))
    keys = {"id": "@id", "type": "@type"}
    iris = {name: {"@type": "@id"} for name in ("motivation", "generator", "conformsTo", "rights", "partOf")}
    # As much of http://www.w3.org/ns/anno.jsonld as decides what is an IRI.
    document["@context"] = {
        "@vocab": "urn:oa:",
        **keys,
        **{n: {"@id": f"urn:oa:{n}", **t} for n, t in iris.items()},
    }
    graph = rdflib.Graph().parse(data=json.dumps(document), format="json-ld")
    kinds = {
        kind: set(graph.subjects(rdflib.RDF.type, rdflib.URIRef(f"urn:oa:{kind}")))
        for kind in ("Annotation", "AnnotationPage", "AnnotationCollection")
    }
    assert [len(kinds[kind]) for kind in kinds] == [document["total"], 1, 1]
    assert all(isinstance(node, rdflib.URIRef) for nodes in kinds.values() for node in nodes)
    assert {body["type"] for item in document["first"]["items"] for body in item["body"]} == {"TextualBody"}


@pytest.mark.parametrize("top", [0, 20])
def test_iiifs_own_parser_reads_the_manifest_back(film, top):
    iiif = pytest.importorskip("iiif_prezi3")
    text = export(film, "iiif", top=top)
    manifest = iiif.Manifest.model_validate_json(text)
    (canvas,) = manifest.items
    assert canvas.duration == film.record.duration_s
    (page,) = canvas.annotations
    concepts = json.loads(export(film, "jsonld", top=top))["total"] - len(film.segments(top=top))
    assert len(page.items) == len(film.segments(top=top)) + concepts
    assert len({item.id for item in page.items}) == len(page.items)
    first = film.segments(top=top).sort_values("start_s").iloc[0]
    assert json.loads(text)["items"][0]["annotations"][0]["items"][0]["target"] == (
        f"{canvas.id}#t={first['start_s']},{first['end_s']}"
    )


def test_levels_that_people_write_into_the_table_are_judgements_in_sight_of_the_score(film, tmp_path):
    rows = list(csv.DictReader(io.StringIO(export(film, "csv", tiers=["segments", "concepts"], top=20))))
    table = pd.DataFrame(rows)
    table.loc[1, ["level", "concepts", "annotator"]] = "S", "Body", "AB"
    table.to_csv(tmp_path / "a.csv", index=False)
    imported = import_spans([tmp_path / "a.csv"], tmp_path)
    (clip,) = imported.manifest
    assert (repr(clip.start_s), clip.level, clip.concepts) == (table["start_s"][1], "S", ("Body",))
    assert (clip.annotator, clip.extras["seen_score"]) == ("AB", "1")
    assert len(imported.accounts[0].left_out) == len(table) - 1


def test_the_table_has_numbers_and_no_formulas():
    film = invented_film("=cmd|' /C calc'!A0", NASTY, **SMALL)
    rows = list(csv.DictReader(io.StringIO(export(film, "csv", top=20))))
    assert {row["movie"][0] for row in rows} == {"'"}
    assert all(float(row["p"]) for row in rows)
    assert rows[0]["caveats"]
    assert not any(row["caveats"] for row in rows[1:])
    assert all(cell[:1] not in set("=+-@") for row in rows for cell in row.values())


@pytest.mark.parametrize("kind", ["eaf", "vtt", "srt", "jsonld", "edl"])
def test_no_title_breaks_a_format(kind, segments):
    text = export(invented_film("m/<&>", NASTY, **SMALL), kind, top=20)
    if kind == "eaf":
        import xml.etree.ElementTree as ET

        root = ET.fromstring(text)  # noqa: S314
        assert root.find("HEADER/PROPERTY[@NAME='obygaze movie']").text == "m/<&>"
    elif kind == "vtt":
        webvtt = pytest.importorskip("webvtt")
        assert len(list(webvtt.from_string(text))) == len(segments)
        assert text.count("\n\nNOTE") == 1
    elif kind == "srt":
        assert text.count(" --> ") == len(segments) + 1
        assert not set("<{}") & set(text)
    elif kind == "jsonld":
        assert json.loads(text)["label"].startswith("A <b>")
        assert "Amélie" in export(invented_film("m", "Amélie", **SMALL), kind, top=20)
    else:
        assert len(text.split("\n")[0]) < 80


def test_every_kind_of_tier_has_a_colour_of_markers():
    assert COLOURS.keys() == set(KINDS)


@pytest.mark.parametrize("wrong", ["docx", "words"])
def test_what_cannot_be_written_is_refused_by_name(film, wrong):
    with pytest.raises(FilmError, match=f"'{wrong}'"):
        export(film, "docx") if wrong == "docx" else export(film, "vtt", tiers=[wrong])


def test_a_probability_of_a_hundred_percent_is_in_the_last_bin(film):
    spans = tuple(TierSpan(n, n + 1, "", p) for n, p in enumerate((0.0, 0.19, 0.2, 0.8, 1.0)))
    text = to_eaf(replace(collect(film, "eaf"), tiers=(Tier("level", "p", spans),)))
    said = re.findall(r"<ANNOTATION_VALUE>([^<]*)", text)
    assert said == [BINS[place] for place in (0, 0, 1, 4, 4)]


def test_every_note_has_the_conditions_that_the_page_has(film, kind):
    """Of a film trained on, black in part, scored in longer windows, with a concept near chance."""
    table = film.table.copy()
    table.loc[3, ["p", "p_low", "p_high"]], table.loc[3, "flags"] = float("nan"), "black"
    trained = with_model(replace(film, table=table), is_trained_on=True, clip_s=6.083)
    caveats = " ".join(collect(trained, kind).caveats)
    words = Words("en")
    near_chance = [concept.name for concept in film.model().concepts if concept.is_near_chance]
    model, judged = trained.model(), trained.time()
    told = [
        words["trained_on"],
        phrases.evidence_sentence(of_film.model_evidence(model), words),
        phrases.windows_sentence(of_film.other_windows(model, film.record.windows), words),
        phrases.near_chance_caveat(near_chance, words),
        phrases.nothing_caveat(of_film.judged_time(model, judged), words),
    ]
    assert near_chance
    assert judged.nothing_s
    assert [text for text in told if text not in caveats] == []
    assert "6.08" in export(trained, kind)
