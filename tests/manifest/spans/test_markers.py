# ruff: noqa: E501 - rows of files are kept as tools write them
"""Markers of video editors: their times, lengths, types and colours, as each editor writes them."""

import json
from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from tests.manifest.spans.files import tabbed

DROP = Fraction(30_000, 1001)
HEAD = ["Marker Name", "Description", "In", "Out", "Duration", "Marker Type"]


RESOLVE = '"#","Reel","V","Record In","Record Out","Name","Comments","Color","Notes"\n'


def spans(clips):
    """Times of clips to the microsecond, with what they say, their tier and annotator."""
    return [
        (
            round(c.start_s, 6),
            round(c.end_s, 6),
            c.level or c.extras.get("text"),
            c.extras.get("tier", ""),
            c.annotator,
        )
        for c in clips
    ]


def test_markers_of_premiere_have_types_and_descriptions(import_files):
    """At 25 frames a second 00:00:05:12 is 5.48 s."""
    content = tabbed(HEAD, ["kiss", "at night", "00:00:01:00", "00:00:05:12", "00:00:04:12", "Chapter"],
                     ["", "only this", "00:00:06:00", "00:00:07:00", "00:00:01:00", "Comment"])  # fmt: skip
    clips, _ = import_files({"film.csv": content.encode("utf-16")})
    assert spans(clips) == [(1.0, 5.48, "kiss", "Chapter", ""), (6.0, 7.0, "only this", "Comment", "")]
    assert clips[0].extras["comment"] == "at night"
    assert {clip.movie for clip in clips} == {"film"}


def test_drop_frame_time_codes_of_premiere_are_real_seconds(import_files):
    """At 29.97, a minute drops two labels, so that 00;01;00;02 is frame 60 * 30 = 1800; each tenth drops none.

    00;10;00;00 is frame 10 * 60 * 30 - 9 * 2 = 17,982. A frame lasts 1001 / 30,000 s.
    """
    content = tabbed(HEAD, ["S", "", "00;01;00;02", "00;10;00;00", "", "Comment"])
    (clip,), _ = import_files({"a.csv": content}, rate=DROP)
    assert clip.start_s == pytest.approx(1800 * 1001 / 30_000, abs=5e-7)
    assert clip.end_s == pytest.approx(17_982 * 1001 / 30_000, abs=5e-7)


@pytest.mark.parametrize(
    ("rows", "options", "reason"),
    [
        ([["S", "", "00:00:01:00", "00:00:05:00", "", ""]], {"rate": None}, "give their rate"),
        ([["S", "", "00;00;01;00", "00:00:05:00", "", ""]], {"rate": DROP}, "some time codes drop"),
        ([["S", "", "00:00:01:00", "00:00:05:00", "", ""]], {"start": "x"}, "--start"),
    ],
)
def test_time_codes_that_cannot_be_counted_are_one_error(import_files, rows, options, reason):
    with pytest.raises(ManifestError, match=reason):
        import_files({"a.csv": tabbed(HEAD, *rows)}, **options)


def test_a_start_for_files_without_time_codes_is_refused(import_files):
    with pytest.raises(ManifestError, match="--start is for"):
        import_files({"a.srt": "1\n00:00:01,000 --> 00:00:02,000\nHi\n"}, start="01:00:00:00")


def test_the_edit_index_of_resolve_is_read_by_its_record_times(import_files):
    """The film begins at 01:00:00:00 of the timeline, so 01:00:01:00 is 1 s of the film."""
    content = (
        "1,A,V1,01:00:01:00,01:00:05:00,clip.mov,,Blue,S\n2,A,V1,01:00:06:00,01:00:07:00,clip.mov,,Red,\n"
    )
    clips, _ = import_files({"a.csv": RESOLVE + content}, start="01:00:00:00")
    assert [span[:4] for span in spans(clips)] == [(1.0, 5.0, "S", "Blue"), (6.0, 7.0, "clip.mov", "Red")]


@pytest.mark.parametrize(
    ("comment", "text"), [("S\t100\t\tRed", "S"), ("S\nby the window\n\t100", "S by the window")],
    ids=["of a line", "of several lines"],
)  # fmt: skip
def test_avids_text_names_who_set_a_marker_and_its_length(import_files, comment, text):
    """100 frames at 25 a second are 4 s. A marker of one frame is a point, and no span."""
    content = f"AB\t01:00:01:00\tV1\tred\t{comment}\nCD\t01:00:06:00\tTC1\tgreen\tpoint\t1\n"
    clips, notices = import_files({"a.txt": content}, start="01:00:00:00")
    assert spans(clips) == [(1.0, 5.0, text, "red", "AB")]
    assert "1 of 2 spans read" in notices
    assert "a marker without length" in notices


def test_a_table_of_premiere_in_another_language_is_read_by_the_places_of_its_columns(import_files):
    headings = ["Имя маркера", "Описание", "Вход", "Выход", "Длительность", "Тип маркера"]
    content = tabbed(headings, ["kiss", "", "00:00:01:00", "00:00:05:00", "00:00:04:00", "Комментарий"])
    clips, notices = import_files({"a.csv": content.encode("utf-16")})
    assert spans(clips) == [(1.0, 5.0, "kiss", "Комментарий", "")]
    assert "the headings are in another language" in notices


EDL = """TITLE: film
FCM: NON-DROP FRAME

001  001      V     C        01:00:01:00 01:00:01:01 01:00:01:00 01:00:01:01
note before |C:ResolveColorGreen |M:kiss |D:100

002  TAPE     V     D    012 00:00:10:00 00:00:12:00 01:00:06:00 01:00:08:00
* FROM CLIP NAME: shot2.mov
003  TAPE     A     C        00:00:10:00 00:00:12:00 01:00:06:00 01:00:08:00
004  AVID     V     C        00:00:10:00 00:00:12:00 01:00:08:00 01:00:09:00
* LOC: 01:00:08:10 RED     a locator
M2   TAPE       024.0                00:00:10:00
"""


EDL_OF_FRAMES = """TITLE: film
FCM: NON-DROP FRAME
* LOC: 00:00:00:10 green   above the first event
001  Head Leader V     C        1009        1064        00:00:00:00 00:00:02:00
002  AX       V     C        1041+03        1064+00        00:00:02:00 00:00:03:00
003  AX       V     00:00:00:00 00:00:01:00 00:00:03:00 00:00:04:00
"""


def test_each_line_of_an_edl_is_an_event_or_left_out_by_its_number(import_files):
    """Names of reels may have blanks, and times of sources may be frames, as in `EDL_OF_FRAMES`."""
    clips, notices = import_files({"film.edl": EDL_OF_FRAMES})
    assert [(clip.start_s, clip.end_s) for clip in clips] == [(0.0, 2.0), (2.0, 3.0)]
    assert "2 of 4 spans read" in notices
    assert "line 3: a marker without length" in notices
    assert "line 6: no event" in notices


@pytest.mark.parametrize("heading", ["", "TITLE: film\nFCM: FILM\n"], ids=["alone", "titled"])
def test_a_list_of_avids_markers_alone_has_points(import_files, heading):
    clips, notices = import_files(
        {"film.edl": f"{heading}* LOC: 01:00:00:10 green   one\n* LOC: 01:00:01:00 red     two\n"}
    )
    assert not clips
    assert "0 of 2 spans read (edl); 2 left out: a marker without length" in notices


def test_a_list_of_resolve_has_markers_and_cuts(import_files):
    """Timelines of editors often begin at 01:00:00:00. Without a start, all markers would be an hour late."""
    clips, notices = import_files({"film.edl": EDL}, start="01:00:00:00")
    assert [span[:4] for span in spans(clips)] == [
        (1.0, 5.0, "kiss", "Green"),
        (6.0, 8.0, "shot2.mov", "cut"),
        (8.0, 9.0, "", ""),  # the cut that a marker of Avid stands in
    ]
    assert clips[0].extras["comment"] == "note before"
    assert "a cut of sound" in notices
    assert "a marker without length" in notices
    _, notices = import_files({"film.edl": EDL})
    assert "no span in the first hour" in notices


def test_colours_of_resolve_can_be_levels(import_files):
    clips, _ = import_files(
        {"film.edl": EDL.replace("kiss", "Sure")}, start="01:00:00:00", tiers={"Green": "levels"}
    )
    assert [(clip.start_s, clip.level) for clip in clips] == [(1.0, "S")]


def test_final_cuts_markers_of_a_clip_are_of_its_media(import_files):
    """Two clips of a sequence are of one file, which the second names by its id.

    At 24 frames of NTSC a second, 24 frames last 1.001 s.
    """
    rate = "<rate><timebase>24</timebase><ntsc>TRUE</ntsc></rate>"
    path = "<pathurl>file://localhost/d/my%20film.mov</pathurl>"
    first_marker = "<marker><name>S</name><comment>why</comment><in>24</in><out>48</out></marker>"
    second_marker = "<marker><name>EN</name><in>48</in><out>72</out></marker>"
    first_clip = f'<clipitem id="1"><name>x</name>{rate}<file id="f1"><name>film.mov</name>{path}</file>{first_marker}</clipitem>'
    second_clip = f'<clipitem id="2"><name>y</name>{rate}<file id="f1"/>{second_marker}</clipitem>'
    media = f"<media><video><track>{first_clip}{second_clip}</track></video></media>"
    content = f'<xmeml version="4"><sequence><name>cut</name>{rate}{media}</sequence></xmeml>'
    clips, _ = import_files({"a.xml": content}, rate=None)

    assert [(clip.movie, round(clip.start_s, 6), round(clip.end_s, 6), clip.level) for clip in clips] == [
        ("my film", 1.001, 2.002, "S"),
        ("my film", 2.002, 3.003, "EN"),
    ]
    assert clips[0].extras["comment"] == "why"


def test_markers_of_final_cut_pro_are_in_the_time_of_the_film_that_their_clip_shows(import_files):
    """The film begins at 86486400/24000 s = 3603.6 s of its own clock.

    The keyword S begins at 86510424/24000 s = 3604.601 s, and lasts 24024/24000 s = 1.001 s.
    """
    content = (
        '<fcpxml version="1.9"><resources><asset id="r2" name="film" start="86486400/24000s"/></resources><library><event>'
        '<project name="p"><sequence><spine><gap offset="0s" start="3600s" duration="5s">'
        '<marker start="3602s" duration="2s" value="late" note="n"/></gap>'
        '<clip offset="5s" start="0s"><video ref="r2" offset="0s"><marker start="86510424/24000s" duration="1001/24000s" value="p"/></video>'
        '<keyword start="86510424/24000s" duration="24024/24000s" value="S"/></clip></spine></sequence></project></event></library></fcpxml>'
    )
    clips, notices = import_files({"edit.fcpxml": content}, rate=None)

    assert [(clip.movie, round(clip.start_s, 6), round(clip.end_s, 6)) for clip in clips] == [
        ("edit", 2.0, 4.0),  # in a gap, which shows no film: 3602 - 3600 s of the edit
        ("film", 1.001, 2.002),
    ]
    assert "a marker without length" in notices


def test_a_time_of_final_cut_pro_that_is_none_costs_its_mark_alone(import_files):
    marks = '<keyword start="1/0s" duration="1s" value="a"/><keyword start="1s" duration="1s" value="b"/>'
    clips, notices = import_files({"a.fcpxml": f"<fcpxml><event>{marks}</event></fcpxml>"})
    assert [clip.extras["text"] for clip in clips] == ["b"]
    assert "its times cannot be read" in notices


def otio_of(*lengths):
    """Write a clip of OpenTimelineIO with markers from 1 s on, of these numbers of frames at 25 a second."""
    markers = []
    for n_frames in lengths:
        times = {"start_time": {"rate": 25, "value": 25}, "duration": {"rate": 25, "value": n_frames}}
        markers.append({"OTIO_SCHEMA": "Marker.2", "name": "S", "color": "RED", "marked_range": times})
    return json.dumps({"OTIO_SCHEMA": "Clip.2", "name": "film", "markers": markers})


@pytest.mark.parametrize(
    ("content", "ends", "n_points"),
    [
        (
            tabbed(HEAD, *(["S", "", "00:00:01:00", f"00:00:01:0{n}", "", "Comment"] for n in (1, 2))),
            [1.04, 1.08],
            0,
        ),
        (RESOLVE + "".join(f"1,A,V1,00:00:01:00,00:00:01:0{n},x,,Blue,S\n" for n in (1, 2)), [1.08], 1),
        (otio_of(0, 1, 2), [1.08], 2),
    ],
    ids=["Premiere", "Resolve", "OpenTimelineIO"],
)
def test_one_frame_is_a_span_or_a_point_as_the_editor_means_it(import_files, content, ends, n_points):
    """Resolve, and what it writes of open timelines, give a marker without length the length of a frame."""
    clips, notices = import_files({"a.x": content})
    assert [round(clip.end_s, 6) for clip in clips] == ends
    assert ("a marker without length, or of the one frame" in notices) == (n_points > 0)
    assert f"{len(ends)} of {len(ends) + n_points} spans read" in notices


def test_a_decision_of_one_frame_comes_back_from_our_lists(import_files):
    """A marker of one frame (D:1) is else left out as a marker without length; our comments say what it is."""
    lines = [
        "TITLE: film",
        "001  001      V     C        00:00:01:00 00:00:01:01 00:00:01:00 00:00:01:01",
        " |C:ResolveColorBlue |M:S |D:1",
        "* OBYGAZE RATE: 25",
        "* OBYGAZE START: 00:00:00:00",
        "* OBYGAZE TIER: human: level, blind@AB",
        "* OBYGAZE TEXT: S",
        "* OBYGAZE FILM: film",
    ]
    (clip,), _ = import_files({"a.edl": "\n".join(lines) + "\n"}, rate=None)

    assert (clip.start_s, clip.end_s) == (1.0, 1.04)
    assert (clip.level, clip.annotator) == ("S", "AB")
