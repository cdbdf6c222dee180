"""Whole numbers of transcripts are seconds or milliseconds: the speech tells which, or the person.

Whisper's TSV counts milliseconds. A table that a person made of the same columns counts seconds, and was read
a thousand times too short; the utterances of other recognisers, in milliseconds, a thousand times too long.
"""

import json

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans

QUESTION = "in seconds or in milliseconds? Give --unit s or --unit ms"


def table(*rows):
    """Write a table as Whisper does: (start, end, text) for each row."""
    return "\n".join(["start\tend\ttext", *("\t".join(map(str, row)) for row in rows), ""])


def utterances(*rows):
    return json.dumps([{"start": start, "end": end, "text": text} for start, end, text in rows])


def segments(*rows):
    return json.dumps({"language": "en", "text": "", "segments": json.loads(utterances(*rows))})


def words(*rows):
    return json.dumps({"words": [{"word": text, "start": start, "end": end} for start, end, text in rows]})


SHAPES = [table, utterances, segments]

EVERY = pytest.mark.parametrize("write", SHAPES)


def times_of(clips):
    return [(clip.start_s, clip.end_s) for clip in clips]


@pytest.fixture
def refused(tmp_path):
    """Return a function that imports a transcript which is refused; it returns the message."""

    def refused(content, **options):
        path = tmp_path / "film.txt"
        path.write_text(content)
        with pytest.raises(ManifestError) as refusal:
            import_spans([path], tmp_path, kind="transcript", **options)
        return str(refusal.value)

    return refused


@EVERY
def test_texts_that_nobody_could_say_in_milliseconds_count_seconds(import_files, write):
    """In 60 milliseconds nobody says "she looks"."""
    rows = [(90, 150, "she looks"), (200, 260, "they walk"), (3600, 3660, "end")]

    clips, _ = import_files({"film.txt": write(*rows)}, kind="transcript")

    assert times_of(clips) == [(90.0, 150.0), (200.0, 260.0), (3600.0, 3660.0)]


@EVERY
def test_texts_on_small_whole_numbers_are_not_left_out_as_shorter_than_a_frame(import_files, write):
    clips, _ = import_files({"film.txt": write((1, 2, "Hello."), (2, 4, "Who is there?"))}, kind="transcript")

    assert times_of(clips) == [(1.0, 2.0), (2.0, 4.0)]


@EVERY
def test_a_film_of_more_than_five_hours_counts_milliseconds(import_files, write):
    rows = [
        (1000, 3500, "Good evening."),
        (3500, 6000, "Please sit down."),
        (7_200_000, 7_203_000, "The end."),
    ]

    clips, said = import_files({"film.txt": write(*rows)}, kind="transcript")

    assert times_of(clips) == [(1.0, 3.5), (3.5, 6.0), (7200.0, 7203.0)]
    assert "times are milliseconds" in said


@EVERY
def test_texts_of_more_than_an_hour_count_milliseconds(import_files, write):
    """A recording of nine seconds, in two sentences."""
    rows = [
        (0, 4200, "Good evening, ladies and gentlemen."),
        (4200, 9000, "Please sit down, we begin at once."),
    ]

    clips, _ = import_files({"film.txt": write(*rows)}, kind="transcript")

    assert times_of(clips) == [(0.0, 4.2), (4.2, 9.0)]


@pytest.mark.parametrize("write", [utterances, segments])
def test_numbers_with_decimals_are_seconds(import_files, write):
    """Programs that write seconds write 4.0 too."""
    rows = [(250.0, 2650.0, "A long silence."), (3250.0, 4650.0, "Hi.")]

    clips, _ = import_files({"film.txt": write(*rows)}, kind="transcript")

    assert times_of(clips) == [(250.0, 2650.0), (3250.0, 4650.0)]


OPEN = [(250, 2650, "Hello there."), (3250, 4650, "Hi.")]
"""Two utterances of three seconds, or the acts of a film of an hour and a quarter."""


@EVERY
def test_what_may_be_either_is_asked(refused, write):
    message = refused(write(*OPEN))

    assert f"is 'Hello there.' from 250 to 2650 {QUESTION}" in message


@EVERY
@pytest.mark.parametrize(
    ("unit", "times"),
    [
        ("s", [(250.0, 2650.0), (3250.0, 4650.0)]),
        ("ms", [(0.25, 2.65), (3.25, 4.65)]),
        ("frames", [(10.0, 106.0), (130.0, 186.0)]),
    ],
)
def test_the_person_says_the_unit(import_files, write, unit, times):
    clips, said = import_files({"film.txt": write(*OPEN)}, kind="transcript", unit=unit)

    assert times_of(clips) == times
    assert "--unit" not in said


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([(1, 2, "Hello"), (2, 3, "there.")], (1.0, 3.0)),
        ([(250, 650, "Hello"), (650, 1100, "there.")], (0.25, 1.1)),
    ],
    ids=["a word does not last a millisecond", "nor minutes"],
)
def test_words_tell_their_unit_too(import_files, rows, sentence):
    clips, _ = import_files({"film.txt": words(*rows)}, kind="transcript")

    assert times_of(clips) == [sentence]


def test_a_frame_needs_its_rate(refused):
    message = refused(table(*OPEN), unit="frames")

    assert "times are in frames; give their rate, as in --rate 25" in message
