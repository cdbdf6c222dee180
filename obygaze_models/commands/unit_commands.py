"""`obygaze model units`: learn units of a store's frames or tokens without labels, and describe them."""

import io
import json
from functools import partial as bound
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import click

import obygaze_features as of
import obygaze_models as om
from obygaze_features.door import read_bytes
from obygaze_features.errors import ObygazeError
from obygaze_features.io import sha256_of, whole_file
from obygaze_features.options import Answer, Output, declared
from obygaze_features.screen import progress_bar
from obygaze_models.commands.inputs import finish, parted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from obygaze_features.store import Group
    from obygaze_models.concepts.texts import TextVectors
    from obygaze_models.concepts.units import Dictionary
    from obygaze_models.evaluation.significance import Association
    from obygaze_models.report import Report

SHOWN = 40
"""Units in the table; units.csv has all."""

N_FRAMES = 5

MOST = 1 << 31
"""Bytes of what a stopped run left: 100,000 units of 1,000 numbers have fewer."""

FOUND = 0.05
"""Largest p of a unit that goes with a concept."""


@declared(__package__, "model units")
def units(
    store: Path,
    features: str,
    seed: int,
    labels: Path | None,
    texts: Path | None,
    output: Output,
    **sizes: int,
) -> Answer:
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
    import numpy as np

    from obygaze_models.concepts.texts import read_texts
    from obygaze_models.concepts.units import N_EPOCHS, learn_dictionary, strongest
    from obygaze_models.dataset.features import StoredClips, find_group
    from obygaze_models.evaluation.significance import associate
    from obygaze_models.report import check_folder

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

    sizes["n_epochs"] = N_EPOCHS
    asked = {"store": opened.fingerprint, "backbone": group.name, "features": features, "seed": seed, **sizes}
    digest = np.frombuffer(sha256_of(json.dumps(asked, sort_keys=True).encode()).encode(), np.uint8)
    partial = output.path.with_name(f"{output.path.name}.partial.npz")
    with progress_bar("learning units", "epoch") as show:

        def keep(made: "Dictionary") -> None:
            _write(partial, made.to_arrays() | {"asked": digest})
            show(made.epoch, N_EPOCHS)

        made = learn_dictionary(
            read, len(clips), seed=seed, begun=_begun(partial, digest), keep=keep, **sizes
        )
    values, places = strongest(made, clips)
    concepts: Sequence[str] = ()
    association = None
    if labels is not None:
        data = om.load_dataset(opened, of.read_manifest(labels), backbone=group.name)
        row_of = {group.clip_ids[row]: place for place, row in enumerate(clips.rows)}
        own = [row_of[clip_id] for clip_id in data.clip_ids.tolist()]
        concepts, present = data.labels.concepts, data.labels.present
        association = associate(values[own], present, data.movies, seed=seed)
    described = _unit_table(made, _frames(group, features, values, places), concepts, association, names)
    kept = {name: each for name, each in made.to_arrays().items() if name not in {"moments", "decays"}}
    answer = finish(_report(made, described, asked), output, {"units.npz": bound(_write, arrays=kept)})
    partial.unlink(missing_ok=True)
    return answer


def _write(path: Path, arrays: "dict[str, NDArray[Any]]") -> None:
    """Write arrays as an npz: the same arrays, the same bytes."""
    import numpy as np

    with whole_file(path) as unnamed, unnamed.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # mypy takes the names for allow_pickle


def _begun(path: Path, digest: "NDArray[np.uint8]") -> "Dictionary | None":
    """Read what an earlier run with the same arguments had learnt, if there is any."""
    import numpy as np

    from obygaze_models.concepts.units import Dictionary

    try:
        with np.load(io.BytesIO(read_bytes(path, MOST)), allow_pickle=False) as stored:
            arrays = dict(stored)
        same = np.array_equal(arrays.pop("asked"), digest)
        return Dictionary.from_arrays(arrays) if same else None
    except (OSError, ObygazeError, ValueError, LookupError, TypeError, EOFError, BadZipFile):
        return None  # none, or damaged: it is learnt anew


def _frames(
    group: "Group", features: str, values: "NDArray[np.float32]", places: "NDArray[np.int32]"
) -> list[str]:
    """Name the strongest frames of each unit: clip and time in the video, of one frame a clip."""
    import numpy as np

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


def _unit_table(
    made: "Dictionary",
    frames: "Sequence[str]",
    concepts: "Sequence[str]",
    association: "Association | None",
    texts: "TextVectors | None",
) -> "pd.DataFrame":
    """Lay out units, the most used first.

    Columns are unit, share (of tokens in which it is active) and its strongest `frames`; with concepts the
    nearest one, its AUC by film with its interval, and p; with texts the three nearest to the unit's
    direction, less the mean of all texts.
    """
    import numpy as np
    import pandas as pd
    from sklearn.preprocessing import normalize

    from obygaze_models.evaluation.intervals import t_interval

    table = pd.DataFrame({"unit": 1 + np.arange(len(frames)), "share": made.shares, "frames": frames})
    if association is not None:
        auc, p = association
        away = np.abs(np.nansum(auc - 0.5, axis=0)) / np.maximum((~np.isnan(auc)).sum(axis=0), 1)
        nearest = away.argmax(axis=1)
        units = np.arange(len(frames))
        means = [t_interval(own, bounds=(0, 1)) for own in auc[:, units, nearest].T]
        table["concept"] = [concepts[place] for place in nearest]
        table[["auc", "auc_low", "auc_high"]] = [(each.mean, each.low, each.high) for each in means]
        table["p"] = p[units, nearest]
    if texts is not None:
        directions = normalize(texts.vectors - texts.vectors.mean(axis=0))
        order = np.argsort(-(made.decoder @ directions.T), axis=1, kind="stable")[:, :3]
        table["words"] = ["; ".join(texts.texts[place] for place in own) for own in order]
    return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)


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
