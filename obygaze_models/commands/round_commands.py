"""`obygaze manifest progress` and `rank`: how does a round of annotation go, and what do pairs say."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from obygaze_features import manifest as manifests
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.lines import csv_line
from obygaze_features.options import FILE, Answer
from obygaze_features.screen import table
from obygaze_features.signatures import Force, argument, command, option
from obygaze_features.text import composed, counted, signed
from obygaze_models.errors import ProtocolError

if TYPE_CHECKING:
    from obygaze_models.evaluation.ranking import Ranking
    from obygaze_models.evaluation.rounds import Drift, Progress

COLUMNS = ("worker", "left", "right", "chosen")
"""Columns of a table of comparisons."""

MIN_ANNOUNCED_S = 10.0
"""CPU seconds from which on a note announces how long a ranking takes."""


# --- progress
# ---------------------------------------------------------------------------
@command()
def progress(
    planned: Annotated[Path, argument(metavar="ROUND")],
    annotated: Annotated[Path, argument()],
    *,
    task: Annotated[
        str | None,
        option(
            "Measure the share of positives of this task, such as hn_s, or of concept:NAME.  "
            "[default: the mean level]",
            metavar="TASK",
        ),
    ] = None,
) -> Answer:
    """Show how many films and clips of a round are annotated, and whether annotators drift.

    ROUND is a manifest that `obygaze manifest assign` wrote. ANNOTATED is a manifest of the annotations so
    far: of the round's clips, or of free segments, which are projected onto the clips.

    Drift is the change of an annotator's mean level, or share of positives, from the first to the last
    film. It is measured for the annotator alone, and against the others who annotated the same clips, where
    differences between films cancel out. An annotator is reported to drift if the 95 % interval against the
    others excludes 0. By chance this also happens to 5 % of the annotators who do not drift. Labels of
    machines (column model) are no part of drift. Those given in sight of a model's score (column seen_score)
    are, and their number is printed.

    \b
    Examples:
      obygaze manifest assign clips.csv --annotator AB --annotator CD --each 2 \\
          --out round.csv
      obygaze manifest import spans done/*.eaf --out done.csv
      obygaze manifest progress round.csv done.csv --task en_s
    """
    from obygaze_models.evaluation.rounds import round_progress

    annotated_clips = manifests.read_manifest(annotated)
    planned_clips = manifests.read_manifest(planned)
    for column in ("annotator", "movie"):
        _refuse_two_spellings(column, {annotated: annotated_clips, planned: planned_clips})
    by_annotator = round_progress(planned_clips, annotated_clips, task)

    # Clips of other annotators, and of films that nobody is to annotate, are left out.
    annotators_of_clips = [clip.annotator for clip in annotated_clips]
    _print_left_out(annotated, "annotators", annotators_of_clips, known=by_annotator.keys())
    films: set[str] = set()
    for progress_of_annotator in by_annotator.values():
        films.update(progress_of_annotator.films)
    films_of_clips = [clip.movie for clip in annotated_clips]
    _print_left_out(annotated, "films", films_of_clips, known=films)

    document = {name: _progress_record(by_annotator[name]) for name in by_annotator}
    return Answer(document, "\n".join(_progress_lines(by_annotator)))


def _refuse_two_spellings(column: str, manifests_of_files: "Mapping[Path, manifests.Manifest]") -> None:
    """Raise if a name in a column of manifests is spelled in two ways; the message names a clip of each.

    `column` is "annotator" or "movie".
    """
    places = {}
    for path, clips in manifests_of_files.items():
        for clip in clips:
            places[getattr(clip, column)] = (path, f"clip {clip.clip_id!r}")
    manifests.refuse_twins(column, places)


def _progress_record(progress_of_annotator: "Progress") -> dict[str, Any]:
    """Return the progress of an annotator as JSON values; undefined numbers of a drift are None."""
    record = asdict(progress_of_annotator)
    # The drifts of the annotator's own calls, and of their differences from the others' calls.
    for name in ("alone", "against"):
        drift = record[name]
        # JSON has no NaN.
        record[name] = {key: None if math.isnan(value) else value for key, value in drift.items()}
    return record


def _print_left_out(path: Path, kind: str, names: Iterable[str], known: Collection[str]) -> None:
    """Print how many clips are left out because their annotator or film is not in the round.

    Parameters
    ----------
    path
        The file of the clips.
    kind
        "annotators" or "films".
    names
        The annotator or film of each clip; "" for a clip without one.
    known
        The annotators or films of the round.
    """
    n_clips_of_name = Counter(name for name in names if name not in known)
    if not n_clips_of_name:
        return

    counts = []
    for name, n_clips in n_clips_of_name.items():
        shown_name = name or "nobody named"
        counts.append(f"{shown_name} ({n_clips:,})")
    listed = ", ".join(counts)
    click.echo(f"{path}: left out clips of {kind} that are not in the round: {listed}", err=True)


def _progress_lines(by_annotator: "Mapping[str, Progress]") -> list[str]:
    """Format the table of each annotator's progress and drift, then the films that are still to do."""
    rows = []
    to_do = []
    for name, progress_of_annotator in by_annotator.items():
        n_films_done = len(progress_of_annotator.done)
        n_films = len(progress_of_annotator.films)
        n_clips_done = progress_of_annotator.clips_done
        n_clips = progress_of_annotator.clips
        row = (
            name,
            f"{n_films_done} of {n_films}",
            f"{n_clips_done:,} of {n_clips:,}",
            _format_drift(progress_of_annotator.alone),
            _format_drift(progress_of_annotator.against),
            "drifts" if progress_of_annotator.against.is_found else "",
        )
        rows.append(row)
        if progress_of_annotator.to_do:
            to_do.append(f"{name}: to do {', '.join(progress_of_annotator.to_do)}")
    headings = ["annotator", "films", "clips", "change over films", "against the others", ""]
    lines = table(rows, headings).split("\n")
    n_in_sight = sum(progress_of_annotator.in_sight for progress_of_annotator in by_annotator.values())
    if n_in_sight:
        judgements = counted(n_in_sight, "judgement")
        lines += ["", f"of these, {judgements} in sight of a model's score (seen_score 1)"]
    if to_do:
        lines += ["", *to_do]
    return lines


def _format_drift(drift: "Drift") -> str:
    """Format a drift with its 95 % interval and number of films, or that there were too few films for one.

    A drift is the change of an annotator's mean call from the first film to the last; examples are "+0.21
    [+0.02, +0.40], 6 films" and "3 films: too few".
    """
    if math.isnan(drift.value):
        return f"{counted(drift.films, 'film')}: too few"
    low, high = signed(drift.low, 2), signed(drift.high, 2)
    return f"{signed(drift.value, 2)} [{low}, {high}], {counted(drift.films, 'film')}"


# --- rank
# ---------------------------------------------------------------------------
class Judgement(NamedTuple):
    """A worker's choice between two clips.

    Attributes
    ----------
    worker : str
        The worker.
    chosen, other : str
        The clip that was chosen, and the other one.
    path, line
        The file and line of the choice.
    """

    worker: str
    chosen: str
    other: str
    path: Path
    line: int

    @property
    def comparison(self) -> tuple[str, str, str]:
        """Worker, chosen clip and other clip: the triple that `rank_items` and `next_pairs` take."""
        return self.worker, self.chosen, self.other


@command()
def rank(
    manifest: Annotated[Path, argument()],
    comparisons: Annotated[tuple[Path, ...], argument()] = (),
    *,
    scale: Annotated[
        str,
        option(
            "Scale of the codebook to rank on; it must have cuts (bounds between levels).", metavar="NAME"
        ),
    ],
    masters: Annotated[
        tuple[str, ...],
        option(
            "Worker whose judgements are all reliable (reliability 1); repeatable.",
            name="master",
            metavar="WORKER",
        ),
    ] = (),
    ask: Annotated[
        bool, option("Write the pairs to judge next, chosen as quicksort does, and no ranking.")
    ] = False,
    out: Annotated[
        Path,
        option(
            "File to write: the manifest with each clip's strength or, with --ask, the table of pairs.",
            type=FILE,
        ),
    ],
    force: Force = False,
) -> Answer:
    """Rank clips on a scale from judgements of pairs (Bradley-Terry).

    COMPARISONS are tables with the columns worker, left and right (ids of two clips), and chosen (the id of
    the one that is stronger on the scale; empty if nobody judged yet). Each worker's reliability, the share
    of judgements that are not random, is estimated together with the ranking. Workers who judge at random are
    named, and hardly count.

    The manifest that is written has these columns:

    \b
    NAME                            strength of the clip on scale NAME, in logits
    NAME_low, NAME_high             its 95 % interval
    NAME_rank                       rank of the clip; 1 is the strongest
    NAME_rank_low, NAME_rank_high   its 95 % interval

    A clip of strength 0 would be chosen over half of the others. A clip of strength 1 would be chosen over
    a clip of strength 0 in 73 of 100 judgements. The codebook's cuts, which are logits too, turn strengths
    into levels for --task scale:NAME.

    With --ask, write a table of pairs to judge next instead; fill in its columns worker and chosen. The
    first table needs no COMPARISONS. For the next table, give all tables that were judged.

    \b
    Examples:
      obygaze manifest rank clips.csv --scale valence --ask --out round1.csv
      obygaze manifest rank clips.csv round1.csv --scale valence --ask \\
          --out round2.csv
      obygaze manifest rank clips.csv round1.csv round2.csv --scale valence \\
          --out ranked.csv
      obygaze evaluate ranked.csv stores/clips --task scale:valence
    """
    from obygaze_models.evaluation.ranking import expected_s, next_pairs, rank_items

    if ask and masters:
        raise click.UsageError("--master is for a ranking: with --ask all workers count the same")
    refuse_existing(out, force=force)
    clips = manifests.read_manifest(manifest)
    if not clips.codebook.scale(scale).cuts:
        raise ProtocolError(
            f"scale {scale!r} of codebook {clips.codebook.name!r} has no cuts, which make levels"
        )
    clip_ids = {clip.clip_id for clip in clips}
    judgements_of_tables = [_read_judgements(path, clip_ids) for path in comparisons]
    _refuse_table_given_twice(comparisons, judgements_of_tables)
    judgements: list[Judgement] = []
    for judgements_of_table in judgements_of_tables:
        judgements += judgements_of_table
    _refuse_two_spellings_of_workers(judgements)
    _print_repeated(judgements)
    compared = [judgement.comparison for judgement in judgements]
    if ask:
        pairs = next_pairs(sorted(clip_ids), compared)
        _write_pairs(pairs, out)
        document = {"pairs": str(out), "asked": len(pairs)}
        return Answer(document, f"{out}: {counted(len(pairs), 'pair')} to judge")

    if not compared:
        raise ProtocolError("there is no comparison to rank by: give their tables, or --ask")
    cpu_s = expected_s(len(compared))
    if cpu_s >= MIN_ANNOUNCED_S:
        click.echo(f"note: {len(compared):,} comparisons take about {cpu_s:.0f} s of CPU", err=True)
    ranking = rank_items(compared, masters=[composed(name.strip()) for name in masters])
    return _write_ranking(ranking, clips, scale, out)


def _write_ranking(ranking: "Ranking", clips: "manifests.Manifest", scale: str, out: Path) -> Answer:
    """Write a manifest with the ranking of its clips, and return the command's answer about the ranking.

    The answer has the reliabilities of the workers and says of how many clips the level on the scale is
    certain: their whole 95 % interval is in one level.
    """
    cells_of_clip = _ranking_cells(ranking, scale)
    _write_ranked(clips, cells_of_clip, out)
    n_in_one_level = _count_in_one_level(clips, cells_of_clip, scale)
    workers = ranking.workers.to_dict("records")
    document = {
        "manifest": str(out),
        "clips": len(ranking.items),
        "in_one_level": n_in_one_level,
        "workers": workers,
    }
    n_clips = len({clip.clip_id for clip in clips})
    summary = (
        f"{out}: {len(ranking.items):,} of {counted(n_clips, 'clip')} ranked; of {n_in_one_level:,} "
        "the whole interval is in one level"
    )
    return Answer(document, "\n".join([*_workers_table(workers), "", summary]))


def _write_pairs(pairs: Iterable[tuple[str, str]], out: Path) -> None:
    """Write a table of pairs to judge, whose cells of worker and chosen are left empty to be filled in."""
    lines = [csv_line(COLUMNS)]
    for left, right in pairs:
        lines.append(csv_line(("", left, right, "")))
    write_whole(out, "".join(lines))


def _read_judgements(path: Path, clip_ids: Collection[str]) -> list[Judgement]:
    """Read a table of comparisons of two clips.

    Rows without a chosen clip are not judged yet: they are left out, and their number is printed. All invalid
    rows (`_invalid_cells`) are reported in one error, after the last row.
    """
    judgements = []
    n_not_judged = 0
    table_of_comparisons = manifests.read_table(path, COLUMNS)
    problems = table_of_comparisons.problems
    # After the last row, `checked` raises an error if there are problems. Then nothing is returned, so that
    # invalid rows need not be left out here.
    for row in table_of_comparisons.checked():
        cells = {name: composed(row.cells[name].strip()) for name in COLUMNS}
        chosen = cells["chosen"]
        if not chosen:
            n_not_judged += 1
            continue
        for column, reason in _invalid_cells(cells, clip_ids):
            problems.add(row.line, reason, column)
        other = cells["left"] if chosen == cells["right"] else cells["right"]
        judgements.append(Judgement(cells["worker"], chosen, other, path, row.line))
    if n_not_judged:
        rows = manifests.counted(n_not_judged, "row")
        click.echo(f"{path}: {rows} left out, as no clip is chosen", err=True)
    return judgements


def _invalid_cells(cells: Mapping[str, str], clip_ids: Collection[str]) -> list[tuple[str, str]]:
    """List what is wrong with a judged row of a table of comparisons: pairs of a column and a reason.

    A row is invalid without a worker, with clips that are not among `clip_ids`, with a chosen clip that is
    not one of the two, or if a clip is compared with itself. `cells` are the row's cells by column.
    """
    left = cells["left"]
    right = cells["right"]
    chosen = cells["chosen"]
    invalid = []
    if not cells["worker"]:
        invalid.append(("worker", "no worker is named"))
    for column, clip_id in (("left", left), ("right", right)):
        if clip_id not in clip_ids:
            invalid.append((column, f"{clip_id!r:.60} is no clip of the manifest"))
    if chosen not in {left, right}:
        reason = f"{chosen!r:.60} is neither of the two clips: write {left!r:.60} or {right!r:.60}"
        invalid.append(("chosen", reason))
    elif left == right:
        invalid.append(("right", f"{left!r:.60} is compared with itself"))
    return invalid


def _refuse_table_given_twice(
    paths: Sequence[Path], judgements_of_tables: Sequence[Sequence[Judgement]]
) -> None:
    """Refuse two tables with the same judgements in the same order: one is a copy of the other.

    Counted twice, a judgement would look as if its worker had repeated it, and intervals would be too narrow.

    Parameters
    ----------
    paths
        The tables.
    judgements_of_tables
        The judgements of each of them.

    Raises
    ------
    ProtocolError
        Two tables have the same judgements.
    """
    path_of_comparisons: dict[tuple[tuple[str, str, str], ...], Path] = {}  # those of a table -> the table
    for path, judgements in zip(paths, judgements_of_tables, strict=True):
        comparisons = tuple(judgement.comparison for judgement in judgements)
        if comparisons in path_of_comparisons:
            n_judgements = counted(len(judgements), "judgement")
            first_path = path_of_comparisons[comparisons]
            raise ProtocolError(
                f"{path}: the same {n_judgements} in the same order as {first_path}: give one of the two "
                "(what was judged again belongs in one table with the first judgements)"
            )
        if comparisons:
            path_of_comparisons[comparisons] = path


def _refuse_two_spellings_of_workers(judgements: Sequence[Judgement]) -> None:
    """Raise if the name of a worker is spelled in two ways; the message has a line of each spelling."""
    # Going from the last judgement to the first leaves, for each worker, the place of the first one.
    places = {}
    for judgement in reversed(judgements):
        places[judgement.worker] = (judgement.path, f"line {judgement.line}")
    manifests.refuse_twins("worker", places)


def _print_repeated(judgements: Sequence[Judgement]) -> None:
    """Print how many judgements repeat an earlier one: the same worker compared the same two clips."""
    different_judgements = set()
    for judgement in judgements:
        clips = frozenset((judgement.chosen, judgement.other))
        different_judgements.add((judgement.worker, clips))
    n_repeated = len(judgements) - len(different_judgements)
    if n_repeated:
        rows = manifests.counted(n_repeated, "row repeats", "rows repeat")
        click.echo(f"{rows} a worker's judgement of two clips, and each counts", err=True)


def _ranking_cells(ranking: "Ranking", scale: str) -> dict[str, dict[str, str]]:
    """Format the strengths and ranks of clips on a scale: clip id -> column of the manifest -> cell.

    There is a column for the strength and for the rank, each with two more for its 95 % interval. Strengths
    have four decimals; ranks are whole numbers, but for medians between two ranks.
    """
    strengths = {scale: ranking.strength, f"{scale}_low": ranking.low, f"{scale}_high": ranking.high}
    ranks = {
        f"{scale}_rank": ranking.rank,
        f"{scale}_rank_low": ranking.rank_low,
        f"{scale}_rank_high": ranking.rank_high,
    }
    cells_of_clip = {}
    for index, clip_id in enumerate(ranking.items):
        cells = {}
        for column, numbers in strengths.items():
            cells[column] = f"{numbers[index]:.4f}"
        for column, numbers in ranks.items():
            cells[column] = f"{numbers[index]:g}"
        cells_of_clip[clip_id] = cells
    return cells_of_clip


def _count_in_one_level(
    clips: "manifests.Manifest", cells_of_clip: Mapping[str, Mapping[str, str]], scale: str
) -> int:
    """Count the clips whose 95 % interval lies in one level of a scale.

    Levels are computed from the rounded numbers in the cells (`_ranking_cells`), as `evaluate` reads them.
    """
    level_of = clips.codebook.scale(scale).level_of
    n_in_one_level = 0
    for cells in cells_of_clip.values():
        if level_of(cells[f"{scale}_low"]) == level_of(cells[f"{scale}_high"]):
            n_in_one_level += 1
    return n_in_one_level


def _write_ranked(
    clips: "manifests.Manifest", cells_of_clip: Mapping[str, Mapping[str, str]], out: Path
) -> None:
    """Write a manifest with strengths and ranks of its clips in additional columns (`_ranking_cells`).

    Clips without a rank get empty cells. If cells that a clip has in these columns are replaced, a notice
    with the number of clips is printed.
    """
    columns = list(next(iter(cells_of_clip.values())))  # the same for all clips

    # A manifest that was ranked before has these columns already. The extras of a clip are its cells in
    # columns that are not those of every manifest.
    filled = [column for column in columns if any(clip.extras.get(column) for clip in clips)]
    n_replaced = sum(any(clip.extras.get(column) for column in filled) for clip in clips)
    if n_replaced:
        rows = manifests.counted(n_replaced, "row")
        click.echo(f"{rows} had cells in {', '.join(filled)}, which are replaced or emptied", err=True)

    empty_cells = dict.fromkeys(columns, "")
    ranked = []
    for clip in clips:
        cells = cells_of_clip.get(clip.clip_id, empty_cells)
        ranked.append(replace(clip, extras={**clip.extras, **cells}))
    manifests.write_manifest(clips.with_clips(ranked), out)


def _workers_table(workers: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Format the table of workers and their reliabilities, the least reliable first."""
    rows = []
    for worker in sorted(workers, key=lambda worker: worker["reliability"]):
        reliability = f"{worker['reliability']:.2f} [{worker['low']:.2f}, {worker['high']:.2f}]"
        at_random = "at random" if worker["random"] else ""
        rows.append([worker["worker"], f"{worker['comparisons']:,}", reliability, at_random])
    return table(rows, ["worker", "comparisons", "reliability", ""], right=[1]).split("\n")
