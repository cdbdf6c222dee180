# ruff: noqa: E501 - rows of files are kept as tools write them
"""Times of TTML: every clock, container and parameter of TTML2, section 12, by hand-made numbers."""

from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Subtitle, read_subtitles
from obygaze_features.manifest.spans.ttml import write_ttml

NTSC = 'ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001"'
"""Parameters of a document of 30 * 1000 / 1001 = 29.97 frames a second."""


def ttml(content, parameters="", head="", body="<body>"):
    """Write a document with this content in its body; parameters say how its times count."""
    names = 'xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter"'
    names += ' xmlns:ttm="http://www.w3.org/ns/ttml#metadata"'
    return f"<tt {names} {parameters}>{head}{body}{content}</body></tt>"


def times_of(clips):
    """Start and end of clips, to the microsecond."""
    return [(round(clip.start_s, 6), round(clip.end_s, 6)) for clip in clips]


def texts_with_times(clips):
    """Start, end and text of clips."""
    return [(clip.start_s, clip.end_s, clip.extras["text"]) for clip in clips]


@pytest.mark.parametrize(
    ("begin", "end", "parameters", "expected_s"),
    [
        ("00:00:01.5", "00:00:05", "", (1.5, 5.0)),
        ("100:00:00", "100:00:01.25", "", (360_000.0, 360_001.25)),
        ("00:00:01:15", "00:00:02:00", "", (1.5, 2.0)),  # 30 frames a second where nothing says it
        ("00:00:01:12", "00:00:02:00", 'ttp:frameRate="24"', (1.5, 2.0)),
        ("00:00:01:12.1", "00:00:02:00", 'ttp:frameRate="25" ttp:subFrameRate="2"', (1.5, 2.0)),
        ("0.5h", "31m", "", (1800.0, 1860.0)),
        ("1500ms", "2s", "", (1.5, 2.0)),
        ("36f", "48f", 'ttp:frameRate="24"', (1.5, 2.0)),
        ("30f", "60f", NTSC, (1.001, 2.002)),  # a frame lasts 1001 / 30000 s
        ("15t", "20t", 'ttp:tickRate="10"', (1.5, 2.0)),
        ("10t", "20t", "", (10.0, 20.0)),  # a tick is a second
        ("48t", "96t", 'ttp:frameRate="24" ttp:subFrameRate="2"', (1.0, 2.0)),  # a tick is a sub-frame
        ("00:00:01:00", "00:00:02:00", f'{NTSC} ttp:timeBase="smpte"', (1.001, 2.002)),
        ("00:01:00:02", "00:10:00:00", f'{NTSC} ttp:timeBase="smpte"', (60.126733, 600.6)),  # no frame is dropped
        ("00:00:01:00", "00:00:02:00", NTSC, (1.0, 2.0)),  # media time counts real seconds
        ("00:01:00:02", "00:10:00:00", f'{NTSC} ttp:timeBase="smpte" ttp:dropMode="dropNTSC"', (60.06, 600.0 - 0.0006)),
    ],
)  # fmt: skip
def test_a_time_is_read_by_the_clock_of_the_document(import_files, begin, end, parameters, expected_s):
    """A document of TTML has one subtitle, whose times count hours, seconds, frames (f) or ticks (t).

    How long a frame or a tick is, the parameters of the document say: by those called NTSC, a frame lasts
    1001 / 30,000 s. Expected are the seconds of its start and its end.
    """
    document = ttml(f'<div><p begin="{begin}" end="{end}">x</p></div>', parameters)

    clips, _ = import_files({"a.ttml": document}, rate=None)

    assert times_of(clips) == [pytest.approx(expected_s, abs=1e-6)]


def test_times_count_from_their_container_and_end_with_it(import_files):
    """The div is shown from 10 to 30 s. Its texts count from 10 s, and end at 30 s at the latest."""
    texts = (
        '<p begin="1s" dur="2s">a</p>'
        '<p begin="5s" end="7s">b</p>'
        '<p begin="15s">c</p>'
        '<p begin="19s" dur="9s">d</p>'
    )

    clips, _ = import_files({"a.ttml": ttml(f'<div begin="10s" dur="20s">{texts}</div>')})

    assert texts_with_times(clips) == [(11, 13, "a"), (15, 17, "b"), (25, 30, "c"), (29, 30, "d")]


def test_in_a_sequence_each_begins_where_the_one_before_ends(import_files):
    """In a container with timeContainer="seq" times count from the end of the text before.

    So text b begins 1 s after 12 s, where a ends, and c ends 4 s after 15 s.
    """
    texts = '<p dur="2s">a</p><p begin="1s" dur="2s">b</p><p end="4s">c</p>'

    clips, _ = import_files({"a.ttml": ttml(f'<div timeContainer="seq" begin="10s">{texts}</div>')})

    assert texts_with_times(clips) == [(10, 12, "a"), (13, 15, "b"), (15, 19, "c")]


PARAGRAPHS_WITH_PARTS = {
    "spans with times of their own": (
        '<p begin="10s" end="20s"><span begin="0s" end="2s">to</span> <span begin="2s">night</span></p>',
        [(10, 12, "to"), (12, 20, "night")],
    ),
    "text around timed spans, at any depth": (
        '<p end="9s"><span begin="1s"><span begin="1s">c</span> b</span> a</p>',
        [(0, 9, "a"), (1, 9, "b"), (2, 9, "c")],
    ),
    "breaks, styles and metadata": (
        '<p begin="1s" end="2s"><metadata><ttm:desc>no</ttm:desc></metadata>a<br/><span>b <span>c</span></span> d</p>',
        [(1, 2, "a b c d")],
    ),
}


@pytest.mark.parametrize(("paragraph", "texts"), PARAGRAPHS_WITH_PARTS.values(), ids=PARAGRAPHS_WITH_PARTS)
def test_parts_of_a_paragraph_with_times_of_their_own_are_read_as_texts_of_their_own(
    import_files, paragraph, texts
):
    """A paragraph (<p>) of subtitles has parts (<span>) with times, which count from its own begin.

    In a paragraph from 10 to 20 s, for example, a span "to" with begin 0 s and end 2 s is a text from 10 to
    12 s. Each of the texts is (start, end, text). Title and metadata of a document are not read.
    """
    head = "<head><metadata><ttm:title>no</ttm:title></metadata></head>"

    clips, notices = import_files({"a.ttml": ttml(f"<div>{paragraph}</div>", head=head)})

    assert sorted(texts_with_times(clips)) == texts
    assert "takes no time" not in notices


def test_text_beside_the_timed_parts_of_a_sequence_is_left_out_with_a_notice(import_files):
    """In a sequence (timeContainer "seq") the parts follow each other: a text without times has none left.

    Here "no" stands beside a part "yes" of 5 s.
    """
    paragraph = '<p timeContainer="seq" dur="9s">no <span dur="5s">yes</span></p>'

    clips, notices = import_files({"a.ttml": ttml(f"<div>{paragraph}</div>")})

    assert texts_with_times(clips) == [(0, 5, "yes")]
    assert "takes no time" in notices


def test_an_agent_of_a_text_is_its_speaker(import_files):
    """The head of the document names an agent m, Mary, and a text says that it is of the agent m."""
    mary = '<ttm:agent xml:id="m" type="person"><ttm:name>Mary</ttm:name></ttm:agent>'
    head = f"<head><metadata>{mary}</metadata></head>"
    text = '<div><p begin="1s" end="2s" ttm:agent="m">a</p></div>'

    (clip,), _ = import_files({"a.ttml": ttml(text, head=head)})

    assert clip.extras["subject"] == "Mary"


def test_texts_in_another_language_than_the_document_have_a_tier_of_their_own(import_files):
    """The document is in English, and its second text in French."""
    texts = '<div><p begin="1s" end="2s">a</p><p begin="3s" end="4s" xml:lang="fr">b</p></div>'

    (english, french), notices = import_files({"a.ttml": ttml(texts, 'xml:lang="en"')})

    assert english.extras["tier"] == ""
    assert french.extras["tier"] == "subtitle fr"
    assert "language: en, fr" in notices


@pytest.mark.parametrize(
    "namespace", ["http://www.w3.org/2006/04/ttaf1", "http://www.w3.org/2006/10/ttaf1", ""]
)
def test_documents_of_early_versions_of_ttml_are_read(import_files, namespace):
    """Early versions, and some programs, name the elements by another namespace, or by none.

    The document has a subtitle from 1 to 2 s.
    """
    text = '<div><p begin="1s" end="2s">a</p></div>'
    document = f'<?xml version="1.0"?><tt xmlns="{namespace}"><body>{text}</body></tt>'

    clips, _ = import_files({"a.xml": document})

    assert times_of(clips) == [(1, 2)]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ('begin="1s"', "no end"),
        ('begin="x" end="2s"', "no time of TTML"),
        ('begin="00:00:01:31" end="9s"', "no time at 25 frames"),
        ('begin="2s" end="1s"', "ends before"),
        ('begin="wallclock(2020-01-01)" end="2s"', "no time of TTML"),
    ],
)
def test_a_text_without_readable_times_is_left_out_with_the_reason(import_files, attributes, reason):
    """The text beside it, from 3 to 4 s, is read all the same. Frames count to 24 at 25 a second."""
    document = ttml(f'<div><p {attributes}>a</p><p begin="3s" end="4s">b</p></div>')

    clips, notices = import_files({"a.ttml": document})

    assert texts_with_times(clips) == [(3, 4, "b")]
    assert reason in notices


def test_containers_nested_500_deep_are_refused_in_our_words(import_files):
    """A reader that follows them one by one would exhaust Python's stack."""
    with pytest.raises(ManifestError, match="nested too deeply"):
        import_files({"a.ttml": ttml("<div>" * 500 + "</div>" * 500)})


def test_subtitles_that_are_written_are_read_back(tmp_path):
    """Two subtitles, which overlap, are written as TTML. Signs of the first mean something in XML."""
    subtitles = [
        Subtitle(start_s=1.0, end_s=2.5, text="a < b & c"),
        Subtitle(start_s=2.0, end_s=4.001, text="é"),
    ]
    path = tmp_path / "a.ttml"

    path.write_text(write_ttml(subtitles, title="title", notes=["note <1>"]), encoding="utf-8")

    assert read_subtitles(path) == subtitles


def test_frames_of_a_document_without_a_rate_count_by_the_rate_that_the_user_gives(import_files):
    """A text begins 12 frames after 1 s. The person says that there are 24 a second: it begins at 1.5 s."""
    document = ttml('<div><p begin="00:00:01:12" end="00:00:02:00">a</p></div>')

    clips, _ = import_files({"a.ttml": document}, rate=Fraction(24))

    assert times_of(clips) == [(1.5, 2.0)]


def test_a_text_is_shown_while_its_region_is(import_files):
    """Texts count from the begin of their div, at 1 s; region r is shown from 2 to 6 s of the film."""
    regions = '<region xml:id="r" begin="2s" end="6s"/><region xml:id="always"/>'
    texts = (
        '<p begin="0s" end="4s" region="r">late</p><p begin="1s" region="r">by the region</p>'
        '<p begin="7s" end="9s" region="r">never</p><p begin="0s" end="9s" region="always">as it is</p>'
    )
    content = (
        '<tt xmlns="http://www.w3.org/ns/ttml" xml:lang="en"><head><layout>'
        f'{regions}</layout></head><body region="r"><div begin="1s">{texts}</div></body></tt>'
    )

    clips, notices = import_files({"a.ttml": content})

    assert texts_with_times(clips) == [
        (2.0, 5.0, "late"),  # 1 to 5 s, without what is before the region
        (2.0, 6.0, "by the region"),  # it has no end, so it ends with the region
        (1.0, 10.0, "as it is"),
    ]
    assert "its region is not shown at its time" in notices  # of "never", from 8 to 10 s


def test_bare_text_of_a_sequence_takes_no_time_and_delays_nothing(import_files):
    """A sequence (timeContainer="seq") shows its parts one after the other, each from the last one's end on.

    A division of 20 s is one. Its parts are "first", from 5 to 10 s, a paragraph that begins 5 s later, and
    "second", which lasts 5 s. The paragraph is a sequence too, and its text "never" is no part that has a
    time. So it lasts no time, and "second" is shown from 15 to 20 s.
    """
    first = '<p begin="5s" dur="5s">first</p>'
    never = '<p begin="5s" timeContainer="seq">never</p>'
    second = '<p dur="5s">second</p>'

    clips, notices = import_files(
        {"a.ttml": ttml(f'<div timeContainer="seq" dur="20s">{first}{never}{second}</div>')}
    )

    assert texts_with_times(clips) == [(5.0, 10.0, "first"), (15.0, 20.0, "second")]
    assert "text in a sequence, which takes no time" in notices


@pytest.mark.parametrize(
    ("times_of_body", "start_and_end"),
    [
        pytest.param('begin="10s"', (13.0, 14.0), id="a body that begins at 10 s"),
        pytest.param('begin="10s" end="13.5s"', (13.0, 13.5), id="a body that ends before the text"),
        pytest.param('dur="00:00:05"', (3.0, 4.0), id="a body of 5 s, from 0 s on"),
    ],
)
def test_times_count_from_the_begin_of_the_body_and_end_with_it(import_files, times_of_body, start_and_end):
    """Each element counts its times from the begin of the one around it, and ends with it at the latest.

    A body has a div that begins at 2 s of it, and in this a text from 1 to 2 s: 3 to 4 s of the body.
    """
    document = ttml('<div begin="2s"><p begin="1s" end="2s">x</p></div>', body=f"<body {times_of_body}>")

    clips, _ = import_files({"a.ttml": document})

    assert times_of(clips) == [start_and_end]


def test_a_text_at_a_time_of_day_is_not_cut_by_the_duration_of_the_body(import_files):
    """A live programme has timeBase="clock": its text is shown from 12:11:53.17 to 12:11:57.05 by the clock.

    The document's <body> lasts 5 s. If these counted from midnight, all would be over before the text begins.
    """
    text = '<div><p begin="12:11:53.17" end="12:11:57.05">x</p></div>'
    document = ttml(text, 'ttp:timeBase="clock"', body='<body dur="5s">')

    clips, _ = import_files({"a.ttml": document})

    begin_s = 12 * 3600 + 11 * 60 + 53.17
    end_s = 12 * 3600 + 11 * 60 + 57.05
    assert times_of(clips) == [(round(begin_s, 6), round(end_s, 6))]


def test_each_text_below_a_time_that_cannot_be_read_is_counted(import_files):
    """The first div begins "soon", so none of its three texts has a time. Of the second's three, one has no end.

    A text is named by its number in the document, from 1 to 6.
    """
    text = '<p begin="1s" end="2s">x</p>'
    text_without_end = '<p begin="1s">x</p>'
    first = f'<div begin="soon">{text}{text}{text}</div>'
    second = f"<div>{text}{text}{text_without_end}</div>"

    clips, notices = import_files({"a.ttml": ttml(first + second)})

    assert len(clips) == 2
    assert "2 of 6 spans read" in notices
    assert "3 left out: 'soon' is no time of TTML" in notices
    assert "(the first: text 1)" in notices
    assert "text 6" in notices


def test_a_container_in_a_sequence_ends_with_its_last_text(import_files):
    """The first div is no sequence: a and b count from 0 s, and it ends at 4 s with text a.

    The second begins there, and is one: c from 5 to 7 s, d from 8 to 10 s. Text e begins 1 s later, at 11 s.
    """
    first = '<div><p begin="1s" end="4s">a</p><p dur="2s">b</p></div>'
    second = '<div timeContainer="seq"><p begin="1s" dur="2s">c</p><p begin="1s" dur="2s">d</p></div>'
    third = '<p begin="1s" dur="1s">e</p>'
    sequence = f'<div timeContainer="seq" dur="40s">{first}{second}{third}</div>'

    clips, _ = import_files({"a.ttml": ttml(sequence)})

    assert [(clip.extras["text"], clip.start_s, clip.end_s) for clip in clips] == [
        ("a", 1.0, 4.0),
        ("b", 0.0, 2.0),
        ("c", 5.0, 7.0),
        ("d", 8.0, 10.0),
        ("e", 11.0, 12.0),
    ]


TEN_O_CLOCK = ttml(
    '<div><p begin="10:00:05:12" end="10:00:07:00">x</p></div>', 'ttp:frameRate="24" ttp:timeBase="smpte"'
)
"""A text of a broadcaster whose time codes, of 24 frames a second, begin at ten hours."""


def test_time_codes_count_from_the_films_first_one(import_files):
    """The film's first time code is 10:00:00:00, and a text is shown from 10:00:05:12 to 10:00:07:00.

    At 24 frames a second, 12 frames are half a second. So it is shown from 5.5 to 7 s of the film.
    """
    clips, _ = import_files({"a.xml": TEN_O_CLOCK}, start="10:00:00:00")
    assert times_of(clips) == [(5.5, 7.0)]


def test_a_text_without_a_begin_is_shown_from_the_films_first_time_code_on(import_files):
    """The film starts at the time code 10:00:00:00. A text without a begin ends at 10:00:05:12.

    At 24 frames a second that is 5.5 s later, so that the text lasts from 0 to 5.5 s.
    """
    document = ttml('<div><p end="10:00:05:12">x</p></div>', 'ttp:frameRate="24" ttp:timeBase="smpte"')

    clips, _ = import_files({"a.xml": document}, start="10:00:00:00")

    assert times_of(clips) == [(0.0, 5.5)]


def test_a_notice_asks_for_the_films_first_time_code_where_texts_begin_after_many_hours(import_files):
    """Time codes begin at 10:00:05:12, and nobody says that the film's first one is 10:00:00:00.

    Taken as they are, all texts would be ten hours late.
    """
    _, notices = import_files({"a.xml": TEN_O_CLOCK})
    assert "does the time code begin at 0? Give --start hh:mm:ss:ff if not" in notices


def test_a_first_time_code_moves_no_times_that_count_from_the_films_start(import_files):
    """`--start` says which time code a film begins with, here 10:00:00:00, so that it is subtracted from times.

    This document does not say that its times are time codes: they count from the film's start. So they stay,
    and a notice says that --start is not used.
    """
    document = ttml('<div><p begin="00:00:05.5" end="00:00:07">x</p></div>')

    clips, notices = import_files({"a.xml": document}, start="10:00:00:00")

    assert times_of(clips) == [(5.5, 7.0)]
    assert "--start is not used" in notices


def test_the_first_time_code_is_not_asked_for_where_late_times_are_no_time_codes(import_files):
    """A text is shown 10 hours and 5.5 s after the film's start, which no film is long enough for.

    A notice asks about that. It does not advise the option --start, the film's first time code: that would
    move time codes alone, and 10:00:05.5 is none.
    """
    document = ttml('<div><p begin="10:00:05.5" end="10:00:07">x</p></div>')

    _, notices = import_files({"a.xml": document})

    assert "no span in the first hour (a: 10:00:05.500): does the time code begin at 0?" in notices
    assert "--start" not in notices


def test_a_first_time_code_that_is_no_time_is_refused(refusal_of):
    """A person says that the film's first time code is "ten" (--start)."""
    assert "--start: 'ten' is no time of TTML" in str(refusal_of({"a.xml": TEN_O_CLOCK}, start="ten"))
