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
    if tier.people is None or span.decided is None:  # what the model wrote, and nobody decided
        return CodedSpan(span.start_s, span.end_s, [(tier.name, span.text)], MODEL_CODER)

    coder = span.decided.annotator
    if tier.people.what == "note":
        code_of_note = (_group_of_codes("note", tier.people), "note")
        return CodedSpan(span.start_s, span.end_s, [code_of_note], coder, comment=span.text)

    codes = [(_group_of_codes("level", tier.people), span.decided.level)]
    group_of_concepts = _group_of_codes("concepts", tier.people)
    codes += [(group_of_concepts, concept) for concept in span.decided.concepts]
    return CodedSpan(span.start_s, span.end_s, codes, coder)


def _group_of_codes(what: str, people: PeopleTier) -> str:
    """Name the group of codes that people gave, such as "human: level, blind".

    The name says of what the codes are (`what`: level, concepts or note), and how they were decided: blindly,
    in sight of the model's score, or agreed. It does not say by whom, as a tier's name does: a file of this
    format states the coder of every coded selection, so that all people share the group.
    """
    tier_of_anybody = PeopleTier(what=what, how=people.how)
    return tier_of_anybody.name
