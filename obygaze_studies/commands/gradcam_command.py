"""`obygaze gradcam`: compute Grad-CAM maps for still images."""

from pathlib import Path
from typing import Annotated, Literal

import click

from obygaze_features.options import Answer
from obygaze_features.signatures import argument, command, option


@command()
def gradcam(
    manifest: Annotated[Path, argument()],
    *,
    pairs: Annotated[
        Path | None, option("CSV of the pairs to map: image_id, text and optionally group.")
    ] = None,
    prompts: Annotated[
        Path | None, option("List of texts, as for extract; every image is mapped for every text.")
    ] = None,
    out: Annotated[Path, option("Zarr store to write the maps to.")],
    backbone: Annotated[
        Literal["clip", "openclip"],
        option("CLIP to map: one of transformers, or one of OpenCLIP, which has the ResNets."),
    ] = "clip",
    weights: Annotated[
        str | None,
        option(
            "A folder, repository[@revision] or file; of openclip also a name.  [default: the backbone's]",
            metavar="WEIGHTS",
        ),
    ] = None,
    score: Annotated[
        Literal["cosine", "dot"],
        option("Quantity to differentiate: cosine or dot product of image and text."),
    ] = "cosine",
    device: Annotated[
        str, option("Device to run on.", metavar="auto|cpu|cuda[:N]", envvar="OBYGAZE_DEVICE")
    ] = "auto",
    force: Annotated[bool, option("Replace existing maps.")] = False,
) -> Answer:
    """Compute Grad-CAM maps of text similarity for the still images of MANIFEST.

    It runs the network itself; 'obygaze audit saliency --maps' measures the maps in regions, lays them over
    pictures and draws their means. An image that cannot be read whole stops it: leave it out of the
    manifest or the pairs.

    \b
    Examples:
      obygaze manifest import images stills --out stills.csv
      obygaze gradcam stills.csv --prompts prompts.txt --out maps.zarr
      obygaze gradcam stills.csv --prompts prompts.txt --backbone openclip \\
            --weights "CLIP RN50" --out rn50.zarr
      obygaze gradcam stills.csv --pairs pairs.csv --score dot \\
            --weights clip-vit-large-patch14 --out dot.zarr
    """
    from obygaze_features.manifest import read_manifest

    if (pairs is None) == (prompts is None):
        raise click.UsageError("Give either --pairs or --prompts.")
    images = read_manifest(manifest)

    from obygaze_studies.saliency import class_activation  # torch is slow: a wrong manifest is said first

    return class_activation.gradcam(
        images,
        pairs,
        prompts,
        out,
        backbone=backbone,
        weights=weights,
        score=score,
        device=device,
        force=force,
    )
