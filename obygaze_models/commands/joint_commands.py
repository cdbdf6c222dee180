"""`obygaze model sums` and `model join`: joint models of labs that share no features."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

import obygaze_models as om
from obygaze_features.manifest import counted
from obygaze_features.options import Answer, Output, declared
from obygaze_features.templates import sentences
from obygaze_models.commands.inputs import read_modalities, under_policy
from obygaze_models.errors import ModelError

if TYPE_CHECKING:
    from obygaze_models.dataset.dataset import Dataset
    from obygaze_models.joint import Sums


@declared(__package__, "model sums")
def sums(
    manifest: Path,
    store: Path,
    task: str,
    least: int,
    at: Path | None,
    licence: str,
    policy: str,
    output: Output,
) -> Answer:
    """Sum up the films of a lab, for a joint model with labs that have others; no feature leaves the lab.

    The file has of each film the number of its clips and the means and products of features, labels and
    concepts. Of a film with up to twice as many clips as features that tells whoever has its features every
    label; and the clips with a label or concept, if they are few, it gives nearly away (docs/joint.md). Sums
    given out are recorded beside the store. Others of a film whose clips or labels differ from these in
    fewer than --least are refused: subtracted, they would give the features of these clips.

    \b
    Examples:
      obygaze model sums films.csv stores/films --task hn_s --out lab-a.sums
      obygaze model sums films.csv stores/films --task hn_s \\
          --at round-1.model --out lab-a-2.sums
    """
    import numpy as np

    from obygaze_features.store.provenance import validate_licence
    from obygaze_models.joint import gram, write_sums
    from obygaze_models.joint.sums import RECORD, recorded

    output.refuse_existing()
    clips, opened, backbone, _ = read_modalities(manifest, (store,), None, {})
    clips, _ = under_policy(clips, policy)
    data = om.load_dataset(opened, clips, backbone=backbone)
    last = None if at is None else om.load_model(at)
    made = gram(data, task, least=least, at=last, licence=validate_licence(licence), label_policy=policy)
    with recorded(data, made, opened.path.resolve().with_name(f"{opened.name}.{RECORD}")):  # type: ignore[union-attr]
        write_sums(made, output.path)
    about, cut = made.about, _cut(data, made) if last is None else None
    films = dict(zip(about.movies, made.counts.astype(int).tolist(), strict=True))
    # Rounding of a share of clips: half a clip.
    positives = made.counts[:, None] * made.means[:, about.n_features :] if last is None else np.zeros((0, 0))
    document = {"file": str(output.path), "films": films, "left_out": about.left_out, "cut": cut}
    text = sentences(
        __package__,
        "sums.txt.jinja",
        {"counted": counted},
        few=sum(n <= 2 * about.n_features for n in films.values()),
        rare=int(((positives > 0.5) & (positives < least - 0.5)).any(axis=1).sum()),
        n_features=about.n_features,
        least=least,
        **document,
    )
    return Answer(document, "\n".join(text))


def _cut(data: "Dataset", made: "Sums") -> str:
    """Say what cutting features off at 5 deviations, as the zoo's own pipelines do, would change here."""
    import numpy as np

    from obygaze_models.joint import join
    from obygaze_models.models.linear import CLIP

    planes = join([made]).linear(penalty=float(len(data)))
    Z = (data.X - planes.mean) / planes.scale
    cut = np.clip(Z, -CLIP, CLIP)
    change = np.abs((Z - cut) @ planes.weights[0])
    return (
        f"{(cut != Z).mean():.2%} of the features lie beyond {CLIP:g} deviations, where the zoo's models cut "
        f"them off and joint models don't: a least-squares score of this lab's films changes by at most "
        f"{change.max():.3f}, by {change.mean():.4f} in the mean"
    )


@declared(__package__, "model join")
def join(
    files: tuple[Path, ...],
    concept: str,
    without: tuple[str, ...],
    penalty: float | None,
    inverse: float,
    output: Output,
) -> Answer:
    """Make one model of the sums of several labs: the one that all their clips together would give.

    Of sums of squares that is ridge regression of the labels, or with --concept a ridge CAV. Of sums at a
    model (model sums --at) it is the next round of logistic regression: send the model to the labs, and
    join again, until it says that it has ended. Films are left out exactly: --without FILM is the model that
    never saw it, with which its lab scores it. Of each lab the error of the others' model on its films is
    printed: one far above that of the share alone is of other films, or of sums that are not true.

    \b
    Examples:
      obygaze model join lab-a.sums lab-b.sums --out joint.model
      obygaze model join lab-a.sums lab-b.sums --concept Body --out body.model
      obygaze model join lab-a.sums lab-b.sums --without tt0097576 \\
          --out without.model
      obygaze model join lab-a-2.sums lab-b-2.sums --C 0.01 --out round-2.model
    """
    import numpy as np

    from obygaze_models.joint import join as join_sums
    from obygaze_models.joint import newton_step, read_sums, save_joint

    output.refuse_existing()
    several = [read_sums(path) for path in files]
    joint = join_sums(several).without(without)
    about, rounds = joint.about, joint.about.at == "losses"
    if rounds and (concept or penalty is not None):
        raise click.UsageError(
            "--concept and --penalty are of sums of squares; these are at a model, give --C"
        )
    what = f"concept {concept}" if concept else about.target["name"]
    step, labs = None, dict[str, tuple[float, float]]()
    if rounds:
        step = newton_step(joint, inverse)
        planes = step.planes
    else:
        planes = joint.cav(concept, penalty=penalty) if concept else joint.linear(penalty=penalty)
        films_of = (set(sums.about.movies) - set(without) for sums in several)
        for path, films in zip(files, films_of, strict=True):
            if not films or films == set(about.movies):
                continue
            with suppress(ModelError):  # the others have not both classes
                labs[str(path)] = joint.lab_error(films, float(planes.penalties[0]), concept)
    save_joint(joint, planes, output.path, concept=concept)
    document = {
        "model": str(output.path),
        "films": len(about.movies),
        "clips": int(joint.sums.counts.sum()),
        "penalty": float(planes.penalties[0]),
        "squared_error": None if np.isnan(planes.losses[0]) else float(planes.losses[0]),
        "change": None if step is None else step.change,
        "labs": labs,
    }
    text = sentences(__package__, "join.txt.jinja", {}, what=what, step=step, **document)
    return Answer(document, "\n".join(text))
