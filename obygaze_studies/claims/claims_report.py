"""Test sentences of the five papers that released data can decide: parts, numbers, nulls and verdicts.

A sentence has parts (`Part`), each a number and the range of it that makes the part true. A part *holds* if
the number's 95 % interval lies inside the range, and the number outside its null on the sentence's side: what
the same measure gives where the sentence is untrue by construction (`nulls`). It is *in line with the number*
where chance gives as much, and *fails* if the interval lies outside the range; it is *undecided* if the
interval has values of both sides, or if a test stands beside the number and its p, adjusted by Holm over the
tests on the same file, is not below .05. A test cannot show that things are alike: a part that says so holds
by its interval, beside a planted difference of twice the margin. A number counted over all there is (every
clip of a corpus, every model of a printed table) has no interval and no null, and is exact of what was
counted.

A sentence holds where all of its parts do, and says nothing that is not measured. Where it can be read in
several ways each part names its reading, and the verdict what each reading decides, if they differ.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct

from obygaze_features.io import file_sha256
from obygaze_features.manifest import read_manifest, read_table
from obygaze_features.templates import packaged
from obygaze_models.evaluation import Interval, holm
from obygaze_models.report import NOTHING, Column, Report, block, interval, p_value
from obygaze_studies.claims import measures
from obygaze_studies.claims.measures import Measured
from obygaze_studies.claims.nulls import SIDE, Null
from obygaze_studies.errors import AuditError
from obygaze_studies.obygaze12.import_annotations import is_obygaze12

ALPHA = 0.05

_LISTED = packaged(__package__, "claims.toml")

PAPERS: Mapping[str, str] = _LISTED["papers"]

NEEDS: Mapping[str, str] = _LISTED["needs"]
"""What a claim is computed from, and where it comes from."""

DATA: Mapping[str, str] = _LISTED["data"]
"""What data that is."""


NONE = "none"
CONSTANT = "constant"
"""Nulls of a `Part` that nothing is drawn for."""

FAILS = "fails"
UNDECIDED = "undecided"
IN_LINE = "in line with the number"
IN_PART = "in part"
HOLDS = "holds"
BY_READING = "depends on how it is read"
"""Beginnings of verdicts; of a sentence's parts an earlier one decides before a later one."""

PLURAL = {FAILS: "fail", HOLDS: "hold", BY_READING: "depend on how they are read"}
"""Verdicts on several sentences, where their words are others."""


class Part(Struct, frozen=True, kw_only=True, rename={"least": "from", "most": "to"}):
    """A number, and the range of it that makes a part of a sentence true.

    Attributes
    ----------
    statistic : str
        What the number is, and of what.
    least, most, above, below : float
        The range: closed ends; open ends in their place, where there are any.
    measure, arguments
        Function of `measures` from the input to a `Measured`, and what else it takes.
    null : str
        What the number is held against: the kind of the `Null` of its measure, CONSTANT or NONE.
    argued : str
        Why a constant is what chance gives.
    alike : bool
        Whether the part says that things do not differ.
    reading : str
        Which reading of a sentence it takes that can be read in several ways: "... as <reading>".
    beside : str
        Why a number that the sentence does not name bears on it: then it can be in line with the number, and
        can neither hold nor fail by it.
    """

    statistic: str
    least: float = -math.inf
    most: float = math.inf
    above: float | None = None
    below: float | None = None
    measure: str
    arguments: Mapping[str, Any] = {}
    null: str
    argued: str = ""
    alike: bool = False
    reading: str = ""
    beside: str = ""

    @property
    def true_in(self) -> tuple[float, float]:
        """The closed range that makes the part true: of an open end, the next number inside."""
        least = self.least if self.above is None else math.nextafter(self.above, math.inf)
        return least, self.most if self.below is None else math.nextafter(self.below, -math.inf)


class Claim(Struct, frozen=True, kw_only=True, rename={"parts": "part"}):
    """A sentence of a paper as a list of parts.

    Attributes
    ----------
    name, paper, place, sentence : str
        The place is the section, and the page where the paper's text shows it.
    needs : str
        Of `NEEDS`.
    parts : tuple of Part
    unmeasured : tuple of str
        What else the sentence says, of which nothing is measured.
    is_elsewhere : bool
        Whether it is tested on other data than those that its paper speaks of.
    finding_of : str
        Whose finding it states; empty where it is the paper's own.
    is_printed : bool
        Whether it is a sentence of a paper; else it is one of ours, on what a paper leaves open.
    """

    name: str
    paper: str
    place: str = ""
    sentence: str = ""
    needs: str = "printed"
    parts: tuple[Part, ...]
    unmeasured: tuple[str, ...] = ()
    is_elsewhere: bool = False
    finding_of: str = ""
    is_printed: bool = True


CLAIMS = msgspec.convert(_LISTED["claim"], tuple[Claim, ...])
"""The sentences that are tested."""

OPEN: Sequence[Mapping[str, str]] = _LISTED["open"]
"""Sentences that no data here decides, with what would decide them."""


def verdict(part: Part, finding: Measured) -> str:
    """Decide whether a part holds, fails, is in line with the number, or is undecided."""
    decided = _verdict_of_number(part, finding)
    if part.beside and decided == HOLDS:
        return f"{IN_LINE}, which the sentence does not name"
    if part.beside and decided == FAILS:
        return UNDECIDED
    return decided


def _verdict_of_number(part: Part, finding: Measured) -> str:
    """Decide by the range of the number and its null."""
    is_counted = finding.unit in measures.COUNTED
    low, high = (finding.value, finding.value) if is_counted else (finding.low, finding.high)
    least, most = part.true_in
    inside = least <= low and high <= most
    outside = high < least or low > most
    if finding.p_holm >= ALPHA and not (part.alike and inside):
        return UNDECIDED
    if not inside:
        return FAILS if outside else UNDECIDED
    if is_counted or part.null == CONSTANT or finding.null is None:
        return HOLDS
    if finding.null.p(least, most) < SIDE:
        return HOLDS
    return f"{IN_LINE}; {finding.null.says}"


def verdict_of(claim: Claim, verdicts: Sequence[str]) -> str:
    """Join the verdicts of a sentence's parts: it holds where all do, and nothing of it is unmeasured.

    Where a sentence can be read in several ways, each part is of one of them; readings that decide alike
    decide the sentence, others are named with what each decides.
    """
    of_reading: dict[str, list[str]] = {}
    for part, part_verdict in zip(claim.parts, verdicts, strict=True):
        of_reading.setdefault(part.reading, []).append(part_verdict)
    joined = {reading: _joined(claim, own) for reading, own in of_reading.items()}
    if len(set(joined.values())) == 1:
        return next(iter(joined.values()))
    return f"{BY_READING}: " + "; ".join(f"{kind} as {reading}" for reading, kind in joined.items())


def _joined(claim: Claim, verdicts: Sequence[str]) -> str:
    """Join the verdicts of the parts of one reading."""
    for kind in (FAILS, UNDECIDED, IN_LINE):
        for part_verdict in verdicts:
            if part_verdict.startswith(kind):
                return part_verdict
    if claim.unmeasured:
        return f"{IN_PART}: what is measured holds; not measured: {', '.join(claim.unmeasured)}"
    return HOLDS


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
        staged = [part for claim in CLAIMS if claim.needs == "staging" for part in claim.parts]
        variables = {str(part.arguments["variable"]) for part in staged}
        names = sorted(variables.intersection(read.columns))
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
        read[kind] = content
        digests[kind] = file_sha256(path)
    if (staging := read.pop("staging", None)) is not None and "obygaze12" in read:
        table, values = staging
        table.numbers((), read["obygaze12"])
        read["staging"] = read["obygaze12"], values
    findings: dict[str, list[Measured]] = {}
    for source, content in read.items():
        findings |= _findings([claim for claim in CLAIMS if claim.needs == source], content)
    rows = []
    part_rows = []
    for claim in CLAIMS:
        own = _part_rows(claim, findings.get(claim.name))
        part_rows += own
        rows.append(_claim_row(claim, own))
    blocks = []
    for paper, title in PAPERS.items():
        own = [row for row in part_rows if row["paper"] == paper]
        blocks.append(block(title, COLUMNS, own, _notes(paper, own)))
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
        answers=_answers(rows),
        data=pd.DataFrame(rows),
        record={"inputs": dict(sorted(digests.items()))},
    )


def _answers(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Count the verdicts on sentences of the papers, by whether the data are their own, and give ours."""
    kind_of = {row["claim"]: re.split("[:;]", str(row["verdict"]))[0] for row in rows}
    printed = [claim for claim in CLAIMS if claim.is_printed]
    own = Counter(kind_of[claim.name] for claim in printed if not claim.is_elsewhere)
    answers = [f"of {own.total()} sentences of the papers, on their own data: {_tally(own)}"]
    for needs in dict.fromkeys(claim.needs for claim in printed if claim.is_elsewhere):
        other = Counter(
            kind_of[claim.name] for claim in printed if claim.is_elsewhere and claim.needs == needs
        )
        answers.append(f"of {other.total()} more, on {DATA[needs]}: {_tally(other)}")
    ours = [f"of ours, {claim.name}: {kind_of[claim.name]}" for claim in CLAIMS if not claim.is_printed]
    return (*answers, *ours)


def _tally(decided: Mapping[str, int]) -> str:
    """Write how many sentences got each verdict."""
    counts = []
    for kind, n in decided.items():
        text = PLURAL.get(kind, kind) if n > 1 else kind
        counts.append(f"{n} {text}")
    return ", ".join(counts)


def _findings(tested: Sequence[Claim], content: Any) -> dict[str, list[Measured]]:
    """Measure the parts of claims on an input, and adjust their tests."""
    parts = [part for claim in tested for part in claim.parts]
    found = [getattr(measures, part.measure)(content, **part.arguments) for part in parts]
    adjusted = iter(holm([finding.p for finding in found]).tolist())
    measured = iter(found)
    findings = {}
    for claim in tested:
        findings[claim.name] = [replace(next(measured), p_holm=next(adjusted)) for _ in claim.parts]
    return findings


def _part_rows(claim: Claim, findings: Sequence[Measured] | None) -> list[dict[str, Any]]:
    """Lay out the parts of a claim, each with its number, its null and its verdict."""
    rows = []
    for index, part in enumerate(claim.parts):
        finding = findings[index] if findings else Measured()
        null = finding.null
        chance = _what_chance_gives(null)
        least, most = part.true_in
        decided = verdict(part, finding) if findings else f"not computed: needs {NEEDS[claim.needs]}"
        rows.append(
            {
                "claim": claim.name,
                "part": index + 1,
                "paper": claim.paper,
                "place": claim.place,
                "sentence": claim.sentence,
                "data": DATA[claim.needs],
                "is_elsewhere": claim.is_elsewhere,
                "statistic": _statistic(part),
                "true_from": least,
                "true_to": most,
                "value": finding.value,
                "low": finding.low,
                "high": finding.high,
                "p": finding.p,
                "p_holm": finding.p_holm,
                "n": finding.n,
                "unit": finding.unit,
                "null": f"{part.null}: {part.argued}" if part.argued else part.null,
                "chance": chance.mean,
                "chance_low": chance.low,
                "chance_high": chance.high,
                "planted": null.planted_text if null else "",
                "verdict": decided,
                "note": finding.note,
            }
        )
    return rows


def _statistic(part: Part) -> str:
    """Write what the number of a part is, in which reading of the sentence, and why it stands there."""
    notes = [f"read as {part.reading}"] if part.reading else []
    if part.beside:
        notes.append(part.beside)
    return f"{part.statistic} ({'; '.join(notes)})" if notes else part.statistic


def _what_chance_gives(null: Null | None) -> Interval:
    """Take the median of a null's draws and 95 % of them; nothing where several numbers are planted."""
    draws = np.empty(0)
    if null is not None and len(null.planted) < 2:
        draws = null.draws[np.isfinite(null.draws)]
    if not draws.size:
        return Interval(math.nan, math.nan, math.nan, 0, 0)
    low, middle, high = np.quantile(draws, [SIDE, 0.5, 1 - SIDE]).tolist()
    return Interval(middle, low, high, len(draws), 0)


def _claim_row(claim: Claim, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Lay out a claim: the number of the part that decides it, and the verdict on all of it."""
    verdicts = [str(part["verdict"]) for part in parts]
    is_computed = not verdicts[0].startswith("not computed")
    joined = verdict_of(claim, verdicts) if is_computed else verdicts[0]
    decisive = next((part for part in parts if part["verdict"] == joined), parts[0])
    notes = list(dict.fromkeys(part["note"] for part in parts if part["note"]))
    return {**decisive, "verdict": joined, "note": "; ".join(notes)}


def _notes(paper: str, parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write what stands below the table of a paper's parts."""
    notes = []
    for claim in CLAIMS:
        if claim.paper != paper:
            continue
        parts_of_claim = [part for part in parts if part["claim"] == claim.name]
        statistics = "; ".join(part["statistic"] for part in parts_of_claim)
        tested = f"tested on {DATA[claim.needs]}" if claim.is_elsewhere else f"on {DATA[claim.needs]}"
        whose = f", a finding of {claim.finding_of}" if claim.finding_of else ""
        notes.append(f'{claim.name}: "{claim.sentence}" ({claim.place}{whose}); {tested}; {statistics}')
        row = _claim_row(claim, parts_of_claim)
        if len(parts_of_claim) > 1 or claim.unmeasured:
            notes.append(f"{claim.name}, the sentence: {row['verdict']}")
        if row["note"]:
            notes.append(f"{claim.name}: {row['note']}")
    notes += [
        f'not tested: "{entry["sentence"]}" ({entry["place"]}); to decide it: {entry["decided_by"]}'
        for entry in OPEN
        if entry["paper"] == paper
    ]
    return notes


def _number(value: float, low: float, high: float, unit: str) -> str:
    if math.isnan(value):
        return NOTHING
    return f"{value:.3g}" if unit in measures.COUNTED else interval(value, low, high)


def _p(value: float) -> str:
    return NOTHING if math.isnan(value) else p_value(value)


def _chance(middle: float, low: float, high: float, planted: str, null: str) -> str:
    """Write what chance gives, the median with 95 % of its draws, or what was planted; and what was done."""
    if math.isnan(middle):
        return f"{planted}, {null}" if planted else null
    return f"{interval(middle, low, high)}, {null}"


COLUMNS: Sequence[Column] = (
    ("claim", ("claim", "part"), lambda claim, part: claim if part == 1 else f"{claim} ({part})"),
    ("place", "place", str),
    ("data", "is_elsewhere", lambda is_elsewhere: "not the paper's" if is_elsewhere else "the paper's"),
    ("number [95 %]", ("value", "low", "high", "unit"), _number),
    ("units", ("n", "unit"), lambda n, unit: f"{n:,} {unit}" if unit else NOTHING),
    ("chance, median [95 %]", ("chance", "chance_low", "chance_high", "planted", "null"), _chance),
    ("p", "p", _p),
    ("p (Holm)", "p_holm", _p),
    ("verdict", "verdict", str),
)
