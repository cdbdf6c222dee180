"""`obygaze manifest alttest` and `progress`: may a machine stand in for an annotator; how does a round go."""

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from obygaze_features import manifest as manifests
from obygaze_features.options import PATH, json_option, show
from obygaze_features.screen import table
from obygaze_models.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obygaze_features.manifest import Manifest
    from obygaze_models.evaluation.alttest import Alternative
    from obygaze_models.evaluation.drift import Drift


@click.command()
@click.argument("manifest", type=PATH)
@click.option(
    "--machine",
    "machines",
    multiple=True,
    metavar="ANNOTATOR",
    help="Annotator that is a machine; repeatable. [default: those with a cell in the column 'model']",
)
@click.option(
    "--task", metavar="TASK", help="Task of levels, or concept:NAME, to compare on. [default: all levels]"
)
@json_option
def alttest(manifest: Path, machines: tuple[str, ...], task: str | None, as_json: bool) -> None:
    """Test whether a machine may stand in for an annotator (Calderon et al., ACL 2025).

    Each annotator is left out in turn: does the machine agree with the others as well as they do, less a
    margin? The winning rate is the share of annotators of whom this is shown (Benjamini-Yekutieli, .05). It
    stands there for margins of 0 to .2, with clips as units as published, with films as units, and for
    balanced agreement, in which each class of the others' calls weighs the same. So it does for two that know
    nothing: a constant answer, and the machine's answers in another order within films.

    The answer is "may stand in" where the machine wins against half of the annotators by balanced agreement
    at a margin of .1, films as units, and those that know nothing do not.

    \b
    Examples:
      obygaze manifest alttest judged.csv
      obygaze manifest alttest judged.csv --machine qwen-vl --task concept:Body
    """
    found = compared(manifests.read_manifest(manifest), machines, task)
    document = {name: record(each) for name, each in found.items()}
    if not found:
        raise ProtocolError(
            f"{manifest}: no annotator is known as a machine: name one with --machine, or import answers "
            "with 'obygaze manifest import spans FILE --as answers'"
        )
    show(document, lambda: text(document).lstrip(), as_json=as_json)


@click.command()
@click.argument("round_", type=PATH, metavar="ROUND")
@click.argument("annotated", type=PATH)
@click.option(
    "--task",
    metavar="TASK",
    help="Task of levels, or concept:NAME, whose share may drift.  [default: mean level]",
)
@json_option
def progress(round_: Path, annotated: Path, task: str | None, as_json: bool) -> None:
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
    from dataclasses import asdict

    from obygaze_models.evaluation.rounds import round_progress

    rows = manifests.read_manifest(annotated)
    found = round_progress(manifests.read_manifest(round_), rows, task)
    films = {film for each in found.values() for film in each.films}
    outside = {
        "annotators": Counter(
            clip.annotator or "nobody named" for clip in rows if clip.annotator not in found
        ),
        "films": Counter(clip.movie for clip in rows if clip.movie not in films),
    }
    for what, others in outside.items():
        if others:
            names = ", ".join(f"{name} ({n:,})" for name, n in others.items())
            click.echo(f"{annotated}: left out clips of {what} that are not in the round: {names}", err=True)
    document = {name: asdict(each) for name, each in found.items()}
    for drifts in (each[what] for each in document.values() for what in ("alone", "against")):
        drifts.update({key: None for key, value in drifts.items() if math.isnan(value)})

    def shown() -> str:
        rows = []
        for name, each in found.items():
            done = f"{len(each.done)} of {len(each.films)}", f"{each.clips_done:,} of {each.clips:,}"
            changes = _interval(each.alone), _interval(each.against)
            rows.append([name, *done, *changes, "drifts" * each.against.is_found])
        heads = ["annotator", "films", "clips", "change over films", "against the others", ""]
        left = [f"{name}: to do {', '.join(each.to_do)}" for name, each in found.items() if each.to_do]
        return "\n".join([table(rows, heads), "", *left]).rstrip()

    show(document, shown, as_json=as_json)


def _interval(each: "Drift") -> str:
    text = f"{each.value:+.2f} [{each.low:+.2f}, {each.high:+.2f}], {each.films} films"
    return f"{each.films} films: too few" if math.isnan(each.value) else text


def compared(
    labels: "Manifest", machines: "Sequence[str]" = (), task: str | None = None
) -> "dict[str, Alternative]":
    """Test each machine among a manifest's annotators, by default those that answers were imported of."""
    from obygaze_models.commands.annotation_commands import projected
    from obygaze_models.evaluation.alttest import UNKNOWN, alt_test
    from obygaze_models.protocol import find_target
    from obygaze_models.protocol.targets import labels_of

    names = {clip.annotator for clip in labels if clip.annotator}
    if unknown := [name for name in machines if name not in names]:
        raise ProtocolError(f"no annotator {unknown[0]!r}: there are {', '.join(sorted(names)) or 'none'}")
    known = sorted({clip.annotator for clip in labels if clip.extras.get("model")})
    chosen = list(machines) or known
    if not chosen:
        return {}
    clips = labels_of(projected(labels)[0])
    target = None if task is None else find_target(task, labels.codebook)
    rank = {"": UNKNOWN} | {name: place for place, name in enumerate(labels.codebook.level_names)}
    codes = {
        name: np.array([rank[level] for level in own.levels.tolist()]) if target is None else target.of(own)
        for name, own in clips.experts.items()
    }
    people = {name: own for name, own in codes.items() if name not in {*chosen, *known}}
    return {name: alt_test(codes[name], people, clips.movies, name) for name in chosen}


def record(found: "Alternative") -> dict[str, Any]:
    """Make the document of one machine: a row for each form of the test, also of those that know nothing."""
    from obygaze_models.evaluation.alttest import FORMS, MARGINS

    rows = [
        {
            "name": each.name,
            "by": form,
            "advantage_probability": each.advantage,
            "below": each.below(form),
            "winning_rate": {f"{e:g}": each.winning_rate(form, e) for e in MARGINS},
        }
        for each in found.standings
        for form in FORMS
    ]
    return {"answer": found.answer, "annotators": found.annotators, "films": found.films, "rows": rows}


def text(found: "dict[str, dict[str, Any]]") -> str:
    """Lay out the documents of machines."""
    from obygaze_models.evaluation.alttest import FORMS, MARGINS

    parts = []
    for name, document in found.items():
        rows = [
            [
                row["name"],
                FORMS[row["by"]],
                f"{row['advantage_probability']:.2f}" if row["by"] == "clips" else "",
                f"{row['below']:+.3f}",
                *(f"{rate:.2f}" for rate in row["winning_rate"].values()),
            ]
            for row in document["rows"]
        ]
        heads = ["", "by", "advantage\nprobability", "below\nannotators", *(f"win\n{e:g}" for e in MARGINS)]
        people = ", ".join(f"{who} ({n} clips)" for who, n in document["annotators"].items())
        parts.append(
            f"{table(rows, heads, right=range(2, 4 + len(MARGINS)))}\n\n{document['films']} films; left out "
            f"in turn: {people}\nwin: share of annotators that it is as good as, less a margin of 0 to .2\n"
            f"{name}: {document['answer']}"
        )
    return "\n\n".join(["", *parts])
