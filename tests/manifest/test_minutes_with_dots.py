"""59.30 is a number of seconds, unless clocks with dots stand beside it: it may be minutes then."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.instant import instants


@pytest.mark.parametrize("number", ["59.30", "59,30"])
def test_a_number_beside_a_clock_with_dots_is_refused_with_what_to_type(number):
    """In a column of times 0.10.00 and 1.00.10 are clocks with dots: hours, minutes and seconds.

    So 59.30 beside them may be minutes and seconds, or a number of seconds. The refusal says how to write
    either.
    """
    with pytest.raises(ManifestError) as refusal:
        instants(["0.10.00", number, "1.00.10"], usual_sign="")

    assert str(refusal.value) == (
        "'59.30' beside '0.10.00' may be 59:30 (minutes and seconds) or 59.30 seconds: "
        "write it as 0.59.30 or as 59.30 s"
    )


def test_a_number_beside_a_clock_with_dots_is_read_once_it_is_written_as_the_message_proposes():
    """Beside a clock with dots, 59.30 may be written as 0.59.30, which is 59 * 60 + 30 s, or as 59.30 s."""
    assert instants(["0.59.30", "59.30 s", "1.00.10"]) == [3570, 59.3, 3610]


def test_numbers_without_a_clock_in_their_column_are_seconds():
    """59.30 is 59.3 s where no clock with dots, such as 0.10.00, says that it may be 59 min 30 s."""
    assert instants(["0.30", "59.30"]) == [0.3, 59.3]


def test_a_number_that_cannot_be_minutes_and_seconds_is_seconds_beside_a_clock_with_dots():
    """0.00.30 is a clock, of 30 s. 59.75 beside it is 59.75 s, as no minute has 75 s."""
    assert instants(["0.00.30", "59.75"]) == [30, 59.75]
