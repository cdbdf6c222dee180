"""Decisions of people that come back as lines of subtitles: a mistyped label is lost, which is said."""

DECIDED = """1
00:00:01,000 --> 00:00:02,000
human: labels, blind@AB = S; Body

2
00:00:03,000 --> 00:00:04,000
human: labels, blind@AB = S; Bodyy

3
00:00:05,000 --> 00:00:06,000
human: note@AB = who is this?

4
00:00:07,000 --> 00:00:08,000
Look at her.
"""


def test_a_mistyped_label_in_a_subtitle_of_decisions_is_named(import_files):
    """Of four subtitles one is a decision, one a mistyped decision, one a note, and one is what is said."""
    clips, messages = import_files({"film.srt": DECIDED})

    assert [clip.level or "" for clip in clips] == ["S", "", "", ""]
    assert "1 text not of codebook 'obygaze12' ('S; Bodyy' (1))" in messages


def test_subtitles_of_spoken_lines_are_not_searched_for_mistyped_labels(import_files):
    """A film's own subtitles are what people say there, not labels of "human: labels, blind@AB = ...".

    So one that happens to read "S; Bodyy" is not reported as a word that the codebook doesn't have.
    """
    spoken = DECIDED.replace("human: labels, blind@AB = ", "").replace("human: note@AB = ", "")
    assert "S; Bodyy" in spoken

    _, messages = import_files({"film.srt": spoken})

    assert "not of codebook" not in messages
