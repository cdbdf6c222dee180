"""`obygaze model sums` and `model join`: joint models of labs that share no features."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import click

import obygaze_models as om
from obygaze_features.io import NO_LICENCE, refuse_existing
from obygaze_features.manifest import counted
from obygaze_features.options import LOCAL, Answer, Number
from obygaze_features.signatures import Force, argument, command, option
from obygaze_features.text import visible
from obygaze_models.commands.inputs import read_modalities, under_policy
from obygaze_models.commands.shared_options import Policy
from obygaze_models.errors import ModelError

if TYPE_CHECKING:
    from obygaze_models.dataset.dataset import Dataset
    from obygaze_models.joint import Joint, Planes, Sums


# --- sums
# ---------------------------------------------------------------------------
@command()
def sums(
    manifest: Annotated[Path, argument()],
    store: Annotated[Path, argument(metavar="STORE[:BACKBONE]")],
    *,
    task: Annotated[str, option("Task of the manifest's codebook that has two classes, or concept:NAME.")],
    least: Annotated[
        int, option("Leave out films with fewer clips; their number is printed.", type=click.IntRange(2))
    ] = 20,
    at: Annotated[
        Path | None, option("Joint model of the last round; sum the gradients and curvatures at this model.")
    ] = None,
    licence: Annotated[str, option("Licence of the sums, an SPDX expression.")] = NO_LICENCE,
    policy: Policy = "raw",
    out: Annotated[Path, option("File of sums to write.", type=LOCAL)],
    force: Force = False,
) -> Answer:
    """Compute sums over a lab's films, from which a joint model of several labs is fitted.

    For each film the file has the number of clips, and the means and products of features, labels and
    concepts. It has no features of single clips.

    Sums are not anonymous (docs/joint.md). If a film has at most twice as many clips as there are features,
    anybody who has the film's features can compute every label. If a label or concept is in few clips, the
    sums reveal the mean feature of these clips.

    Every file of sums is recorded next to the store. If you sum a film again with clips or labels that
    differ in fewer than --least clips, the command refuses it: the difference of the two files would reveal
    the features of these clips.

    \b
    Examples:
      obygaze model sums films.csv stores/films --task hn_s --out lab-a.sums
      obygaze model sums films.csv stores/films --task hn_s \\
          --at round-1.model --out lab-a-2.sums
    """
    from obygaze_features.store.provenance import validate_licence
    from obygaze_models.joint import gram as sums_over_films
    from obygaze_models.joint import write_sums
    from obygaze_models.joint.sums import RECORD, record_release

    # --- read the clips
    refuse_existing(out, force=force)
    inputs = read_modalities(manifest, (store,), fuse=None, not_with_fuse={})
    labelled = under_policy(inputs.manifest, policy).manifest
    opened = inputs.stores[0]
    data = om.load_dataset(opened, labelled, backbone=inputs.backbones[0])
    last_round = None if at is None else om.load_model(at)

    # --- sum them up, and write the sums and the record of all sums of this store
    summed = sums_over_films(
        data, task, least=least, at=last_round, licence=validate_licence(licence), label_policy=policy
    )
    record_next_to_store = opened.path.resolve().with_name(f"{opened.name}.{RECORD}")
    with record_release(data, summed, record_next_to_store):
        write_sums(summed, out)

    # --- say what is in the sums, and what they reveal
    about = summed.about
    n_clips_of_film = _clips_of_films(summed)
    warnings = _warn_of_films_with_few_clips(n_clips_of_film, about.n_features)
    clipping_remark = None
    # With --at, sums hold derivatives at a model, from which neither of these can be computed.
    if last_round is None:
        clipping_remark = _clipping_remark(data, summed)
        warnings += _warn_of_rare_labels(summed, least)
    lines = [*_sums_summary(summed, out), *warnings]
    if clipping_remark is not None:
        lines.append(clipping_remark)
    document = {
        "file": str(out),
        "films": n_clips_of_film,
        "left_out": about.left_out,
        "warnings": warnings,  # of what these sums tell of clips
        "cut": clipping_remark,
    }
    return Answer(document, _as_text(lines))


def _as_text(lines: Sequence[str]) -> str:
    """Join lines; control characters in them, as in names of files, are shown as escapes."""
    return "\n".join(visible(line, line_breaks=False) for line in lines)


def _clips_of_films(summed: "Sums") -> dict[str, int]:
    """Return the number of clips that were summed up of each film, by the film's name."""
    counts = summed.counts.astype(int).tolist()
    return dict(zip(summed.about.movies, counts, strict=True))


def _sums_summary(summed: "Sums", out: Path) -> list[str]:
    """Write how many clips and films were summed up in a file, and a line for each film left out."""
    n_clips_of_film = _clips_of_films(summed)
    clips = counted(sum(n_clips_of_film.values()), "clip")
    films = counted(len(n_clips_of_film), "film")
    lines = [f"{clips} of {films} summed up in {out}"]
    for movie, n_left_out in summed.about.left_out.items():
        lines.append(f"left out: {movie}, {counted(n_left_out, 'clip')}")
    return lines


def _warn_of_films_with_few_clips(n_clips: Mapping[str, int], n_features: int) -> list[str]:
    """Warn of films with so few clips that their sums reveal the label of each clip.

    For each feature the sums hold its product with the labels, summed over clips. For somebody who has the
    features, that is a linear equation in the labels. As labels lie between 0 and 1, bounded least squares
    finds them from these equations, of up to about two clips for each feature (docs/joint.md).

    Parameters
    ----------
    n_clips : mapping of str to int
        Number of clips of each film.
    n_features : int
    """
    max_clips = 2 * n_features
    n_films = sum(n <= max_clips for n in n_clips.values())
    if not n_films:
        return []
    films = counted(n_films, "film")
    line = (
        f"{films} of at most twice as many clips as features ({n_features}): who has their features can read "
        "each label from these sums"
    )
    return [line]


def _warn_of_rare_labels(summed: "Sums", minimum: int) -> list[str]:
    """Warn of films with a label or concept in fewer than `minimum` clips, as the sums reveal these clips.

    Who has the sums of a film can compute the mean features of its clips with a label or concept: the sums
    hold each feature times the label (0 or 1), summed over the film's clips, and how many have the label. The
    mean of many clips tells little of any of them; that of one clip is the clip's features.
    """
    # A row of `means` has the means of a film's features, and after them those of its label and concepts. As
    # these are 0 or 1, their means are shares of the film's clips.
    first_label = summed.about.n_features
    share_with_label = summed.means[:, first_label:]
    n_clips_of_film = summed.counts[:, None]
    # Whole numbers but for rounding, such as 2.9999999 for 3: half a clip of margin tells them apart.
    n_with_label = n_clips_of_film * share_with_label  # [films, label and concepts]
    some_clip_has_it = n_with_label > 0.5
    too_few_have_it = n_with_label < minimum - 0.5
    film_has_rare_label = (some_clip_has_it & too_few_have_it).any(axis=1)
    n_films = int(film_has_rare_label.sum())
    if not n_films:
        return []
    films = counted(n_films, "film")
    line = (
        f"{films} with a label or concept in fewer than {minimum} clips: these sums tell the mean feature of "
        "these clips"
    )
    return [line]


def _clipping_remark(data: "Dataset", summed: "Sums") -> str:
    """Write how much scores would change if extreme features were clipped, as the zoo's own models do.

    Joint models can't clip features, because sums over clips do not tell which values are beyond the limit.
    The model of all labs is not known yet, so that the change is measured with the model of this lab alone.
    """
    import numpy as np

    from obygaze_models.joint import join as join_sums
    from obygaze_models.models.scaling import CLIP

    # A middling penalty, as one lab's films may be too few to choose it. The sum of squares of a standardised
    # feature is the number of clips: a penalty of that size halves the weight of a feature that is correlated
    # with no other.
    penalty = float(len(data))
    hyperplanes = join_sums([summed]).linear(penalty=penalty)
    standardised = (data.X - hyperplanes.mean) / hyperplanes.scale
    excess = standardised - np.clip(standardised, -CLIP, CLIP)  # 0 within the limit
    share_beyond = (excess != 0).mean()
    change_of_scores = np.abs(excess @ hyperplanes.weights[0])
    return (
        f"{share_beyond:.2%} of the features lie beyond {CLIP:g} deviations, where the "
        f"zoo's models cut them off and joint models don't: a least-squares score of this lab's films "
        f"changes by at most {change_of_scores.max():.3f}, by {change_of_scores.mean():.4f} in the mean"
    )


# --- join
# ---------------------------------------------------------------------------
@command()
def join(
    files: Annotated[tuple[Path, ...], argument(metavar="SUMS...")],
    *,
    concept: Annotated[
        str, option("Fit the ridge CAV (concept activation vector) of this concept, and not the task.")
    ] = "",
    without: Annotated[
        tuple[str, ...], option("Leave this film out of the sums; repeatable.", metavar="FILM")
    ] = (),
    penalty: Annotated[
        float | None,
        option(
            "Penalty of the ridge regression, the factor of the squared weights; 0 is least "
            "squares.  [default: chosen by leaving films out]",
            type=Number(min=0),
        ),
    ] = None,
    inverse: Annotated[
        float,
        option(
            "Inverse strength of the penalty of logistic regression, for sums made with --at.",
            name="C",
            type=Number(min=0, min_open=True),
        ),
    ] = 1.0,
    out: Annotated[Path, option("Model file to write.", type=LOCAL)],
    force: Force = False,
) -> Answer:
    """Fit a joint model to the sums of several labs. It equals the model fitted to all their clips together.

    From sums of `obygaze model sums`, the model is a ridge regression of the labels or, with --concept, a
    ridge CAV. From sums of `model sums --at MODEL`, the model is the next round of a logistic regression:
    send it to the labs, let them compute sums at it, and join these sums, until the command prints that
    this is the last round.

    With --without FILM the model is the same as if the film had never been in the sums, so that the film's
    lab can test the model on it.

    For each lab, print the squared error of the other labs' model on its films. If this error is far above
    that of predicting the share of positives, the lab's films are of another kind, or its sums are wrong.

    \b
    Examples:
      obygaze model join lab-a.sums lab-b.sums --out joint.model
      obygaze model join lab-a.sums lab-b.sums --concept Body --out body.model
      obygaze model join lab-a.sums lab-b.sums --without tt0097576 \\
          --out without.model
      obygaze model join lab-a-2.sums lab-b-2.sums --C 0.01 --out round-2.model
    """
    from obygaze_models.joint import join as join_sums
    from obygaze_models.joint import read_sums, save_joint

    refuse_existing(out, force=force)
    labs = [read_sums(path) for path in files]
    joint = join_sums(labs).without(without)
    # There are two kinds of sums: those of `model sums --at` hold derivatives of the logistic loss at a
    # model, others hold means and products of features and labels.
    if joint.about.holds_derivatives:
        if concept or penalty is not None:
            raise click.UsageError(
                "--concept and --penalty are for sums without --at; these sums are at a model: give --C"
            )
        fitted = _next_logistic_round(joint, inverse)
    else:
        fitted = _fit_ridge(joint, files, labs, without, penalty, concept)
    hyperplanes = fitted.hyperplanes  # one, of the task or the concept
    save_joint(joint, hyperplanes, out, concept=concept)

    # --- say what was fitted
    n_films = len(joint.about.movies)
    n_clips = int(joint.sums.counts.sum())
    # NaN unless the penalty was chosen by leaving films out.
    (error_on_films_left_out,) = hyperplanes.losses.tolist()
    has_error = not math.isnan(error_on_films_left_out)
    (fitted_penalty,) = hyperplanes.penalties.tolist()
    document = {
        "model": str(out),
        "films": n_films,
        "clips": n_clips,
        "penalty": fitted_penalty,
        "squared_error": error_on_films_left_out if has_error else None,
        "change": fitted.change,  # of the weights, by a round of logistic regression
        "labs": fitted.errors_of_labs,
    }
    target = f"concept {concept}" if concept else joint.about.target["name"]
    clips_of_films = f"{counted(n_clips, 'clip')} of {counted(n_films, 'film')}"
    summary = f"{target} of {clips_of_films} in {out}; {fitted.summary}"
    if has_error:
        summary += f"; squared error on films left out {error_on_films_left_out:.4f}"
    lines = [summary]
    for path, error in fitted.errors_of_labs.items():
        lines.append(
            f"{path}: squared error of the others' model on its films {error.of_model:.4f}, of their share "
            f"{error.of_share:.4f}"
        )
    return Answer(document, _as_text(lines))


class _FittedJoint(NamedTuple):
    """A joint model, fitted by ridge regression or by one round of logistic regression.

    Attributes
    ----------
    hyperplanes
        The fitted model.
    summary
        What to print of the fit: the penalty, or how much the round changed the weights.
    errors_of_labs
        File of a lab -> errors on its films; empty for logistic regression.
    change
        How much the round changed the weights, relative to the largest weight; None for ridge regression.
    """

    hyperplanes: "Planes"
    summary: str
    errors_of_labs: "dict[str, LabErrors]"
    change: float | None


def _next_logistic_round(joint: "Joint", inverse_penalty: float) -> _FittedJoint:
    """Make the next round of a logistic regression that several labs fit together, without showing clips.

    In each round the labs send derivatives of the loss, summed over their clips, at the model of the last
    round (`joint`). A Newton step from that model makes the next one. No lab's error is computed by this.
    """
    from obygaze_models.joint import newton_step

    step = newton_step(joint, C=inverse_penalty)
    what_next = "this is the last round" if step.is_last else "send it to the labs for another round"
    summary = f"the weights changed by {step.change:.2g} of the largest: {what_next}"
    return _FittedJoint(step.planes, summary, errors_of_labs={}, change=step.change)


def _fit_ridge(
    joint: "Joint",
    files: Sequence[Path],
    labs: "Sequence[Sums]",
    without: Sequence[str],
    penalty: float | None,
    concept: str,
) -> _FittedJoint:
    """Fit a ridge regression of the labels or, if a concept is given, a ridge CAV to the sums of all labs.

    Parameters
    ----------
    joint
        The joint sums.
    files, labs
        The file and the sums of each lab, whose films are then predicted by the other labs' films.
    without
        Films that are left out.
    penalty
        None if it is chosen by leaving films out.
    concept
        The concept; "" for the labels of the task.
    """
    hyperplanes = joint.cav(concept, penalty=penalty) if concept else joint.linear(penalty=penalty)
    (used_penalty,) = hyperplanes.penalties.tolist()
    errors = _lab_errors(joint, files, labs, without, used_penalty, concept)
    return _FittedJoint(hyperplanes, f"penalty {used_penalty:.4g}", errors_of_labs=errors, change=None)


class LabErrors(NamedTuple):
    """Squared errors on a lab's films of two predictions by the other labs' films.

    Attributes
    ----------
    of_model
        Of the model fitted to the other labs' films.
    of_share
        Of predicting their share of positives for every clip.
    """

    of_model: float
    of_share: float


def _lab_errors(
    joint: "Joint",
    files: Sequence[Path],
    labs: "Sequence[Sums]",
    without: Sequence[str],
    penalty: float,
    concept: str,
) -> dict[str, LabErrors]:
    """Compute for each lab the squared errors on its films of a model fitted to the other labs' films.

    A model that does worse on a lab's films than the others' share of positives shows that these films are of
    another kind, or that the lab's sums are wrong.

    Parameters
    ----------
    joint
        The joint sums.
    files, labs
        The file and the sums of each lab.
    without
        Films that are left out.
    penalty
        Penalty of the models.
    concept
        The concept; "" for the task.

    Returns
    -------
    dict
        File of a lab -> its errors. A lab is left out if all its films were left out, or if the joint sums
        hold no films of other labs, or not of both classes.
    """
    errors = {}
    for path, lab in zip(files, labs, strict=True):
        films = set(lab.about.movies) - set(without)
        films_of_others = set(joint.about.movies) - films
        if not films or not films_of_others:
            continue
        # The error is raised if the other labs do not have both classes: such a lab is left out too.
        with suppress(ModelError):
            of_model, of_share = joint.lab_error(films, penalty, concept)
            errors[str(path)] = LabErrors(of_model, of_share)
    return errors
