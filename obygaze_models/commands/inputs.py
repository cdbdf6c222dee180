"""Read manifests and stores, apply label policies, write pages: what the commands of the zoo share."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

import obygaze_features as of
import obygaze_models as om
from obygaze_features import manifest as manifests
from obygaze_features.errors import ManifestError
from obygaze_features.options import Answer, Output, completed
from obygaze_features.schema import Name, fits
from obygaze_models.models.names import model_names

if TYPE_CHECKING:
    from obygaze_features.manifest import Manifest
    from obygaze_features.store import Store
    from obygaze_models.report import Report


class Inputs(NamedTuple):
    """A manifest and the stores beside it."""

    clips: "Manifest"
    stores: "list[Store]"


class Modalities(NamedTuple):
    """A manifest, and what is read of each store beside it.

    Attributes
    ----------
    clips : Manifest
    stores : list of Store
    backbones : list of str or None
        One for each store; None where the store has only one.
    names : list of str
        Of the modalities; "" where none is given.
    """

    clips: "Manifest"
    stores: "list[Store]"
    backbones: list[str | None]
    names: list[str]


class NamedStores(NamedTuple):
    """A manifest, and stores with their backbones by modality."""

    clips: "Manifest"
    stores: "dict[str, tuple[Store, str | None]]"


class Place(NamedTuple):
    """What is written as `[NAME=]STORE[:BACKBONE]`; without a name it is "", without a backbone None."""

    name: str
    store: Path
    backbone: str | None


class Labelled(NamedTuple):
    """A manifest under a label policy, and what is to be said of it."""

    clips: "Manifest"
    notices: list[str]


def _tasks(ctx: click.Context) -> Iterator[str]:
    """List the tasks of the codebook of the manifest on the line, if it can be read; none otherwise."""
    # click stops at what it completes
    words = [path for path in (ctx.params.get("manifest"), *ctx.args) if path]
    with suppress(OSError, ManifestError):
        codebook = manifests.read_manifest(words[0]).codebook if words else manifests.default_codebook()
        yield from (task.name for task in codebook.tasks)
        yield from (f"concept:{concept.name}" for concept in codebook.concepts)
        yield from (f"scale:{scale.name}" for scale in codebook.scales)
        yield "levels"


complete_model = completed(lambda _: model_names())
complete_task = completed(_tasks)


def finish(
    report: "Report", output: Output, files: "Mapping[str, Callable[[Path], object]] | None" = None
) -> Answer:
    """Write a report into a new folder and as a page, if asked for; answer it, and where it is.

    `files` are what writes further ones, by name.
    """
    from obygaze_models.report import document, new_folder, plain

    remarks = []
    if output.out is not None:
        with new_folder(output.out, force=output.force) as folder:
            om.write_report(report, folder)
            for name, write in (files or {}).items():
                write(folder / name)
        remarks.append(f"kept in {output.out}")
    write_page(report, output.html, force=output.force)
    return Answer(document(report), plain(report).removesuffix("\n"), remarks)


def write_page(
    reports: "Report | Sequence[Report]", path: Path | None, title: str = "", *, force: bool
) -> None:
    """Write reports as one page, if a path was given, and say so."""
    if path is not None:
        om.write_html(reports, path, title, force=force)
        click.echo(f"page kept in {path}", err=True)


def read_inputs(manifest: Path, stores: Sequence[Path]) -> Inputs:
    """Read a manifest and open stores; report swapped arguments.

    Raises
    ------
    UsageError
        The first is a store, or one of the others a manifest.
    """
    if manifest.is_dir() or manifest.suffix == ".zip" or "://" in str(manifest):
        raise click.UsageError(f"the order is MANIFEST STORE: {manifest} is no manifest")
    for store in stores:
        if store.is_file() and store.suffix == ".csv":
            raise click.UsageError(f"the order is MANIFEST STORE: {store} is no store")
    return Inputs(manifests.read_manifest(manifest), [of.open_store(store) for store in stores])


def read_modalities(
    manifest: Path, places: Sequence[Path], fuse: str | None, for_one_store: Mapping[str, object]
) -> Modalities:
    """Read a manifest and one store, or several modalities, each written as `[NAME=]STORE[:BACKBONE]`.

    Parameters
    ----------
    for_one_store
        Option -> its value, of those that are for one store alone.

    Raises
    ------
    UsageError
        Several stores and no way to fuse them, or the other way round; or an option of `for_one_store`.
    """
    parts = [parted(place) for place in places]
    if fuse and len(parts) == 1:
        raise click.UsageError("--fuse: give two STORE:BACKBONE")
    if not fuse and len(parts) > 1:
        raise click.UsageError("several stores: say how, as in --fuse late")
    unfit = [option for option, value in for_one_store.items() if value]
    if fuse and unfit:
        raise click.UsageError(f"{', '.join(unfit)}: not with --fuse {fuse}")
    clips, stores = read_inputs(manifest, [part.store for part in parts])
    return Modalities(clips, stores, [part.backbone for part in parts], [part.name for part in parts])


def read_named(manifest: Path, places: Sequence[str]) -> NamedStores:
    """Read a manifest, and stores written as `MODALITY=STORE[:BACKBONE]`.

    Raises
    ------
    UsageError
        One is written otherwise, or a modality is there twice.
    """
    parts = [parted(Path(place)) for place in places]
    names = [part.name for part in parts]
    if not all(names) or len(set(names)) < len(names):
        raise click.UsageError("give each store a modality of its own, as in visual=stores/films:xclip")
    clips, stores = read_inputs(manifest, [part.store for part in parts])
    by_name = {}
    for part, store in zip(parts, stores, strict=True):
        by_name[part.name] = (store, part.backbone)
    return NamedStores(clips, by_name)


def parted(place: Path) -> Place:
    """Split `[NAME=]STORE[:BACKBONE]`; a place that is there is a store, as is what follows no name."""
    name, _, rest = str(place).partition("=")
    if not (rest and fits(name, Name)) or place.exists():
        name, rest = "", str(place)
    before, _, backbone = rest.rpartition(":")
    # Of C:store and http://host:8000 what follows the colon is part of the place.
    is_backbone = len(before) > 1 and not re.fullmatch(r"\w+:/+[^/]*", before)
    if is_backbone and fits(backbone, Name) and not Path(rest).exists():
        return Place(name, Path(before), backbone)
    return Place(name, Path(rest), None)


def under_policy(clips: "Manifest", policy: str) -> Labelled:
    """Read labels under a policy; report how many it changed (under raw: how many the paper's would)."""
    labelled = manifests.apply_policy(clips, manifests.LabelPolicy(policy))
    if policy != "raw":
        n_changed = _changed(clips, labelled)
        n_left_out = len(clips) - len(labelled)
        notice = f"label policy {policy}: {n_changed} clips changed level, {n_left_out} left out"
        return Labelled(labelled, [notice])
    if "paper" not in clips.codebook.policies:
        return Labelled(labelled, [])
    n_changed = _changed(clips, manifests.apply_policy(clips, manifests.LabelPolicy.PAPER))
    if not n_changed:
        return Labelled(labelled, [])
    notice = (
        "label policy raw: levels as annotated; --policy paper, which published numbers use, would make EN "
        f"of {n_changed} clips without a visual concept"
    )
    return Labelled(labelled, [notice])


def _changed(before: "Manifest", after: "Manifest") -> int:
    """Count the clips of which two manifests have other levels."""
    level = {clip.clip_id: clip.level for clip in before}
    return sum(clip.level != level[clip.clip_id] for clip in after)
