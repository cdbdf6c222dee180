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
from obygaze_features.text import composed, counted
from obygaze_models.errors import ProtocolError

if TYPE_CHECKING:
    from obygaze_models.evaluation.ranking import Ranking
    from obygaze_models.evaluation.rounds import Drift, Progress

COLUMNS = ("worker", "left", "right", "chosen")
"""Columns of a table of comparisons."""

LEAST_ANNOUNCED_S = 10.0
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
            "Task of levels, or concept:NAME, whose share may drift.  [default: mean level]", metavar="TASK"
        ),
    ] = None,
) -> Answer:
    """Show how many films and clips of a round are annotated, and whether annotators drift.

    ROUND is a manifest that 'manifest assign' wrote. ANNOTATED is a manifest of the annotations so far: of
    the round's clips, or of free segments, which are projected onto the clips. Drift is the change of an
    annotator's mean level, or share of positives, from the first to the last film. It is measured alone, and
    against the others who annotated the same clips, where differences between films cancel out. An annotator
    is reported to drift if the 95 % interval against the others excludes 0; so are 5 % of the annotators who
    do not drift.

    \b
    Examples:
      obygaze manifest assign clips.csv --annotator AB --annotator CD --each 2 \\
          --out round.csv
      obygaze manifest import spans done/*.eaf --out done.csv
      obygaze manifest progress round.csv done.csv --task en_s
    """
    from obygaze_models.evaluation.rounds import round_progress

    labels = manifests.read_manifest(annotated)
    assigned = manifests.read_manifest(planned)
    for column in ("annotator", "movie"):
        places = {}
        for path, clips in ((annotated, labels), (planned, assigned)):
            for clip in clips:
                places[getattr(clip, column)] = (path, f"clip {clip.clip_id!r}")
        manifests.refuse_twins(column, places)
    by_annotator = round_progress(assigned, labels, task)
    _print_left_out(annotated, "annotators", (clip.annotator for clip in labels), by_annotator.keys())
    films: set[str] = set()
    for annotator in by_annotator.values():
        films.update(annotator.films)
    _print_left_out(annotated, "films", (clip.movie for clip in labels), films)
    document = {}
    for name, annotator in by_annotator.items():
        record = asdict(annotator)
        # JSON has no NaN.
        for drift in (record["alone"], record["against"]):
            for key, value in drift.items():
                if math.isnan(value):
                    drift[key] = None
        document[name] = record
    return Answer(document, "\n".join(_progress_lines(by_annotator)))


def _print_left_out(path: Path, kind: str, names: Iterable[str], known: Collection[str]) -> None:
    """Print how many clips are left out because their annotator or film is not in the round.

    Parameters
    ----------
    path
        The file of the clips.
    kind
        "annotators" or "films".
    names
        The annotator or film of each clip.
    known
        The annotators or films of the round.
    """
    n_clips_of = Counter(name for name in names if name not in known)
    if not n_clips_of:
        return
    counts = []
    for name, n_clips in n_clips_of.items():
        counts.append(f"{name or 'nobody named'} ({n_clips:,})")
    listed = ", ".join(counts)
    click.echo(f"{path}: left out clips of {kind} that are not in the round: {listed}", err=True)


def _progress_lines(by_annotator: "Mapping[str, Progress]") -> list[str]:
    """Format the table of each annotator's progress and drift, then the films that are still to do."""
    rows = []
    to_do = []
    for name, annotator in by_annotator.items():
        rows.append(
            (
                name,
                f"{len(annotator.done)} of {len(annotator.films)}",
                f"{annotator.clips_done:,} of {annotator.clips:,}",
                _format_drift(annotator.alone),
                _format_drift(annotator.against),
                "drifts" if annotator.against.is_found else "",
            )
        )
        if annotator.to_do:
            to_do.append(f"{name}: to do {', '.join(annotator.to_do)}")
    headings = ["annotator", "films", "clips", "change over films", "against the others", ""]
    lines = table(rows, headings).split("\n")
    return [*lines, "", *to_do] if to_do else lines


def _format_drift(drift: "Drift") -> str:
    """Format a drift with its interval and number of films."""
    if math.isnan(drift.value):
        return f"{counted(drift.films, 'film')}: too few"
    return f"{drift.value:+.2f} [{drift.low:+.2f}, {drift.high:+.2f}], {counted(drift.films, 'film')}"


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
        """The choice in the form that `rank_items` and `next_pairs` take."""
        return self.worker, self.chosen, self.other


@command()
def rank(
    manifest: Annotated[Path, argument()],
    comparisons: Annotated[tuple[Path, ...], argument()] = (),
    *,
    scale: Annotated[str, option("Scale of the codebook, which has cuts.", metavar="NAME")],
    masters: Annotated[
        tuple[str, ...],
        option("Worker whose reliability is known to be 1; repeatable.", name="master", metavar="WORKER"),
    ] = (),
    ask: Annotated[bool, option("Write the pairs to judge next, by quicksort, and no ranking.")] = False,
    out: Annotated[Path, option("Manifest to write: its clips with their strength on the scale.", type=FILE)],
    force: Force = False,
) -> Answer:
    """Rank clips on a scale from judgements of pairs (Bradley-Terry).

    COMPARISONS are tables with the columns worker, left and right (two clips), and chosen: which of the two
    is stronger on the scale. Each worker's reliability, the share of judgements that are not random, is
    estimated together with the ranking; workers who judge at random are named, and hardly count. In the
    manifest that is written, the column NAME holds each clip's strength in logits, and NAME_low and NAME_high
    its 95 % interval. A clip of strength 0 would be chosen over half of the others, and a clip of strength 1
    over a clip of strength 0 in 73 of 100 judgements. The codebook's cuts, in logits too, turn strengths into
    levels, for --task scale:NAME. NAME_rank is the clip's rank (1 is the strongest), NAME_rank_low and
    NAME_rank_high its 95 % interval.

    With --ask the command writes a table of pairs to judge next; fill in its columns worker and chosen. The
    first table needs no COMPARISONS. For the next ones, give all tables that were judged.

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
    known = {clip.clip_id for clip in clips}
    judgements: list[Judgement] = []
    for path in comparisons:
        judgements += _read_judgements(path, known)
    _check_workers(judgements)
    judged = [judgement.comparison for judgement in judgements]
    if ask:
        pairs = next_pairs(sorted(known), judged)
        rows = [COLUMNS, *(("", *pair, "") for pair in pairs)]
        write_whole(out, "".join(map(csv_line, rows)))
        return Answer(
            {"pairs": str(out), "asked": len(pairs)}, f"{out}: {counted(len(pairs), 'pair')} to judge"
        )
    if not judged:
        raise ProtocolError("there is no comparison to rank by: give their tables, or --ask")
    cpu_s = expected_s(len(judged))
    if cpu_s >= LEAST_ANNOUNCED_S:
        click.echo(f"note: {len(judged):,} comparisons take about {cpu_s:.0f} s of CPU", err=True)
    ranking = rank_items(judged, masters=[name.strip() for name in masters])
    n_in_one_level = _write_strengths(clips, ranking, scale, out)
    document = {
        "manifest": str(out),
        "clips": len(ranking.items),
        "in_one_level": n_in_one_level,
        "workers": ranking.workers.to_dict("records"),
    }
    summary = (
        f"{out}: {len(ranking.items):,} of {counted(len(known), 'clip')} ranked; of "
        f"{n_in_one_level:,} the whole "
        "interval is in one level"
    )
    lines = [*_workers_table(ranking.workers.to_dict("records")), "", summary]
    return Answer(document, "\n".join(lines))


def _read_judgements(path: Path, known: Collection[str]) -> list[Judgement]:
    """Read a table of comparisons of two clips.

    Rows without a worker, or with clips that are not among the `known` ones, are reported as errors together.
    """
    judgements = []
    comparisons = manifests.read_table(path, COLUMNS)
    problems = comparisons.problems
    for row in comparisons.checked():
        worker, left, right, chosen = (composed(row.cells[name].strip()) for name in COLUMNS)
        if not worker:
            problems.add(row.line, "no worker is named", "worker")
        for column, name in (("left", left), ("right", right)):
            if name not in known:
                problems.add(row.line, f"{name!r:.60} is no clip of the manifest", column)
        if chosen not in {left, right}:
            problems.add(row.line, f"{chosen!r:.60} is neither left nor right", "chosen")
        elif left == right:
            problems.add(row.line, f"{left!r:.60} is compared with itself", "right")
        other = left if chosen == right else right
        judgements.append(Judgement(worker, chosen, other, path, row.line))
    return judgements


def _check_workers(judgements: Sequence[Judgement]) -> None:
    """Raise if a worker is spelled in two ways; print how many judgements repeat an earlier one."""
    places = {}
    different = set()
    for judgement in reversed(judgements):
        places[judgement.worker] = (judgement.path, f"line {judgement.line}")
        different.add((judgement.worker, frozenset((judgement.chosen, judgement.other))))
    manifests.refuse_twins("worker", places)
    n_repeated = len(judgements) - len(different)
    if n_repeated:
        rows = manifests.counted(n_repeated, "row repeats", "rows repeat")
        click.echo(f"{rows} a worker's judgement of two clips, and each counts", err=True)


def _write_strengths(clips: "manifests.Manifest", ranking: "Ranking", name: str, out: Path) -> int:
    """Write a manifest with the strengths and ranks of its clips on a scale in additional columns.

    Parameters
    ----------
    clips
        The manifest.
    ranking
        Strengths and ranks of some of its clips; the others get empty cells.
    name
        Name of the scale.
    out
        File to write.

    Returns
    -------
    int
        The number of clips whose 95 % interval lies in one level of the scale.
    """
    scale = clips.codebook.scale(name)
    strengths = {name: ranking.strength, f"{name}_low": ranking.low, f"{name}_high": ranking.high}
    ranks = {
        f"{name}_rank": ranking.rank,
        f"{name}_rank_low": ranking.rank_low,
        f"{name}_rank_high": ranking.rank_high,
    }
    columns = (*strengths, *ranks)
    empty = dict.fromkeys(columns, "")
    cells: dict[str, dict[str, str]] = {}
    n_in_one_level = 0
    for index, item in enumerate(ranking.items):
        cells[item] = {}
        for column, numbers in strengths.items():
            cells[item][column] = f"{numbers[index]:.4f}"
        for column, numbers in ranks.items():
            cells[item][column] = f"{numbers[index]:g}"
        if scale.level_of(cells[item][f"{name}_low"]) == scale.level_of(cells[item][f"{name}_high"]):
            n_in_one_level += 1
    n_replaced = sum(any(clip.extras.get(column) for column in columns) for clip in clips)
    if n_replaced:
        rows = manifests.counted(n_replaced, "row")
        click.echo(f"{rows} had cells in {', '.join(columns)}, which are replaced or emptied", err=True)
    ranked = []
    for clip in clips:
        extras = {**clip.extras, **cells.get(clip.clip_id, empty)}
        ranked.append(replace(clip, extras=extras))
    manifests.write_manifest(clips.with_clips(ranked), out)
    return n_in_one_level


def _workers_table(workers: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Format the table of workers and their reliabilities, the least reliable first."""
    rows = []
    for worker in sorted(workers, key=lambda worker: worker["reliability"]):
        reliability = f"{worker['reliability']:.2f} [{worker['low']:.2f}, {worker['high']:.2f}]"
        at_random = "at random" if worker["random"] else ""
        rows.append([worker["worker"], f"{worker['comparisons']:,}", reliability, at_random])
    return table(rows, ["worker", "comparisons", "reliability", ""], right=[1]).split("\n")
