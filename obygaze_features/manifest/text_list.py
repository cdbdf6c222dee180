"""Lists of texts: prompts, captions or a codebook's concepts, each with an id, for backbones of texts."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from obygaze_features.errors import ManifestError
from obygaze_features.io import csv_line
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.table import Problems, read_table, text_of
from obygaze_features.text import unsuitable

COLUMNS = (("text_id", "text"), ("caption_id", "caption"))
"""The pairs of columns that a table of texts may have; what else it has is for others."""
LINE_DIGITS = 6
"""Digits of a line's number, so that ids stay the same when lines are added below."""


@dataclass(frozen=True)
class TextList:
    """Texts in the order of their file.

    Attributes
    ----------
    rows
        (text id, text); ids are unique, texts need not be.
    """

    rows: tuple[tuple[str, str], ...]

    def digest(self) -> str:
        """Hash the rows as a CSV table of text_id and text, independent of the file's format: SHA-256."""
        lines = (csv_line(row) for row in (COLUMNS[0], *self.rows))
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def read_texts(path: str | Path) -> TextList:
    """Read a list of texts.

    Parameters
    ----------
    path
        A `.txt` with one text per line, whose ids are the line numbers (`000001`), or a CSV with the columns
        `text_id` and `text`, or `caption_id` and `caption`.

    Raises
    ------
    ManifestError
        Naming file and line: not UTF-8, no such columns, an empty id or text, an id that is there twice, or
        a control or bidirectional character.
    """
    path = Path(path)
    found = _lines(path) if path.suffix.lower() == ".txt" else _cells(path)
    problems = Problems(path)
    first: dict[str, int] = {}
    for line, text_id, text in found:
        if not text.strip():
            problems.add(line, "the text is empty")
        elif what := unsuitable(text, lines=True):
            problems.add(line, f"the text {what}")
        if not text_id.strip():
            problems.add(line, "the id is empty")
        elif what := unsuitable(text_id):
            problems.add(line, f"the id {text_id!r} {what}")
        elif text_id in first:
            problems.add(line, f"the id {text_id!r} is there twice, first in line {first[text_id]}")
        first.setdefault(text_id, line)
    problems.refuse()
    if not found:
        raise ManifestError(f"{path}: there is no text in it")
    return TextList(tuple((text_id, text) for _, text_id, text in found))


@dataclass(frozen=True, slots=True)
class ConceptText:
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
    found = []
    for concept in codebook.concepts:
        if not concept.visual:
            continue
        name = concept.name
        found.append(ConceptText(f"{name}/definition", name, "definition", concept.definition or name))
        said = [text for one in concept.instances for text in (one.name, *one.examples)]
        found += [
            ConceptText(f"{name}/instances/{place}", name, "instances", text)
            for place, text in enumerate(said, start=1)
        ]
    return tuple(found)


def _lines(path: Path) -> list[tuple[int, str, str]]:
    lines = text_of(path).split("\n")
    if not lines[-1]:
        lines.pop()
    return [
        (number, f"{number:0{LINE_DIGITS}}", line.removesuffix("\r"))
        for number, line in enumerate(lines, start=1)
    ]


def _cells(path: Path) -> list[tuple[int, str, str]]:
    table = read_table(path, needed=(), named=False)
    pairs = [pair for pair in COLUMNS if set(pair) <= set(table.columns)]
    if len(pairs) != 1:
        wanted = " or ".join(" and ".join(pair) for pair in COLUMNS)
        raise ManifestError(
            f"{path}: a table of texts has the columns {wanted}, not both; found {', '.join(table.columns)}"
        )
    text_id, text = pairs[0]
    return [(row.line, row.cells[text_id], row.cells[text]) for row in table.rows]
