"""Report what annotations say of a corpus: by annotator, year or genre; by threshold; by sets of concepts."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from obygaze_features.manifest import (
    LabelPolicy,
    Manifest,
    Projection,
    apply_policy,
    is_obygaze12,
)
from obygaze_models.evaluation import holm
from obygaze_models.report import NOTHING, Block, Column, Report, block, cell, number
from obygaze_studies.columns import share
from obygaze_studies.obygaze12.composition import (
    Combined,
    ConceptPair,
    Trend,
    alone_or_combined,
    compared_levels,
    concept_pairs,
    concept_sets,
    concept_trend,
)
from obygaze_studies.obygaze12.statistics import PRINTED_COUNTS, grouped, statistics

N_SETS = 15
"""Sets of concepts shown; the data have all."""

N_PAIRS = 20
"""Pairs of concepts shown; the data have all."""

SWEEP_PRINTED = (
    "printed (000, App. 7.2), from threshold 0.1 to 0.4 on MovieGraphs clips of ObyGaze12's separate "
    "annotations, which are not public: [+76, +68, -42, -103] clips of [EN, HN, NS, S]; "
    "the text says EN and HN increase, NS and S decrease"
)
TREND_NOTES = (
    "concepts: visual concepts per clip of a level, on average; rises: from each level to the next",
    (
        "difference: of the highest and the lowest of these levels, averaged over the films that have clips "
        "of both; p: exact test over these films (sign flips), two-sided"
    ),
)


def group_report(manifest: Manifest, column: str, policy: LabelPolicy) -> Report:
    """Report levels and concepts for each value of a column, such as annotator, year or genres.

    Whether more concepts are marked at higher levels is tested in every group (section 3.4: "this trend is
    observable for every single annotator").

    Raises
    ------
    ManifestError
        The manifest has no such column, or it is empty.
    """
    labelled = apply_policy(manifest, policy)
    groups = {"all": labelled} | {
        name or "(none)": group for name, group in grouped(labelled, column).items()
    }
    counted = {name: statistics(group) for name, group in groups.items()}
    trends = {name: concept_trend(group) for name, group in groups.items()}
    several = [name for name in groups if name != "all"]
    adjusted = dict(zip(several, holm([trends[name].test.p for name in several]).tolist(), strict=True))
    levels = manifest.codebook.level_names
    rows = [
        {
            column: name,
            "movies": len(groups[name].movies),
            "clips": counted[name].n_clips,
            **{level: counted[name].clips[level] for level in levels},
            **{f"{level}_share": counted[name].share(level) for level in levels},
            **_trend_row(trends[name], levels),
            "p_holm": adjusted.get(name, math.nan),
        }
        for name in groups
    ]
    rising = sum(trends[name].rises is True for name in several)
    return Report(
        name=f"by-{column}",
        title=f"Levels and concepts by {column}",
        notes=(
            f"label policy {policy}",
            *_several_values(len(labelled), sum(counted[name].n_clips for name in several)),
        ),
        blocks=(
            block(
                "Shares of the levels",
                (
                    (column, column, str),
                    ("movies", "movies", str),
                    ("clips", "clips", "{:,}".format),
                    *((level, f"{level}_share", share) for level in levels),
                ),
                rows,
            ),
            block(
                "Concepts by level",
                (
                    (column, column, str),
                    *_trend_columns(levels),
                    ("p (Holm)", (column, "p_holm"), lambda name, p: NOTHING if name == "all" else _p(p)),
                ),
                rows,
                (
                    *TREND_NOTES,
                    f"the mean rises from level to level in {rising} of {len(several)} groups",
                    *_printed_trend(labelled, policy),
                ),
            ),
        ),
        data=pd.DataFrame(rows),
        record={"manifest_sha256": manifest.digest(), "policy": str(policy), "column": column},
    )


def _several_values(n_clips: int, n_in_groups: int) -> tuple[str, ...]:
    if n_in_groups == n_clips:
        return ()
    return (f"a clip with several values is in several groups: {n_in_groups:,} in place of {n_clips:,}",)


def _printed_trend(manifest: Manifest, policy: LabelPolicy) -> tuple[str, ...]:
    if not is_obygaze12(manifest) or policy is not LabelPolicy.PAPER:
        return ()
    values = ", ".join(
        f"{level} {PRINTED_COUNTS[f'visual concepts per {level} clip']}"
        for level in manifest.codebook.level_names[1:]
    )
    return (f"printed for all clips (section 3.4): {values}",)


def _trend_row(trend: Trend, levels: Sequence[str]) -> dict[str, Any]:
    return {
        **{f"{level}_concepts": trend.means.get(level) for level in levels[1:]},
        "rises": trend.rises,
        "difference": trend.difference,
        "films_tested": trend.test.n_pairs,
        "p": trend.test.p,
    }


def _trend_columns(levels: Sequence[str]) -> list[Column]:
    return [
        *((f"concepts\n{level}", f"{level}_concepts", TWO_DIGITS) for level in levels[1:]),
        ("rises", "rises", cell),
        ("difference", "difference", TWO_DIGITS),
        ("films", "films_tested", str),
        ("p", "p", _p),
    ]


def sweep_report(projected: Mapping[float, Projection], onto: str, policy: LabelPolicy) -> Report:
    """Report how many clips have each level at several projection thresholds (App. 7.2).

    Parameters
    ----------
    projected
        Threshold -> the projection at it, as `sweep` gives them.
    onto
        What was projected onto, in words.
    """
    manifests = {
        threshold: apply_policy(projection.manifest, policy)
        for threshold, projection in sorted(projected.items())
    }
    counted = {threshold: statistics(labelled) for threshold, labelled in manifests.items()}
    first, *_, last = counted
    any_manifest = next(iter(manifests.values()))
    levels = any_manifest.codebook.level_names
    rows = [
        {
            "threshold": threshold,
            "level": level,
            "clips": counts.clips[level],
            "share": counts.share(level),
            "concepts": counts.mean_concepts(level),
        }
        for threshold, counts in counted.items()
        for level in levels
    ]
    shown = [
        {"threshold": f"{threshold:g}", **counts.clips, "none": f"{counts.unlabelled:,}"}
        for threshold, counts in counted.items()
    ]
    change = [counted[last].clips[level] - counted[first].clips[level] for level in levels]
    paper = any_manifest.codebook.name in {"obygaze12", "mobygaze"} and (first, last) == (0.1, 0.4)
    return Report(
        name="sweep",
        title="Clips of each level by projection threshold",
        notes=(
            f"projected onto {onto}; label policy {policy}",
            "threshold: share of a clip that an annotation must cover to count",
            *((SWEEP_PRINTED,) if paper else ()),
        ),
        blocks=(
            block(
                "Clips",
                (
                    ("threshold", "threshold", str),
                    *((level, level, "{:,}".format) for level in levels),
                    ("no level", "none", str),
                ),
                shown,
                last=[(f"{first:g} to {last:g}", *(f"{more:+,}" for more in change), "")],
            ),
        ),
        data=pd.DataFrame(rows),
        record={"onto": onto, "policy": str(policy), "thresholds": list(counted)},
    )


def composition_report(manifest: Manifest, policy: LabelPolicy) -> Report:
    """Report how visual concepts combine at each level, with exact tests within films (section 3.4)."""
    labelled = apply_policy(manifest, policy)
    levels = labelled.codebook.level_names
    sets, compared = concept_sets(labelled), compared_levels(labelled)
    pairs = [_tested("pair", " + ".join(row.concepts), row.level, row) for row in concept_pairs(labelled)]
    combined = alone_or_combined(labelled)
    with_others = [
        _tested("with others", row.concept, compared[1] if compared else "", row) for row in combined
    ]
    blocks = [_by_number(labelled), _trend_block(labelled, policy)]
    if compared is not None:
        low, high = compared
        blocks.append(
            block(
                f"A concept alone and with others: share of {high} among {low} and {high}",
                (
                    ("concept", "name", str),
                    ("alone", "alone", _part),
                    ("with others", "combined", _part),
                    *TESTED,
                ),
                [
                    row | {"alone": counts.alone, "combined": counts.combined}
                    for row, counts in zip(with_others, combined, strict=True)
                ],
                ("exact test within films, two-sided; Holm over the concepts",),
            )
        )
    marked = [{"set": " + ".join(concepts), **counts} for concepts, counts in sets.items() if concepts]
    strongest = sorted(pairs, key=lambda row: (row["p"], row["level"], row["name"].split(" + ")))[:N_PAIRS]
    blocks += [
        block(
            "Sets of concepts",
            (("set", "set", str), *((level, level, str) for level in levels[1:])),
            [dict.fromkeys(levels, 0) | row for row in marked[:N_SETS]],
            (f"the {len(marked[:N_SETS])} most frequent of {len(marked)} sets",),
        ),
        block(
            "Pairs of concepts",
            (
                ("pair", "name", str),
                ("level", "level", str),
                ("clips with both", "clips", str),
                ("expected", "expected", partial(number, digits=1)),
                *TESTED,
            ),
            strongest,
            (
                (
                    f"the {len(strongest)} of {len(pairs)} that are least like chance; "
                    f"{sum(row['p_holm'] < 0.05 for row in pairs)} have an adjusted p below .05"
                ),
                "expected, p: given how often each concept is marked in each film at the level (exact test)",
                "where most clips have one concept, as at HN, pairs are rarer than chance by construction",
            ),
        ),
    ]
    counted = [
        {"kind": "set", "name": " + ".join(concepts), "level": level, "clips": counts[level]}
        for concepts, counts in sets.items()
        for level in levels
        if counts[level]
    ]
    return Report(
        name="concept-sets",
        title="How visual concepts combine",
        notes=(
            f"label policy {policy}",
            "clips of different films are never exchanged in a test; those of a film are",
            "neighbouring clips of a film are alike, so p-values of counts are somewhat too small",
        ),
        blocks=tuple(blocks),
        data=pd.DataFrame(counted + pairs + with_others),
        record={"manifest_sha256": manifest.digest(), "policy": str(policy)},
    )


def _tested(kind: str, name: str, level: str, row: ConceptPair | Combined) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "level": level,
        "clips": row.test.observed,
        "expected": row.test.expected,
        "p": row.test.p,
        "p_holm": row.p_holm,
    }


def _by_number(manifest: Manifest) -> Block:
    """Count the clips of each level by how many visual concepts they have."""
    levels = manifest.codebook.level_names
    top, marked = levels[-1], levels[1:]
    counts: dict[int, Counter[str]] = {}
    for concepts, of_level in concept_sets(manifest).items():
        counts.setdefault(len(concepts), Counter()).update(of_level)

    def share_of_top(*clips: int) -> str:
        return share(clips[-1] / sum(clips) if any(clips) else None)

    return block(
        "Clips by number of visual concepts",
        (
            ("concepts", "concepts", str),
            *((level, level, str) for level in levels),
            (f"{top} of {'+'.join(marked)}", tuple(marked), share_of_top),
        ),
        [{"concepts": k} | {level: counts[k][level] for level in levels} for k in sorted(counts)],
    )


def _trend_block(manifest: Manifest, policy: LabelPolicy) -> Block:
    levels = manifest.codebook.level_names
    rows = [_trend_row(concept_trend(manifest), levels)]
    notes = (*TREND_NOTES, *_printed_trend(manifest, policy))
    return block("Concepts by level", _trend_columns(levels), rows, notes)


def _part(counts: tuple[int, int]) -> str:
    part, whole = counts[1], sum(counts)
    return f"{part} of {whole} ({part / whole:.0%})" if whole else NOTHING


def _p(value: float | None) -> str:
    return "<.0001" if value is not None and value < 0.0001 else number(value, 4)


TESTED: Sequence[Column] = (("p", "p", _p), ("p (Holm)", "p_holm", _p))

TWO_DIGITS = partial(number, digits=2)
