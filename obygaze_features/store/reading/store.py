"""Opening a sealed store: a mapping of backbone names to their features."""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import zarr

from obygaze_features.store.bag import parse_info
from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import BAG_INFO, MANIFEST, TABLE
from obygaze_features.store.provenance import NAME
from obygaze_features.store.reading.damaged import guarded, whole
from obygaze_features.store.reading.group import Group
from obygaze_features.store.reading.locate import VERSIONED, check_version, locate
from obygaze_features.store.reading.objects import Folder, Objects
from obygaze_features.store.reading.zarr_view import ZarrView
from obygaze_features.store.table import StoredClip, parse_table


class Store:
    """A sealed store: a mapping of backbone names to their groups.

    Attributes
    ----------
    objects
        Its files, wherever they are.
    where
        What messages call it: its path or URL.
    attributes
        spec_version, licence, citation, corpus, parent, and whatever a newer minor version added.
    names
        The backbones it has features of.
    """

    def __init__(self, objects: Objects, attributes: Mapping[str, Any], node: zarr.Group) -> None:
        self.objects = objects
        self.where = objects.where
        self.attributes = attributes
        self._nodes = dict(sorted(node.groups()))
        for name in self._nodes:
            if not NAME[1](name):
                raise StoreError(f"{self.where}: a group is named {name!r}; expected {NAME[0]}")
        self._groups: dict[str, Group] = {}
        self.names = tuple(self._nodes)

    @property
    def path(self) -> Path:
        """Its folder; a StoreError if it is a zip or on a server."""
        if isinstance(self.objects, Folder):
            return self.objects.path
        raise StoreError(f"{self.where}: this needs a folder; obygaze store unpack or pull makes one of it")

    @property
    def name(self) -> str:
        """Name of the store, without its version."""
        return VERSIONED.sub("", self.objects.name)

    @cached_property
    def version(self) -> str:
        """Version of the store's content, such as 1.0.0."""
        return parse_info(whole(self.objects, BAG_INFO)).get("Store-Version", "")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the digest manifest, which stands for all of the content."""
        return hashlib.sha256(whole(self.objects, MANIFEST)).hexdigest()

    @cached_property
    def clips(self) -> tuple[StoredClip, ...]:
        """What became of every clip, in the order of the rows."""
        return parse_table(whole(self.objects, TABLE), f"{self.where}/{TABLE}")

    def __repr__(self) -> str:
        return f"Store({self.where!r}, {', '.join(self.names)})"

    def __getitem__(self, name: str) -> Group:
        if name not in self._nodes:
            raise StoreError(
                f"{self.where}: no features of {name}, but of {', '.join(self.names) or 'nothing'}"
            )
        if name not in self._groups:
            self._groups[name] = guarded(
                f"{self.where}, group {name}",
                lambda: Group(self.objects, self._nodes[name]),
                store=self.where,
            )
        return self._groups[name]

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def open_store(path: Path | str) -> Store:
    """Open a sealed store; nothing is read of it yet but its metadata.

    Parameters
    ----------
    path
        Its folder `NAME-VERSION`, or `NAME` for the highest version there is; a zip that `obygaze store pack`
        made; or the URL of a folder or zip: http://, https:// or s3:// (these need `obygaze[remote]`).

    Raises
    ------
    StoreError
        If there is no sealed store, it is of a newer format, or its metadata are damaged.
    """
    return open_objects(locate(path))


def open_objects(objects: Objects) -> Store:
    """Open the sealed store whose files these are."""
    attributes = check_version(objects)
    node = guarded(objects.where, lambda: zarr.open_group(ZarrView(objects), mode="r", zarr_format=3))
    return guarded(objects.where, lambda: Store(objects, attributes, node))
