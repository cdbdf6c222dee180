"""Files that are nearly of a known form are read, and not sent to formats far away."""

import json

import pytest


@pytest.mark.parametrize("separator", ["|", " | ", ";", "\t", ","])
def test_a_table_with_a_manifests_headings_is_read_whatever_divides_its_cells(import_files, separator):
    """The file is t.txt, whose name does not tell that it is a table, nor what divides its cells."""
    rows = [("movie", "start_s", "end_s", "level"), ("f", "1", "2", "S"), ("f", "3", "4", "EN")]
    content = "\n".join(separator.join(cells) for cells in rows) + "\n"

    clips, _ = import_files({"t.txt": content})

    assert [(clip.movie, clip.start_s, clip.end_s, clip.level) for clip in clips] == [
        ("f", 1.0, 2.0, "S"),
        ("f", 3.0, 4.0, "EN"),
    ]


@pytest.mark.parametrize("arrow", ["->", "-->", "--->", "—>"])
def test_arrows_of_subtitles_may_be_shorter_or_longer(import_files, arrow):
    """In a file of subtitles (SRT) the arrow between two times should be "-->". Here two have another one."""
    hello = f"1\n00:00:01,000 {arrow} 00:00:02,000\nHello\n"
    bye = f"2\n00:00:03,000 {arrow} 00:00:04,500\nBye\n"

    clips, _ = import_files({"f.srt": f"{hello}\n{bye}"})

    assert [(clip.start_s, clip.end_s, clip.extras["text"]) for clip in clips] == [
        (1.0, 2.0, "Hello"),
        (3.0, 4.5, "Bye"),
    ]


def test_texts_with_durations_are_a_transcript(import_files):
    """A text has a start and a duration, as youtube-transcript-api writes the captions of a video.

    "Hello" begins at 1 s and lasts 2.5 s, so that it ends at 3.5 s.
    """
    texts = [
        {"text": "Hello", "start": 1.0, "duration": 2.5},
        {"text": "there", "start": 3.5, "duration": 1.5},
    ]

    clips, _ = import_files({"f.json": json.dumps(texts)})

    assert [(clip.start_s, clip.end_s, clip.extras["text"]) for clip in clips] == [
        (1.0, 3.5, "Hello"),
        (3.5, 5.0, "there"),
    ]
