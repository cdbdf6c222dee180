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
        Path | None,
        option(
            "CSV of the pairs of image and text to map, with the columns image_id, text and optionally group."
        ),
    ] = None,
    prompts: Annotated[
        Path | None,
        option("Texts to map, in a file as for `obygaze extract`; every image is mapped for every text."),
    ] = None,
    out: Annotated[Path, option("Write the maps to this Zarr store.")],
    backbone: Annotated[
        Literal["clip", "openclip"],
        option(
            "Network to map: clip, a CLIP of the library transformers; or openclip, which also has ResNets."
        ),
    ] = "clip",
    weights: Annotated[
        str | None,
        option(
            "Weights of the network: a folder, repository[@revision] or file; for openclip also a "
            "name.  [default: the backbone's]",
            metavar="WEIGHTS",
        ),
    ] = None,
    score: Annotated[
        Literal["cosine", "dot"],
        option("Score whose gradients make the map: the cosine or the dot product of image and text."),
    ] = "cosine",
    device: Annotated[
        str, option("Device to run on.", metavar="auto|cpu|cuda[:N]", envvar="OBYGAZE_DEVICE")
    ] = "auto",
    force: Annotated[bool, option("Replace existing maps.")] = False,
) -> Answer:
    """Compute Grad-CAM maps of text similarity for the still images of MANIFEST.

    A map shows which parts of an image make it similar to a text. Give one of --pairs and --prompts.
    `obygaze audit saliency --maps` then measures the maps in regions, lays them over the images and draws
    their means. If an image cannot be read completely, the command stops; leave this image out of the
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
