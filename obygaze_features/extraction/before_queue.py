"""Find what would stop an extraction before jobs are queued, on a machine that need not be like the nodes.

A login node has the disk, the manifest and the cache of the nodes, but often no GPU and few cores. So
networks are built on its processor, and nothing is decoded.
"""

import errno
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
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
from obygaze_features.store.disk_usage import (
    estimate_disk,
    existing_folder,
    free_space,
    links_work,
    refused_reservation,
)
from obygaze_features.store.format import PIECE_ROWS
from obygaze_features.store.group import spec_of
from obygaze_features.store.missing_videos import missing_files
from obygaze_features.store.shares import another_cluster, shares_elsewhere

IN_MEMORY = ("tmpfs", "ramfs")
"""Types of file systems that hold files in memory."""

OF_THE_MACHINE = ("device", "clips_at_once")
"""What the record of a network takes from the machine that it runs on."""


def for_a_look(recipes: Sequence[Recipe]) -> tuple[Recipe, ...]:
    """Return recipes that build the same networks on the processor.

    Raises
    ------
    BackboneError
        If weights of the hub are not in this machine's cache: nodes often cannot fetch them.
    """
    for recipe in recipes:
        name = hub_name(recipe.options.get("weights") or HUB.get(recipe.name, ""))
        if name and not is_cached(name):
            raise BackboneError(
                f"the weights of {recipe.name} ({name}) are not in this machine's cache, where the "
                f"nodes look for them. {how_to_get(name)}"
            )
    return tuple(_on_the_processor(recipe) for recipe in recipes)


def decoder_for_a_look(decoder: str) -> str:
    """Return a decoder with the same record that needs no card, which a login node may lack."""
    return PYAV if decoder == CUDA else decoder


def _on_the_processor(recipe: Recipe) -> Recipe:
    """Return a recipe that builds the same network on the processor, if it builds a network."""
    if "compute" not in backbone_options(recipe.name):
        return recipe
    from obygaze_features.backbones import Compute  # noqa: PLC0415 - imports torch, which is an extra

    compute = replace(recipe.options.get("compute") or Compute(), device="cpu")
    return replace(recipe, options={**recipe.options, "compute": compute})


def examine_run(work: Extraction) -> list[Diagnosis]:
    """List what a prepared extraction finds here; nothing is decoded, and nothing stays written.

    Parameters
    ----------
    work
        Prepared with what `for_a_look` returned.

    Returns
    -------
    list of Diagnosis
        A `fault` is what would stop the run.
    """
    work = _as_on_the_nodes(work)
    findings = [*_clips(work), *_licence(work), *_stage(work)]
    findings += examine_place(work.stage_path)
    return [*findings, *_room(work)]


def _clips(work: Extraction) -> Iterator[Diagnosis]:
    """Count the clips, the tasks without any, and the videos that are not found."""
    n_clips = len(work.job.planned_clips())
    n_shares = work.shard[1]
    n_pieces = ceil(n_clips / PIECE_ROWS)  # a share is made of whole pieces
    n_idle = n_shares - n_pieces
    text = counted(n_clips, work.unit)
    if n_idle > 0:
        text += (
            f" in {counted(n_pieces, 'piece')} of {PIECE_ROWS}: {n_idle} of {n_shares} tasks "
            "have nothing to do"
        )
    yield Diagnosis("clips", "note" if n_idle > 0 else "ok", text)
    if isinstance(work.job, TextJob):
        return
    paths = {work.job.manifest.video_path(clip) for clip in work.job.manifest}
    videos = {path for path in paths if path is not None}
    missing = missing_files(videos)
    text = f"{len(videos) - len(missing):,} of {counted(len(videos), 'video')} found"
    if not missing:
        yield Diagnosis("videos", "ok", text)
        return
    level: Level = "fault" if missing == videos else "note"
    yield Diagnosis("videos", level, f"{text}; absent: such as {min(missing)}. Is their file system mounted?")


def _licence(work: Extraction) -> Iterator[Diagnosis]:
    """Note if no licence is given."""
    if work.licence == NO_LICENCE:
        text = f"{NO_LICENCE}: the store cannot be shared so; --licence SPDX states one"
        yield Diagnosis("licence", "note", text)
    else:
        yield Diagnosis("licence", "ok", work.licence)


def _stage(work: Extraction) -> Iterator[Diagnosis]:
    """Compare the extraction with the stage and the sealed store, if they exist."""
    try:
        work.refuse_sealed()
        stage = _opened(work)
    except ObygazeError as error:
        yield Diagnosis("stage", "fault", str(error))
        return
    machine = this_machine()
    elsewhere = shares_elsewhere(work.stage_path, machine)
    if elsewhere:
        yield Diagnosis("shares", "fault", another_cluster(work.stage_path, elsewhere, machine))
    for renamed in work.renamed_stages():
        # A fault, since nobody would see a note and stop a queued array that repeats finished work.
        yield Diagnosis("stage", "fault", f"{renamed}. If it is another store's, submit with CHECK=no")
    if stage is None:
        yield Diagnosis("stage", "ok", f"{work.stage_path} is to be made")
    else:
        yield _resumed(work, stage)


def _resumed(work: Extraction, stage: Stage) -> Diagnosis:
    """Report how many rows of a stage are left; a fault if its store is sealed, which is done only once."""
    left = counted(len(stage.missing()), work.unit)
    if not work.sealed_path.exists():
        return Diagnosis("stage", "ok", f"{work.stage_path} is resumed: {left} left to do")
    text = f"{work.sealed_path} is sealed already ({left} left to do); another needs another --store-version"
    return Diagnosis("stage", "fault", text)


def _opened(work: Extraction) -> Stage | None:
    """Open the stage as a task of the job would; None if there is none yet."""
    if not work.stage_path.exists() or work.outlived():
        return None
    return work.open_stage(trial=True)


def _as_on_the_nodes(work: Extraction) -> Extraction:
    """Return an extraction whose records name the device on which its stage, or its parent store, was made.

    Here networks are built on the processor: without this the stage would seem to have other settings.
    """
    compute_of_group = {group.name: group.provenance.get("compute") for group in _existing_groups(work)}
    if isinstance(work.job, TextJob):
        texts = tuple(_with_machine(backbone, compute_of_group) for backbone in work.job.backbones)
        return replace(work, job=replace(work.job, backbones=texts))
    backbones = tuple(_with_machine(backbone, compute_of_group) for backbone in work.job.backbones)
    return replace(work, job=replace(work.job, backbones=backbones))


def _existing_groups(work: Extraction) -> Sequence[GroupSpec]:
    """Return the groups of the stage, else those of the store that is to grow, else none."""
    if work.stage_path.exists():
        return read_stage(work.stage_path).groups
    if work.append is not None:
        store = open_store(work.append)
        return [spec_of(store[name]) for name in store]
    return ()


AnyBackbone = TypeVar("AnyBackbone", Backbone, TextBackbone)


def _with_machine(backbone: AnyBackbone, compute_of_group: Mapping[str, Any]) -> AnyBackbone:
    """Return a backbone whose record has the device of its group, if both run a network.

    Parameters
    ----------
    compute_of_group
        Name of each group that exists -> the field `compute` of its provenance, or None.
    """
    compute: Mapping[str, Any] = backbone.provenance.get("compute") or {}
    existing: Mapping[str, Any] = compute_of_group.get(backbone.name) or {}
    if not compute or not existing:
        return backbone
    numerics = {name: value for name, value in compute.items() if name not in OF_THE_MACHINE}
    machine = {name: existing[name] for name in OF_THE_MACHINE if name in existing}
    return replace(backbone, provenance={**backbone.provenance, "compute": numerics | machine})


def _room(work: Extraction) -> Iterator[Diagnosis]:
    """Compare the disk space that the stage and the store need with what is free."""
    clips, groups, _ = work.plan()
    folder = existing_folder(work.stage_path)
    room = estimate_disk(clips, groups, links=links_work(folder))
    free = free_space(work.stage_path)
    needed_bytes = max(room.peak_bytes - _bytes_in(work.stage_path), 0)
    text = (
        f"{needed_bytes / 1e9:.3g} GB and {counted(room.files, 'file')} needed, "
        f"{free.bytes / 1e9:.3g} GB free"
    )
    has_bytes = needed_bytes <= free.bytes
    has_files = free.files is None or room.files <= free.files
    if not (has_bytes and has_files):
        yield Diagnosis("room", "fault", f"{text}: choose another place for STORE, or make room")
        return
    refusal = None
    if mount_of(folder).kind not in IN_MEMORY:  # there a reservation would take this process's memory
        refusal = refused_reservation(folder, needed_bytes)
    if refusal is None:
        yield Diagnosis("room", "ok", text)
    elif refusal.errno == errno.EDQUOT:
        yield Diagnosis("room", "fault", f"{text}, and your quota allows less: make room, or have it raised")
    else:
        unclear = f"that much could not be reserved ({refusal.strerror}): a quota may be less"
        yield Diagnosis("room", "note", f"{text}; {unclear}")


def _bytes_in(folder: Path) -> int:
    """Return the size of a stage's files in bytes; 0 if there is no stage."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
