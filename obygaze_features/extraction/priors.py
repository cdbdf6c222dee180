"""Compute priors of texts: captions and a language model -> lm.csv; resumes where it stopped."""

import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from obygaze_features.errors import BackboneError, ExtractError
from obygaze_features.io import write_whole
from obygaze_features.manifest.rows import table_line
from obygaze_features.manifest.texts import read_texts

if TYPE_CHECKING:
    from obygaze_features.backbones.language_model import LanguageModel

MASKS = ("[MASK]", "<MASK>")
FILLINGS = ("man", "woman")
SOURCE = (
    "token probabilities of begin token + text + end token: "
    "the begin token only conditions, the end token counts (Sabir and Padró 2023, authors' code)"
)
Values = Mapping[str, int | float]


@dataclass(frozen=True)
class Texts:
    """Texts to score, each once.

    Attributes
    ----------
    where
        Text -> what names it in a message: the file, and the id of the row that has it first.
    n_rows, n_masked : int
        Rows of the table, and those of them with a mask, which give two texts.
    sha256
        Of the table's file.
    """

    where: Mapping[str, str]
    n_rows: int
    n_masked: int
    sha256: str


def texts_to_score(path: Path) -> Texts:
    """List the texts of a table, as `read_texts` takes it: text_id and text, or caption_id and caption.

    In the place of a [MASK] or <MASK> stand, in turn, man and woman.

    Raises
    ------
    ManifestError
        Naming file and line: it is no such table, a text is empty, an id there twice.
    """
    rows = read_texts(path).rows
    where: dict[str, str] = {}
    for text_id, text in rows:
        for reading in fillings(text):
            where.setdefault(reading, f"{path}, {text_id}")
    n_masked = sum(len(fillings(text)) > 1 for _, text in rows)
    return Texts(where, len(rows), n_masked, hashlib.sha256(path.read_bytes()).hexdigest())


def fillings(text: str) -> tuple[str, ...]:
    """Return the readings of a text: itself, or man and woman in the place of its masks."""
    if not any(mask in text for mask in MASKS):
        return (text,)
    readings = []
    for word in FILLINGS:
        filled = text
        for mask in MASKS:
            filled = filled.replace(mask, word)
        readings.append(filled)
    return tuple(readings)


def measure_priors(
    model: "LanguageModel",
    texts: Texts,
    journal: Path,
    *,
    at_once: int = 1,
    restart: bool = False,
    on_texts: Callable[[int], object] = lambda _: None,
) -> dict[str, Values]:
    """Score every text; finished ones are kept in a journal from which a later call resumes.

    Texts of one length are scored together, `at_once` of them, always the same ones: a run that was stopped
    and taken up gives the same numbers as one that was not.

    Parameters
    ----------
    restart
        Begin anew, whatever the journal holds.
    on_texts
        Called with the number of texts done since the last call.

    Returns
    -------
    Text -> its numbers, in the order of `texts`.

    Raises
    ------
    ExtractError
        A text is too long or does not fit the model, or the journal is of another run.
    """
    batches = _batches(model, texts, at_once)
    identity = {
        "model": model.record(),
        "software": software(),
        "at_once": at_once,
        "texts_sha256": hashlib.sha256(json.dumps(list(texts.where)).encode()).hexdigest(),
    }
    found: dict[str, Values] = {}
    with _journal(journal, identity, restart=restart) as (done, file):
        for number, batch in enumerate(batches):
            if number < len(done):
                values: list[Values] = done[number]
            else:
                values = [one.record() for one in model.score([ids for _, ids in batch])]
                file.write(json.dumps([number, values]) + "\n")
                file.flush()
            found |= {text: one for (text, _), one in zip(batch, values, strict=True)}
            on_texts(len(batch))
    return {text: found[text] for text in texts.where}


Batch = Sequence[tuple[str, tuple[int, ...]]]


def _batches(model: "LanguageModel", texts: Texts, at_once: int) -> list[Batch]:
    tokens: dict[str, tuple[int, ...]] = {}
    for text, where in texts.where.items():
        try:
            tokens[text] = model.tokens(text)
        except BackboneError as error:
            raise ExtractError(f"{where}: {text[:40]!r}: {error}") from error
    ordered = sorted(tokens.items(), key=lambda pair: len(pair[1]))
    batches: list[Batch] = []
    for _, alike in groupby(ordered, key=lambda pair: len(pair[1])):
        group = list(alike)
        batches += [group[start : start + at_once] for start in range(0, len(group), at_once)]
    return batches


@contextmanager
def _journal(
    path: Path, identity: Mapping[str, Any], *, restart: bool
) -> Iterator[tuple[list[list[Values]], IO[str]]]:
    """Open the journal behind its last whole line; give the batches that it holds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first = json.dumps(identity)
    done: list[list[Values]] = []
    kept = ""
    lines = [] if restart or not path.exists() else path.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and lines[0].endswith("\n"):
        if lines[0] != first + "\n":
            raise ExtractError(
                f"{path} was begun with other texts, another model or other versions: "
                "give --force to begin anew, or another --out"
            )
        kept = lines[0]
        for line in lines[1:]:
            values = _batch_of(line, len(done))
            if values is None:
                break
            done.append(values)
            kept += line
    with path.open("w", encoding="utf-8") as file:
        file.write(kept or first + "\n")
        file.flush()
        yield done, file


def _batch_of(line: str, number: int) -> list[Values] | None:
    """Read a batch from its line; None if a kill cut it short, or it is not the one expected here."""
    try:
        found, values = json.loads(line)
    except ValueError:
        return None
    return values if line.endswith("\n") and found == number else None


def software() -> dict[str, str]:
    """List the versions that decide the numbers."""
    names = ("obygaze", "numpy", "tokenizers", "torch", "transformers")
    return {name: importlib.metadata.version(name) for name in names}


def write_priors(out: Path, priors: Mapping[str, Values], record: Mapping[str, Any]) -> None:
    """Write the table, text and numbers, and its record beside it as JSON."""
    columns = list(next(iter(priors.values())))
    lines = [table_line(("text", *columns))]
    lines += [table_line((text, *(str(of[each]) for each in columns))) for text, of in priors.items()]
    document = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(out.with_suffix(".json"), document)
    write_whole(out, "".join(lines))


def describe(path: Path, texts: Texts, model: "LanguageModel", at_once: int) -> dict[str, Any]:
    """Return where priors come from, enough to make them again."""
    return {
        "what": SOURCE,
        "columns": {
            "n_tokens": "tokens of the text and the end token",
            "lm_mean": "arithmetic mean of their probabilities: the prior of the Gender Score",
            "lm_prod": "product: the probability of the text",
            "lm_gmean": "geometric mean",
            "lm_hmean": "harmonic mean",
        },
        "texts": {
            "name": path.name,
            "sha256": texts.sha256,
            "rows": texts.n_rows,
            "masked": texts.n_masked,
            "distinct": len(texts.where),
        },
        "model": model.record(),
        "texts_at_once": at_once,
        "software": software(),
    }
