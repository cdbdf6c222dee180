"""Write WebVTT (W3C), SubRip, CSV and ELAN's annotation format 3.0 (Max Planck Institute, EAFv3.0.xsd)."""

from typing import Final

from obygaze_features.lines import sheet_line
from obygaze_features.manifest import EafTier, eaf_document
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
    for tier, span in made.spans:
        numbers = ["" if value is None else f"{value:.4f}" for value in (span.p, span.p_low, span.p_high)]
        cells = [made.film.movie, tier.name, repr(span.start_s), repr(span.end_s), *numbers]
        signed = [f"{reason.concept} {reason.contribution:+.4f}" for reason in span.reasons]
        cells += [span.text, "; ".join(span.present), "; ".join(signed), span.flags, note]
        lines.append(sheet_line(cells))
        note = ""
    return "".join(lines)


def _cues(made: Exported) -> list[TierSpan]:
    return sorted((span for _, span in made.spans), key=lambda span: (span.start_s, span.end_s))


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


# --- ELAN
# ---------------------------------------------------------------------------
HUMAN_LEVEL, HUMAN_CONCEPTS = "human: level", "human: concepts"

BINS: Final = tuple(f"{n / 5:.1f} to {(n + 1) / 5:.1f}" for n in range(5))
"""Vocabulary of the tiers of probabilities: tools list every distinct value. The numbers are in the
texts of the segments and in other formats."""


def to_eaf(made: Exported) -> str:
    """Write an ELAN document; the caveats are a property of its header.

    Tiers that begin with "obygaze: " are the model's. People write on "human: level", which offers the
    codebook's levels, and on "human: concepts" below it, names joined by semicolons. `obygaze manifest import
    eaf` reads those two alone.
    """
    tiers = []
    for tier in made.tiers:
        is_probability = tier.kind in {"level", "concepts"}
        spans = [
            (span.start_s, span.end_s, _bin(span.p) if is_probability and span.p is not None else span.text)
            for span in tier.spans
        ]
        tiers.append(EafTier(tier.name, "probability" if is_probability else "model", spans))
    tiers += [EafTier(HUMAN_LEVEL, "level"), EafTier(HUMAN_CONCEPTS, "concepts", parent=HUMAN_LEVEL)]
    properties = {
        "obygaze caveats": " ".join(made.caveats),
        "obygaze movie": made.film.movie,
        "obygaze codebook": made.model.codebook,
        "obygaze model": f"{made.model.title} {made.model.sha256}".strip(),
    }
    vocabularies = {
        "levels": (f"levels of {made.model.codebook}", made.levels),
        "probabilities": ("probability that the model gives", BINS),
    }
    return eaf_document(tiers, properties, vocabularies, licence=made.licence)


def _bin(p: float) -> str:
    return BINS[min(int(5 * p), 4)]
