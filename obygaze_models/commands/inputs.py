"""Read manifests and stores, apply label policies, write pages: what the commands of the zoo share."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

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

    if output.out is not None:
        with new_folder(output.out, force=output.force) as folder:
            om.write_report(report, folder)
            for name, write in (files or {}).items():
                write(folder / name)
    write_page(report, output.html, force=output.force)
    text = plain(report).removesuffix("\n")
    return Answer(document(report), text, [f"kept in {output.out}"] * bool(output.out))


def write_page(
    reports: "Report | Sequence[Report]", path: Path | None, title: str = "", *, force: bool
) -> None:
    """Write reports as one page, if a path was given, and say so."""
    if path is not None:
        om.write_html(reports, path, title, force=force)
        click.echo(f"page kept in {path}", err=True)


def read_inputs(manifest: Path, stores: Sequence[Path]) -> "tuple[Manifest, list[Store]]":
    """Read a manifest and open stores; report swapped arguments.

    Raises
    ------
    UsageError
        The first is a store, or one of the others a manifest.
    """
    if manifest.is_dir() or manifest.suffix == ".zip" or "://" in str(manifest):
        raise click.UsageError(f"the order is MANIFEST STORE: {manifest} is no manifest")
    wrong = next((store for store in stores if store.is_file() and store.suffix == ".csv"), None)
    if wrong is not None:
        raise click.UsageError(f"the order is MANIFEST STORE: {wrong} is no store")
    return manifests.read_manifest(manifest), [of.open_store(store) for store in stores]


def read_modalities(
    manifest: Path, places: Sequence[Path], fuse: str | None, alone: Mapping[str, object]
) -> "tuple[Manifest, Store | list[Store], str | list[str | None] | None, list[str]]":
    """Read a manifest and one store, or several modalities: stores, what follows their colons, and names.

    A modality is written `[NAME=]STORE[:BACKBONE]`; the name is "" where there is none.

    Parameters
    ----------
    alone
        Option -> its value, of those that are for one store alone.

    Raises
    ------
    UsageError
        Several stores and no way to fuse them, or the other way round; or an option of `alone`.
    """
    parts = [parted(place) for place in places]
    if (len(parts) > 1) != (fuse is not None):
        told = "--fuse: give two STORE:BACKBONE" if fuse else "several stores: say how, as in --fuse late"
        raise click.UsageError(told)
    if fuse and (given := [option for option, value in alone.items() if value]):
        raise click.UsageError(f"{', '.join(given)}: not with --fuse {fuse}")
    clips, stores = read_inputs(manifest, [path for _, path, _ in parts])
    names = [backbone for _, _, backbone in parts]
    if fuse is None:
        return clips, stores[0], names[0], []
    return clips, stores, names, [name for name, _, _ in parts]


def read_named(
    manifest: Path, places: Sequence[str]
) -> "tuple[Manifest, dict[str, tuple[Store, str | None]]]":
    """Read a manifest, and stores written as `MODALITY=STORE[:BACKBONE]`.

    Raises
    ------
    UsageError
        One is written otherwise, or a modality is there twice.
    """
    parts = [parted(Path(place)) for place in places]
    names = [name for name, _, _ in parts]
    if not all(names) or len(set(names)) < len(names):
        raise click.UsageError("give each store a modality of its own, as in visual=stores/films:xclip")
    clips, stores = read_inputs(manifest, [path for _, path, _ in parts])
    return clips, {name: (store, backbone) for (name, _, backbone), store in zip(parts, stores, strict=True)}


def parted(place: Path) -> tuple[str, Path, str | None]:
    """Split `[NAME=]STORE[:BACKBONE]`; a place that is there is a store, as is what follows no name."""
    name, _, rest = str(place).partition("=")
    if not (rest and fits(name, Name)) or place.exists():
        name, rest = "", str(place)
    before, _, backbone = rest.rpartition(":")
    # Of C:store and http://host:8000 what follows the colon is part of the place.
    named = len(before) > 1 and not re.fullmatch(r"\w+:/+[^/]*", before)
    if named and fits(backbone, Name) and not Path(rest).exists():
        return name, Path(before), backbone
    return name, Path(rest), None


def under_policy(clips: "Manifest", policy: str) -> "tuple[Manifest, list[str]]":
    """Read labels under a policy; report how many it changed (under raw: how many the paper's would)."""
    labelled = manifests.apply_policy(clips, manifests.LabelPolicy(policy))
    if policy != "raw":
        changed = _changed(clips, labelled)
        left_out = len(clips) - len(labelled)
        return labelled, [f"label policy {policy}: {changed} clips changed level, {left_out} left out"]
    notices = []
    if "paper" in clips.codebook.policies:
        changed = _changed(clips, manifests.apply_policy(clips, manifests.LabelPolicy.PAPER))
        told = (
            "label policy raw: levels as annotated; --policy paper, which published numbers use, would make"
        )
        notices = [f"{told} EN of {changed} clips without a visual concept"] if changed else []
    return labelled, notices


def _changed(before: "Manifest", after: "Manifest") -> int:
    level = {clip.clip_id: clip.level for clip in before}
    return sum(clip.level != level[clip.clip_id] for clip in after)
