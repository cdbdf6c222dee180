"""Report what annotations say of a corpus: by annotator, year or genre; by threshold; by sets of concepts."""

import math
from collections.abc import Mapping

import pandas as pd

from obygaze_features.manifest import (
    PRINTED_COUNTS,
    LabelPolicy,
    Manifest,
    Projection,
    apply_policy,
    grouped,
    is_obygaze12,
    statistics,
)
from obygaze_models.evaluation import holm
from obygaze_models.report import NOTHING, Block, Report, number
from obygaze_studies.obygaze12.composition import (
    Trend,
    alone_or_combined,
    compared_levels,
    concept_pairs,
    concept_sets,
    concept_trend,
)

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
            **{f"{level}_concepts": trends[name].means.get(level) for level in levels[1:]},
            "rises": trends[name].rises,
            "difference": trends[name].difference,
            "films_tested": trends[name].test.n_pairs,
            "p": trends[name].test.p,
            "p_holm": adjusted.get(name, math.nan),
        }
        for name in groups
    ]
    share_cells = tuple(
        (
            name,
            str(len(groups[name].movies)),
            f"{counted[name].n_clips:,}",
            *(_share(counted[name].share(level)) for level in levels),
        )
        for name in groups
    )
    rising = sum(trends[name].rises is True for name in several)
    trend_cells = tuple(
        (name, *_trend_cells(trends[name], levels), _p(adjusted.get(name))) for name in groups
    )
    headers = (column, *(f"concepts\n{level}" for level in levels[1:]), "rises", "difference", "films", "p")
    return Report(
        name=f"by-{column}",
        title=f"Levels and concepts by {column}",
        notes=(
            f"label policy {policy}",
            *_several_values(len(labelled), sum(counted[name].n_clips for name in several)),
        ),
        blocks=(
            Block("Shares of the levels", (column, "movies", "clips", *levels), share_cells),
            Block(
                "Concepts by level",
                (*headers, "p (Holm)"),
                trend_cells,
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


def _trend_cells(trend: Trend, levels: tuple[str, ...]) -> tuple[str, ...]:
    return (
        *(number(trend.means.get(level), 2) for level in levels[1:]),
        NOTHING if trend.rises is None else "yes" if trend.rises else "no",
        number(trend.difference, 2),
        str(trend.test.n_pairs),
        _p(trend.test.p),
    )


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
    cells = [
        (f"{threshold:g}", *(f"{counts.clips[level]:,}" for level in levels), f"{counts.unlabelled:,}")
        for threshold, counts in counted.items()
    ]
    change = [counted[last].clips[level] - counted[first].clips[level] for level in levels]
    cells.append((f"{first:g} to {last:g}", *(f"{more:+,}" for more in change), ""))
    paper = any_manifest.codebook.name in {"obygaze12", "mobygaze"} and (first, last) == (0.1, 0.4)
    return Report(
        name="sweep",
        title="Clips of each level by projection threshold",
        notes=(
            f"projected onto {onto}; label policy {policy}",
            "threshold: share of a clip that an annotation must cover to count",
            *((SWEEP_PRINTED,) if paper else ()),
        ),
        blocks=(Block("Clips", ("threshold", *levels, "no level"), tuple(cells)),),
        data=pd.DataFrame(rows),
        record={"onto": onto, "policy": str(policy), "thresholds": list(counted)},
    )


def composition_report(manifest: Manifest, policy: LabelPolicy) -> Report:
    """Report how visual concepts combine at each level, with exact tests within films (section 3.4)."""
    labelled = apply_policy(manifest, policy)
    levels = labelled.codebook.level_names
    sets, pairs, combined = concept_sets(labelled), concept_pairs(labelled), alone_or_combined(labelled)
    compared = compared_levels(labelled)
    blocks = [_by_number(labelled), _trend_block(labelled, policy)]
    if compared is not None:
        low, high = compared
        blocks.append(
            Block(
                f"A concept alone and with others: share of {high} among {low} and {high}",
                ("concept", "alone", "with others", "p", "p (Holm)"),
                tuple(
                    (
                        row.concept,
                        _part(*row.alone),
                        _part(*row.combined),
                        _p(row.test.p),
                        _p(row.p_holm),
                    )
                    for row in combined
                ),
                ("exact test within films, two-sided; Holm over the concepts",),
            )
        )
    marked = {concepts: counts for concepts, counts in sets.items() if concepts}
    shown = dict(list(marked.items())[:N_SETS])
    blocks.append(
        Block(
            "Sets of concepts",
            ("set", *levels[1:]),
            tuple(
                (" + ".join(concepts), *(str(counts[level]) for level in levels[1:]))
                for concepts, counts in shown.items()
            ),
            (f"the {len(shown)} most frequent of {len(marked)} sets",),
        )
    )
    strongest = sorted(pairs, key=lambda row: (row.test.p, row.level, row.concepts))[:N_PAIRS]
    blocks.append(
        Block(
            "Pairs of concepts",
            ("pair", "level", "clips with both", "expected", "p", "p (Holm)"),
            tuple(
                (
                    " + ".join(row.concepts),
                    row.level,
                    str(row.test.observed),
                    number(row.test.expected, 1),
                    _p(row.test.p),
                    _p(row.p_holm),
                )
                for row in strongest
            ),
            (
                (
                    f"the {len(strongest)} of {len(pairs)} that are least like chance; "
                    f"{sum(row.p_holm < 0.05 for row in pairs)} have an adjusted p below .05"
                ),
                "expected, p: given how often each concept is marked in each film at the level (exact test)",
                "where most clips have one concept, as at HN, pairs are rarer than chance by construction",
            ),
        )
    )
    return Report(
        name="concept-sets",
        title="How visual concepts combine",
        notes=(
            f"label policy {policy}",
            "clips of different films are never exchanged in a test; those of a film are",
            "neighbouring clips of a film are alike, so p-values of counts are somewhat too small",
        ),
        blocks=tuple(blocks),
        data=pd.DataFrame(
            [
                {"kind": "set", "name": " + ".join(concepts), "level": level, "clips": counts[level]}
                for concepts, counts in sets.items()
                for level in levels
                if counts[level]
            ]
            + [
                {
                    "kind": "pair",
                    "name": " + ".join(row.concepts),
                    "level": row.level,
                    "clips": row.test.observed,
                    "expected": row.test.expected,
                    "p": row.test.p,
                    "p_holm": row.p_holm,
                }
                for row in pairs
            ]
            + [
                {
                    "kind": "with others",
                    "name": row.concept,
                    "level": compared[1] if compared else "",
                    "clips": row.test.observed,
                    "expected": row.test.expected,
                    "p": row.test.p,
                    "p_holm": row.p_holm,
                }
                for row in combined
            ]
        ),
        record={"manifest_sha256": manifest.digest(), "policy": str(policy)},
    )


def _by_number(manifest: Manifest) -> Block:
    """Count the clips of each level by how many visual concepts they have."""
    levels = manifest.codebook.level_names
    counts: dict[int, dict[str, int]] = {}
    for concepts, of_level in concept_sets(manifest).items():
        row = counts.setdefault(len(concepts), dict.fromkeys(levels, 0))
        for level, clips in of_level.items():
            row[level] += clips
    top, marked = levels[-1], levels[1:]

    def share(row: Mapping[str, int]) -> float | None:
        whole = sum(row[level] for level in marked)
        return row[top] / whole if whole else None

    return Block(
        "Clips by number of visual concepts",
        ("concepts", *levels, f"{top} of {'+'.join(marked)}"),
        tuple(
            (str(k), *(str(counts[k][level]) for level in levels), _share(share(counts[k])))
            for k in sorted(counts)
        ),
    )


def _trend_block(manifest: Manifest, policy: LabelPolicy) -> Block:
    trend, levels = concept_trend(manifest), manifest.codebook.level_names
    headers = (*(f"concepts\n{level}" for level in levels[1:]), "rises", "difference", "films", "p")
    return Block(
        "Concepts by level",
        headers,
        (_trend_cells(trend, levels),),
        (*TREND_NOTES, *_printed_trend(manifest, policy)),
    )


def _part(low: int, high: int) -> str:
    whole = low + high
    return f"{high} of {whole} ({high / whole:.0%})" if whole else NOTHING


def _p(value: float | None) -> str:
    return "<.0001" if value is not None and value < 0.0001 else number(value, 4)


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1%}"
