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
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from msgspec import Struct

from obygaze_features.io import file_sha256
from obygaze_features.manifest import read_manifest, read_table
from obygaze_features.templates import packaged
from obygaze_models.evaluation import holm
from obygaze_models.report import NOTHING, Column, Report, block, interval, p_value
from obygaze_studies.claims import measures
from obygaze_studies.claims.measures import Measured
from obygaze_studies.claims.nulls import ONE_SIDED_LEVEL, Null
from obygaze_studies.errors import AuditError
from obygaze_studies.obygaze12.import_annotations import is_obygaze12

ALPHA = 0.05

_LISTED = packaged(__package__, "claims.toml")

VERDICT_RULE: str = _LISTED["rule"]
"""How verdicts are reached, in words: the first note of the report."""

NOTE_ON_MEDIAEVAL = (
    "of 003 (MediaEval 2015) no sentence makes a claim beyond the sizes of its data, which "
    "`obygaze manifest import mediaeval15` checks"
)

PAPERS: Mapping[str, str] = _LISTED["papers"]
"""Number of a paper, such as 001 -> its title."""

NEEDS: Mapping[str, str] = _LISTED["needs"]
"""What a claim is computed from, and where it comes from."""

DATA: Mapping[str, str] = _LISTED["data"]
"""What data that is."""


NO_NULL = "none"
CONSTANT_NULL = "constant"
"""What a `Part` has in place of a null for which nothing is drawn: no null at all, or a constant number."""

FAILS = "fails"
UNDECIDED = "undecided"
IN_LINE = "in line with the number"
IN_PART = "in part"
HOLDS = "holds"
BY_READING = "depends on how it is read"
"""Beginnings of verdicts; of a sentence's parts an earlier one decides before a later one."""

NOT_COMPUTED = "not computed"
"""Beginning of the verdict on a sentence whose data is not given."""

PLURAL = {FAILS: "fail", HOLDS: "hold", BY_READING: "depend on how they are read"}
"""Verdicts on several sentences, where their words are others."""


class Part(Struct, frozen=True, kw_only=True, rename={"least": "from", "most": "to"}):
    """A number, and the range of it that makes a part of a sentence true.

    Attributes
    ----------
    statistic : str
        What the number is, and of what.
    least, most : float
        The range that makes the part true, with these ends (closed bounds).
    above, below : float, optional
        Ends that are not in the range themselves (open bounds); they replace `least` and `most`.
    measure, arguments
        Function of `measures` from the input to a `Measured`, and what else it takes.
    null : str
        What the number is held against: the kind of the `Null` of its measure, CONSTANT_NULL or NO_NULL.
    argued : str
        Why a constant is what chance gives.
    says_alike : bool
        Whether the part says that things do not differ.
    reading : str
        For a sentence that can be read in several ways, the reading that the part takes: "... as <reading>".
    added_because : str
        For a number that the sentence does not name: why it is measured. Such a number alone does not make
        the sentence hold or fail. Empty for a number that the sentence names.
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
    says_alike: bool = False
    reading: str = ""
    added_because: str = ""

    @property
    def true_range(self) -> tuple[float, float]:
        """The lowest and highest number that make the part true.

        Beside an open bound (`above`, `below`) this is the next float inside the range.
        """
        least = self.least
        most = self.most
        if self.above is not None:
            least = math.nextafter(self.above, math.inf)
        if self.below is not None:
            most = math.nextafter(self.below, -math.inf)
        return least, most


class Claim(Struct, frozen=True, kw_only=True, rename={"parts": "part"}):
    """A sentence of a paper as a list of parts.

    Attributes
    ----------
    name, paper, place, sentence : str
        The place is the section, and the page where the paper's text shows it.
    needs : str
        Which data it needs: a key of `NEEDS`.
    parts : tuple of Part
    unmeasured : tuple of str
        Statements of the sentence that are not measured.
    is_elsewhere : bool
        Whether it is tested on other data than the paper's.
    finding_of : str
        Author of the finding, if the paper cites it; empty if it is the paper's.
    is_printed : bool
        Whether it is a sentence of a paper; otherwise it is ours, on a question that a paper leaves open.
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
    """Decide whether a part of a sentence holds, fails, is in line with the number, or is undecided.

    If the sentence does not name the number (`Part.added_because`), the number is too weak a reason to say
    that the part holds or fails: the part is then at best in line with it, and at worst undecided.

    Parameters
    ----------
    part
        The part of a sentence.
    finding
        The number that was measured for it.
    """
    decided = _verdict_by_range(part, finding)
    if part.added_because and decided == HOLDS:
        return f"{IN_LINE}, which the sentence does not name"
    if part.added_because and decided == FAILS:
        return UNDECIDED
    return decided


def _verdict_by_range(part: Part, finding: Measured) -> str:
    """Decide a part by its number's test, interval and null, as if the sentence named the number.

    The first of these rules that applies decides:

    1. The number's test is not significant: undecided. This rule does not apply to a part that says that
       things are alike and whose interval lies inside the true range, because no test can show equality.
    2. The interval lies outside the range that makes the part true: fails.
    3. The interval lies partly inside and partly outside: undecided.
    4. Nothing is drawn by chance to compare with (a counted number, a constant null): holds.
    5. Chance rarely gives a number as far inside the range: holds.
    6. Chance often does: in line with the number.
    """
    least, most = part.true_range
    low = finding.low
    high = finding.high
    is_counted = finding.unit in measures.COUNTED_UNITS
    if is_counted:  # nothing was sampled, so the number has no uncertainty
        low = finding.value
        high = finding.value
    is_inside = least <= low and high <= most
    is_outside = high < least or low > most

    needs_no_test = part.says_alike and is_inside
    if finding.p_holm >= ALPHA and not needs_no_test:
        return UNDECIDED
    if is_outside:
        return FAILS
    if not is_inside:
        return UNDECIDED
    if is_counted or part.null == CONSTANT_NULL or finding.null is None:
        return HOLDS
    p_by_chance = finding.null.p(least, most)
    if p_by_chance < ONE_SIDED_LEVEL:
        return HOLDS
    return f"{IN_LINE}; {finding.null.as_clause}"


def verdict_of(claim: Claim, verdicts: Sequence[str]) -> str:
    """Decide a sentence from the verdicts of its parts, one each.

    A sentence holds if all its parts hold and nothing that it says is unmeasured. If a sentence can be read
    in several ways, each part belongs to one reading (`Part.reading`). If all readings get the same verdict,
    this is the verdict on the sentence; otherwise the verdict of each reading is named.
    """
    part_verdicts_of: dict[str, list[str]] = {}  # reading -> the verdicts of its parts
    for part, part_verdict in zip(claim.parts, verdicts, strict=True):
        part_verdicts_of.setdefault(part.reading, []).append(part_verdict)

    verdict_by_reading = {}
    for reading, part_verdicts in part_verdicts_of.items():
        verdict_by_reading[reading] = _verdict_of_reading(claim, part_verdicts)

    different_verdicts = set(verdict_by_reading.values())
    if len(different_verdicts) == 1:
        return different_verdicts.pop()
    texts = [f"{decided} as {reading}" for reading, decided in verdict_by_reading.items()]
    return f"{BY_READING}: {'; '.join(texts)}"


def _verdict_of_reading(claim: Claim, verdicts: Sequence[str]) -> str:
    """Decide one reading of a sentence from the verdicts of its parts: the worst verdict decides.

    A verdict is a text that begins with its kind (such as "fails") and may go on with details. If all parts
    hold, the sentence still holds only in part where it says more than was measured.
    """
    for kind in (FAILS, UNDECIDED, IN_LINE):  # from the worst on
        for part_verdict in verdicts:
            if part_verdict.startswith(kind):
                return part_verdict
    if claim.unmeasured:
        return f"{IN_PART}: what is measured holds; not measured: {', '.join(claim.unmeasured)}"
    return HOLDS


# --- inputs
# ---------------------------------------------------------------------------


NAME_COLUMNS = ("clip_id", "movie", "image_id", "subject")
"""Columns of names. Their cells stay as they are: `NA`, `nan` and `1,5` may be names."""

MISSING_NUMBERS = ["", "nan", "NaN"]
"""What stands in other columns for a missing value."""


def _data_frame(table: Any) -> pd.DataFrame:
    """Convert a table (of `read_table`) to a data frame.

    Cells of columns of names (`NAME_COLUMNS`) stay as written. In other columns an empty cell, "nan" and
    "NaN" (`MISSING_NUMBERS`) are missing values, and nothing else is: pandas' own list of missing values has
    `NA`, which is also a code.
    """
    missing = {column: MISSING_NUMBERS for column in table.columns if column not in NAME_COLUMNS}
    csv_text = table.as_csv(texts=NAME_COLUMNS)  # with decimal points in the other columns
    return pd.read_csv(StringIO(csv_text), keep_default_na=False, na_values=missing)


class StagingTable(NamedTuple):
    """A table of staging, and the variables of its clips: a row per clip id, a column per variable."""

    table: Any
    variables: pd.DataFrame


class ClaimInput(NamedTuple):
    """A file that claims are tested on: what it is, a key of `NEEDS`, and its manifest or tables."""

    kind: str
    content: Any


COLUMNS_OF_INPUT: Mapping[str, frozenset[str]] = {
    "words": frozenset({"image_id", "subject", "emotion", "condition", "n_captions"}),
    "staging": frozenset({"clip_id", "movie", "cuts"}),
    "predictions": frozenset({"model", "task", "movie", "label", "score"}),
}
"""Kind of an input -> columns that it has and no other input has together."""


def read_input(path: Path) -> ClaimInput:
    """Read a file that claims are tested on, and recognise by its columns which one it is.

    A table with none of the sets of columns in `COLUMNS_OF_INPUT` is read as a manifest.

    Raises
    ------
    ManifestError
        The file is no table.
    AuditError
        It is none of the inputs that claims need.
    """
    table = read_table(path, (), named=False)
    columns = set(table.columns)
    if columns >= COLUMNS_OF_INPUT["words"]:
        return ClaimInput("words", _data_frame(table))
    if columns >= COLUMNS_OF_INPUT["staging"]:
        return ClaimInput("staging", StagingTable(table, _staging_values(table)))
    if columns >= COLUMNS_OF_INPUT["predictions"]:
        return ClaimInput("predictions", _read_predictions(path, table))
    manifest = read_manifest(path)
    if is_obygaze12(manifest):
        return ClaimInput("obygaze12", manifest)
    if manifest.codebook.name == "mobygaze":
        return ClaimInput("mobygaze", manifest)
    needed_files = [text for text in NEEDS.values() if text]  # claims on printed numbers need none
    raise AuditError(f"{path}: expected one of: {'; '.join(needed_files)}")


def _staging_values(table: Any) -> pd.DataFrame:
    """Read the variables of staging that claims name: a row per clip id, a column per variable.

    Variables that the table lacks are left out; claims on them then find no clip (`measures.staged`).
    """
    variables: set[str] = set()
    for claim in CLAIMS:
        if claim.needs == "staging":
            variables.update(str(part.arguments["variable"]) for part in claim.parts)
    names = sorted(variables.intersection(table.columns))
    values_of_clip = table.numbers(names)  # clip id -> [n_names]
    return pd.DataFrame.from_dict(values_of_clip, orient="index", columns=names)


def _read_predictions(path: Path, table: Any) -> pd.DataFrame:
    """Convert a table of models' predictions to a data frame.

    Raises
    ------
    AuditError
        It lacks one of the four tasks that are compared (`measures.hard_negatives`). The message names the
        file by `path`.
    """
    predictions = _data_frame(table)
    needed_tasks = {
        measures.HARD_ON_ALL,
        measures.HARD_ON_EASY,
        measures.EASY_ON_ALL,
        measures.EASY_ON_EASY,
    }
    missing = needed_tasks - set(predictions["task"])
    if missing:
        raise AuditError(f"{path}: no predictions of task {min(missing)}; {NEEDS['predictions']} has them")
    return predictions


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
    inputs, digests = _read_inputs(files)

    # Measure the claims that the files decide.
    findings_of_claim: dict[str, list[Measured]] = {}  # name of a claim -> the finding of each part
    for kind, content in _inputs_of_measures(inputs).items():
        claims_of_kind = [claim for claim in CLAIMS if claim.needs == kind]
        findings_of_claim |= _measure_parts(claims_of_kind, content)

    # Decide all claims; those without findings get the verdict "not computed".
    claim_rows = []
    part_rows = []
    for claim in CLAIMS:
        rows_of_claim = _part_rows(claim, findings_of_claim.get(claim.name))
        part_rows += rows_of_claim
        claim_rows.append(_claim_row(claim, rows_of_claim))

    # Print a table for each paper.
    blocks = []
    for paper, title in PAPERS.items():
        rows_of_paper = [row for row in part_rows if row["paper"] == paper]
        notes = _notes_of_paper(paper, rows_of_paper)
        blocks.append(block(title, COLUMNS, rows_of_paper, notes))
    return Report(
        name="claims",
        title="Sentences of the papers, tested on released data",
        notes=(VERDICT_RULE, NOTE_ON_MEDIAEVAL),
        blocks=tuple(blocks),
        answers=_count_verdicts(claim_rows),
        data=pd.DataFrame(claim_rows),
        record={"inputs": dict(sorted(digests.items()))},
    )


class _Inputs(NamedTuple):
    """The contents of the files that claims are tested on, and the files' digests, by kind of input."""

    contents: dict[str, Any]
    digests: dict[str, str]


def _read_inputs(files: Sequence[Path]) -> _Inputs:
    """Read the files that claims are tested on (`read_input`), and compute their digests.

    Raises
    ------
    AuditError
        A file is none of the inputs, or two are of the same kind, such as two manifests of ObyGaze12.
    """
    inputs = _Inputs({}, {})
    for path in files:
        kind, content = read_input(path)
        if kind in inputs.contents:
            raise AuditError(f"{path}: a second file of {NEEDS[kind]}: give one")
        inputs.contents[kind] = content
        inputs.digests[kind] = file_sha256(path)
    return inputs


def _inputs_of_measures(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input that the functions of `measures` take, by what a claim needs (`Claim.needs`).

    It is the content of a file, with two exceptions:

    - Claims on the numbers that a paper prints need no file: their input is None, and always there.
    - Claims on staging (how films are made: cuts, camera, ...) need the clips of ObyGaze12 as well. Without
      this manifest, a table of staging decides nothing and is left out.

    Parameters
    ----------
    contents
        Kind of input -> the content of its file.

    Raises
    ------
    ManifestError
        A row of the table of staging contradicts its clip.
    """
    without_staging = {need: content for need, content in contents.items() if need != "staging"}
    input_of_need: dict[str, Any] = {"printed": None, **without_staging}
    if "staging" in contents and "obygaze12" in contents:
        staging: StagingTable = contents["staging"]
        manifest = contents["obygaze12"]
        # No numbers are read here: this raises an error if a row of the table contradicts its clip.
        staging.table.numbers(names=(), clips=manifest)
        input_of_need["staging"] = (manifest, staging.variables)
    return input_of_need


def _count_verdicts(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Write how many sentences got each verdict, in three groups.

    1. The papers' sentences that are tested on data of their own paper: one line counts them all.
    2. The papers' sentences that are tested on other data: one line for each kind of data.
    3. Sentences of our own: one line each.

    Parameters
    ----------
    rows
        A row for each claim, with its verdict.
    """
    verdict_of_claim = {}
    for row in rows:
        verdict_text = str(row["verdict"])  # details follow behind a colon or semicolon
        verdict_alone = re.split("[:;]", verdict_text)[0]
        verdict_of_claim[row["claim"]] = verdict_alone
    on_own_data: Counter[str] = Counter()
    on_other_data: dict[str, Counter[str]] = {}  # key of `DATA` -> numbers of sentences by verdict
    lines_of_ours = []
    for claim in CLAIMS:
        decided = verdict_of_claim[claim.name]
        if not claim.is_printed:
            lines_of_ours.append(f"of ours, {claim.name}: {decided}")
        elif claim.is_elsewhere:
            on_other_data.setdefault(claim.needs, Counter())[decided] += 1
        else:
            on_own_data[decided] += 1

    lines = [f"of {on_own_data.total()} sentences of the papers, on their own data: {_tally(on_own_data)}"]
    for needs, verdicts in on_other_data.items():
        lines.append(f"of {verdicts.total()} more, on {DATA[needs]}: {_tally(verdicts)}")
    return (*lines, *lines_of_ours)


def _tally(decided: Mapping[str, int]) -> str:
    """Write numbers of sentences by verdict: `3 hold, 1 fails`."""
    counts = []
    for kind, n in decided.items():
        text = kind
        if n > 1:
            text = PLURAL.get(kind, kind)  # some verdicts have the same words for several sentences
        counts.append(f"{n} {text}")
    return ", ".join(counts)


def _measure_parts(tested: Sequence[Claim], content: Any) -> dict[str, list[Measured]]:
    """Measure the parts of claims on an input: name of a claim -> the finding of each part.

    Each part names its measure, a function of the module `measures`. The p-values of all tests on the input
    are adjusted together (Holm).

    Parameters
    ----------
    tested
        All claims that need this input.
    content
        The input, as `_inputs_of_measures` gives it.
    """
    names: list[str] = []  # of each finding, the name of its claim
    findings: list[Measured] = []
    prepared: dict[str, Any] = {}  # measure -> what it reads, if that is not the content itself
    for claim in tested:
        for part in claim.parts:
            if part.measure in measures.PREPARED and part.measure not in prepared:
                prepared[part.measure] = measures.PREPARED[part.measure](content)
            measure = getattr(measures, part.measure)
            names.append(claim.name)
            findings.append(measure(prepared.get(part.measure, content), **part.arguments))

    adjusted = holm([finding.p for finding in findings]).tolist()
    findings_of_claim: dict[str, list[Measured]] = {}
    for name, finding, p in zip(names, findings, adjusted, strict=True):
        findings_of_claim.setdefault(name, []).append(replace(finding, p_holm=p))
    return findings_of_claim


def _part_rows(claim: Claim, findings: Sequence[Measured] | None) -> list[dict[str, Any]]:
    """Make a row for each part of a claim, with its number, its null and its verdict.

    The null says what the number would be if the sentence were untrue. The columns are, in this order:

    - `claim` to `is_elsewhere`: what the paper says, where, and which data decide it;
    - `statistic` to `true_to`: what was computed, and in which range it makes the part true;
    - `value` to `unit`: the number, with its interval and its test;
    - `null`: the null's name; if it is a constant, also why chance gives this number (`Part.argued`);
    - `chance` to `chance_high`: the median of the null's draws, and the range of most of them;
    - `planted`: the means of the null's data, if these were planted (`Null.planted`);
    - `verdict` and `note`.

    Parameters
    ----------
    claim
        The claim.
    findings
        The finding of each part; None where the claim's file is not given.
    """
    rows = []
    for index, part in enumerate(claim.parts):
        if findings:
            finding = findings[index]
            verdict_on_part = verdict(part, finding)
        else:
            finding = Measured()  # all numbers are NaN
            verdict_on_part = f"{NOT_COMPUTED}: needs {NEEDS[claim.needs]}"
        null = finding.null
        chance, chance_low, chance_high = _median_and_range(null)
        least, most = part.true_range
        rows.append(
            {
                "claim": claim.name,
                "part": index + 1,
                "paper": claim.paper,
                "place": claim.place,
                "sentence": claim.sentence,
                "data": DATA[claim.needs],
                "is_elsewhere": claim.is_elsewhere,
                "statistic": _describe_statistic(part),
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
                "chance": chance,
                "chance_low": chance_low,
                "chance_high": chance_high,
                "planted": null.planted_text if null else "",
                "verdict": verdict_on_part,
                "note": finding.note,
            }
        )
    return rows


def _describe_statistic(part: Part) -> str:
    """Write what the number of a part is.

    Behind it, in brackets, stand the part's reading of an ambiguous sentence, and the reason why a number was
    added that the sentence does not name.
    """
    notes = []
    if part.reading:
        notes.append(f"read as {part.reading}")
    if part.added_because:
        notes.append(part.added_because)
    if not notes:
        return part.statistic
    return f"{part.statistic} ({'; '.join(notes)})"


def _median_and_range(null: Null | None) -> tuple[float, float, float]:
    """Return the median of a null's draws, and the lower and upper end of the central 95 % of them.

    All three are NaN if there is no null, or no draw is finite. They are also NaN if the data sets of the
    null were made with several means (`Null.planted`), such as 0.4 and 0.6: the draws lie around these, and
    the median would lie between them, where no draw is.
    """
    undefined = (math.nan, math.nan, math.nan)
    if null is None:
        return undefined
    has_one_centre = len(null.planted) <= 1
    draws = null.draws[np.isfinite(null.draws)]
    if not has_one_centre or not draws.size:
        return undefined

    # The central 95 % lie between the quantiles .025 (`ONE_SIDED_LEVEL`) and .975.
    low, median, high = np.quantile(draws, [ONE_SIDED_LEVEL, 0.5, 1 - ONE_SIDED_LEVEL]).tolist()
    return median, low, high


def _claim_row(claim: Claim, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Make the row of a claim, a sentence of a paper, from the rows of its parts.

    The row has the verdict on the whole sentence and the notes of all parts. All other columns are those of
    one part: the first that has the same verdict as the sentence, or else the first of all.
    """
    verdicts = [str(part["verdict"]) for part in parts]
    is_computed = not verdicts[0].startswith(NOT_COMPUTED)  # if a file is missing, it is for all parts
    verdict_on_sentence = verdict_of(claim, verdicts) if is_computed else verdicts[0]

    decisive_parts = [part for part in parts if part["verdict"] == verdict_on_sentence]
    shown_part = decisive_parts[0] if decisive_parts else parts[0]
    notes = list(dict.fromkeys(part["note"] for part in parts if part["note"]))
    return {**shown_part, "verdict": verdict_on_sentence, "note": "; ".join(notes)}


def _notes_of_paper(paper: str, parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the notes below a paper's table.

    Each tested sentence is quoted with its place, its data and its statistics, then the verdict on it if it
    has several parts. The sentences that were not tested follow, with what would decide them.

    Parameters
    ----------
    paper
        The paper.
    parts
        The rows of its table.
    """
    notes = []
    for claim in CLAIMS:
        if claim.paper == paper:
            parts_of_claim = [part for part in parts if part["claim"] == claim.name]
            notes += _notes_of_claim(claim, parts_of_claim)
    for entry in OPEN:
        if entry["paper"] == paper:
            sentence = f'"{entry["sentence"]}" ({entry["place"]})'
            notes.append(f"not tested: {sentence}; to decide it: {entry['decided_by']}")
    return notes


def _notes_of_claim(claim: Claim, parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write the notes on a tested sentence, from the rows of its parts.

    The first has the sentence, where it stands, the data that it was tested on, and what was computed. If the
    sentence has several parts, or one that nothing measures, its verdict as a whole follows; then what is to
    be known beside the numbers.
    """
    statistics = "; ".join(part["statistic"] for part in parts)
    data = f"on {DATA[claim.needs]}"
    if claim.is_elsewhere:  # the data are not those that the sentence is about
        data = f"tested {data}"
    origin = f", a finding of {claim.finding_of}" if claim.finding_of else ""
    notes = [f'{claim.name}: "{claim.sentence}" ({claim.place}{origin}); {data}; {statistics}']
    row_of_claim = _claim_row(claim, parts)
    has_verdict_of_its_own = len(parts) > 1 or bool(claim.unmeasured)
    if has_verdict_of_its_own:
        notes.append(f"{claim.name}, the sentence: {row_of_claim['verdict']}")
    if row_of_claim["note"]:
        notes.append(f"{claim.name}: {row_of_claim['note']}")
    return notes


def _number(value: float, low: float, high: float, unit: str) -> str:
    """Write the cell of a measured number: the number with its 95 % interval; NaN as a dash.

    A counted number (`measures.COUNTED_UNITS`) is written alone: nothing was sampled, so it has no interval.
    """
    if math.isnan(value):
        return NOTHING
    if unit in measures.COUNTED_UNITS:
        return f"{value:.3g}"
    return interval(value, low, high)


def _p(value: float) -> str:
    """Write a p-value; a dash for NaN."""
    if math.isnan(value):
        return NOTHING
    return p_value(value)


def _chance(median: float, low: float, high: float, planted: str, null: str) -> str:
    """Write the cell that says what the number would be if the sentence is untrue, and why (the null's name).

    A null that draws data sets in which the sentence is untrue gives the median of their numbers, and the
    range of 95 % of them. A null that plants one of several means gives these. Else there is the name alone,
    such as a constant.

    Parameters
    ----------
    median, low, high : float
        Of the null's draws; NaN if there are none.
    planted : str
        The means that the null plants (`Null.planted_text`); empty if it plants none.
    null : str
        Its name (`Part.null`).
    """
    if not math.isnan(median):
        return f"{interval(median, low, high)}, {null}"
    if planted:
        return f"{planted}, {null}"
    return null


def _claim_and_part(claim: str, part: int) -> str:
    """Write the first cell of a part's row: "name" for a claim's first part, "name (2)" for its second."""
    if part == 1:
        return claim
    return f"{claim} ({part})"


def _whose_data(is_elsewhere: bool) -> str:
    """Write whether a claim is tested on data of its own paper."""
    return "not the paper's" if is_elsewhere else "the paper's"


def _units(n: int, unit: str) -> str:
    """Write a number of units, such as `11 films`; a dash where nothing was measured."""
    return f"{n:,} {unit}" if unit else NOTHING


COLUMNS: Sequence[Column] = (
    ("claim", ("claim", "part"), _claim_and_part),
    ("place", "place", str),
    ("data", "is_elsewhere", _whose_data),
    ("number [95 %]", ("value", "low", "high", "unit"), _number),
    ("units", ("n", "unit"), _units),
    ("chance, median [95 %]", ("chance", "chance_low", "chance_high", "planted", "null"), _chance),
    ("p", "p", _p),
    ("p (Holm)", "p_holm", _p),
    ("verdict", "verdict", str),
)
