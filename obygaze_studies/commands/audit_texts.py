"""`obygaze audit text-directions`: compare the texts of concepts with labelled CAVs."""

from pathlib import Path

import click

from obygaze_features.options import html_option
from obygaze_studies.commands.audit_output import FORCE, JSON, OUT, check, finish


@click.command("text-directions")
@click.argument("manifest", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "--texts",
    type=click.Path(path_type=Path),
    required=True,
    help="Store of the texts that 'obygaze codebook texts' lists, in the space of STORE.",
)
@click.option("--backbone", help="Backbone to read; needed if STORE has several.")
@click.option(
    "--shifts",
    "n_permutations",
    type=click.IntRange(100),
    default=1000,
    show_default=True,
    help="Number of circular shifts of the labels.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@OUT
@html_option
@FORCE
@JSON
def text_directions(
    manifest: Path,
    store: Path,
    texts: Path,
    backbone: str | None,
    n_permutations: int,
    seed: int,
    out: Path,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compare the texts of the codebook's concepts with CAVs learnt from the labels of MANIFEST.

    The cosine of each concept's labelled CAV with the direction of its texts, beside what circular shifts of
    the labels within movies give, and the place of its own texts among those of all concepts.

    \b
    Examples:
      obygaze codebook texts obygaze12 --out thesaurus.csv
      obygaze extract thesaurus.csv stores/thesaurus --backbone xclip-text
      obygaze audit text-directions films.csv stores/films \\
          --texts stores/thesaurus --out agreement.csv
    """
    from obygaze_features.store import open_store
    from obygaze_models.commands import read_inputs
    from obygaze_models.dataset import load_dataset
    from obygaze_studies.text_directions import audit_text_directions

    check(out, None, html, force=force)
    clips, (opened,) = read_inputs(manifest, [store])
    data = load_dataset(opened, clips, backbone=backbone)
    report = audit_text_directions(data, open_store(texts), n_permutations=n_permutations, seed=seed)
    finish(report, out, None, html, force=force, as_json=as_json)
