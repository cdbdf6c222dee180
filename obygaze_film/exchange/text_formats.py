"""Write WebVTT (W3C), SubRip, TextGrid (Praat), RTTM (NIST), CSV and EAF 3.0 (ELAN)."""

from typing import Final

from obygaze_features.lines import sheet_line
from obygaze_features.manifest import (
    EafTier,
    Subtitle,
    eaf_document,
    write_rttm,
    write_srt,
    write_textgrid,
    write_vtt,
)
from obygaze_film.exchange.tiers import Exported, Tier

CSV_COLUMNS = (
    "movie", "tier", "start_s", "end_s", "p", "p_low", "p_high", "text", "present", "contributions", "flags",
    "level", "concepts", "annotator", "seen_score", "note",
)  # fmt: skip
"""contributions: of concepts that are seen and that are not, as ``Body +1.4000; Activity -0.3000``. People
write into level, concepts and annotator; what they judge, they judge in sight of the score."""


def to_vtt(made: Exported) -> str:
    """Write cues in time order; the caveats are a NOTE at the top."""
    return write_vtt(_cues(made), made.film.heading, made.caveats)


def to_srt(made: Exported) -> str:
    """Write subtitles; the first one (half a second) has the caveats, as the format has no comments."""
    first = Subtitle(0.0, min(0.5, made.film.record.duration_s), " ".join(("obygaze:", *made.caveats)))
    return write_srt([first, *_cues(made)])


def to_textgrid(made: Exported) -> str:
    """Write a TextGrid of Praat: a tier of intervals for each tier, and one with the caveats."""
    end_s = made.film.record.duration_s
    caveats = {"obygaze: caveats": [Subtitle(0.0, end_s, " ".join(made.caveats))]}
    return write_textgrid({tier.name: _subtitles(tier) for tier in made.tiers} | caveats, end_s)


def to_rttm(made: Exported) -> str:
    """Write turns of RTTM, each labelled by its tier.

    The caveats are the first turn's orthography, in one word: pyannote reads no comments.
    """
    spans = [(tier.name, span) for tier in made.tiers for span in _subtitles(tier)]
    caveats = "_".join(" ".join(made.caveats).split())
    return write_rttm(spans, made.film.movie).replace(" <NA> ", f" {caveats} ", 1)


def to_csv(made: Exported) -> str:
    """Write a table for spreadsheets without formulas; the first row's note has the caveats."""
    lines = [sheet_line(CSV_COLUMNS)]
    note = " ".join(made.caveats)
    for tier, span in made.spans:
        numbers = ["" if value is None else f"{value:.4f}" for value in (span.p, span.p_low, span.p_high)]
        cells = [made.film.movie, tier.name, repr(span.start_s), repr(span.end_s), *numbers]
        signed = [f"{reason.concept} {reason.contribution:+.4f}" for reason in span.reasons]
        cells += [span.text, "; ".join(span.present), "; ".join(signed), span.flags, "", "", "", "1", note]
        lines.append(sheet_line(cells))
        note = ""
    return "".join(lines)


def _cues(made: Exported) -> list[Subtitle]:
    return [line for tier in made.tiers for line in _subtitles(tier)]


def _subtitles(tier: Tier) -> list[Subtitle]:
    return [Subtitle(span.start_s, span.end_s, span.text) for span in tier.spans]


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
    spans` reads those two alone.
    """
    tiers = []
    for tier in made.tiers:
        is_binned = tier.kind in {"level", "concepts"}
        spans = [
            span._replace(text=BINS[min(int(5 * of.p), 4)]) if is_binned and of.p is not None else span
            for span, of in zip(_subtitles(tier), tier.spans, strict=True)
        ]
        tiers.append(EafTier(tier.name, "probability" if is_binned else "model", spans))
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
