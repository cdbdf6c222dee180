# ruff: noqa: E501 - rows of files are kept as tools write them
"""Transcripts of recognisers: segments with times and speakers, whose words are never labels."""

import json

import pytest

from obygaze_features.errors import ManifestError


def texts_of(clips):
    """Times, text and speaker of clips."""
    return [(c.start_s, c.end_s, c.extras["text"], c.extras.get("subject", "")) for c in clips]


def whisper(*segments, **more):
    return json.dumps({"text": "", "segments": list(segments), "language": "en"} | more)


def test_segments_of_whisper_are_texts_and_no_labels(read):
    """Somebody says "S" in the film, which is also the name of a level.

    Words of a transcript are never labels.
    """
    words = [{"word": " S", "start": 1.0, "end": 1.2, "probability": 0.9}]
    segments = [
        {"id": 0, "seek": 0, "start": 1.0, "end": 5.0, "text": " S", "tokens": [1], "words": words},
        {"id": 1, "seek": 0, "start": 6.0, "end": 7.0, "text": " EN"},
    ]
    clips, notices = read({"film.json": whisper(*segments)})

    assert texts_of(clips) == [(1.0, 5.0, "S", ""), (6.0, 7.0, "EN", "")]
    assert not any(clip.level for clip in clips)
    assert "language: en" in notices


def test_whisperx_names_speakers_of_segments_or_of_their_words(read):
    segments = [
        {"start": 1.0, "end": 2.0, "text": "a", "speaker": "SPEAKER_00", "words": []},
        {
            "start": 3.0,
            "end": 4.0,
            "text": "b",
            "words": [{"word": "b", "start": 3.0, "speaker": "SPEAKER_01"}],
        },
        {
            "start": 5.0,
            "end": 6.0,
            "text": "c",
            "words": [{"word": "c", "speaker": "A"}, {"word": "d", "speaker": "B"}],
        },
    ]
    clips, _ = read({"film.json": json.dumps({"segments": segments, "word_segments": []})})

    assert [speaker for *_, speaker in texts_of(clips)] == ["SPEAKER_00", "SPEAKER_01", ""]


def test_whisper_cpp_and_whispers_table_count_in_milliseconds(read):
    cpp = {
        "systeminfo": "", "result": {"language": "fr"},
        "transcription": [{"timestamps": {"from": "00:00:01,500"}, "offsets": {"from": 1500, "to": 2500}, "text": " a"}],
    }  # fmt: skip
    tsv = "start\tend\ttext\n1500\t2500\ta\tb\n3000000\t3001000\tc\n"
    clips, notices = read({"a.json": json.dumps(cpp), "b.tsv": tsv})

    assert texts_of(clips) == [(1.5, 2.5, "a", ""), (1.5, 2.5, "a b", ""), (3000.0, 3001.0, "c", "")]
    assert "language: fr" in notices


def item(text, start=None, end=None, speaker=None, kind="pronunciation"):
    times = {} if start is None else {"start_time": str(start), "end_time": str(end)}
    label = {} if speaker is None else {"speaker_label": speaker}
    return {"type": kind, "alternatives": [{"confidence": "0.9", "content": text}]} | times | label


def amazon(**results):
    return json.dumps(
        {"jobName": "j", "status": "COMPLETED", "results": {"transcripts": [{"transcript": ""}]} | results}
    )


def test_words_of_amazon_are_joined_to_sentences(read):
    """A sentence ends with a full stop, before a long pause (2.2 to 9 s), or where another speaker begins."""
    items = [
        item("Hello", 1.0, 1.4), item(",", kind="punctuation"), item("you", 1.5, 1.9), item(".", kind="punctuation"),
        item("Well", 2.0, 2.2), item("then", 9.0, 9.2), item("no", 9.3, 9.5),
    ]  # fmt: skip
    labels = {"speakers": 2, "segments": [
        {"start_time": "1.0", "end_time": "9.2", "speaker_label": "spk_0",
         "items": [{"start_time": start, "speaker_label": "spk_0"} for start in ("1.0", "1.5", "2.0", "9.0")]},
        {"items": [{"start_time": "9.3", "speaker_label": "spk_1"}]}]}  # fmt: skip
    clips, notices = read({"film.json": amazon(items=items, speaker_labels=labels)})

    assert texts_of(clips) == [
        (1.0, 1.9, "Hello, you.", "spk_0"),
        (2.0, 2.2, "Well", "spk_0"),
        (9.0, 9.2, "then", "spk_0"),
        (9.3, 9.5, "no", "spk_1"),
    ]
    assert "4 sentences put together" in notices


def test_segments_of_amazon_are_taken_as_they_are(read):
    segments = [
        {
            "id": 0,
            "transcript": "Hello.",
            "start_time": "1.0",
            "end_time": "2.0",
            "speaker_label": "spk_0",
            "items": [0],
        }
    ]
    clips, _ = read({"film.json": amazon(items=[item("Hello", 1, 2)], audio_segments=segments)})

    assert texts_of(clips) == [(1.0, 2.0, "Hello.", "spk_0")]


def test_a_transcript_of_words_alone_and_one_of_chunks_are_read(read):
    words = {
        "text": "a b",
        "words": [{"word": "a", "start": 1.0, "end": 1.5}, {"word": "b", "start": 1.6, "end": 2.0}],
    }
    chunks = {
        "text": "c",
        "chunks": [{"timestamp": [3.0, 4.0], "text": " c"}, {"timestamp": [5.0, None], "text": " d"}],
    }
    clips, notices = read({"a.json": json.dumps(words), "b.json": json.dumps(chunks)})

    assert texts_of(clips) == [(1.0, 2.0, "a b", ""), (3.0, 4.0, "c", "")]
    assert "its times cannot be read" in notices


@pytest.mark.parametrize(
    "segments",
    [[], [{}], [None], [{"start": "x", "end": 1, "text": 3}]],
    ids=["no segment", "an empty one", "null", "a start that is no time"],
)
def test_a_transcript_without_a_whole_segment_gives_no_clip(read, segments):
    content = json.dumps({"segments": segments, "text": "", "language": "en"})
    clips, _ = read({"a.json": content}, kind="transcript")
    assert not clips


@pytest.mark.parametrize("segments", [{"a": 1}, "x", 3], ids=["names", "text", "number"])
def test_a_vocabulary_is_no_transcript(read, segments):
    document = {"the": 1, "text": 2, "segments": segments, "language": 4, "words": 5, "results": 6}
    with pytest.raises(ManifestError, match="no transcript: what it calls segments"):
        read({"a.json": json.dumps(document)})
