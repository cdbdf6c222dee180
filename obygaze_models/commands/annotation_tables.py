"""Write tables of the agreement of annotators and machines; every function returns lines."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from obygaze_features.screen import table
from obygaze_features.text import counted, percentage, rounded, signed

if TYPE_CHECKING:
    from obygaze_features.manifest import BlindLabels, Manifest
    from obygaze_features.manifest.agreement import Gamma, PairAgreement, PairLevels
    from obygaze_features.manifest.krippendorff import FilmUnitisedAlpha, LevelAlphas
    from obygaze_models.evaluation.alttest import Alternative, Form
    from obygaze_models.evaluation.unitising import UnitGamma


TITLES_OF_FORMS: "Mapping[Form, str]" = {
    "clips": "agreement, clips as units (published)",
    "films": "agreement, films as units",
    "balanced": "balanced agreement, films as units",
}
"""Title of each form of the test whether a machine may stand in for an annotator.

The test is done with clips as units (as published), with films as units, and with films as units and balanced
agreement, in which each class of the others' labels has the same weight.
"""

COUNTS_OF_SPANS = ("spans", "alike", "overlooked", "other readings")
"""Columns of the table of disagreements, as `PairLevels.counts_by_outcome` returns them.

All spans; those with the same level by both annotators; those with the lowest level by one of them only; and
those with two different levels above the lowest.
"""


def agreement_on_clips(
    pairs: "Sequence[PairAgreement[Gamma]]", means: Mapping[str, float | None], excluded_levels: Sequence[str]
) -> list[str]:
    """Format the table of gamma on clips: a row for each pair of annotators, then the means.

    Parameters
    ----------
    pairs
        Gamma of each pair of annotators of a film.
    means
        Selection of levels -> mean gamma: "all_levels" and, if levels are excluded, "labels_only". These are
        fields of a `PairAgreement`. A row has columns for each selection.
    excluded_levels
        Levels that the second selection leaves out.
    """
    rows = []
    for pair in pairs:
        row = [pair.movie, " / ".join(pair.annotators)]
        for selection in means:
            gamma: Gamma = getattr(pair, selection)
            row += [str(gamma.n_clips), _format_coefficient(gamma.value)]
        rows.append(row)
    return _table_with_means(rows, ["clips", "gamma"], means, excluded_levels)


def agreement_on_segments(
    pairs: "Sequence[PairAgreement[UnitGamma]]",
    means: Mapping[str, float | None],
    excluded_levels: Sequence[str],
) -> list[str]:
    """Format the table of gamma on free segments: a row for each pair of annotators, then the means.

    Parameters
    ----------
    pairs
        Gamma of each pair of annotators of a film.
    means
        Selection of levels -> mean gamma: "all_levels" and, if levels are excluded, "labels_only". These are
        fields of a `PairAgreement`. A row has columns for each selection.
    excluded_levels
        Levels that the second selection leaves out.
    """
    rows = []
    for pair in pairs:
        row = [pair.movie, " / ".join(pair.annotators)]
        for selection in means:
            gamma: UnitGamma = getattr(pair, selection)
            n_of_first, n_of_second = gamma.n_units  # segments of each annotator
            value = _format_coefficient(gamma.value)
            if gamma.standard_error is not None:
                value += f" ± {gamma.standard_error:.3f}"
            row += [f"{n_of_first} / {n_of_second}", str(gamma.n_aligned), value]
        rows.append(row)
    return _table_with_means(rows, ["segments", "aligned", "gamma"], means, excluded_levels)


def _table_with_means(
    rows: Sequence[Sequence[str]],
    columns: Sequence[str],
    means: Mapping[str, float | None],
    excluded_levels: Sequence[str],
) -> list[str]:
    """Format rows of agreement as a table, with the mean gammas in a last row.

    Parameters
    ----------
    rows
        Film, annotators, and the columns of each selection of levels.
    columns
        Headings of the columns of a selection, of which gamma is the last.
    means
        Selection of levels -> mean gamma, in the order of the columns.
    excluded_levels
        Levels that the second selection leaves out; empty if there is only one selection.
    """
    # The columns stand there once for each selection. Headings of the second one have further lines.
    headings = ["movie", "annotators", *columns]
    if excluded_levels:
        without = ", ".join(excluded_levels)
        headings += [f"{column}\nwithout\n{without}" for column in columns]
    # Of each selection only the last column, gamma, has a mean.
    cells_before_gamma = [""] * (len(columns) - 1)
    mean_row = ["mean", ""]
    for mean_gamma in means.values():
        mean_row += [*cells_before_gamma, _format_coefficient(mean_gamma)]
    return table([*rows, mean_row], headings).split("\n")


def _format_coefficient(value: float | None) -> str:
    """Format a coefficient with three decimals; "undefined" for None."""
    return "undefined" if value is None else rounded(value, digits=3)


def alphas_of_levels(
    all_levels: "LevelAlphas", labels_only: "LevelAlphas", excluded_levels: Sequence[str]
) -> list[str]:
    """Format Krippendorff's alpha of all annotators: with all levels, and with those of tasks only.

    Parameters
    ----------
    all_levels
        Alpha with all levels.
    labels_only
        Alpha without the levels that are in no task.
    excluded_levels
        Names of the levels that are in no task, such as NS.
    """
    alphas_of_title = {"Krippendorff's alpha": all_levels}
    if excluded_levels:
        alphas_of_title[f"without {', '.join(excluded_levels)}"] = labels_only
    lines = []
    for title, alphas in alphas_of_title.items():
        values = [
            f"nominal {_format_coefficient(alphas.nominal)}",
            f"ordinal {_format_coefficient(alphas.ordinal)}",
            f"interval {_format_coefficient(alphas.interval)}",
        ]
        clips = counted(alphas.n_clips, "clip")
        basis = f"{_people_and_machines(alphas)}, {clips} with two labels or more"
        lines.append(f"{title}: {', '.join(values)} ({basis})")
    return lines


def _people_and_machines(alphas: "LevelAlphas") -> str:
    """Write how many annotators were compared, such as "3 people and 1 machine (qwen-vl)".

    Without machines it is "4 annotators".
    """
    n_machines = len(alphas.machines)
    if not n_machines:
        return f"{alphas.annotators} annotators"
    people = counted(alphas.annotators - n_machines, "person", "people")
    machines = counted(n_machines, "machine")
    return f"{people} and {machines} ({', '.join(alphas.machines)})"


def alphas_of_segments(films: "Sequence[FilmUnitisedAlpha]") -> list[str]:
    """Format the table of Krippendorff's alpha of segments, with a row for each film.

    There are three alphas: of segments and their levels, of what is marked at all, and of the levels at times
    when two annotators marked something. The last column is the share of these times.
    """
    rows = []
    for film in films:
        alphas = film.value
        row = [
            film.movie,
            str(len(film.annotators)),
            _format_coefficient(alphas.segments),
            _format_coefficient(alphas.marked),
            _format_coefficient(alphas.values),
            f"{percentage(alphas.coverage)}%",
        ]
        rows.append(row)
    headings = [
        "movie",
        "annotators",
        "Krippendorff's\nalpha",
        "of what\nis marked",
        "of levels where\ntwo marked",
        "of the\ntime",
    ]
    lines = table(rows, headings).split("\n")
    n_cut = sum(film.n_cut for film in films)
    if n_cut:
        lines.append(
            f"{n_cut} segments lie in part under others of the same annotator: the higher level counts"
        )
    return lines


def time_left_out(labels: "Manifest") -> list[str]:
    """Say how many seconds of segments do not count in agreement, as some annotator did not annotate there.

    Somebody who marks the lowest level too marks all that they watch: for the time before their first mark,
    and after their last one, they have no answer. An example: AB marks 0 to 100 s, CD 0 to 60 s. Then the
    segments of AB after 60 s are left out.

    Rows without a label are no segments.
    """
    from obygaze_features.manifest import in_common_stretches

    marked_s = sum(clip.duration_s or 0.0 for clip in labels if clip.level is not None)
    answered_by_all = in_common_stretches(labels)
    counted_s = sum(clip.duration_s or 0.0 for clip in answered_by_all if clip.level is not None)
    left_out_s = int(rounded(marked_s - counted_s))
    if left_out_s < 1:
        return []
    reason = "somebody who marks the lowest level too had not begun there, or had stopped"
    return [f"{left_out_s:,} s of segments left out: {reason}"]


def windows_left_out(labels: "Manifest") -> list[str]:
    """Say how many windows have no part in agreement, as some annotator of the film has no answer there.

    Nothing marked is no answer of somebody who marks the lowest level too: they would have marked it. An
    example: AB and CD label a film of three windows, and CD leaves out the last: one window is left out.
    """
    # A window that nobody labelled has a row too, whose annotator is empty. It belongs to no annotator of the
    # movie, and the window lacks an answer of each of them.
    annotators_of_movie: dict[str, set[str]] = {}
    annotators_of_window: dict[tuple[str, str], set[str]] = {}
    for row in labels:
        if row.annotator:
            annotators_of_movie.setdefault(row.movie, set()).add(row.annotator)
        annotators_of_window.setdefault((row.movie, row.clip_id), set()).add(row.annotator)

    n_windows = 0
    for (movie, _), annotators in annotators_of_window.items():
        without_answer = annotators_of_movie.get(movie, set()) - annotators
        lacks_an_answer = bool(without_answer)
        if lacks_an_answer:
            n_windows += 1
    if not n_windows:
        return []
    windows = counted(n_windows, "window has", "windows have")
    reason = "somebody who marks the lowest level too marked nothing there"
    return [f"{windows} no answer by some annotator of the film, and no part in their agreement: {reason}"]


def machines_among_annotators(machines: Sequence[str]) -> list[str]:
    """Write which annotators are machines, if any are: measures of agreement count them as annotators."""
    if not machines:
        return []
    noun = "machine" if len(machines) == 1 else "machines"
    return [f"{noun} among the annotators, which count in the numbers above: {', '.join(machines)}"]


def in_sight(blind: "BlindLabels", *, whole_films: bool = False) -> list[str]:
    """Write how many labels were left out because they were given in sight of a model's score, if any were.

    Labels that do not say whether a score was in sight are counted too. With `whole_films`, all labels that
    an annotator gave in a film are left out if one of them was given in sight.
    """
    lines = []
    if blind.n_left_out:
        left_out = f"{counted(blind.n_left_out, 'judgement')} in sight of a model's score (seen_score 1)"
        if whole_films:
            segments = counted(blind.n_left_out, "segment")
            left_out = f"{segments} of annotators who saw a model's score in the film (seen_score 1)"
        lines.append(f"left out: {left_out}")
    if blind.n_unknown:
        lines.append(
            f"{counted(blind.n_unknown, 'judgement does', 'judgements do')} not say whether a model's score "
            "was in sight (seen_score empty), and counted as blind"
        )
    return lines


def disagreements(pairs: "Sequence[PairLevels]", levels: Sequence[str]) -> list[str]:
    """Format the disagreements of every two annotators: `COUNTS_OF_SPANS` by pair, then a matrix of levels.

    Parameters
    ----------
    pairs
        The levels that each pair of annotators of a film gave to the same spans.
    levels
        The levels of the codebook, the lowest first.
    """
    lowest = levels[0]
    counts_of_pairs = [pair.counts_by_outcome(lowest) for pair in pairs]
    totals = {}
    for name in COUNTS_OF_SPANS:
        totals[name] = sum(counts[name] for counts in counts_of_pairs)

    rows = []
    for pair, counts in zip(pairs, counts_of_pairs, strict=True):
        rows.append([pair.movie, " / ".join(pair.annotators), *_cells_of_counts(counts)])
    rows.append(["all", "", *_cells_of_counts(totals)])
    columns_of_counts = range(2, 2 + len(COUNTS_OF_SPANS))
    by_pair = table(rows, ["movie", "annotators", *COUNTS_OF_SPANS], right=columns_of_counts)

    n_different = totals["overlooked"] + totals["other readings"]
    summary = (
        f"{n_different:,} of {totals['spans']:,} differ; in {totals['overlooked']:,} of them one annotator "
        f"is at {lowest} and the other above it"
    )
    return [*by_pair.split("\n"), "", *_level_matrix(pairs, levels), "", summary]


def _cells_of_counts(counts: Mapping[str, int]) -> list[str]:
    """Return counts of spans as cells, in the order of `COUNTS_OF_SPANS`."""
    return [str(counts[name]) for name in COUNTS_OF_SPANS]


def _level_matrix(pairs: "Sequence[PairLevels]", levels: Sequence[str]) -> list[str]:
    """Format a matrix that counts spans by the level of the first annotator and that of the second.

    The counts are summed over all pairs of annotators. `levels` are those of the codebook.
    """
    rows = []
    for first in levels:
        counts = [sum(pair.counts.get((first, second), 0) for pair in pairs) for second in levels]
        rows.append([first, *counts])
    return table(rows, ["first / second", *levels], right=range(1, 1 + len(levels))).split("\n")


def machines(results: "Mapping[str, Alternative]") -> list[str]:
    """Format the alt-test of each machine: its table, and whether it may stand in for an annotator.

    `results` maps the name of a machine to its result.
    """
    lines: list[str] = []
    for name, result in results.items():
        if lines:
            lines.append("")  # a blank line between two machines
        annotators = []
        for annotator, n_clips in result.annotators.items():
            annotators.append(f"{annotator} ({counted(n_clips, 'clip')})")
        lines += [
            *_alt_test_table(result),
            "",
            f"{counted(result.films, 'film')}; left out in turn: {', '.join(annotators)}",
            "win: share of annotators that it is as good as, less a margin of 0 to .2",
        ]
        if result.in_sight:
            lines.append(
                f"left out: {result.in_sight:,} judgements in sight of a model's score (seen_score 1)"
            )
        if result.unanswered:
            lines.append(
                f"not compared: {result.unanswered:,} of {counted(result.clips, 'clip')} that two annotators "
                f"judged: {name} has no label for them that is compared here, and nothing is said of them"
            )
        lines.append(f"{name}: {result.answer}")
    return lines


def _alt_test_table(result: "Alternative") -> list[str]:
    """Format the table of an alt-test: the machine and its controls, each in the forms of `TITLES_OF_FORMS`.

    The forms differ in their unit, clips or films, and in the measure of agreement. The advantage probability
    is the share of clips for which the machine agrees with the other annotators at least as well as the
    annotator left out; it is published with clips as units only. The column "below annotators" is the mean
    shortfall: the annotators' agreement less the machine's. The columns "win" are the winning rates.
    """
    from obygaze_models.evaluation.alttest import MARGINS

    headings = ["", "by", "advantage\nprobability", "below\nannotators"]
    headings += [f"win\n{margin:g}" for margin in MARGINS]
    rows = []
    for comparison in result.comparisons:
        for form, title in TITLES_OF_FORMS.items():
            advantage = f"{comparison.advantage:.2f}" if form == "clips" else ""
            shortfall = signed(comparison.mean_shortfall(form), 3)
            winning_rates = [f"{comparison.winning_rate(form, margin):.2f}" for margin in MARGINS]
            rows.append([comparison.name, title, advantage, shortfall, *winning_rates])
    return table(rows, headings, right=range(2, len(headings))).split("\n")
