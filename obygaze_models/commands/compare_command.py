"""`obygaze compare`: compare two models, paired by movie."""

from pathlib import Path

import click

from obygaze_features.options import html_option
from obygaze_models.commands.inputs import write_page


@click.command()
@click.argument("run_a", type=click.Path(path_type=Path))
@click.argument("run_b", type=click.Path(path_type=Path))
@click.option("--model", help="Model of RUN_A.  [default: its first]")
@click.option("--against", help="Model of RUN_B.  [default: the same]")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write the tables into.")
@html_option
@click.option("--force", is_flag=True, help="Replace earlier output.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as one JSON document.")
def compare(
    run_a: Path,
    run_b: Path,
    model: str | None,
    against: str | None,
    out: Path | None,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Compare a model of RUN_A with one of RUN_B, paired by movie.

    Both must have been tested on the same clips and labels; the training data may differ, and so
    may stores, models and seeds. For each metric: the mean difference over movies, tested twice. The exact
    sign-flip test asks whether these trained models differ, the corrected t test whether the methods do.

    \b
    Examples:
      obygaze compare runs/xclip runs/descriptors
      obygaze compare runs/films runs/films --model pcbm_lr --against mlp
      obygaze compare runs/hard-negatives runs/easy-negatives --model mlp \\
          --out hard-against-easy --html hard-against-easy.html
    """
    import json

    from obygaze_models.evaluation.compare import compare as compare_sides
    from obygaze_models.evaluation.compare import side
    from obygaze_models.evaluation.run_folder import read_run
    from obygaze_models.report import new_folder, plain, write_report
    from obygaze_models.report.run_tables import comparison_report
    from obygaze_models.report.write import document

    a = side(read_run(run_a), model)
    report = comparison_report(compare_sides(a, side(read_run(run_b), against or a.model)))
    if out is not None:
        with new_folder(out, force=force) as folder:
            write_report(report, folder)
    write_page(report, html, force=force)
    if as_json:
        click.echo(json.dumps(document(report), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        click.echo(plain(report), nl=False)
    if out is not None:
        click.echo(f"kept in {out}", err=True)
