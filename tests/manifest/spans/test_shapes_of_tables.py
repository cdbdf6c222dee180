"""One annotation in every shape, language and file: read by pasting what the first refusal proposes."""

import itertools

import pytest

from tests.manifest.spans.tables import FILES, LANGUAGES, SHAPES, TIMES, Span
from tests.manifest.spans.test_people_tables import import_with_proposed_options

SPANS_OF_ANNA_AND_JOERG = [
    Span("Vertigo", 65.5, 80.5, "S", ("Look", "Body"), "Anna"),
    Span("Vertigo", 65.5, 80.5, "HN", ("Look",), "Jörg"),
    Span("Vertigo", 300.0, 312.5, "EN", (), "Anna"),
    Span("Vertigo", 300.0, 312.5, "EN", (), "Jörg"),
    Span("Le Mépris", 41.0, 55.0, "NS", ("Type of shot",), "Anna"),
    Span("Le Mépris", 41.0, 55.0, "S", ("Clothing", "Type of shot"), "Jörg"),
    Span("Le Mépris", 3700.0, 3720.5, "HN", ("Posture",), "Anna"),
    Span("Le Mépris", 3700.0, 3720.5, "EN", (), "Jörg"),
]
FILES_OF_EACH_SHAPE = ("CSV", "workbook")


def shapes_and_files():
    """Make every shape in every file; languages and forms of times take turns."""
    cases = []
    for number, (shape, file) in enumerate(itertools.product(SHAPES, FILES)):
        language = list(LANGUAGES)[number % len(LANGUAGES)]
        time = list(TIMES)[number % len(TIMES)]
        is_costly = file not in FILES_OF_EACH_SHAPE and shape != "long"
        marks = [pytest.mark.long, pytest.mark.nightly] if is_costly else []
        cases.append(pytest.param(shape, file, language, time, marks=marks))
    return cases


SHAPES_AND_FILES = shapes_and_files()
"""Every shape in a file of text and in a workbook, and the others of all shapes and files at night."""


def label(movie, start_s, end_s, level, concepts, annotator):
    """Give what a clip or a span says, so that it can be sorted, without the order of concepts."""
    return movie, start_s or 0, end_s or 0, level or "", sorted(concepts), annotator


def labels_of_clips(clips):
    return sorted(label(c.movie, c.start_s, c.end_s, c.level, c.concepts, c.annotator) for c in clips)


def labels_of_spans(spans):
    return sorted(label(s.film, s.start_s, s.end_s, s.level, s.concepts, s.annotator) for s in spans)


@pytest.mark.parametrize(("shape", "file", "language", "form_of_times"), SHAPES_AND_FILES)
def test_a_table_is_read_with_the_options_that_its_refusal_proposes(
    tmp_path, shape, file, language, form_of_times
):
    """Anna and Jörg labelled the same four spans of two films. Their labels are written as a table.

    It may have a row for each label, a column for each person, and so on, and headings in six languages: if
    the import is refused, the options that the refusal names read all that the table says.
    """
    write_table = SHAPES[shape]
    words_of_headings = LANGUAGES[language]
    write_time = TIMES[form_of_times]
    table = write_table(SPANS_OF_ANNA_AND_JOERG, words_of_headings, write_time)
    name, encode = FILES[file]
    path = tmp_path / name
    path.write_bytes(encode(table.rows))

    clips = import_with_proposed_options(path)

    what_the_table_says = labels_of_spans(table.spans)
    assert labels_of_clips(clips) == what_the_table_says


def test_a_film_that_stands_alone_in_a_row_is_that_of_the_rows_below(import_files):
    """Rows of a film's name alone are titles of sections, in a column that is else empty."""
    table = "movie,start_s,end_s,level\nVertigo,,,\n,1,5,S\n,5,9,EN\nPsycho,,,\n,2,6,S\n"

    clips, _ = import_files({"levels.csv": table})

    assert [(clip.movie, clip.start_s) for clip in clips] == [
        ("Vertigo", 1.0),
        ("Vertigo", 5.0),
        ("Psycho", 2.0),
    ]
    assert not any("section" in clip.extras for clip in clips)


def test_a_column_called_section_is_kept_beside_the_titles_of_sections(import_files):
    """Rows of a note alone, such as "In the church", are titles of sections, kept in a column "section".

    The table has a column of this name already, so theirs is called "section (2)".
    """
    table = (
        "movie,note,start_s,end_s,level,section\n"
        ",In the church,,,,\n"
        "Vertigo,slow,1,5,S,opening\n"
        ",In the tower,,,,\n"
        "Vertigo,dark,21,26,S,end\n"
    )

    clips, _ = import_files({"levels.csv": table})

    assert [clip.extras["section"] for clip in clips] == ["opening", "end"]
    assert [clip.extras["section (2)"] for clip in clips] == ["In the church", "In the tower"]
