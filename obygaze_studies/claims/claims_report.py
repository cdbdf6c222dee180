"""Test sentences of the five papers that released data can decide, with interval, unit and verdict.

Each sentence is turned into a number and the range of it that makes the sentence true (`Claim.true_in`). One
rule decides: a sentence *holds* if the number's 95 % interval lies inside the range, and *fails* if it lies
outside; it is *undecided* if the interval has values of both sides, or if a test stands beside the number and
its p, adjusted by Holm over the tests on the same file, is not below .05. A test cannot show that things are
alike: a sentence that says so holds by its interval alone. A number counted over all there is (every clip of
a corpus, every model of a printed table) has no interval and is exact.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from obygaze_features.io import file_sha256
from obygaze_features.manifest import DEFAULT_WINDOW_S, is_obygaze12, read_manifest
from obygaze_models.evaluation import NAN, holm
from obygaze_models.report import NOTHING, Block, Report, interval, number
from obygaze_studies.caption_words import EMOTION_WORDS
from obygaze_studies.claims import measures
from obygaze_studies.claims.measures import Finding
from obygaze_studies.errors import AuditError

ALPHA = 0.05

MARGIN = 0.05
"""Largest difference, on a scale from 0 to 1, that is "approximately the same"; the papers state none."""

MIN_TOTAL = 100
"""Emotion words with fewer occurrences in all captions are left out (004, section 4.3)."""

INTENDED = {"AN": "anger", "SA": "sadness", "HA": "happiness"}
"""Emotion of the first two letters of a picture's `emotion` in the released counts of words."""

PAPERS = {
    "001": "Tores et al., CVPR 2024 (001; 000 is its arXiv version 2401.13296, whose pages are given)",
    "002": "Sabir and Padró, Gender Score (002, a poster)",
    "004": "Wolfe et al., FAccT 2023 (004)",
}

NEEDS = {
    "obygaze12": "the manifest of ObyGaze12 (obygaze manifest import obygaze12)",
    "mobygaze": "the manifest of MObyGaze's segments (obygaze manifest import mobygaze)",
    "predictions": "predictions-strict-*.csv of `obygaze paper table2` or `paper all` on ObyGaze12",
    "words": "counts of emotion words, a row for each image (released with 004)",
    "printed": "",
}
"""What a claim is computed from, and where it comes from."""

RULE = (
    "verdict: holds if the 95 % interval lies inside the range that makes the sentence true, fails if "
    "outside, else undecided; undecided too if p (Holm over the tests on a file) is .05 or more; that "
    "things are alike holds by the interval alone; without interval: counted over all there is"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper as a range of a number.

    Attributes
    ----------
    name, paper, place, sentence : str
        The place is the section, and the page where the paper's text shows it.
    statistic : str
        What the number is.
    true_in : tuple of float
        The closed range that makes the sentence true.
    needs : str
        Of `NEEDS`.
    compute : callable
        Input to `Finding`.
    alike : bool
        Whether the sentence says that things do not differ.
    """

    name: str
    paper: str
    place: str
    sentence: str
    statistic: str
    true_in: tuple[float, float]
    needs: str
    compute: Callable[[Any], Finding]
    alike: bool = False


def verdict(claim: Claim, finding: Finding, p_holm: float) -> str:
    """Return holds, fails or undecided, by the rule of this module."""
    low, high = (finding.value, finding.value) if math.isnan(finding.low) else (finding.low, finding.high)
    least, most = claim.true_in
    inside, outside = least <= low and high <= most, high < least or low > most
    if p_holm >= ALPHA and not (claim.alike and inside):
        return "undecided"
    return "holds" if inside else "fails" if outside else "undecided"


# --- inputs
# ---------------------------------------------------------------------------


def read_input(path: Path) -> tuple[str, Any]:
    """Recognise a file by its columns and read it: (a name of `NEEDS`, manifest or table).

    Raises
    ------
    AuditError
        The file is none of them.
    """
    header = pd.read_csv(path, nrows=0).columns if path.is_file() else ()
    if {"image_id", "subject", "emotion", "condition", "n_captions"} <= set(header):
        return "words", pd.read_csv(path)
    if {"model", "task", "movie", "label", "score"} <= set(header):
        table = pd.read_csv(path)
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


# --- the sentences
# ---------------------------------------------------------------------------

ABOVE = (math.nextafter(0, 1), math.inf)
BELOW_HALF = (0.0, math.nextafter(0.5, 0))

_ANGRY, _SAD = (
    tuple(f"emotion_{emotion}_{level}" for level in ("high", "low")) for emotion in ("angry", "sad")
)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "same-rate",
        "001",
        "3.4, p. 6",
        "every concept is approximately annotated with the same rate throughout the Hard Negative, Not Sure "
        "and Sure levels",
        f"share of the marks of HN on other concepts than those of S (same: {MARGIN:g} at most)",
        (0.0, MARGIN),
        "obygaze12",
        measures.same_rate,
        alike=True,
    ),
    Claim(
        "rising",
        "001",
        "3.4, p. 6",
        "the average number of concepts annotated per clip increases with the level of objectification",
        "visual concepts per clip, S less HN",
        ABOVE,
        "obygaze12",
        measures.rising,
    ),
    Claim(
        "rising-annotators",
        "001",
        "3.4, p. 6",
        "this trend is observable for every single annotator",
        "visual concepts per segment, S less HN: the annotator with the lowest interval",
        ABOVE,
        "mobygaze",
        measures.rising_by_annotator,
    ),
    Claim(
        "compositional",
        "001",
        "3.4, p. 6",
        "objectification is a compositional process",
        "share of S among HN, NS and S clips, with several concepts less with one",
        ABOVE,
        "obygaze12",
        measures.compositional,
    ),
    Claim(
        "clothing-alone",
        "001",
        "3.4, p. 6",
        "a single element, such as clothing on its own, is not sufficient",
        "share of S among HN and S clips with Clothing alone (not sufficient: below one half)",
        BELOW_HALF,
        "obygaze12",
        measures.clothing_alone,
    ),
    Claim(
        "sure-share",
        "001",
        "3.4, p. 6",
        "The Sure category is the least represented with 16%",
        "share of S clips (16 % when rounded)",
        (0.155, math.nextafter(0.165, 0)),
        "obygaze12",
        measures.share_of_sure,
    ),
    Claim(
        "any-visual",
        "001",
        "4.2",
        "every clip annotated with a level of objectification S, NS or HN is also annotated with the "
        "presence of instances of the eight concepts",
        "share of HN, NS and S clips with a visual concept",
        (1.0, 1.0),
        "obygaze12",
        measures.any_visual,
    ),
    Claim(
        "test-share",
        "001",
        "App. 8.2",
        "F_data is 23% [...] for test sets EN vs. S",
        "share of S in the released test fold of EN vs S (23 % when rounded)",
        (0.225, math.nextafter(0.235, 0)),
        "obygaze12",
        measures.released_share,
    ),
    Claim(
        "hard-negatives",
        "001",
        "4.1",
        "the inclusion of Hard Negative examples improves the classification results",
        "AP of the MLP on films left out, S against EN and HN: trained against HN less against EN",
        ABOVE,
        "predictions",
        measures.hard_negatives,
    ),
    Claim(
        "length",
        "001",
        "not printed",
        "(a confound to exclude) the length of a clip does not tell its level",
        f"AUC of the number of shots alone, S against EN and HN (does not: within {MARGIN:g} of .5)",
        (0.5 - MARGIN, 0.5 + MARGIN),
        "obygaze12",
        measures.shots_tell,
        alike=True,
    ),
    Claim(
        "overlooked",
        "001",
        "App. 7.2",
        "most cases of initial disagreement were scenes that some annotators actually overlooked",
        f"share of windows of {DEFAULT_WINDOW_S:g} s with two labels that one of two experts left at EN",
        (math.nextafter(0.5, 1), 1.0),
        "mobygaze",
        measures.overlooked,
    ),
    Claim(
        "thresholds",
        "001",
        "App. 7.2",
        "As the threshold increases, the numbers of [...] Sure and Not Sure decrease while those for Easy "
        "and Hard Negative increase",
        "change in windows a film from threshold .1 to .4, in the printed direction: the level with the "
        "lowest interval",
        ABOVE,
        "mobygaze",
        measures.thresholds,
    ),
    Claim(
        "without-unsure",
        "001",
        "3.4, p. 6",
        "Not considering the clips annotated Not Sure (NS), [...] the IAA increases",
        "gamma without NS less gamma of all windows",
        ABOVE,
        "mobygaze",
        measures.without_unsure,
    ),
    Claim(
        "similar-score",
        "002",
        "p. 1, Qualitative Results",
        "our score has similar results (bias ratio) to the existing Object Gender Co-Occ approach",
        f"mean absolute difference of the printed ratios over four objects (similar: {MARGIN:g} at most)",
        (0.0, MARGIN),
        "printed",
        measures.alike_scores,
        alike=True,
    ),
    Claim(
        "not-all-objects",
        "002",
        "p. 1, Conclusion",
        "not all objects have a strong gender bias",
        "printed co-occurrence ratio towards man of the most balanced object (not strong: .4 to .6)",
        (0.4, 0.6),
        "printed",
        measures.balanced_object,
        alike=True,
    ),
    Claim(
        "anger-large",
        "004",
        "5.1",
        "Large (> 0.80), significant effect sizes are obtained for both the high and low anger conditions "
        "for six of the nine models",
        "models of Table 1 with a starred effect above .80",
        (6, 6),
        "printed",
        measures.models_with(_ANGRY, 0.80, starred=True),
    ),
    Claim(
        "sadness-medium",
        "004",
        "5.1",
        "at least medium (> 0.50), significant effect sizes in five models in the high and low sadness "
        "conditions",
        "models of Table 1 with a starred effect above .50",
        (5, 5),
        "printed",
        measures.models_with(_SAD, 0.50, starred=True),
    ),
    Claim(
        "anger-positive",
        "004",
        "5.1",
        "Effect sizes are positive [...] for every model in the anger conditions",
        "models of Table 1 with an effect above 0",
        (9, 9),
        "printed",
        measures.models_with(_ANGRY, 0.0, starred=False),
    ),
    Claim(
        "sadness-positive",
        "004",
        "5.1",
        "and for eight models in the sadness conditions",
        "models of Table 1 with an effect above 0",
        (8, 8),
        "printed",
        measures.models_with(_SAD, 0.0, starred=False),
    ),
    *(
        Claim(
            f"sex-{profession}",
            "004",
            "1",
            f"Significant effect sizes [...] in {words} of nine models for {profession.title()}",
            "models of Table 2 with a starred positive effect",
            (n, n),
            "printed",
            measures.models_with((f"sex_{profession}",), 0.0, starred=True),
        )
        for profession, words, n in (
            ("business", "eight", 8),
            ("medicine", "seven", 7),
            ("science", "three", 3),
        )
    ),
    *(
        Claim(
            f"words-{emotion}",
            "004",
            "1",
            "words describing emotion occur less than 50% as frequently for Objectified images than for "
            "Nonobjectified images",
            f"rate of the words of {emotion} on faces meant to show it, Objectified over Nonobjectified",
            BELOW_HALF,
            "words",
            measures.words_ratio(emotion),
        )
        for emotion in EMOTION_WORDS
    ),
    Claim(
        "anger-rare",
        "004",
        "5.3",
        "In both the high and low emotion conditions, words denoting anger occur less than once per 1,000 "
        "captions generated for Objectified individuals displaying anger",
        "words of anger per 1,000 captions: the condition with more",
        (0.0, math.nextafter(1, 0)),
        "words",
        measures.words_rate("anger"),
    ),
)


def claims_report(inputs: Mapping[str, tuple[str, Any]]) -> Report:
    """Test every claim whose data are given, and list the others with what they need.

    Parameters
    ----------
    inputs : mapping of str to tuple
        Of the names of `NEEDS`: SHA-256 of a file, and what `read_input` reads of it.
    """
    findings = {
        claim.name: claim.compute(None if claim.needs == "printed" else inputs[claim.needs][1])
        for claim in CLAIMS
        if claim.needs == "printed" or claim.needs in inputs
    }
    adjusted: dict[str, float] = {}
    for source in NEEDS:
        tested = [claim.name for claim in CLAIMS if claim.needs == source and claim.name in findings]
        values = holm([findings[name].p for name in tested])
        adjusted |= dict(zip(tested, values.tolist(), strict=True))
    rows = [_row(claim, findings.get(claim.name), adjusted.get(claim.name, NAN)) for claim in CLAIMS]
    data = pd.DataFrame(rows)
    blocks = []
    for paper, title in PAPERS.items():
        own = [row for row in rows if row["paper"] == paper]
        notes = [f'{row["claim"]}: "{row["sentence"]}" ({row["place"]}); {row["statistic"]}' for row in own]
        notes += [f"{row['claim']}: {row['note']}" for row in own if row["note"]]
        blocks.append(
            Block(
                title,
                ("claim", "place", "number [95 %]", "units", "p", "p (Holm)", "verdict"),
                tuple(_cells(row) for row in own),
                tuple(notes),
            )
        )
    return Report(
        name="claims",
        title="Sentences of the papers, tested on released data",
        notes=(
            RULE,
            (
                "of 003 (MediaEval 2015) no sentence makes a claim beyond the sizes of its data, which "
                "`obygaze manifest import mediaeval15` checks"
            ),
        ),
        blocks=tuple(blocks),
        data=data,
        record={"inputs": {name: digest for name, (digest, _) in sorted(inputs.items())}},
    )


def read_inputs(paths: Sequence[Path]) -> dict[str, tuple[str, Any]]:
    """Read the inputs of `claims_report` from files, each recognised by its columns.

    Raises
    ------
    AuditError
        A file is not an input, or two are of the same kind.
    """
    inputs: dict[str, tuple[str, Any]] = {}
    for path in paths:
        kind, content = read_input(path)
        if kind in inputs:
            raise AuditError(f"{path}: a second file of {NEEDS[kind]}: give one")
        inputs[kind] = (file_sha256(path), content)
    return inputs


def _row(claim: Claim, finding: Finding | None, p_holm: float) -> dict[str, Any]:
    row: dict[str, Any] = {
        "claim": claim.name,
        "paper": claim.paper,
        "place": claim.place,
        "sentence": claim.sentence,
        "statistic": claim.statistic,
        "true_from": claim.true_in[0],
        "true_to": claim.true_in[1],
    }
    if finding is None:
        empty = dict.fromkeys(("value", "low", "high", "p", "p_holm"), NAN)
        verdict_of = f"not computed: needs {NEEDS[claim.needs]}"
        return row | empty | {"n": 0, "unit": "", "verdict": verdict_of, "note": ""}
    return row | {
        "value": finding.value,
        "low": finding.low,
        "high": finding.high,
        "p": finding.p,
        "p_holm": p_holm,
        "n": finding.n,
        "unit": finding.unit,
        "verdict": verdict(claim, finding, p_holm),
        "note": finding.note,
    }


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    if not row["unit"]:
        return row["claim"], row["place"], *(NOTHING,) * 4, row["verdict"]
    shown = (
        f"{row['value']:.3g}" if math.isnan(row["low"]) else interval(row["value"], row["low"], row["high"])
    )
    tested = [
        NOTHING if math.isnan(p) else "< .0001" if p < 1e-4 else number(p, 4)
        for p in (row["p"], row["p_holm"])
    ]
    return row["claim"], row["place"], shown, f"{row['n']:,} {row['unit']}", *tested, row["verdict"]
