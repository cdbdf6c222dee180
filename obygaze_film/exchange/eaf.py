"""Write documents of ELAN (EAF 3.0)."""

from typing import Final

from obygaze_features.manifest import EafTier, PeopleTier, eaf_document
from obygaze_film.exchange.tiers import Exported, Tier

BINS: Final = tuple(f"{n / 5:.1f} to {(n + 1) / 5:.1f}" for n in range(5))
"""Vocabulary of the tiers of probabilities: five ranges, `0.0 to 0.2` and so on. Tools list every distinct
value of a tier, so that exact numbers would make long lists. Segments and other formats have them."""

BINNED_KINDS: Final = ("level", "concepts")
"""Kinds of a model's tiers whose annotations are such ranges."""


def to_eaf(exported: Exported) -> str:
    """Write a document; the caveats are a property of its header.

    Tiers whose name begins with "obygaze: " are the model's. What a person decided is on a tier named "human:
    level, blind@NAME" or "human: level, in sight@NAME", with a tier of concepts below it. People may write on
    these, or on two empty tiers: "human: level", which offers the codebook's levels, and "human: concepts"
    below it, where names are joined by semicolons. Importers read only the tiers of people.
    """
    tiers: list[EafTier] = []
    for tier in exported.tiers:
        if tier.people and tier.people.what == "labels":
            tiers += _level_and_concepts(tier, tier.people)
        elif tier.people:
            spans = [(span.start_s, span.end_s, span.text) for span in tier.spans]
            tiers.append(EafTier(tier.name, "note", spans, annotator=tier.people.annotator))
        else:
            tiers.append(_model_tier(tier))
    empty_levels = EafTier(PeopleTier("level").name, "level")
    empty_concepts = EafTier(PeopleTier("concepts").name, "concepts", parent=empty_levels.name)
    tiers += [empty_levels, empty_concepts]
    codebook = exported.model.codebook
    vocabularies = {"levels": (f"levels of {codebook}", exported.levels)}
    if exported.has_model:
        vocabularies["probabilities"] = ("probability that the model gives", BINS)
    return eaf_document(tiers, _properties(exported), vocabularies, licence=exported.licence)


def _properties(exported: Exported) -> dict[str, str]:
    """Return the properties of the document's header.

    Names that begin with "obygaze" tell importers that the file holds a model's output.
    """
    caveats = " ".join(exported.caveats)
    properties = {"caveats": caveats, "movie": exported.film.movie, "codebook": exported.model.codebook}
    if exported.has_model:
        properties = {f"obygaze {name}": value for name, value in properties.items()}
        properties["obygaze model"] = f"{exported.model.title} {exported.model.sha256}".strip()
    if exported.definition:
        properties["definition"] = exported.definition
    return properties


def _model_tier(tier: Tier) -> EafTier:
    """Write a tier of the model or the film; probabilities are written as ranges (`BINS`)."""
    if tier.kind not in BINNED_KINDS:
        spans = [(span.start_s, span.end_s, span.text) for span in tier.spans]
        return EafTier(tier.name, "model", spans)
    spans = []
    for span in tier.spans:
        text = span.text if span.p is None else BINS[min(int(5 * span.p), 4)]  # 1 is in the last range
        spans.append((span.start_s, span.end_s, text))
    return EafTier(tier.name, "probability", spans)


def _level_and_concepts(tier: Tier, people: PeopleTier) -> list[EafTier]:
    """Write what a person decided as a tier of levels and, below it, one of concepts."""
    levels = []
    concepts = []
    decision_ids = []
    for span in tier.spans:
        if span.decided:
            levels.append((span.start_s, span.end_s, span.decided.level))
            decision_ids.append(span.decided.id)
            if span.decided.concepts:
                concepts.append((span.start_s, span.end_s, ";".join(span.decided.concepts)))
    level_name = people._replace(what="level").name
    concepts_name = people._replace(what="concepts").name
    annotator = people.annotator
    return [
        EafTier(level_name, "level", levels, annotator=annotator, decisions=decision_ids),
        EafTier(concepts_name, "concepts", concepts, parent=level_name, annotator=annotator),
    ]
