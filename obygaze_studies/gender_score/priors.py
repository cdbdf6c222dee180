"""Score texts with a causal language model and write lm.csv; resumes where it stopped."""

import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from obygaze_features.errors import BackboneError, ExtractError
from obygaze_features.io import file_sha256, refuse_existing, sha256_of, write_whole
from obygaze_features.lines import LineJournal, csv_line, json_bytes, read_lines
from obygaze_features.manifest import read_texts
from obygaze_features.options import Answer
from obygaze_features.screen import progress_bar
from obygaze_features.text import counted
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.cooc import GENDERS, has_mask, with_gender

if TYPE_CHECKING:
    from obygaze_studies.gender_score.language_model import LanguageModel

SOURCE = (
    "token probabilities of begin token + text + end token: "
    "the begin token only conditions, the end token counts (Sabir and Padró 2023, authors' code)"
)
COLUMNS = {
    "n_tokens": "tokens of the text and the end token",
    "lm_mean": "arithmetic mean of their probabilities: the prior of the Gender Score",
    "lm_prod": "product: the probability of the text",
    "lm_gmean": "geometric mean",
    "lm_hmean": "harmonic mean",
}
Values = Mapping[str, int | float]


def lm(texts: Path, model: str, out: Path, *, device: str = "auto", force: bool = False) -> Answer:
    """Score the texts of a file with a language model, and write the table and its record.

    Parameters
    ----------
    texts
        A table of text_id and text, or of caption_id and caption.
    model
        Folder or repository of the language model.
    out
        The CSV file to write; a .json file is written beside it, and until it is done a .partial one.
    device
        Where the model runs.
    force
        Whether an existing table is replaced, and scores of a stopped run are dropped.

    Raises
    ------
    AuditError
        `out` is no CSV file.
    """
    if out.suffix.lower() != ".csv":
        raise AuditError(f"--out {out} should end in .csv; a .json file is written beside it")
    refuse_existing(out, out.with_suffix(".json"), force=force)
    place_of_text, source_record = texts_to_score(texts)

    from obygaze_features.backbones import Compute  # noqa: PLC0415 - torch is slow
    from obygaze_studies.gender_score.language_model import language_model  # noqa: PLC0415

    compute = Compute(device)
    loaded = language_model(model, compute)
    batch_size = compute.initial_batch_size()
    journal = out.with_name(f"{out.name}.partial")  # finished batches, from which a stopped run resumes
    with progress_bar("scoring", "text") as progress:
        priors = measure_priors(
            loaded, place_of_text, journal, batch_size=batch_size, restart=force, progress=progress
        )

    record: dict[str, Any] = {
        "what": SOURCE,
        "columns": COLUMNS,
        "texts": source_record,
        "model": loaded.record(),
        "texts_at_once": batch_size,
        "software": software(),
    }
    write_priors(out, priors, record)
    journal.unlink()  # all of its scores are in the table

    remarks = []
    if loaded.tokenizer.bos_token_id is None:  # `language_model` then takes the end token
        remarks.append(f"{model} has no begin token: its end token stands before every text")
    text = f"{counted(len(priors), 'text')} of {counted(source_record['rows'], 'row')} kept in {out}"
    return Answer(record, text=text, remarks=remarks)


def texts_to_score(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """List the texts to score in a table of text_id and text, or of caption_id and caption.

    A text with [MASK] or <MASK> gives two: one with man and one with woman in place of the masks.

    Returns
    -------
    place_of_text
        Text -> where it is, for messages: the file, and the id of the first row with this text.
    record
        The file's name and digest, its number of rows, of rows with a mask, and of different texts.

    Raises
    ------
    ManifestError
        If the file is not such a table, a text is empty or an id is repeated; names file and line.
    """
    rows = read_texts(path).rows
    place_of_text: dict[str, str] = {}
    for text_id, text in rows:
        for filled_text in gender_variants(text):
            place_of_text.setdefault(filled_text, f"{path}, {text_id}")
    n_masked = sum(has_mask(text) for _, text in rows)
    counts = {"rows": len(rows), "masked": n_masked, "distinct": len(place_of_text)}
    return place_of_text, {"name": path.name, "sha256": file_sha256(path), **counts}


def gender_variants(text: str) -> tuple[str, ...]:
    """Return the variants of a text: the text itself, or its masks filled with man and with woman."""
    if not has_mask(text):
        return (text,)
    return tuple(with_gender(text, gender) for gender in GENDERS)


def measure_priors(
    model: "LanguageModel",
    place_of_text: Mapping[str, str],
    journal: Path,
    *,
    batch_size: int = 1,
    restart: bool = False,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> dict[str, Values]:
    """Score every text; finished texts are written to a journal, from which a later call resumes.

    Texts of equal length are scored together, up to `batch_size` per batch. The batches are always the same,
    so a resumed run gives the same numbers as an uninterrupted one.

    Parameters
    ----------
    model
        The language model.
    place_of_text
        Text -> where it is, for messages.
    journal
        The file of finished batches.
    batch_size
        Most texts of a batch.
    restart
        Start again and ignore the journal.
    progress
        Called with the number of finished texts and the number of all texts.

    Returns
    -------
    Text -> its scores, in the order of `place_of_text`.

    Raises
    ------
    ExtractError
        If a text is too long or unsuitable for the model, or the journal belongs to another run.
    """
    batches = _batches(model, place_of_text, batch_size)
    # What determines the scores: a journal of anything else cannot be resumed.
    identity = {
        "model": model.record(),
        "software": software(),
        "at_once": batch_size,
        "texts_sha256": sha256_of(json.dumps(list(place_of_text)).encode()),
    }
    journal.parent.mkdir(parents=True, exist_ok=True)
    if restart:
        journal.unlink(missing_ok=True)
    values_of_batch = _read_journal(journal, identity)

    scores: dict[str, Values] = {}
    with closing(LineJournal(journal)) as lines:
        if values_of_batch is None:
            lines.append(identity)
            values_of_batch = {}
        for number, batch in enumerate(batches):
            if number not in values_of_batch:
                values: list[Values] = [*model.score([ids for _, ids in batch])]
                # The line is not forced to the disk, which takes long: a batch that is lost is scored again.
                lines.append({"batch": number, "values": values}, force=False)
                values_of_batch[number] = values
            for (text, _), score in zip(batch, values_of_batch[number], strict=True):
                scores[text] = score
            progress(len(scores), len(place_of_text))
    return {text: scores[text] for text in place_of_text}


def _read_journal(journal: Path, identity: Mapping[str, Any]) -> dict[int, list[Values]] | None:
    """Read the finished batches from a journal: number of a batch -> the scores of its texts.

    Returns None if there is no journal, or nothing in it.

    Parameters
    ----------
    journal
        A file with one JSON value a line: the identity of its run, then a line for each batch.
    identity
        What determines the scores of this run.

    Raises
    ------
    ExtractError
        The journal belongs to another run.
    """
    if not journal.exists():
        return None
    # Damaged lines are read as None. They are left out, so that their batches are scored again.
    entries: list[dict[str, Any]] = [entry for _, entry in read_lines(journal, dict[str, Any]) if entry]
    if not entries:
        return None
    identity_of_journal, *batches = entries
    identity_as_read = json.loads(json.dumps(identity))  # with lists for tuples, as in the journal
    if identity_of_journal != identity_as_read:
        raise ExtractError(
            f"{journal} was begun with other texts, another model or other versions: "
            "give --force to begin anew, or another --out"
        )
    return {entry["batch"]: entry["values"] for entry in batches}


Batch = Sequence[tuple[str, tuple[int, ...]]]
"""Texts that are scored together, each with its tokens."""


def _batches(model: "LanguageModel", place_of_text: Mapping[str, str], batch_size: int) -> list[Batch]:
    """Split the texts into batches of at most `batch_size` texts with equally many tokens.

    Parameters
    ----------
    model
        The language model, whose tokenizer splits texts.
    place_of_text
        Text -> where it is, for messages.
    batch_size
        Most texts of a batch.

    Raises
    ------
    ExtractError
        A text is too long or otherwise unsuitable for the model; names its place.
    """
    texts_by_length: dict[int, list[tuple[str, tuple[int, ...]]]] = {}
    for text, place in place_of_text.items():
        try:
            ids = model.tokens(text)
        except BackboneError as error:
            raise ExtractError(f"{place}: {text[:40]!r}: {error}") from error
        texts_by_length.setdefault(len(ids), []).append((text, ids))
    batches: list[Batch] = []
    for _, texts_of_length in sorted(texts_by_length.items()):
        starts = range(0, len(texts_of_length), batch_size)
        batches += [texts_of_length[start : start + batch_size] for start in starts]
    return batches


def software() -> dict[str, str]:
    """Return the versions of the libraries that affect the scores: name -> version."""
    names = ("obygaze", "numpy", "tokenizers", "torch", "transformers")
    return {name: importlib.metadata.version(name) for name in names}


def write_priors(out: Path, priors: Mapping[str, Values], record: Mapping[str, Any]) -> None:
    """Write the table of texts and scores as CSV, and its record as a JSON file of the same name.

    Parameters
    ----------
    out
        The CSV file.
    priors
        Text -> name of a score -> its value; all texts have the same scores.
    record
        What the scores are made of.
    """
    columns = list(next(iter(priors.values())))
    lines = [csv_line(("text", *columns))]
    for text, values in priors.items():
        numbers = [str(values[column]) for column in columns]
        lines.append(csv_line((text, *numbers)))
    write_whole(out.with_suffix(".json"), json_bytes(record))
    write_whole(out, "".join(lines))
