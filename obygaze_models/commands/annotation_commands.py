"""`obygaze manifest agreement`, `disagreements`, `alttest`: compare annotators, people and machines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from obygaze_features import manifest as manifests
from obygaze_features.options import Answer, Number
from obygaze_features.signatures import Force, Json, argument, command, option
from obygaze_features.text import counted
from obygaze_models.commands import annotation_tables
from obygaze_models.errors import ProtocolError

if TYPE_CHECKING:
    from obygaze_features.manifest.agreement import PairLevels
    from obygaze_models.evaluation.alttest import Alternative

N_CHANCE_SAMPLES = 62
"""Chance annotations from which the expected disorder of free segments is estimated: the paper's number."""


class CommonClips(NamedTuple):
    """What annotators labelled in common, and how free segments were projected onto windows, if they were.

    Attributes
    ----------
    labels
        Labels in which clips that several annotators labelled have the same id.
    window_s, threshold
        Length of a window, and the share of it that a segment must cover; None if nothing was projected.
    """

    labels: "manifests.Manifest"
    window_s: float | None
    threshold: float | None

    def projection_record(self) -> dict[str, float | None]:
        """Return how segments were projected, as JSON values."""
        return {"window_s": self.window_s, "threshold": self.threshold}


def read_annotated(path: Path) -> "manifests.Manifest":
    """Read a manifest whose annotators are to be compared.

    Raises an error if labels cannot be compared: an annotator's name has two spellings, and would count as
    two annotators, or labels were given under two definitions of the codebook, and mean different things.
    """
    manifest = manifests.read_manifest(path)
    judgements = manifests.judgements_of(manifest)
    judgements.refuse_two_definitions()
    _refuse_two_spellings_of_annotators(manifest, path)
    return manifest


def _refuse_two_spellings_of_annotators(manifest: "manifests.Manifest", path: Path) -> None:
    """Raise if the name of an annotator is spelled in two ways; the message names a clip of each spelling."""
    # Going from the last clip to the first leaves, for each annotator, the place of the first one.
    places = {}
    for clip in reversed(manifest.clips):
        places[clip.annotator] = (path, f"clip {clip.clip_id!r}")
    manifests.refuse_twins("annotator", places)


def project_free_segments(labels: "manifests.Manifest") -> CommonClips:
    """Project free segments onto windows, which are the same for all annotators of a film.

    A window gets the level of a segment that covers at least the threshold, a share of the window. The length
    and threshold are printed. Labels without free segments are returned unchanged, since clips of the same id
    can be compared as they are.
    """
    from obygaze_features.manifest.agreement import on_common_clips

    projected, window_s = on_common_clips(labels)
    has_free_segments = window_s is not None
    if not has_free_segments:
        return CommonClips(projected, window_s=None, threshold=None)
    threshold = manifests.DEFAULT_THRESHOLD
    click.echo(f"projected onto windows of {window_s:g} s, threshold {threshold:g}", err=True)
    return CommonClips(projected, window_s=window_s, threshold=threshold)


@command()
def agreement(
    manifest: Annotated[Path, argument()],
    *,
    alpha: Annotated[
        float,
        option(
            "Weight of the position of segments (eq. 1). Above 0, free segments are aligned as "
            "they are, without projection onto windows.",
            type=Number(min=0),
        ),
    ] = 0,
    json: Json = False,
) -> Answer:
    """Measure the agreement gamma of every two annotators of a film (Tores et al., CVPR 2024, App. 7.3).

    gamma = 1 - observed / expected disorder: 1 is perfect agreement, 0 is chance. The expected disorder is
    computed exactly, from how often each annotator used each level (the paper estimates it by 62 shuffles).
    If the codebook has levels that are in no task, such as NS, a second gamma ("without NS") compares only
    the clips to which both annotators gave another level. The paper's 0.42 and 0.69 are for the separate
    annotations of ObyGaze12, which are not public.

    Free segments, whose boundaries differ between annotators, are first projected onto windows of 46 s, the
    mean length of a clip of MovieGraphs. To use other windows or clips, run `obygaze manifest project
    --per-annotator` first.

    Time without a mark is of the lowest level for annotators who mark only what they find. For those who mark
    the lowest level too, or judged drawn windows, it is unknown, and has no part in their agreement.

    With --alpha above 0 the positions of segments count too: each segment above the lowest level is aligned
    with one segment of the other annotator or with none (Mathet et al. 2015).

    Krippendorff's alpha of all annotators together is printed below. Annotators may each have labelled only
    some of the clips. Levels are compared in three ways: as names, by their order, and by their positions
    in the codebook. With --alpha above 0, alpha is computed for the segments of each film (Krippendorff et
    al. 2016), also in three ways: of segments and their levels, of what is marked at all, and of the levels
    where two annotators marked.

    Machines whose answers were imported count as annotators, and are named as machines. Judgements in sight
    of a model's score (column seen_score) are left out and counted. With --alpha above 0
    an annotator who saw a score in a film is left out of this film.

    \b
    Examples:
      obygaze manifest agreement segments.csv
      obygaze manifest agreement segments.csv --alpha 1
      obygaze manifest project segments.csv --window 60 --per-annotator \\
          --out windows.csv
      obygaze manifest agreement windows.csv --json
    """
    labels = read_annotated(manifest)
    if alpha > 0:
        result = _agreement_on_segments(labels, position_weight=alpha)
    else:
        result = _agreement_on_clips(labels)
    document = {
        "manifest": str(manifest),
        "codebook": labels.codebook.name,
        **result.parameters,
        "in_sight": result.blind.n_left_out,
        "machines": manifests.machines_of(labels),
        "pairs": result.records,
        "krippendorff": result.krippendorff,
        "mean_gamma": result.mean_gammas,
    }
    remarks = [] if json else _undefined_gammas_remark(result)
    return Answer(document, "\n".join(result.lines), remarks)


class _Agreement(NamedTuple):
    """The agreement of annotators, by one of two methods.

    Attributes
    ----------
    parameters
        Parameters of the method, for the JSON document.
    records
        The gammas of each pair of annotators, as JSON values.
    mean_gammas
        Selection of levels (`_level_selections`) -> mean gamma of all pairs.
    krippendorff
        Krippendorff's alpha, as JSON values.
    lines
        The tables.
    why_undefined
        Why a gamma may be undefined.
    blind
        The labels that count, and how many do not.
    """

    parameters: Mapping[str, Any]
    records: list[dict[str, Any]]
    mean_gammas: dict[str, float | None]
    krippendorff: Any
    lines: list[str]
    why_undefined: str
    blind: "manifests.BlindLabels"


def _undefined_gammas_remark(result: _Agreement) -> list[str]:
    """Write for how many pairs of annotators a gamma is undefined, and why, if there are any."""
    n_undefined = 0
    for record in result.records:
        gammas = [record[selection]["gamma"] for selection in result.mean_gammas]
        if None in gammas:
            n_undefined += 1
    if not n_undefined:
        return []
    remark = (
        f"undefined for {n_undefined} of {counted(len(result.records), 'pair')}, "
        f"which the means leave out: {result.why_undefined}"
    )
    return [remark]


def _agreement_on_segments(labels: "manifests.Manifest", position_weight: float) -> _Agreement:
    """Measure the agreement on free segments as they are, where their positions count too.

    `position_weight`, above 0, is the weight of positions beside that of levels, called alpha in gamma. An
    annotator who saw a model's score in a film is left out of this film by each measure; `blind` says how
    many were.
    """
    from obygaze_models.evaluation.unitising import unitised_agreement

    pairs = unitised_agreement(labels, alpha=position_weight, samples=N_CHANCE_SAMPLES)
    selections = _level_selections(labels)
    records = _pair_records(pairs, selections)
    mean_gammas = _mean_gammas(records, selections)
    alphas_of_films = manifests.unitised_alphas(labels)  # Krippendorff's, not the weight
    blind = manifests.blind_labels(labels, whole_films=True)
    return _Agreement(
        # `unitised_agreement` weights differences of levels by beta, and draws with this seed.
        parameters={"alpha": position_weight, "beta": 1.0, "samples": N_CHANCE_SAMPLES, "seed": 0},
        records=records,
        mean_gammas=mean_gammas,
        krippendorff=[asdict(film) for film in alphas_of_films],
        lines=[
            *annotation_tables.agreement_on_segments(pairs, mean_gammas, _excluded_levels(labels)),
            "",
            *annotation_tables.alphas_of_segments(alphas_of_films),
            *annotation_tables.machines_among_annotators(manifests.machines_of(labels)),
            *annotation_tables.in_sight(blind, whole_films=True),
            *annotation_tables.time_left_out(blind.manifest),
        ],
        why_undefined="they marked nothing",
        blind=blind,
    )


def _agreement_on_clips(labels: "manifests.Manifest") -> _Agreement:
    """Measure the agreement of annotators on the levels of the clips that they share.

    Free segments are projected onto windows first: `labels` are as they were given, `common.labels` those of
    clips or windows. Judgements in sight of a model's score are left out by each measure; `blind` says how
    many. Gamma is given for all levels and for those that are labels (the selections).
    """
    common = project_free_segments(labels)
    pairs = manifests.agreement(common.labels)
    selections = _level_selections(labels)
    records = _pair_records(pairs, selections)
    mean_gammas = _mean_gammas(records, selections)
    all_levels, labels_only = manifests.level_alphas(common.labels)
    excluded_levels = _excluded_levels(labels)
    blind = manifests.blind_labels(common.labels)
    return _Agreement(
        parameters=common.projection_record(),
        records=records,
        mean_gammas=mean_gammas,
        krippendorff={"all_levels": asdict(all_levels), "labels_only": asdict(labels_only)},
        lines=[
            *annotation_tables.agreement_on_clips(pairs, mean_gammas, excluded_levels),
            "",
            *annotation_tables.alphas_of_levels(all_levels, labels_only, excluded_levels),
            *annotation_tables.machines_among_annotators(manifests.machines_of(labels)),
            *annotation_tables.in_sight(blind),
            *(annotation_tables.windows_left_out(common.labels) if common.window_s else []),
        ],
        why_undefined=(
            "both annotators used one and the same level throughout, or share no clip, so that chance has no "
            "disorder"
        ),
        blind=blind,
    )


def _excluded_levels(labels: "manifests.Manifest") -> list[str]:
    """List the levels of the codebook that are in no task, such as NS."""
    return [level for level in labels.codebook.level_names if level not in labels.codebook.labels]


def _level_selections(labels: "manifests.Manifest") -> list[str]:
    """List the selections of levels that gamma is computed for: the names of fields of `PairAgreement`.

    They are "all_levels" and, if the codebook has levels that are in no task, "labels_only" without these.
    """
    if _excluded_levels(labels):
        return ["all_levels", "labels_only"]
    return ["all_levels"]


def _pair_records(
    pairs: "Sequence[manifests.PairAgreement[Any]]", selections: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the gammas of each pair of annotators as JSON values, by selection of levels."""
    records = []
    for pair in pairs:
        record: dict[str, Any] = {"movie": pair.movie, "annotators": pair.annotators}
        for selection in selections:
            record[selection] = _gamma_record(getattr(pair, selection))
        records.append(record)
    return records


def _gamma_record(gamma: Any) -> dict[str, Any]:
    """Return the result of one gamma, of clips or of segments, as JSON values.

    The names are those of the dataclass, but for ``value``, which is called ``gamma`` in JSON.
    """
    record = {}
    for name, value in asdict(gamma).items():
        key = "gamma" if name == "value" else name
        record[key] = value
    return record


def _mean_gammas(records: Sequence[Mapping[str, Any]], selections: Sequence[str]) -> dict[str, float | None]:
    """Compute for each selection of levels the mean gamma over the pairs of annotators that have one.

    `records` has the gammas of each pair (`_pair_records`). The mean is None if no gamma is defined.
    """
    from obygaze_features.manifest.agreement import mean_defined

    means = {}
    for selection in selections:
        gammas = [record[selection]["gamma"] for record in records]
        means[selection] = mean_defined(gammas)
    return means


@command()
def disagreements(
    manifest: Annotated[Path, argument()],
    *,
    out: Annotated[
        Path | None,
        option(
            "Write an ELAN document for each film to this folder, with tiers of both annotators, "
            "of their conflicts, and for your decisions."
        ),
    ] = None,
    force: Force = False,
) -> Answer:
    """Count how the levels of every two annotators of a film differ.

    Two kinds of differences are counted. If one annotator gave the lowest level and the other a higher one,
    only one of them marked the scene. In the other differences both marked the scene, but gave it different
    levels. If answers of machines were imported among the annotators, the result of `obygaze manifest
    alttest` is printed too. Judgements in sight of a model's score (column seen_score) are counted apart;
    documents for ELAN (--out) have them too.

    \b
    Examples:
      obygaze manifest disagreements segments.csv
      obygaze manifest disagreements segments.csv --json
      obygaze manifest disagreements segments.csv --out to-decide
      obygaze manifest import spans to-decide/*.eaf --decisions --out decided.csv
    """
    labels = read_annotated(manifest)
    if out is not None:
        _write_conflicts(labels, out, force=force)

    # --- count how the levels of every two annotators differ
    common = project_free_segments(labels)
    levels = labels.codebook.level_names
    pairs = manifests.level_pairs(common.labels)
    blind = manifests.blind_labels(common.labels)
    document: dict[str, Any] = {
        "manifest": str(manifest),
        "codebook": labels.codebook.name,
        **common.projection_record(),
        "in_sight": blind.n_left_out,
        "levels": levels,
        "pairs": [_disagreement_record(pair, levels) for pair in pairs],
    }
    lines = [
        *annotation_tables.disagreements(pairs, levels),
        *annotation_tables.machines_among_annotators(manifests.machines_of(labels)),
        *annotation_tables.in_sight(blind),
        *(annotation_tables.windows_left_out(common.labels) if common.window_s else []),
    ]

    # --- test whether machines among the annotators may stand in
    results_of_machines = _compare_machines_if_possible(labels, common)
    if results_of_machines:
        document["machines"] = {name: result.record() for name, result in results_of_machines.items()}
        lines += ["", *annotation_tables.machines(results_of_machines)]
    return Answer(document, "\n".join(lines))


def _disagreement_record(pair: "PairLevels", levels: Sequence[str]) -> dict[str, Any]:
    """Return how often two annotators gave which levels, as JSON values.

    The key "levels" has a matrix of counts: a row for each level of the first annotator, and in it a number
    for each level of the second. `levels` are those of the codebook, the lowest first.
    """
    count_matrix = []
    for first in levels:
        counts = [pair.counts.get((first, second), 0) for second in levels]
        count_matrix.append(counts)
    return {
        "movie": pair.movie,
        "annotators": pair.annotators,
        **pair.counts_by_outcome(lowest=levels[0]),
        "levels": count_matrix,
    }


def _write_conflicts(labels: "manifests.Manifest", folder: Path, *, force: bool) -> None:
    """Write an ELAN document for each film that two annotators labelled, with the spans where they differ.

    Labels of whole files have no times, so that they are in no document; their number is printed.
    """
    # --- find the films that two annotators labelled
    judgements = manifests.judgements_of(labels).every
    annotated_clips = [judgement.clip for judgement in judgements if judgement.judge]
    n_whole_files = sum(clip.start_s is None for clip in annotated_clips)
    annotators_of_movie: dict[str, set[str]] = {}
    for clip in annotated_clips:
        if clip.start_s is not None:
            annotators_of_movie.setdefault(clip.movie, set()).add(clip.annotator)

    # --- write their documents
    documents = {}
    for movie in labels.movies:
        if len(annotators_of_movie.get(movie, ())) > 1:
            documents[movie] = manifests.conflicts_document(labels, movie)
    paths = manifests.write_documents(documents, folder, force=force)
    click.echo(f"{len(paths)} documents for ELAN in {folder}", err=True)
    if n_whole_files:
        click.echo(f"in none: {counted(n_whole_files, 'label')} of whole files, without times", err=True)


def _compare_machines_if_possible(
    labels: "manifests.Manifest", common: CommonClips
) -> "Mapping[str, Alternative]":
    """Compare machines among the annotators with people (`compare_machines`): name of a machine -> result.

    If they can't be compared, for instance with too few clips in common, the reason is printed, and the
    result is empty. `labels` tell which annotators are machines; their labels in `common` are compared.
    """
    from obygaze_models.evaluation.alttest import compare_machines

    try:
        return compare_machines(labels, common.labels)
    except ProtocolError as reason:
        click.echo(str(reason), err=True)
        return {}


@command()
def alttest(
    manifest: Annotated[Path, argument()],
    *,
    machines: Annotated[
        tuple[str, ...],
        option(
            "Annotator that is a machine; repeatable.  [default: those with a value in the column 'model']",
            name="machine",
            metavar="ANNOTATOR",
        ),
    ] = (),
    task: Annotated[
        str | None,
        option(
            "Compare the labels of this task, such as hn_s, or of concept:NAME.  [default: all levels]",
            metavar="TASK",
        ),
    ] = None,
) -> Answer:
    """Test whether a machine may stand in for an annotator (Calderon et al., ACL 2025).

    Each annotator is left out in turn. The test asks whether the machine agrees with the other annotators
    as well as this annotator does, within a margin. The winning rate is the share of annotators for whom
    this is shown (Benjamini-Yekutieli, .05). It is reported for margins of 0 to .2, and in three forms:

    \b
    clips     clips are the units of the test, as published
    films     films are the units
    balanced  films are the units, and each class of the others' labels has
              the same weight in the agreement

    Two controls that ignore the clips are tested in the same way: a constant answer, and the machine's
    answers shuffled within each film. Judgements in sight of a model's score (column seen_score) are left out
    and counted.

    The answer is "may stand in" if the machine's winning rate is at least .5 (balanced, margin .1) and no
    control's is. If a control's is too, the answer is that the annotators agree too little to tell.

    \b
    Examples:
      obygaze manifest alttest judged.csv
      obygaze manifest alttest judged.csv --machine qwen-vl --task concept:Body
    """
    from obygaze_models.evaluation.alttest import compare_machines

    labels = read_annotated(manifest)
    common = project_free_segments(labels)
    # The labels as they are tell which annotators are machines; those of common clips are compared.
    results = compare_machines(labels, common.labels, machines, task)
    if not results:
        raise ProtocolError(
            f"{manifest}: no annotator is known as a machine: name one with --machine, or import answers "
            "with 'obygaze manifest import spans FILE --as answers'"
        )
    document = {name: result.record() for name, result in results.items()}
    return Answer(document, "\n".join(annotation_tables.machines(results)))
