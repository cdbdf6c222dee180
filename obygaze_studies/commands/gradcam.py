"""`obygaze gradcam`: compute saliency maps of still images with a network."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_features.options import json_option, show
from obygaze_features.screen import table
from obygaze_studies.commands.declared import declared

if TYPE_CHECKING:
    from obygaze_studies.saliency.maps_file import Maps

SOURCE = "Grad-CAM (Selvaraju et al., 2017), live through grad-cam; bicubic, a = -0.75"


@click.command()
@declared("gradcam")
@json_option
def gradcam(
    manifest: Path,
    pairs: Path | None,
    prompts: Path | None,
    out: Path,
    force: bool,
    as_json: bool,
    **how: Any,
) -> None:
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
    from tqdm import tqdm

    from obygaze_features.errors import ExtractError
    from obygaze_features.extraction import of_stills
    from obygaze_features.manifest import read_manifest
    from obygaze_studies.saliency.class_activation import clip_with_targets, every_pair, map_pairs, read_pairs
    from obygaze_studies.saliency.maps_file import check_maps_free, write_maps

    source = pairs or prompts
    if source is None or (pairs and prompts):
        raise click.UsageError("say what to map: either --pairs CSV or --prompts TXT")
    check_maps_free(out, force=force)
    images = read_manifest(manifest)
    if not of_stills(images):
        raise ExtractError(f"{manifest}: its clips are no still images, and only those are mapped")
    wanted = (read_pairs if pairs else every_pair)(source, images)
    mapped, targets = clip_with_targets([pair.text for pair in wanted], **how)
    about = {**mapped.about, "score": how["score"], "source": SOURCE}
    with tqdm(total=len(wanted), unit="map") as bar:
        maps = map_pairs(images, wanted, mapped, targets, about, on_map=bar.update)
    write_maps(maps, out)
    _show(maps, out, as_json=as_json)


def _show(maps: "Maps", out: Path, *, as_json: bool) -> None:
    rows = []
    for group in maps.groups:
        mine = [pair for pair in maps.pairs if pair["group"] == group]
        empty = sum(pair["peak"] == 0 for pair in mine)
        rows.append((group, len(mine), empty, f"{sum(pair['score'] for pair in mine) / len(mine):.4g}"))
    headers = ("group", "n_maps", "n_empty", "mean_score")
    document = {"maps": str(out), "about": dict(maps.about), "pairs": [dict(pair) for pair in maps.pairs]}
    show(document, lambda: table(rows, headers, right=(1, 2, 3)), as_json=as_json)
    if not as_json:
        click.echo(f"{len(maps.pairs)} maps kept in {out}", err=True)
