# ruff: noqa: E501 - rows of files are kept as tools write them
"""Transcripts of recognisers: segments with times and speakers, whose words are never labels."""

import json

import pytest

from obygaze_features.errors import ManifestError


def spoken_texts_of(clips):
    """Return start, end, text and speaker of each clip; the speaker is empty where nobody is named."""
    return [(c.start_s, c.end_s, c.extras["text"], c.extras.get("subject", "")) for c in clips]


def whisper_document(*segments):
    return json.dumps({"text": "", "segments": list(segments), "language": "en"})


def test_segments_of_whisper_are_texts_and_no_labels(import_files):
    """Somebody says "S" in the film, which is also the name of a level.

    Words of a transcript are never labels.
    """
    words = [{"word": " S", "start": 1.0, "end": 1.2, "probability": 0.9}]
    segments = [
        {"id": 0, "seek": 0, "start": 1.0, "end": 5.0, "text": " S", "tokens": [1], "words": words},
        {"id": 1, "seek": 0, "start": 6.0, "end": 7.0, "text": " EN"},
    ]

    clips, notices = import_files({"film.json": whisper_document(*segments)})

    assert spoken_texts_of(clips) == [(1.0, 5.0, "S", ""), (6.0, 7.0, "EN", "")]
    assert not any(clip.level for clip in clips)
    assert "language: en" in notices


def test_whisperx_names_speakers_of_segments_or_of_their_words(import_files):
    """The first segment names its speaker, and the second only that of its one word.

    Two people speak in the third segment, so it has no speaker.
    """
    of_a_segment = {"start": 1.0, "end": 2.0, "text": "a", "speaker": "SPEAKER_00", "words": []}
    of_a_word = {
        "start": 3.0,
        "end": 4.0,
        "text": "b",
        "words": [{"word": "b", "start": 3.0, "speaker": "SPEAKER_01"}],
    }
    of_two_people = {
        "start": 5.0,
        "end": 6.0,
        "text": "c",
        "words": [{"word": "c", "speaker": "A"}, {"word": "d", "speaker": "B"}],
    }
    document = {"segments": [of_a_segment, of_a_word, of_two_people], "word_segments": []}

    clips, _ = import_files({"film.json": json.dumps(document)})

    assert [clip.extras.get("subject", "") for clip in clips] == ["SPEAKER_00", "SPEAKER_01", ""]


def test_whisper_cpp_and_whispers_table_count_in_milliseconds(import_files):
    """whisper.cpp writes JSON, and Whisper a table, both with times in milliseconds.

    The text of the former lasts from 1500 to 2500 ms. The table has one of the same times, whose tab is read
    as a blank, and one from 3,000,000 to 3,001,000 ms.
    """
    document_of_whisper_cpp = {
        "systeminfo": "", "result": {"language": "fr"},
        "transcription": [{"timestamps": {"from": "00:00:01,500"}, "offsets": {"from": 1500, "to": 2500}, "text": " a"}],
    }  # fmt: skip
    table_of_whisper = "start\tend\ttext\n1500\t2500\ta\tb\n3000000\t3001000\tc\n"

    clips, notices = import_files({"a.json": json.dumps(document_of_whisper_cpp), "b.tsv": table_of_whisper})

    assert spoken_texts_of(clips) == [(1.5, 2.5, "a", ""), (1.5, 2.5, "a b", ""), (3000.0, 3001.0, "c", "")]
    assert "language: fr" in notices


def spoken_word(text, start_s, end_s):
    """Write a word as Amazon Transcribe does."""
    times = {"start_time": str(start_s), "end_time": str(end_s)}
    return {"type": "pronunciation", "alternatives": [{"confidence": "0.9", "content": text}]} | times


def punctuation(sign):
    """Write a sign of punctuation as Amazon Transcribe does: it has no times."""
    return {"type": "punctuation", "alternatives": [{"confidence": "0.9", "content": sign}]}


def amazon_speakers(**starts_of_words):
    """Write who says which words, {speaker: the times at which words begin}, as Amazon Transcribe does."""
    turns = []
    for speaker, starts in starts_of_words.items():
        turns.append({"items": [{"start_time": start, "speaker_label": speaker} for start in starts]})
    return {"speakers": len(starts_of_words), "segments": turns}


def amazon_document(**results):
    """Write a transcript of Amazon Transcribe with these results."""
    return json.dumps(
        {"jobName": "j", "status": "COMPLETED", "results": {"transcripts": [{"transcript": ""}]} | results}
    )


def test_words_of_amazon_are_joined_to_sentences(import_files):
    """A transcript of Amazon has single words with times, and elsewhere who says the word that begins at a time.

    A sentence ends with a full stop, before a long pause (2.2 to 9.0 s), or where another speaker begins. The
    first speaker, spk_0, says all words but the last, which begins at 9.3 s.
    """
    words = [
        spoken_word("Hello", start_s=1.0, end_s=1.4),
        punctuation(","),
        spoken_word("you", start_s=1.5, end_s=1.9),
        punctuation("."),
        spoken_word("Well", start_s=2.0, end_s=2.2),
        spoken_word("then", start_s=9.0, end_s=9.2),
        spoken_word("no", start_s=9.3, end_s=9.5),
    ]
    speakers = amazon_speakers(spk_0=["1.0", "1.5", "2.0", "9.0"], spk_1=["9.3"])

    clips, notices = import_files({"film.json": amazon_document(items=words, speaker_labels=speakers)})

    assert spoken_texts_of(clips) == [
        (1.0, 1.9, "Hello, you.", "spk_0"),
        (2.0, 2.2, "Well", "spk_0"),
        (9.0, 9.2, "then", "spk_0"),
        (9.3, 9.5, "no", "spk_1"),
    ]
    assert "4 sentences put together" in notices


def test_segments_in_a_transcript_of_amazon_are_read_in_place_of_its_words(import_files):
    """Newer transcripts of Amazon have segments, with a text and a speaker, beside the words.

    So the words need not be joined: the one segment, "Hello." from 1 to 2 s, is the clip.
    """
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
    document = amazon_document(items=[spoken_word("Hello", start_s=1, end_s=2)], audio_segments=segments)

    clips, _ = import_files({"film.json": document})

    assert spoken_texts_of(clips) == [(1.0, 2.0, "Hello.", "spk_0")]


def test_a_transcript_of_words_alone_is_read(import_files):
    """A transcript has words with their times and no sentences. Two words 0.1 s apart become one text."""
    words = [{"word": "a", "start": 1.0, "end": 1.5}, {"word": "b", "start": 1.6, "end": 2.0}]

    clips, _ = import_files({"a.json": json.dumps({"text": "a b", "words": words})})

    assert spoken_texts_of(clips) == [(1.0, 2.0, "a b", "")]


def test_a_transcript_of_chunks_is_read(import_files):
    """A chunk has its start and end. The second has no end, so it is left out."""
    chunks = [{"timestamp": [3.0, 4.0], "text": " c"}, {"timestamp": [5.0, None], "text": " d"}]

    clips, notices = import_files({"b.json": json.dumps({"text": "c", "chunks": chunks})})

    assert spoken_texts_of(clips) == [(3.0, 4.0, "c", "")]
    assert "its times cannot be read" in notices


@pytest.mark.parametrize(
    "segments",
    [[], [{}], [None], [{"start": "x", "end": 1, "text": 3}]],
    ids=["no segment", "an empty one", "null", "a start that is no time"],
)
def test_a_transcript_without_a_whole_segment_gives_no_clip(import_files, segments):
    """A segment of a transcript has a start, an end and a text. None of these has all three."""
    content = json.dumps({"segments": segments, "text": "", "language": "en"})

    clips, _ = import_files({"a.json": content}, kind="transcript")

    assert not clips


@pytest.mark.parametrize("segments", [{"a": 1}, "x", 3], ids=["names", "text", "number"])
def test_a_vocabulary_is_no_transcript(import_files, segments):
    """A document gives each word a number. Some of the words are also keys of transcripts, such as "segments".

    A transcript has a list of segments there; this one has a number, a text or an object, and is refused.
    """
    document = {"the": 1, "text": 2, "segments": segments, "language": 4, "words": 5, "results": 6}
    with pytest.raises(ManifestError, match="no transcript: what it calls segments"):
        import_files({"a.json": json.dumps(document)})


def test_a_word_without_times_does_not_move_its_sentence(import_files):
    """WhisperX gives no times to numbers such as 1984: its sentence begins with the next word that has some."""
    words = {
        "text": "1984 was hot.",
        "words": [
            {"word": "1984"},
            {"word": "was", "start": 1.0, "end": 1.5},
            {"word": "hot.", "start": 1.6, "end": 2.0},
        ],
    }
    clips, _ = import_files({"a.json": json.dumps(words)})
    assert spoken_texts_of(clips) == [(1.0, 2.0, "1984 was hot.", "")]
