"""Write projects of REFI-QDA, which NVivo, MAXQDA, ATLAS.ti and QualCoder import."""

from obygaze_features.manifest import CodedSpan, PeopleTier, refi_qda_project
from obygaze_film.exchange.tiers import Exported, Tier, TierSpan

MODEL_CODER: str = "obygaze"
"""Name of the coder of what a model marked."""


def to_refi_qda(exported: Exported) -> str:
    """Write the document of a project (REFI-QDA), with a coded selection for each span.

    A selection is a span of the video to which people, or the model, gave codes. Codes are grouped by the
    tiers of the spans.
    """
    spans = [_coded(tier, span) for tier, span in exported.spans]
    return refi_qda_project(spans, exported.film.movie, " ".join(exported.caveats))


def _coded(tier: Tier, span: TierSpan) -> CodedSpan:
    """Make the selection of a span, with its coder (a person or the model) and its codes.

    A code is a pair: the name of a group of codes, and the code's name in it, such as ("segments", "S").

    - A span of the model has its text as a code, in the group of its tier.
    - A person's level is a code, and so is each concept.
    - A person's note is a comment, with the code "note".
    """
    if tier.people is None or span.decided is None:
        return CodedSpan(span.start_s, span.end_s, [(tier.name, span.text)], MODEL_CODER)
    coder = span.decided.annotator
    how = tier.people.how  # blindly, in sight of the model's score, or agreed
    # The names of people's groups have no annotator: the selection has it, as its coder.
    if tier.people.what == "note":
        group_of_notes = PeopleTier(what="note", how=how).name
        return CodedSpan(span.start_s, span.end_s, [(group_of_notes, "note")], coder, span.text)
    group_of_levels = PeopleTier(what="level", how=how).name
    group_of_concepts = PeopleTier(what="concepts", how=how).name
    codes = [(group_of_levels, span.decided.level)]
    codes += [(group_of_concepts, concept) for concept in span.decided.concepts]
    return CodedSpan(span.start_s, span.end_s, codes, coder)
