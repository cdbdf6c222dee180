"""`obygaze model units`: learn units of a store's frames or tokens without labels, and describe them."""

import io
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zipfile import BadZipFile

import click

import obygaze_features as of
import obygaze_models as om
from obygaze_features.errors import ObygazeError
from obygaze_features.io import sha256_of, whole_file
from obygaze_features.options import Answer, Output
from obygaze_features.screen import progress_bar
from obygaze_features.signatures import Force, Json, argument, command, option
from obygaze_features.text import counted
from obygaze_features.untrusted import read_bytes
from obygaze_models.commands.inputs import finish, parse_store_argument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from obygaze_features.store import Group
    from obygaze_models.concepts.dictionary import Dictionary
    from obygaze_models.concepts.texts import TextVectors
    from obygaze_models.dataset.dataset import Dataset
    from obygaze_models.dataset.features import StoredClips
    from obygaze_models.evaluation.significance import Association
    from obygaze_models.report import Report

N_SHOWN_UNITS = 40
"""Units in the table; units.csv has all."""

N_FRAMES = 5
"""Frames that are named for each unit: those in which it is strongest."""

N_TEXTS = 3
"""Texts that are named for each unit: those nearest to its direction."""

MAX_UNFINISHED_BYTES = 1 << 31
"""Largest file of an interrupted run that is read: 100,000 units of 1,000 numbers take less."""

ARRAYS_FOR_RESUMING = ("moments", "decays")
"""Arrays of a dictionary that are needed only to resume its training."""

DIGEST_OF_SETTINGS = "asked"
"""Name of the array of an unfinished file that holds the digest of the settings of the run."""

ERRORS_OF_DAMAGED_FILES = (
    OSError,
    ObygazeError,
    ValueError,
    LookupError,
    TypeError,
    EOFError,
    BadZipFile,
)
"""What reading an unfinished file may raise if it does not exist or is damaged."""

LARGEST_P = 0.05
"""A unit counts as going with a concept if its p is at most this."""


@command()
def units(
    store: Annotated[Path, argument(metavar="STORE[:BACKBONE]")],
    *,
    features: Annotated[Literal["frames", "tokens"], option("Vectors of STORE that are read.")] = "frames",
    n_units: Annotated[int, option("Number of units.", name="units", type=click.IntRange(1))] = 512,
    n_active: Annotated[
        int,
        option(
            "Largest number of units that are active in a frame or token.",
            name="active",
            type=click.IntRange(1),
        ),
    ] = 16,
    seed: Annotated[int, option("Random seed.", type=click.IntRange(0))] = 0,
    labels: Annotated[
        Path | None,
        option("Compare the units with the concepts of the clips of this manifest.", metavar="MANIFEST"),
    ] = None,
    texts: Annotated[
        Path | None,
        option(
            "Name the nearest texts of each unit, from this store of texts, encoded by the network of STORE.",
            metavar="STORE",
        ),
    ] = None,
    out: Annotated[Path, option("Write the results to this folder.")],
    force: Force = False,
    json: Json = False,
) -> Answer:
    """Learn units of the frames or tokens of STORE without labels, by a top-k sparse autoencoder.

    A unit is a direction in the space of features. The command writes a folder with units.npz (the
    directions), units.csv and a report. units.csv has the frames in which a unit is strongest. With
    --labels it also has the concept that the unit separates best, the AUC by film, and p corrected for all
    units and concepts; with --texts also the nearest texts.

    The store is read in blocks. An interrupted run resumes after its last epoch. The units are learnt from
    every film, so do not test a model with them: use `obygaze evaluate --model units`, which learns its own
    units without the films tested.

    \b
    Examples:
      obygaze model units stores/films --out units
      obygaze model units stores/films:xclip --units 4096 --active 32 \\
          --labels films.csv --texts stores/thesaurus --out units
    """
    import numpy as np
    import pandas as pd

    from obygaze_models.concepts.dictionary import strongest_activations
    from obygaze_models.concepts.dictionary_learning import N_EPOCHS
    from obygaze_models.concepts.texts import read_texts
    from obygaze_models.dataset.features import StoredClips, find_group
    from obygaze_models.report import check_folder

    # --- open the store, and the texts
    check_folder(out, force=force)
    store_argument = parse_store_argument(store)
    opened = of.open_store(store_argument.store)
    group = find_group(opened, store_argument.backbone)
    if features not in group.arrays:
        raise click.UsageError(f"--features {features}: {group.name} has {', '.join(group.arrays)} here")
    text_vectors = None
    if texts is not None:
        _, text_vectors = read_texts(of.open_store(texts), group.name, group)

    # --- learn the units
    usable_rows = np.flatnonzero(group.usable)  # clips whose features are there
    clips = StoredClips(group, features, usable_rows)
    # All that the units depend on: an unfinished run is resumed only with the same settings.
    settings: dict[str, Any] = {
        "store": opened.fingerprint,
        "backbone": group.name,
        "features": features,
        "seed": seed,
        "n_units": n_units,
        "n_active": n_active,
        "n_epochs": N_EPOCHS,
    }
    # Next to the folder, which is written only at the end, as a whole.
    unfinished = out.with_name(f"{out.name}.partial.npz")
    dictionary = _learn_units(clips, settings, unfinished)

    # --- describe them by frames, concepts and texts
    values, strongest_tokens = strongest_activations(dictionary, clips)
    frames = _name_strongest_frames(group, features, values, strongest_tokens)
    numbers = np.arange(1, len(frames) + 1)
    table = pd.DataFrame({"unit": numbers, "share": dictionary.shares, "frames": frames})
    if labels is not None:
        data = om.load_dataset(opened, of.read_manifest(labels), backbone=group.name)
        association = _associate_with_concepts(data, group, clips, values, seed)
        table = table.join(_best_concepts(data.labels.concepts, association))
    if text_vectors is not None:
        table["words"] = _nearest_texts(dictionary, text_vectors)
    table = table.sort_values("share", ascending=False, kind="stable", ignore_index=True)

    # --- write the folder; the file of an unfinished run is needed no more
    answer = finish(
        _units_report(dictionary, table, settings),
        Output(out, force=force, json=json),
        {"units.npz": partial(_write_directions, dictionary=dictionary)},
    )
    unfinished.unlink(missing_ok=True)
    return answer


def _learn_units(clips: "StoredClips", settings: "Mapping[str, Any]", unfinished: Path) -> "Dictionary":
    """Learn units of clips; each epoch is saved to the file `unfinished`, from which a stopped run resumes.

    `settings` are all that the result depends on. A file that was written with other settings is not used.
    """
    import numpy as np

    from obygaze_models.concepts.dictionary import present_tokens
    from obygaze_models.concepts.dictionary_learning import learn_dictionary

    n_epochs = settings["n_epochs"]
    digest = _digest_of_settings(settings)

    def read(rows: "NDArray[np.intp]") -> "NDArray[np.float32]":
        """Read the present tokens of the clips in these rows, one clip after the other [tokens, D]."""
        return present_tokens(np.asarray(clips[rows]))

    with progress_bar("learning units", "epoch") as show:

        def save_epoch(learnt: "Dictionary") -> None:
            """Save the dictionary after an epoch, for a stopped command to resume from, and show progress."""
            _write_npz(unfinished, {**learnt.to_arrays(), DIGEST_OF_SETTINGS: digest})
            show(learnt.epoch, n_epochs)

        return learn_dictionary(
            read,
            len(clips),
            n_units=settings["n_units"],
            n_active=settings["n_active"],
            n_epochs=n_epochs,
            seed=settings["seed"],
            resume_from=_read_unfinished(unfinished, digest),
            after_epoch=save_epoch,
        )


def _digest_of_settings(settings: "Mapping[str, Any]") -> "NDArray[np.uint8]":
    """Return the SHA-256 of settings as an array for an npz file: the ASCII codes of its 64 digits."""
    import numpy as np

    text = json.dumps(settings, sort_keys=True)
    hex_digits = sha256_of(text.encode())
    return np.frombuffer(hex_digits.encode(), np.uint8)


def _associate_with_concepts(
    data: "Dataset", group: "Group", clips: "StoredClips", values: "NDArray[np.float32]", seed: int
) -> "Association":
    """Measure how well units' activations separate labelled clips with a concept from those without it.

    Parameters
    ----------
    data
        The labelled clips.
    group
        The features of one backbone in the store.
    clips
        The clips of the group that units were learnt on.
    values : ndarray, shape [N, H]
        Largest activation of each of H units in each of these N clips.
    seed
        Seed of the permutation test.
    """
    from obygaze_models.evaluation.significance import associate

    index_of_clip = {group.clip_ids[row]: index for index, row in enumerate(clips.rows)}
    # The clips of a dataset have features, so that units were learnt on all of them.
    labelled = [index_of_clip[clip_id] for clip_id in data.clip_ids.tolist()]
    return associate(values[labelled], data.labels.present, data.movies, seed=seed)


def _write_directions(path: Path, dictionary: "Dictionary") -> None:
    """Write the arrays of a dictionary to an npz file, without those that only training needs."""
    arrays = dictionary.to_arrays()
    for name in ARRAYS_FOR_RESUMING:
        arrays.pop(name, None)
    _write_npz(path, arrays)


def _write_npz(path: Path, arrays: "dict[str, NDArray[Any]]") -> None:
    """Write arrays to an npz file; the same arrays give the same bytes."""
    import numpy as np

    with whole_file(path) as temporary_path, temporary_path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # mypy takes the names for allow_pickle


def _read_unfinished(path: Path, digest: "NDArray[np.uint8]") -> "Dictionary | None":
    """Read the dictionary of units that an interrupted run saved, to resume from it.

    None if there is no such file, if it is damaged, or if it was made with other settings: units are then
    learnt from the start. `digest` is that of the settings.
    """
    import numpy as np

    from obygaze_models.concepts.dictionary import Dictionary

    try:
        file = io.BytesIO(read_bytes(path, MAX_UNFINISHED_BYTES))
        with np.load(file, allow_pickle=False) as stored:
            arrays = dict(stored)
        if not np.array_equal(arrays.pop(DIGEST_OF_SETTINGS), digest):
            return None
        return Dictionary.from_arrays(arrays)
    except ERRORS_OF_DAMAGED_FILES:
        return None


def _name_strongest_frames(
    group: "Group", features: str, values: "NDArray[np.float32]", strongest_tokens: "NDArray[np.int32]"
) -> list[str]:
    """Name the frames in which each unit is most active, by clip and time in the video, one frame per clip.

    A person looks at them to tell what a unit stands for. Frames in which it is not active at all are left
    out.

    Parameters
    ----------
    group
        The features of one backbone in the store.
    features
        The array of the group that units are learnt on: "frames" or "tokens".
    values : ndarray, shape [N, H]
        Largest activation of each unit in each clip.
    strongest_tokens : ndarray, shape [N, H]
        Index of the frame or token of the clip that has it.

    Returns
    -------
    list of str
        A text for each unit, which names up to `N_FRAMES` frames, the strongest first; without a time where
        the store has none.
    """
    import numpy as np

    times = _strongest_times(group, features, strongest_tokens)
    rows = np.flatnonzero(group.usable)
    # The clips in which each unit is most active, the strongest first, [N_FRAMES, H].
    strongest_clips = np.argsort(-values, axis=0, kind="stable")[:N_FRAMES]
    texts = []
    for unit, clips in enumerate(strongest_clips.T):
        names = []
        for clip in clips:
            is_active = values[clip, unit] > 0
            if not is_active:
                continue
            time_s = times[clip, unit]
            clip_id = group.clip_ids[rows[clip]]
            names.append(clip_id if np.isnan(time_s) else f"{clip_id} {time_s:.1f} s")
        texts.append("; ".join(names))
    return texts


def _strongest_times(
    group: "Group", features: str, strongest_tokens: "NDArray[np.int32]"
) -> "NDArray[np.float64]":
    """Return the time in seconds at which each of H units is most active in each of N clips; NaN if unknown.

    Parameters
    ----------
    group
        The features of one backbone in the store.
    features
        The array of the group that units are learnt on: "frames" or "tokens".
    strongest_tokens : ndarray, shape [N, H]
        Index of the frame or token of the clip in which the unit is most active.
    """
    import numpy as np

    from obygaze_models.prediction.frames import frame_times

    # Times are those of frames. Tokens of clips with different numbers of frames can't be assigned to frames.
    has_frames = "frames" in group.arrays
    has_tokens_without_frame = group.ragged and features == "tokens"
    if not has_frames or has_tokens_without_frame:
        return np.full(strongest_tokens.shape, np.nan)
    times = frame_times(group, np.flatnonzero(group.usable))  # [N, F]
    n_frames = times.shape[1]
    # If clips have different numbers of them, `features` are the frames themselves.
    n_tokens = n_frames if group.is_ragged(features) else group.shape(features)[1]
    strongest_frames = _frames_of_tokens(strongest_tokens, n_tokens, n_frames)  # [N, H]
    return np.take_along_axis(times, strongest_frames, axis=1)


def _frames_of_tokens(tokens: "NDArray[np.int32]", n_tokens: int, n_frames: int) -> "NDArray[np.int32]":
    """Return the index of the frame that each token of a clip belongs to.

    Each frame has the same number of tokens. Tokens that are left over, such as a class token, lead the
    others, and are assigned to the first frame. For example, of 1,569 tokens of 8 frames the first is a class
    token, and each frame has 196: tokens 0 to 196 are of frame 0, and token 197 is the first of frame 1.

    Parameters
    ----------
    tokens : ndarray of int
        Indices of tokens, in an array of any shape, which is also that of the result.
    n_tokens, n_frames : int
        Numbers of tokens and of frames of a clip.
    """
    import numpy as np

    n_tokens_of_frame = n_tokens // n_frames
    n_leading_tokens = n_tokens - n_frames * n_tokens_of_frame
    indices_after_leading = np.maximum(tokens - n_leading_tokens, 0)
    return np.asarray(indices_after_leading // n_tokens_of_frame)


def _best_concepts(concepts: "Sequence[str]", association: "Association") -> "pd.DataFrame":
    """Find for each unit the concept that it separates best: the columns concept, auc with interval, and p.

    It is the concept whose AUC, averaged over films, lies farthest from chance, .5, on either side.
    """
    import numpy as np
    import pandas as pd

    from obygaze_models.evaluation.intervals import t_interval

    auc = association.auc  # [films, units, concepts], NaN where undefined
    n_defined = (~np.isnan(auc)).sum(axis=0)
    # The mean over films, less chance, [units, concepts]; 0 for a concept that no film defines.
    mean_above_chance = np.nansum(auc - 0.5, axis=0) / np.maximum(n_defined, 1)
    best_concepts = np.abs(mean_above_chance).argmax(axis=1)  # index of a concept, for each unit
    rows = []
    for unit, index in enumerate(best_concepts):
        interval = t_interval(auc[:, unit, index], bounds=(0, 1))
        row = {
            "concept": concepts[index],
            "auc": interval.mean,
            "auc_low": interval.low,
            "auc_high": interval.high,
            "p": association.p[unit, index],
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _nearest_texts(dictionary: "Dictionary", texts: "TextVectors") -> list[str]:
    """List for each unit the texts nearest to its direction, which may tell what the unit stands for.

    They are the `N_TEXTS` texts whose vectors have the largest cosine with the unit's direction. The texts
    were encoded by the network of the features, so that both are in one space.
    """
    import numpy as np
    from sklearn.preprocessing import normalize

    # Vectors of texts have much in common. Without the mean of all, they point in different directions.
    directions_of_texts = normalize(texts.vectors - texts.vectors.mean(axis=0))
    cosines = dictionary.decoder @ directions_of_texts.T  # the decoder's rows have length 1
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :N_TEXTS]
    all_texts = np.array(texts.texts, dtype=object)
    return ["; ".join(all_texts[indices]) for indices in nearest]


def _units_report(dictionary: "Dictionary", table: "pd.DataFrame", settings: dict[str, Any]) -> "Report":
    """Make the report: how well the units explain the features, and a table of the most used ones."""
    from obygaze_models.report.blocks import Report, block, cell, interval, number

    # Of each column: its heading, the key of its values, and the function that formats them.
    columns: list[Any] = [("unit", "unit", cell), ("active", "share", number), ("strongest", "frames", str)]
    unexplained = f"{dictionary.unexplained:.1%} of the variance unexplained"
    size = f"{counted(len(table), 'unit')}, at most {dictionary.n_active} active"
    notes = [f"{size}, leave {unexplained}; {dictionary.n_dead} are dead."]
    if "p" in table:
        keys_of_auc = ("auc", "auc_low", "auc_high")
        columns += [("concept", "concept", str), ("AUC by film", keys_of_auc, interval), ("p", "p", number)]
        n_with_concept = (table["p"] <= LARGEST_P).sum()
        notes.append(
            f"{counted(n_with_concept, 'unit goes', 'units go')} with a concept: p at most {LARGEST_P:g}, "
            "corrected for all units and concepts by labels shifted within films. The units have seen all "
            "films."
        )
    if "words" in table:
        columns.append(("nearest texts", "words", str))
    shown = table.head(N_SHOWN_UNITS).to_dict(orient="records")
    most_used = block(f"The {counted(len(shown), 'unit')} active most often", columns, shown)
    record = {**settings, "dead": dictionary.n_dead, "unexplained": dictionary.unexplained}
    return Report(
        name="units",
        title="Units without labels",
        notes=tuple(notes),
        blocks=(most_used,),
        data=table,
        record=record,
    )
