"""Put a codebook into words: texts of its concepts for encoders, and questions for machines."""

from typing import Literal, NamedTuple

from obygaze_features.manifest.codebook import Codebook


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


def concept_texts(codebook: Codebook) -> tuple[ConceptText, ...]:
    """List the texts that a codebook has of its visual concepts, by concept."""
    texts = []
    for concept in codebook.concepts:
        if not concept.visual:
            continue
        name = concept.name
        texts.append(ConceptText(f"{name}/definition", name, "definition", concept.definition or name))
        instances = [text for instance in concept.instances for text in (instance.name, *instance.examples)]
        texts += [
            ConceptText(f"{name}/instances/{number}", name, "instances", text)
            for number, text in enumerate(instances, start=1)
        ]
    return tuple(texts)


def codebook_questions(codebook: Codebook) -> dict[str, str]:
    """Ask a machine for each level and concept of a codebook: yes or no.

    Returns
    -------
    ``level:NAME`` or ``concept:NAME`` -> the question, by what it means, else its definition, title or name.

    Examples
    --------
    >>> from obygaze_features.manifest import builtin_codebook, codebook_questions
    >>> codebook_questions(builtin_codebook("obygaze12"))["concept:Body"]
    'Is this in the passage: nudity, suggested or shown, and body parts that connote sex? Answer yes or no.'
    """
    levels = {
        f"level:{level.name}": f"Is this passage of a film {level.means or level.title or level.name}?"
        for level in codebook.levels
    }
    meant = {each.name: each.means or each.definition or each.name for each in codebook.concepts}
    concepts = {f"concept:{name}": f"Is this in the passage: {words}?" for name, words in meant.items()}
    return {name: f"{question} Answer yes or no." for name, question in (levels | concepts).items()}
