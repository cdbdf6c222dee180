"""Exports read back by other tools: no millisecond off, caveats in each, nothing dangerous in any."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import PLANTED, import_spans, time_code
from obygaze_film.claims import Words, of_film, phrases
from obygaze_film.errors import FilmError
from obygaze_film.exchange import FORMATS, export, write_export
from obygaze_film.exchange.eaf import BINS, to_eaf
from obygaze_film.exchange.registry import collect
from obygaze_film.exchange.tiers import Tier, TierSpan
from tests.film.page.invented import ten_minute_film, with_model

NASTY = "A <b> & \"x\" 'y' --> </script> =1+1\n\nNOTE"


@pytest.fixture(scope="module")
def film():
    return ten_minute_film()


@pytest.fixture(scope="module")
def segments_ms(film):
    """Start and end of all listed segments in milliseconds, in the order of time."""
    table = film.segments(top=20).sort_values("start_s")
    return [(round(1000 * a), round(1000 * b)) for a, b in table[["start_s", "end_s"]].to_numpy()]


@pytest.fixture(scope="module")
def eaf(film, tmp_path_factory):
    path = tmp_path_factory.mktemp("eaf") / "film.eaf"
    path.write_text(export(film, "eaf", top=20), encoding="utf-8")
    return path


def test_every_format_says_that_scores_are_no_annotation_by_people(film, kind):
    text = export(film, kind)
    assert "no annotation by people" in text.replace("_", " ")  # RTTM writes _ for a space


def test_two_exports_of_a_film_have_the_same_bytes(kind):
    assert export(ten_minute_film(), kind) == export(ten_minute_film(), kind)


def labelled_by(film, *annotators):
    """Return the film as scored by a model whose training clips these annotators labelled.

    One called `PLANTED` is a program. The model's record of experts' labels (`human`) is removed, as a text
    on it would take the place of that on the annotators.
    """
    return with_model(film, labelled_by=list(annotators), human=None)


def one_line(text):
    """Join the lines of an export; RTTM writes _ for a space, edit lists begin comments by *."""
    return " ".join(text.replace("_", " ").replace("\n* ", " ").split())


def test_exports_of_a_model_of_planted_labels_say_that_nobody_judged_them(film, kind):
    by_program = labelled_by(film, PLANTED)
    assert Words("en")["about_1_planted"] in collect(by_program, kind).caveats
    assert "nobody judged them" in one_line(export(by_program, kind))


def test_exports_speak_of_disagreeing_experts_only_if_people_labelled_the_training_clips(film):
    def caveats_on_experts(film):
        return [note for note in collect(film, "eaf").caveats if "Disagreement is data" in note]

    assert caveats_on_experts(film)
    assert not caveats_on_experts(labelled_by(film, PLANTED))


def test_exports_name_the_people_who_labelled_what_a_program_did_not(film):
    exported = collect(labelled_by(film, "AB", PLANTED), "eaf")
    (note,) = [note for note in exported.caveats if "A program gave" in note]
    assert note.endswith("the others were labelled by AB.")


def test_our_part_of_elans_schema_holds(eaf):
    xmlschema = pytest.importorskip("xmlschema")
    xmlschema.XMLSchema(Path(__file__).with_name("eaf-3.0.xsd")).validate(str(eaf))


def test_pympi_reads_the_segments_back_to_the_millisecond(eaf, segments_ms):
    pympi = pytest.importorskip("pympi")
    annotations = pympi.Elan.Eaf(str(eaf)).get_annotation_data_for_tier("obygaze: segments")
    assert [(start, end) for start, end, *_ in sorted(annotations)] == segments_ms


def test_speach_reads_the_segments_back_to_the_millisecond(eaf, segments_ms):
    elan = pytest.importorskip("speach.elan")
    annotations = elan.read_eaf(str(eaf))["obygaze: segments"].annotations
    assert (
        sorted((annotation.from_ts.value, annotation.to_ts.value) for annotation in annotations)
        == segments_ms
    )


def test_elan_has_each_rows_probability_as_one_of_five_ranges(eaf, film):
    """`BINS` are "0.0 to 0.2" and so on: ELAN lists each distinct value, and exact ones would be many."""
    pympi = pytest.importorskip("pympi")
    read = pympi.Elan.Eaf(str(eaf))
    rows = film.rows().dropna(subset="p")
    annotations = sorted(read.get_annotation_data_for_tier("obygaze: level (p)"))
    for (start_ms, end_ms, value), row in zip(annotations, rows.itertuples(), strict=True):
        assert (start_ms, end_ms) == (round(1000 * row.start_s), round(1000 * row.end_s))
        assert value in BINS
        low, high = map(float, value.split(" to "))
        assert low <= row.p <= high
    body = {value for *_, value in read.get_annotation_data_for_tier("obygaze: Body")}
    assert body <= set(BINS)


def test_elan_has_empty_tiers_for_people_to_write_into(eaf):
    pympi = pytest.importorskip("pympi")
    read = pympi.Elan.Eaf(str(eaf))
    assert list(read.get_annotation_data_for_tier("human: level")) == []
    assert read.get_parameters_for_tier("human: concepts")["PARENT_REF"] == "human: level"


def test_a_span_shorter_than_a_millisecond_lasts_one_millisecond_in_elan():
    film = ten_minute_film()
    film.shots.loc[0, "end_s"] = 0.0004  # the first shot begins at 0
    times_ms = re.findall('TIME_VALUE="(.*?)"', export(film, "eaf", tiers=["shots"]))
    assert times_ms[:2] == ["0", "1"]


def test_a_shot_is_named_by_its_flags_or_else_shot_and_never_by_its_detector():
    film = ten_minute_film()
    film.shots.loc[0, "flags"] = "black"
    names = re.findall('text = "(.*?)"', export(film, "textgrid", tiers=["shots"]))
    assert names[:2] == ["black", "shot"]
    assert set(film.shots["detector"]) == {"own"}
    assert "own" not in names


def test_only_concepts_that_are_found_have_tiers(eaf, film):
    names = re.findall('TIER_ID="obygaze: ([^"]*)"', eaf.read_text(encoding="utf-8"))
    found = [concept.name for concept in film.model().concepts if concept.is_found]
    assert found == ["Type of shot", "Body", "Clothing", "Expression of emotion", "Activity"]
    assert names == ["segments", "level (p)", *found, "shots"]


def clock_ms(clock):
    """Return the milliseconds of hh:mm:ss.mmm; SubRip has a comma for the point."""
    hours, minutes, seconds = clock.replace(",", ".").split(":")
    return round(1000 * (3600 * int(hours) + 60 * int(minutes) + float(seconds)))


def test_webvtts_own_reader_reads_cues_back_to_the_millisecond(film, segments_ms):
    webvtt = pytest.importorskip("webvtt")
    cues = webvtt.from_string(export(film, "vtt", top=20))
    assert [(clock_ms(cue.start), clock_ms(cue.end)) for cue in cues] == segments_ms


def test_subrip_has_a_block_of_caveats_and_one_per_segment_all_numbered_from_1(film, segments_ms, tmp_path):
    """The block of caveats is imported as no span."""
    text = export(film, "srt", top=20)
    (tmp_path / "a.srt").write_text(text, encoding="utf-8")
    assert len(import_spans([tmp_path / "a.srt"], tmp_path).manifest) == len(segments_ms)

    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    _caveats, *blocks_of_segments = blocks
    numbers = [int(number) for number, *_ in blocks]
    assert numbers == list(range(1, len(blocks) + 1))
    times_ms = []
    for _number, times, *_text in blocks_of_segments:
        start, end = times.split(" --> ")
        times_ms.append((clock_ms(start), clock_ms(end)))
    assert times_ms == segments_ms


@pytest.mark.parametrize(("kind", "adapter"), [("otio", "otio_json"), ("fcpxml7", "fcp_xml")])
def test_video_editors_get_markers_to_the_frame(film, segments_ms, kind, adapter):
    otio = pytest.importorskip("opentimelineio")
    if adapter == "fcp_xml":
        pytest.importorskip("otio_fcp_adapter")
    fps = Fraction(24000, 1001)
    text = export(film, kind, tiers=["segments"], rate=fps, top=20)
    read = otio.adapters.read_from_string(text, adapter)
    ranges = [marker.marked_range for clip in read.find_clips() for marker in clip.markers]
    frames = [(time_range.start_time.value, time_range.end_time_exclusive().value) for time_range in ranges]
    assert frames == [(round(start * fps / 1000), round(end * fps / 1000)) for start, end in segments_ms]
    assert "rounded to frames" in FORMATS[kind].loses


EDL_EVENT = re.compile(
    r"\d{3}  001      V     C        (?P<start>\S+) (?P<end>\S+) (?P=start) (?P=end)  \n"
    r" \|C:ResolveColor\w+ \|M:[^|]* \|D:(?P<n_frames>\d+)\n\* LOC: (?P=start) "
)
"""An event of an edit list: its time codes, and the length of the marker that DaVinci Resolve reads."""


@pytest.mark.parametrize(
    ("rate", "start_code"),
    [
        ("25", "00:00:00:00"),
        ("25", "01:00:00:00"),
        ("30000/1001", "01:00:00;00"),
        ("24000/1001", "10:00:00:00"),
    ],
)
def test_an_edit_list_has_a_marker_for_each_segment_in_frames_after_the_start_time_code(
    film, segments_ms, rate, start_code
):
    """As DaVinci Resolve reads them: an event lasts one frame, and its marker has the segment's frames."""
    fps = Fraction(rate)

    def frame_number(code):
        seconds = time_code(code, fps)
        return round(Fraction(seconds) * fps)

    text = export(film, "edl", rate=fps, top=20, start=start_code)
    segments_in_frames = []
    for event in EDL_EVENT.finditer(text):
        event_start, event_end = frame_number(event["start"]), frame_number(event["end"])
        assert event_end - event_start == 1
        first = event_start - frame_number(start_code)  # the film begins at the start time code
        segments_in_frames.append((first, first + int(event["n_frames"])))
    expected = []
    for start_ms, end_ms in segments_ms:
        expected.append((round(start_ms * fps / 1000), round(end_ms * fps / 1000)))
    assert segments_in_frames == expected


@pytest.mark.parametrize(("start", "kind"), [("01:00:00:00", "NON-DROP"), ("01:00:00;00", "DROP")])
def test_an_edit_list_is_ascii_and_has_no_comment_above_its_first_event(film, start, kind):
    """OpenTimelineIO takes a comment above the first event for an event. A ; means drop frame."""
    text = export(film, "edl", rate=Fraction(30000, 1001), start=start)
    assert f"FCM: {kind} FRAME\n\n001 " in text
    assert text.isascii()


RTTM_COLUMNS = (
    "type", "file", "channel", "start_s", "duration_s", "orthography", "kind", "speaker", "p", "lookahead",
)  # fmt: skip


def test_rttm_has_one_speakers_turn_per_segment_in_the_columns_that_pyannote_reads(film, segments_ms):
    text = export(film, "rttm", tiers=["segments"], top=20)
    turns = pd.read_csv(io.StringIO(text), names=RTTM_COLUMNS, sep=r"\s+")
    start_s, duration_s = turns["start_s"].astype(float), turns["duration_s"].astype(float)
    starts_ms = (1000 * start_s).round()
    ends_ms = (1000 * (start_s + duration_s)).round()
    assert list(zip(starts_ms, ends_ms, strict=True)) == segments_ms


def test_turns_of_passages_below_the_threshold_are_labelled_so(film):
    text = export(film, "rttm", tiers=["segments"], top=20)
    turns = pd.read_csv(io.StringIO(text), names=RTTM_COLUMNS, sep=r"\s+")
    reaching = film.segments(top=0)["start_s"]
    is_reaching = turns["start_s"].astype(float).isin(reaching.round(3))
    assert 0 < is_reaching.sum() < len(turns)
    assert set(turns["speaker"][is_reaching]) == {"obygaze:_segments"}
    assert set(turns["speaker"][~is_reaching]) == {"obygaze:_segments_below_the_threshold"}


@pytest.mark.parametrize(
    ("rate", "start"),
    [
        ("12.5", "00:00:00:00"),
        ("120", "00:00:00:00"),
        ("25", "01:00:00;00"),
        ("30000/1001", "00:01:00;00"),
    ],
    ids=[
        "a rate that is no whole number",
        "a rate of three digits",
        "drop frame at a whole rate",
        "a frame number that is dropped",
    ],
)
def test_an_edit_list_without_time_codes_is_refused(film, rate, start):
    """Time codes number the frames of a second, in two digits. A ; before the frames means drop frame."""
    with pytest.raises((ManifestError, FilmError)):
        export(film, "edl", rate=Fraction(rate), start=start)


def test_a_rate_without_time_code_is_refused_for_an_editor_too(film):
    pytest.importorskip("opentimelineio")
    with pytest.raises(FilmError, match=r"12\.5"):
        export(film, "fcpxml7", rate=Fraction("12.5"))


@pytest.fixture(scope="module")
def without_a_passage(film):
    """The film by a model whose threshold no place reaches."""
    return with_model(film, threshold_p=0.999)


def test_pyannote_reads_a_file_of_caveats_alone_as_one_without_turns(without_a_passage):
    """pyannote.database reads ten columns, and groups turns by the second one, the film.

    A line of caveats is one word, so that its second column is empty, and a group of it is left out.
    """
    text = export(without_a_passage, "rttm", tiers=["segments"])
    assert text.startswith(";;_Scores_of_a_model_")
    film, start, duration = 1, 3, 4  # numbers of columns
    types = {film: str, start: float, duration: float}
    table = pd.read_csv(io.StringIO(text), names=range(10), sep=r"\s+", dtype=types)
    assert len(table) == 1
    assert len(table.groupby(film)) == 0


@pytest.mark.parametrize("format_name", ["edl", "csv"])
def test_caveats_that_a_file_has_no_place_for_are_told(without_a_passage, film, tmp_path, format_name):
    path = tmp_path / "out"
    notice = write_export(without_a_passage, format_name, path, tiers=["segments"])
    assert notice.startswith("The file has no span, and so no place for these notes: Scores of a model")
    assert "No passage that the model can judge reaches the threshold" in notice
    assert "Scores of a model" not in path.read_text(encoding="utf-8")
    assert write_export(film, format_name, path, tiers=["segments"]) == ""
    assert "Scores of a model" in path.read_text(encoding="utf-8")


def test_concepts_without_a_tier_are_named_in_the_file_and_told(film, kind, tmp_path):
    """Of the eight concepts the tests of the model show five to be found better than chance."""
    left_out = "The tiers of concepts leave out Look, Posture and Appearance: "
    notice = write_export(film, kind, tmp_path / "out", tiers=["segments", "concepts"])
    assert notice.startswith(left_out)
    assert left_out in " ".join(collect(film, kind, tiers=["segments", "concepts"]).caveats)
    assert "leave out" not in write_export(film, kind, tmp_path / "out", tiers=["segments"])


def test_every_format_says_how_many_decimals_its_probabilities_have(film, kind):
    text = export(film, kind, tiers=["segments"])
    loses = FORMATS[kind].loses
    p = film.segments(top=0).iloc[0]["p"]
    with_two_decimals = f"{p:.2f}"
    with_four_decimals = f"{p:.4f}".rstrip("0")  # as programs write numbers
    if kind == "rttm":
        assert "without probabilities" in loses
        assert with_two_decimals not in text
    elif "four decimals" in loses:
        assert with_four_decimals in text
    else:
        assert "two decimals" in loses
        assert with_two_decimals in text
        assert with_four_decimals not in text


def test_time_codes_begin_at_zero_again_after_24_hours(film):
    text = export(film, "edl", rate=Fraction(25), start="23:59:59:24")  # the last frame of the day
    hours = {code[:2] for code in re.findall(r"\d\d:\d\d:\d\d:\d\d", text)}
    assert hours == {"23", "00"}


def test_the_notice_of_an_export_names_a_tier_that_the_film_does_not_have(film):
    assert film.subtitles.empty
    assert "no subtitles" in collect(film, "vtt", tiers=["subtitles"]).notice


def test_praat_reads_its_tiers_back(film, tmp_path):
    textgrid = pytest.importorskip("praatio.textgrid")
    path = tmp_path / "film.TextGrid"
    path.write_text(export(film, "textgrid"), encoding="utf-8")
    read = textgrid.openTextgrid(str(path), includeEmptyIntervals=False)
    # By default an export has only the segments that reach the threshold, and so has top=0.
    segments = film.segments(top=0).sort_values("start_s")
    intervals = [(interval.start, interval.end) for interval in read.getTier("obygaze: segments").entries]
    assert intervals == [(round(a, 6), round(b, 6)) for a, b in segments[["start_s", "end_s"]].to_numpy()]
    assert read.maxTimestamp == film.record.duration_s


@pytest.mark.parametrize(
    "kind",
    ["textgrid", "rttm", "eaf", "otio", "fcpxml7", "markers", "edl", "jsonld", "iiif", "refi-qda"],
)
def test_spans_of_a_model_are_never_imported_as_labels(film, kind, tmp_path):
    """The account of the import lists each of them as left out, and says that the file shows scores."""
    if kind in {"otio", "fcpxml7"}:
        pytest.importorskip("opentimelineio")
    path = tmp_path / f"film.{kind}"
    path.write_text(export(film, kind, top=20), encoding="utf-8")
    imported = import_spans([path], tmp_path, annotator="AB", rate=Fraction(24))
    assert not imported.manifest.clips
    (account,) = imported.accounts
    assert account.shows_model_output
    assert account.seen == len(account.left_out)


def test_lines_that_overlap_are_on_tiers_of_their_own_in_elan(film):
    lines = pd.DataFrame({"start_s": [1.0, 2.0], "end_s": [10.0, 3.0], "text": ["Sign", "Line"]})
    text = export(replace(film, subtitles=lines), "eaf", tiers=["subtitles"])
    tiers = re.findall('TIER_ID="(obygaze: [^"]*)"', text)
    assert tiers == ["obygaze: subtitles", "obygaze: subtitles (2)"]


def test_web_annotations_name_the_model_and_point_at_their_spans_by_media_fragments(film):
    collection = json.loads(export(film, "jsonld"))
    assert collection["type"] == "AnnotationCollection"
    assert collection["creator"]["type"] == "Software"
    assert film.model().sha256 in collection["creator"]["id"]

    items = collection["first"]["items"]
    assert collection["total"] == len(items)
    assert {item["motivation"] for item in items} == {"classifying"}
    assert {body["type"] for item in items for body in item["body"]} == {"TextualBody"}
    first = film.segments(top=0).sort_values("start_s").iloc[0]
    assert items[0]["target"]["selector"]["value"] == f"t={first['start_s']},{first['end_s']}"


def annotation_context():
    """Return as much of http://www.w3.org/ns/anno.jsonld as decides which values are IRIs."""
    context = {"@vocab": "urn:oa:", "id": "@id", "type": "@type"}
    for name in ("motivation", "generator", "conformsTo", "rights", "partOf"):
        context[name] = {"@id": f"urn:oa:{name}", "@type": "@id"}
    return context


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")  # rdflib's own parser of JSON-LD
def test_web_annotations_are_linked_data_whose_nodes_have_iris(film):
    """A node of linked data has an IRI, by which others can refer to it, or is a blank node, which has none.

    The document names its context by an address. The context itself is put there, so that none is fetched.
    """
    rdflib = pytest.importorskip("rdflib")
    document = json.loads(export(film, "jsonld", top=20))
    with_context = document | {"@context": annotation_context()}
    graph = rdflib.Graph().parse(data=json.dumps(with_context), format="json-ld")
    n_of_types = {"Annotation": document["total"], "AnnotationPage": 1, "AnnotationCollection": 1}
    for type_name, n in n_of_types.items():
        nodes = set(graph.subjects(rdflib.RDF.type, rdflib.URIRef(f"urn:oa:{type_name}")))
        assert len(nodes) == n
        assert all(isinstance(node, rdflib.URIRef) for node in nodes)


@pytest.mark.parametrize("top", [0, 20])
def test_iiifs_own_parser_reads_the_manifest_back(film, top):
    iiif = pytest.importorskip("iiif_prezi3")
    manifest = iiif.Manifest.model_validate_json(export(film, "iiif", top=top))
    (canvas,) = manifest.items
    assert canvas.duration == film.record.duration_s
    (page,) = canvas.annotations
    web_annotations = json.loads(export(film, "jsonld", top=top))
    assert len(page.items) == web_annotations["total"]  # both have the segments and the concepts
    assert len({item.id for item in page.items}) == len(page.items)
    first = film.segments(top=top).sort_values("start_s").iloc[0]
    assert page.items[0].target == f"{canvas.id}#t={first['start_s']},{first['end_s']}"


def test_a_level_written_into_an_exported_table_is_imported_as_judged_in_sight_of_the_score(film, tmp_path):
    text = export(film, "csv", tiers=["segments", "concepts"], top=20)
    table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    table.loc[1, "level"] = "S"
    table.loc[1, "concepts"] = "Body"
    table.loc[1, "annotator"] = "AB"
    table.to_csv(tmp_path / "a.csv", index=False)

    imported = import_spans([tmp_path / "a.csv"], tmp_path)
    (clip,) = imported.manifest
    assert str(clip.start_s) == table.loc[1, "start_s"]
    assert clip.level == "S"
    assert clip.concepts == ("Body",)
    assert clip.annotator == "AB"
    assert clip.extras["seen_score"] == "1"
    assert len(imported.accounts[0].left_out) == len(table) - 1  # rows without a level


def test_no_cell_of_the_table_is_a_formula_to_a_spreadsheet():
    """Spreadsheets run cells that begin with = + - or @; an apostrophe before it makes a cell a text.

    Each row has a probability, and the first alone the caveats.
    """
    film = ten_minute_film("=cmd|' /C calc'!A0", NASTY)
    rows = list(csv.DictReader(io.StringIO(export(film, "csv", top=20))))
    assert {row["movie"] for row in rows} == {"'=cmd|' /C calc'!A0"}
    assert all(not cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    assert all(0 < float(row["p"]) < 1 for row in rows)
    first, *others = rows
    assert first["caveats"]
    assert not any(row["caveats"] for row in others)


def hostile_film():
    """Make a film whose id and title hold markup, quotes, an end of lines and a cue's arrow."""
    return ten_minute_film("m/<&>", NASTY)


def test_no_title_breaks_a_format(segments_ms):
    """Players read < and { of SubRip as formatting; a line of an edit list may have 80 letters."""
    webvtt = pytest.importorskip("webvtt")
    film = hostile_film()

    eaf = ET.fromstring(export(film, "eaf"))  # noqa: S314 - ours
    vtt = export(film, "vtt", top=20)
    srt = export(film, "srt", top=20)
    title_of_edl, *_ = export(ten_minute_film("m", NASTY * 3), "edl").split("\n")

    assert eaf.find("HEADER/PROPERTY[@NAME='obygaze movie']").text == "m/<&>"
    assert len(list(webvtt.from_string(vtt))) == len(segments_ms)
    assert vtt.count("\n\nNOTE") == 1
    assert srt.count(" --> ") == len(segments_ms) + 1  # and one block of caveats
    assert not set("<{}") & set(srt)
    assert json.loads(export(film, "jsonld"))["label"].startswith("A <b>")
    assert "Amélie" in export(ten_minute_film("m", "Amélie"), "jsonld")
    assert len(NASTY * 3) > 80 > len(title_of_edl)


def test_an_unknown_format_or_tier_is_refused_by_name(film):
    with pytest.raises(FilmError, match="'docx'"):
        export(film, "docx")
    with pytest.raises(FilmError, match="'words'"):
        export(film, "vtt", tiers=["words"])


@pytest.mark.parametrize(
    ("p", "value"),
    [
        (0.0, "0.0 to 0.2"),
        (0.19, "0.0 to 0.2"),
        (0.2, "0.2 to 0.4"),
        (0.8, "0.8 to 1.0"),
        (1.0, "0.8 to 1.0"),
    ],
)
def test_elan_has_a_probability_as_the_range_that_holds_it(film, p, value):
    """A range holds its lower end and not its upper one; the last holds both."""
    tier = Tier("level", "p", (TierSpan(0.0, 1.0, "", p),))
    text = to_eaf(replace(collect(film, "eaf"), tiers=(tier,)))
    assert re.findall(r"<ANNOTATION_VALUE>([^<]*)", text) == [value]


@pytest.fixture
def film_with_all_caveats(film):
    """A film that the model was trained on, with a black row.

    The model's clips have another length than the film's windows, and it found a concept no better than by
    chance.
    """
    table = film.table.copy()
    any_row = 3
    table.loc[any_row, ["p", "p_low", "p_high"]] = float("nan")
    table.loc[any_row, "flags"] = "black"
    return with_model(replace(film, table=table), is_trained_on=True, clip_s=6.083)


def test_the_caveats_of_exports_have_the_conditions_that_the_page_has(film_with_all_caveats):
    film, words = film_with_all_caveats, Words("en")
    model = film.model()
    near_chance = [concept.name for concept in model.concepts if concept.is_near_chance]
    assert near_chance
    assert film.time().black_or_credits_s
    caveats = " ".join(collect(film, "eaf").caveats)
    for sentence in (
        words["trained_on"],
        phrases.evidence_sentence(of_film.model_evidence(model), words),
        phrases.windows_sentence(of_film.other_windows(model, film.record.windows), words),
        phrases.near_chance_caveat(near_chance, words),
        phrases.black_caveat(of_film.judged_time(model, film.time()), words),
    ):
        assert sentence in caveats
    assert "6.08" in export(film, "eaf")  # seconds of a clip, as sentences round them
