"""Test sentences of the five papers that released data can decide, with interval, unit and verdict.

Each sentence is turned into a number and the range of it that makes the sentence true (`Claim.true_in`). One
rule decides: a sentence *holds* if the number's 95 % interval lies inside the range, and *fails* if it lies
outside; it is *undecided* if the interval has values of both sides, or if a test stands beside the number and
its p, adjusted by Holm over the tests on the same file, is not below .05. A test cannot show that things are
alike: a sentence that says so holds by its interval alone. A number counted over all there is (every clip of
a corpus, every model of a printed table) has no interval and is exact.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from msgspec import Struct

from obygaze_features.io import file_sha256
from obygaze_features.manifest import read_manifest, read_table
from obygaze_features.templates import packaged
from obygaze_models.evaluation import holm
from obygaze_models.report import NOTHING, Column, Report, block, interval, p_value
from obygaze_studies.claims import measures
from obygaze_studies.claims.measures import Measured
from obygaze_studies.errors import AuditError
from obygaze_studies.obygaze12.import_annotations import is_obygaze12

ALPHA = 0.05

_LISTED = packaged(__package__, "claims.toml")

PAPERS: Mapping[str, str] = _LISTED["papers"]

NEEDS: Mapping[str, str] = _LISTED["needs"]
"""What a claim is computed from, and where it comes from."""


class Claim(Struct, frozen=True, kw_only=True, rename={"least": "from", "most": "to"}):
    """A sentence of a paper as a range of a number.

    Attributes
    ----------
    name, paper, place, sentence : str
        The place is the section, and the page where the paper's text shows it.
    statistic : str
        What the number is.
    least, most, above, below : float
        The range that makes the sentence true: closed ends; open ends in their place, where there are any.
    needs : str
        Of `NEEDS`.
    measure, arguments
        Function of `measures` from the input to a `Measured`, and what else it takes.
    alike : bool
        Whether the sentence says that things do not differ.
    """

    name: str
    paper: str
    place: str = ""
    sentence: str = ""
    statistic: str = ""
    least: float = 0.0
    most: float = math.inf
    above: float | None = None
    below: float | None = None
    needs: str = "printed"
    measure: str = ""
    arguments: Mapping[str, Any] = {}
    alike: bool = False

    @property
    def true_in(self) -> tuple[float, float]:
        """The closed range that makes the sentence true: of an open end, the next number inside."""
        least = self.least if self.above is None else math.nextafter(self.above, math.inf)
        return least, self.most if self.below is None else math.nextafter(self.below, -math.inf)


CLAIMS = msgspec.convert(_LISTED["claim"], tuple[Claim, ...])
"""The sentences that are tested."""

OPEN: Sequence[Mapping[str, str]] = _LISTED["open"]
"""Sentences that no data here decides, with what would decide them."""


def verdict(claim: Claim, finding: Measured) -> str:
    """Return holds, fails or undecided, by the rule of this module."""
    counted = finding.unit in measures.COUNTED
    low, high = (finding.value, finding.value) if counted else (finding.low, finding.high)
    least, most = claim.true_in
    inside, outside = least <= low and high <= most, high < least or low > most
    if finding.p_holm >= ALPHA and not (claim.alike and inside):
        return "undecided"
    return "holds" if inside else "fails" if outside else "undecided"


# --- inputs
# ---------------------------------------------------------------------------


NAMES = ("clip_id", "movie", "image_id", "subject")
"""Columns of names, which may be NA; pandas would take it for a missing value."""


def _frame(table: Any) -> pd.DataFrame:
    missing = {column: ["", "nan", "NaN"] for column in table.columns if column not in NAMES}
    return pd.read_csv(StringIO(table.as_csv(NAMES)), keep_default_na=False, na_values=missing)


def read_input(path: Path) -> tuple[str, Any]:
    """Recognise a file by its columns and read it: (a name of `NEEDS`, manifest or table).

    Raises
    ------
    ManifestError
        The file is no table.
    AuditError
        It is none of them.
    """
    read = read_table(path, (), named=False)
    if {"image_id", "subject", "emotion", "condition", "n_captions"} <= set(read.columns):
        return "words", _frame(read)
    if {"clip_id", "movie", "cuts"} <= set(read.columns):
        asked = {str(claim.arguments["variable"]) for claim in CLAIMS if claim.needs == "staging"}
        names = sorted(asked.intersection(read.columns))
        return "staging", (read, pd.DataFrame.from_dict(read.numbers(names), orient="index", columns=names))
    if {"model", "task", "movie", "label", "score"} <= set(read.columns):
        table = _frame(read)
        missing = {f"{train}_s>{test}_s" for train in ("en", "hn") for test in ("en", "enhn")} - set(
            table["task"]
        )
        if missing:
            raise AuditError(
                f"{path}: no predictions of task {min(missing)}; {NEEDS['predictions']} has them"
            )
        return "predictions", table
    manifest = read_manifest(path)
    if is_obygaze12(manifest):
        return "obygaze12", manifest
    if manifest.codebook.name == "mobygaze":
        return "mobygaze", manifest
    raise AuditError(f"{path}: expected one of: {'; '.join(filter(None, NEEDS.values()))}")


# --- the report
# ---------------------------------------------------------------------------


def claims(files: Sequence[Path]) -> Report:
    """Test every claim that some files decide, and list the others with what they need.

    Parameters
    ----------
    files : sequence of Path
        Each is recognised by its columns.

    Raises
    ------
    AuditError
        A file is not an input, or two are of the same kind.
    """
    read: dict[str, Any] = {"printed": None}
    digests: dict[str, str] = {}
    for path in files:
        kind, content = read_input(path)
        if kind in read:
            raise AuditError(f"{path}: a second file of {NEEDS[kind]}: give one")
        read[kind], digests[kind] = content, file_sha256(path)
    if (staging := read.pop("staging", None)) is not None and "obygaze12" in read:
        table, values = staging
        table.numbers((), read["obygaze12"])
        read["staging"] = read["obygaze12"], values
    findings: dict[str, Measured] = {}
    for source, content in read.items():
        tested = [claim for claim in CLAIMS if claim.needs == source]
        found = [getattr(measures, claim.measure)(content, **claim.arguments) for claim in tested]
        adjusted = holm([finding.p for finding in found]).tolist()
        for claim, finding, p_holm in zip(tested, found, adjusted, strict=True):
            findings[claim.name] = replace(finding, p_holm=p_holm)
    rows = [_row(claim, findings.get(claim.name)) for claim in CLAIMS]
    blocks = []
    for paper, title in PAPERS.items():
        own = [row for row in rows if row["paper"] == paper]
        notes = [f'{row["claim"]}: "{row["sentence"]}" ({row["place"]}); {row["statistic"]}' for row in own]
        notes += [f"{row['claim']}: {row['note']}" for row in own if row["note"]]
        notes += [
            f'not tested: "{entry["sentence"]}" ({entry["place"]}); to decide it: {entry["decided_by"]}'
            for entry in OPEN
            if entry["paper"] == paper
        ]
        blocks.append(block(title, COLUMNS, own, notes))
    decided = Counter(str(row["verdict"]).partition(":")[0] for row in rows)
    return Report(
        name="claims",
        title="Sentences of the papers, tested on released data",
        notes=(
            _LISTED["rule"],
            (
                "of 003 (MediaEval 2015) no sentence makes a claim beyond the sizes of its data, which "
                "`obygaze manifest import mediaeval15` checks"
            ),
        ),
        blocks=tuple(blocks),
        answers=(f"of {len(rows)} sentences: {', '.join(f'{n} {what}' for what, n in decided.items())}",),
        data=pd.DataFrame(rows),
        record={"inputs": dict(sorted(digests.items()))},
    )


def _row(claim: Claim, finding: Measured | None) -> dict[str, Any]:
    decided = verdict(claim, finding) if finding else f"not computed: needs {NEEDS[claim.needs]}"
    about = {name: getattr(claim, name) for name in ("paper", "place", "sentence", "statistic")}
    ends = dict(zip(("true_from", "true_to"), claim.true_in, strict=True))
    measured = asdict(finding or Measured())
    note = measured.pop("note")
    return {"claim": claim.name, **about, **ends, **measured, "verdict": decided, "note": note}


def _number(value: float, low: float, high: float, unit: str) -> str:
    if math.isnan(value):
        return NOTHING
    return f"{value:.3g}" if unit in measures.COUNTED else interval(value, low, high)


def _p(value: float) -> str:
    return NOTHING if math.isnan(value) else p_value(value)


COLUMNS: Sequence[Column] = (
    ("claim", "claim", str),
    ("place", "place", str),
    ("number [95 %]", ("value", "low", "high", "unit"), _number),
    ("units", ("n", "unit"), lambda n, unit: f"{n:,} {unit}" if unit else NOTHING),
    ("p", "p", _p),
    ("p (Holm)", "p_holm", _p),
    ("verdict", "verdict", str),
)
