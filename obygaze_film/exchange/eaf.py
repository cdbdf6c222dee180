"""Write documents of ELAN (EAF 3.0)."""

from typing import Final

from obygaze_features.manifest import EafTier, PeopleTier, eaf_document
from obygaze_film.exchange.tiers import Exported, Tier

BINS: Final = tuple(f"{n / 5:.1f} to {(n + 1) / 5:.1f}" for n in range(5))
"""Vocabulary of the tiers of probabilities: tools list every distinct value. The numbers are in the
texts of the segments and in other formats."""

BINNED: Final = ("level", "concepts")
"""Tiers of a model whose annotations are such bins."""


def to_eaf(exported: Exported) -> str:
    """Write a document; the caveats are a property of its header.

    Tiers that begin with "obygaze: " are the model's. What a person decided is on "human: level, blind@NAME"
    or "human: level, in sight@NAME" and the tier of concepts below it. People write on these, or on "human:
    level", which offers the codebook's levels, and on "human: concepts" below it, names joined by semicolons.
    Importers read these tiers of people alone.
    """
    tiers: list[EafTier] = []
    for tier in exported.tiers:
        if tier.people and tier.people.what == "labels":
            tiers += _level_and_concepts(tier, tier.people)
        elif tier.people:
            spans = [(span.start_s, span.end_s, span.text) for span in tier.spans]
            tiers.append(EafTier(tier.name, "note", spans, annotator=tier.people.annotator))
        else:
            tiers.append(_of_model(tier))
    blank = PeopleTier("level").name
    tiers += [EafTier(blank, "level"), EafTier(PeopleTier("concepts").name, "concepts", parent=blank)]
    codebook = exported.model.codebook
    vocabularies = {"levels": (f"levels of {codebook}", exported.levels)}
    if exported.has_model:
        vocabularies["probabilities"] = ("probability that the model gives", BINS)
    return eaf_document(tiers, _properties(exported), vocabularies, licence=exported.licence)


def _properties(exported: Exported) -> dict[str, str]:
    """Write what the header says; names that begin with "obygaze" tell of a model's output in the file."""
    caveats = " ".join(exported.caveats)
    about = {"caveats": caveats, "movie": exported.film.movie, "codebook": exported.model.codebook}
    if exported.has_model:
        about = {f"obygaze {name}": value for name, value in about.items()}
        about["obygaze model"] = f"{exported.model.title} {exported.model.sha256}".strip()
    if exported.definition:
        about["definition"] = exported.definition
    return about


def _of_model(tier: Tier) -> EafTier:
    if tier.kind not in BINNED:
        spans = [(span.start_s, span.end_s, span.text) for span in tier.spans]
        return EafTier(tier.name, "model", spans)
    spans = []
    for span in tier.spans:
        text = span.text if span.p is None else BINS[min(int(5 * span.p), 4)]
        spans.append((span.start_s, span.end_s, text))
    return EafTier(tier.name, "probability", spans)


def _level_and_concepts(tier: Tier, people: PeopleTier) -> list[EafTier]:
    levels = []
    concepts = []
    decisions = []
    for span in tier.spans:
        if span.decided:
            levels.append((span.start_s, span.end_s, span.decided.level))
            decisions.append(span.decided.id)
            if span.decided.concepts:
                concepts.append((span.start_s, span.end_s, ";".join(span.decided.concepts)))
    name = people._replace(what="level").name
    annotator = people.annotator
    below = people._replace(what="concepts").name
    return [
        EafTier(name, "level", levels, annotator=annotator, decisions=decisions),
        EafTier(below, "concepts", concepts, parent=name, annotator=annotator),
    ]
