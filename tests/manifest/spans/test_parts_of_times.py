"""Tables in which a time stands in several columns, or a column of times is another one than it seems."""

import pytest


@pytest.mark.parametrize(
    "headings",
    [
        "start_min,start_sec,end_min,end_sec",
        "start_min,start_s,end_min,end_s",
        "Anfang (Min),Anfang (Sek),Ende (Min),Ende (Sek)",
        "開始分,開始秒,終了分,終了秒",
    ],
)
def test_minutes_and_seconds_in_columns_of_their_own_are_refused(refusal_of, headings):
    """The first span is from 1 min 5 s to 1 min 20 s, in four columns: minutes and seconds of both times.

    Read by its seconds alone, it would be from 5 s to 20 s, so it is refused, and no column is proposed as
    the start.
    """
    refusal = refusal_of({"t.csv": f"movie,{headings},level\nf,1,5,1,20,S\nf,2,5,3,10,EN\n"})
    assert "write each time in one column" in str(refusal)
    assert "start_s=" not in " ".join(refusal.options)


def test_hours_are_no_starts_of_spans_that_end_at_minutes(refusal_of):
    """The columns h, m and s are the hours, minutes and seconds of one time, and dur is a duration.

    So the refusal names the three together, and proposes none of them as the start.
    """
    refusal = refusal_of({"t.csv": "movie,h,m,s,dur,level\nf,0,1,5,4,S\nf,0,2,5,3,EN\n"})
    assert "'h', 'm', 's'" in str(refusal)
    assert "start_s=" not in " ".join(refusal.options)


def test_columns_with_the_same_times_in_minutes_and_in_seconds_are_not_added_up(import_files):
    """A table has each time twice: 1 min in start_min, and the same 60 s in start_s.

    If the columns held the parts of a time, 1 min and 60 s would be 120 s, and the table would be refused.
    Here the seconds are 60 times the minutes in each row, so that they are whole times, and read.
    """
    content = "movie,start_min,start_s,end_min,end_s,level\nf,1,60,1.5,90,S\nf,2,120,3,180,EN\n"

    clips, _ = import_files({"t.csv": content})

    assert [(clip.start_s, clip.end_s) for clip in clips] == [(60, 90), (120, 180)]


def test_other_numbers_in_two_units_do_not_matter(import_files):
    """Beside the times are the seconds and milliseconds that the annotator took to answer, rt_s and rt_ms."""
    table = "movie,start_s,end_s,level,rt_s,rt_ms\nf,1,2,S,1,3\nf,3,4,EN,2,4\n"

    clips, _ = import_files({"t.csv": table})

    assert [(clip.start_s, clip.end_s) for clip in clips] == [(1, 2), (3, 4)]


def test_a_duration_is_no_start(refusal_of):
    """The table says how long spans last and when they end: the start has to be asked for."""
    refusal = refusal_of({"t.csv": "movie,dur,end,level\nf,1,2,S\nf,1,4,EN\n"})
    assert "--column start_s=HEADING says where spans start" in str(refusal)
    assert "start_s=dur" not in str(refusal)


def test_starts_in_another_unit_than_the_ends_are_proposed(import_files, refusal_of):
    """Starts are in milliseconds and ends in seconds: the first span is from 1000 ms to 2 s.

    Though their numbers are larger than those of the ends, they are proposed as starts, and read in their
    unit.
    """
    content = "movie,start_ms,end_s,level\nf,1000,2,S\nf,3000,4,EN\n"
    assert refusal_of({"t.csv": content}).options == ("--column start_s=start_ms",)

    clips, _ = import_files({"t.csv": content}, columns={"start_s": ["start_ms"]})
    assert [(clip.start_s, clip.end_s) for clip in clips] == [(1, 2), (3, 4)]


def test_ids_and_counts_of_a_crowd_are_no_times(import_files):
    """A platform writes the id of each unit, and how many people judged it: 1 and 3, and 2 and 5.

    In each row the second number is larger, as ends are. They are no times, and each row is of a whole film.
    """
    content = (
        "_unit_id,_trusted_judgments,level,level:confidence,video\n1,3,S,0.67,f1.mp4\n2,5,EN,1.0,f2.mp4\n"
    )

    clips, notices = import_files({"t.csv": content})

    assert [(clip.start_s, clip.level) for clip in clips] == [(None, "S"), (None, "EN")]
    assert "2 rows taken as whole films" in notices


@pytest.mark.parametrize(
    ("first", "second"), [("0:00:10,0:00:15", "0:01:00,0:01:05"), ("0:00:10,15", "0:01:00,65")]
)
def test_clocks_and_seconds_are_compared_as_seconds(refusal_of, first, second):
    """Starts are clocks, ends clocks or numbers of seconds: the first span is from 10 to 15 s.

    The heading of neither column means a time, but each end is 5 s later than its start.
    """
    refusal = refusal_of({"t.csv": f"movie,aa,bb,level\nf,{first},S\nf,{second},EN\n"})
    assert refusal.options == ("--column start_s=aa", "--column end_s=bb")


def test_a_proposal_of_times_says_where_nothing_but_the_numbers_shows_that_they_are_times(refusal_of):
    """A table has the columns aa and bb, whose headings mean no time, and aa is always below bb.

    So they are proposed as starts and ends, and the refusal says that only their numbers tell so.
    """
    refusal = refusal_of({"t.csv": "movie,aa,bb,level\nf,1.5,7.25,S\nf,8.5,19.75,EN\n"})
    assert refusal.options == ("--column start_s=aa", "--column end_s=bb")
    assert "'aa' and 'bb' are taken as times by their numbers alone" in str(refusal)
