"""One rule for texts: what they may hold, how the rest is shown, what no spreadsheet runs."""

import csv
import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features import templates
from obygaze_features.errors import ManifestError, OutputError
from obygaze_features.io import file_names
from obygaze_features.lines import csv_line, sheet_line
from obygaze_features.manifest import Clip, read_manifest
from obygaze_features.manifest.text_tables import read_texts
from obygaze_features.text import (
    NORMALISED_AT_ONCE,
    as_written,
    file_name,
    masked,
    normalised,
    not_a_formula,
    unsuitable,
    visible,
)
from tests.command import obygaze
from tests.cpu_time import within_cpu_s
from tests.files import written
from tests.terminal import in_terminal

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""The characters with the property Bidi_Control: Unicode, PropList.txt."""

FORBIDDEN = {
    "escape": "\x1b[2J",
    "bell": "\x07",
    "C1": "\x9b2J",
    "override": "\u202e",
    "isolate": "\u2066",
    "NUL": "\0",
}


TEXTS_WITH_CONTROLS = st.text(st.characters() | st.sampled_from(BIDI + "\x1b\x9b\n\u2028"))
"""Any texts, among them many with control characters and breaks of lines."""


def has_control_characters(text):
    """Whether a text holds what a terminal obeys, tabs and line breaks apart, by Unicode's properties."""
    signs = set(text) - set("\t\n\r")
    return any(unicodedata.category(sign) in {"Cc", "Cs"} or sign in BIDI for sign in signs)


@given(text=TEXTS_WITH_CONTROLS)
def test_a_text_of_several_lines_is_unsuitable_if_it_has_control_characters(text):
    """`unsuitable` gives the reason, or None. Control characters are told by Unicode's properties."""
    is_unsuitable = unsuitable(text, line_breaks=True) is not None

    assert is_unsuitable == has_control_characters(text)


@given(text=TEXTS_WITH_CONTROLS)
def test_a_text_of_one_line_is_unsuitable_if_it_has_control_characters_or_breaks_of_lines(text):
    """`unsuitable` gives the reason, or None. Unicode has two more breaks of lines, U+2028 and U+2029."""
    has_tab_or_line_break = any(sign in "\t\n\r\u2028\u2029" for sign in text)

    is_unsuitable = unsuitable(text) is not None

    assert is_unsuitable == (has_control_characters(text) or has_tab_or_line_break)


@pytest.mark.parametrize(
    "text", ["Léa", "נורא יפה", "می\u200cخواهم", "👩\u200d🚀", "क्\u200dष", "Body\u00a0double", ""]
)
def test_joiners_and_blanks_that_scripts_need_are_suitable(text):
    """They are invisible too, but Persian and Hindi, pictures of several persons and names need them."""
    assert unsuitable(text) is None


@given(text=TEXTS_WITH_CONTROLS)
def test_a_text_made_visible_has_no_control_characters(text):
    """`visible` writes control characters as something that can be read.

    Breaks of lines that all programs know (newlines) stay. Those that only some programs break lines at are
    written out: carriage returns, and Unicode's separators of lines and paragraphs. With `line_breaks=False`
    newlines are written out too, so that the result is fit for a text of one line.
    """
    assert not has_control_characters(visible(text))
    assert set(visible(text)).isdisjoint("\r\u2028\u2029")

    reason_against_it = unsuitable(visible(text, line_breaks=False))
    assert reason_against_it is None


@given(text=TEXTS_WITH_CONTROLS)
def test_a_json_document_made_visible_holds_the_same_text(text):
    r"""`visible` writes a control character as its escape, such as \u001b, which JSON reads as itself."""
    document = json.dumps({"text": text}, ensure_ascii=False)

    assert json.loads(visible(document)) == {"text": text}


@given(st.text("'=+-@\t\r\n ＝x1,\"", max_size=6))
def test_a_cell_of_a_sheet_is_no_formula_to_a_spreadsheet_and_is_read_back(text):
    """`sheet_line` writes a line of CSV for people, with an apostrophe before a text that is like a formula.

    A cell that begins like a formula all the same must be a number, such as -1. `as_written` takes the
    apostrophe away.
    """
    line = sheet_line([text, "x"])

    rows = list(csv.reader(io.StringIO(line, newline="")))
    cell, _ = rows[0]
    begins_like_a_formula = cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝"))
    if begins_like_a_formula:
        float(cell)  # raises an error if it is no number
    assert as_written(cell) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:secret@host/x: no", "https://***@host/x: no"),
        ("https:/me:secret@host/x?token=secret.", "https:/***@host/x?***"),
        ("no films-1.0.0?token=secret here", "no films-1.0.0?*** here"),
        ("'https://me:secret'", "'https://***'"),
        ("socks5://secret@host:9", "socks5://***@host:9"),
    ],
)
def test_user_password_and_query_of_urls_are_shown_as_stars(text, shown):
    """Messages show addresses, in which a secret may stand before the @ or behind the question mark."""
    assert masked(text) == shown


def test_a_line_of_data_is_written_as_it_is_though_a_spreadsheet_would_run_its_cells():
    """`csv_line` writes tables that programs read again; cells that begin with =, +, - or @ are formulas."""
    assert csv_line(["=1+1", "+1+1", "-1+1", "@SUM(1)"]) == "=1+1,+1+1,-1+1,@SUM(1)\n"


@pytest.mark.parametrize("number", ["-0.5", "+3", "1e-5", ""])
def test_a_number_with_a_sign_and_an_empty_cell_are_left_as_they_are(number):
    """`not_a_formula` writes an apostrophe before texts that a spreadsheet would take for a formula."""
    assert not_a_formula(number) == number


@pytest.mark.parametrize("forbidden", FORBIDDEN.values(), ids=FORBIDDEN)
@pytest.mark.parametrize("column", ["clip_id", "movie", "video", "annotator", "note", "level"])
def test_a_manifest_with_control_characters_is_refused(tmp_path, forbidden, column):
    """A cell of one column has a character that a terminal obeys, as in b, ESC, [2J, c, which would clear it.

    The message, which goes to a terminal, shows no such character either.
    """
    columns = ["clip_id", "movie", "video", "start_s", "end_s", "level", "concepts", "annotator", "note"]
    row = dict.fromkeys(columns, "") | {"clip_id": "a", "movie": "m", column: f"b{forbidden}c"}
    path = written(tmp_path / "films.csv", csv_line(columns) + csv_line(row.values()))

    with pytest.raises(ManifestError) as error:
        read_manifest(path)

    assert unsuitable(str(error.value)) is None


@pytest.mark.parametrize(
    "forbidden",
    ["\x1b[2J", "\x07", "\x9b2J", "\u202e", "\u2066"],
    ids=["escape", "bell", "C1", "override", "isolate"],
)
def test_a_list_of_texts_with_control_characters_is_refused(tmp_path, forbidden):
    """A terminal would obey them, or show the text in another order. The message names the line."""
    table = csv_line(["text_id", "text"]) + csv_line(["a", f"a {forbidden}"])
    path = written(tmp_path / "texts.csv", table)

    with pytest.raises(ManifestError, match="line 2"):
        read_texts(path)


def test_a_text_of_a_list_may_have_several_lines(tmp_path):
    """A list of texts is a CSV with the columns text_id and text."""
    table = csv_line(["text_id", "text"]) + csv_line(["a", "two\nlines"])
    path = written(tmp_path / "texts.csv", table)

    assert read_texts(path).rows == (("a", "two\nlines"),)


def test_a_text_in_an_extra_column_may_have_several_lines():
    """`extras` are columns of a manifest that are not ours, here a note."""
    clip = Clip("a", "m", extras={"note": "one\ntwo"})

    assert clip.extras == {"note": "one\ntwo"}


def test_the_name_of_an_extra_column_must_be_one_line():
    """Names of columns stand in messages, which are one line."""
    with pytest.raises(ManifestError):
        Clip("a", "m", extras={"no\nte": ""})


def test_an_error_is_one_line_whatever_a_name_holds(tmp_path, monkeypatch, capsys):
    """The name of the store would clear the terminal and print a line of its own.

    In the message these characters are escaped: a backslash, "u" and the character's number.
    """
    monkeypatch.chdir(tmp_path)
    name = "a\x1b[2J\nobygaze: all is well\u202e"

    assert obygaze("store", "inspect", name) == 1

    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert unsuitable(message.rstrip("\n")) is None
    assert r"\u001b[2J\u000aobygaze" in message


def test_control_characters_in_a_wrong_argument_are_escaped_in_the_usage_error(capsys):
    """The value would give a terminal's window the title "mine"."""
    obygaze("train", "xclip-lsmdc", "--annotations", "http://\x1b]0;mine\x07")

    assert r"\u001b]0;mine\u0007" in capsys.readouterr().err


def test_no_escape_of_a_manifest_reaches_a_terminal(tmp_path):
    """A column of the table would give the terminal's window the title "mine"."""
    path = written(tmp_path / "films.csv", "clip_id,movie\x1b]0;mine\x07,video\n")

    _, output = in_terminal(["manifest", "inspect", str(path)])

    assert r"\u001b]0;mine" in output
    assert "\x1b" not in output


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Alien: Resurrection?", "Alien_ Resurrection_"),
        ("a/b", "a_b"),
        ("a\\b", "a_b"),
        ("nul", "nul_"),
        ("COM1.old", "COM1_.old"),
        ("Nulle part", "Nulle part"),
        ("Goodbye. ", "Goodbye"),
        ("..", "_"),
        ("Ame\u0301lie", "Am\u00e9lie"),
    ],
)
def test_a_file_gets_a_name_that_all_systems_take(text, name):
    """Windows refuses signs such as ":" and "?", names of devices (nul, com1), a blank or dot at the end."""
    assert file_name(text) == name


def test_files_of_different_names_keep_their_names():
    """`file_names` gives the name of a file for each name, here of two films."""
    assert file_names(["Alien", "Aliens"]) == {"Alien": "Alien", "Aliens": "Aliens"}


@pytest.mark.parametrize(
    ("first", "second"),
    [("Alien", "alien"), ("Alien_", "Alien?"), ("Ali\u00e9n", "Alie\u0301n")],
    ids=["case", "a sign that no file may have", "an accent in one character or two"],
)
def test_two_names_that_would_be_one_file_on_some_system_are_refused(first, second):
    """On Windows and macOS, Alien and alien are one file: the second would replace the first."""
    assert file_names([first]) == {first: first}

    with pytest.raises(OutputError):
        file_names([first, second])


def test_a_line_break_in_a_value_does_not_split_a_sentence_of_a_template(monkeypatch):
    """Each line of a template is a sentence; empty ones are left out."""
    template = "{{ a }} of {{ n }}\n{{ b }}\nend\n"
    monkeypatch.setattr(templates, "packaged_text", lambda *_: template)

    sentences = templates.sentences("tests", "a template", a="one\ntwo\u2028", n=3, b="")

    assert sentences == (r"one\u000atwo\u2028 of 3", "end")


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@given(
    text=st.text(
        alphabet=st.sampled_from("aé\u0301\u0316\u0338각ᄀ\u1161\u11a8ﬁ한 ,\u0bc6\u0bbe"), max_size=40
    )
)
def test_a_long_text_is_normalised_as_by_one_call_although_it_is_cut_into_parts(form, text):
    """Our function normalises a long text part by part; Python's normalises it by one call.

    The results differ if a cut comes between characters that are one after normalising, as a letter and its
    accent. The text is drawn from letters with such marks, Korean syllables in one or several characters, a
    ligature and signs. It is repeated until it is longer than a part, of NORMALISED_AT_ONCE characters.

    A text of marks alone is left out: it has no place where it may be cut.
    """
    n_repeats = NORMALISED_AT_ONCE // max(len(text), 1) + 2
    long_text = text * n_repeats
    has_letter = any(not unicodedata.category(sign).startswith("M") for sign in text)

    if has_letter:
        assert normalised(form, long_text) == unicodedata.normalize(form, long_text)


@pytest.mark.long
def test_hundreds_of_thousands_of_accents_on_one_letter_are_normalised_in_two_seconds():
    """With one call of `unicodedata.normalize` it would take minutes.

    That takes .1 s for 10,000 accents of two classes, and four times as long for twice as many.
    """
    text = "G" + "\u0301\u0316" * 200_000

    with within_cpu_s(limit_s=2):
        result = normalised("NFC", text)

    assert len(result) > 300_000
