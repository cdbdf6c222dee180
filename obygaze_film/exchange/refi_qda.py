"""Write projects of REFI-QDA, which NVivo, MAXQDA, ATLAS.ti and QualCoder import."""

from obygaze_features.manifest import CodedSpan, PeopleTier, refi_qda_project
from obygaze_film.exchange.tiers import Exported, Tier, TierSpan

MODEL_CODER: str = "obygaze"
"""Name of the coder of what a model marked."""


def to_refi_qda(exported: Exported) -> str:
    """Write the document of a project: a selection for each span, whose codes are grouped by its tier."""
    spans = [_coded(tier, span) for tier, span in exported.spans]
    return refi_qda_project(spans, exported.film.movie, " ".join(exported.caveats))


def _coded(tier: Tier, span: TierSpan) -> CodedSpan:
    """Make the selection of a span, with its codes and its coder, a person or the model.

    A code is a pair, such as ("segments", "S"), of a group of codes, named as the tier, and a name in it. A
    level and concepts that a person decided are codes of their own; a note is a comment.
    """
    if tier.people is None or span.decided is None:
        return CodedSpan(span.start_s, span.end_s, [(tier.name, span.text)], MODEL_CODER)
    decided = span.decided
    # Groups of people's codes have no annotator in their names: the annotator is the span's coder.
    how = tier.people.how
    if tier.people.what == "note":
        codes = [(PeopleTier(what="note", how=how).name, "note")]
        return CodedSpan(span.start_s, span.end_s, codes, decided.annotator, span.text)
    codes = [(PeopleTier(what="level", how=how).name, decided.level)]
    group_of_concepts = PeopleTier(what="concepts", how=how).name
    codes += [(group_of_concepts, concept) for concept in decided.concepts]
    return CodedSpan(span.start_s, span.end_s, codes, decided.annotator)
