# ruff: noqa: E501 - rows of files are kept as tools write them
"""Markers of video editors: their times, lengths, types and colours, as each editor writes them."""

import json
from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from tests.manifest.spans.files import otio_marker, tsv

NTSC_RATE = Fraction(30_000, 1001)
"""29.97 frames a second, at which time codes may leave out labels (drop frame)."""
HEADINGS_OF_PREMIERE = ["Marker Name", "Description", "In", "Out", "Duration", "Marker Type"]
HEADINGS_OF_RESOLVE = '"#","Reel","V","Record In","Record Out","Name","Comments","Color","Notes"\n'


def markers_of(clips):
    """Return start and end of each clip to the microsecond, its text, tier and annotator."""
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
    """A marker's type is its tier. The second marker has no name, so that its description is its text.

    At 25 frames a second, 5 s and 12 frames are 5.48 s.
    """
    table = tsv(
        ["Marker Name", "Description", "In", "Out", "Duration", "Marker Type"],
        ["kiss", "at night", "00:00:01:00", "00:00:05:12", "00:00:04:12", "Chapter"],
        ["", "only this", "00:00:06:00", "00:00:07:00", "00:00:01:00", "Comment"],
    )

    clips, _ = import_files({"film.csv": table.encode("utf-16")})

    assert markers_of(clips) == [(1.0, 5.48, "kiss", "Chapter", ""), (6.0, 7.0, "only this", "Comment", "")]
    assert clips[0].extras["comment"] == "at night"
    assert [clip.movie for clip in clips] == ["film", "film"]


@pytest.mark.parametrize(("unit", "span_s"), [("frames", (10.0, 12.5)), ("s", (240.0, 300.0))])
def test_times_of_an_editor_that_are_numbers_are_read_by_the_unit_that_is_given(import_files, unit, span_s):
    """Premiere writes In and Out as it shows them; 240 frames of 24 a second are 10 s."""
    table = tsv(HEADINGS_OF_PREMIERE, ["S", "", "240", "300", "60", "Comment"])

    (clip,), notices = import_files({"a.csv": table}, rate=Fraction(24), unit=unit)

    assert (clip.start_s, clip.end_s) == span_s
    assert "used nowhere: no times are numbers" not in notices


def test_numbers_in_place_of_an_editors_time_codes_are_refused_until_the_person_gives_their_unit(refusal_of):
    """A list of Premiere has a marker S from 240 to 300, of length 60. Premiere also counts frames.

    So the numbers may be seconds or frames, and the refusal names the options for both.
    """
    name, description, start, end, duration, marker_type = "S", "", "240", "300", "60", "Comment"
    table = tsv(HEADINGS_OF_PREMIERE, [name, description, start, end, duration, marker_type])

    assert "give --unit frames and --rate, or --unit s" in str(refusal_of({"a.csv": table}))


def test_a_marker_from_0_to_a_time_code_is_read_though_0_has_no_unit(import_files):
    """A list of Premiere has a marker S from "0" to the time code 00:00:03:12, at 24 frames a second: 3.5 s.

    Any other number beside time codes could be seconds or frames, but 0 is the start of the film in both.
    """
    name, description, start, end, duration, marker_type = "S", "", "0", "00:00:03:12", "", "Comment"
    table = tsv(HEADINGS_OF_PREMIERE, [name, description, start, end, duration, marker_type])

    (clip,), _ = import_files({"a.csv": table}, rate=Fraction(24))

    assert (clip.start_s, clip.end_s) == (0.0, 3.5)


def test_drop_frame_time_codes_of_premiere_are_real_seconds(import_files):
    """NTSC has 29.97 frames a second: a frame lasts 1001 / 30,000 s. Time codes count 30 of them a second.

    To keep up with the clock, drop-frame time codes leave out the first two numbers of each minute, but for
    each tenth. So the first minute of 1800 frames is followed by 00;01;00;02, and up to 00;10;00;00 there are
    10 * 1800 - 9 * 2 = 17,982 frames.
    """
    table = tsv(HEADINGS_OF_PREMIERE, ["S", "", "00;01;00;02", "00;10;00;00", "", "Comment"])

    (clip,), _ = import_files({"a.csv": table}, rate=Fraction(30_000, 1001))

    assert clip.start_s == pytest.approx(1800 * 1001 / 30_000, abs=5e-7)
    assert clip.end_s == pytest.approx(17_982 * 1001 / 30_000, abs=5e-7)


@pytest.mark.parametrize(
    ("in_and_out", "options", "reason"),
    [
        pytest.param(["00:00:01:00", "00:00:05:00"], {"rate": None}, "give their rate", id="no rate"),
        pytest.param(
            ["00;00;01;00", "00:00:05:00"], {"rate": NTSC_RATE}, "some time codes drop", id="; and : mixed"
        ),
        pytest.param(["00:00:01:00", "00:00:05:00"], {"start": "x"}, "--start", id="a start that is no time"),
    ],
)
def test_time_codes_that_cannot_be_counted_are_refused(import_files, in_and_out, options, reason):
    """A semicolon in a time code says that labels are dropped (at 29.97 frames a second), a colon that none is."""
    table = tsv(HEADINGS_OF_PREMIERE, ["S", "", *in_and_out, "", ""])
    with pytest.raises(ManifestError, match=reason):
        import_files({"a.csv": table}, **options)


def test_a_start_for_files_without_time_codes_is_refused(import_files):
    """--start says which time code the film begins with. Times of SRT are not time codes."""
    with pytest.raises(ManifestError, match="--start is for"):
        import_files({"a.srt": "1\n00:00:01,000 --> 00:00:02,000\nHi\n"}, start="01:00:00:00")


def test_the_edit_index_of_resolve_is_read_by_its_record_times(import_files):
    """Resolve writes a table of cuts, with times of its timeline (Record In and Record Out).

    The film begins at 01:00:00:00 of the timeline, so 01:00:01:00 is 1 s of the film.
    """
    table = (
        '"#","Reel","V","Record In","Record Out","Name","Comments","Color","Notes"\n'
        "1,A,V1,01:00:01:00,01:00:05:00,clip.mov,,Blue,S\n"
        "2,A,V1,01:00:06:00,01:00:07:00,clip.mov,,Red,\n"
    )

    clips, _ = import_files({"a.csv": table}, start="01:00:00:00")

    assert markers_of(clips) == [(1.0, 5.0, "S", "Blue", ""), (6.0, 7.0, "clip.mov", "Red", "")]


@pytest.mark.parametrize(
    ("comment", "text"), [("S\t100\t\tRed", "S"), ("S\nby the window\n\t100", "S by the window")],
    ids=["of a line", "of several lines"],
)  # fmt: skip
def test_avids_text_names_who_set_a_marker_and_its_length(import_files, comment, text):
    """The first marker, of AB, lasts 100 frames, which at 25 a second are 4 s.

    The second, of CD, lasts one frame: it is a point, and no span. The film begins at 01:00:00:00.
    """
    list_of_markers = f"AB\t01:00:01:00\tV1\tred\t{comment}\nCD\t01:00:06:00\tTC1\tgreen\tpoint\t1\n"

    clips, notices = import_files({"a.txt": list_of_markers}, start="01:00:00:00")

    assert markers_of(clips) == [(1.0, 5.0, text, "red", "AB")]
    assert "1 of 2 spans read" in notices
    assert "a marker without length" in notices


def test_a_table_of_premiere_in_another_language_is_read_by_the_places_of_its_columns(import_files):
    """In Russian, the six columns are name, description, in, out, duration and type, as in English."""
    headings = ["Имя маркера", "Описание", "Вход", "Выход", "Длительность", "Тип маркера"]
    table = tsv(headings, ["kiss", "", "00:00:01:00", "00:00:05:00", "00:00:04:00", "Комментарий"])

    clips, notices = import_files({"a.csv": table.encode("utf-16")})

    assert markers_of(clips) == [(1.0, 5.0, "kiss", "Комментарий", "")]
    assert "the headings are in another language" in notices


LIST_OF_RESOLVE = """TITLE: film
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
"""An edit decision list (EDL) whose timeline begins at 01:00:00:00.

It has a green marker "kiss" of 100 frames at 1 s, a cut from 6 to 8 s with its sound, and a cut from 8 to 9 s
with a marker of Avid.
"""


def test_each_line_of_an_edl_is_an_event_or_left_out_by_its_number(import_files):
    """A list of cuts (EDL) has a line for each event, whose last two times are those of the film.

    Lines 4 and 5 are events and are read, though a reel is called Head Leader, with a blank, and the times of
    sources are counted in frames, as 1041+03. Line 3 is a marker at a point of time, and line 6 lacks the
    sort of its event, C for a cut: both are left out.
    """
    list_of_cuts = (
        "TITLE: film\n"
        "FCM: NON-DROP FRAME\n"
        "* LOC: 00:00:00:10 green   above the first event\n"
        "001  Head Leader V     C        1009        1064        00:00:00:00 00:00:02:00\n"
        "002  AX       V     C        1041+03        1064+00        00:00:02:00 00:00:03:00\n"
        "003  AX       V     00:00:00:00 00:00:01:00 00:00:03:00 00:00:04:00\n"
    )

    clips, notices = import_files({"film.edl": list_of_cuts})

    assert [(clip.start_s, clip.end_s) for clip in clips] == [(0.0, 2.0), (2.0, 3.0)]
    assert "2 of 4 spans read" in notices
    assert "line 3: a marker without length" in notices
    assert "line 6: no event" in notices


@pytest.mark.parametrize("track", ["V", "V2", "B", "AA/V", "A2/V", "VA1", "v"])
def test_an_event_of_pictures_is_a_cut_also_if_its_sound_goes_with_it(import_files, track):
    """B and AA/V are an event of video with one or two tracks of sound. The event after it is of sound alone."""
    list_of_cuts = (
        f"001  AX       {track:5} C        00:00:00:00 00:00:02:00 00:00:00:00 00:00:02:00\n"
        "002  AX       AA    C        00:00:00:00 00:00:02:00 00:00:02:00 00:00:04:00\n"
    )

    clips, notices = import_files({"film.edl": list_of_cuts})

    assert [(clip.start_s, clip.end_s) for clip in clips] == [(0.0, 2.0)]
    assert "a cut of sound" in notices


def test_an_event_with_a_dissolve_is_named_by_the_clip_that_comes(import_files):
    """A dissolve of 12 frames leads from a.mov, of which event 2 shows nothing more, to b.mov."""
    list_of_cuts = (
        "002  AX       V     C        00:00:09:00 00:00:09:00 00:00:00:00 00:00:00:00\n"
        "002  BX       V     D    012 00:00:00:00 00:00:02:00 00:00:00:00 00:00:02:00\n"
        "* FROM CLIP NAME: a.mov\n"
        "* TO CLIP NAME: b.mov\n"
    )

    (clip,), _ = import_files({"film.edl": list_of_cuts})

    assert clip.extras["text"] == "b.mov"


@pytest.mark.parametrize("heading", ["", "TITLE: film\nFCM: FILM\n"], ids=["alone", "titled"])
def test_markers_of_avid_in_a_list_without_cuts_are_points_and_left_out(import_files, heading):
    """A list has no cuts, and two markers of Avid (LOC), each with a time, a colour and a text.

    They have no length, so both are points, and left out.
    """
    markers = "* LOC: 01:00:00:10 green   one\n* LOC: 01:00:01:00 red     two\n"

    clips, notices = import_files({"film.edl": f"{heading}{markers}"})

    assert not clips
    assert "0 of 2 spans read (edl); 2 left out: a marker without length" in notices


def test_markers_and_cuts_of_pictures_are_read_from_a_list_of_resolve(import_files):
    """`LIST_OF_RESOLVE` is an edit decision list, whose timeline begins at 01:00:00:00: 0 s of the film.

    - At 01:00:01:00 it has a green marker "kiss" of 100 frames (D:100), which are 4 s; a note is before it.
    - From 01:00:06:00 to 01:00:08:00 shot2.mov is shown, by a cut of its picture (V). The cut of its sound
      (A) is left out.
    - From 01:00:08:00 to 01:00:09:00 there is a cut of Avid. The marker of Avid in it (LOC) has no length,
      and is left out.
    """
    clips, notices = import_files({"film.edl": LIST_OF_RESOLVE}, start="01:00:00:00")

    starts_ends_texts_and_tiers = [marker[:4] for marker in markers_of(clips)]
    assert starts_ends_texts_and_tiers == [
        (1.0, 5.0, "kiss", "Green"),
        (6.0, 8.0, "shot2.mov", "cut"),
        (8.0, 9.0, "", ""),
    ]
    assert all(clip.annotator == "" for clip in clips)
    assert clips[0].extras["comment"] == "note before"
    assert "a cut of sound" in notices
    assert "a marker without length" in notices


def test_a_notice_says_where_no_marker_is_in_the_first_hour(import_files):
    """Timelines of editors often begin at 01:00:00:00. Without a start, all markers would be an hour late."""
    _, notices = import_files({"film.edl": LIST_OF_RESOLVE})
    assert "no span in the first hour" in notices


def test_colours_of_resolve_can_be_levels(import_files):
    """The green marker at 1 s is called "Sure", which is the level S, and the user says that green are levels."""
    list_of_resolve = LIST_OF_RESOLVE.replace("kiss", "Sure")

    clips, _ = import_files({"film.edl": list_of_resolve}, start="01:00:00:00", tiers={"Green": "levels"})

    assert [(clip.start_s, clip.level) for clip in clips] == [(1.0, "S")]


def test_final_cuts_markers_of_a_clip_are_of_its_media(import_files):
    """Two clips of a sequence are of one file, which the second names by its id, f1.

    At 24 frames of NTSC a second, 24 frames last 1.001 s. Markers of the clips are at frames 24 to 48, and 48
    to 72.
    """
    rate = "<rate><timebase>24</timebase><ntsc>TRUE</ntsc></rate>"
    path = "<pathurl>file://localhost/d/my%20film.mov</pathurl>"
    first_marker = "<marker><name>S</name><comment>why</comment><in>24</in><out>48</out></marker>"
    second_marker = "<marker><name>EN</name><in>48</in><out>72</out></marker>"
    first_clip = f'<clipitem id="1"><name>x</name>{rate}<file id="f1"><name>film.mov</name>{path}</file>{first_marker}</clipitem>'
    second_clip = f'<clipitem id="2"><name>y</name>{rate}<file id="f1"/>{second_marker}</clipitem>'
    media = f"<media><video><track>{first_clip}{second_clip}</track></video></media>"
    document = f'<xmeml version="4"><sequence><name>cut</name>{rate}{media}</sequence></xmeml>'

    clips, _ = import_files({"a.xml": document}, rate=None)

    assert [(clip.movie, round(clip.start_s, 6), round(clip.end_s, 6), clip.level) for clip in clips] == [
        ("my film", 1.001, 2.002, "S"),
        ("my film", 2.002, 3.003, "EN"),
    ]
    assert clips[0].extras["comment"] == "why"


def final_cut_document_of_edit(spine):
    """Write FCPXML of an edit; the film r2, of 23.976 frames a second, begins at 3603.6 s of its clock."""
    asset = '<asset id="r2" name="film" start="86486400/24000s"/>'
    project = f'<project name="p"><sequence><spine>{spine}</spine></sequence></project>'
    return (
        f'<fcpxml version="1.9"><resources>{asset}</resources>'
        f"<library><event>{project}</event></library></fcpxml>"
    )


def test_a_keyword_of_final_cut_pro_has_the_time_of_the_film_that_its_clip_shows(import_files):
    """A clip of an edit shows a film, whose first frame is at 86486400/24000 s = 3603.6 s of its own clock.

    The keyword S of that clip begins at 86510424/24000 s = 3604.601 s, so at 1.001 s of the film, and lasts
    24024/24000 s = 1.001 s. It makes no difference that the clip is shown from 5 s of the edit on.
    """
    keyword = '<keyword start="86510424/24000s" duration="24024/24000s" value="S"/>'
    clip_of_film = f'<clip offset="5s" start="0s"><video ref="r2" offset="0s"></video>{keyword}</clip>'

    (clip,), _ = import_files({"edit.fcpxml": final_cut_document_of_edit(clip_of_film)}, rate=None)

    assert clip.movie == "film"
    assert (round(clip.start_s, 6), round(clip.end_s, 6)) == (1.001, 2.002)


def test_a_marker_of_final_cut_pro_in_a_gap_has_the_time_of_the_edit(import_files):
    """A gap of an edit shows no film. Its own clock is at 3600 s where the edit begins, at 0 s.

    The marker "late" begins at 3602 s of that clock, which is 2 s of the edit, and lasts 2 s.
    """
    gap = (
        '<gap offset="0s" start="3600s" duration="5s">'
        '<marker start="3602s" duration="2s" value="late" note="n"/></gap>'
    )

    (clip,), _ = import_files({"edit.fcpxml": final_cut_document_of_edit(gap)}, rate=None)

    assert clip.movie == "edit"
    assert (clip.start_s, clip.end_s) == (2.0, 4.0)


def test_a_marker_of_final_cut_pro_of_one_frame_is_left_out_as_a_point(import_files):
    """Final Cut Pro gives each marker the length of a frame, here 1001/24000 s, and means a point in time.

    The keyword beside it is read.
    """
    point = '<marker start="86510424/24000s" duration="1001/24000s" value="p"/>'
    keyword = '<keyword start="86510424/24000s" duration="24024/24000s" value="S"/>'
    clip_of_film = f'<clip offset="5s" start="0s"><video ref="r2" offset="0s">{point}</video>{keyword}</clip>'

    (clip,), notices = import_files({"edit.fcpxml": final_cut_document_of_edit(clip_of_film)}, rate=None)

    assert clip.movie == "film"
    assert "a marker without length" in notices


def final_cut_document(inside_of_spine, *, sequence="<sequence>"):
    """Write FCPXML with a timeline of these elements; the film r1 begins at 3600 s of its own clock."""
    asset = '<asset id="r1" name="film" start="3600s"/>'
    project = f"<project>{sequence}<spine>{inside_of_spine}</spine></sequence></project>"
    return f"<fcpxml><resources>{asset}</resources><library><event>{project}</event></library></fcpxml>"


@pytest.mark.parametrize(
    ("sequence", "offset_s"),
    [('<sequence tcStart="3600/1s">', 3600), ('<sequence tcStart="3600s">', 0), ("<sequence>", 0)],
    ids=["Resolve", "offsets from 0 on", "no start"],
)
def test_a_timeline_of_final_cut_pro_begins_at_its_first_time_code(import_files, sequence, offset_s):
    """A gap without film is first on the timeline, and a marker lies 2 s after its start."""
    gap = f'<gap offset="{offset_s}s" start="50s" duration="9s"><marker start="52s" duration="4s" value="x"/></gap>'

    clips, _ = import_files({"edit.fcpxml": final_cut_document(gap, sequence=sequence)})

    assert [(clip.start_s, clip.end_s) for clip in clips] == [(2.0, 6.0)]


MARKER_AT_92_S = '<marker start="92s" duration="4s" value="x"/>'
"""A marker of 4 s, from 92 s on of the clock of the element that it stands in."""


@pytest.mark.parametrize(
    "clip_of_film",
    [
        pytest.param(
            # The title is shown at 3610 s of the film's clock, 10 s after its first frame, and its own clock
            # is at 90 s there. At 92 s the film is 12 s old.
            '<asset-clip ref="r1" start="3600s">'
            f'<title lane="1" offset="3610s" start="90s">{MARKER_AT_92_S}</title></asset-clip>',
            id="on a title",
        ),
        pytest.param(
            # The clip shows the film's first frame at its own 80 s, and the gap at its own 90 s, 10 s later;
            # the gap's own clock is at 90 s there too.
            '<clip start="80s"><video ref="r1" offset="80s" start="3600s"/>'
            f'<gap offset="90s" start="90s">{MARKER_AT_92_S}</gap></clip>',
            id="on a gap",
        ),
        pytest.param(
            # The clip shows the film's first frame at its own 80 s, so 12 s later it is at 92 s.
            f'<clip start="80s"><video ref="r1" offset="80s" start="3600s"/>{MARKER_AT_92_S}</clip>',
            id="on a clip with a clock of its own",
        ),
    ],
)
def test_a_marker_inside_of_a_clip_of_final_cut_pro_lies_where_the_clip_shows_the_film(
    import_files, clip_of_film
):
    """In FCPXML each element has a clock of its own: `start` is what it shows where it begins.

    `offset` is where it begins, by the clock of the element around it. The film's first frame is at 3600 s of
    the film's clock. The marker begins at 92 s of the clock of a title, a gap or a clip; in each case that is
    12 s after the film's first frame.
    """
    clips, _ = import_files({"edit.fcpxml": final_cut_document(clip_of_film)})

    assert [(clip.movie, clip.start_s, clip.end_s) for clip in clips] == [("film", 12.0, 16.0)]


def test_a_keyword_of_final_cut_pro_whose_time_is_none_is_left_out_alone(import_files):
    """Final Cut Pro writes times as fractions of seconds. The keyword a begins at 1/0 s, which is no time.

    It is left out. The keyword b, from 1 to 2 s, is read.
    """
    keywords = '<keyword start="1/0s" duration="1s" value="a"/><keyword start="1s" duration="1s" value="b"/>'

    clips, notices = import_files({"a.fcpxml": f"<fcpxml><event>{keywords}</event></fcpxml>"})

    assert [clip.extras["text"] for clip in clips] == ["b"]
    assert "its times cannot be read" in notices


def test_times_of_final_cut_pro_with_a_decimal_point_are_seconds(import_files):
    """Most of its times are fractions, such as 1001/24000s; other programs write 1.5s, which is as valid."""
    keyword = '<keyword start="1.5s" duration="2.25s" value="a"/>'

    clips, _ = import_files({"a.fcpxml": f"<fcpxml><event>{keyword}</event></fcpxml>"})

    assert [(clip.start_s, clip.end_s) for clip in clips] == [(1.5, 3.75)]


def otio_with_markers_of(*lengths):
    """Write a clip of OpenTimelineIO with markers from 1 s on, of these numbers of frames at 25 a second."""
    markers = [otio_marker("S", first=25, n_frames=n_frames) for n_frames in lengths]
    return json.dumps({"OTIO_SCHEMA": "Clip.2", "name": "film", "markers": markers})


def test_a_marker_of_one_frame_in_premiere_is_a_span(import_files):
    """Two markers of Premiere begin at 1 s. At 25 frames a second, they last one and two frames of .04 s.

    Other editors give a marker that is set on a frame the length of one frame. Premiere does not, so both
    are spans.
    """
    table = tsv(
        HEADINGS_OF_PREMIERE,
        ["S", "", "00:00:01:00", "00:00:01:01", "", "Comment"],
        ["S", "", "00:00:01:00", "00:00:01:02", "", "Comment"],
    )

    clips, notices = import_files({"a.x": table})

    assert [round(clip.end_s, 6) for clip in clips] == [1.04, 1.08]
    assert "2 of 2 spans read" in notices
    assert "a marker without length, or of the one frame" not in notices


def test_a_marker_of_one_frame_in_resolve_is_a_point(import_files):
    """Resolve gives a marker without length the length of a frame.

    Markers from 1 s on last one and two frames, of 0.04 s each.
    """
    table = (
        f"{HEADINGS_OF_RESOLVE}"
        "1,A,V1,00:00:01:00,00:00:01:01,x,,Blue,S\n"
        "1,A,V1,00:00:01:00,00:00:01:02,x,,Blue,S\n"
    )

    clips, notices = import_files({"a.x": table})

    assert [round(clip.end_s, 6) for clip in clips] == [1.08]
    assert "1 of 2 spans read" in notices
    assert "a marker without length, or of the one frame" in notices


def test_markers_of_one_frame_or_none_in_opentimelineio_are_left_out_as_points(import_files):
    """Resolve gives a marker of a point in time the length of one frame, other programs no length.

    Three markers begin at 1 s, and last no frame, one and two frames of 1/25 s. Only the last one is a span:
    it ends at 1.08 s.
    """
    clips, notices = import_files({"a.otio": otio_with_markers_of(0, 1, 2)})

    assert [round(clip.end_s, 6) for clip in clips] == [1.08]
    assert "1 of 3 spans read" in notices
    assert "a marker without length, or of the one frame" in notices


def test_a_level_of_one_frame_is_read_from_a_list_that_obygaze_wrote(import_files):
    """A list of cuts (EDL) has a marker S of one frame, in the notation of DaVinci Resolve.

    There C is its colour, M its text, and D its length in frames. Other programs write the length 1 for a
    marker without any, which is left out. This list has comments OBYGAZE, as we write them: they say that
    the marker is a level of AB, and at 25 frames a second it lasts from 1 to 1.04 s.
    """
    list_of_ours = (
        "TITLE: film\n"
        "001  001      V     C        00:00:01:00 00:00:01:01 00:00:01:00 00:00:01:01\n"
        " |C:ResolveColorBlue |M:S |D:1\n"
        "* OBYGAZE RATE: 25\n"
        "* OBYGAZE START: 00:00:00:00\n"
        "* OBYGAZE TIER: human: level, blind@AB\n"
        "* OBYGAZE TEXT: S\n"
        "* OBYGAZE FILM: film\n"
    )

    (clip,), _ = import_files({"a.edl": list_of_ours}, rate=None)

    assert (clip.start_s, clip.end_s) == (1.0, 1.04)
    assert (clip.level, clip.annotator) == ("S", "AB")


@pytest.mark.parametrize(
    ("start_frame", "n_frames", "start_and_end"),
    [
        pytest.param(25, 100, (1.013, 5.006), id="as exported, 1 to 5 s"),
        pytest.param(26, 99, (1.013, 5.006), id="rounded by the editor to the next frame, 1.04 to 5 s"),
        pytest.param(50, 100, (2.0, 6.0), id="moved by a second"),
        pytest.param(25, 125, (1.0, 6.0), id="made longer by a second"),
    ],
)
def test_a_marker_that_we_exported_comes_back_with_its_exact_times_unless_an_editor_moved_it(
    import_files, start_frame, n_frames, start_and_end
):
    """A person judged a span from 1.013 to 5.006 s, which we exported as a marker of OpenTimelineIO.

    The marker's times are in frames, 25 a second, and the exact ones stand in its metadata. With times to the
    frame, the judgement would be of another span than the one in the scored film. A marker that lies a frame
    or more elsewhere was moved in an editor, and has its new times.
    """
    times = {
        "start_time": {"rate": 25, "value": start_frame},
        "duration": {"rate": 25, "value": n_frames},
    }
    metadata = {"obygaze": {"tier": "human: level, blind@AB", "start_s": 1.013, "end_s": 5.006}}
    marker = {"OTIO_SCHEMA": "Marker.2", "name": "S", "marked_range": times, "metadata": metadata}
    document = {"OTIO_SCHEMA": "Clip.2", "name": "film", "markers": [marker]}

    (clip,), _ = import_files({"a.otio": json.dumps(document)})

    assert (clip.start_s, clip.end_s) == pytest.approx(start_and_end)
    assert (clip.level, clip.annotator) == ("S", "AB")
