"""One rule for texts: what they may hold, how the rest is shown, what no spreadsheet runs."""

import csv
import io
import json
import time
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
from tests.files import written
from tests.terminal import in_terminal

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""The characters with the property Bidi_Control: Unicode, PropList.txt."""

BAD = {
    "escape": "\x1b[2J",
    "bell": "\x07",
    "C1": "\x9b2J",
    "override": "\u202e",
    "isolate": "\u2066",
    "NUL": "\0",
}


def has_control_characters(text):
    """Whether a text holds what a terminal obeys, tabs and line breaks apart, by Unicode's properties."""
    signs = set(text) - set("\t\n\r")
    return any(unicodedata.category(sign) in {"Cc", "Cs"} or sign in BIDI for sign in signs)


@given(st.text(st.characters() | st.sampled_from(BIDI + "\x1b\x9b\n\u2028")))
def test_a_text_is_unsuitable_by_the_properties_of_its_characters(text):
    has_controls = has_control_characters(text)
    has_line_breaks = not set(text).isdisjoint("\t\n\r\u2028\u2029")

    assert (unsuitable(text, lines=True) is not None) == has_controls
    assert (unsuitable(text) is not None) == (has_controls or has_line_breaks)


@pytest.mark.parametrize(
    "text", ["Léa", "נורא יפה", "می\u200cخواهم", "👩\u200d🚀", "क्\u200dष", "Body\u00a0double", ""]
)
def test_joiners_and_blanks_that_scripts_need_are_suitable(text):
    assert unsuitable(text) is None


@given(st.text(st.characters() | st.sampled_from(BIDI + "\x1b\x9b\n\u2028")))
def test_a_text_made_visible_has_no_control_characters_and_is_the_same_in_json(text):
    assert not has_control_characters(visible(text))
    assert set(visible(text)).isdisjoint("\r\u2028\u2029")
    assert unsuitable(visible(text, lines=False)) is None
    document = json.dumps({"text": text}, ensure_ascii=False)
    assert json.loads(visible(document)) == {"text": text}


@given(st.text("'=+-@\t\r\n ＝x1,\"", max_size=6))
def test_no_spreadsheet_runs_a_cell_of_a_line_for_people_and_it_is_read_back(cell):
    cells = next(csv.reader(io.StringIO(sheet_line([cell, "x"]), newline="")))
    assert as_written(cells[0]) == cell
    if cells[0][:1] in tuple("=+-@\t\r\n＝"):
        float(cells[0])  # a number, which is no formula


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
def test_secrets_of_urls_are_left_out(text, shown):
    assert masked(text) == shown


def test_a_line_of_data_is_written_as_it_is_though_a_spreadsheet_would_run_its_cells():
    assert csv_line(["=1+1", "+1+1", "-1+1", "@SUM(1)"]) == "=1+1,+1+1,-1+1,@SUM(1)\n"


@pytest.mark.parametrize("number", ["-0.5", "+3", "1e-5", ""])
def test_a_number_is_no_formula(number):
    assert not_a_formula(number) == number


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("column", ["clip_id", "movie", "video", "annotator", "note", "level"])
def test_a_manifest_with_control_characters_is_refused(tmp_path, bad, column):
    path = tmp_path / "films.csv"
    columns = ["clip_id", "movie", "video", "start_s", "end_s", "level", "concepts", "annotator", "note"]
    row = {"clip_id": "a", "movie": "m", column: f"b{bad}c"}
    path.write_text(
        csv_line(columns) + csv_line([row.get(name, "") for name in columns]), encoding="utf-8", newline=""
    )
    with pytest.raises(ManifestError) as error:
        read_manifest(path)
    assert unsuitable(str(error.value)) is None


@pytest.mark.parametrize("bad", [bad for name, bad in BAD.items() if name != "NUL"])
def test_a_list_of_texts_with_control_characters_is_refused(tmp_path, bad):
    path = written(tmp_path / "texts.csv", csv_line(["text_id", "text"]) + csv_line(["a", f"a {bad}"]))
    with pytest.raises(ManifestError, match="line 2"):
        read_texts(path)


def test_a_text_of_a_list_may_have_several_lines(tmp_path):
    path = written(tmp_path / "texts.csv", csv_line(["text_id", "text"]) + csv_line(["a", "two\nlines"]))
    assert read_texts(path).rows == (("a", "two\nlines"),)


def test_an_extra_column_may_have_several_lines_its_name_may_not():
    assert Clip("a", "m", extras={"note": "one\ntwo"}).extras == {"note": "one\ntwo"}
    with pytest.raises(ManifestError):
        Clip("a", "m", extras={"no\nte": ""})


def test_an_error_is_one_line_whatever_a_name_holds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert obygaze("store", "inspect", "a\x1b[2J\nobygaze: all is well\u202e") == 1
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert unsuitable(shown.rstrip("\n")) is None
    assert "\\u001b[2J\\u000aobygaze" in shown


def test_usage_errors_are_escaped_too(capsys):
    obygaze("train", "xclip-lsmdc", "--annotations", "http://\x1b]0;mine\x07")
    assert "\\u001b]0;mine\\u0007" in capsys.readouterr().err


def test_no_escape_of_a_manifest_reaches_a_terminal(tmp_path):
    path = written(tmp_path / "films.csv", "clip_id,movie\x1b]0;mine\x07,video\n")
    _, output = in_terminal(["manifest", "inspect", str(path)])
    assert "\\u001b]0;mine" in output
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
    assert file_name(text) == name


@pytest.mark.parametrize("second", ["alien", "Alien?", "Alie\u0301n"])
def test_two_files_of_one_name_are_refused_also_where_case_does_not_count(second):
    assert file_names(["Alien", "Aliens"]) == {"Alien": "Alien", "Aliens": "Aliens"}
    with pytest.raises(OutputError):
        file_names(["Alien", "Alien_", "Ali\u00e9n", second])


def test_a_line_break_in_a_value_does_not_split_a_sentence_of_a_template(monkeypatch):
    monkeypatch.setattr(templates, "packaged_text", lambda *_: "{{ a }} of {{ n }}\n{{ b }}\nend\n")
    output = templates.sentences("tests", "a template", a="one\ntwo\u2028", n=3, b="")
    assert output == ("one\\u000atwo\\u2028 of 3", "end")


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@given(
    text=st.text(
        alphabet=st.sampled_from("aé\u0301\u0316\u0338각ᄀ\u1161\u11a8ﬁ한 ,\u0bc6\u0bbe"), max_size=40
    )
)
def test_a_long_text_is_normalised_as_in_one_call(form, text):
    long_text = text * (NORMALISED_AT_ONCE // max(len(text), 1) + 2)
    has_letter = any(not unicodedata.category(sign).startswith("M") for sign in text)
    if has_letter:
        assert normalised(form, long_text) == unicodedata.normalize(form, long_text)


@pytest.mark.long
def test_many_marks_on_one_letter_take_time_in_proportion():
    """One call takes .1 s for 10,000 marks of two classes, and four times as long for twice as many."""
    start = time.process_time()
    assert len(normalised("NFC", "G" + "\u0301\u0316" * 200_000)) > 300_000
    assert time.process_time() - start < 2
