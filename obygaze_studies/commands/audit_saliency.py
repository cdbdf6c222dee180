"""`obygaze audit saliency`: measure saliency maps in regions."""

from pathlib import Path

import click

from obygaze_studies.commands.audit_output import FILE, PATH, REQUIRED_OUTPUT, check, finish


@click.command()
@click.option(
    "--maps", "given", type=PATH, required=True, help="Zarr store of maps, written by 'obygaze gradcam'."
)
@click.option(
    "--roi", type=FILE, help="CSV of regions in pixels of the 224 x 224 map: image_id, roi, y0, x0, y1, x1."
)
@click.option("--overlays", type=PATH, help="Folder for overlays of the maps on their images.")
@click.option(
    "--pictures", type=PATH, help="For --overlays: folder of images named by image_id, or their manifest."
)
@REQUIRED_OUTPUT
def saliency(
    given: Path,
    roi: Path | None,
    overlays: Path | None,
    pictures: Path | None,
    out: Path,
    figure: Path | None,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Measure Grad-CAM maps of image-text similarity in given regions.

    A map without any positive value is marked empty, and left out of means of shares and hits. The figure
    shows the mean map of every group; pictures are shown only with --overlays.

    \b
    Examples:
      obygaze gradcam stills.csv --prompts prompts.txt --backbone openclip \\
          --weights "CLIP RN50" --out maps.zarr
      obygaze audit saliency --maps maps.zarr --roi faces.csv \\
          --out faces-found.csv --figure maps.png
      obygaze audit saliency --maps maps.zarr --out maps.csv \\
          --overlays laid --pictures stills.csv
    """
    from obygaze_studies.errors import AuditError
    from obygaze_studies.saliency.map_audit import audit_maps, find_pictures
    from obygaze_studies.saliency.maps_file import read_maps
    from obygaze_studies.saliency.regions import read_regions

    if (overlays is None) != (pictures is None):
        raise click.UsageError("--overlays and --pictures go together.")
    check(out, figure, html, force=force)
    if overlays and overlays.exists() and not force:
        raise AuditError(f"{overlays} exists already: give --force to write into it, or another --overlays")
    regions = read_regions(roi) if roi else None
    maps = read_maps(given)
    files = find_pictures([pair["image_id"] for pair in maps.pairs], pictures) if pictures else {}
    report = audit_maps(maps, regions)
    if overlays:
        from obygaze_studies.audits.audit_figures import draw_overlays

        draw_overlays(maps, files, overlays)
    finish(report, out, figure, html, force=force, as_json=as_json)
