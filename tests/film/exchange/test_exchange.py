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

HOSTILE_TITLE = "A <b> & \"x\" 'y' --> </script> =1+1\n\nNOTE"
"""It holds markup, quotes, a formula, an end of lines and the arrow of a cue."""


@pytest.fixture(scope="module")
def film_of_ten_minutes():
    """An invented film of ten minutes, scored by one model with eight concepts."""
    return ten_minute_film()


@pytest.fixture(scope="module")
def segments_ms(film_of_ten_minutes):
    """Start and end of all listed segments in milliseconds, in the order of time."""
    table = film_of_ten_minutes.segments(top=20).sort_values("start_s")
    return [(round(1000 * start), round(1000 * end)) for start, end in table[["start_s", "end_s"]].to_numpy()]


@pytest.fixture(scope="module")
def eaf(film_of_ten_minutes, tmp_path_factory):
    """The film as a document of ELAN: the path of the file."""
    path = tmp_path_factory.mktemp("eaf") / "film.eaf"
    path.write_text(export(film_of_ten_minutes, "eaf", top=20), encoding="utf-8")
    return path


def test_every_format_says_that_scores_are_no_annotation_by_people(film_of_ten_minutes, export_format):
    """Nobody decided anything of the film. Without the words an export might be taken for people's work."""
    text = export(film_of_ten_minutes, export_format)
    assert "no annotation by people" in text.replace("_", " ")  # RTTM writes _ for a space


def test_two_exports_of_a_film_have_the_same_bytes(export_format):
    """The film is made twice: nothing depends on the object, the time or a random number."""
    first = export(ten_minute_film(), export_format)
    second = export(ten_minute_film(), export_format)
    assert first == second


def labelled_by(film, *annotators):
    """Return the film as scored by a model whose training clips these annotators labelled.

    One called `PLANTED` is a program. The model's record of experts' labels (`human`) is removed, as a text
    on it would take the place of that on the annotators.
    """
    return with_model(film, labelled_by=list(annotators), human=None)


def on_one_line(text):
    """Join the lines of an export; RTTM writes _ for a space, edit lists begin comments by *."""
    return " ".join(text.replace("_", " ").replace("\n* ", " ").split())


def test_exports_of_a_model_of_planted_labels_say_that_nobody_judged_them(film_of_ten_minutes, export_format):
    """A program labelled the model's training clips (the annotator `PLANTED`), and no person."""
    labelled_by_a_program = labelled_by(film_of_ten_minutes, PLANTED)
    text = on_one_line(export(labelled_by_a_program, export_format))
    assert Words("en")["about_1_planted"] in collect(labelled_by_a_program, export_format).caveats
    assert "nobody judged them" in text


def test_exports_speak_of_disagreeing_experts_only_if_people_labelled_the_training_clips(film_of_ten_minutes):
    """The sentence on experts who disagree begins with "Disagreement is data".

    The film's model was trained on labels of people; a second one on labels that a program gave (`PLANTED`).
    """
    caveats_if_people = " ".join(collect(film_of_ten_minutes, "eaf").caveats)
    caveats_if_program = " ".join(collect(labelled_by(film_of_ten_minutes, PLANTED), "eaf").caveats)
    assert "Disagreement is data" in caveats_if_people
    assert "Disagreement is data" not in caveats_if_program


def test_exports_name_the_people_who_labelled_what_a_program_did_not(film_of_ten_minutes):
    """AB labelled some of the training clips, and a program (the annotator `PLANTED`) the others."""
    exported = collect(labelled_by(film_of_ten_minutes, "AB", PLANTED), "eaf")
    (note,) = [note for note in exported.caveats if "A program gave" in note]
    assert note.endswith("the others were labelled by AB.")


def test_an_exported_document_is_valid_by_elans_schema(eaf):
    """`eaf` is a film exported for ELAN, which publishes a schema of its files, here of version 3.0."""
    xmlschema = pytest.importorskip("xmlschema")
    schema = xmlschema.XMLSchema(Path(__file__).with_name("eaf-3.0.xsd"))
    schema.validate(str(eaf))


def test_pympi_reads_the_segments_back_to_the_millisecond(eaf, segments_ms):
    """The library pympi reads documents of ELAN. `segments_ms` are the film's segments, in order of time."""
    pympi = pytest.importorskip("pympi")

    annotations = pympi.Elan.Eaf(str(eaf)).get_annotation_data_for_tier("obygaze: segments")
    times_ms = [(start, end) for start, end, *_ in sorted(annotations)]
    assert times_ms == segments_ms


def test_speach_reads_the_segments_back_to_the_millisecond(eaf, segments_ms):
    """The library speach reads documents of ELAN. `segments_ms` are the film's segments, in order of time."""
    elan = pytest.importorskip("speach.elan")

    annotations = elan.read_eaf(str(eaf))["obygaze: segments"].annotations
    times_ms = [(annotation.from_ts.value, annotation.to_ts.value) for annotation in annotations]
    assert sorted(times_ms) == segments_ms


def test_elan_has_each_rows_probability_as_one_of_five_ranges(eaf, film_of_ten_minutes):
    """ELAN lists each distinct value of a tier, and exact ones would be many.

    So a row that the model judges has a range that holds its probability: "0.0 to 0.2", "0.2 to 0.4" and so
    on, of which `BINS` is the list.
    """
    pympi = pytest.importorskip("pympi")
    document = pympi.Elan.Eaf(str(eaf))
    rows = film_of_ten_minutes.rows().dropna(subset="p")

    annotations = sorted(document.get_annotation_data_for_tier("obygaze: level (p)"))

    for (start_ms, end_ms, value), row in zip(annotations, rows.itertuples(), strict=True):
        assert (start_ms, end_ms) == (round(1000 * row.start_s), round(1000 * row.end_s))
        assert value in BINS
        low, high = value.split(" to ")
        assert float(low) <= row.p <= float(high)


def test_elan_has_the_probability_of_a_concept_as_one_of_five_ranges(eaf):
    """The concept Body has a tier. Its values are ranges, "0.0 to 0.2" and so on, which `BINS` lists."""
    pympi = pytest.importorskip("pympi")

    annotations = pympi.Elan.Eaf(str(eaf)).get_annotation_data_for_tier("obygaze: Body")
    values = {value for *_, value in annotations}
    assert values <= set(BINS)


def test_elan_has_empty_tiers_for_people_to_write_into(eaf):
    """A person writes a level on the tier "human: level", and its concepts on a tier below that one."""
    pympi = pytest.importorskip("pympi")
    document = pympi.Elan.Eaf(str(eaf))
    assert list(document.get_annotation_data_for_tier("human: level")) == []
    parameters_of_concepts = document.get_parameters_for_tier("human: concepts")
    assert parameters_of_concepts["PARENT_REF"] == "human: level"


def test_a_span_shorter_than_a_millisecond_lasts_one_millisecond_in_elan():
    """The first shot is from 0 to .4 ms, which would be rounded to nothing."""
    film = ten_minute_film()
    film.shots.loc[0, "end_s"] = 0.0004
    times_ms = re.findall('TIME_VALUE="(.*?)"', export(film, "eaf", tiers=["shots"]))
    assert times_ms[:2] == ["0", "1"]


def test_a_shot_is_named_by_its_flags_or_else_shot_and_never_by_its_detector():
    """The first shot is black, the second has no flag. All were found by the detector "own"."""
    film = ten_minute_film()
    film.shots.loc[0, "flags"] = "black"
    assert set(film.shots["detector"]) == {"own"}

    names = re.findall('text = "(.*?)"', export(film, "textgrid", tiers=["shots"]))

    assert names[:2] == ["black", "shot"]
    assert "own" not in names


def test_only_concepts_that_are_found_have_tiers(eaf, film_of_ten_minutes):
    """Of the model's eight concepts five are found, which means better than by chance in its tests."""
    found = [concept.name for concept in film_of_ten_minutes.model().concepts if concept.is_found]
    assert found == ["Type of shot", "Body", "Clothing", "Expression of emotion", "Activity"]

    tiers = re.findall('TIER_ID="obygaze: ([^"]*)"', eaf.read_text(encoding="utf-8"))
    assert tiers == ["segments", "level (p)", *found, "shots"]


def clock_ms(clock):
    """Return the milliseconds of hh:mm:ss.mmm; SubRip has a comma for the point."""
    hours, minutes, seconds = clock.replace(",", ".").split(":")
    return round(1000 * (3600 * int(hours) + 60 * int(minutes) + float(seconds)))


def test_webvtts_own_reader_reads_cues_back_to_the_millisecond(film_of_ten_minutes, segments_ms):
    """The library webvtt reads such files. `segments_ms` are the film's segments, in order of time."""
    webvtt = pytest.importorskip("webvtt")

    cues = webvtt.from_string(export(film_of_ten_minutes, "vtt", top=20))
    times_ms = [(clock_ms(cue.start), clock_ms(cue.end)) for cue in cues]
    assert times_ms == segments_ms


def test_subrip_has_a_block_of_caveats_and_one_per_segment_all_numbered_from_1(
    film_of_ten_minutes, segments_ms
):
    """A block has its number in the first line, its times in the second, and then its text.

    `segments_ms` has start and end of the film's segments, in order of time.
    """
    text = export(film_of_ten_minutes, "srt", top=20)

    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    numbers = [int(block[0]) for block in blocks]
    times_ms = []
    for block in blocks[1:]:  # the first has the caveats
        start, end = block[1].split(" --> ")
        times_ms.append((clock_ms(start), clock_ms(end)))

    assert numbers == list(range(1, len(blocks) + 1))
    assert times_ms == segments_ms


def test_the_caveats_of_subrip_are_imported_as_no_span(film_of_ten_minutes, segments_ms, tmp_path):
    """The first block of the file has the caveats, and one follows for each segment of the film.

    Imported are as many spans as there are segments.
    """
    path = tmp_path / "film.srt"
    path.write_text(export(film_of_ten_minutes, "srt", top=20), encoding="utf-8")
    imported = import_spans([path], tmp_path).manifest
    assert len(imported) == len(segments_ms)


def in_frames(spans_ms, fps):
    """Round spans from milliseconds to frames."""
    return [(round(start_ms * fps / 1000), round(end_ms * fps / 1000)) for start_ms, end_ms in spans_ms]


def frames_of_markers_in(text, adapter):
    """Return first frame and end of each marker, as an adapter of OpenTimelineIO reads them."""
    otio = pytest.importorskip("opentimelineio")
    if adapter == "fcp_xml":
        pytest.importorskip("otio_fcp_adapter")
    frames = []
    for clip in otio.adapters.read_from_string(text, adapter).find_clips():
        for marker in clip.markers:
            time_range = marker.marked_range
            frames.append((time_range.start_time.value, time_range.end_time_exclusive().value))
    return frames


@pytest.mark.parametrize(("export_format", "adapter"), [("otio", "otio_json"), ("fcpxml7", "fcp_xml")])
def test_video_editors_get_markers_to_the_frame(film_of_ten_minutes, segments_ms, export_format, adapter):
    """A film's segments (`segments_ms`, in milliseconds) are exported as markers for editors of video.

    The library OpenTimelineIO reads them as editors do. At 23.976 frames a second, which is 24000 / 1001, the
    start and end of each marker are the nearest frames: the format is said to lose the rest.
    """
    fps = Fraction(24000, 1001)

    text = export(film_of_ten_minutes, export_format, tiers=["segments"], rate=fps, top=20)

    assert frames_of_markers_in(text, adapter) == in_frames(segments_ms, fps)
    assert "rounded to frames" in FORMATS[export_format].loses


EDL_EVENT = re.compile(
    r"\d{3}  001      V     C        (?P<start>\S+) (?P<end>\S+) (?P=start) (?P=end)  \n"
    r" \|C:ResolveColor\w+ \|M:[^|]* \|D:(?P<n_frames>\d+)\n\* LOC: (?P=start) "
)
"""An event of an edit list: its time codes, and the length of the marker that DaVinci Resolve reads."""


def frame_number(code, fps):
    """Return the number of the frame that a time code names."""
    seconds = time_code(code, fps)
    return round(Fraction(seconds) * fps)


@pytest.mark.parametrize(
    ("frames_a_second", "start_code"),
    [
        ("25", "00:00:00:00"),
        ("25", "01:00:00:00"),
        ("30000/1001", "01:00:00;00"),
        ("24000/1001", "10:00:00:00"),
    ],
)
def test_an_edit_list_has_a_marker_for_each_segment_in_frames_after_the_start_time_code(
    film_of_ten_minutes, segments_ms, frames_a_second, start_code
):
    """In an edit list for editors of video each segment of a film (`segments_ms`) is an event of one frame.

    Its marker is as many frames long as the segment. A time code, such as 01:00:00:00, numbers frames:
    those of the film begin at the start code.
    """
    fps = Fraction(frames_a_second)
    first_frame_of_film = frame_number(start_code, fps)

    text = export(film_of_ten_minutes, "edl", rate=fps, top=20, start=start_code)

    frames_of_markers = []
    for event in EDL_EVENT.finditer(text):
        event_start = frame_number(event["start"], fps)
        event_end = frame_number(event["end"], fps)
        assert event_end - event_start == 1
        first_frame = event_start - first_frame_of_film
        frames_of_markers.append((first_frame, first_frame + int(event["n_frames"])))
    assert frames_of_markers == in_frames(segments_ms, fps)


@pytest.mark.parametrize(("start", "counting"), [("01:00:00:00", "NON-DROP"), ("01:00:00;00", "DROP")])
def test_an_edit_list_is_ascii_and_has_no_comment_above_its_first_event(film_of_ten_minutes, start, counting):
    """OpenTimelineIO takes a comment above the first event, 001, for an event.

    A ; in the start time code means that frames are counted with drops.
    """
    text = export(film_of_ten_minutes, "edl", rate=Fraction(30000, 1001), start=start)
    assert f"FCM: {counting} FRAME\n\n001 " in text
    assert text.isascii()


RTTM_COLUMNS = (
    "type", "file", "channel", "start_s", "duration_s", "orthography", "kind", "speaker", "p", "lookahead",
)  # fmt: skip


def turns_of(film):
    """Export the 20 strongest segments as RTTM; return its table of turns, with times in seconds."""
    text = export(film, "rttm", tiers=["segments"], top=20)
    turns = pd.read_csv(io.StringIO(text), names=RTTM_COLUMNS, sep=r"\s+")
    return turns.assign(start_s=turns["start_s"].astype(float), duration_s=turns["duration_s"].astype(float))


def test_rttm_has_one_speakers_turn_per_segment_in_the_columns_that_pyannote_reads(
    film_of_ten_minutes, segments_ms
):
    """RTTM is a format for who speaks when: a segment is a turn, with its start and its duration.

    `segments_ms` has start and end of the film's segments, in order of time.
    """
    turns = turns_of(film_of_ten_minutes)
    starts_ms = (1000 * turns["start_s"]).round()
    ends_ms = (1000 * (turns["start_s"] + turns["duration_s"])).round()
    assert list(zip(starts_ms, ends_ms, strict=True)) == segments_ms


def test_turns_of_passages_below_the_threshold_are_labelled_so(film_of_ten_minutes):
    """RTTM has turns of speakers: the speaker of a passage says whether it reaches the threshold.

    `top=0` lists the passages that do.
    """
    turns = turns_of(film_of_ten_minutes)
    starts_of_reaching = film_of_ten_minutes.segments(top=0)["start_s"].round(3)
    is_reaching = turns["start_s"].isin(starts_of_reaching)
    assert 0 < is_reaching.sum() < len(turns)

    speakers_of_reaching = set(turns["speaker"][is_reaching])
    speakers_of_others = set(turns["speaker"][~is_reaching])
    assert speakers_of_reaching == {"obygaze:_segments"}
    assert speakers_of_others == {"obygaze:_segments_below_the_threshold"}


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
def test_an_edit_list_without_time_codes_is_refused(film_of_ten_minutes, rate, start):
    """Time codes number the frames of a second, in two digits. A ; before the frames means drop frame."""
    with pytest.raises((ManifestError, FilmError)):
        export(film_of_ten_minutes, "edl", rate=Fraction(rate), start=start)


def test_a_timeline_of_final_cut_is_refused_at_12_and_a_half_frames_a_second(film_of_ten_minutes):
    """Time codes number the frames of a second, of which 12.5 is no whole number.

    So there are none at this rate, neither for an edit list nor for Final Cut's XML.
    """
    pytest.importorskip("opentimelineio")
    with pytest.raises(FilmError, match=r"12\.5"):
        export(film_of_ten_minutes, "fcpxml7", rate=Fraction("12.5"))


@pytest.fixture(scope="module")
def without_a_passage(film_of_ten_minutes):
    """The film by a model whose threshold no place reaches."""
    return with_model(film_of_ten_minutes, threshold_p=0.999)


def test_pyannote_finds_no_turn_in_an_rttm_file_that_has_a_line_of_caveats_alone(without_a_passage):
    """A film without a passage gives an RTTM file with one line, ";;_Scores_of_a_model_...".

    pyannote.database reads such files by `pandas.read_csv`, in ten columns, and groups the lines, which are
    turns of speakers, by the second column, the film. The test reads the file in the same way. The caveats
    are one word, so that the second column is empty, and pandas leaves out the group of an empty cell.
    """
    text = export(without_a_passage, "rttm", tiers=["segments"])
    assert text.startswith(";;_Scores_of_a_model_")

    film_column, start_column, duration_column = 1, 3, 4  # counted from 0
    types = {film_column: str, start_column: float, duration_column: float}
    table = pd.read_csv(io.StringIO(text), names=range(10), sep=r"\s+", dtype=types)
    assert len(table) == 1
    assert len(table.groupby(film_column)) == 0


@pytest.mark.parametrize("format_name", ["edl", "csv"])
def test_caveats_that_a_file_has_no_place_for_are_told(without_a_passage, tmp_path, format_name):
    """An edit list and a table have no place for notes but beside their spans.

    No passage of the film reaches the threshold, so that the file has no span. Its caveats, on what scores
    mean and why there is no passage, are told to the user instead.
    """
    path = tmp_path / "out"
    notice = write_export(without_a_passage, format_name, path, tiers=["segments"])
    assert notice.startswith("The file has no span, and so no place for these notes: Scores of a model")
    assert "No passage that the model can judge reaches the threshold" in notice
    assert "Scores of a model" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("format_name", ["edl", "csv"])
def test_caveats_that_a_file_has_a_place_for_are_in_it_and_not_told(
    film_of_ten_minutes, tmp_path, format_name
):
    """The caveats stand beside the film's passages; they begin with "Scores of a model"."""
    path = tmp_path / "out"
    notice = write_export(film_of_ten_minutes, format_name, path, tiers=["segments"])
    assert notice == ""
    assert "Scores of a model" in path.read_text(encoding="utf-8")


def test_concepts_without_a_tier_are_named_in_the_file_and_told(film_of_ten_minutes, export_format, tmp_path):
    """A model has eight concepts. In its tests it found five of them better than by chance.

    Only these get tiers; the file's caveats and a notice to the user name the three others. If no tiers of
    concepts are asked for, there is nothing to say.
    """
    left_out = "The tiers of concepts leave out Look, Posture and Appearance: "

    caveats = " ".join(collect(film_of_ten_minutes, export_format, tiers=["segments", "concepts"]).caveats)
    notice = write_export(
        film_of_ten_minutes, export_format, tmp_path / "out", tiers=["segments", "concepts"]
    )
    notice_without_concepts = write_export(
        film_of_ten_minutes, export_format, tmp_path / "out", tiers=["segments"]
    )

    assert left_out in caveats
    assert notice.startswith(left_out)
    assert "leave out" not in notice_without_concepts


def test_every_format_says_how_many_decimals_its_probabilities_have(film_of_ten_minutes, export_format):
    """`loses` says in words what a format loses: probabilities have two decimals, four, or are left out."""
    loses = FORMATS[export_format].loses
    p = film_of_ten_minutes.segments(top=0).iloc[0]["p"]
    with_two_decimals = f"{p:.2f}"
    with_four_decimals = f"{p:.4f}".rstrip("0")  # as programs write numbers

    text = export(film_of_ten_minutes, export_format, tiers=["segments"])

    if export_format == "rttm":
        assert "without probabilities" in loses
        assert with_two_decimals not in text
    elif "four decimals" in loses:
        assert with_four_decimals in text
    else:
        assert "two decimals" in loses
        assert with_two_decimals in text
        assert with_four_decimals not in text


def test_time_codes_begin_at_zero_again_after_24_hours(film_of_ten_minutes):
    """The film begins at the last frame of a day (25 frames a second), and goes on after midnight."""
    text = export(film_of_ten_minutes, "edl", rate=Fraction(25), start="23:59:59:24")
    hours = set(re.findall(r"(\d\d):\d\d:\d\d:\d\d", text))
    assert hours == {"23", "00"}


def test_the_notice_of_an_export_names_a_tier_that_the_film_does_not_have(film_of_ten_minutes):
    """The tier of subtitles is asked for, and the film has none: an empty file would look like an error."""
    assert film_of_ten_minutes.subtitles.empty
    exported = collect(film_of_ten_minutes, "vtt", tiers=["subtitles"])
    assert "no subtitles" in exported.notice


def test_praatio_reads_the_segments_back(film_of_ten_minutes, tmp_path):
    """The library praatio reads files of Praat. Times have microseconds there.

    By default an export has only the segments that reach the threshold, and so has `top=0`.
    """
    textgrid = pytest.importorskip("praatio.textgrid")
    path = tmp_path / "film.TextGrid"
    path.write_text(export(film_of_ten_minutes, "textgrid"), encoding="utf-8")

    document = textgrid.openTextgrid(str(path), includeEmptyIntervals=False)

    intervals = document.getTier("obygaze: segments").entries
    spans = [(interval.start, interval.end) for interval in intervals]
    segments = film_of_ten_minutes.segments(top=0).sort_values("start_s").round({"start_s": 6, "end_s": 6})
    assert spans == list(zip(segments["start_s"], segments["end_s"], strict=True))
    assert document.maxTimestamp == film_of_ten_minutes.record.duration_s


@pytest.mark.parametrize(
    "export_format",
    ["textgrid", "rttm", "eaf", "otio", "fcpxml7", "markers", "edl", "jsonld", "iiif", "refi-qda"],
)
def test_spans_of_a_model_are_never_imported_as_labels(film_of_ten_minutes, export_format, tmp_path):
    """An exported film is imported as if AB had annotated it.

    The account of the import lists each span as left out, and says that the file shows a model's output.
    """
    if export_format in {"otio", "fcpxml7"}:
        pytest.importorskip("opentimelineio")
    path = tmp_path / f"film.{export_format}"
    path.write_text(export(film_of_ten_minutes, export_format, top=20), encoding="utf-8")

    imported = import_spans([path], tmp_path, annotator="AB", rate=Fraction(24))

    assert len(imported.manifest) == 0
    (account,) = imported.accounts
    assert account.shows_model_output
    assert account.seen == len(account.left_out)


def test_lines_that_overlap_are_on_tiers_of_their_own_in_elan(film_of_ten_minutes):
    """A sign is translated from 1 to 10 s, and a line is spoken from 2 to 3 s."""
    lines = pd.DataFrame({"start_s": [1.0, 2.0], "end_s": [10.0, 3.0], "text": ["Sign", "Line"]})
    text = export(replace(film_of_ten_minutes, subtitles=lines), "eaf", tiers=["subtitles"])
    tiers = re.findall('TIER_ID="(obygaze: [^"]*)"', text)
    assert tiers == ["obygaze: subtitles", "obygaze: subtitles (2)"]


def test_web_annotations_name_the_model_as_their_creator(film_of_ten_minutes):
    """A collection of web annotations says who made them: a program, whose id has a digest of the model.

    The digest (SHA-256, of the model's file) tells which model it was, whatever the file is called.
    """
    collection = json.loads(export(film_of_ten_minutes, "jsonld"))
    assert collection["type"] == "AnnotationCollection"
    assert collection["creator"]["type"] == "Software"
    assert film_of_ten_minutes.model().sha256 in collection["creator"]["id"]


def test_web_annotations_point_at_their_spans_by_media_fragments(film_of_ten_minutes):
    """The fragment t=10.5,20 is the span from 10.5 to 20 s of a film."""
    collection = json.loads(export(film_of_ten_minutes, "jsonld"))
    items = collection["first"]["items"]
    assert collection["total"] == len(items)
    for item in items:
        assert item["motivation"] == "classifying"
        for body in item["body"]:
            assert body["type"] == "TextualBody"

    first_segment = film_of_ten_minutes.segments(top=0).sort_values("start_s").iloc[0]
    fragment = items[0]["target"]["selector"]["value"]
    assert fragment == f"t={first_segment['start_s']},{first_segment['end_s']}"


def annotation_context():
    """Return as much of http://www.w3.org/ns/anno.jsonld as decides which values are IRIs."""
    context = {"@vocab": "urn:oa:", "id": "@id", "type": "@type"}
    for name in ("motivation", "generator", "conformsTo", "rights", "partOf"):
        context[name] = {"@id": f"urn:oa:{name}", "@type": "@id"}
    return context


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")  # rdflib's own parser of JSON-LD
def test_web_annotations_are_linked_data_whose_nodes_have_iris(film_of_ten_minutes):
    """A node of linked data has an IRI, by which others can refer to it, or is a blank node, which has none.

    The document names its context by an address. The context itself is put there, so that none is fetched.
    """
    rdflib = pytest.importorskip("rdflib")
    document = json.loads(export(film_of_ten_minutes, "jsonld", top=20))
    with_context = document | {"@context": annotation_context()}

    graph = rdflib.Graph().parse(data=json.dumps(with_context), format="json-ld")

    n_nodes_of = {"Annotation": document["total"], "AnnotationPage": 1, "AnnotationCollection": 1}
    for type_name, n_nodes in n_nodes_of.items():
        nodes = set(graph.subjects(rdflib.RDF.type, rdflib.URIRef(f"urn:oa:{type_name}")))
        assert len(nodes) == n_nodes
        assert all(isinstance(node, rdflib.URIRef) for node in nodes)


@pytest.mark.parametrize("top", [0, 20])
def test_iiifs_own_parser_reads_the_manifest_back(film_of_ten_minutes, top):
    """A manifest of IIIF has one canvas, the film, and on it one page of annotations.

    They are as many as the web annotations of the film: both have the segments and the concepts. `top` is how
    many segments are listed at least, 0 for those that reach the threshold alone.
    """
    iiif = pytest.importorskip("iiif_prezi3")
    manifest = iiif.Manifest.model_validate_json(export(film_of_ten_minutes, "iiif", top=top))
    (canvas,) = manifest.items
    (page,) = canvas.annotations

    assert canvas.duration == film_of_ten_minutes.record.duration_s
    web_annotations = json.loads(export(film_of_ten_minutes, "jsonld", top=top))
    assert len(page.items) == web_annotations["total"]
    distinct_ids = {annotation.id for annotation in page.items}
    assert len(distinct_ids) == len(page.items)
    first_segment = film_of_ten_minutes.segments(top=top).sort_values("start_s").iloc[0]
    fragment = f"t={first_segment['start_s']},{first_segment['end_s']}"
    assert page.items[0].target == f"{canvas.id}#{fragment}"


def test_a_level_written_into_an_exported_table_is_imported_as_judged_in_sight_of_the_score(
    film_of_ten_minutes, tmp_path
):
    """AB writes into one row of the table, in which the score stands. Rows without a level are left out."""
    text = export(film_of_ten_minutes, "csv", tiers=["segments", "concepts"], top=20)
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
    (account,) = imported.accounts
    assert len(account.left_out) == len(table) - 1


def test_no_cell_of_the_table_is_a_formula_to_a_spreadsheet():
    """Spreadsheets run cells that begin with = + - or @; an apostrophe before it makes a cell a text."""
    film = ten_minute_film("=cmd|' /C calc'!A0", HOSTILE_TITLE)
    rows = list(csv.DictReader(io.StringIO(export(film, "csv", top=20))))

    assert {row["movie"] for row in rows} == {"'=cmd|' /C calc'!A0"}
    for row in rows:
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@"))


def test_each_row_of_the_table_has_a_probability_and_the_first_alone_the_caveats(film_of_ten_minutes):
    """Caveats say what the scores are not. Once in a table is enough: they are the same for each row."""
    rows = list(csv.DictReader(io.StringIO(export(film_of_ten_minutes, "csv", top=20))))
    for row in rows:
        assert 0 < float(row["p"]) < 1

    first, *others = rows
    assert first["caveats"]
    for row in others:
        assert row["caveats"] == ""


@pytest.fixture(scope="module")
def hostile_film():
    """A film whose id is m/<&>; its title holds markup, quotes, an end of lines and a cue's arrow."""
    return ten_minute_film("m/<&>", HOSTILE_TITLE)


def test_no_title_or_id_breaks_a_document_of_elan(hostile_film):
    """The film's id holds markup, m/<&>, and so does its title."""
    document = ET.fromstring(export(hostile_film, "eaf"))  # noqa: S314 - ours
    assert document.find("HEADER/PROPERTY[@NAME='obygaze movie']").text == "m/<&>"


def test_no_title_breaks_webvtt(hostile_film, segments_ms):
    """The film's title holds the arrow of a cue, and ends with an empty line and the word NOTE.

    If it were written as it is, it would begin a second note behind that of the caveats, and the arrow a
    cue. A library for WebVTT must find a caption for each passage, and the file have one note.
    """
    webvtt = pytest.importorskip("webvtt")
    text = export(hostile_film, "vtt", top=20)
    assert len(list(webvtt.from_string(text))) == len(segments_ms)
    assert text.count("\n\nNOTE") == 1


def test_no_title_breaks_subrip(hostile_film, segments_ms):
    """The title holds the arrow of a block's times, and markup: players read < and { as formatting."""
    text = export(hostile_film, "srt", top=20)
    n_blocks = len(segments_ms) + 1  # one of caveats
    assert text.count(" --> ") == n_blocks
    for character in "<{}":
        assert character not in text


@pytest.mark.parametrize(("title", "beginning"), [(HOSTILE_TITLE, "A <b>"), ("Amélie", "Amélie")])
def test_web_annotations_have_the_title_as_it_is(title, beginning):
    """Letters with accents are not escaped: the file is one for people, too."""
    text = export(ten_minute_film("m/<&>", title), "jsonld")
    label = json.loads(text)["label"]
    assert label.startswith(beginning)
    assert beginning in text


def test_no_title_is_longer_than_a_line_of_an_edit_list():
    """A line of an edit list may have 80 letters. Its first line is the title."""
    long_title = HOSTILE_TITLE * 3
    assert len(long_title) > 80
    first_line, *_ = export(ten_minute_film("m", long_title), "edl").split("\n")
    assert len(first_line) < 80


def test_an_unknown_format_or_tier_is_refused_by_name(film_of_ten_minutes):
    """There is no format called docx, and no tier called words."""
    with pytest.raises(FilmError, match="'docx'"):
        export(film_of_ten_minutes, "docx")
    with pytest.raises(FilmError, match="'words'"):
        export(film_of_ten_minutes, "vtt", tiers=["words"])


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
def test_elan_has_a_probability_as_the_range_that_holds_it(film_of_ten_minutes, p, value):
    """A range holds its lower end and not its upper one; the last holds both."""
    one_span = TierSpan(start_s=0.0, end_s=1.0, text="", p=p)
    tier = Tier("level", "p", (one_span,))
    text = to_eaf(replace(collect(film_of_ten_minutes, "eaf"), tiers=(tier,)))
    assert re.findall(r"<ANNOTATION_VALUE>([^<]*)", text) == [value]


@pytest.fixture
def film_with_all_caveats(film_of_ten_minutes):
    """A film that the model was trained on, with a black row.

    The model's clips have another length than the film's windows, 6.083 s, and it found a concept no better
    than by chance.
    """
    table = film_of_ten_minutes.table.copy()
    any_row = 3
    table.loc[any_row, ["p", "p_low", "p_high"]] = float("nan")
    table.loc[any_row, "flags"] = "black"
    return with_model(replace(film_of_ten_minutes, table=table), is_trained_on=True, clip_s=6.083)


def test_the_caveats_of_exports_have_the_conditions_that_the_page_has(film_with_all_caveats):
    """The model was trained on this film, on clips of 6.083 s, and finds some concepts no better than chance.

    The film's windows have another length, and one of its rows is black. Of each of these conditions an
    export has the sentence that the page has.
    """
    words = Words("en")
    film = film_with_all_caveats
    model = film.model()
    concepts_near_chance = [concept.name for concept in model.concepts if concept.is_near_chance]
    assert concepts_near_chance
    assert film.time().black_or_credits_s > 0
    evidence = of_film.model_evidence(model)
    other_windows = of_film.other_windows(model, film.record.windows)
    judged_time = of_film.judged_time(model, film.time())

    caveats = " ".join(collect(film, "eaf").caveats)

    assert words["trained_on"] in caveats
    assert phrases.evidence_sentence(evidence, words) in caveats
    assert phrases.windows_sentence(other_windows, words) in caveats
    assert phrases.near_chance_caveat(concepts_near_chance, words) in caveats
    assert phrases.black_caveat(judged_time, words) in caveats
    assert "6.08" in export(film, "eaf")  # seconds of a clip, as sentences round them
