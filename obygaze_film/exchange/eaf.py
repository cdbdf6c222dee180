"""ELAN annotation format 3.0 (Max Planck Institute for Psycholinguistics, EAFv3.0.xsd).

Tiers that begin with "obygaze: " are the model's. People write on "human: level", which offers the codebook's
levels, and on "human: concepts" below it, names joined by semicolons. `obygaze manifest import eaf` reads
those two alone.
"""

from typing import Final

from obygaze_features.manifest import EafTier, eaf_document
from obygaze_film.exchange.tiers import Exported

HUMAN_LEVEL, HUMAN_CONCEPTS = "human: level", "human: concepts"

BINS: Final = tuple(f"{n / 5:.1f} to {(n + 1) / 5:.1f}" for n in range(5))
"""Vocabulary of the tiers of probabilities: tools list every distinct value. The numbers are in the
texts of the segments and in other formats."""


def to_eaf(made: Exported) -> str:
    """Write an ELAN document; the caveats are a property of its header."""
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
