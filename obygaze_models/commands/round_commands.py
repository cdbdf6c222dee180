"""`obygaze manifest progress` and `rank`: how does a round of annotation go, and what do pairs say."""

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path

import click

from obygaze_features import manifest as manifests
from obygaze_features.io import write_whole
from obygaze_features.lines import csv_line
from obygaze_features.manifest.spans.names import refuse_twins
from obygaze_features.options import Answer, Output, declared
from obygaze_features.templates import filled
from obygaze_features.text import composed
from obygaze_models.errors import ProtocolError

COLUMNS = ("worker", "left", "right", "chosen")


@declared(__package__, "manifest progress")
def progress(round_: Path, annotated: Path, task: str | None) -> Answer:
    """Show how far a round of annotation is, and whether annotators drift.

    ROUND is what 'manifest assign' wrote; ANNOTATED is a manifest of what was annotated so far, of its clips
    or of free segments, which are projected onto these. Drift is the change of an annotator's mean level, or
    share of positives, from their first film to their last: alone, and against the others who annotated the
    same clips, in which what the films show cancels out. It is found where the interval against the others
    is without 0; one of twenty annotators who do not drift is found.

    \b
    Examples:
      obygaze manifest assign clips.csv --annotator AB --annotator CD --each 2 \\
          --out round.csv
      obygaze manifest import spans done/*.eaf --out done.csv
      obygaze manifest progress round.csv done.csv --task en_s
    """
    from obygaze_models.evaluation.rounds import round_progress

    rows, planned = manifests.read_manifest(annotated), manifests.read_manifest(round_)
    for what in ("annotator", "movie"):
        named = ((path, clip) for path, of in ((annotated, rows), (round_, planned)) for clip in of)
        refuse_twins(what, {getattr(c, what): (path, f"clip {c.clip_id!r}") for path, c in named})
    found = round_progress(planned, rows, task)
    films = {film for each in found.values() for film in each.films}
    for what, told, known in (("annotators", "annotator", {*found}), ("films", "movie", films)):
        if others := Counter(name for clip in rows if (name := getattr(clip, told)) not in known):
            names = ", ".join(f"{name or 'nobody named'} ({n:,})" for name, n in others.items())
            click.echo(f"{annotated}: left out clips of {what} that are not in the round: {names}", err=True)
    document = {name: asdict(each) for name, each in found.items()}
    for drifts in (each[what] for each in document.values() for what in ("alone", "against")):
        drifts.update({key: None for key, value in drifts.items() if math.isnan(value)})
    return Answer(document, filled(__package__, "progress.txt.jinja", {"found": found}).rstrip())


@declared(__package__, "manifest rank")
def rank(
    manifest: Path,
    comparisons: tuple[Path, ...],
    scale: str,
    masters: tuple[str, ...],
    ask: bool,
    output: Output,
) -> Answer:
    """Rank clips by COMPARISONS of two, which workers chose between (Bradley-Terry).

    COMPARISONS are tables with the columns worker, left, right (clips), and chosen: the one of these two with
    more of it. Of each worker the reliability, the share of judgements that are not random, is estimated with
    the ranking; who answers at random is named and hardly counts. The column NAME gets each clip's place from
    -1 to 1, the strongest at an end, NAME_low and NAME_high its 95 % interval: the codebook's cuts make
    levels of it, for --task scale:NAME.

    With --ask --out is a table of pairs to judge, in which worker and chosen are to be filled in. The first
    pairs need no COMPARISONS, the next ones all tables of rounds that were judged.

    \b
    Examples:
      obygaze manifest rank clips.csv --scale valence --ask --out round1.csv
      obygaze manifest rank clips.csv round1.csv --scale valence --ask \\
          --out round2.csv
      obygaze manifest rank clips.csv round1.csv round2.csv --scale valence \\
          --out ranked.csv
      obygaze evaluate ranked.csv stores/clips --task scale:valence
    """
    import numpy as np

    from obygaze_models.evaluation.ranking import next_pairs, rank_items

    if ask and masters:
        raise click.UsageError("--master is of a ranking: --ask takes all workers alike")
    output.refuse_existing()
    read = manifests.read_manifest(manifest)
    if not read.codebook.scale(scale).cuts:
        raise ProtocolError(
            f"scale {scale!r} of codebook {read.codebook.name!r} has no cuts, which make levels"
        )
    known = {clip.clip_id for clip in read}
    given = [(path, line, each) for path in comparisons for line, each in _comparisons(path, known)]
    refuse_twins("worker", {who: (path, f"line {line}") for path, line, (who, *_) in reversed(given)})
    judged = [each for _, _, each in given]
    if again := len(judged) - len({(who, frozenset(pair)) for who, *pair in judged}):
        what = manifests.counted(again, "row repeats", "rows repeat")
        click.echo(f"{what} a worker's judgement of two clips, and each counts", err=True)
    if ask:
        pairs = next_pairs(sorted(known), judged)
        rows = [COLUMNS, *(("", *pair, "") for pair in pairs)]
        write_whole(output.path, "".join(map(csv_line, rows)))
        document = {"pairs": str(output.path), "asked": len(pairs)}
        return Answer(document, f"{output.path}: {len(pairs):,} pairs to judge")
    if not judged:
        raise ProtocolError("there is no comparison to rank by: give their tables, or --ask")
    found = rank_items(judged, masters=[name.strip() for name in masters])
    columns = (scale, f"{scale}_low", f"{scale}_high")
    rows = np.char.mod("%.4f", np.stack([found.place, found.low, found.high], axis=1)).tolist()
    places = {item: dict(zip(columns, row, strict=True)) for item, row in zip(found.items, rows, strict=True)}
    if before := sum(any(clip.extras.get(name) for name in columns) for clip in read):
        what = manifests.counted(before, "row")
        click.echo(f"{what} had cells in {', '.join(columns)}, which are replaced or emptied", err=True)
    level_of, ends = read.codebook.scale(scale).level_of, columns[1:]
    sure = sum(len({level_of(place[end]) for end in ends}) == 1 for place in places.values())
    nowhere = dict.fromkeys(columns, "")
    clips = (replace(clip, extras={**clip.extras, **places.get(clip.clip_id, nowhere)}) for clip in read)
    manifests.write_manifest(read.with_clips(clips), output.path)
    document = {
        "manifest": str(output.path),
        "clips": len(found.items),
        "in_one_level": sure,
        "logits_at_1": float(abs(found.strength).max()),
        "workers": found.workers.to_dict("records"),
    }

    return Answer(document, filled(__package__, "rank.txt.jinja", {**document, "known": len(known)}).rstrip())


def _comparisons(path: Path, known: Collection[str]) -> list[tuple[int, tuple[str, str, str]]]:
    """Read (worker, chosen, other) of each row, with its line."""
    found, table = [], manifests.read_table(path, COLUMNS)
    for row in table.checked():
        worker, left, right, chosen = (composed(row.cells[name].strip()) for name in COLUMNS)
        if not worker:
            table.problems.add(row.line, "no worker is named", "worker")
        for column, name in (("left", left), ("right", right)):
            if name not in known:
                table.problems.add(row.line, f"{name!r:.60} is no clip of the manifest", column)
        if chosen not in {left, right}:
            table.problems.add(row.line, f"{chosen!r:.60} is neither left nor right", "chosen")
        elif left == right:
            table.problems.add(row.line, f"{left!r:.60} is compared with itself", "right")
        found.append((row.line, (worker, chosen, left if chosen == right else right)))
    return found
