"""Score texts with a causal language model and write lm.csv; resumes where it stopped."""

import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from obygaze_features.errors import BackboneError, ExtractError
from obygaze_features.io import file_sha256, refuse_existing, write_whole
from obygaze_features.lines import LineJournal, csv_line, json_bytes, read_lines
from obygaze_features.manifest import read_texts
from obygaze_features.screen import progress_bar
from obygaze_studies.audit_common.findings import Answer
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.cooc import GENDERS, filled, has_mask

if TYPE_CHECKING:
    from obygaze_studies.gender_score.language_model import LanguageModel

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
        Text -> its name in messages: the file, and the id of the first row with this text.
    n_rows, n_masked : int
        Rows of the table, and rows with a mask, which give two texts each.
    sha256
        Digest of the table's file.
    """

    where: Mapping[str, str]
    n_rows: int
    n_masked: int
    sha256: str


def lm(texts: Path, model: str, out: Path, *, device: str = "auto", force: bool = False) -> Answer:
    """Score the texts of a file with a language model, and write the table and its record.

    Raises
    ------
    AuditError
        `out` is no CSV file.
    """
    if out.suffix.lower() != ".csv":
        raise AuditError(f"--out {out} should end in .csv; a .json file is written beside it")
    refuse_existing(out, out.with_suffix(".json"), force=force)
    wanted = texts_to_score(texts)

    from obygaze_features.backbones import Compute  # noqa: PLC0415 - torch is slow
    from obygaze_studies.gender_score.language_model import language_model  # noqa: PLC0415

    compute = Compute(device)
    loaded = language_model(model, compute=compute)
    at_once, journal = compute.first_size(), out.with_name(f"{out.name}.partial")
    with progress_bar("scoring", "text") as progress:
        priors = measure_priors(loaded, wanted, journal, at_once=at_once, restart=force, progress=progress)
    record = describe(texts, wanted, loaded, at_once)
    write_priors(out, priors, record)
    journal.unlink()
    no_begin = loaded.begin == loaded.end and loaded.tokenizer.bos_token_id is None
    remarks = [f"{model} has no begin token: its end token stands before every text"] * no_begin
    return Answer(
        document=record,
        text=f"{len(priors):,} texts of {wanted.n_rows:,} rows kept in {out}",
        remarks=remarks,
    )


def texts_to_score(path: Path) -> Texts:
    """List the texts of a table in the format of `read_texts`: text_id and text, or caption_id and caption.

    Each [MASK] or <MASK> is replaced by man and by woman, which gives two texts.

    Raises
    ------
    ManifestError
        If the file is not such a table, a text is empty or an id is repeated; names file and line.
    """
    rows = read_texts(path).rows
    where: dict[str, str] = {}
    for text_id, text in rows:
        for reading in fillings(text):
            where.setdefault(reading, f"{path}, {text_id}")
    n_masked = sum(len(fillings(text)) > 1 for _, text in rows)
    return Texts(where, len(rows), n_masked, file_sha256(path))


def fillings(text: str) -> tuple[str, ...]:
    """Return the variants of a text: the text itself, or its masks filled with man and with woman."""
    return tuple(filled(text, gender) for gender in GENDERS) if has_mask(text) else (text,)


def measure_priors(
    model: "LanguageModel",
    texts: Texts,
    journal: Path,
    *,
    at_once: int = 1,
    restart: bool = False,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> dict[str, Values]:
    """Score every text; finished texts are written to a journal, from which a later call resumes.

    Texts of equal length are scored together, up to `at_once` per batch. The batches are always the same, so
    a resumed run gives the same numbers as an uninterrupted one.

    Parameters
    ----------
    restart
        Start again and ignore the journal.
    progress
        Called with how many texts are finished, and of how many.

    Returns
    -------
    Text -> its scores, in the order of `texts`.

    Raises
    ------
    ExtractError
        If a text is too long or unsuitable for the model, or the journal belongs to another run.
    """
    batches = _batches(model, texts, at_once)
    identity = {
        "model": model.record(),
        "software": software(),
        "at_once": at_once,
        "texts_sha256": hashlib.sha256(json.dumps(list(texts.where)).encode()).hexdigest(),
    }
    journal.parent.mkdir(parents=True, exist_ok=True)
    if restart:
        journal.unlink(missing_ok=True)
    entries = [entry for _, entry in read_lines(journal) if entry] if journal.exists() else []
    if entries and entries[0] != json.loads(json.dumps(identity)):
        raise ExtractError(
            f"{journal} was begun with other texts, another model or other versions: "
            "give --force to begin anew, or another --out"
        )
    finished: dict[Any, Any] = {entry["batch"]: entry["values"] for entry in entries[1:]}
    scores: dict[str, Values] = {}
    with closing(LineJournal(journal)) as lines:
        if not entries:
            lines.append(identity)
        for number, batch in enumerate(batches):
            if number not in finished:
                values = model.score([ids for _, ids in batch])
                lines.append({"batch": number, "values": values}, force=False)
                finished[number] = values
            scores |= {text: score for (text, _), score in zip(batch, finished[number], strict=True)}
            progress(len(scores), len(texts.where))
    return {text: scores[text] for text in texts.where}


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


def software() -> dict[str, str]:
    """List the software versions that affect the scores."""
    names = ("obygaze", "numpy", "tokenizers", "torch", "transformers")
    return {name: importlib.metadata.version(name) for name in names}


def write_priors(out: Path, priors: Mapping[str, Values], record: Mapping[str, Any]) -> None:
    """Write the table of texts and scores, and its record as JSON beside it."""
    columns = list(next(iter(priors.values())))
    lines = [csv_line(("text", *columns))]
    lines += [csv_line((text, *(str(of[each]) for each in columns))) for text, of in priors.items()]
    write_whole(out.with_suffix(".json"), json_bytes(record))
    write_whole(out, "".join(lines))


def describe(path: Path, texts: Texts, model: "LanguageModel", at_once: int) -> dict[str, Any]:
    """Return the provenance of the scores, sufficient to reproduce them."""
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
