"""Write CMX-3600 lists of markers, as DaVinci Resolve does."""

from fractions import Fraction
from urllib.parse import quote

from obygaze_features.manifest import frame_label
from obygaze_film.errors import FilmError
from obygaze_film.exchange.frames import COLOURS, frame_of
from obygaze_film.exchange.tiers import Exported, Tier, TierSpan

RESOLVE_COLOURS = {"WHITE": "Cream", "ORANGE": "Sand"}
"""Colours of markers that Resolve calls otherwise."""

MOST_TITLE = 70
"""Signs of a title, which is one line of 80."""

READABLE = " :;,.@=()/+<>'\"!?&#*[]"
"""Signs that stand in comments as they are; others but letters and digits of ASCII are quoted."""

MOST_RATE = 100
"""Frames a second that two digits number."""


def to_edl(exported: Exported) -> str:
    """Write an event of a frame for each span.

    Resolve reads colour, text and length in frames (`|C:... |M:... |D:...`); `* LOC` lines are Avid's, which
    have no ends. Time codes count from the film's start time code.

    Raises
    ------
    FilmError
        A second has more than 100 frames.
    """
    if exported.rate > MOST_RATE:
        raise FilmError("edl: time codes have two digits of frames: give a rate of 100 a second at most")
    is_dropping, _ = exported.start
    lines = [
        f"TITLE: {ascii_line(exported.film.record.title)[:MOST_TITLE]}",
        f"FCM: {'DROP FRAME' if is_dropping else 'NON-DROP FRAME'}",
        "",
    ]
    for number, (tier, span) in enumerate(
        sorted(exported.spans, key=lambda placed: placed[1].start_s), start=1
    ):
        lines += _event(exported, number, tier, span)
        if number == 1:  # readers take comments for an event's: above the first one they are an error
            lines += _time_line(exported)
            lines += [f"* {ascii_line(caveat)}" for caveat in exported.caveats]
        lines.append("")
    return "\n".join(lines) + "\n"


def _time_line(exported: Exported) -> list[str]:
    """Write the rate and the start of the time codes, which lists have no place for, as comments."""
    is_dropping, first = exported.start
    start = frame_label(first, exported.rate, drop=is_dropping)
    return [f"* OBYGAZE RATE: {exported.rate}", f"* OBYGAZE START: {start}"]


def _event(exported: Exported, number: int, tier: Tier, span: TierSpan) -> list[str]:
    """Write the lines of an event."""
    start = frame_of(span.start_s, exported.rate)
    end = frame_of(span.end_s, exported.rate)
    first = _label(exported, start)
    second = _label(exported, start + 1)
    said = tier.people.line(span.text) if tier.people else span.text
    text = ascii_line(said).replace("|", "/")
    movie = ascii_line(exported.film.movie)
    # Importers read the tier, the text and the film from comments, where letters beyond ASCII are quoted.
    own = {"OBYGAZE TIER": tier.name, "OBYGAZE TEXT": span.text, "OBYGAZE FILM": exported.film.movie}
    colour = COLOURS[tier.kind]
    name = RESOLVE_COLOURS.get(colour, colour.title())
    return [
        f"{number:03d}  001      V     C        {first} {second} {first} {second}  ",
        f" |C:ResolveColor{name} |M:{text} |D:{max(end - start, 1)}",
        f"* LOC: {first} {colour:<7} {text}",
        f"* FROM CLIP NAME: {movie}",
        *(f"* {name}: {quote(' '.join(text.split()), safe=READABLE)}" for name, text in own.items()),
    ]


def _label(exported: Exported, frame: int) -> str:
    """Write the time code of a frame; a day of them begins anew."""
    is_dropping, first = exported.start
    code = frame_label(first + frame, Fraction(exported.rate), drop=is_dropping)
    return f"{int(code[:2]) % 24:02}{code[2:]}"


def ascii_line(text: str) -> str:
    """Write a text on one line of ASCII, which every reader of such lists supports."""
    return " ".join(text.split()).encode("ascii", "replace").decode()
