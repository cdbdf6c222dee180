"""Rows of tables that do not count: commented out, and sums in other languages and places."""

import pytest

HEADER = "movie,start_s,end_s,level"


def films(clips):
    """Return the films of clips, in their order."""
    return [clip.movie for clip in clips]


@pytest.mark.parametrize("first_cell", ["# f", "#f", "// f", "//f", "## f"])
def test_a_row_that_is_commented_out_is_no_clip(import_files, first_cell):
    """The second row of film f, on line 3, was commented out by the person who keeps the table.

    It is no clip, and a message names its line.
    """
    content = f"{HEADER}\nf,1,2,S\n{first_cell},3,4,EN\ng,5,6,S\n"

    clips, messages = import_files({"t.csv": content})

    assert films(clips) == ["f", "g"]
    assert "line 3" in messages
    assert "commented out" in messages


@pytest.mark.parametrize("film", ["#Alive", "//server/films/a.mp4"])
def test_a_sign_of_comments_may_belong_to_a_name(import_files, film):
    """A film is called #Alive, and a path may begin with two slashes: the row is read, which is said."""
    content = f"{HEADER}\nf,1,2,S\n{film},3,4,EN\ng,5,6,S\n"

    clips, notices = import_files({"t.csv": content})

    assert len(clips) == 3
    assert "sign of comments (line 3" in notices


def test_rows_that_all_begin_with_a_sign_are_read_without_a_word(import_files):
    """Each row begins with its number, #1 to #3. Where all rows have the sign, none is commented out."""
    content = "id,movie,start_s,end_s,level\n#1,f,1,2,S\n#2,f,3,4,EN\n#3,g,5,6,S\n"

    clips, notices = import_files({"t.csv": content})

    assert films(clips) == ["f", "f", "g"]
    assert "comments" not in notices


def test_an_error_of_a_spreadsheet_is_no_comment(import_files):
    """The second row begins with #N/A, an error: its film could not be looked up, nor could its times.

    It is left out as a row that cannot be read, and not as one that was commented out with #.
    """
    content = f"{HEADER}\nf,1,2,S\n#N/A,#N/A,#N/A,\ng,5,6,S\n"

    clips, messages = import_files({"t.csv": content})

    assert films(clips) == ["f", "g"]
    assert "cannot be read" in messages


@pytest.mark.parametrize(
    "word", ["Subtotal", "Zwischensumme", "Итого", "Celkem", "Toplam", "合計", "المجموع", "Std. Dev."]
)
def test_sums_have_words_of_many_languages(import_files, word):
    """Two rows are of film f. The last one has sums, 4 and 6, which stand where times do, and is no clip."""
    content = f"{HEADER}\nf,1,2,S\nf,3,4,EN\n{word},4,6,\n"

    clips, messages = import_files({"t.csv": content})

    assert films(clips) == ["f", "f"]
    assert "a sum" in messages


def test_a_sum_below_each_film_is_no_clip(import_files):
    """Below the eight rows of film f stands the sum of their times, in German, and below those of g as well.

    Of the starts 1 to 8 it is 36; of the ends 1.5 to 8.5 it is 40. The two rows are no clips.
    """
    rows_of_f = [f"f,{n},{n}.5,S" for n in range(1, 9)]
    rows_of_g = [f"g,{n},{n}.5,S" for n in range(1, 9)]
    total = "Zwischensumme,36,40,"
    content = "\n".join([HEADER, *rows_of_f, total, *rows_of_g, total])

    clips, messages = import_files({"t.csv": content})

    assert films(clips) == ["f"] * 8 + ["g"] * 8
    assert "2 left out: a sum" in messages


def test_a_film_named_like_a_sum_is_read_where_labels_are_missing_elsewhere_too(import_files):
    """The film of the first row is called Mean and has no level, as a row of means would have none.

    But the next row, of film f, lacks a level too, so that this tells nothing: the row is a clip.
    """
    rows_with_levels = "".join(f"f,{n},{n}.5,S\n" for n in range(3, 12))
    content = f"{HEADER}\nMean,1,2,\nf,1,2,\n{rows_with_levels}"

    clips, _ = import_files({"t.csv": content})

    assert films(clips)[0] == "Mean"


def test_an_unknown_level_is_asked_about_though_it_is_called_like_a_heading(refusal_of):
    """Somebody wrote `level S` for S in the third of four rows, which stands in line 4.

    It is refused as an unknown level. Words of headings such as `level` must not make it a row that does not
    count.
    """
    content = f"{HEADER}\nf,1,2,S\nf,2,3,EN\nf,3,4,level S\ng,5,6,HN\n"

    refusal = refusal_of({"t.csv": content})

    assert "line 4, column level: unknown level 'level S'" in str(refusal)
