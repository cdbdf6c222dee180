"""Read and write RTTM: turns of speakers, whose names are never labels.

Names of speakers hold no blanks: `_` stands for one. A name that begins with a tier of people comes back as
it was.

Source: NIST Rich Transcription evaluation 2009, RTTM.
"""

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from obygaze_features.arguments import checked
from obygaze_features.manifest.spans.json_values import number
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.subtitles import Subtitle
from obygaze_features.manifest.spans.tier_names import split_people_tier

SPEAKER = "SPEAKER"
"""The record of a turn; it names the tier of all turns."""

FIELDS = 9
"""Fields of a record; a tenth, of the look-ahead, may follow."""

FIELD_NAMES = ("orthography", "speaker type", "speaker", "confidence", "lookahead")
"""The fields behind the times."""


def read_rttm(file: SpanFile) -> Iterator[RawSpan]:
    """Yield a record for each turn of a speaker, whose name is the text, or names a tier and a label."""
    unread: list[str] = []
    for number_of_line, line in enumerate(file.lines, start=1):
        fields = ["" if field == "<NA>" else field for field in line.split()]
        if not fields or fields[0].startswith(";;"):
            continue
        location = f"line {number_of_line}"
        if fields[0] != SPEAKER:
            yield RawSpan(location, reason=f"a record {fields[0]:.20}, no SPEAKER")
        elif len(fields) not in {FIELDS, FIELDS + 1}:
            yield RawSpan(
                location, reason=f"{len(fields)} fields where RTTM has 9 or 10: names hold no blanks"
            )
        else:
            unread += _unread_fields(fields)
            yield _turn(location, fields)
    file.account.note_unread("field", unread)


def _unread_fields(fields: Sequence[str]) -> list[str]:
    """Return the names of the filled fields of a turn that are not read, for a note in the file's account.

    The fields of a turn are: type, file, channel, start, length, orthography, speaker type, speaker,
    confidence and lookahead. The last one may be missing.

    Examples
    --------
    >>> _unread_fields("SPEAKER film 2 1.5 3.0   Anna .9".split(" "))
    ['channel', 'confidence']
    """
    unread = []
    channel = fields[2]
    if channel not in {"", "1"}:  # 1 is the usual channel
        unread.append("channel")
    fields_after_times = fields[5:]
    for name, field in zip(FIELD_NAMES, fields_after_times, strict=False):  # lookahead may be missing
        if field and name != "speaker":
            unread.append(name)
    return unread


def _turn(location: str, fields: Sequence[str]) -> RawSpan:
    """Read a turn of a speaker from its fields, of which those that say <NA> are "".

    Exports of obygaze write labels as turns, whose speaker is a tier and a label, as `human: level@AB = S`
    (`write_rttm`). Any other speaker's name becomes the text of the span.
    """
    _type, movie, _channel, start, length, _orthography, _speaker_type, speaker, *_ = fields
    start_s = number(start)
    end_s = round(start_s + number(length), 9)  # to nanoseconds: a sum such as .1 + .2 has more digits
    name = one_line(speaker)
    # `_` stands for a blank. Only a name that names a tier was escaped by `write_rttm`.
    tier, text = split_people_tier(unquote(name.replace("_", " ")))
    if not tier:
        tier = SPEAKER
        text = name
    return RawSpan(location, start_s, end_s, text, tier, {"movie": movie})


@checked
def write_rttm(spans: Sequence[tuple[str, Subtitle]], movie: str) -> str:
    """Write (label, span) pairs as turns of speakers, sorted by start.

    Blanks in labels become `_`, as RTTM separates its fields by blanks. In the name of a tier of people, `%`
    and `_` are escaped, so that `read_rttm` restores the very same text.
    """
    lines = []
    for label, span in sorted(spans, key=lambda turn: turn[1].start_s):
        # Rounded before the length is computed, so that start + length is the rounded end.
        start_ms = round(1000 * span.start_s)
        end_ms = round(1000 * span.end_s)
        length_ms = end_ms - start_ms
        times = f"{start_ms / 1000:.3f} {length_ms / 1000:.3f}"
        lines.append(f"{SPEAKER} {_cell(movie)} 1 {times} <NA> <NA> {_speaker(label)} <NA> <NA>\n")
    return "".join(lines)


def _speaker(label: str) -> str:
    """Write a label as the name of a speaker.

    If it names a tier of people, `%` and `_` are escaped, so that `read_rttm` restores the very same text.
    """
    people_tier, _ = split_people_tier(label)
    if people_tier:
        label = label.replace("%", "%25").replace("_", "%5F")
    return _cell(label)


def _cell(text: str) -> str:
    """Write a text as a field of RTTM: `_` for blanks, which separate fields; `<NA>` if it is empty."""
    return "_".join(one_line(text).split()) or "<NA>"
