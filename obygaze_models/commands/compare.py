"""`obygaze compare`: two runs, film by film."""

from pathlib import Path

import click


@click.command()
@click.argument("run_a", type=click.Path(path_type=Path))
@click.argument("run_b", type=click.Path(path_type=Path))
@click.option("--model", help="Model of RUN_A.  [default: its first, the probe]")
@click.option("--against", help="Model of RUN_B.  [default: the same]")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as one JSON document.")
def compare(run_a: Path, run_b: Path, model: str | None, against: str | None, as_json: bool) -> None:
    """Compare a model of RUN_A with one of RUN_B, paired by film.

    Shows, metric by metric, the mean difference over films with its t interval and the p-value of the exact
    sign-flip test, as it is and adjusted for the number of metrics (Holm). The runs must have the same tasks,
    protocol, label policy and clips; stores and seeds may differ, and so may their number: a film's value is
    its mean over a run's seeds.

    \b
    Examples:
      obygaze compare runs/xclip runs/descriptors
      obygaze compare runs/films runs/films --model mlp --against movie_prior
      obygaze compare runs/one runs/two --json
    """
    import json

    from obygaze_models.experiments.compare import compare as compare_sides
    from obygaze_models.experiments.compare import side
    from obygaze_models.experiments.comparison_table import caption, comparison_table, document
    from obygaze_models.experiments.run_folder import read_run

    a = side(read_run(run_a), model)
    found = compare_sides(a, side(read_run(run_b), against or a.model))
    if as_json:
        click.echo(json.dumps(document(found), indent=2, ensure_ascii=False, allow_nan=False))
        return
    click.echo(comparison_table(found))
    click.echo()
    for line in caption(found):
        click.echo(line)
