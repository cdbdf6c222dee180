"""`obygaze store ls | inspect | seal | verify | rm`: list, show, seal, verify, remove stores and stages."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import click

import obygaze_features as of
from obygaze_features import store as stores
from obygaze_features.commands.store_output import sealed_result
from obygaze_features.errors import StoreError
from obygaze_features.options import LOCAL, PROBLEMS_FOUND, Answer
from obygaze_features.screen import progress_bar, table
from obygaze_features.signatures import Json, StoresFolder, Yes, argument, command, option
from obygaze_features.store.files_zip import is_zip_name
from obygaze_features.store.format import BAGIT, FEATURES, PLAN, STAGING_SUFFIX
from obygaze_features.text import counted, visible

if TYPE_CHECKING:
    from obygaze_features.store.records import MayBeAbsent


class Removable(NamedTuple):
    """A folder that may be removed, and its kind: "stage", "sealed store" or "stage, sealed"."""

    path: Path
    kind: str


@command()
def rm(
    places: Annotated[tuple[Path, ...], argument(type=LOCAL, metavar="STORE|STAGE|FOLDER...")] = (),
    *,
    sealed_stages: Annotated[
        bool,
        option(
            "Remove only the stages in FOLDER whose clips are all in a sealed store.  [default "
            "FOLDER: $OBYGAZE_STORES, else stores]"
        ),
    ] = False,
    yes: Yes = False,
) -> Answer:
    """Remove sealed stores and stages (NAME.staging), after asking for confirmation.

    Other folders, links, and stages that a process writes to are refused. Nothing outside the named folders
    is removed.

    With --sealed-stages, remove each stage NAME.staging in FOLDER if a store NAME-VERSION beside it has
    every clip of the stage, with the same features or the same failure. Other stages stay, and the reason
    is printed for each.

    \b
    Examples:
      obygaze store rm stores/films.staging
      obygaze store rm stores/films-1.0.0 stores/films.staging --yes
      obygaze store rm --sealed-stages
      obygaze store rm --sealed-stages /data/features --yes
    """
    if sealed_stages:
        folders = places or (Path(os.environ.get("OBYGAZE_STORES") or "stores"),)
        return _remove_sealed_stages(folders, yes=yes)
    if not places:
        raise click.UsageError("Missing argument 'STORE|STAGE...'.")
    removable = [Removable(path, _kind_of_removable(path)) for path in dict.fromkeys(places)]
    removed = _remove(removable, yes=yes)
    return Answer({"removed": removed}, "\n".join(f"removed {path}" for path in removed))


def _remove_sealed_stages(folders: Sequence[Path], *, yes: bool) -> Answer:
    """Remove the stages in folders whose clips are all sealed; print the reasons why others stay.

    Parameters
    ----------
    folders
        Folders that hold stores and stages.
    yes
        Whether to remove without asking for confirmation.
    """
    from obygaze_features.store.growth import why_needed

    removable: list[Removable] = []
    why_kept: dict[str, str] = {}  # path of a stage -> why it stays
    for path in _find_stages(folders):
        try:
            _kind_of_removable(path)  # raises if it may not be removed
            reason = why_needed(path)
        except (StoreError, OSError) as error:
            reason = str(error)
        if reason:
            click.echo(f"kept {path}: {reason}", err=True)
            why_kept[str(path)] = reason
        else:
            removable.append(Removable(path, "stage, sealed"))

    removed = _remove(removable, yes=yes) if removable else []
    lines = [f"removed {path}" for path in removed]
    if not lines:
        names = ", ".join(str(folder) for folder in folders)
        lines = [f"nothing to remove in {names}"]
    return Answer({"removed": removed, "kept": why_kept}, "\n".join(lines))


def _find_stages(folders: Sequence[Path]) -> list[Path]:
    """Return the stages that are directly in some folders."""
    paths: list[Path] = []
    for folder in folders:
        paths += _paths_in(folder, "rm --sealed-stages")
    return [path for path in paths if path.name.endswith(STAGING_SUFFIX) and (path / PLAN).is_file()]


def _kind_of_removable(path: Path) -> str:
    """Return what a folder to remove is: "stage", which has a plan, or "sealed store", which is a BagIt bag.

    Raises
    ------
    StoreError
        It is neither, or only a link to one, or processes write to it now.
    """
    if path.is_symlink():
        raise StoreError(f"{path}: is a link; remove what it points to, by its own name")
    if not os.path.lexists(path):
        raise StoreError(f"{path}: nothing there")

    is_stage = (path / PLAN).is_file()
    if is_stage:
        n_writers = stores.read_stage(path).n_writers()
        if n_writers:
            raise StoreError(f"{path}: {n_writers} process(es) write to it now; wait, or stop them")
        return "stage"

    is_sealed_store = (path / BAGIT).is_file() and (path / FEATURES).is_dir()
    if is_sealed_store:
        return "sealed store"
    raise StoreError(f"{path}: neither a sealed store nor a stage, so it is not removed")


def _remove(removable: Sequence[Removable], *, yes: bool) -> list[str]:
    """Print a table of folders with their sizes, ask for confirmation, and remove them.

    Parameters
    ----------
    removable
        The folders: stores or stages.
    yes
        Whether to remove them without asking. Where nobody can be asked, it must be true.

    Returns
    -------
    list of str
        The paths of the removed folders.
    """
    from obygaze_features.store.growth import discard

    rows = [(str(path), kind, f"{_bytes_below(path) / 1e6:.1f} MB") for path, kind in removable]
    click.echo(table(rows, ("to remove", "what", "size")), err=True)

    if not yes:
        can_ask = sys.stdin.isatty()
        if not can_ask:
            raise click.UsageError("nothing was removed: give --yes")
        click.confirm("Remove for good?", abort=True, err=True)

    for path, _ in removable:
        discard(path)
    return [str(path) for path, _ in removable]


def _bytes_below(folder: Path) -> int:
    """Return the total bytes of the files in a folder and below it; links are not followed."""
    size = 0
    for path, _, names in os.walk(folder):
        size += sum(Path(path, name).lstat().st_size for name in names)
    return size


LONGEST_LIST = 8
"""Length up to which a list of values is printed whole."""

UNREAD = "-"
"""What stands in the columns of a store that cannot be read."""


class ListedStore(NamedTuple):
    """The row of a store or a stage in the list.

    If it cannot be read, all fields but the name are `UNREAD`, and `features` holds the reason.
    """

    name: str
    format: str
    clips: int | str
    ok: int | str
    partial: int | str
    failed: int | str
    missing: int | str
    features: str


@command()
def ls(
    folder: StoresFolder = Path("stores"),
    *,
    json: Json = False,
) -> Answer:
    """List the stores, packed stores (.zip) and stages (NAME.staging) in FOLDER.

    A stage is the folder in which an extraction collects its clips until they are sealed as a store. The
    default of FOLDER is $OBYGAZE_STORES, else stores.

    \b
    Examples:
      obygaze store ls
      obygaze store ls /data/features
    """
    listed = list(_list_stores(folder))
    if json:
        return Answer([store._asdict() for store in listed])
    if not listed:
        return Answer(document=None, remarks=[f"no stores in {folder}"])
    rows = []
    reasons = []
    for store in listed:
        is_unread = store.format == UNREAD
        if is_unread:
            # Its last field holds the reason, which is too long for a table and is printed below it.
            reason = store.features
            reasons.append(reason)
            rows.append(store._replace(features="not readable"))
        else:
            rows.append(store)
    return Answer(document=None, text=table(rows, ListedStore._fields), remarks=reasons)


def _paths_in(folder: Path, command: str) -> list[Path]:
    """Return the sorted paths in a folder; refuse a folder that does not exist.

    `command` is the part of the command after `obygaze store`, for the message.
    """
    if not folder.is_dir():
        raise StoreError(
            f"{folder}: no such folder; name the one that holds stores: obygaze store {command} FOLDER"
        )
    return sorted(folder.iterdir())


def _list_stores(folder: Path) -> Iterator[ListedStore]:
    """Yield a row for each store and stage in a folder; one that cannot be read has the reason in its row."""
    for path in _paths_in(folder, "ls"):
        try:
            if (path / PLAN).is_file():
                yield _describe_stage(path)
            elif _may_be_sealed(path):
                yield _describe_store(path)
        except (StoreError, OSError) as error:
            yield _unread(path, reason=str(error))


def _unread(path: Path, reason: str) -> ListedStore:
    """Return the row in the list for a store that cannot be read: "-" in all columns, and the reason."""
    return ListedStore(
        path.name,
        format=UNREAD,
        clips=UNREAD,
        ok=UNREAD,
        partial=UNREAD,
        failed=UNREAD,
        missing=UNREAD,
        features=reason,
    )


def _describe_stage(path: Path) -> ListedStore:
    """Return the row of a stage in the list: counts of its clips by status, and its backbones."""
    stage = stores.read_stage(path)
    entries = stage.status().values()
    counts = Counter(entry.status for entry in entries)
    n_missing = len(stage.clips) - counts.total()
    return ListedStore(
        path.name,
        "staging",
        len(stage.clips),
        counts["ok"],
        counts["partial"],
        counts["failed"],
        n_missing,
        _listed_groups([group.name for group in stage.groups], entries),
    )


def _describe_store(path: Path) -> ListedStore:
    """Return the row of a sealed store in the list: counts of its clips by status, and its backbones.

    Of a partial copy it says how many files were not pulled.
    """
    store = of.open_store(path)
    counts = Counter(clip.status for clip in store.clips)
    features = _listed_groups(store.names, store.clips)
    n_not_pulled = _count_files_not_pulled(store)
    if n_not_pulled:
        features = f"{features}; {counted(n_not_pulled, 'file')} not pulled"
    return ListedStore(
        path.name,
        str(store.attributes["spec_version"]),
        len(store.clips),
        counts["ok"],
        counts["partial"],
        counts["failed"],
        counts["missing"],
        features,
    )


def _count_files_not_pulled(store: "of.Store") -> int:
    """Count the files that a partial copy leaves out; 0 if its list of them is damaged, as `verify` says."""
    from obygaze_features.store.store_files import absent_files

    try:
        return len(absent_files(store.files))
    except StoreError:
        return 0


def _listed_groups(names: Sequence[str], clips: "Iterable[MayBeAbsent]") -> str:
    """Return the names of groups, each with the number of clips that are absent in it, if there are any."""
    from obygaze_features.store.records import absent_counts

    n_absent = absent_counts(clips)  # group -> clips of which only other groups have features
    groups = []
    for name in names:
        suffix = f" ({n_absent[name]} absent)" if name in n_absent else ""
        groups.append(f"{name}{suffix}")
    return ", ".join(groups)


def _may_be_sealed(path: Path) -> bool:
    """Return whether a path looks like a sealed store: a zip, or a folder (`is_store_folder`)."""
    from obygaze_features.store.store import is_store_folder

    is_zip = is_zip_name(path.name) and path.is_file()
    return is_zip or is_store_folder(path)


@command()
def inspect(
    store: Annotated[Path, argument()],
) -> Answer:
    """Show what a store contains and how its features were made (provenance).

    If STORE has no version in its name, show the highest version.

    \b
    Examples:
      obygaze store inspect stores/films          # the highest version of it
      obygaze store inspect stores/films-1.0.0 --json
    """
    record = _store_record(of.open_store(store))
    return Answer(record, _format_tables(record))


def _format_tables(record: dict[str, Any]) -> str:
    """Format the description of a store as text: a table of facts, then two tables for each group.

    Parameters
    ----------
    record
        The description, as `_store_record` returns it.
    """
    facts = {name: value for name, value in record.items() if name != "groups"}
    tables = [table(_flatten(facts))]
    for name, group in record["groups"].items():
        rows = []
        for array, description in group["arrays"].items():
            shape = " x ".join(str(length) for length in description["shape"])
            rows.append((array, description["dtype"], shape))
        tables += [
            f"\n{name}",
            table(rows, ("array", "dtype", "shape")),
            table(_flatten(group["provenance"])),
        ]
    return "\n".join(tables)


def _store_record(store: "of.Store") -> dict[str, Any]:
    """Return the version, attributes, clip counts and groups of a store as JSON values."""
    from obygaze_features.store.records import absent_counts

    counts = Counter(clip.status for clip in store.clips)
    is_of_clips = all(clip.text is None for clip in store.clips)  # else the rows are texts
    record = {
        "name": store.name,
        "version": store.version,
        "fingerprint": store.fingerprint,
        **store.attributes,
        "rows": "clips" if is_of_clips else "texts",
        "clips": {status: counts[status] for status in stores.STATUSES},
    }

    n_absent = absent_counts(store.clips)  # group -> clips of which only other groups have features
    if n_absent:
        record["absent"] = n_absent
    n_not_pulled = _count_files_not_pulled(store)
    if n_not_pulled:
        record["files_not_pulled"] = n_not_pulled
    record["groups"] = {name: _group_record(store[name]) for name in store}
    return record


def _group_record(group: "stores.Group") -> dict[str, Any]:
    """Describe the arrays and the provenance of a group of features as JSON values."""
    from obygaze_features.store.format import TIME_ARRAYS

    arrays: dict[str, dict[str, Any]] = {}
    for array in (*group.arrays, *TIME_ARRAYS):
        arrays[array] = {"dtype": group.dtype(array).name, "shape": list(group.shape(array))}
    if group.text is not None:
        arrays["text"] = {"dtype": "string", "shape": [len(group)]}
    return {"arrays": arrays, "provenance": group.provenance}


def _flatten(record: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Flatten a nested record into rows of a table: dotted name, such as "corpus.name", and formatted value.

    Parameters
    ----------
    record
        The record.
    prefix
        Prefix of all names: the name of the outer record with a dot.
    """
    pairs = []
    for name, value in record.items():
        if isinstance(value, dict) and value:
            pairs += _flatten(value, f"{prefix}{name}.")
        else:
            pairs.append((prefix + name, _format_value(value)))
    return pairs


def _format_value(value: object) -> str:
    """Format a value on one line; a long list is shortened to its ends, as --json has the full value."""

    def text_of(item: object) -> str:
        """Return a text as it is, and anything else as JSON."""
        return item if isinstance(item, str) else json.dumps(item)

    if isinstance(value, list) and len(value) > LONGEST_LIST:
        ends = f"{text_of(value[0])}, {text_of(value[1])}, ... {text_of(value[-1])}"
        return visible(f"{len(value)} values: {ends}", line_breaks=False)
    if isinstance(value, str):
        return visible(value, line_breaks=False)
    return visible(json.dumps(value, ensure_ascii=False), line_breaks=False)


@command()
def seal(
    name: Annotated[Path, argument(type=LOCAL)],
    *,
    licence: Annotated[
        str,
        option(
            "Licence of the features: an SPDX expression such as CC-BY-4.0, or NOASSERTION.",
            envvar="OBYGAZE_LICENCE",
        ),
    ],
    citation: Annotated[str, option("How to cite the store, in one line.")] = "",
    version: Annotated[str, option("Version of the store's content.", name="store-version")] = "1.0.0",
    allow_missing: Annotated[bool, option("Seal even if some clips have not been extracted yet.")] = False,
    workers: Annotated[
        int | None,
        option(
            "Number of files to write at a time.  [default: usable cores]",
            type=click.IntRange(1),
            envvar="OBYGAZE_WORKERS",
        ),
    ] = None,
    max_failed: Annotated[
        int | None,
        option("Seal nothing if more than N clips have failed.", type=click.IntRange(0), metavar="N"),
    ] = None,
) -> Answer:
    """Turn the stage NAME.staging into the store NAME-VERSION, which never changes again.

    A stage is the folder in which `obygaze extract` collects its clips. Use this command after `obygaze
    extract --shard`, which does not seal the stage itself. Tokens are hard-linked from the stage, so that
    they take space on the disk only once. The stage stays until `obygaze store rm`. If sealing is killed,
    the same command begins it again. To add clips to a sealed store, use `obygaze extract --append`.

    The version shows what changed: 1.1.0 after 1.0.0 only adds clips; 2.0.0 may change rows.

    \b
    Examples:
      obygaze store seal stores/films --licence CC-BY-4.0
      obygaze store seal stores/films --licence NOASSERTION \\
          --store-version 1.1.0 --allow-missing
    """
    usual_stage = None  # NAME.staging
    with progress_bar("seal", "row") as progress:
        path = stores.seal(
            usual_stage,
            name,
            licence=licence,
            citation=citation,
            version=version,
            allow_missing=allow_missing,
            workers=workers,
            max_failed=max_failed,
            progress=progress,
        )
    parent = stores.read_stage(stores.staging_path(name)).parent_store  # the store that has grown
    return sealed_result(path, older=None if parent is None else parent.path)


@command()
def verify(
    store: Annotated[Path, argument()],
    *,
    quick: Annotated[bool, option("Check only sizes and counts of files; takes milliseconds.")] = False,
    full: Annotated[bool, option("Also check every row: schema, ids, statuses, finite values.")] = False,
) -> Answer:
    """Check every file of a store against its digest (SHA-256); exit with 3 if a check fails.

    \b
    Examples:
      obygaze store verify stores/films-1.0.0
      obygaze store verify stores/films --full --json
    """
    if quick and full:
        raise click.UsageError("--quick or --full, not both")
    depth: Literal["quick", "digests", "full"] = "digests"
    if quick:
        depth = "quick"
    elif full:
        depth = "full"
    report = of.verify(store, depth, progress=True)

    n_problems = len(report.problems)
    if report.ok:
        verdict = "nothing wrong"
    elif n_problems == 1:
        verdict = "1 problem"
    else:
        verdict = f"{n_problems} problems"
    counts = ", ".join(f"{count} {name}" for name, count in report.counts.items())
    lines = [visible(f"{problem.file}: {problem.what}", line_breaks=False) for problem in report.problems]
    lines.append(f"{report.where} ({report.depth}): {verdict}; {counts}; fingerprint {report.fingerprint}")
    if not report.ok:
        lines.append(
            "if it was published, 'obygaze store pull URL STORE' replaces the damaged files alone; if its "
            "stage is still there, 'obygaze store seal' with another --store-version makes it anew"
        )
    return Answer(report.record(), "\n".join(lines), code=0 if report.ok else PROBLEMS_FOUND)
