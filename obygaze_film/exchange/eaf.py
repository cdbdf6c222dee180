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
    """Write a document of ELAN (EAF); the caveats are a property of its header.

    - Tiers of the model: their names begin with "obygaze: ". Importers leave them out.
    - Tiers of what people decided: "human: level, blind@NAME" or "human: level, in sight@NAME", with a tier
      of concepts below. People may change them.
    - Two empty tiers for people to write on: "human: level", which offers the codebook's levels, and "human:
      concepts" below it, where names are joined by semicolons.
    """
    tiers: list[EafTier] = []
    for tier in exported.tiers:
        if tier.people is None:
            tiers.append(_model_tier(tier))
        elif tier.people.what == "labels":
            tiers += _level_and_concepts(tier, tier.people)
        else:
            annotator = tier.people.annotator
            tiers.append(EafTier(name=tier.name, kind="note", spans=_texts(tier), annotator=annotator))
    tiers += _empty_tiers()
    vocabularies = {"levels": (f"levels of {exported.codebook}", exported.levels)}
    if exported.has_model:
        vocabularies["probabilities"] = ("probability that the model gives", BINS)
    return eaf_document(tiers, _properties(exported), vocabularies, licence=exported.licence)


def _empty_tiers() -> list[EafTier]:
    """Make the tiers for people to write on: "human: level", and "human: concepts" below it.

    They hold nothing yet: a person adds spans to them in ELAN, and the document is imported again.
    """
    levels = EafTier(name=PeopleTier("level").name, kind="level")
    concepts = EafTier(name=PeopleTier("concepts").name, kind="concepts", parent=levels.name)
    return [levels, concepts]


def _properties(exported: Exported) -> dict[str, str]:
    """Return the properties of the document's header: caveats, movie, codebook, model and definition.

    If the document holds a model's output, names have the prefix "obygaze ", by which importers detect it.
    """
    prefix = "obygaze " if exported.has_model else ""
    properties = {
        f"{prefix}caveats": " ".join(exported.caveats),
        f"{prefix}movie": exported.film.movie,
        f"{prefix}codebook": exported.codebook,
    }
    if exported.has_model:
        properties["obygaze model"] = f"{exported.model.title} {exported.model.sha256}".strip()
    if exported.definition:
        properties["definition"] = exported.definition
    return properties


def _model_tier(tier: Tier) -> EafTier:
    """Make a tier of the model or the film; probabilities become ranges (`BINS`)."""
    if tier.kind not in BINNED_KINDS:
        return EafTier(name=tier.name, kind="model", spans=_texts(tier))
    spans = []
    for span in tier.spans:
        text = span.text if span.p is None else _range_of(span.p)
        spans.append((span.start_s, span.end_s, text))
    return EafTier(name=tier.name, kind="probability", spans=spans)


def _range_of(p: float) -> str:
    """Return the range of `BINS`, such as "0.4 to 0.6", that a probability is in; 1 is in the last one."""
    index = min(int(len(BINS) * p), len(BINS) - 1)
    return BINS[index]


def _texts(tier: Tier) -> list[tuple[float, float, str]]:
    """Return start, end and text of each span of a tier."""
    return [(span.start_s, span.end_s, span.text) for span in tier.spans]


def _level_and_concepts(tier: Tier, people: PeopleTier) -> list[EafTier]:
    """Make two tiers of a tier of people's labels: one of levels and, below it, one of concepts.

    Their names are that of `tier` with "level" and "concepts" in place of "labels".
    """
    levels = []
    decision_ids = []  # of each level, so that importers know which decision a person changed
    concepts = []
    for span in tier.spans:
        decision = span.decided
        if decision is None:  # all spans on a tier of people have a decision
            continue
        levels.append((span.start_s, span.end_s, decision.level))
        decision_ids.append(decision.id)
        if decision.concepts:
            concepts.append((span.start_s, span.end_s, ";".join(decision.concepts)))
    level_tier = EafTier(
        name=people._replace(what="level").name,
        kind="level",
        spans=levels,
        annotator=people.annotator,
        decisions=decision_ids,
    )
    concepts_tier = EafTier(
        name=people._replace(what="concepts").name,
        kind="concepts",
        spans=concepts,
        parent=level_tier.name,
        annotator=people.annotator,
    )
    return [level_tier, concepts_tier]
