"""Read transcripts that recognisers of speech write: Whisper, WhisperX, whisper.cpp, Amazon Transcribe.

Each segment is a text with its times, and its speaker, if one is named, is the `subject`: words are no
labels. Where only words have times they are put together to sentences, which is said. Sources: openai/whisper
(writers of JSON and TSV), m-bain/whisperX, ggml-org/whisper.cpp, Amazon Transcribe, "Transcription output".

Whisper's TSV counts milliseconds, and its JSON seconds, but tables and lists of other people and programs
look the same. Which of the two whole numbers are is told by the speech (`_seconds_per_number`), or asked.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from obygaze_features.manifest.spans.json_values import number, object_of, objects_of, text_of
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import split_people_tier
from obygaze_features.manifest.spans.units import FRAMES, seconds_of_unit
from obygaze_features.text import counted

TSV: Final = re.compile(r"start\tend\ttext\s*")
"""The header of Whisper's table."""

PARTS: Final[Mapping[str, type]] = {
    "segments": list,
    "words": list,
    "transcription": list,
    "chunks": list,
    "results": dict,
}
"""What a document of a transcript has, one at least: a vocabulary has such names too."""

ENDS_SENTENCE: Final = (".", "?", "!", "…", "。", "？", "！")
LONGEST_PAUSE_S: Final = 2.0
"""Words with a longer pause between them are of two sentences."""

MAX_CHARACTERS_A_S: Final = 30.0
"""Nobody speaks so many characters a second for long: fast speakers of English reach 25."""

LONGEST_TEXT_S: Final = 3600.0
"""No text of a transcript lasts so long."""

LONGEST_WORD_S: Final = 30.0
"""No word lasts so long."""

LONGEST_FILM_S: Final = 5 * 3600.0
"""Hardly any film lasts so long."""

NO_SPACE_BEFORE: Final = re.compile(r" (?=[,.;:?!…%)\]])")


class Word(NamedTuple):
    """A word, or a sign that has no times (NaN), with its speaker."""

    text: str
    start_s: float
    end_s: float
    speaker: str


class Segment(NamedTuple):
    """A text with its times, as numbers of a unit that may not be known yet.

    Attributes
    ----------
    where
        Its place in the file.
    start, end
        Its times; NaN if they cannot be read.
    text, speaker
        What is said, and by whom, if somebody is named.
    """

    where: str
    start: float
    end: float
    text: str
    speaker: str = ""


def read_transcript(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the segments of a transcript, or the sentences that its words make.

    What a transcript of JSON has at its top tells which program wrote it: `transcription` whisper.cpp,
    `results` Amazon Transcribe, `chunks` Hugging Face's pipeline, `segments` or `words` Whisper and others.
    """
    if TSV.fullmatch(file.lines[0] if file.lines else ""):
        yield from _of_table(file)
        return
    document = file.document
    if isinstance(document, list):
        # whisperx's and whisper.cpp's servers answer a list of segments.
        document = {"segments": document}
    transcript = object_of(document)
    if not any(isinstance(transcript.get(name), kind) for name, kind in PARTS.items()):
        raise file.error(f"no transcript: what it calls {', '.join(PARTS)} holds no texts with times")
    language = text_of(transcript.get("language"))
    if not language:
        language = text_of(object_of(transcript.get("result")).get("language"))
    if language:
        file.account.note(f"language: {language:.40}")
    if "transcription" in transcript:
        yield from _of_whisper_cpp(objects_of(transcript["transcription"]))
    elif "results" in transcript:
        yield from _of_amazon(file, object_of(transcript["results"]))
    elif "chunks" in transcript:
        yield from _of_chunks(objects_of(transcript["chunks"]))
    elif objects_of(transcript.get("segments")):
        yield from _of_segments(file, objects_of(transcript["segments"]))
    else:
        yield from _of_words_alone(file, objects_of(transcript.get("words")))


def _record(location: str, start_s: float, end_s: float, text: str, speaker: str = "") -> RawSpan:
    """Make the record of a spoken text; one without a text gets the reason for which it is left out.

    Exports of obygaze write labels into transcripts, as `human: level@AB = S`. From such a text comes the
    tier `human: level@AB` and the text S; from any other one the text itself, on no tier.
    """
    tier, text_on_tier = split_people_tier(one_line(text))
    cells = {"subject": one_line(speaker)} if speaker else {}
    reason = "" if text_on_tier else "no text"
    return RawSpan(location, start_s, end_s, text=text_on_tier, tier=tier, cells=cells, reason=reason)


def _of_table(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the rows of a table of starts, ends and texts, separated by tabs, as Whisper writes it."""
    segments = []
    has_decimals = False
    for line_number, line in enumerate(file.lines[1:], start=2):  # the first line has the headings
        if not line.strip():
            continue
        start, _, rest = line.partition("\t")
        end, _, text = rest.partition("\t")
        has_decimals = has_decimals or "." in start + end
        segments.append(Segment(f"line {line_number}", number(start), number(end), text))
    yield from _in_seconds(file, segments, has_decimals=has_decimals, longest_s=LONGEST_TEXT_S)


def _of_segments(file: SpanFile, items: Sequence[Mapping[str, Any]]) -> Iterator[RawSpan]:
    """Yield the segments of Whisper and WhisperX, the utterances of other recognisers, or texts of YouTube.

    The texts of YouTube (youtube-transcript-api) have a duration in place of an end.

    The file does not say whether its times are seconds or milliseconds. Decimals tell that they are seconds,
    and texts that would last hours as seconds (`LONGEST_TEXT_S`) tell that they are milliseconds.
    """
    segments = []
    for place, item in enumerate(items, start=1):
        speaker = text_of(item.get("speaker")) or _speaker_of_words(objects_of(item.get("words")))
        start = number(item.get("start"))
        end = number(item.get("end"))
        if "end" not in item:
            end = start + number(item.get("duration"))
        segments.append(Segment(f"segment {place}", start, end, text_of(item.get("text")), speaker))
    has_decimals = _have_decimals(items)
    yield from _in_seconds(file, segments, has_decimals=has_decimals, longest_s=LONGEST_TEXT_S)


def _of_words_alone(file: SpanFile, items: Sequence[Mapping[str, Any]]) -> Iterator[RawSpan]:
    """Yield the sentences of a transcript that has only words with times, and no segments."""
    words = []
    for place, item in enumerate(items, start=1):
        text = text_of(item.get("word")) or text_of(item.get("text"))
        start = number(item.get("start"))
        end = number(item.get("end"))
        words.append(Segment(f"word {place}", start, end, text, text_of(item.get("speaker"))))
    unit_s = _seconds_per_number(file, words, has_decimals=_have_decimals(items), longest_s=LONGEST_WORD_S)
    words_in_seconds = [
        Word(word.text, word.start * unit_s, word.end * unit_s, word.speaker) for word in words
    ]
    yield from _of_words(file, words_in_seconds)


# --- the unit of numbers
# ---------------------------------------------------------------------------
def _have_decimals(items: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a time of some JSON objects is written with a decimal sign, as 4.0 is."""
    for item in items:
        for time in (item.get("start"), item.get("end"), item.get("duration")):
            if isinstance(time, float) or (isinstance(time, str) and "." in time):
                return True
    return False


def _in_seconds(
    file: SpanFile, segments: Sequence[Segment], *, has_decimals: bool, longest_s: float
) -> Iterator[RawSpan]:
    """Yield the records of segments whose times are numbers of a unit that is found out here.

    Parameters
    ----------
    file
        The file, with the unit that the person gives, if any.
    segments
        Texts with their times, whether these are seconds or milliseconds.
    has_decimals
        Whether a time is written with decimals: then all are seconds, unless the person says otherwise.
    longest_s
        Seconds that no text lasts: if most texts would last longer, the times are milliseconds.
    """
    unit_s = _seconds_per_number(file, segments, has_decimals=has_decimals, longest_s=longest_s)
    for location, start, end, text, speaker in segments:
        yield _record(location, start * unit_s, end * unit_s, text, speaker)


def _seconds_per_number(
    file: SpanFile, segments: Sequence[Segment], *, has_decimals: bool, longest_s: float
) -> float:
    """Return how many seconds a number in a transcript stands for: 1, 0.001, or what --unit says.

    Programs count in seconds or in milliseconds and do not say which. Without --unit, numbers with decimals
    are seconds. Whole numbers are seconds if nobody could say the texts in so many milliseconds, and
    milliseconds if no text, or no film, lasts so many seconds.

    Parameters
    ----------
    file
        The file, with the unit that the person gives. Its account notes a unit other than seconds.
    segments
        All texts with their times.
    has_decimals
        Whether a time is written with decimals.
    longest_s
        Seconds that no text lasts; if most texts last longer, their times are no seconds.

    Raises
    ------
    ManifestError
        Both units are possible.
    """
    file.account.uses_unit = True
    unit = file.reading.unit
    if unit == FRAMES:
        file.account.uses_rate = True
        return file.seconds(1, "its times")
    if unit:
        return seconds_of_unit(unit)

    timed = [segment for segment in segments if segment.text.strip() and segment.end > segment.start]
    if has_decimals or not timed:
        return 1.0

    lengths = [segment.end - segment.start for segment in timed]
    n_characters = sum(len(segment.text.strip()) for segment in timed)
    length_s_if_ms = sum(lengths) / 1000
    are_too_short_for_ms = n_characters > MAX_CHARACTERS_A_S * length_s_if_ms
    last_end = max(segment.end for segment in timed)
    are_too_long_for_s = median(lengths) >= longest_s or last_end > LONGEST_FILM_S

    if are_too_short_for_ms and not are_too_long_for_s:
        return 1.0
    if are_too_long_for_s and not are_too_short_for_ms:
        file.account.note("times are milliseconds: as seconds, texts or the film would last hours")
        return 0.001
    location, start, end, text, _ = timed[0]
    raise file.error(
        f"{location}: is {text.strip()!r:.40} from {start:g} to {end:g} in seconds or in milliseconds? Give "
        "--unit s or --unit ms"
    )


def _speaker_of_words(words: Iterable[Mapping[str, Any]]) -> str:
    """Return the one speaker of some words; "" if they have none or several."""
    names = {text_of(word.get("speaker")) for word in words} - {""}
    return names.pop() if len(names) == 1 else ""


def _of_whisper_cpp(segments: Sequence[Mapping[str, Any]]) -> Iterator[RawSpan]:
    """Yield the segments of whisper.cpp, whose times are milliseconds."""
    for place, segment in enumerate(segments, start=1):
        offsets = object_of(segment.get("offsets"))
        start_s = number(offsets.get("from")) / 1000
        end_s = number(offsets.get("to")) / 1000
        yield _record(
            f"segment {place}", start_s, end_s, text_of(segment.get("text")), text_of(segment.get("speaker"))
        )


def _of_chunks(chunks: Sequence[Mapping[str, Any]]) -> Iterator[RawSpan]:
    """Yield the chunks of Whisper, in the form of the library transformers."""
    for place, chunk in enumerate(chunks, start=1):
        times = chunk.get("timestamp")
        first, last = times if isinstance(times, list) and len(times) == 2 else (None, None)
        yield _record(
            f"chunk {place}",
            number(first),
            number(last),
            text_of(chunk.get("text")),
            text_of(chunk.get("speaker")),
        )


def _of_amazon(file: SpanFile, results: Mapping[str, Any]) -> Iterator[RawSpan]:
    """Yield the segments of Amazon Transcribe; if it wrote none, the sentences that its words make."""
    segments = objects_of(results.get("audio_segments"))
    if segments:
        for place, segment in enumerate(segments, start=1):
            start_s = number(segment.get("start_time"))
            end_s = number(segment.get("end_time"))
            speaker = text_of(segment.get("speaker_label"))
            yield _record(f"segment {place}", start_s, end_s, text_of(segment.get("transcript")), speaker)
        return
    yield from _of_words(file, _amazon_words(results))


def _amazon_words(results: Mapping[str, Any]) -> list[Word]:
    """Return the words of Amazon Transcribe, each as the first of its alternatives, with its speaker."""
    # Some versions name the speaker beside each word, and others in a list of their own.
    speaker_of_start = _amazon_speakers(object_of(results.get("speaker_labels")))
    words = []
    for item in objects_of(results.get("items")):
        alternatives = objects_of(item.get("alternatives"))
        text = text_of(alternatives[0].get("content")) if alternatives else ""
        start = text_of(item.get("start_time"))
        speaker = text_of(item.get("speaker_label")) or speaker_of_start.get(start, "")
        words.append(Word(text, number(start), number(item.get("end_time")), speaker))
    return words


def _amazon_speakers(labels: Mapping[str, Any]) -> dict[str, str]:
    """Return start of a word, as Amazon Transcribe writes it -> its speaker."""
    speakers = {}
    for segment in objects_of(labels.get("segments")):
        for item in objects_of(segment.get("items")):
            speakers[text_of(item.get("start_time"))] = text_of(item.get("speaker_label"))
    return speakers


def _of_words(file: SpanFile, words: Iterable[Word]) -> Iterator[RawSpan]:
    """Join words to sentences, and note how many there are.

    A word begins a new sentence after a full stop, a pause or another speaker (`_begins_anew`). Words without
    times, such as signs, are part of the sentence before the next word with times.
    """
    n_sentences = 0
    sentence: list[Word] = []
    last_timed: Word | None = None  # the last word of the sentence that has times
    for word in words:
        if last_timed is not None and _begins_anew(sentence[-1], last_timed, word):
            n_sentences += 1
            yield _sentence(sentence, n_sentences)
            sentence = []
            last_timed = None
        sentence.append(word)
        if not math.isnan(word.end_s):
            last_timed = word
    if sentence:
        n_sentences += 1
        yield _sentence(sentence, n_sentences)
    if n_sentences:
        file.account.note(f"{counted(n_sentences, 'sentence')} put together of words with times")


def _begins_anew(last: Word, last_timed: Word, word: Word) -> bool:
    """Return whether a word begins a new sentence: after a full stop, a pause, or another speaker.

    One without times, such as a comma, never does.

    `last` is the last word of the sentence so far, or the sign behind it, and `last_timed` its last word that
    has times.
    """
    if math.isnan(word.start_s):
        return False
    is_another_speaker = bool(word.speaker and last_timed.speaker) and word.speaker != last_timed.speaker
    is_after_sentence = last.text.endswith(ENDS_SENTENCE)
    is_after_pause = word.start_s > last_timed.end_s + LONGEST_PAUSE_S
    return is_another_speaker or is_after_sentence or is_after_pause


def _sentence(words: Sequence[Word], index: int) -> RawSpan:
    """Make the record of a sentence, from its first word's start to its words' last end.

    Its text is put together of the words, without blanks before commas and the like. `index` is the number of
    the sentence in the file.
    """
    timed = [word for word in words if not math.isnan(word.start_s + word.end_s)]
    start_s = timed[0].start_s if timed else math.nan
    end_s = max((word.end_s for word in timed), default=math.nan)

    words_with_blanks = " ".join(word.text.strip() for word in words)
    text = NO_SPACE_BEFORE.sub("", words_with_blanks)

    speakers = [word.speaker for word in words if word.speaker]
    speaker = speakers[0] if speakers else ""
    return _record(f"sentence {index}", start_s, end_s, text, speaker)
