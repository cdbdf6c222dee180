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


def at(start_s, end_s=None):
    """Write a line of times as SRT, of one second where no end is given."""
    if end_s is None:
        end_s = start_s + 1
    return f"00:00:{start_s:02},000 --> 00:00:{end_s:02},000"


ENDLESS = 40 * ' x="a"'


def dialogue(text, times="0:00:01.00,0:00:02.50"):
    """Write a file in the format ASS with one subtitle, from 1 to 2.5 s where no times are given."""
    return f"{ASS}Dialogue: 0,{times},Default,,0,0,0,,{text}\n"


@pytest.fixture
def read_file(tmp_path):
    """Return a function that writes a text, in an encoding, as a file of this name and reads it.

    It returns the subtitles, (start, end, text), and the account.
    """

    def read_file(name, text, written_in="utf-8", **options):
        path = tmp_path / name
        path.write_bytes(text.encode(written_in))
        account = Account(path)
        lines = read_subtitles(path, account=account, **options)
        assert account.seen == account.used + len(account.left_out)
        assert account.line()
        return [tuple(line) for line in lines], account

    return read_file


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
def test_a_text_is_read_without_the_marks_of_its_format(read_file, suffix, content, text):
    """A file has one subtitle, from 1 to 2.5 s, whose text has tags, entities or settings of its format.

    Its bare text is read, and nothing is left out.
    """
    subtitles, account = read_file(f"film.{suffix}", content)

    assert subtitles == [(1.0, 2.5, text)]
    assert not account.left_out


def test_a_bad_cue_is_left_out_by_its_line_and_costs_no_other(read_file):
    """A file has five records: three good subtitles, one with a bad time on line 6, stray text on line 9.

    The latter two are left out by their lines. A comment is no record.
    """
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

    subtitles, account = read_file("f.vtt", "\n".join(lines_of_file) + "\n")

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


@pytest.mark.parametrize(("name", "lines", "texts", "places_left_out"), ABOVE_TIMES.values(), ids=ABOVE_TIMES)
def test_a_line_above_the_times_of_a_subtitle_is_its_name_or_text_of_the_one_before_or_left_out(
    read_file, name, lines, texts, places_left_out
):
    """A subtitle has a line of times, and its text below. A line directly above the times may be its name.

    It is a name below an empty line: of "Hello", "", "a title", TIMES, "You" the texts are "Hello" and "You".
    Without an empty line above it, it still belongs to the subtitle before: "Hello", "there", TIMES, "You"
    are "Hello there" and "You". A line elsewhere, such as one between empty lines, is left out, and its place
    is in the account.
    """
    subtitles, account = read_file(name, "\n".join(lines) + "\n")

    assert [text for _start, _end, text in subtitles] == texts
    assert [place for place, _reason in account.left_out] == places_left_out


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
def test_times_in_the_forms_that_programs_write_are_read(read_file, times):
    """The second of three subtitles is from 3 to 4 s. Its times are in a form of another program.

    As the format demands, they would be 00:00:03,000 --> 00:00:04,000.
    """
    content = srt((at(start_s=1), "One"), (times, "Two"), (at(start_s=5), "Three"))

    subtitles, account = read_file("f.srt", content)

    assert subtitles == [(1.0, 2.0, "One"), (3.0, 4.0, "Two"), (5.0, 6.0, "Three")]
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
def test_a_cue_whose_times_cannot_be_read_is_left_out_with_its_text(read_file, times):
    """The times of the second of three subtitles cannot be read, or it ends before it starts.

    It is left out, and its times do not become words of the subtitle before either.
    """
    content = srt((at(start_s=1), "One"), (times, "Two"), (at(start_s=5), "Three"))

    subtitles, account = read_file("f.srt", content)

    assert subtitles == [(1.0, 2.0, "One"), (5.0, 6.0, "Three")]
    assert len(account.left_out) == 1


def test_nul_characters_are_left_out(read_file):
    """A file has three subtitles, with the character NUL before each text: it is left out, which is noted."""
    content = srt((at(start_s=0), "\0T0"), (at(start_s=2), "\0T1"), (at(start_s=4), "\0T2"))

    subtitles, account = read_file("f.srt", content)

    assert [text for *_, text in subtitles] == ["T0", "T1", "T2"]
    assert account.notes == ["characters NUL left out"]


def test_accents_of_texts_are_kept_as_they_are_written(read_file):
    """The accents of Déjà are signs of their own behind the letters here (form NFD of Unicode).

    Names get another form, in which they can be compared; texts stay as they are.
    """
    text_with_own_accents = unicodedata.normalize("NFD", "Déjà")

    subtitles, account = read_file("f.srt", srt((at(start_s=1), text_with_own_accents)))

    assert subtitles == [(1.0, 2.0, text_with_own_accents)]
    assert account.notes == []


def test_overlapping_cues_stay_in_the_order_of_the_file(read_file):
    """A sign is shown from 1 to 10 s, and two people speak from 2 to 3 s of it."""
    content = srt(
        (at(start_s=1, end_s=10), "Sign"), (at(start_s=2), "Where is he?"), (at(start_s=2), "At home.")
    )

    subtitles, _ = read_file("f.srt", content)

    assert subtitles == [(1.0, 10.0, "Sign"), (2.0, 3.0, "Where is he?"), (2.0, 3.0, "At home.")]


def test_rolling_captions_are_noted(read_file):
    """Eight captions of a second show two lines each: "line 0" above "line 1", "line 1" above "line 2", ...

    So they roll, and each text is there twice.
    """
    cues = [(at(n), f"line {n}\nline {n + 1}") for n in range(8)]

    _, account = read_file("f.srt", srt(*cues))

    assert any("repeat" in note for note in account.notes)


def test_captions_that_show_each_line_once_need_no_note(read_file):
    """Eight captions of a second follow each other."""
    cues = [(at(n), f"line {n}") for n in range(8)]

    _, account = read_file("f.srt", srt(*cues))

    assert account.notes == []


def test_an_account_that_does_not_add_up_is_refused(tmp_path):
    """Each span of a file that is seen must be used or left out. Of one span neither is said here."""
    account = Account(tmp_path, seen=1)
    with pytest.raises(ManifestError, match="1 span seen, 0 used and 0 left out"):
        account.line()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["Привет", "上の字幕は日本語です。" * 20], ids=["Russian", "Japanese"])
def test_marks_and_zeros_tell_the_encoding(read_file, encoding, text):
    """The first three encodings have a mark at the beginning of a file.

    UTF-16 without a mark has a zero in each digit, blank and line end: before the digit, or behind it.
    """
    subtitles, _ = read_file("f.srt", srt((at(start_s=1), text)), written_in=encoding)
    assert subtitles == [(1.0, 2.0, text)]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("n_digits", "n_cyrillic_letters", "is_recognised"),
    [
        pytest.param(7, 0, True, id="8 zero bytes of 16"),
        pytest.param(6, 0, False, id="7 zero bytes of 14"),
        pytest.param(9, 240, True, id="10 zero bytes of 500"),
        pytest.param(9, 241, False, id="10 zero bytes of 502"),
    ],
)
def test_utf16_without_a_mark_is_recognised_by_eight_zero_bytes_if_they_are_two_in_a_hundred(
    encoding, n_digits, n_cyrillic_letters, is_recognised
):
    """In UTF-16 each sign has two bytes. One of them is zero in digits and line ends, and none in Cyrillic.

    The text has some digits, a line end and Cyrillic letters: n digits give n + 1 zero bytes. A file without
    the mark that tells UTF-16 is recognised if it has at least eight zero bytes, and they are at least 2 %.
    """
    content = ("1" * n_digits + "\n" + "ы" * n_cyrillic_letters).encode(encoding)

    assert unmarked_encoding(content) == (encoding if is_recognised else "")


@pytest.mark.parametrize(
    ("text", "encoding", "note"),
    [
        ("Привет", "cp1251", "read as cp1251, which is a guess"),
        ("Café", "cp1252", "which is a guess"),
        ("\u65e5\u672c", "iso2022_jp", "iso2022_jp"),
    ],
    ids=["Russian", "French", "Japanese in escapes of ASCII"],
)
def test_an_encoding_that_is_guessed_is_noted(read_file, text, encoding, note):
    """Nothing in the file says its encoding, so that it is guessed by its letters, or by its escapes."""
    subtitles, account = read_file("f.srt", srt((at(start_s=1), text)), written_in=encoding)

    assert subtitles == [(1.0, 2.0, text)]
    assert any(note in line for line in account.notes)


@pytest.mark.parametrize("written_in", ["cp1251", "utf-8", "utf-8-sig", "utf-16"])
def test_an_encoding_that_is_given_counts_where_the_bytes_are_no_unicode(read_file, written_in):
    """The user says that a Russian text is in cp1251, and it is so, or it is in a form of Unicode.

    Bytes tell if they are Unicode, whatever the user says. In each case the text is read rightly.
    """
    subtitles, account = read_file(
        "f.srt", srt((at(start_s=1), "Привет")), written_in=written_in, encoding="cp1251"
    )

    assert subtitles == [(1.0, 2.0, "Привет")]
    assert account.notes == []


def test_an_encoding_that_does_not_exist_is_refused(read_file):
    """The text is Russian, in cp1251. The user says that it is in "no-such"."""
    with pytest.raises(ManifestError, match=r"f.srt"):
        read_file("f.srt", srt((at(start_s=1), "Привет")), written_in="cp1251", encoding="no-such")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("f.srt", "no subtitles", r"known kind \(.*\.srt, \.ttml", id="no times"),
        pytest.param("f.srt", "1\n00:00:01,5 --> \nx\n", "line 2", id="half a line of times"),
        pytest.param("f.sub", "{10}{20}Hello\n{30}{40}You\n", "MicroDVD", id="another format"),
        pytest.param("f.ass", dialogue("{\\p1}m 0 0 l 10 0 10 10{\\p0}"), "drawing", id="a drawing alone"),
    ],
)
def test_a_file_without_a_readable_subtitle_is_refused_with_the_reason(read_file, name, content, message):
    """The file has the suffix of subtitles, and no text with times that can be read."""
    with pytest.raises(ManifestError, match=message):
        read_file(name, content)


def test_srt_in_a_file_named_vtt_is_read_as_srt_and_noted(read_file):
    """WebVTT begins with the word WEBVTT, which this file does not have."""
    subtitles, account = read_file("f.vtt", srt((at(start_s=1), "One")))

    assert subtitles == [(1.0, 2.0, "One")]
    assert account.kind == "srt"
    assert any("WEBVTT" in note for note in account.notes)


WORDS = (
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
    .map(lambda text: " ".join("".join(sign for sign in text if sign.isprintable()).split()))
    .filter(bool)
)


@st.composite
def subtitles_of_any_text(draw):
    """Draw one to eight subtitles with times in whole milliseconds."""
    drawn = []
    for _ in range(draw(st.integers(1, 8))):
        start_ms = draw(st.integers(0, 100_000_000))
        length_ms = draw(st.integers(9, 1_000_000))
        drawn.append(Subtitle(start_ms / 1000, (start_ms + length_ms) / 1000, draw(WORDS)))
    return drawn


ARROW_IN_A_TEXT = [Subtitle(start_s=1.0, end_s=2.0, text="go --> there")]


def sorted_by_times(subtitles):
    """Sort subtitles by start and end; those of the same times stay in their order."""
    return sorted(subtitles, key=lambda subtitle: (subtitle.start_s, subtitle.end_s))


@given(subtitles=subtitles_of_any_text())
@example(ARROW_IN_A_TEXT)
def test_webvtt_that_is_written_is_read_back(tmp_path_factory, subtitles):
    """Subtitles of any texts are written as WebVTT, in order of their times. They are read back as they were.

    The sign of a line of times is an arrow, -->, which may be in a text too and must not be taken for times:
    the library webvtt finds as many subtitles.
    """
    path = tmp_path_factory.mktemp("written") / "f.vtt"

    path.write_text(write_vtt(subtitles, title="a title", notes=["a note"]), encoding="utf-8", newline="")

    assert read_subtitles(path) == sorted_by_times(subtitles)
    assert len(webvtt.read(path)) == len(subtitles)


@given(subtitles=subtitles_of_any_text())
@example(ARROW_IN_A_TEXT)
def test_srt_that_is_written_is_read_back_with_other_signs_for_arrows_and_brackets(
    tmp_path_factory, subtitles
):
    """Subtitles of any texts are written as SRT, in which no sign can be escaped, as < can by &lt; elsewhere.

    So what players would take for a line of times, -->, or for a tag, <b> or {b}, is written with signs that
    look alike. All else is read back as it was.
    """
    path = tmp_path_factory.mktemp("written") / "f.srt"

    path.write_text(write_srt(subtitles), encoding="utf-8", newline="")

    with_other_signs = []
    for subtitle in sorted_by_times(subtitles):
        text = subtitle.text.replace("-->", "→")
        for sign, sign_alike in (("<", "‹"), (">", "›"), ("{", "("), ("}", ")")):
            text = text.replace(sign, sign_alike)
        with_other_signs.append(Subtitle(subtitle.start_s, subtitle.end_s, text))
    assert read_subtitles(path) == with_other_signs


TWO_CUES = srt((at(start_s=1), "\u65e5\u672c"), (at(start_s=3), "B"))


TWO_FILES = {
    "SRT": ("a.srt", TWO_CUES * 2, "line 10: numbers"),
    "SRT with a bad cue": (
        "a.srt",
        srt(
            ("01:00:01,000 --> 01:00:02,000", "A"),
            ("00:00:0x,000 -->", "?"),
            (at(start_s=7), "B"),
            (at(start_s=1), "C"),
        ),
        "line 10: numbers",
    ),
    "WebVTT": (
        "a.vtt",
        "WEBVTT\n\n00:01.000 --> 00:02.000\nA\nWEBVTT\nX-TIMESTAMP-MAP=LOCAL:0,MPEGTS:9\n\n00:01.000 --> 00:02.000\nB\n",
        "line 5: ",
    ),
}


@pytest.mark.parametrize(("name", "content", "note"), TWO_FILES.values(), ids=TWO_FILES)
def test_a_file_that_two_files_of_subtitles_were_joined_to_is_read_with_a_note_where_the_second_begins(
    read_file, name, content, note
):
    """A film came in two parts, and somebody wrote the subtitles of both into one file.

    There the numbers of SRT begin at 1 again, or the head of WebVTT comes again: a note names that line. All
    subtitles are read, also "B" of the second part.
    """
    subtitles, account = read_file(name, content)

    assert "B" in [text for _start, _end, text in subtitles]
    assert any(note in line for line in account.notes)


def test_suffixes_of_subtitles_are_known_wherever_names_are_read():
    """A film's name in `film.en.srt` is `film`, and `film run` looks for its subtitles by these suffixes."""
    suffixes = {suffix for source in SOURCES.values() for suffix in source.subtitles}
    assert suffixes == SUBTITLE_SUFFIXES
