"""`obygaze manifest agreement`, `disagreements`, `alttest`, `obygaze localise`: compare people and models."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

import obygaze_models as om
from obygaze_features import manifest as manifests
from obygaze_features.manifest.spans.names import refuse_twins
from obygaze_features.options import Answer, Output, declared
from obygaze_features.templates import filled
from obygaze_models.errors import ProtocolError

SAMPLES = 62
"""Chance annotations of free segments, as many as the paper takes."""


@declared(__package__, "manifest agreement")
def agreement(manifest: Path, alpha: float, output: Output) -> Answer:
    """Measure the agreement gamma of every two annotators of a film (Tores et al., CVPR 2024, App. 7.3).

    gamma = 1 - observed / expected disorder: 1 is perfect, 0 is chance. The expected disorder is exact, from
    how often each annotator used each level (the paper estimates it by 62 shuffles). Where the codebook has
    levels that are in no task, such as NS, "without NS" compares only the clips that neither annotator left
    at one. The 0.42 and 0.69 that the
    paper prints are of the separate annotations of ObyGaze12, which are not public.

    Free segments, which differ between annotators, are projected onto windows of 46 s first, the mean clip of
    MovieGraphs; `manifest project --per-annotator` does so with windows or clips of yours.

    With --alpha above 0 annotators also disagree by what they mark and where it begins and ends: segments
    above the lowest level are aligned one with one or with none (Mathet et al. 2015).

    \b
    Examples:
      obygaze manifest agreement segments.csv
      obygaze manifest agreement segments.csv --alpha 1
      obygaze manifest project segments.csv --window 60 --per-annotator \\
          --out windows.csv
      obygaze manifest agreement windows.csv --json
    """
    from obygaze_features.manifest.agreement import mean_defined
    from obygaze_models.evaluation.unitising import unitised_agreement

    labels = read_annotated(manifest)
    pairs: Sequence[manifests.PairAgreement[Any]]
    if alpha > 0:
        pairs = unitised_agreement(labels, alpha=alpha, samples=SAMPLES)
        how: dict[str, Any] = {"alpha": alpha, "beta": 1.0, "samples": SAMPLES, "seed": 0}
    else:
        labels, how = projected(labels)
        pairs = manifests.agreement(labels)
    codebook = labels.codebook
    aside = [level for level in codebook.level_names if level not in codebook.labels]
    parts = ["all_levels", "labels_only"][: 1 + bool(aside)]
    records: list[dict[str, Any]] = []
    for pair in pairs:
        own = {part: asdict(getattr(pair, part)).items() for part in parts}
        gammas = {part: {k.replace("value", "gamma"): v for k, v in each} for part, each in own.items()}
        records.append({"movie": pair.movie, "annotators": pair.annotators, **gammas})
    document = {
        "manifest": str(manifest),
        "codebook": codebook.name,
        **how,
        "pairs": records,
        "mean_gamma": {part: mean_defined(row[part]["gamma"] for row in records) for part in parts},
    }
    told: list[str] = []
    undefined = sum(any(row[part]["gamma"] is None for part in parts) for row in records)
    if undefined and not output.json:
        same = "both annotators used one and the same level throughout, or share no clip, so that chance has "
        why = "they marked nothing" if alpha > 0 else f"{same}no disorder"
        told = [f"undefined for {undefined} of {len(pairs)} pairs, which the means leave out: {why}"]
    text = filled(__package__, "agreement.txt.jinja", {**document, "aside": aside}).rstrip()
    return Answer(document, text, told)


def read_annotated(path: Path) -> "manifests.Manifest":
    """Read a manifest whose annotators are compared; refuse one who is spelled in two ways."""
    read = manifests.read_manifest(path)
    refuse_twins("annotator", {c.annotator: (path, f"clip {c.clip_id!r}") for c in reversed(read.clips)})
    return read


def projected(labels: "manifests.Manifest") -> "tuple[manifests.Manifest, dict[str, Any]]":
    """Project free segments of several annotators onto windows, and say how."""
    from obygaze_features.manifest.agreement import on_common_clips

    made, window_s = on_common_clips(labels)
    threshold = None if window_s is None else manifests.DEFAULT_THRESHOLD
    if window_s is not None:
        click.echo(f"projected onto windows of {window_s:g} s, threshold {threshold:g}", err=True)
    return made, {"window_s": window_s, "threshold": threshold}


@declared(__package__, "manifest disagreements")
def disagreements(manifest: Path, output: Output) -> Answer:
    """Count how every two annotators of a film differ: levels against levels.

    Where one annotator is at the lowest level and the other above it, the scene was overlooked by one, or
    marked by one alone; the other spans that differ are two readings of what both marked. Of machines among
    the annotators, whose answers were imported, 'manifest alttest' follows.

    \b
    Examples:
      obygaze manifest disagreements segments.csv
      obygaze manifest disagreements segments.csv --json
      obygaze manifest disagreements segments.csv --out to-decide
      obygaze manifest import spans to-decide/*.eaf --decisions --out decided.csv
    """
    from obygaze_models.evaluation.alttest import compare_machines

    given = read_annotated(manifest)
    if output.out is not None:
        timed = [clip for clip in given if clip.annotator and clip.start_s is not None]
        annotators = {(clip.movie, clip.annotator) for clip in timed}
        shared = [film for film in given.movies if sum(movie == film for movie, _ in annotators) > 1]
        documents = {film: manifests.conflicts_document(given, film) for film in shared}
        paths = manifests.write_documents(documents, output.out, force=output.force)
        click.echo(f"{len(paths)} documents for ELAN in {output.out}", err=True)
        if n_whole := sum(bool(clip.annotator) for clip in given) - len(timed):
            click.echo(f"{n_whole} labels of whole files have no times, and are in none", err=True)
    labels, how = projected(given)
    names = labels.codebook.level_names
    document = {"manifest": str(manifest), "codebook": labels.codebook.name, **how, "levels": names}
    document["pairs"] = [
        {"movie": pair.movie, "annotators": pair.annotators}
        | pair.parted(names[0])
        | {"levels": [[pair.counts.get((one, other), 0) for other in names] for one in names]}
        for pair in manifests.level_pairs(labels)
    ]
    try:
        found = compare_machines(given, labels)
    except ProtocolError as error:  # too few clips in common to tell
        found = {}
        click.echo(str(error), err=True)
    if machines := {name: each.record() for name, each in found.items()}:
        document["machines"] = machines
    values = {**document, "found": machines}
    return Answer(document, filled(__package__, "disagreements.txt.jinja", values).rstrip())


@declared(__package__, "manifest alttest")
def alttest(manifest: Path, machines: tuple[str, ...], task: str | None) -> Answer:
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
    from obygaze_models.evaluation.alttest import compare_machines

    labels = read_annotated(manifest)
    found = compare_machines(labels, projected(labels)[0], machines, task)
    document = {name: each.record() for name, each in found.items()}
    if not found:
        raise ProtocolError(
            f"{manifest}: no annotator is known as a machine: name one with --machine, or import answers "
            "with 'obygaze manifest import spans FILE --as answers'"
        )
    return Answer(document, filled(__package__, "alttest.txt.jinja", {"found": document}).rstrip())


@declared(__package__, "localise")
def localise(
    frames: Path, manifest: Path, positive: tuple[str, ...], concept: str | None, score: str
) -> Answer:
    """Compare FRAMES, written by `obygaze predict --frames`, with the segments of MANIFEST.

    Only clips with frames inside and outside of segments count. Average precision ranks the frames of each
    clip; pointing is the share of clips whose highest frame lies in a segment. Both are means over movies,
    for each annotator. Chance is the same with the scores of the movie's other clips; p, from circular
    shifts of the clips' scores within each movie, says whether a mean differs from it. --json has the
    numbers of each movie.

    \b
    Examples:
      obygaze predict run/attention.model stores/more --frames frames.csv
      obygaze localise frames.csv marked.csv --positive S
      obygaze localise concepts.csv marked.csv --concept Body --score Body_value
    """
    from obygaze_models.evaluation.localise import SEED, marked_segments, read_frames
    from obygaze_models.evaluation.predictions import records

    scored = read_frames(frames)
    truth = manifests.read_manifest(manifest).spelled_as(scored["movie"].unique())
    marked = marked_segments(truth, positive, concept)
    results = {name: om.localise(scored, segments, score) for name, segments in marked.items()}
    document = {
        name: {
            "measures": records(result.pooled),
            "movies": records(result.by_movie),
            "left_out": result.n_left_out,
            "n_shifts": result.n_shifts,
            "seed": SEED,
        }
        for name, result in results.items()
    }
    left = [f"{name}: {each.n_left_out} clips without a boundary left out" for name, each in results.items()]
    return Answer(document, filled(__package__, "localise.txt.jinja", {"found": document}).rstrip(), left)
