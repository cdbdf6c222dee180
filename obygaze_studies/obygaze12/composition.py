"""Test how concepts combine into levels: the claim that objectification is compositional (section 3.4).

All tests are exact and keep films apart: rates differ between films (one has more S clips, another more
nudity), so that clips of different films must not be exchanged. A test that counts clips conditions on the
counts of each film; the sum over films then follows a convolution of hypergeometric distributions (Zelen
1971; with one film it is Fisher's exact test). A test that compares means takes films as units and flips the
signs of their differences.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import hypergeom

import obygaze_features.manifest as manifests
from obygaze_features.text import counted, percentage
from obygaze_models.evaluation import holm, sign_flip
from obygaze_models.report import NOTHING, Block, Column, Report, block, cell, number, p_value
from obygaze_studies.audit_common.findings import share
from obygaze_studies.obygaze12.corpus import CAPTIONS, columns
from obygaze_studies.obygaze12.statistics import (
    Statistics,
    by_film,
    clip_table,
    grouped,
    printed_count_table,
    statistics,
)

ROUNDING_FACTOR = 1 + 1e-7
"""Factor within which two probabilities count as equal: rounding errors are far smaller."""


def exact_common(both: ArrayLike, first: ArrayLike, second: ArrayLike, clips: ArrayLike) -> dict[str, Any]:
    """Test whether clips have two properties together more, or less, often than by chance within films.

    By chance, the number of clips with both follows a hypergeometric distribution in each film, given the
    film's other three numbers. The sum over films follows the convolution of these.

    Parameters
    ----------
    both, first, second, clips : array-like of int, shape [M]
        For each of M films: the number of clips with both properties, with the first, with the second, and of
        all clips.

    Returns
    -------
    dict
        `clips`: the number of clips with both properties, summed over films.
        `expected`: its expectation if the properties are independent within films.
        `p`: the two-sided p, which is the probability of all counts that are at most as probable as the
        observed one.

    Examples
    --------
    >>> exact_common([3], [3], [3], [6])
    {'clips': 3, 'expected': 1.5, 'p': 0.1...}
    """
    counts = np.stack([np.asarray(numbers, dtype=np.int64) for numbers in (both, first, second, clips)])

    # Probability of each possible sum over the films so far: entry k is that of the sum min_sum + k.
    probability_of_sum = np.ones(1)
    min_sum = 0
    expected = 0.0
    has_clips = counts[3] > 0
    for _, n_first, n_second, n_clips in counts.T[has_clips].tolist():
        # Smallest and largest possible number of clips with both in this film.
        least = max(0, n_first + n_second - n_clips)
        most = min(n_first, n_second)
        probability_in_film = hypergeom.pmf(np.arange(least, most + 1), n_clips, n_first, n_second)
        probability_of_sum = np.convolve(probability_of_sum, probability_in_film)
        min_sum += least
        expected += n_first * n_second / n_clips

    observed = int(counts[0].sum())
    probability_of_observed = probability_of_sum[observed - min_sum]
    is_as_improbable = probability_of_sum <= probability_of_observed * ROUNDING_FACTOR
    p = float(probability_of_sum[is_as_improbable].sum())
    return {"clips": observed, "expected": expected, "p": min(p, 1.0)}


def concept_trend(manifest: manifests.Manifest) -> dict[str, Any]:
    """Measure whether the mean number of visual concepts rises with the level, and test it over films.

    The lowest level is left out, since by definition its clips have no concept.

    Returns
    -------
    dict
        ``<level>_concepts``: mean number of visual concepts per clip of each level; None without clips.
        ``rises``: whether each level's mean is above that of the level before; None with fewer than two
        levels.
        ``difference``: mean of the highest level minus that of the lowest, averaged over the films that have
        clips of both; NaN without such a film.
        ``films_tested``: the number of these films.
        ``p``: p of an exact test of these films' differences (sign flips); NaN without such a film.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features import Clip, Manifest
    >>> rows = [("a", "HN", ("Body",)), ("b", "S", ("Body", "Look"))]
    >>> clips = tuple(Clip(name, "film", level=level, concepts=marked) for name, level, marked in rows)
    >>> trend = concept_trend(Manifest(clips, Path()))
    >>> float(trend["HN_concepts"]), float(trend["S_concepts"]), trend["rises"]
    (1.0, 2.0, True)
    """
    table = clip_table(manifest)
    levels = manifest.codebook.level_names[1:]
    # Mean number of concepts: a row per film, a column per level that has clips.
    means_of_films = by_film(table, "n_concepts", "level").reindex(list(manifest.movies))
    means = {}  # of all clips of each level, from the lowest level to the highest
    for level in levels:
        if level in means_of_films:
            means[level] = table.loc[table["level"] == level, "n_concepts"].mean()

    rises = None  # undefined with fewer than two levels
    differences: list[float] = []
    if len(means) > 1:
        rises = all(above > below for below, above in pairwise(means.values()))
        levels_with_clips = list(means)
        difference_of_films = means_of_films[levels_with_clips[-1]] - means_of_films[levels_with_clips[0]]
        differences = difference_of_films.dropna().to_list()

    test = sign_flip(differences)
    trend: dict[str, Any] = {f"{level}_concepts": means.get(level) for level in levels}
    trend["rises"] = rises
    trend["difference"] = float(np.mean(differences)) if differences else math.nan
    trend["films_tested"] = test.n_pairs
    trend["p"] = test.p
    return trend


def concept_sets(manifest: manifests.Manifest) -> dict[tuple[str, ...], Counter[str]]:
    """Count clips by their set of visual concepts: set -> level -> number of clips.

    The most frequent sets come first; of equally frequent ones, those of fewer concepts.
    """
    counts_of_set: dict[tuple[str, ...], Counter[str]] = {}
    for clip in manifest:
        if clip.level is not None:
            concepts = manifest.codebook.visual(clip.concepts)
            counts_of_set.setdefault(concepts, Counter())[clip.level] += 1

    def rank(concepts: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
        """Return the key to sort sets by: the most frequent first, then the smallest, then by name."""
        return -counts_of_set[concepts].total(), len(concepts), concepts

    return {concepts: counts_of_set[concepts] for concepts in sorted(counts_of_set, key=rank)}


def compared_levels(manifest: manifests.Manifest) -> tuple[str, str] | None:
    """Return the two highest levels that can be in a task, such as HN and S; None if there are fewer.

    The codebook's `labels` are the levels that can be in a task; NS ("not sure") is none. The lowest level of
    all does not count, as its clips have no concept by definition.
    """
    lowest = manifest.codebook.level_names[0]
    comparable = [level for level in manifest.codebook.labels if level != lowest]
    if len(comparable) < 2:
        return None
    return comparable[-2], comparable[-1]


def alone_or_combined(manifest: manifests.Manifest) -> list[dict[str, Any]]:
    """Test for each visual concept whether clips are of the higher level more often if it is not alone.

    Clips with the concept alone are compared with clips that have other visual concepts too. Only clips of
    the two levels of `compared_levels` count.

    Returns
    -------
    list of dict
        A row for each concept that is marked in these clips. ``alone`` and ``combined`` are pairs of numbers
        of clips, of the lower and of the higher level: with the concept alone, and with others too. The other
        columns are those of the test. Empty if the codebook has no two levels to compare.
    """
    compared = compared_levels(manifest)
    if compared is None:
        return []
    _, high = compared

    codebook = manifest.codebook
    rows = []
    for concept in codebook.visual_concepts:
        clips = [clip for clip in manifest if clip.level in compared and concept in clip.concepts]
        if not clips:
            continue

        is_high = np.array([clip.level == high for clip in clips])
        has_others = np.array([len(codebook.visual(clip.concepts)) > 1 for clip in clips])
        columns = {"kind": "with others", "name": concept, "level": high}
        test = _test_within_movies(is_high, has_others, clips)
        counts = {
            "alone": _low_and_high(is_high[~has_others]),
            "combined": _low_and_high(is_high[has_others]),
        }
        rows.append(columns | test | counts)
    return _with_holm(rows)


def _low_and_high(is_high: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the numbers of clips of the lower and of the higher level, given which are of the higher [N]."""
    n_high = int(is_high.sum())
    return len(is_high) - n_high, n_high


def concept_pairs(manifest: manifests.Manifest) -> list[dict[str, Any]]:
    """Test for each pair of visual concepts and each level above the lowest whether they go together.

    The tests condition on how often each concept is marked in each film at the level. The p-values are
    adjusted for all pairs and levels. A pair that is rarer than by chance need not mean that its concepts
    exclude each other: a level whose clips must have a concept, and mostly have one, makes all pairs rare.

    Returns
    -------
    A row for each pair and level at which both concepts are marked: ``kind`` ("pair"), ``name`` ("A + B"),
    ``level``, the columns of `exact_common`, and ``p_holm``.
    """
    concepts = manifest.codebook.visual_concepts
    rows = []
    for level in manifest.codebook.level_names[1:]:
        clips = [clip for clip in manifest if clip.level == level]
        for first, second in combinations(concepts, 2):
            has_first = np.array([first in clip.concepts for clip in clips], dtype=bool)
            has_second = np.array([second in clip.concepts for clip in clips], dtype=bool)
            if has_first.any() and has_second.any():
                columns = {"kind": "pair", "name": f"{first} + {second}", "level": level}
                rows.append(columns | _test_within_movies(has_first, has_second, clips))
    return _with_holm(rows)


def _with_holm(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add to each row `p_holm`: its p, adjusted by Holm's correction for the tests of all rows."""
    adjusted = holm([row["p"] for row in rows]).tolist()
    return [{**row, "p_holm": p} for row, p in zip(rows, adjusted, strict=True)]


def _test_within_movies(
    first: NDArray[np.bool_], second: NDArray[np.bool_], clips: Sequence[manifests.Clip]
) -> dict[str, Any]:
    """Test whether two properties of clips go together within films.

    Parameters
    ----------
    first, second : bool ndarray, shape [N]
        Whether each clip has the property.
    clips
        The N clips.

    Returns
    -------
    The result of `exact_common`: the number of clips with both, the expected number, and p.
    """
    movies, movie_of_clip = np.unique([clip.movie for clip in clips], return_inverse=True)

    def count_by_movie(has_property: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Count the clips of each movie that have a property."""
        return np.bincount(movie_of_clip[has_property], minlength=len(movies))

    return exact_common(
        both=count_by_movie(first & second),
        first=count_by_movie(first),
        second=count_by_movie(second),
        clips=np.bincount(movie_of_clip),
    )


# --- reports
# ---------------------------------------------------------------------------
N_SHOWN_SETS = 15
"""Number of sets of concepts that the table shows; the data hold all."""

N_SHOWN_PAIRS = 20
"""Number of pairs of concepts that the table shows; the data hold all."""

ALPHA = 0.05
"""Level of the tests: an adjusted p below it is significant."""

UNLIKE_CHANCE = "are not as frequent as by chance (adjusted p < .05)"

PRINTED_THRESHOLDS = (0.1, 0.4)
"""Projection thresholds between which the paper prints the change of each level (App. 7.2)."""

PRINTED_CODEBOOKS = ("obygaze12", "mobygaze")
"""Codebooks of the annotations of which the paper prints it."""

COMPOSITION_NOTES: Mapping[str, Any] = CAPTIONS["composition"]
"""Table of the reports -> its notes."""


def group_report(manifest: manifests.Manifest, column: str, policy: manifests.LabelPolicy) -> Report:
    """Count levels and concepts for each value of a column, such as annotator, year or genres.

    Whether more concepts are marked at higher levels is tested in every group (section 3.4: "this trend is
    observable for every single annotator").

    Raises
    ------
    ManifestError
        The manifest has no such column, or it is empty.
    """
    labelled = manifests.apply_policy(manifest, policy)
    rows_of_groups = []
    for value, group in grouped(labelled, column).items():
        rows_of_groups.append(_group_row(column, value or "(none)", group))
    group_rows = _with_holm(rows_of_groups)
    # The row of all clips has no adjusted p: it is not one of the groups.
    row_of_all = _group_row(column, "all", labelled) | {"p_holm": math.nan}
    rows = [row_of_all, *group_rows]

    notes = [f"label policy {policy}"]
    n_in_groups = sum(row["clips"] for row in group_rows)
    if n_in_groups != len(labelled):
        notes.append(
            f"a clip with several values is in several groups: {n_in_groups:,} in place of {len(labelled):,}"
        )
    n_rising = sum(row["rises"] is True for row in group_rows)
    rise = f"the mean rises from level to level in {n_rising} of {counted(len(group_rows), 'group')}"

    group_column: Column = (column, column, str)
    holm_column: Column = ("p (Holm)", "p_holm", _p_or_nothing)
    shares = block("Shares of the levels", [group_column, *_share_columns(labelled)], rows)
    trends = _trend_block(labelled, policy, rows, before=[group_column], after=[holm_column], notes=[rise])
    return Report(
        name=f"by-{column}",
        title=f"Levels and concepts by {column}",
        notes=tuple(notes),
        answers=(f"Concepts a clip: {rise}",),
        blocks=(shares, trends),
        data=pd.DataFrame(rows),
        record={"manifest_sha256": manifest.digest(), "policy": str(policy), "column": column},
    )


def _share_columns(manifest: manifests.Manifest) -> list[Column]:
    """Make the columns of the table of groups: the numbers of movies and clips, and the share of each level.

    A column is a heading, the key of a row's value (`_group_row`), and the function that writes it.
    """
    return [
        ("movies", "movies", str),
        ("clips", "clips", "{:,}".format),
        *((level, f"{level}_share", share) for level in manifest.codebook.level_names),
    ]


def _p_or_nothing(p: float) -> str:
    """Write a p-value; a dash for NaN."""
    if math.isnan(p):
        return NOTHING
    return p_value(p)


def _group_row(column: str, name: str, group: manifests.Manifest) -> dict[str, Any]:
    """Make the row of a group of clips: its counts, and the test of its trend.

    Its keys are the column (the group's name), `movies`, `clips`, each level (its number of clips), each
    `<level>_share`, and those of `concept_trend`.
    """
    counts = statistics(group)
    levels = group.codebook.level_names
    row: dict[str, Any] = {column: name, "movies": len(group.movies), "clips": counts.n_clips}
    row |= {level: counts.clips[level] for level in levels}
    row |= {f"{level}_share": counts.share(level) for level in levels}
    return row | concept_trend(group)


def _trend_block(
    manifest: manifests.Manifest,
    policy: manifests.LabelPolicy,
    rows: Sequence[Mapping[str, Any]],
    *,
    before: Sequence[Column] = (),
    after: Sequence[Column] = (),
    notes: Sequence[str] = (),
) -> Block:
    """Make the table of the trends of concepts by level, with the paper's means in a note.

    Parameters
    ----------
    rows
        Rows with the columns of `concept_trend` and those of `before` and `after`.
    before, after
        Columns to show to the left and to the right of those of the trend.
    notes
        Notes in addition to those of captions.toml.
    """
    levels = manifest.codebook.level_names[1:]  # clips of the lowest level have no concept
    mean_columns: list[Column] = [(f"concepts\n{level}", f"{level}_concepts", TWO_DIGITS) for level in levels]

    all_notes = [*COMPOSITION_NOTES["trend"], *notes]
    printed = printed_count_table(manifest)
    if printed and policy is manifests.LabelPolicy.PAPER:
        means = ", ".join(f"{level} {printed[f'visual concepts per {level} clip']}" for level in levels)
        all_notes.append(f"printed for all clips (section 3.4): {means}")

    shown_columns = [*before, *mean_columns, *_columns("trend"), *after]
    return block("Concepts by level", shown_columns, rows, all_notes)


def sweep_report(
    projected: Mapping[float, manifests.Projection], onto: str, policy: manifests.LabelPolicy
) -> Report:
    """Count the clips of each level at several projection thresholds (App. 7.2).

    Parameters
    ----------
    projected
        Threshold -> the projection with it, as `sweep` returns them.
    onto
        The clips that were projected onto, in words.
    policy
        Label policy of the counts.
    """
    counts_at = {}  # threshold -> counts
    for threshold, projection in sorted(projected.items()):
        labelled = manifests.apply_policy(projection.manifest, policy)
        counts_at[threshold] = statistics(labelled)
    first = min(counts_at)
    last = max(counts_at)
    codebook = counts_at[first].codebook
    levels = codebook.level_names

    shown_rows: list[dict[str, Any]] = []  # one per threshold, with a column per level
    for threshold, counts in counts_at.items():
        shown_rows.append({"threshold": threshold, **counts.clips, "none": counts.unlabelled})
    columns: list[Column] = [
        ("threshold", "threshold", "{:g}".format),
        *((level, level, "{:,}".format) for level in levels),
        ("no level", "none", "{:,}".format),
    ]

    change_of_level = {}  # by how many clips each level is larger at the last threshold than at the first
    for level in levels:
        change = counts_at[last].clips[level] - counts_at[first].clips[level]
        change_of_level[level] = f"{change:+,}"
    last_line = (f"{first:g} to {last:g}", *change_of_level.values(), "")
    changes = ", ".join(f"{level} {change}" for level, change in change_of_level.items())

    notes = list(COMPOSITION_NOTES["sweep"])
    if codebook.name in PRINTED_CODEBOOKS and (first, last) == PRINTED_THRESHOLDS:
        notes += COMPOSITION_NOTES["sweep_printed"]
    return Report(
        name="sweep",
        title="Clips of each level by projection threshold",
        notes=tuple(note.format(onto=onto, policy=policy) for note in notes),
        blocks=(block("Clips", columns, shown_rows, last=[last_line]),),
        answers=(f"from threshold {first:g} to {last:g}: {changes} clips",),
        data=pd.DataFrame(_sweep_rows(counts_at)),
        record={"onto": onto, "policy": str(policy), "thresholds": list(counts_at)},
    )


def _sweep_rows(counts_at: Mapping[float, Statistics]) -> list[dict[str, Any]]:
    """List the counts of each level at each projection threshold as rows: the data of `sweep_report`."""
    rows = []
    for threshold, counts in counts_at.items():
        for level in counts.codebook.level_names:
            row = {
                "threshold": threshold,
                "level": level,
                "clips": counts.clips[level],
                "share": counts.share(level),
                "concepts": counts.mean_concepts(level),
            }
            rows.append(row)
    return rows


def composition_report(manifest: manifests.Manifest, policy: manifests.LabelPolicy) -> Report:
    """Describe how visual concepts combine at each level, with exact tests within films (section 3.4).

    There are tables of the number of concepts, of concepts alone and with others, and of sets and pairs of
    concepts. `policy` is the label policy that is applied first.
    """
    labelled = manifests.apply_policy(manifest, policy)
    levels = labelled.codebook.level_names
    sets = concept_sets(labelled)
    pairs = concept_pairs(labelled)
    alone_and_combined = alone_or_combined(labelled)  # of each concept: clips with it alone, and with others
    n_unlike = sum(row["p_holm"] < ALPHA for row in pairs)  # pairs that are not as frequent as by chance

    blocks = [
        _block_by_number_of_concepts(levels, sets),
        _trend_block(labelled, policy, [concept_trend(labelled)]),
    ]
    compared = compared_levels(labelled)
    if compared is not None:
        low, high = compared
        title = f"A concept alone and with others: share of {high} among {low} and {high}"
        blocks.append(block(title, _columns("combined"), alone_and_combined, COMPOSITION_NOTES["combined"]))
    blocks += [_set_block(levels, sets), _pair_block(pairs, n_unlike)]

    set_rows = []
    for concepts, counts in sets.items():
        for level in levels:
            if counts[level]:
                row = {"kind": "set", "name": " + ".join(concepts), "level": level, "clips": counts[level]}
                set_rows.append(row)
    # The data are rows of three kinds, which the column `kind` tells apart. Two columns are texts for the
    # table above, and no data; without concepts there are none.
    data = pd.DataFrame(set_rows + pairs + alone_and_combined)

    return Report(
        name="concept-sets",
        title="How visual concepts combine",
        answers=(f"{n_unlike} of {counted(len(pairs), 'pair')} of concepts {UNLIKE_CHANCE}",),
        notes=tuple(note.format(policy=policy) for note in COMPOSITION_NOTES["notes"]),
        blocks=tuple(blocks),
        data=data.drop(columns=["alone", "combined"], errors="ignore"),
        record={"manifest_sha256": manifest.digest(), "policy": str(policy)},
    )


def _set_block(levels: Sequence[str], sets: Mapping[tuple[str, ...], Counter[str]]) -> Block:
    """Make the table of the most frequent sets of concepts, without the empty set.

    Its columns are the levels above the lowest: clips of the lowest have no concept.

    Parameters
    ----------
    levels
        Names of the levels, the lowest first.
    sets
        As `concept_sets` returns them: set of concepts -> level -> number of clips, the most frequent first.
    """
    marked_levels = levels[1:]
    sets_with_concepts = [(concepts, counts) for concepts, counts in sets.items() if concepts]
    rows: list[dict[str, Any]] = []
    for concepts, counts in sets_with_concepts[:N_SHOWN_SETS]:
        row: dict[str, Any] = {level: counts[level] for level in levels}
        row["set"] = " + ".join(concepts)
        rows.append(row)
    columns: list[Column] = [("set", "set", str), *((level, level, str) for level in marked_levels)]
    note = f"the {len(rows)} most frequent of {len(sets_with_concepts)} sets"
    return block("Sets of concepts", columns, rows, (note,))


def _pair_block(pairs: Sequence[Mapping[str, Any]], n_unlike: int) -> Block:
    """Make the table of the pairs of concepts whose frequencies are least like chance.

    `pairs` are the rows of all pairs, as `concept_pairs` returns them; `n_unlike` of them are significant.
    """
    by_p = sorted(pairs, key=lambda row: (row["p"], row["level"], row["name"].split(" + ")))
    first_pairs = by_p[:N_SHOWN_PAIRS]
    counts = {"shown": len(first_pairs), "all": len(pairs), "unlike": n_unlike}
    notes = [note.format(**counts) for note in COMPOSITION_NOTES["pairs"]]
    return block("Pairs of concepts", _columns("pairs"), first_pairs, notes)


def _block_by_number_of_concepts(
    levels: Sequence[str], sets: Mapping[tuple[str, ...], Counter[str]]
) -> Block:
    """Make the table of clips by their number of visual concepts and their level.

    A row has the numbers of clips of each level, and the share of the highest level among the levels above
    the lowest: clips of the lowest have no concept.

    Parameters
    ----------
    levels
        Names of the levels, the lowest first.
    sets
        As `concept_sets` returns them: set of concepts -> level -> number of clips.
    """
    marked_levels = levels[1:]
    counts_of_number: dict[int, Counter[str]] = {}
    for concepts, counts_of_set in sets.items():
        counts_of_number.setdefault(len(concepts), Counter()).update(counts_of_set)

    def share_of_highest(*clips_of_marked_levels: int) -> str:
        """Format the share of the highest level, from the number of clips of each marked level, in order."""
        if not any(clips_of_marked_levels):
            return share(value=None)
        return share(clips_of_marked_levels[-1] / sum(clips_of_marked_levels))

    # A column has a heading, the key (or keys) of a row's values, and a function that formats these.
    title_of_share = f"{levels[-1]} of {'+'.join(marked_levels)}"
    columns: list[Column] = [
        ("concepts", "concepts", str),
        *((level, level, str) for level in levels),
        (title_of_share, tuple(marked_levels), share_of_highest),
    ]
    rows: list[dict[str, Any]] = []
    for n_concepts, counts in sorted(counts_of_number.items()):
        row: dict[str, Any] = {level: counts[level] for level in levels}
        rows.append({"concepts": n_concepts} | row)
    return block("Clips by number of visual concepts", columns, rows)


def _share_of_high(counts: tuple[int, int]) -> str:
    """Format numbers of clips of the lower and higher level as the share of the higher: "3 of 4 (75%)"."""
    n_low, n_high = counts
    total = n_low + n_high
    if not total:
        return NOTHING
    return f"{n_high} of {total} ({percentage(n_high / total)}%)"


def _columns(table: str) -> list[Column]:
    """Make the columns of a table of this module, as captions.toml declares them."""
    return columns("composition", table, {"part": _share_of_high, "cell": cell})


TWO_DIGITS = partial(number, digits=2)
