# ruff: noqa: E501 - rows of files are kept as tools write them
"""Every text of subtitles is kept with its times; what cannot be read costs itself alone, and is said."""

import unicodedata

import pytest
import webvtt
from hypothesis import example, given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import SUBTITLE_SUFFIXES
from obygaze_features.manifest import Account, Subtitle, read_subtitles, write_srt, write_vtt
from obygaze_features.manifest.spans.sources import SOURCES
from obygaze_features.text_records import unmarked_encoding

ASS = (
    "[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize\n"
    "Style: Default,Arial,20\n\n[Events]\n"
    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
)
PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"


def srt(*cues):
    """Write cues, each its line of times and its text, as SRT numbered from 1."""
    return "".join(f"{n}\n{times}\n{text}\n\n" for n, (times, text) in enumerate(cues, start=1))


def srt_cue(text):
    """Write a text from 1 to 2.5 s as SRT."""
    return srt(("00:00:01,000 --> 00:00:02,500", text))


def vtt_cue(text):
    """Write a text from 1 to 2.5 s as WebVTT."""
    return f"WEBVTT\n\n00:01.000 --> 00:02.500\n{text}\n"


def at(second, end=None):
    return f"00:00:{second:02},000 --> 00:00:{second + 1 if end is None else end:02},000"


ENDLESS = 40 * ' x="a"'


def dialogue(text, times="0:00:01.00,0:00:02.50"):
    return f"{ASS}Dialogue: 0,{times},Default,,0,0,0,,{text}\n"


@pytest.fixture
def read(tmp_path):
    """Read a text as a file of this name: its subtitles, and the account."""

    def read(name, text, written="utf-8", **options):
        path = tmp_path / name
        path.write_bytes(text.encode(written))
        account = Account(path)
        lines = read_subtitles(path, account=account, **options)
        assert account.seen == account.used + len(account.left_out)
        assert account.line()
        return [tuple(line) for line in lines], account

    return read


DRAWING = "{\\p1\\c&H0&}m 0 0 l 10 0"
FIREWOMAN = "\U0001f469\u200d\U0001f692"
# Of each case: the suffix, the file, and the text that is read.
TEXTS = {
    "entities of WebVTT": ("vtt", vtt_cue("5 &lt; 6 and 7 &gt; 2"), "5 < 6 and 7 > 2"),
    "all entities": ("vtt", vtt_cue("say &quot;yes&quot; it&#39;s &lt;3&nbsp;x &gt; y"), 'say "yes" it\'s <3 x > y'),
    "an entity twice": ("vtt", vtt_cue("&amp;lt;b>"), "&lt;b>"),
    "no tag in WebVTT": ("vtt", vtt_cue("a < b and b > c"), "a < b and b > c"),
    "a voice": ("vtt", vtt_cue("<v Ann><i>Hi</i> <00:01.500><c.red>you</c>"), "Hi you"),
    "an entity below lines of nothing": ("srt", "\n\n" + vtt_cue("&lt;"), "<"),
    "no setting of WebVTT": ("vtt", "WEBVTT\n\n00:01.000 --> 00:02.500 align: start\nOne\n", "One"),
    "lines of WebVTT that end twice": ("vtt", vtt_cue("One").replace("\n", "\r\r\n"), "One"),
    "no tag in SRT": ("srt", srt_cue("a < b and b > c, <3"), "a < b and b > c, <3"),
    "tags of SRT": ("srt", srt_cue('{\\an8}<font color="#fff">A</font> <b>B</b>'), "A B"),
    "a joiner": ("srt", srt_cue(PERSIAN), PERSIAN),
    "an emoji": ("srt", srt_cue(FIREWOMAN), FIREWOMAN),
    "a heading of ASS in SRT": ("srt", srt_cue("[Events]"), "[Events]"),
    "a heading of Praat in SRT": ("srt", srt_cue('a "ooTextFile'), 'a "ooTextFile'),
    "a heading of VIA in SRT": ("srt", srt_cue("# CSV_HEADER = metadata_id,"), "# CSV_HEADER = metadata_id,"),
    "controls": ("srt", srt_cue("A\u202eB\u0007C\tD"), "ABC D"),
    "blank lines in SRT": ("srt", srt_cue("One\n\nTwo"), "One Two"),
    "words behind the times": ("srt", "1\n00:00:01,000 --> 00:00:02,500 One\nTwo\n", "One Two"),
    "coordinates behind the times": ("srt", "1\n00:00:01,000 --> 00:00:02,500 X1:1 X2:20\nOne\n", "One"),
    "coordinates with blanks behind the times": ("srt", "1\n00:00:01,000 --> 00:00:02,500 X1: 10 X2: 20\nOne\n", "One"),
    "a setting of WebVTT behind the times": ("srt", "1\n00:00:01,000 --> 00:00:02,500 align:start\nOne\n", "One"),
    "a speaker behind the times": ("srt", "1\n00:00:01,000 --> 00:00:02,500 Ann:hi\nOne\n", "Ann:hi One"),
    "a year in SRT": ("srt", srt_cue("1984"), "1984"),
    "lines of SRT that end twice": ("srt", srt_cue("One").replace("\n", "\r\r\n"), "One"),
    "breaks of ASS": ("ass", dialogue("there\\hand\\nx\\Ny"), "there and x y"),
    "settings of ASS": ("ass", dialogue("{\\b1}{a comment}Hi, there"), "Hi, there"),
    "text after a drawing, \\p0": ("ass", dialogue(DRAWING + "{\\p0}Hi"), "Hi"),
    "text after a drawing, \\p": ("ass", dialogue(DRAWING + "{\\p}Hi"), "Hi"),
    "text after a drawing, \\p2\\p0": ("ass", dialogue(DRAWING + "{\\p2\\p0}Hi"), "Hi"),
    "ASS whose text is not last": ("ass", dialogue("a, b").replace("Effect, Text", "Text, Effect").replace(",,a", ",a"), "a, b"),
    # These would take years, and minutes, if what is read could be divided in several ways.
    "many lines of nothing": ("srt", 60_000 * "\n" + srt_cue("One"), "One"),
    "a drawing without an end": ("ass", dialogue("{" + 20_000 * "\\p1"), "{" + 20_000 * "\\p1"),
    "a tag without an end": ("srt", srt_cue("<b" + ENDLESS), "<b" + ENDLESS),
    "many blanks": ("srt", srt_cue(f"One\n{50_000 * ' '}0"), "One 0"),
}  # fmt: skip


@pytest.mark.parametrize(("suffix", "content", "text"), TEXTS.values(), ids=TEXTS)
def test_a_text_is_read_without_the_marks_of_its_format(read, suffix, content, text):
    subtitles, account = read(f"film.{suffix}", content)
    assert subtitles == [(1.0, 2.5, text)]
    assert not account.left_out


def test_a_bad_cue_is_left_out_by_its_line_and_costs_no_other(read):
    lines_of_file = [
        "WEBVTT",
        "",
        "00:00:01.000 --> 00:00:02.000",
        "One",
        "",
        "00:00:03.0x0 --> 00:00:04.000",  # line 6: a time that cannot be read
        "Bad",
        "",
        "stray text",  # line 9: it has no times
        "",
        "NOTE a comment",  # which is no cue, and is not counted
        "",
        "00:00:05.000 --> 00:00:06.000",
        "Three",
        "",
        "     ",
        "",
        "00:07.000 --> 00:08.000",
        "Four",
    ]
    subtitles, account = read("f.vtt", "\n".join(lines_of_file) + "\n")

    assert [text for *_, text in subtitles] == ["One", "Three", "Four"]
    assert [place for place, _ in account.left_out] == ["line 9", "line 6"]
    assert account.seen == 5


# Of each case: the file, its lines, the texts that are read, and the places of what is left out.
ABOVE_TIMES = {
    "WebVTT, names below empty lines": (
        "a.vtt",
        ["WEBVTT", "", "intro", "00:01.000 --> 00:02.000", "Hello", "", "a name", "00:03.000 --> 00:04.000", "You"],
        ["Hello", "You"], [],
    ),
    "WebVTT, a name below the header": (
        "a.vtt", ["WEBVTT", "intro", "00:01.000 --> 00:02.000", "Hello"], ["Hello"], [],
    ),
    "WebVTT, the text of the cue before": (
        "a.vtt",
        ["WEBVTT", "", "00:01.000 --> 00:02.000", "Hello", "there", "00:03.000 --> 00:04.000", "You"],
        ["Hello there", "You"], [],
    ),
    "WebVTT, a line above an empty line": (
        "a.vtt", ["WEBVTT", "", "a stray", "", "00:01.000 --> 00:02.000", "Hello"], ["Hello"], ["line 3"],
    ),
    "WebVTT, a line above a name": (
        "a.vtt", ["WEBVTT", "", "a stray", "a name", "00:01.000 --> 00:02.000", "Hello"], ["Hello"], ["line 3"],
    ),
    "SRT, a name below an empty line": ("a.srt", [at(1), "Hello", "", "a title", at(3), "You"], ["Hello", "You"], []),
    "SRT, a name in the first line": ("a.srt", ["a title", at(1), "Hello"], ["Hello"], []),
    "SRT, the text of the cue before": ("a.srt", [at(1), "Hello", "there", at(3), "You"], ["Hello there", "You"], []),
    "SRT, the next number": ("a.srt", ["1", at(1), "Hello", "2", at(3), "You"], ["Hello", "You"], []),
    "SRT, a number that is not the next": ("a.srt", ["1", at(1), "Hello", "7", at(3), "You"], ["Hello 7", "You"], []),
    "SRT, numbers above empty lines": (
        "a.srt", ["1", "", "", at(1), "Hello", "", "2", "", at(3), "You"], ["Hello", "You"], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "lines", "texts", "places"), ABOVE_TIMES.values(), ids=ABOVE_TIMES)
def test_a_line_above_times_is_a_name_or_text_or_left_out(read, name, lines, texts, places):
    """A cue may have a name above its times.

    Without an empty line between, the line belongs to the text of the cue before; a line that belongs to
    neither is left out.
    """
    subtitles, account = read(name, "\n".join(lines) + "\n")
    assert [text for *_, text in subtitles] == texts
    assert [place for place, _ in account.left_out] == places


@pytest.mark.parametrize(
    "times",
    [
        "00:00:03 --> 00:00:04",
        "00:00:03:000 --> 00:00:04:000",
        "00:00:03 ,000 --> 00:00:04 ,000",
        "\u202b00:00:03,000\u00a0-->\u00a000:00:04,000\u202c",
        "00:00:03.000 --> 00:00:04.000  X1:10 X2:20",
        "00:00:03.000 --> 00:00:04.000align:start line:0",
    ],
)
def test_times_in_the_forms_that_programs_write_are_read(read, times):
    lines, account = read("f.srt", srt((at(1), "One"), (times, "Two"), (at(5), "Three")))
    assert lines == [(1.0, 2.0, "One"), (3.0, 4.0, "Two"), (5.0, 6.0, "Three")]
    assert not account.left_out


@pytest.mark.parametrize(
    "times",
    [
        "00:00:03.000 --> 00:00:04.00O",
        "00:00:04,000 --> 00:00:03,000",
        "00:00:03,000 --> 00:00:03,000",
        "-00:00:03,000 --> 00:00:04,000",
        "00:00:03,000 -->",
        "00;00;03;00 -> 00;00;04;00",
        "00:00:03,000 --> 00:00:04,000 --> 00:00:05,000",
        "00:61:03,000 --> 00:62:04,000",
    ],
)
def test_a_cue_whose_times_cannot_be_read_is_left_out_with_its_text(read, times):
    """Nor do its times become words of the cue before."""
    subtitles, account = read("f.srt", srt((at(1), "One"), (times, "Two"), (at(5), "Three")))
    assert subtitles == [(1.0, 2.0, "One"), (5.0, 6.0, "Three")]
    assert len(account.left_out) == 1


def test_nul_characters_are_left_out_and_accents_kept_as_they_are_written(read):
    decomposed = unicodedata.normalize("NFD", "Déjà")
    texts = ["T0", "T1", "T2", decomposed]
    lines, account = read("f.srt", srt(*((at(2 * n), f"\0{text}") for n, text in enumerate(texts))))
    assert [text for *_, text in lines] == texts
    assert account.notes == ["characters NUL left out"]


def test_overlapping_cues_stay_in_the_order_of_the_file(read):
    """A sign and two speakers may be shown at once."""
    cues = (at(1, 10), "Sign"), (at(2), "Where is he?"), (at(2), "At home.")
    lines, _ = read("f.srt", srt(*cues))
    assert lines == [(1.0, 10.0, "Sign"), (2.0, 3.0, "Where is he?"), (2.0, 3.0, "At home.")]


def test_rolling_captions_are_noted(read):
    """Rolling captions show each line twice: below the line before, then above the next."""
    words = [f"line {n}" for n in range(9)]
    rolling = [(at(n), f"{words[n]}\n{words[n + 1]}") for n in range(8)]
    single = [(at(n), words[n]) for n in range(8)]
    _, account = read("f.srt", srt(*rolling))
    assert any("repeat" in note for note in account.notes)
    _, account = read("g.srt", srt(*single))
    assert not account.notes


def test_an_account_that_does_not_add_up_is_refused(tmp_path):
    with pytest.raises(ManifestError, match="1 span seen, 0 used and 0 left out"):
        Account(tmp_path, seen=1).line()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["Привет", "上の字幕は日本語です。" * 20])
def test_marks_and_zeros_tell_the_encoding(read, encoding, text):
    assert read("f.srt", srt((at(1), text)), encoding)[0] == [(1.0, 2.0, text)]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("n_digits", "n_letters", "is_found"), [(7, 0, True), (6, 0, False), (9, 240, True), (9, 241, False)]
)
def test_utf16_without_a_mark_has_eight_zeros_and_two_in_a_hundred_bytes(
    encoding, n_digits, n_letters, is_found
):
    """Digits and the line end have a zero byte each; Cyrillic letters have none.

    Ten zeros are two in a hundred of 500 bytes, and fewer of 502.
    """
    content = ("1" * n_digits + "\n" + "ы" * n_letters).encode(encoding)
    assert unmarked_encoding(content) == (encoding if is_found else "")


RUSSIAN = srt((at(1), "Привет"))


@pytest.mark.parametrize(
    ("text", "encoding", "note"),
    [
        ("Привет", "cp1251", "read as cp1251, which is a guess"),
        ("Café", "cp1252", "which is a guess"),
        ("\u65e5\u672c", "iso2022_jp", "iso2022_jp"),
    ],
    ids=["Russian", "French", "Japanese in escapes of ASCII"],
)
def test_an_encoding_that_is_guessed_is_noted(read, text, encoding, note):
    lines, account = read("f.srt", srt((at(1), text)), encoding)
    assert lines == [(1.0, 2.0, text)]
    assert any(note in one for one in account.notes)


@pytest.mark.parametrize("written", ["cp1251", "utf-8", "utf-8-sig", "utf-16"])
def test_an_encoding_that_is_given_counts_where_the_bytes_are_no_unicode(read, written):
    lines, account = read("f.srt", RUSSIAN, written, encoding="cp1251")
    assert lines == [(1.0, 2.0, "Привет")]
    assert account.notes == []


def test_an_encoding_that_does_not_exist_is_refused(read):
    with pytest.raises(ManifestError, match=r"f.srt"):
        read("f.srt", RUSSIAN, "cp1251", encoding="no-such")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("f.srt", "no subtitles", r"known kind \(.*\.srt, \.ttml"),
        ("f.srt", "1\n00:00:01,5 --> \nx\n", "line 2"),
        ("f.sub", "{10}{20}Hello\n{30}{40}You\n", "MicroDVD"),
        ("f.ass", dialogue("{\\p1}m 0 0 l 10 0 10 10{\\p0}"), "drawing"),
    ],
)
def test_what_holds_no_subtitles_says_why(read, name, text, message):
    with pytest.raises(ManifestError, match=message):
        read(name, text)


def test_srt_in_a_file_named_vtt_is_read_as_srt_and_noted(read):
    subtitles, account = read("f.vtt", srt((at(1), "One")))
    assert subtitles == [(1.0, 2.0, "One")]
    assert account.kind == "srt"
    assert any("WEBVTT" in note for note in account.notes)


WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).map(
    lambda text: " ".join("".join(s for s in text if s.isprintable()).split())
)
SPANS = st.lists(
    st.tuples(st.integers(0, 10**8), st.integers(9, 10**6), WORDS.filter(bool)), min_size=1, max_size=8
).map(lambda rows: [Subtitle(a / 1000, (a + n) / 1000, text) for a, n, text in rows])


ARROW_IN_A_TEXT = [Subtitle(1.0, 2.0, "go --> there")]


def sorted_by_times(spans):
    """Sort spans by start and end; those of the same times stay in their order."""
    return sorted(spans, key=lambda span: (span.start_s, span.end_s))


@given(SPANS)
@example(ARROW_IN_A_TEXT)
def test_webvtt_that_is_written_is_read_back(tmp_path_factory, spans):
    path = tmp_path_factory.mktemp("written") / "f.vtt"
    path.write_text(write_vtt(spans, "a title", ["a note"]), encoding="utf-8", newline="")
    assert read_subtitles(path) == sorted_by_times(spans)
    assert len(webvtt.read(path)) == len(spans)


@given(SPANS)
@example(ARROW_IN_A_TEXT)
def test_srt_that_is_written_is_read_back_with_other_signs_for_arrows_and_brackets(tmp_path_factory, spans):
    """SRT has no entities, as WebVTT has: what players would take for times or tags is written otherwise."""
    path = tmp_path_factory.mktemp("written") / "f.srt"
    path.write_text(write_srt(spans), encoding="utf-8", newline="")
    expected = []
    for span in sorted_by_times(spans):
        text = span.text.replace("-->", "→").translate(str.maketrans("<>{}", "‹›()"))
        expected.append(Subtitle(span.start_s, span.end_s, text))

    assert read_subtitles(path) == expected


TWO_CUES = srt((at(1), "\u65e5\u672c"), (at(3), "B"))


TWO_FILES = {
    "SRT": ("a.srt", TWO_CUES * 2, "line 10: numbers"),
    "SRT with a bad cue": (
        "a.srt",
        srt(("01:00:01,000 --> 01:00:02,000", "A"), ("00:00:0x,000 -->", "?"), (at(7), "B"), (at(1), "C")),
        "line 10: numbers",
    ),
    "WebVTT": (
        "a.vtt",
        "WEBVTT\n\n00:01.000 --> 00:02.000\nA\nWEBVTT\nX-TIMESTAMP-MAP=LOCAL:0,MPEGTS:9\n\n00:01.000 --> 00:02.000\nB\n",
        "line 5: ",
    ),
}


@pytest.mark.parametrize(("name", "content", "note"), TWO_FILES.values(), ids=TWO_FILES)
def test_two_files_in_one_are_reported_with_the_line(read, name, content, note):
    """A film in two parts has times that begin again at 0: in one file the second part overlaps the first."""
    lines, account = read(name, content)
    assert "B" in [text for *_, text in lines]  # of the second file, whose header is no text
    assert any(note in one for one in account.notes)


def test_suffixes_of_subtitles_are_known_wherever_names_are_read():
    """A film's name in `film.en.srt` is `film`, and `film run` looks for its subtitles by these suffixes."""
    suffixes = {suffix for source in SOURCES.values() for suffix in source.subtitles}
    assert suffixes == SUBTITLE_SUFFIXES
