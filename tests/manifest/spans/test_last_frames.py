"""Ends in frames are the last frames of spans, or the first after them: the table tells."""

import pytest

TIMES_ARE_FRAMES = {"unit": "frames", "columns": {"start_s": ["first"], "end_s": ["end"]}}
"""Options: the columns "first" and "end" are the frames at which spans start and end, 25 a second."""


def spans_of(clips):
    return [(clip.start_s, clip.end_s) for clip in clips]


@pytest.mark.parametrize("later_row", ["f,50,74,S", "f,50.0,74.0,S"])
def test_spans_that_adjoin_one_frame_later_end_with_their_last_frame(import_files, later_row):
    """Three spans of 25 frames each, 0 to 24, 25 to 49 and 50 to 74, end one frame before the next begins.

    So their ends are their last frames. Read as the first frames after them, each span would lose a frame,
    and no two would adjoin.
    """
    table = f"movie,first,end,level\nf,0,24,EN\nf,25,49,S\n{later_row}\n"

    clips, messages = import_files({"a.csv": table}, **TIMES_ARE_FRAMES)

    assert spans_of(clips) == [(0, 1), (1, 2), (2, 3)]
    assert "(2 of 3 spans); frames count from 0" in messages


def test_spans_that_adjoin_end_with_the_frame_after(import_files):
    """The first span ends at frame 25, at which the second begins, so ends are the first frames after spans.

    At 25 frames a second they last from 0 to 1 s, and from 1 to 2 s. There is no doubt, and so no message.
    """
    table = "movie,first,end,level\nf,0,25,EN\nf,25,50,S\n"

    clips, messages = import_files({"a.csv": table}, **TIMES_ARE_FRAMES)

    assert spans_of(clips) == [(0, 1), (1, 2)]
    assert "ends in frames" not in messages


def test_frames_that_begin_with_1_count_from_1(import_files):
    """The first spans of films f and g begin at frame 1, and no span at frame 0: frames count from 1.

    So frames 1 to 25, at 25 a second, are the first second of a film. MATLAB counts so.
    """
    table = "movie,first,end,level\nf,1,25,EN\nf,26,50,S\ng,1,25,S\n"

    clips, messages = import_files({"a.csv": table}, **TIMES_ARE_FRAMES)

    assert spans_of(clips) == [(0, 1), (1, 2), (0, 1)]
    assert "frames count from 1" in messages


def test_spans_with_gaps_are_read_half_open_which_is_said(import_files):
    """The spans are from frame 0 to 25 and from 100 to 125, at 25 frames a second, and do not adjoin.

    So nothing tells whether an end is a span's last frame or the first one after it. It is read as the
    latter, and a message says so.
    """
    table = "movie,first,end,level\nf,0,25,EN\nf,100,125,S\n"

    clips, messages = import_files({"a.csv": table}, **TIMES_ARE_FRAMES)

    assert spans_of(clips) == [(0, 1), (4, 5)]
    assert "read as the first frame after a span: add 1 if they are its last frame" in messages


def test_a_span_of_a_single_frame_is_kept(import_files):
    """A table of frames, 25 a second, gives the first and the last frame of each span.

    A span from frame 10 to frame 10 is that one frame, from .4 to .44 s. If the end were the frame after the
    span, it would have no time at all.
    """
    clips, _ = import_files({"a.csv": "movie,first,end,level\nf,10,10,EN\nf,25,49,S\n"}, **TIMES_ARE_FRAMES)

    assert spans_of(clips) == [(0.4, 0.44), (1, 2)]


def test_ends_in_seconds_stay_as_they_are(import_files):
    """The first span ends at 24 s and the second begins at 25 s. As frames they would adjoin."""
    table = "movie,start_s,end_s,level\nf,0,24,EN\nf,25,49,S\n"

    clips, _ = import_files({"a.csv": table})

    assert spans_of(clips) == [(0, 24), (25, 49)]
