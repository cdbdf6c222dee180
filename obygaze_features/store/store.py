"""Find and open a sealed store: a mapping of backbone names to their features."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import StoreError
from obygaze_features.io import local_path
from obygaze_features.schema import Name, expected, fits
from obygaze_features.store.clip_table import ClipTable, clip_table
from obygaze_features.store.files_as_opened import FilesAsOpened, FolderAsOpened, refuse_another_store
from obygaze_features.store.files_remote import as_url, open_url
from obygaze_features.store.files_zip import is_zip_name, open_zip
from obygaze_features.store.format import (
    ATTRIBUTE,
    BAG_INFO,
    BUILDING_SUFFIX,
    DIGESTS,
    FEATURES,
    PLAN,
    PROVENANCE,
    PULLING_SUFFIX,
    SPEC_VERSION,
    STAGING_SUFFIX,
    TABLE,
    ZARR_METADATA,
    is_newer,
)
from obygaze_features.store.group import Group
from obygaze_features.store.labelled import html_table, imported_xarray
from obygaze_features.store.records import StoredClip, each_clip, parse_clips_csv
from obygaze_features.store.store_files import (
    FolderFiles,
    StoreFiles,
    parse_info,
    read_required,
    read_undamaged,
    refuse_other_kind,
    required_file,
)
from obygaze_features.text import counted, is_address

if TYPE_CHECKING:
    import xarray as xr
    import zarr

VERSIONED = re.compile(r"-(\d+)\.(\d+)\.(\d+)$")
"""The version at the end of the name of a sealed store's folder."""


def locate(store: Path | str) -> StoreFiles:
    """Find a sealed store, and return its files.

    Parameters
    ----------
    store
        Path of its folder or zip, with or without the version, or its URL.
    """
    url = as_url(store)
    if url is not None:
        return open_url(url)
    if is_address(store):
        raise StoreError(
            f"{store}: expected a path, or an address that begins with https, http, s3 or hf and ://"
        )
    path = resolve(local_path(store))
    return open_zip(path) if path.is_file() else FolderFiles(path)


def is_in_the_making(path: Path) -> bool:
    """Return whether a folder's name says that a store is being made in it, or was until a stop."""
    return path.name.endswith((PULLING_SUFFIX, BUILDING_SUFFIX))


def is_store_folder(path: Path) -> bool:
    """Return whether a path looks like a sealed store: a folder with features, not one in the making."""
    return (path / FEATURES).is_dir() and not is_in_the_making(path)


def names_store(path: Path) -> bool:
    """Return whether a path where a store or another file may be named is to be opened as a store.

    It is if it is a folder, a zip, or the name of a sealed store without its version.
    """
    if path.is_file():
        return is_zip_name(path.name)
    return path.is_dir() or len(sealed_versions(path)) > 0


def _suggest_similar_name(path: Path) -> str:
    """Return a hint " (did you mean PATH?)" with the store in the same folder whose name is most similar.

    Names of stores are compared with and without their version.

    Empty if no name is similar.
    """
    if not path.parent.is_dir():
        return ""
    names = set()
    for node in path.parent.iterdir():
        if is_store_folder(node):
            names.add(node.name)
            names.add(VERSIONED.sub("", node.name))
    similar_names = get_close_matches(path.name, sorted(names), n=1)
    if not similar_names:
        return ""
    return f" (did you mean {path.parent / similar_names[0]}?)"


def resolve(path: Path) -> Path:
    """Return the folder or zip of a sealed store, given its name with or without version.

    Without a version, it is the highest that there is: of `films` perhaps `films-1.2.0`.

    Raises
    ------
    StoreError
        There is none; the message says what is there instead, such as a store whose making goes on.
    """
    is_stage = (path / PLAN).is_file()  # an unfinished store has a list of its rows
    if is_stage:
        raise _stage_error(path)
    if is_in_the_making(path):
        raise StoreError(f"{path}: a store in the making, or whose making was stopped; pull or seal it again")

    is_zip = is_zip_name(path.name) and path.is_file()
    if is_store_folder(path) or is_zip:
        return path
    versions = sealed_versions(path)
    if versions:
        return versions[-1]  # the highest

    # There is no store of this name. Perhaps there is its stage, which was not sealed; or a folder that is
    # named like its stage and is something else, even a store: then the same is asked of that folder.
    staging = path.parent / f"{path.name}{STAGING_SUFFIX}"
    if staging.is_dir():
        return resolve(staging)
    raise StoreError(f"{path}: {_why_no_store(path)}")


def _stage_error(staging: Path) -> StoreError:
    """Return the error for an unfinished store (a stage) in place of a store; it says what is still to do."""
    return StoreError(f"{staging}: a staging folder, not a store yet; {_describe_remaining_work(staging)}")


def _why_no_store(path: Path) -> str:
    """Return in words what is at a path that is expected to be a store and is none."""
    if not path.exists():
        has_version = VERSIONED.search(path.name) is not None
        no_version = "" if has_version else f", nor a version of it ({path.name}-1.0.0)"
        return f"no such store{no_version}{_suggest_similar_name(path)}"
    if path.is_file():
        return "a file; expected the folder of a store, or a zip that 'obygaze store pack' made"
    stores_inside = sorted(node.name for node in path.iterdir() if is_store_folder(node))
    if stores_inside:
        return f"not a store, but stores are in it; name one: {', '.join(stores_inside)}"
    return f"not a store (no {FEATURES} in it)"


def _describe_remaining_work(staging: Path) -> str:
    """Return in words what remains to be done until a stage is a sealed store: extract clips, or seal it."""
    from obygaze_features.store.stage import read_stage  # noqa: PLC0415 - reading stores needs no stage

    stage = read_stage(staging)
    folder = staging if staging.name else staging.absolute()  # "." has no name
    destination = folder.with_name(folder.name.removesuffix(STAGING_SUFFIX))
    n_missing = len(stage.missing())
    if n_missing:
        return (
            f"{n_missing} of {counted(len(stage.clips), 'clip')} are still to do: "
            f"extract into {destination} again, which resumes where it stopped"
        )
    return f"seal it: obygaze store seal {quote(str(destination))} --licence SPDX"


def sealed_versions(path: Path) -> list[Path]:
    """Return the sealed stores `NAME-X.Y.Z` beside a path `NAME`, lowest version first."""
    if not path.parent.is_dir():
        return []
    # (Version, name) -> folder. They are sorted by version, and then by name, because 1.0.0 and 01.0.0 are
    # the same version.
    folders: dict[tuple[tuple[int, ...], str], Path] = {}
    for folder in path.parent.iterdir():
        match = VERSIONED.search(folder.name)
        if match is None:
            continue
        is_of_this_name = folder.name == path.name + match[0]
        if is_of_this_name and (folder / FEATURES).is_dir():
            version = tuple(int(number) for number in match.groups())
            folders[version, folder.name] = folder
    return [folders[key] for key in sorted(folders)]


STATED = ("licence", "citation", "corpus", "parent")
"""Attributes that every store has."""


def read_attributes(store: StoreFiles | Path) -> dict[str, Any]:
    """Read the attributes of a store, before any other file is trusted; refuse a store of a newer format."""
    files = FolderFiles(store) if isinstance(store, Path) else store
    return _metadata(files).attributes


class _Metadata(NamedTuple):
    """The metadata of a store's root group.

    Parameters
    ----------
    attributes
        The store's attributes.
    root
        The whole zarr.json of the root group, with the consolidated metadata of all groups and arrays.
    digest
        SHA-256 of this zarr.json.
    """

    attributes: dict[str, Any]
    root: dict[str, Any]
    digest: str


def _metadata(files: StoreFiles) -> _Metadata:
    """Read the metadata of a store's root group.

    Raises
    ------
    StoreError
        They are damaged, or of a newer format.
    """
    file = f"{files.where}/{FEATURES}/{ZARR_METADATA}"
    data = read_required(files, f"{FEATURES}/{ZARR_METADATA}")
    refuse_other_kind(data, file)

    def parse() -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the store's attributes, and the metadata in which they are."""
        root = dict(json.loads(data))
        return dict(root["attributes"][ATTRIBUTE]), root

    attributes, root = read_undamaged(file, parse, store=files.where)

    # The version first: a newer format may have other attributes.
    _refuse_newer_format(attributes.get("spec_version"), file, files.where)
    for name in STATED:
        if name not in attributes:
            raise StoreError(f"{file}: does not state its {name}; run: obygaze store verify {files.where}")
    return _Metadata(attributes, root, hashlib.sha256(data).hexdigest())


def _refuse_newer_format(version: object, file: str, location: str) -> None:
    """Refuse the stated version of a store's format if it is newer than `SPEC_VERSION`, or no version."""
    if not isinstance(version, str) or not re.fullmatch(r"\d{1,6}\.\d{1,6}", version):
        raise StoreError(f"{file}: spec_version is {version!r}, which is no format version")
    if is_newer(version, SPEC_VERSION):
        raise StoreError(
            f"{location}: format {version} is newer than this obygaze reads ({SPEC_VERSION}): "
            f"update obygaze to one that reads format >= {version}"
        )


def _as_opened(files: StoreFiles, root_digest: str) -> StoreFiles:
    """Return a store's files in a wrapper that refuses files of another store, if one is put in its place.

    While a store is open, somebody may replace it by another one of the same name. Files of both must not be
    mixed. On the Hub a store is read at one commit, which never changes, and a zip on this machine is in the
    hands of whoever reads it: their files are returned as they are.

    Parameters
    ----------
    files
        The files.
    root_digest
        SHA-256 of the metadata that were read to open the store. At an address, the store's list of digests
        must name it.
    """
    if isinstance(files, FolderFiles):
        return FolderAsOpened(files)
    is_on_server = is_address(files.where) and not files.where.startswith("hf://")
    return FilesAsOpened(files, root_digest) if is_on_server else files


@made_by("open_store(PATH)")
class Store:
    """A sealed store: a mapping of backbone names to their groups.

    Attributes
    ----------
    files
        Its files, wherever they are.
    files_as_opened
        The same; but if they are on a server or in a folder, those of another store that was put there
        meanwhile are refused.
    where
        Its name in messages: its path or URL.
    attributes
        spec_version, licence, citation, corpus, parent, and any others it has.
    names
        Its groups: the backbones it has features of, and what stands beside them, such as layers.

    Examples
    --------
    >>> from obygaze_features import open_store
    >>> store = open_store("stores/films")
    >>> store.names, store.version, len(store.clips)
    (('toy',), '1.0.0', 96)
    >>> store["toy"].pooled().shape
    (96, 8)
    >>> store.clips[-1].reason
    'the file is empty (0 bytes)'
    """

    def __init__(
        self,
        files: StoreFiles,
        attributes: Mapping[str, Any],
        nodes: Mapping[str, Mapping[str, Any]],
        root_digest: str,
    ) -> None:
        """Hold a store's metadata; groups are opened when they are first used.

        Parameters
        ----------
        files
            The files of the store.
        attributes
            The store's own attributes, such as its licence.
        nodes
            Zarr metadata of all groups and arrays, by path.
        root_digest
            SHA-256 of the file that these metadata were read from.
        """
        self.files = files
        # The same files, read so that a store which takes their place meanwhile is noticed
        self.files_as_opened = _as_opened(files, root_digest)
        self.where = files.where
        self.attributes = attributes
        self._nodes = nodes
        names_of_groups = [name for name, node in nodes.items() if node["node_type"] == "group"]
        self.names = tuple(sorted(names_of_groups))
        for name in self.names:
            if not fits(name, Name):
                raise StoreError(f"{self.where}: a group is named {name!r}; expected {expected(Name)}")
        self._groups: dict[str, Group] = {}  # those that were opened

    @property
    def backbones(self) -> tuple[str, ...]:
        """Names of the main groups of the backbones.

        A backbone may have side groups too, for further outputs such as layers or class probabilities. The
        provenance of a side group names the main group in the field `beside`.
        """
        main_groups = []
        for name in self.names:
            provenance = self._nodes[name].get("attributes", {}).get(PROVENANCE)
            main_group_beside = provenance.get("beside") if isinstance(provenance, Mapping) else None
            is_side_group = main_group_beside in self.names
            if not is_side_group:
                main_groups.append(name)
        return tuple(main_groups)

    @property
    def path(self) -> Path:
        """Its folder; a StoreError if it is a zip or on a server."""
        if isinstance(self.files, FolderFiles):
            return self.files.path
        raise StoreError(f"{self.where}: this needs a folder; obygaze store unpack or pull makes one of it")

    @property
    def name(self) -> str:
        """Name of the store, without its version."""
        return VERSIONED.sub("", self.files.name)

    @cached_property
    def version(self) -> str:
        """Version of the store's content, such as 1.0.0."""
        info = read_required(self.files, BAG_INFO)
        # What is read is of another store if that was put in the place of this one meanwhile. Files of the
        # list of digests are recognised by these, but the list does not name this file. So afterwards it is
        # asked whether the store is still the one that was opened; if not, this raises an error.
        refuse_another_store(self.files_as_opened)
        return parse_info(info).get("Store-Version", "")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the list of digests; it identifies the whole content.

        Another store may be put in the place of this one while it is open; the fingerprint stays that of the
        store that was opened, or there is an error.
        """
        if isinstance(self.files_as_opened, FilesAsOpened):  # on a server: they keep the list
            return self.files_as_opened.fingerprint
        # In a folder (`FolderAsOpened` raises the error), in a zip, or on the Hub.
        list_of_digests = read_required(self.files_as_opened, DIGESTS)
        return hashlib.sha256(list_of_digests).hexdigest()

    @cached_property
    def clips(self) -> tuple[StoredClip, ...]:
        """Status and origin of every clip, in the order of the rows."""
        return parse_clips_csv([read_required(self.files_as_opened, TABLE)], f"{self.where}/{TABLE}")

    @cached_property
    def table(self) -> ClipTable:
        """Status and origin of every clip as columns, in the order of the rows."""
        return clip_table(self.each_clip())

    def each_clip(self) -> Iterator[StoredClip]:
        """Yield status and origin of every clip, in the order of the rows, without holding all in memory.

        If `clips` has read them already, they are not read again.
        """
        were_read_already = "clips" in vars(self)  # where `cached_property` keeps a value
        if were_read_already:
            yield from self.clips
            return
        with required_file(self.files, TABLE):
            yield from each_clip(self.files_as_opened.stream(TABLE), f"{self.where}/{TABLE}")

    def clips_at(self, rows: Iterable[int]) -> dict[int, StoredClip]:
        """Return the clips of some rows, by row, without holding the others in memory.

        Raises
        ------
        StoreError
            The table has no such row.
        """
        location = f"{self.where}/{TABLE}"
        chosen_rows = sorted(set(rows))
        with required_file(self.files, TABLE):
            clips = parse_clips_csv(self.files_as_opened.stream(TABLE), location, set(chosen_rows))
        if len(clips) < len(chosen_rows):
            # Rows are numbered without gaps: of the chosen rows, the table has the first ones.
            first_missing = chosen_rows[len(clips)]
            raise StoreError(f"{location}: has no row {first_missing}")
        return dict(zip(chosen_rows, clips, strict=True))

    def __repr__(self) -> str:
        """Name the store's place and its groups, as in `Store('stores/films', toy)`."""
        return f"Store({self.where!r}, {', '.join(self.names)})"

    def __reduce__(self) -> tuple[Callable[[str, str], Store], tuple[str, str]]:
        """Pickle only the store's location and fingerprint: no open file, no bytes, no credentials.

        Unpickling opens the store at that location again, and refuses it if its content is another.
        """
        location = self.where if as_url(self.where) else str(Path(self.where).absolute())
        return _reopened, (location, self.fingerprint)

    def _ipython_key_completions_(self) -> list[str]:
        """Return the names of the groups, which IPython offers after `store["`."""
        return list(self.names)

    def _repr_html_(self) -> str:
        """Return a table of the groups as HTML, which notebooks show."""
        rows = []
        for name in self:
            group = self[name]
            arrays = ", ".join(f"{array} {group.shown_shape(array)}" for array in group.arrays)
            frames = "any number" if group.ragged else group.n_frames
            rows.append((name, arrays, frames, f"{int(group.usable.sum())} of {len(group)}"))
        title = f"{self.name} {self.version}".strip()
        notes = (self.where, f"licence {self.attributes.get('licence', 'not stated')}")
        return html_table(
            title, ("backbone", "arrays of a clip", "frames", "clips with features"), rows, notes
        )

    def to_xarray(self) -> xr.DataTree:
        """Make an xarray tree with a dataset for each backbone, as `Group.to_xarray` makes it.

        Raises
        ------
        StoreError
            If xarray is not installed.

        Examples
        --------
        >>> from obygaze_features import open_store
        >>> tree = open_store("stores/films").to_xarray()
        >>> tree["toy"].pooled.dims
        ('clip', 'feature')
        """
        tree: xr.DataTree = imported_xarray().DataTree.from_dict(
            {name: self[name].to_xarray() for name in self}, name=self.name
        )
        tree.attrs.update(store=self.where, version=self.version)
        return tree

    def to_zarr(self) -> zarr.Group:
        """Open the sealed arrays with zarr-python, read-only, for libraries that read Zarr, such as dask.

        The store may be a folder, a zip or at a URL. Missing chunks, and chunks with a wrong checksum, are
        refused. Rows without features are NaN; `Group.usable` tells which these are. Whether the features are
        still those that were sealed is not checked; `verify` does that.

        Returns
        -------
        zarr.Group
            With a group for each backbone, and in it the arrays of docs/store-format.md. It pickles, as the
            store does.

        Raises
        ------
        StoreError
            When it is read: bytes are gone, or a server misbehaves.

        Examples
        --------
        >>> from obygaze_features import open_store
        >>> group = open_store("stores/films").to_zarr()
        >>> group["toy/pooled"].shape
        (96, 8)
        """
        from obygaze_features.store.zarr_view import as_zarr  # noqa: PLC0415 - zarr is slow to import

        return as_zarr(self)

    def __getitem__(self, name: str) -> Group:
        """Return the group of a name; it is opened on first use. Raise a StoreError if there is none."""
        if name not in self.names:
            raise StoreError(
                f"{self.where}: no features of {name}, but of {', '.join(self.names) or 'nothing'}"
            )
        if name not in self._groups:
            self._groups[name] = read_undamaged(
                f"{self.where}, group {name}", lambda: self._group(name), store=self.where
            )
        return self._groups[name]

    def _group(self, name: str) -> Group:
        """Make a group from the metadata of the arrays below its name."""
        prefix = f"{name}/"
        arrays = {}  # name of each array -> its metadata
        for path, node in self._nodes.items():
            if path.startswith(prefix):
                arrays[path.removeprefix(prefix)] = node
        provenance = self._nodes[name]["attributes"][PROVENANCE]
        return Group(self, name, provenance, arrays)

    def __contains__(self, name: object) -> bool:
        """Whether the store has a group (the features of a backbone) of this name."""
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the groups, in alphabetical order."""
        return iter(self.names)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.names)


@checked
def open_store(path: Path | str) -> Store:
    """Open a sealed store; only its metadata are read.

    Parameters
    ----------
    path
        Its folder `NAME-VERSION`, or `NAME` for the highest version there is; a zip that `obygaze store pack`
        made; or the URL of a folder or zip: http:// or https://; s3:// or hf:// with `obygaze[remote]`.

    Raises
    ------
    StoreError
        If there is no sealed store, it is of a newer format, or its metadata are damaged.

    Examples
    --------
    >>> from obygaze_features import open_store
    >>> open_store("stores/films").names
    ('toy',)
    >>> open_store("stores/films-1.0.0").attributes["licence"]
    'CC0-1.0'
    """
    return open_files(locate(path))


def _reopened(location: str, fingerprint: str) -> Store:
    """Open the store that a pickle refers to (`Store.__reduce__`); refuse any other content."""
    try:
        store = open_store(location)
    except StoreError as error:
        raise StoreError(
            f"{error} (a pickled store only says where its files are: copy or mount them there)"
        ) from None
    if store.fingerprint != fingerprint:
        raise StoreError(
            f"{location}: not the store that was pickled: its fingerprint is {store.fingerprint[:8]}, "
            f"expected {fingerprint[:8]}; open it anew: open_store(PATH)"
        )
    return store


Place = Store | StoreFiles | Path | str
"""Where a store is: an open store, its files, its path or its URL."""


def files_of(store: Place) -> StoreFiles:
    """Return the files of a store, given the open store, its files themselves, or its path or URL."""
    if isinstance(store, Store):
        return store.files
    if isinstance(store, str | Path):
        return locate(store)
    return store


def open_files(files: StoreFiles) -> Store:
    """Open a sealed store given its files; raise a StoreError if its metadata are damaged."""
    attributes, root, root_digest = _metadata(files)

    def make_store() -> Store:
        """Make the store of the metadata of all groups and arrays, which the root group has."""
        nodes = root["consolidated_metadata"]["metadata"]
        return Store(files, attributes, nodes, root_digest)

    return read_undamaged(files.where, make_store)
