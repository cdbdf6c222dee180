"""Write texts of a codebook's concepts for text encoders, and questions on its labels for language models."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from obygaze_features.arguments import checked
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.codebook_parts import Concept, Level
from obygaze_features.manifest.perception import unperceived
from obygaze_features.perception import PICTURES

ANSWER = "Answer yes or no."


class ConceptText(NamedTuple):
    """A text that a codebook has of a visual concept.

    Attributes
    ----------
    text_id
        Concept, kind and number, such as `Body/instances/3`.
    kind
        `definition`: the concept's definition, or its name where the codebook has none. `instances`: the name
        of an instance, or one of its examples.
    """

    text_id: str
    concept: str
    kind: Literal["definition", "instances"]
    text: str


@checked
def concept_texts(codebook: Codebook) -> tuple[ConceptText, ...]:
    """Return the texts that describe a codebook's visual concepts: definitions, instances and examples."""
    texts = []
    for concept in codebook.concepts:
        if not concept.visual:
            continue
        name = concept.name
        texts.append(ConceptText(f"{name}/definition", name, "definition", concept.definition or name))
        instances: list[str] = []
        for instance in concept.instances:
            instances += [instance.name, *instance.examples]
        for number, text in enumerate(instances, start=1):
            texts.append(ConceptText(f"{name}/instances/{number}", name, "instances", text))
    return tuple(texts)


@checked
def codebook_questions(codebook: Codebook, perceives: Sequence[str] = PICTURES) -> dict[str, str]:
    """Write yes-or-no questions for a vision-language model: on each level, and each concept it can perceive.

    Parameters
    ----------
    codebook
    perceives
        Which of MODALITIES the model perceives. No question is asked on concepts that `unperceived` lists.

    Returns
    -------
    dict
        ``level:NAME`` or ``concept:NAME`` -> the question, which explains the level or concept with its
        meaning, instances and examples.

    Examples
    --------
    >>> from obygaze_features.manifest import builtin_codebook, codebook_questions
    >>> codebook_questions(builtin_codebook("obygaze12"))["concept:Look"]
    'Is this in the passage of a film: Look (looks at a character who does not look back or does not know of \
them)? Typical instances: Voyeurism (such as character watching another one without their knowledge); \
Non-reciprocal gaze (such as woman looking at man who does not look back). Answer yes or no.'
    """
    texts = {f"level:{level.name}": _level_question(level, codebook) for level in codebook.levels}
    not_asked = unperceived(codebook, perceives)
    for concept in codebook.concepts:
        if concept.name not in not_asked:
            texts[f"concept:{concept.name}"] = _concept_question(concept)
    return {name: f"{text} {ANSWER}" for name, text in texts.items()}


def _level_question(level: Level, codebook: Codebook) -> str:
    """Write the question whether a passage has a level; a sentence before it says what the levels measure."""
    meaning = f" ({level.means})" if level.means else ""
    question = f"Is this passage of a film {level.title or level.name}{meaning}?"
    if not codebook.construct:
        return question
    measured = codebook.construct
    if codebook.sub_constructs:
        measured += f" ({', '.join(codebook.sub_constructs)})"
    return f"Passages of films are rated for {measured}. {question}"


def _concept_question(concept: Concept) -> str:
    """Write the question whether a concept is in a passage, with its meaning, instances and examples."""
    meaning = concept.means or concept.definition
    described = f" ({meaning})" if meaning else ""
    question = f"Is this in the passage of a film: {concept.name}{described}?"
    if not concept.instances:
        return question
    instances = []
    for instance in concept.instances:
        examples = f" (such as {', '.join(instance.examples)})" if instance.examples else ""
        instances.append(f"{instance.name}{examples}")
    return f"{question} Typical instances: {'; '.join(instances)}."
