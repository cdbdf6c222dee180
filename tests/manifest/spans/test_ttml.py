# ruff: noqa: E501 - rows of files are kept as tools write them
"""Times of TTML: every clock, container and parameter of TTML2, section 12, by hand-made numbers."""

from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Subtitle, read_subtitles
from obygaze_features.manifest.spans.ttml import write_ttml

NTSC = 'ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001"'


def ttml(body, parameters="", head=""):
    """Write a document with a body and parameters of its times."""
    names = 'xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter"'
    names += ' xmlns:ttm="http://www.w3.org/ns/ttml#metadata"'
    return f"<tt {names} {parameters}>{head}<body>{body}</body></tt>"


def times(clips):
    """Start and end of clips, to the microsecond."""
    return [(round(clip.start_s, 6), round(clip.end_s, 6)) for clip in clips]


@pytest.mark.parametrize(
    ("begin", "end", "parameters", "expected"),
    [
        ("00:00:01.5", "00:00:05", "", (1.5, 5.0)),
        ("100:00:00", "100:00:01.25", "", (360_000.0, 360_001.25)),
        ("00:00:01:15", "00:00:02:00", "", (1.5, 2.0)),  # 30 frames a second where nothing says it
        ("00:00:01:12", "00:00:02:00", 'ttp:frameRate="24"', (1.5, 2.0)),
        ("00:00:01:12.1", "00:00:02:00", 'ttp:frameRate="25" ttp:subFrameRate="2"', (1.5, 2.0)),
        ("0.5h", "31m", "", (1800.0, 1860.0)),
        ("1500ms", "2s", "", (1.5, 2.0)),
        ("36f", "48f", 'ttp:frameRate="24"', (1.5, 2.0)),
        ("30f", "60f", NTSC, (1.001, 2.002)),
        ("15t", "20t", 'ttp:tickRate="10"', (1.5, 2.0)),
        ("10t", "20t", "", (10.0, 20.0)),  # a tick is a second
        ("48t", "96t", 'ttp:frameRate="24" ttp:subFrameRate="2"', (1.0, 2.0)),  # a tick is a sub-frame
        ("00:00:01:00", "00:00:02:00", f'{NTSC} ttp:timeBase="smpte"', (1.001, 2.002)),
        ("00:01:00:02", "00:10:00:00", f'{NTSC} ttp:timeBase="smpte"', (60.126733, 600.6)),  # no frame is dropped
        ("00:00:01:00", "00:00:02:00", NTSC, (1.0, 2.0)),  # media time counts real seconds
        ("00:01:00:02", "00:10:00:00", f'{NTSC} ttp:timeBase="smpte" ttp:dropMode="dropNTSC"', (60.06, 600.0 - 0.0006)),
    ],
)  # fmt: skip
def test_a_time_is_read_by_the_clock_of_the_document(import_files, begin, end, parameters, expected):
    clips, _ = import_files(
        {"a.ttml": ttml(f'<div><p begin="{begin}" end="{end}">x</p></div>', parameters)}, rate=None
    )
    assert times(clips) == [pytest.approx(expected, abs=1e-6)]


def test_times_count_from_their_container_and_end_with_it(import_files):
    """The div is shown from 10 to 30 s. Texts count from 10 s, and end at 30 s at the latest."""
    body = (
        '<div begin="10s" dur="20s"><p begin="1s" dur="2s">a</p><p begin="5s" end="7s">b</p><p begin="15s">c</p>'
        '<p begin="19s" dur="9s">d</p></div>'
    )
    clips, _ = import_files({"a.ttml": ttml(body)})
    assert times(clips) == [(11, 13), (15, 17), (25, 30), (29, 30)]


def test_in_a_sequence_each_begins_where_the_one_before_ends(import_files):
    """In a container with timeContainer="seq" times count from the end of the text before."""
    body = '<div timeContainer="seq" begin="10s"><p dur="2s">a</p><p begin="1s" dur="2s">b</p><p end="4s">c</p></div>'
    clips, _ = import_files({"a.ttml": ttml(body)})
    assert times(clips) == [(10, 12), (13, 15), (15, 19)]


TEXTS = {
    "spans with times of their own": (
        '<p begin="10s" end="20s"><span begin="0s" end="2s">to</span> <span begin="2s">night</span></p>',
        [(10, 12, "to"), (12, 20, "night")],
    ),
    "text around timed spans, at any depth": (
        '<p end="9s"><span begin="1s"><span begin="1s">c</span> b</span> a</p>',
        [(0, 9, "a"), (1, 9, "b"), (2, 9, "c")],
    ),
    "text beside timed spans, which takes no time in a sequence": (
        '<p timeContainer="seq" dur="9s">no <span dur="5s">yes</span></p>',
        [(0, 5, "yes")],
    ),
    "breaks, styles and metadata": (
        '<p begin="1s" end="2s"><metadata><ttm:desc>no</ttm:desc></metadata>a<br/><span>b <span>c</span></span> d</p>',
        [(1, 2, "a b c d")],
    ),
}


@pytest.mark.parametrize(("paragraph", "texts"), TEXTS.values(), ids=TEXTS)
def test_a_paragraph_is_read_with_the_times_of_its_parts(import_files, paragraph, texts):
    head = "<head><metadata><ttm:title>no</ttm:title></metadata></head>"
    clips, notices = import_files({"a.ttml": ttml(f"<div>{paragraph}</div>", head=head)})
    assert sorted((clip.start_s, clip.end_s, clip.extras["text"]) for clip in clips) == texts
    assert ("takes no time" in notices) == ("seq" in paragraph)


def test_agents_are_subjects_and_other_languages_have_a_tier(import_files):
    head = '<head><metadata><ttm:agent xml:id="m" type="person"><ttm:name>Mary</ttm:name></ttm:agent></metadata></head>'
    body = '<div><p begin="1s" end="2s" ttm:agent="m">a</p><p begin="3s" end="4s" xml:lang="fr">b</p></div>'
    clips, notices = import_files({"a.ttml": ttml(body, 'xml:lang="en"', head)})

    assert [(clip.extras.get("subject", ""), clip.extras.get("tier", "")) for clip in clips] == [
        ("Mary", ""),
        ("", "subtitle fr"),
    ]
    assert "language: en, fr" in notices


@pytest.mark.parametrize(
    "namespace", ["http://www.w3.org/2006/04/ttaf1", "http://www.w3.org/2006/10/ttaf1", ""]
)
def test_older_namespaces_are_read_too(import_files, namespace):
    clips, _ = import_files(
        {
            "a.xml": f'<?xml version="1.0"?><tt xmlns="{namespace}"><body><div><p begin="1s" end="2s">a</p></div></body></tt>'
        }
    )
    assert times(clips) == [(1, 2)]


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
    clips, notices = import_files(
        {"a.ttml": ttml(f'<div><p {attributes}>a</p><p begin="3s" end="4s">b</p></div>')}
    )
    assert times(clips) == [(3, 4)]
    assert reason in notices


def test_nesting_without_end_is_one_error(import_files):
    with pytest.raises(ManifestError, match="nested too deeply"):
        import_files({"a.ttml": ttml("<div>" * 500 + "</div>" * 500)})


def test_what_is_written_comes_back(tmp_path):
    spans = [Subtitle(1.0, 2.5, "a < b & c"), Subtitle(2.0, 4.001, "é")]
    path = tmp_path / "a.ttml"
    path.write_text(write_ttml(spans, "title", ["note <1>"]), encoding="utf-8")
    assert read_subtitles(path) == spans


def test_frames_without_a_stated_rate_use_the_rate_given(import_files):
    """12 frames at the given 24 a second are half a second."""
    body = '<div><p begin="00:00:01:12" end="00:00:02:00">a</p></div>'
    assert times(import_files({"a.ttml": ttml(body)}, rate=Fraction(24))[0]) == [(1.5, 2.0)]


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

    assert [(clip.start_s, clip.end_s, clip.extras["text"]) for clip in clips] == [
        (2.0, 5.0, "late"),  # 1 to 5 s, without what is before the region
        (2.0, 6.0, "by the region"),  # without an end of its own
        (1.0, 10.0, "as it is"),
    ]
    assert "its region is not shown at its time" in notices  # of "never", from 8 to 10 s


def test_text_of_a_sequence_takes_no_time_and_holds_nothing_up(import_files):
    texts = (
        '<p begin="5s" dur="5s">first</p><p begin="5s" timeContainer="seq">never</p><p dur="5s">second</p>'
    )
    body = f'<body><div timeContainer="seq" dur="20s">{texts}</div></body>'
    clips, notices = import_files({"a.ttml": f'<tt xmlns="http://www.w3.org/ns/ttml">{body}</tt>'})

    assert [(clip.start_s, clip.end_s, clip.extras["text"]) for clip in clips] == [
        (5.0, 10.0, "first"),
        (15.0, 20.0, "second"),
    ]
    assert "text in a sequence, which takes no time" in notices


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [('begin="10s"', [(13.0, 14.0)]), ('begin="10s" end="13.5s"', [(13.0, 13.5)]), ('dur="00:00:05"', [(3.0, 4.0)])],
)  # fmt: skip
def test_the_body_has_times_too(import_files, attributes, expected):
    content = ttml('<div begin="2s"><p begin="1s" end="2s">x</p></div>').replace(
        "<body>", f"<body {attributes}>"
    )
    clips, _ = import_files({"a.ttml": content})
    assert times(clips) == expected


def test_the_length_of_a_body_ends_no_text_whose_times_are_times_of_day(import_files):
    """A live programme has timeBase="clock": 5 s from the begin of the body are not 5 s after midnight."""
    content = ttml('<div><p begin="12:11:53.17" end="12:11:57.05">x</p></div>', 'ttp:timeBase="clock"')
    clips, _ = import_files({"a.ttml": content.replace("<body>", '<body dur="5s">')})
    assert times(clips) == [(43_913.17, 43_917.05)]  # 12 h 11 min 53.17 s


def test_each_text_below_a_time_that_cannot_be_read_is_counted(import_files):
    """A text is named by its number in the document: of two divs with three texts, the last has no end."""
    lines = '<p begin="1s" end="2s">x</p>' * 3
    last_without_end = lines.replace(' end="2s"', "", 3).replace("<p", '<p end="2s"', 2)
    clips, notices = import_files(
        {"a.ttml": ttml(f'<div begin="soon">{lines}</div><div>{last_without_end}</div>')}
    )
    assert len(clips) == 2
    assert "2 of 6 spans read" in notices
    assert "3 left out: 'soon' is no time of TTML" in notices
    assert "(the first: text 1)" in notices
    assert "text 6" in notices


def test_a_container_in_a_sequence_ends_with_its_last_text(import_files):
    """The first div ends at 4 s with text a.

    The second begins there: c from 5 to 7 s, d from 8 to 10 s. Text e follows at 11 s.
    """
    first = '<div><p begin="1s" end="4s">a</p><p dur="2s">b</p></div>'
    second = '<div timeContainer="seq"><p begin="1s" dur="2s">c</p><p begin="1s" dur="2s">d</p></div>'
    third = '<p begin="1s" dur="1s">e</p>'
    clips, _ = import_files(
        {"a.ttml": ttml(f'<div timeContainer="seq" dur="40s">{first}{second}{third}</div>')}
    )

    assert [(clip.extras["text"], clip.start_s, clip.end_s) for clip in clips] == [
        ("a", 1.0, 4.0),
        ("b", 0.0, 2.0),
        ("c", 5.0, 7.0),
        ("d", 8.0, 10.0),
        ("e", 11.0, 12.0),
    ]
