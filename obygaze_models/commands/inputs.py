"""Read manifests and stores, apply label policies and write pages, for the commands of the zoo."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

import obygaze_features as of
import obygaze_models as om
from obygaze_features import manifest as manifests
from obygaze_features.errors import ManifestError
from obygaze_features.options import Answer, Output, completed
from obygaze_features.schema import Name, fits
from obygaze_features.text import as_address, counted, is_address
from obygaze_models.models.names import model_names

if TYPE_CHECKING:
    from obygaze_features.manifest import Manifest
    from obygaze_features.store import Store
    from obygaze_models.report import Report


class Inputs(NamedTuple):
    """A manifest, and the stores that were given with it, in the order of the arguments."""

    manifest: "Manifest"
    stores: "list[Store]"


class Modalities(NamedTuple):
    """A manifest, and the stores of one or several modalities.

    Attributes
    ----------
    manifest : Manifest
        The manifest.
    stores : list of Store
        The store of each modality.
    backbones : list of str or None
        The backbone of each modality; None for the only one of its store.
    names : list of str
        The name of each modality; "" if none is given.
    """

    manifest: "Manifest"
    stores: "list[Store]"
    backbones: list[str | None]
    names: list[str]


class StoreOfModality(NamedTuple):
    """The store of a modality, and its backbone there; None for the only backbone of the store."""

    store: "Store"
    backbone: str | None


class NamedStores(NamedTuple):
    """A manifest, and the store of each modality by the modality's name."""

    manifest: "Manifest"
    stores: dict[str, StoreOfModality]


class StoreArgument(NamedTuple):
    """The parts of an argument `[NAME=]STORE[:BACKBONE]`; `name` may be "", and `backbone` None."""

    name: str
    store: Path
    backbone: str | None


class Labelled(NamedTuple):
    """A manifest under a label policy, and notices on the clips that the policy changed."""

    manifest: "Manifest"
    notices: list[str]


def _list_tasks(ctx: click.Context) -> Iterator[str]:
    """Yield the names of tasks for the completion of a command line, from the codebook of its manifest.

    Without a manifest they are those of the default codebook. If the manifest can't be read, there are none.
    """
    # click stops parsing at the word that it completes. The manifest is then among `ctx.args`, which hold the
    # words that are not parsed yet.
    possible_manifests = [path for path in (ctx.params.get("manifest"), *ctx.args) if path]
    try:
        if possible_manifests:
            codebook = manifests.read_manifest(possible_manifests[0]).codebook
        else:
            codebook = manifests.default_codebook()
    except (OSError, ManifestError):
        return
    yield from (task.name for task in codebook.tasks)
    yield from (f"concept:{concept.name}" for concept in codebook.concepts)
    yield from (f"scale:{scale.name}" for scale in codebook.scales)
    yield "levels"


complete_model = completed(lambda _: model_names())
complete_task = completed(_list_tasks)


def finish(
    report: "Report", output: Output, files: "Mapping[str, Callable[[Path], object]] | None" = None
) -> Answer:
    """Write a report where a command's options say, and return it as the command's answer.

    It is written to the folder of --out and the page of --html, where these are given, and printed.

    Parameters
    ----------
    report
        The report.
    output
        The options --out, --html, --force and --json.
    files
        Name of a further file in the folder -> function that writes it to a path.
    """
    from obygaze_models.report import document as json_document
    from obygaze_models.report import new_folder
    from obygaze_models.report import plain as format_for_terminal

    remarks = []
    if output.out is not None:
        with new_folder(output.out, force=output.force) as folder:
            om.write_report(report, folder)
            for name, write in (files or {}).items():
                write(folder / name)
        remarks.append(f"kept in {output.out}")
    write_page(report, output.html, force=output.force)
    return Answer(json_document(report), format_for_terminal(report).removesuffix("\n"), remarks)


def write_page(
    reports: "Report | Sequence[Report]", path: Path | None, title: str = "", *, force: bool
) -> None:
    """Write reports as one page if a path is given, and print where it is."""
    if path is not None:
        om.write_html(reports, path, title, force=force)
        click.echo(f"page kept in {path}", err=True)


def read_inputs(manifest: Path, stores: Sequence[Path]) -> Inputs:
    """Read a manifest and open stores, the arguments of a command.

    Raises
    ------
    UsageError
        The arguments are in the wrong order: the first is a store, or one of the others a manifest.
    """
    from obygaze_features.store.store import names_store

    if is_address(manifest):
        raise click.UsageError(
            f"the order is MANIFEST STORE: {as_address(manifest)} is no manifest, which must be a file on "
            "this machine"
        )
    if names_store(manifest):
        raise click.UsageError(f"the order is MANIFEST STORE: {manifest} is no manifest")
    for store in stores:
        if store.is_file() and store.suffix.lower() == ".csv":
            raise click.UsageError(f"the order is MANIFEST STORE: {store} is no store")
    return Inputs(manifests.read_manifest(manifest), [of.open_store(store) for store in stores])


def read_modalities(
    manifest: Path, arguments: Sequence[Path], fuse: str | None, not_with_fuse: Mapping[str, object]
) -> Modalities:
    """Read a manifest and one store, or several modalities, each written as `[NAME=]STORE[:BACKBONE]`.

    Parameters
    ----------
    manifest
        File of the manifest.
    arguments
        The texts of the stores.
    fuse
        Value of the option --fuse, which says how modalities are combined; None if it is not given.
    not_with_fuse
        Options that cannot be combined with --fuse -> their values.

    Raises
    ------
    UsageError
        There are several stores without --fuse, or one store with it, or an option of `not_with_fuse` is
        used.
    """
    parts = [parse_store_argument(argument) for argument in arguments]
    if fuse and len(parts) == 1:
        raise click.UsageError("--fuse: give two STORE:BACKBONE")
    if not fuse and len(parts) > 1:
        raise click.UsageError("several stores: say how, as in --fuse late")
    used_options = [option for option, value in not_with_fuse.items() if value]
    if fuse and used_options:
        raise click.UsageError(f"{', '.join(used_options)}: not with --fuse {fuse}")
    inputs = read_inputs(manifest, [part.store for part in parts])
    return Modalities(
        manifest=inputs.manifest,
        stores=inputs.stores,
        backbones=[part.backbone for part in parts],
        names=[part.name for part in parts],
    )


def read_named(manifest: Path, arguments: Sequence[str]) -> NamedStores:
    """Read a manifest, and stores written as `MODALITY=STORE[:BACKBONE]`.

    Raises
    ------
    UsageError
        A store has another form, or two have the same modality.
    """
    parts = [parse_store_argument(Path(argument)) for argument in arguments]
    names = [part.name for part in parts]
    have_own_names = all(names) and len(set(names)) == len(names)
    if not have_own_names:
        raise click.UsageError("give each store a modality of its own, as in visual=stores/films:xclip")
    inputs = read_inputs(manifest, [part.store for part in parts])
    store_of_modality = {}
    for part, store in zip(parts, inputs.stores, strict=True):
        store_of_modality[part.name] = StoreOfModality(store, part.backbone)
    return NamedStores(inputs.manifest, store_of_modality)


def parse_store_argument(argument: Path) -> StoreArgument:
    """Split an argument `[NAME=]STORE[:BACKBONE]` into its parts.

    As paths may contain "=" and ":" too, an argument that is the path of an existing store is not split:

    - ``visual=stores/films:xclip``: "visual", stores/films, "xclip"
    - ``stores/films``: no name, stores/films, no backbone
    - ``stores/a=b`` or ``stores/a:b``, if this exists: no name, the whole text, no backbone
    - ``C:store`` and ``http://host:8000``: no name, the whole text, no backbone
    """
    name, _, location = str(argument).partition("=")
    has_name = bool(location) and fits(name, Name) and not argument.exists()
    if has_name:
        return _split_backbone(location, name)
    return _split_backbone(str(argument), name="")


def _split_backbone(location: str, name: str) -> StoreArgument:
    """Split `STORE[:BACKBONE]` at the last colon, unless the colon is a part of a path or URL.

    `name` is that of the modality, which stood before; "" if there was none.
    """
    store, _, backbone = location.rpartition(":")
    is_after_drive_letter = len(store) == 1  # C:store
    is_before_port = re.fullmatch(r"\w+:/+[^/]*", store)  # http://host:8000
    is_in_existing_path = Path(location).exists()
    is_separator = not (is_after_drive_letter or is_before_port or is_in_existing_path)
    if store and is_separator and fits(backbone, Name):
        return StoreArgument(name, Path(store), backbone)
    return StoreArgument(name, Path(location), backbone=None)


def under_policy(manifest: "Manifest", policy: str) -> Labelled:
    """Apply a label policy to a manifest, and write a notice on how many clips it changed.

    The policy "raw" changes none. If the codebook has the policy "paper", which sets the level of clips
    without a visual concept to EN, the notice of "raw" says how many clips that policy would change.
    """
    labelled = manifests.apply_policy(manifest, manifests.LabelPolicy(policy))
    if policy == "raw":
        return Labelled(labelled, _notices_on_paper_policy(manifest))
    n_changed = _count_changed_levels(manifest, labelled)
    n_left_out = len(manifest) - len(labelled)
    notice = f"label policy {policy}: {counted(n_changed, 'clip')} changed level, {n_left_out} left out"
    return Labelled(labelled, [notice])


def _notices_on_paper_policy(manifest: "Manifest") -> list[str]:
    """Write how many clips the label policy "paper" would change, if the codebook has it and there are any.

    That policy makes EN (easy negative) of clips without a visual concept, as published numbers do. Who
    compares with these must know that labels were not changed.
    """
    if "paper" not in manifest.codebook.policies:
        return []
    under_paper = manifests.apply_policy(manifest, manifests.LabelPolicy.PAPER)
    n_changed = _count_changed_levels(manifest, under_paper)
    if not n_changed:
        return []
    notice = (
        "label policy raw: levels as annotated; --policy paper, which published numbers use, would make EN "
        f"of {counted(n_changed, 'clip')} without a visual concept"
    )
    return [notice]


def _count_changed_levels(before: "Manifest", after: "Manifest") -> int:
    """Count the clips whose level differs between two manifests of the same clips."""
    level_before = {clip.clip_id: clip.level for clip in before}
    return sum(clip.level != level_before[clip.clip_id] for clip in after)
