"""`obygaze model units`: learn units of a store's frames or tokens without labels, and describe them."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import click
import numpy as np

import obygaze_features as of
import obygaze_models as om
from obygaze_features.door import read_bytes
from obygaze_features.errors import ObygazeError
from obygaze_features.io import sha256_of, whole_file
from obygaze_features.options import PATH, Output, output
from obygaze_features.screen import progress_bar
from obygaze_models.commands.inputs import parted, write_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from obygaze_features.store import Group
    from obygaze_models.concepts.dictionary import Dictionary
    from obygaze_models.report import Report

SHOWN = 40
"""Units in the table; units.csv has all."""

N_FRAMES = 5

MOST = 1 << 31
"""Bytes of what a stopped run left: 100,000 units of 1,000 numbers have fewer."""

FOUND = 0.05
"""Largest p of a unit that goes with a concept."""

COUNT = click.IntRange(min=1)


@click.command()
@click.argument("store", metavar="STORE[:BACKBONE]", type=PATH)
@click.option("--features", type=click.Choice(["frames", "tokens"]), default="frames", help="What is read.")
@click.option("--units", "n_units", type=COUNT, default=512, help="Number of units.")
@click.option("--active", "n_active", type=COUNT, default=16, help="Most units active in a frame or token.")
@click.option("--epochs", "n_epochs", type=COUNT, default=12, help="Passes over the store.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
@click.option("--labels", type=PATH, metavar="MANIFEST", help="Compare units with these clips' concepts.")
@click.option("--texts", type=PATH, metavar="STORE", help="Name the nearest texts, in the space of STORE.")
@output("Folder to write.", required=True, html=True, json=True)
def units(
    store: Path,
    features: str,
    seed: int,
    labels: Path | None,
    texts: Path | None,
    output: Output,
    **sizes: int,
) -> None:
    """Learn units of the frames or tokens of STORE without labels, by a top-k sparse autoencoder.

    The folder gets units.npz (directions), units.csv (each unit's strongest frames; with --labels its
    nearest concept, AUC by film, and p corrected for all units and concepts; with --texts the nearest texts)
    and the report. It is read in blocks; a stopped run resumes after its last epoch. These units have seen
    every film: to test them in a model, evaluate --model units learns its own without the films tested.

    \b
    Examples:
      obygaze model units stores/films --out units
      obygaze model units stores/films:xclip --units 4096 --active 32 \\
          --labels films.csv --texts stores/thesaurus --out units
    """
    from obygaze_models.concepts.dictionary import learn_dictionary
    from obygaze_models.concepts.texts import read_texts
    from obygaze_models.concepts.units import strongest
    from obygaze_models.dataset import StoredClips, find_group
    from obygaze_models.evaluation.unit_table import associate, unit_table
    from obygaze_models.report import check_folder, new_folder, plain, to_json, write_report

    check_folder(output.path, force=output.force)
    _, place, backbone = parted(store)
    opened = of.open_store(place)
    group = find_group(opened, backbone)
    if features not in group.arrays:
        raise click.UsageError(f"--features {features}: {group.name} has {', '.join(group.arrays)} here")
    names = None if texts is None else read_texts(of.open_store(texts), group.name, group)[1]
    clips = StoredClips(group, features, np.flatnonzero(group.usable))

    def read(rows: "NDArray[np.intp]") -> "NDArray[np.float32]":
        return np.asarray(clips[rows], np.float32).reshape(-1, clips.shape[-1])

    asked = {"store": opened.fingerprint, "backbone": group.name, "features": features, "seed": seed, **sizes}
    partial = output.path.with_name(f"{output.path.name}.partial.npz")
    with progress_bar("learning units", "epoch") as show:

        def keep(made: "Dictionary") -> None:
            _write(partial, made.to_arrays() | {"asked": _digest(asked)})
            if show is not None:
                show(made.epoch, sizes["n_epochs"])

        made = learn_dictionary(read, len(clips), seed=seed, begun=_begun(partial, asked), keep=keep, **sizes)
    values, places = strongest(made, clips)
    concepts: Sequence[str] = ()
    association = None
    if labels is not None:
        data = om.load_dataset(opened, of.read_manifest(labels), backbone=group.name)
        row_of = {group.clip_ids[row]: place for place, row in enumerate(clips.rows)}
        own = [row_of[clip_id] for clip_id in data.clip_ids.tolist()]
        concepts, present = data.labels.concepts, data.labels.present
        association = associate(values[own], present, data.movies, seed=seed)
    described = unit_table(made, _frames(group, features, values, places), concepts, association, names)
    report = _report(made, described, asked)
    with new_folder(output.path, force=output.force) as folder:
        write_report(report, folder)
        kept = {name: each for name, each in made.to_arrays().items() if name not in {"moments", "decays"}}
        _write(folder / "units.npz", kept)
    partial.unlink(missing_ok=True)
    write_page(report, output.html, force=output.force)
    click.echo(to_json(report) if output.as_json else plain(report), nl=False)
    click.echo(f"kept in {output.path}", err=True)


def _digest(asked: dict[str, Any]) -> "NDArray[np.uint8]":
    return np.frombuffer(sha256_of(json.dumps(asked, sort_keys=True).encode()).encode(), np.uint8)


def _write(path: Path, arrays: "dict[str, NDArray[Any]]") -> None:
    """Write arrays as an npz: the same arrays, the same bytes."""
    with whole_file(path) as unnamed, unnamed.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # mypy takes the names for allow_pickle


def _begun(path: Path, asked: dict[str, Any]) -> "Dictionary | None":
    """Read what an earlier run with the same arguments had learnt, if there is any."""
    from obygaze_models.concepts.dictionary import Dictionary

    try:
        with np.load(io.BytesIO(read_bytes(path, MOST)), allow_pickle=False) as stored:
            arrays = dict(stored)
        if not np.array_equal(arrays.pop("asked"), _digest(asked)):
            return None
        return Dictionary.from_arrays(arrays)
    except (OSError, ObygazeError, ValueError, LookupError, TypeError, EOFError, BadZipFile):
        return None  # none, or damaged: it is learnt anew


def _frames(
    group: "Group", features: str, values: "NDArray[np.float32]", places: "NDArray[np.int32]"
) -> list[str]:
    """Name the strongest frames of each unit: clip and time in the video, of one frame a clip."""
    from obygaze_models.prediction.predict import frame_times

    rows, told = np.flatnonzero(group.usable), []
    known = "frames" in group.arrays  # else nobody knows which tokens are of one time
    times = frame_times(group, rows) if known else np.full((len(rows), 1), np.nan)
    n_each, first = divmod(group.shape(features)[1], times.shape[1])
    steps = np.maximum(places - first, 0) // n_each
    for unit, best in enumerate(np.argsort(-values, axis=0, kind="stable")[:N_FRAMES].T):
        active = best[values[best, unit] > 0]
        names = (f"{group.clip_ids[rows[row]]} {times[row, steps[row, unit]]:.1f} s" for row in active)
        told.append("; ".join(name.removesuffix(" nan s") for name in names))
    return told


def _report(made: "Dictionary", described: "pd.DataFrame", asked: dict[str, Any]) -> "Report":
    """Say how well the units explain what they were learnt on, and list the most used."""
    from obygaze_models.report.blocks import Report, block, cell, interval, number

    columns: list[Any] = [("unit", "unit", cell), ("active", "share", number), ("strongest", "frames", str)]
    left = f"{made.unexplained:.1%} of the variance unexplained"
    notes = [f"{len(described)} units, at most {made.n_active} active, leave {left}; {made.n_dead} are dead."]
    if "p" in described:
        auc = ("auc", "auc_low", "auc_high")
        columns += [("concept", "concept", str), ("AUC by film", auc, interval), ("p", "p", number)]
        notes.append(
            f"{(described['p'] <= FOUND).sum()} units go with a concept: p at most {FOUND:g}, corrected for "
            "all units and concepts by labels shifted within films. The units have seen all films."
        )
    if "words" in described:
        columns.append(("nearest texts", "words", str))
    shown = described.head(SHOWN).to_dict(orient="records")
    most = block(f"The {len(shown)} units active most often", columns, shown)
    record = {**asked, "dead": made.n_dead, "unexplained": made.unexplained}
    return Report("units", "Units without labels", tuple(notes), (most,), described, record)
