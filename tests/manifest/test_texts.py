"""Lists of texts: what is read of them, and what is wrong with them, by line."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import read_table, read_texts
from tests.files import written


def test_a_table_of_prompts_is_read_despite_further_columns(tmp_path):
    """The columns text_id and text are read; a column "list" and a byte order mark do no harm.

    Blanks belong to a text.
    """
    content = '\ufefflist,text_id,text\nangry,a-1,"an angry, loud person"\nangry,a-2, a man\n'
    path = written(tmp_path / "p.csv", content)

    texts = read_texts(path)

    assert texts.rows == (("a-1", "an angry, loud person"), ("a-2", " a man"))


def test_a_table_of_captions_is_read_as_texts(tmp_path):
    """Audits take captions of images. Here caption_id and caption are the id and the text."""
    content = 'caption_id,image_id,caption\r\nc1,i1,a man\r\nc2,i1,"two\nlines"\r\n'
    path = written(tmp_path / "c.csv", content)

    texts = read_texts(path)

    assert texts.rows == (("c1", "a man"), ("c2", "two\nlines"))


def test_rows_of_blanks_are_skipped(tmp_path):
    """Spreadsheets write empty rows. The only row with content is on line 3, between two of them."""
    path = written(tmp_path / "t.csv", "start_s,end_s,x\n,,\n0,1,a\n , ,\n")
    no_required_columns = ()

    table = read_table(path, no_required_columns)

    assert [(row.line, row.cells["x"]) for row in table.checked()] == [(3, "a")]
    assert [(row.line, row.cells["x"]) for row in table.timed()] == [(3, "a")]


def test_rows_of_blanks_between_texts_are_skipped_and_an_error_in_another_column_does_not_matter(tmp_path):
    """A table has one text, between two rows of blanks. Its column of notes, which is not read, has #N/A."""
    path = written(tmp_path / "t.csv", "text_id,text,note\n,,\na,a man,#N/A\n , ,\n")

    assert read_texts(path).rows == (("a", "a man"),)


def test_lines_of_text_have_their_numbers_for_ids(tmp_path):
    """A plain text file has one text per line.

    Blanks belong to the text, and the same text may come twice.
    """
    path = written(tmp_path / "t.txt", "a man\r\n  a woman\na man")

    texts = read_texts(path)

    assert texts.rows == (("000001", "a man"), ("000002", "  a woman"), ("000003", "a man"))


def test_the_digest_is_of_the_rows_and_not_of_the_file(tmp_path):
    """Two files of the same ids and texts are the same list, whatever their format.

    One more blank makes another text.
    """
    table = read_texts(written(tmp_path / "p.csv", 'more,text_id,text\r\nx,000001,"a man"\r\n'))
    lines = read_texts(written(tmp_path / "t.txt", "a man\n"))
    with_two_blanks = read_texts(written(tmp_path / "u.txt", "a  man\n"))

    assert table.digest() == lines.digest()
    assert lines.digest() != with_two_blanks.digest()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        pytest.param("p.csv", "text_id,text\na,x\nb,y\na,z\n", "line 4", id="one id twice"),
        pytest.param("p.csv", 'text_id,text\n"a\nb",x\n', "line 2", id="an id of two lines"),
        pytest.param(
            "p.csv", 'text_id,text\na,"x\ny"\nb, \n', "line 4", id="a blank text below one of 2 lines"
        ),
        pytest.param("p.csv", "text_id,text\na,x,y\n", "line 2", id="a cell too many"),
        pytest.param("p.csv", "id,words\na,x\n", None, id="other columns than text_id and text"),
        pytest.param("p.csv", "text_id,text,caption_id,caption\na,x,b,y\n", None, id="texts and captions"),
        pytest.param("p.csv", "", None, id="nothing"),
        pytest.param("p.csv", "\n\n", "nothing but empty lines", id="empty lines"),
        pytest.param("p.csv", "text_id,text\na,\na,\na,\n", "and 2 more problems", id="three empty texts"),
        pytest.param("p.csv", b"text_id,text\na,\xff\n", "line 2", id="a table that is not UTF-8"),
        pytest.param("t.txt", b"a man\n\xe9t\xe9\n", "line 2", id="lines that are not UTF-8"),
        pytest.param("t.txt", "a man\n\na woman\n", "line 2", id="an empty line"),
        pytest.param("p.csv", "text_id,text\na,x\nb,#N/A\n", "line 3: the text '#N/A' cannot", id="an error"),
        pytest.param("p.csv", "text_id,text\n#REF!,x\n", "line 2: the id '#REF!' cannot", id="an id lost"),
    ],
)
def test_an_invalid_list_of_texts_is_refused_with_the_line(tmp_path, name, content, reason):
    """Texts are a table with the columns text_id and text, p.csv, or a text on each line of t.txt.

    Texts need ids of their own and must not be empty. The error names the line where one line is wrong (None:
    the whole file is).
    """
    invalid_list = written(tmp_path / name, content)
    with pytest.raises(ManifestError, match=reason):
        read_texts(invalid_list)


@pytest.mark.parametrize("n_blanks", [1, 2, 3])
def test_blank_cells_beyond_the_header_do_not_count(tmp_path, n_blanks):
    """Spreadsheets write rows that are longer than the header, with blanks at their ends."""
    row_with_blanks = f"0,1,a{',' * n_blanks}"
    path = written(tmp_path / "t.csv", f"start_s,end_s,x\n{row_with_blanks}\n")
    no_required_columns = ()

    (row,) = read_table(path, no_required_columns).timed()

    assert row.cells["x"] == "a"
