"""`obygaze mobygaze`: evaluate modalities and experts of MObyGaze from stores."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from obygaze_features.screen import progress_bar
from obygaze_studies.commands.output import ReportOutput


def mobygaze(
    _name: str, *, manifest: Path, stores: tuple[str, ...], task: str, output: ReportOutput, **how: Any
) -> None:
    """Print the tables of `mobygaze_report` as they are made, and keep them."""
    from obygaze_models.commands import read_named, write_page
    from obygaze_models.report import to_json
    from obygaze_studies.mobygaze.tables import mobygaze_report
    from obygaze_studies.unfinished import TRAINED, VERSIONS

    output.check()
    clips, named = read_named(manifest, stores)
    how |= {"task": task or "en_s"}
    read = {name: (store.fingerprint, backbone) for name, (store, backbone) in named.items()}
    inputs = {"manifest": clips.digest(), "stores": read, "versions": VERSIONS, **how}
    with output.unfinished(inputs) as folder, progress_bar("training", "model") as progress:
        kept = folder and folder / TRAINED
        made = partial(output.made, folder=folder)
        report = mobygaze_report(clips, named, progress=progress, kept=kept, made=made, **how)
    write_page(report, output.html, force=output.force)
    if output.as_json:
        click.echo(to_json(report), nl=False)
    elif len(how["rules"]) > 1:
        output.made(report, folder=None)
    if output.out:
        click.echo(f"kept in {output.out}", err=True)
