"""Whole numbers of transcripts are seconds or milliseconds: the speech tells which, or the person.

Whisper's TSV counts milliseconds. A table that a person made of the same columns counts seconds, and was read
a thousand times too short; the utterances of other recognisers, in milliseconds, a thousand times too long.
"""

import json

import pytest

QUESTION = "in seconds or in milliseconds? Give --unit s or --unit ms"


def table(*rows):
    """Write a table as Whisper does: (start, end, text) for each row."""
    lines = ["start\tend\ttext"]
    for start, end, text in rows:
        lines.append(f"{start}\t{end}\t{text}")
    return "\n".join(lines) + "\n"


def utterances(*rows):
    """Write a list of utterances in JSON: (start, end, text) for each row."""
    return json.dumps([{"start": start, "end": end, "text": text} for start, end, text in rows])


def segments(*rows):
    """Write a document of Whisper in JSON: (start, end, text) for each row."""
    return json.dumps({"language": "en", "text": "", "segments": json.loads(utterances(*rows))})


def words(*rows):
    """Write a list of single words in JSON: (start, end, word) for each row."""
    return json.dumps({"words": [{"word": text, "start": start, "end": end} for start, end, text in rows]})


IN_EVERY_SHAPE = pytest.mark.parametrize("write", [table, utterances, segments])
"""A transcript is a table, a list of utterances or a document of segments: `write` makes it of rows."""


def times_of(clips):
    return [(clip.start_s, clip.end_s) for clip in clips]


@IN_EVERY_SHAPE
def test_texts_that_nobody_could_say_in_milliseconds_count_seconds(import_files, write):
    """Nothing says which unit the whole numbers have. In 150 - 90 = 60 ms nobody says "she looks"."""
    rows = [(90, 150, "she looks"), (200, 260, "they walk"), (3600, 3660, "end")]

    clips, _ = import_files({"film.txt": write(*rows)}, kind="transcript")

    assert times_of(clips) == [(90.0, 150.0), (200.0, 260.0), (3600.0, 3660.0)]


@IN_EVERY_SHAPE
def test_texts_on_small_whole_numbers_are_not_left_out_as_shorter_than_a_frame(import_files, write):
    """Times of 1, 2 and 4 are seconds. As milliseconds both texts would be shorter than a frame."""
    rows = [(1, 2, "Hello."), (2, 4, "Who is there?")]

    clips, _ = import_files({"film.txt": write(*rows)}, kind="transcript")

    assert times_of(clips) == [(1.0, 2.0), (2.0, 4.0)]


@IN_EVERY_SHAPE
def test_whole_numbers_of_a_transcript_are_milliseconds_if_as_seconds_the_film_were_too_long(
    import_files, write
):
    """The last text ends at 7,203,000: as seconds that were 83 days, but no film lasts more than five hours.

    So the numbers are milliseconds, and the last text ends after 2 hours: whether they are in a table, or in
    JSON as utterances or as segments.
    """
    rows = [
        (1000, 3500, "Good evening."),
        (3500, 6000, "Please sit down."),
        (7_200_000, 7_203_000, "The end."),
    ]

    clips, notices = import_files({"film.txt": write(*rows)}, kind="transcript")

    assert times_of(clips) == [(1.0, 3.5), (3.5, 6.0), (7200.0, 7203.0)]
    assert "times are milliseconds" in notices


@IN_EVERY_SHAPE
def test_a_text_of_more_than_an_hour_would_be_too_long_so_times_are_milliseconds(import_files, write):
    """Two sentences end at 4200 and at 9000: 9 s in all, if these are milliseconds, and else 2.5 hours."""
    rows = [
        (0, 4200, "Good evening, ladies and gentlemen."),
        (4200, 9000, "Please sit down, we begin at once."),
    ]

    clips, _ = import_files({"film.txt": write(*rows)}, kind="transcript")

    assert times_of(clips) == [(0.0, 4.2), (4.2, 9.0)]


@pytest.mark.parametrize("write", [utterances, segments])
def test_numbers_with_decimals_are_seconds(import_files, write):
    """Programs that count milliseconds write whole numbers; those that count seconds write 250.0, too."""
    rows = [(250.0, 2650.0, "A long silence."), (3250.0, 4650.0, "Hi.")]

    clips, _ = import_files({"film.txt": write(*rows)}, kind="transcript")

    assert times_of(clips) == [(250.0, 2650.0), (3250.0, 4650.0)]


SECONDS_OR_MILLISECONDS = [(250, 2650, "Hello there."), (3250, 4650, "Hi.")]
"""Two utterances within five seconds, or the acts of a film of an hour and a quarter."""


@IN_EVERY_SHAPE
def test_a_person_is_asked_for_the_unit_of_times_that_may_be_seconds_or_milliseconds(refusal_of, write):
    """The texts of the transcript are "Hello there." from 250 to 2650, and "Hi." from 3250 to 4650.

    As milliseconds they are two utterances within five seconds, as seconds long acts of a film.
    """
    transcript = write(*SECONDS_OR_MILLISECONDS)

    refusal = refusal_of({"film.txt": transcript}, kind="transcript")

    assert f"is 'Hello there.' from 250 to 2650 {QUESTION}" in str(refusal)


@IN_EVERY_SHAPE
@pytest.mark.parametrize(
    ("unit", "times_s"),
    [
        ("s", [(250.0, 2650.0), (3250.0, 4650.0)]),
        ("ms", [(0.25, 2.65), (3.25, 4.65)]),
        ("frames", [(10.0, 106.0), (130.0, 186.0)]),
    ],
)
def test_times_are_in_the_unit_that_a_person_gives(import_files, write, unit, times_s):
    """A transcript has two texts, from 250 to 2650 and from 3250 to 4650, in a unit that a person knows.

    The files are imported at 25 frames a second, so that frame 250 is at 10 s.
    """
    transcript = write((250, 2650, "Hello there."), (3250, 4650, "Hi."))

    clips, notices = import_files({"film.txt": transcript}, kind="transcript", unit=unit)

    assert times_of(clips) == times_s
    assert "--unit" not in notices


@pytest.mark.parametrize(
    ("rows", "times_of_sentence"),
    [
        pytest.param([(1, 2, "Hello"), (2, 3, "there.")], (1.0, 3.0), id="1 s, as 1 ms is too short"),
        pytest.param(
            [(250, 650, "Hello"), (650, 1100, "there.")], (0.25, 1.1), id="400 ms, as 400 s is too long"
        ),
    ],
)
def test_whole_numbers_beside_single_words_are_in_the_unit_in_which_a_word_can_be_said(
    import_files, rows, times_of_sentence
):
    """A transcript has the words "Hello" and "there.", each with its start and end as whole numbers.

    Nobody says "Hello" in 1 ms, so that the first numbers are seconds; nor in 400 s, so that the second are
    milliseconds. The words are read as one sentence, from the start of "Hello" to the end of "there.".
    """
    clips, _ = import_files({"film.txt": words(*rows)}, kind="transcript")

    assert times_of(clips) == [times_of_sentence]


def test_times_in_frames_need_a_frame_rate(refusal_of):
    """The person says that times are frames, and not how many frames a second has."""
    transcript = table(*SECONDS_OR_MILLISECONDS)

    refusal = refusal_of({"film.txt": transcript}, kind="transcript", unit="frames", rate=None)

    assert "times are in frames; give their rate, as in --rate 25" in str(refusal)
