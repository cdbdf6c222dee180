"""Write WebVTT (W3C), SubRip and CSV."""

from obygaze_features.lines import sheet_line
from obygaze_film.exchange.tiers import Exported, TierSpan

CSV_COLUMNS = (
    "movie", "tier", "start_s", "end_s", "p", "p_low", "p_high", "text", "present", "contributions", "flags",
    "note",
)  # fmt: skip
"""contributions: of concepts that are seen and that are not, as ``Body +1.4000; Activity -0.3000``."""

NO_MARKUP = str.maketrans("<>{}", "‹›()")
"""SubRip has no escapes, and players obey `<font>` and `{\\an8}`."""


def to_vtt(made: Exported) -> str:
    """Write cues in time order; the caveats are a NOTE at the top."""
    notes = "\n".join(_plain(line) for line in made.caveats)
    lines = [f"WEBVTT {_plain(made.film.heading)}", "", f"NOTE\n{notes}", ""]
    for span in _cues(made):
        lines += [f"{_time(span.start_s, '.')} --> {_time(span.end_s, '.')}", _escaped(span.text), ""]
    return "\n".join(lines)


def to_srt(made: Exported) -> str:
    """Write subtitles; the first one (half a second) has the caveats, as the format has no comments."""
    first = TierSpan(0.0, min(0.5, made.film.record.duration_s), " ".join(made.caveats))
    lines = []
    for number, span in enumerate((first, *_cues(made)), start=1):
        text = _plain(span.text).translate(NO_MARKUP)
        lines += [str(number), f"{_time(span.start_s, ',')} --> {_time(span.end_s, ',')}", text, ""]
    return "\n".join(lines)


def to_csv(made: Exported) -> str:
    """Write a table for spreadsheets without formulas; the first row's note has the caveats."""
    lines = [sheet_line(CSV_COLUMNS)]
    note = " ".join(made.caveats)
    for tier in made.tiers:
        for span in tier.spans:
            numbers = ["" if value is None else f"{value:.4f}" for value in (span.p, span.p_low, span.p_high)]
            cells = [made.film.movie, tier.name, repr(span.start_s), repr(span.end_s), *numbers]
            signed = [f"{reason.concept} {reason.contribution:+.4f}" for reason in span.reasons]
            cells += [span.text, "; ".join(span.present), "; ".join(signed), span.flags, note]
            lines.append(sheet_line(cells))
            note = ""
    return "".join(lines)


def _cues(made: Exported) -> list[TierSpan]:
    spans = [span for tier in made.tiers for span in tier.spans]
    return sorted(spans, key=lambda span: (span.start_s, span.end_s))


def _time(seconds: float, point: str) -> str:
    """Write hh:mm:ss and milliseconds."""
    whole, rest = divmod(round(1000 * seconds), 1000)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}{point}{rest:03d}"


def _plain(text: str) -> str:
    """Write a text on one line, without the marks that end a comment or begin a cue."""
    return " ".join(text.split()).replace("-->", "→")


def _escaped(text: str) -> str:
    """Write a cue's text with markup escaped."""
    return _plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
