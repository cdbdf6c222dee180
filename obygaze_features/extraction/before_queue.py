"""Find what would stop an extraction before jobs are queued, on a machine that need not be like the nodes.

A login node has the disk, the manifest and the cache of the nodes, but often no GPU and few cores. So
networks are built on its processor, and nothing is decoded.
"""

import errno
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from obygaze_features.backbones import Backbone, TextBackbone, backbone_options
from obygaze_features.backbones.weights import HUB, how_to_get, hub_name, is_cached
from obygaze_features.errors import BackboneError, ObygazeError
from obygaze_features.extraction.decoders import CUDA, PYAV
from obygaze_features.extraction.doctor import Diagnosis, Level, examine_place, mount_of
from obygaze_features.extraction.job import Recipe
from obygaze_features.extraction.prepared import Extraction
from obygaze_features.extraction.texts import TextJob
from obygaze_features.io import NO_LICENCE
from obygaze_features.machine import this_machine
from obygaze_features.manifest import counted
from obygaze_features.store import GroupSpec, Stage, open_store, read_stage
from obygaze_features.store.disk_usage import disk_room, existing_folder, refused_reservation
from obygaze_features.store.format import PIECE_ROWS
from obygaze_features.store.group import spec_of
from obygaze_features.store.missing_videos import missing_files
from obygaze_features.store.shares import other_cluster_message, shares_elsewhere
from obygaze_features.text import three_digits

MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")
"""Types of file systems that hold files in memory."""

MACHINE_FIELDS = ("device", "clips_at_once")
"""Fields of a network's record that depend on the machine that it runs on."""


def recipes_on_cpu(recipes: Sequence[Recipe]) -> tuple[Recipe, ...]:
    """Return recipes (arguments to build backbones) that build the same networks on the CPU.

    They are for a check before jobs are queued: the machine where jobs are submitted often has no GPU.

    Raises
    ------
    BackboneError
        If weights of the Hugging Face Hub are not in this machine's cache: compute nodes often cannot
        download them.
    """
    for recipe in recipes:
        _refuse_uncached_weights(recipe)
    return tuple(_recipe_on_cpu(recipe) for recipe in recipes)


def _refuse_uncached_weights(recipe: Recipe) -> None:
    """Raise an error if a backbone's weights are on the Hugging Face Hub and not in this machine's cache.

    Parameters
    ----------
    recipe
        Arguments to build the backbone; it may name other weights than the backbone's default ones.
    """
    default_weights = HUB.get(recipe.name, "")
    weights = recipe.options.get("weights") or default_weights
    name_on_hub = hub_name(weights)
    if not name_on_hub:  # weights in a file, or none
        return
    if not is_cached(name_on_hub):
        raise BackboneError(
            f"the weights of {recipe.name} ({name_on_hub}) are not in this machine's cache, where the "
            f"nodes look for them. {how_to_get(name_on_hub)}"
        )


def decoder_without_gpu(decoder: str) -> str:
    """Return the name of the decoder to check with on a machine without a GPU: PyAV in place of CUDA's.

    Both decoders have the same record in provenance, so that the check compares the same settings.
    """
    return PYAV if decoder == CUDA else decoder


def _recipe_on_cpu(recipe: Recipe) -> Recipe:
    """Return a recipe that builds the same network on the CPU; the recipe itself if it builds no network."""
    runs_network = "compute" in backbone_options(recipe.name)  # the option with device and data type
    if not runs_network:
        return recipe
    from obygaze_features.backbones import Compute  # noqa: PLC0415 - imports torch, which is an extra

    compute = replace(recipe.options.get("compute") or Compute(), device="cpu")
    return replace(recipe, options={**recipe.options, "compute": compute})


def examine_run(work: Extraction) -> list[Diagnosis]:
    """Check a prepared extraction before its jobs are queued; nothing is decoded, and no file is left behind.

    The checks are of clips, videos, licence, the stage and store of earlier runs, the folder, and the disk.

    Parameters
    ----------
    work
        An extraction prepared with the recipes of `recipes_on_cpu`.

    Returns
    -------
    list of Diagnosis
        A result of each check; one with the level `fault` would stop the run.
    """
    work = _with_recorded_devices(work)
    return [
        *_examine_clips(work),
        *_examine_videos(work),
        *_examine_licence(work),
        *_examine_stage(work),
        *examine_place(work.stage_path),
        *_examine_disk(work),
    ]


def _examine_clips(work: Extraction) -> Iterator[Diagnosis]:
    """Report the number of clips, and note if some tasks of the job array would have nothing to do.

    All rows of the store are shared out by whole pieces of 16 rows, also those of a store that grows, and
    those that earlier runs have done. Of n tasks, task i has the pieces i, i + n, i + 2n and so on.
    """
    clips_text = counted(len(work.job.planned_clips()), work.unit)
    _, n_tasks = work.shard
    pieces = _pieces_to_do(work)  # None: not known, which another finding explains
    if pieces is None:
        yield Diagnosis("clips", "ok", clips_text)
        return
    tasks_with_work = {piece % n_tasks for piece in pieces}
    n_idle = n_tasks - len(tasks_with_work)
    if n_idle == 0:
        yield Diagnosis("clips", "ok", clips_text)
        return
    if not pieces:
        yield Diagnosis("clips", "note", f"{clips_text}, of which none is left to do")
        return
    pieces_text = f"work in {counted(len(pieces), 'piece')} of {PIECE_ROWS}"
    yield Diagnosis(
        "clips", "note", f"{clips_text}, {pieces_text}: {n_idle} of {n_tasks} tasks have nothing to do"
    )


def _pieces_to_do(work: Extraction) -> set[int] | None:
    """Return the numbers of the pieces of rows in which there is work for some task of the job array.

    A store has a row for each clip, in the order of their ids. Each `PIECE_ROWS` rows are a piece, which one
    task extracts: with 16 rows, the clip of row 20 is in piece 1.

    None if that is not known, because the stage is of other settings: `_examine_stage` reports it.
    """
    one_task_for_all = (0, 1)  # task 0 of one
    work_of_all_tasks = replace(work, shard=one_task_for_all)
    try:
        clips, _, _ = work.plan()  # all clips of the store, whichever task extracts them
        stage = _open_existing_stage(work)
    except ObygazeError:
        return None
    if stage is None:
        to_do = work_of_all_tasks.clips_to_do_without_stage(clips)
    else:
        to_do = work_of_all_tasks.clips_to_do(stage)
    ids_in_order_of_rows = sorted(clip.clip_id for clip in clips)
    row_of_clip = {clip_id: row for row, clip_id in enumerate(ids_in_order_of_rows)}
    return {row_of_clip[clip_id] // PIECE_ROWS for clip_id in to_do}


def _examine_videos(work: Extraction) -> Iterator[Diagnosis]:
    """Report how many videos are found, and name one that is not.

    It is a fault if none is found and there is work to do: a run without work needs no video.
    """
    if isinstance(work.job, TextJob):  # texts have no videos
        return
    paths = {work.job.manifest.video_path(clip) for clip in work.job.manifest}
    videos = {path for path in paths if path is not None}
    missing = missing_files(videos)
    text = f"{len(videos) - len(missing):,} of {counted(len(videos), 'video')} found"
    if not missing:
        yield Diagnosis("videos", "ok", text)
        return

    pieces = _pieces_to_do(work)
    may_have_work = pieces is None or len(pieces) > 0  # None: not known
    all_are_missing = missing == videos
    level: Level = "fault" if all_are_missing and may_have_work else "note"
    yield Diagnosis("videos", level, f"{text}; absent: such as {min(missing)}. Is their file system mounted?")


def _examine_licence(work: Extraction) -> Iterator[Diagnosis]:
    """Report the licence under which the features will be sealed; note if none is given.

    A store that grows keeps its own.
    """
    licence = work.terms().licence
    if licence == NO_LICENCE:
        text = f"{NO_LICENCE}: the store cannot be shared so; --licence SPDX states one"
        yield Diagnosis("licence", "note", text)
    else:
        yield Diagnosis("licence", "ok", licence)


def _examine_stage(work: Extraction) -> Iterator[Diagnosis]:
    """Report whether this extraction can begin its store, or resume the unfinished one of an earlier run.

    An unfinished store is called a stage. Each of these is a fault:

    - the store is sealed (finished), or the stage was made with other settings;
    - another cluster extracts some shares of the clips;
    - a stage with the same clips seems to have been renamed.
    """
    try:
        work.refuse_if_sealed()
        stage = _open_existing_stage(work)
    except ObygazeError as error:
        yield Diagnosis("stage", "fault", str(error))
        return

    machine = this_machine()
    other_clusters_shares = shares_elsewhere(work.stage_path, machine)
    if other_clusters_shares:
        message = other_cluster_message(work.stage_path, other_clusters_shares, machine)
        yield Diagnosis("shares", "fault", message)

    for note in work.notes_on_renamed_stages():
        # A fault, since nobody would read a note and stop a queued array that repeats finished work. With
        # CHECK=no the job script leaves all these checks out.
        yield Diagnosis("stage", "fault", f"{note}. If it is another store's, submit with CHECK=no")

    if stage is None:
        yield Diagnosis("stage", "ok", f"{work.stage_path} is to be made")
    else:
        yield _examine_resumed_stage(work, stage)


def _examine_resumed_stage(work: Extraction, stage: Stage) -> Diagnosis:
    """Report how many rows of an unfinished store are left to do; a fault if the store is sealed already.

    Parameters
    ----------
    work
        The prepared extraction.
    stage
        The unfinished store, which an earlier run has begun.
    """
    work_of_all_tasks = replace(work, shard=(0, 1))
    rows_left = counted(len(work_of_all_tasks.clips_to_do(stage)), work.unit)
    if work.sealed_path.exists():
        text = (
            f"{work.sealed_path} is sealed already ({rows_left} left to do); "
            "another needs another --store-version"
        )
        return Diagnosis("stage", "fault", text)
    return Diagnosis("stage", "ok", f"{work.stage_path} is resumed: {rows_left} left to do")


def _open_existing_stage(work: Extraction) -> Stage | None:
    """Open the stage (the unfinished store) as a task of the job array would, but without changing it.

    Returns None if the task would begin a new stage: there is none, or only one whose clips are all sealed,
    which the task would replace.
    """
    if not work.stage_path.exists() or work.has_replaceable_stage():
        return None
    return work.open_stage(trial=True)


def _with_recorded_devices(work: Extraction) -> Extraction:
    """Return the extraction with the device that its stage, or its parent store, records for each network.

    A run continues a stage only if the provenance of its networks equals the recorded one, device included.
    Here all networks are built on the CPU, and those of the stage may have run on a GPU. With the recorded
    device in place of the CPU, the comparison finds all other differences.
    """
    compute_of_group = {group.name: group.provenance.get("compute") for group in _existing_groups(work)}
    job: Any = work.job  # of clips or of texts, which are both dataclasses with `backbones`
    backbones = tuple(_with_recorded_device(backbone, compute_of_group) for backbone in job.backbones)
    return replace(work, job=replace(job, backbones=backbones))


def _existing_groups(work: Extraction) -> Sequence[GroupSpec]:
    """Return the groups of features that exist already: those of the stage, else of the store to extend.

    Empty if the extraction begins a new store.
    """
    if work.stage_path.exists():
        return read_stage(work.stage_path).groups
    if work.append is not None:  # the store to which clips are added
        store = open_store(work.append)
        return [spec_of(store[name]) for name in store]
    return ()


AnyBackbone = TypeVar("AnyBackbone", Backbone, TextBackbone)


def _with_recorded_device(backbone: AnyBackbone, compute_of_group: Mapping[str, Any]) -> AnyBackbone:
    """Return a backbone whose provenance names the device that its existing group of features was made on.

    Only the fields of `MACHINE_FIELDS` change. A backbone that has no group yet, or runs no network, is
    returned as it is.

    Parameters
    ----------
    backbone
        A backbone that was built on this machine.
    compute_of_group
        Name of each existing group -> the field `compute` of its provenance; None if no network made it.
    """
    compute: Mapping[str, Any] = backbone.provenance.get("compute") or {}
    recorded_compute: Mapping[str, Any] = compute_of_group.get(backbone.name) or {}
    if not compute or not recorded_compute:
        return backbone

    changed_compute = {name: value for name, value in compute.items() if name not in MACHINE_FIELDS}
    for name in MACHINE_FIELDS:
        if name in recorded_compute:
            changed_compute[name] = recorded_compute[name]
    return replace(backbone, provenance={**backbone.provenance, "compute": changed_compute})


def _examine_disk(work: Extraction) -> Iterator[Diagnosis]:
    """Report whether the disk has room for the bytes and files of the run, and whether a quota allows it."""
    # What is needed, without what earlier runs have written, and what is free.
    clips, groups, _ = work.plan()
    room = disk_room(work.stage_path, clips, groups)
    text = (
        f"{three_digits(room.left_bytes / 1e9)} GB and {counted(room.left_files, 'file')} needed, "
        f"{three_digits(room.free.bytes / 1e9)} GB free"
    )
    if room.fits:
        yield _examine_quota(existing_folder(work.stage_path), room.left_bytes, text)
    else:
        yield Diagnosis("room", "fault", f"{text}: choose another place for STORE, or make room")


def _examine_quota(folder: Path, needed_bytes: int, text: str) -> Diagnosis:
    """Report whether a quota allows the needed bytes on a disk, by reserving them for a moment.

    Parameters
    ----------
    folder
        Any folder on the disk.
    needed_bytes
        Bytes that the extraction will write.
    text
        What is needed and what is free, in words: the beginning of the report.
    """
    is_in_memory = mount_of(folder).kind in MEMORY_FILE_SYSTEMS
    if is_in_memory:  # to reserve bytes there would take memory
        return Diagnosis("room", "ok", text)
    error = refused_reservation(folder, needed_bytes)
    if error is None:
        return Diagnosis("room", "ok", text)
    if error.errno == errno.EDQUOT:
        return Diagnosis("room", "fault", f"{text}, and your quota allows less: make room, or have it raised")
    unclear = f"that much could not be reserved ({error.strerror}): a quota may be less"
    return Diagnosis("room", "note", f"{text}; {unclear}")
