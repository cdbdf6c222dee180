"""1.05, 2.30, 10.59 may be seconds or minutes and seconds: where nothing says which, it is asked."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import builtin_codebook, import_spans

COLUMNS = {"start_s": ["Start"], "end_s": ["End"], "movie": ["Film"]}


def write_table(folder, *spans, start="Start", end="End", delimiter=","):
    """Write a table of spans of one film, each with the level HN; return its path."""
    rows = [delimiter.join(["Film", start, end, "level"])]
    rows += [delimiter.join(["m", *span, "HN"]) for span in spans]
    path = folder / "spans.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def times_of(path, columns=COLUMNS, **options):
    """Import the table, and return the start and end of each of its clips."""
    codebook = builtin_codebook("obygaze12")
    imported = import_spans([path], path.parent, columns=columns, codebook=codebook, **options)
    return [(clip.start_s, clip.end_s) for clip in imported.manifest]


@pytest.mark.parametrize(
    ("spans", "delimiter", "highest"),
    [
        ([("0.05", "1.05"), ("1.05", "2.30"), ("2.30", "10.59")], ",", "10.59"),
        ([("0,05", "1,05"), ("2,30", "105,12")], ";", "105.12"),
        ([("٠.٠٥", "١.٠٥"), ("٢.٣٠", "١٠.٥٩")], ",", "10.59"),
    ],
    ids=["points", "commas", "Arabic digits"],
)
def test_numbers_that_may_be_seconds_or_minutes_are_refused_with_what_to_type_for_either(
    tmp_path, spans, delimiter, highest
):
    """All times of a table, starts and ends of spans, are numbers with two decimals, of .59 at most.

    So 10.59 may be seconds, or 10 minutes and 59 seconds. The refusal says for the highest number of the
    table, in digits of ASCII and with a point, what to type in either case.
    """
    table = write_table(tmp_path, *spans, delimiter=delimiter)

    with pytest.raises(ManifestError) as refusal:
        times_of(table)

    message = str(refusal.value)
    assert "the numbers in 'Start', 'End' have two decimals, none of them .60 or more" in message
    assert f"give --unit s if {highest} is {highest} seconds" in message
    assert f"write {highest.replace('.', ':')} where it is minutes and seconds" in message


def test_the_unit_is_asked_together_with_the_columns(tmp_path):
    """Below Start and End stand numbers such as 1.05, which may be seconds, or a minute and five seconds.

    The user has not said which columns hold times either. The refusal asks for both at once: it proposes a
    command that names the columns, in which the user has to replace UNIT.
    """
    path = write_table(tmp_path, ("0.05", "1.05"), ("1.12", "2.30"))
    no_columns_named = {}

    with pytest.raises(ManifestError, match=r"--column start_s=Start --column end_s=End .*--unit UNIT"):
        times_of(path, columns=no_columns_named)


def test_numbers_with_two_decimals_are_read_once_the_person_says_what_they_are(tmp_path):
    """1.05 may be 1.05 s, or 1 min 5 s. The refusal advises to give --unit s, or else to write 1:05.

    Either advice, when it is followed, gives the times that the person means.
    """
    in_seconds = write_table(tmp_path, ("0.05", "1.05"), ("1.12", "2.30"))
    assert times_of(in_seconds, unit="s") == [(0.05, 1.05), (1.12, 2.3)]

    in_minutes = write_table(tmp_path, ("0:05", "1:05"), ("1:12", "2:30"))
    assert times_of(in_minutes) == [(5, 65), (72, 150)]


@pytest.mark.parametrize(
    "last_span",
    [("2.30", "10.60"), ("2.30", "10"), ("2.30", "10.5"), ("2.30", "10.590"), ("2.30", "0:12")],
    ids=["60 seconds", "no decimals", "one decimal", "three decimals", "a clock"],
)
def test_one_time_that_cannot_be_minutes_and_seconds_shows_that_all_are_seconds(tmp_path, last_span):
    """The times of two spans, 0.05 to 1.05 and 1.05 to 2.30, may be seconds, or minutes and seconds.

    The end of the last span cannot be minutes and seconds with a point between, so all numbers are seconds.
    """
    table = write_table(tmp_path, ("0.05", "1.05"), ("1.05", "2.30"), last_span)

    first, second, _ = times_of(table)

    assert first == (0.05, 1.05)
    assert second == (1.05, 2.3)


def test_steps_of_half_a_second_are_seconds(tmp_path):
    """Times with two decimals below .60, such as 2.50, may be minutes and seconds: 2 min 50 s.

    But here all of them end in .00 or .50, as in any table of windows of 2.5 s: they are seconds.
    """
    path = write_table(tmp_path, ("0.00", "2.50"), ("2.50", "5.00"), ("5.00", "7.50"))
    assert times_of(path) == [(0, 2.5), (2.5, 5), (5, 7.5)]


@pytest.mark.parametrize("heading_of_starts", ["Start (s)", "Start in seconds", "start_s"])
def test_a_unit_in_a_heading_says_that_numbers_with_two_decimals_are_seconds(tmp_path, heading_of_starts):
    """The times of two spans may be seconds, or minutes and seconds: 1.05 may be a minute and 5 seconds.

    The heading of their starts says that they are seconds.
    """
    table = write_table(tmp_path, ("0.05", "1.05"), ("1.12", "2.30"), start=heading_of_starts)
    columns = {"movie": ["Film"], "start_s": [heading_of_starts], "end_s": ["End"]}

    times = times_of(table, columns=columns)

    assert times == [(0.05, 1.05), (1.12, 2.3)]
