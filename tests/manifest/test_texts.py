"""Lists of texts: what is read of them, and what is wrong with them, by line."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import read_table, read_texts
from tests.files import written


def test_a_table_of_prompts_is_read_whatever_else_it_has(tmp_path):
    content = '\ufefflist,text_id,text\nangry,a-1,"an angry, loud person"\nangry,a-2, a man\n'
    assert read_texts(written(tmp_path / "p.csv", content)).rows == (
        ("a-1", "an angry, loud person"),
        ("a-2", " a man"),
    )


def test_a_table_of_captions_is_read_as_it_is_given_to_audits(tmp_path):
    content = 'caption_id,image_id,caption\r\nc1,i1,a man\r\nc2,i1,"two\nlines"\r\n'
    assert read_texts(written(tmp_path / "c.csv", content)).rows == (("c1", "a man"), ("c2", "two\nlines"))


def test_rows_of_blanks_are_no_rows_whatever_is_read_of_a_table(tmp_path):
    table = read_table(written(tmp_path / "t.csv", "start_s,end_s,x\n,,\n0,1,a\n , ,\n"), ())
    for rows in (table.checked(), table.timed()):
        assert [(row.line, row.cells["x"]) for row in rows] == [(3, "a")]


def test_lines_of_text_have_their_numbers_for_ids(tmp_path):
    texts = read_texts(written(tmp_path / "t.txt", "a man\r\n  a woman\na man"))
    assert texts.rows == (("000001", "a man"), ("000002", "  a woman"), ("000003", "a man"))


def test_the_digest_is_of_the_rows_and_not_of_the_file(tmp_path):
    table = read_texts(written(tmp_path / "p.csv", 'more,text_id,text\r\nx,000001,"a man"\r\n'))
    lines = read_texts(written(tmp_path / "t.txt", "a man\n"))
    assert table.digest() == lines.digest()
    assert lines.digest() != read_texts(written(tmp_path / "u.txt", "a  man\n")).digest()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("p.csv", "text_id,text\na,x\nb,y\na,z\n", "line 4"),
        ("p.csv", 'text_id,text\n"a\nb",x\n', "line 2"),
        ("p.csv", 'text_id,text\na,"x\ny"\nb, \n', "line 4"),
        ("p.csv", "text_id,text\na,x,y\n", "line 2"),
        ("p.csv", "id,words\na,x\n", None),
        ("p.csv", "text_id,text,caption_id,caption\na,x,b,y\n", None),
        ("p.csv", "", None),
        ("p.csv", "\n\n", "nothing but empty lines"),
        ("p.csv", "text_id,text\n" + "a,\n" * 3, "and 2 more problems"),
        ("p.csv", b"text_id,text\na,\xff\n", "line 2"),
        ("t.txt", b"a man\n\xe9t\xe9\n", "line 2"),
        ("t.txt", "a man\n\na woman\n", "line 2"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, name, content, words):
    with pytest.raises(ManifestError, match=words):
        read_texts(written(tmp_path / name, content))
