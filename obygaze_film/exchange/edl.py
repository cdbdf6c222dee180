"""Write CMX-3600 lists of markers, as DaVinci Resolve does."""

from urllib.parse import quote

from obygaze_features.manifest import frame_label
from obygaze_film.errors import FilmError
from obygaze_film.exchange.frames import COLOURS, frame_of
from obygaze_film.exchange.tiers import Exported, Tier, TierSpan

RESOLVE_COLOURS = {"WHITE": "Cream", "ORANGE": "Sand"}
"""Colour of a marker -> DaVinci Resolve's name of it; it has the same names for the other colours."""

MAX_TITLE = 70
"""Maximum length of the film's title, in characters: with the words before it, a line has 80 at most."""

UNQUOTED = " :;,.@=()/+<>'\"!?&#*[]"
"""Characters that stand in comments as they are, besides letters and digits of ASCII; others are quoted."""

MAX_RATE = 100
"""Maximum number of frames per second: time codes have two digits for the frame."""


def to_edl(exported: Exported) -> str:
    """Write an edit decision list (EDL, CMX 3600), with an event of one frame at the start of each span.

    The lines of an event mark the span: DaVinci Resolve reads the marker's colour, text and length in frames
    (`|C:... |M:... |D:...`), Avid the lines `* LOC`, which have no lengths. Time codes count from the film's
    start time code.

    Caveats are comments of the first event. A list without events has none: OpenTimelineIO and pycmx refuse
    comments without an event.

    Raises
    ------
    FilmError
        A second has more than 100 frames.
    """
    if exported.rate > MAX_RATE:
        raise FilmError("edl: time codes have two digits of frames: give a rate of 100 a second at most")

    lines = [
        f"TITLE: {ascii_line(exported.film.record.title)[:MAX_TITLE]}",
        f"FCM: {'DROP FRAME' if exported.start.is_dropping else 'NON-DROP FRAME'}",
        "",
    ]

    # Only events can have comments: what is true of the whole list stands in the first one.
    in_time_order = sorted(exported.spans, key=lambda placed: placed.span.start_s)
    for number, (tier, span) in enumerate(in_time_order, start=1):
        lines += _event(exported, number, tier, span)
        if number == 1:
            lines += _time_comments(exported)
            lines += [f"* {ascii_line(caveat)}" for caveat in exported.caveats]
        lines.append("")
    return "\n".join(lines) + "\n"


def _time_comments(exported: Exported) -> list[str]:
    """Write the rate and the start of the time codes as comments, by which our importers read the list.

    The format has no place for them.
    """
    is_dropping, first_frame = exported.start
    start_code = frame_label(first_frame, exported.rate, drop=is_dropping)
    return [f"* OBYGAZE RATE: {exported.rate}", f"* OBYGAZE START: {start_code}"]


def _event(exported: Exported, number: int, tier: Tier, span: TierSpan) -> list[str]:
    """Write the lines of the event of a span, which is its `number`-th, from 1.

    The event itself is one frame long. The length of the span is in Resolve's line, in frames.
    """
    start_frame = frame_of(span.start_s, exported.rate)
    end_frame = frame_of(span.end_s, exported.rate)
    n_frames = max(end_frame - start_frame, 1)
    start_code = _time_code(exported, start_frame)
    end_code = _time_code(exported, start_frame + 1)  # an event is one frame long
    # On a tier of people the text begins with the tier's name, which says who decided and how.
    text = tier.people.line(span.text) if tier.people else span.text
    label = ascii_line(text).replace("|", "/")  # bars divide the parts of Resolve's line
    colour = COLOURS[tier.kind]
    resolve_colour = RESOLVE_COLOURS.get(colour, colour.title())
    return [
        # The event: number, reel, track (V for video), a cut (C), and start and end in source and in record.
        f"{number:03d}  001      V     C        {start_code} {end_code} {start_code} {end_code}  ",
        # Resolve's marker: colour (C), text (M) and length in frames (D).
        f" |C:ResolveColor{resolve_colour} |M:{label} |D:{n_frames}",
        # Avid's locator.
        f"* LOC: {start_code} {colour:<7} {label}",
        f"* FROM CLIP NAME: {ascii_line(exported.film.movie)}",
        # What our own importers read.
        _comment("OBYGAZE TIER", tier.name),
        _comment("OBYGAZE TEXT", span.text),
        _comment("OBYGAZE FILM", exported.film.movie),
    ]


def _comment(name: str, text: str) -> str:
    """Write a text as a comment of one line, from which importers can read it back.

    Letters beyond ASCII, which not every reader of lists supports, are quoted as in URLs.
    """
    one_line = " ".join(text.split())
    return f"* {name}: {quote(one_line, safe=UNQUOTED)}"


def _time_code(exported: Exported, frame: int) -> str:
    """Write the time code, hh:mm:ss:ff, of a frame of the film, which is numbered from 0.

    Time codes count from that of the film's first frame, and begin at 0 again after 24 hours.
    """
    is_dropping, first_frame = exported.start
    code = frame_label(first_frame + frame, exported.rate, drop=is_dropping)
    hours, colon, rest = code.partition(":")
    return f"{int(hours) % 24:02}{colon}{rest}"


def ascii_line(text: str) -> str:
    """Write a text on one line in ASCII, with `?` for other letters: not every reader supports these."""
    return " ".join(text.split()).encode("ascii", "replace").decode()
