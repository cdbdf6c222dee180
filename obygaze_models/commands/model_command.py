"""`obygaze model`: model files."""

from typing import TYPE_CHECKING

import click

from obygaze_features.screen import table

if TYPE_CHECKING:
    from obygaze_models.persistence.model_file import ModelFile


@click.command()
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print the card as one JSON document.")
def inspect(model: str, as_json: bool) -> None:
    """Inspect a model file; MODEL is a path or a URL (http, https, s3, hf).

    Prints its task, the features it reads, its training data, its scores on held-out films
    and its licence. Nothing in the file is executed.

    \b
    Examples:
      obygaze model inspect models/pcbm_lr.model
      obygaze model inspect https://lab.example.org/pcbm_lr.model --json
    """
    from obygaze_models.errors import ModelError
    from obygaze_models.persistence.model_file import construct, read_model
    from obygaze_models.prediction.predict import json_text

    file = read_model(model)
    notice = ""
    try:
        construct(file)
    except ModelError as error:
        if file.card.kind != "arrays":
            raise
        notice = str(error)
    if as_json:
        click.echo(json_text(_document(file)))
    else:
        click.echo(table(_lines(file)))
    if notice:
        click.echo(notice, err=True)


def _document(file: "ModelFile") -> dict[str, object]:
    from msgspec.structs import asdict

    listed = {**file.arrays, **file.about}
    shapes = {name: {"dtype": str(array.dtype), "shape": list(array.shape)} for name, array in listed.items()}
    return {**asdict(file.card), "arrays": shapes}


def _lines(file: "ModelFile") -> list[tuple[str, str]]:
    """List the main facts about a model."""
    card = file.card
    sides = " vs ".join("+".join(side) for side in card.target["classes"])
    made = card.provenance
    digest = made.get("weights_sha256")
    lines = [
        ("model", f"{card.title} ({card.model}), {card.estimator}, format {card.number}"),
        ("answers", f"{card.target['name']}{f': {sides}' if sides else ''}"),
        ("codebook", f"{card.codebook['name']} {card.codebook['digest'][:12]}".strip()),
        (
            "reads",
            f"{card.backbone}, {card.features} ({card.reduced_by or card.pool}), {card.n_features} features",
        ),
        ("weights", f"{digest or 'none'}{' (untrained)' if made.get('untrained') else ''}"),
        (
            "trained on",
            f"{card.n_clips} clips ({card.n_positives} positive) of {', '.join(card.movies)}"
            + (f"; median length {card.clip_s:g} s" if card.clip_s else ""),
        ),
        (
            "labels",
            f"{card.label_policy or 'policy not stated'}; manifest {card.manifest_sha256[:12] or '?'}",
        ),
        ("threshold", f"{card.threshold:g}"),
        ("calibrated", _calibration(card.calibration)),
    ]
    if "reach_distances" in file.about:
        limit = file.about["reach_distances"][-3]  # quantile .99 of 201
        lines.append(
            ("unlike", f"a clip farther than {limit:.2f} from the training mean gets no probability")
        )
    if card.concepts:
        lines.append(("concepts", ", ".join(card.concepts)))
    lines += [
        ("films out", f"{row['metric']} {row['pooled']:.3f} pooled ({row['task']})")
        for row in card.metrics
        if row.get("metric") in ("average_precision", "auc", "within_movie_auc")
        and isinstance(row.get("pooled"), float)
        and "task" in row
    ]
    lines += [("protocol", card.protocol), ("licence", card.licence), ("citation", card.citation or "none")]
    lines.append(("versions", ", ".join(f"{name} {number}" for name, number in card.versions.items())))
    return lines


def _calibration(calibration: "dict[str, float] | object") -> str:
    from collections.abc import Mapping

    if not isinstance(calibration, Mapping) or not calibration:
        return "no"
    return (
        f"p = sigmoid({calibration['slope']:.3g} logit {calibration['intercept']:+.3g}); "
        f"expected calibration error on films left out {calibration['error']:.3f}"
        + (
            f"; their shares were off by {calibration['film_error']:.3f}"
            if "film_error" in calibration
            else ""
        )
    )
