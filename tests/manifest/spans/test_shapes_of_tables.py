"""One annotation in every shape, language and file: read by pasting what the first refusal proposes."""

import itertools

import pytest

from tests.manifest.spans.tables import FILES, LANGUAGES, SHAPES, TIMES, Span
from tests.manifest.spans.test_people_tables import import_with_proposed_options

SPANS = [
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


def grid():
    """Make every shape in every file; languages and forms of times take turns."""
    cases = []
    for number, (shape, file) in enumerate(itertools.product(SHAPES, FILES)):
        language = list(LANGUAGES)[number % len(LANGUAGES)]
        time = list(TIMES)[number % len(TIMES)]
        is_costly = file not in FILES_OF_EACH_SHAPE and shape != "long"
        marks = [pytest.mark.long, pytest.mark.nightly] if is_costly else []
        cases.append(pytest.param(shape, file, language, time, marks=marks))
    return cases


GRID = grid()
"""Every shape in a file of text and in a workbook, and the others of all shapes and files at night."""


def labels_of(clips):
    """What clips say, without the order of concepts."""
    return sorted(
        (
            clip.movie,
            clip.start_s or 0,
            clip.end_s or 0,
            clip.level or "",
            sorted(clip.concepts),
            clip.annotator,
        )
        for clip in clips
    )


def expected_labels(spans):
    return sorted(
        (span.film, span.start_s or 0, span.end_s or 0, span.level, sorted(span.concepts), span.annotator)
        for span in spans
    )


@pytest.mark.parametrize(("shape", "file", "language", "time"), GRID)
def test_a_table_is_read_by_pasting_what_is_proposed(tmp_path, shape, file, language, time):
    table = SHAPES[shape](SPANS, LANGUAGES[language], TIMES[time])
    name, written = FILES[file]
    path = tmp_path / name
    path.write_bytes(written(table.rows))
    clips = import_with_proposed_options(path)
    assert labels_of(clips) == expected_labels(table.spans)


def test_a_film_that_stands_alone_in_a_row_is_that_of_the_rows_below(import_files):
    """Rows of a film's name alone are titles of sections, in a column that is else empty."""
    rows = "movie,start_s,end_s,level\nVertigo,,,\n,1,5,S\n,5,9,EN\nPsycho,,,\n,2,6,S\n"
    clips, _ = import_files({"levels.csv": rows})

    assert [(clip.movie, clip.start_s) for clip in clips] == [
        ("Vertigo", 1.0),
        ("Vertigo", 5.0),
        ("Psycho", 2.0),
    ]
    assert not any("section" in clip.extras for clip in clips)


def test_titles_of_sections_leave_a_column_of_that_name_as_it_is(import_files):
    """Scenes head their rows in the column of notes, which other rows use, beside a column `section`."""
    rows = (
        "movie,note,start_s,end_s,level,section\n,In the church,,,,\nVertigo,slow,1,5,S,opening\n"
        ",In the tower,,,,\nVertigo,dark,21,26,S,end\n"
    )
    clips, _ = import_files({"levels.csv": rows})

    assert [clip.extras["section"] for clip in clips] == ["opening", "end"]
    assert [clip.extras["section (2)"] for clip in clips] == ["In the church", "In the tower"]
