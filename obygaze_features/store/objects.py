"""Bring single files from a folder, a server, S3 or the Hub, resumed and checked, and put them there."""

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from obygaze_features.door import read_bytes
from obygaze_features.errors import InterruptedTransferError, NoRangesError, StoreError
from obygaze_features.io import local_path, make_folder, open_binary, write_once, write_whole
from obygaze_features.locks import locked
from obygaze_features.store.files_hub import LOST_ON_HUB, HubFiles, asking_hub, place_of
from obygaze_features.store.files_obstore import ObstoreFiles, asking, connect
from obygaze_features.store.files_remote import as_url, open_url
from obygaze_features.store.served import STEP, naming_extra
from obygaze_features.store.store_files import BLOCK, FolderFiles, StoreFiles

if TYPE_CHECKING:
    from huggingface_hub import HfApi

ATTEMPTS = 5
"""Attempts in a row that bring a file less than STEP bytes further, after which a download fails."""
FIRST_WAIT_S = 0.1

Count = Callable[[str, int, int], None]
"""Called with (name, its size so far, new bytes)."""


def download_file(files: StoreFiles, name: str, partial: Path, expected: str, count: Count) -> None:
    """Complete `partial` as a file with digest `expected`; bytes that it has are not requested again.

    Raises
    ------
    StoreError
        If the file is not there, what comes has another digest twice, or nothing comes at all.
    """
    failures = 0
    wrong = 0
    furthest = 0
    while wrong < 2:
        with os.fdopen(_appending(partial), "a+b") as file:
            before = partial.stat().st_size
            try:
                digest = _append(files, name, file, expected, count)
            except NoRangesError:
                if not before:
                    raise
                file.truncate(0)  # no ranges: start again
                continue
            except InterruptedTransferError:
                came = partial.stat().st_size
                failures = 1 if came >= furthest + STEP else failures + 1
                furthest = max(furthest, came)
                if failures >= ATTEMPTS:
                    raise
                time.sleep(FIRST_WAIT_S * 2**failures)
                continue
            if digest == expected:
                return
            wrong += not before  # bytes of an earlier run may be at fault: not counted
            file.truncate(0)
    raise StoreError(
        f"{files.where}/{name}: what comes is not what its digest says, twice; it is damaged there"
    )


def _appending(partial: Path) -> int:
    """Open what was fetched before, or a new file, but no link: in a shared folder anybody may make one."""
    return open_binary(partial, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0))


def _append(files: StoreFiles, name: str, file: BinaryIO, expected: str, count: Count) -> str:
    """Read a file's present bytes, append the missing ones; return the digest of all."""
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(BLOCK):
        digest.update(block)
    size = file.tell()
    if size and digest.hexdigest() == expected:
        return expected
    try:
        for block in files.stream(name, size):
            file.write(block)
            digest.update(block)
            size += len(block)
            count(name, size, len(block))
    except (FileNotFoundError, IsADirectoryError):
        raise StoreError(f"{files.where}/{name}: is listed in the list of digests, but not there") from None
    finally:
        file.flush()
    return digest.hexdigest()


def files_in(place: Path | str, *, links: bool = False) -> StoreFiles:
    """Return the files of a folder, here or at a URL; nothing is read yet.

    Links are followed for readers that check digests.

    Raises
    ------
    StoreError
        If the URL cannot be one, or what it needs is not installed.
    """
    url = as_url(place)
    return FolderFiles(local_path(place), links=links) if url is None else open_url(url)


def read_or_none(files: StoreFiles, name: str, most: int) -> bytes | None:
    """Read a file whole, whatever a server says of its size; None if it is not there.

    Raises
    ------
    StoreError
        It has more than `most` bytes, or the server does not give it.
    """
    data = bytearray()
    try:
        for block in files.stream(name):
            data += block
            if len(data) > most:
                raise StoreError(f"{files.where}/{name}: more than the {most} bytes that it may have")
    except (FileNotFoundError, NotADirectoryError):
        return None
    return bytes(data)


Change = Callable[[bytes | None], bytes]
"""Makes the next bytes of a list of the present ones, None if there is none; may refuse."""


def put_listed(place: Path | str, name: str, change: Change, new: Mapping[str, bytes], most: int) -> str:
    """Put new files into a folder, S3 or the Hub, and then change the list that names them.

    No change of others is lost: a folder is locked, elsewhere the list is put only if it is still the one
    that was read, and otherwise read and changed again. New files are never put over others.

    Parameters
    ----------
    name, change
        The list, and what makes its next bytes; called again after a lost race.
    new
        Files by name.
    most
        Most bytes of a list.

    Returns
    -------
    The place; on the Hub with the commit.

    Raises
    ------
    StoreError
        If nothing can be put there, another file is there, or every attempt lost a race.
    """
    url = as_url(place)
    for attempt in range(ATTEMPTS):
        time.sleep(FIRST_WAIT_S * (2**attempt - 1))
        with suppress(_LostRace):
            if url is None:
                return _put_in_folder(local_path(place), name, change, new, most)
            return (_put_on_s3 if url.startswith("s3://") else _put_on_hub)(url, name, change, new, most)
    raise StoreError(f"{place}: others changed {name} each time that it was to be changed: push again")


class _LostRace(Exception):  # noqa: N818 - it is no error for users
    """Another process put something since the list was read."""


def _other(place: object, name: str) -> StoreError:
    return StoreError(f"{place}/{name}: another file is there, and none is replaced: choose another version")


def _put_in_folder(folder: Path, name: str, change: Change, new: Mapping[str, bytes], most: int) -> str:
    make_folder(folder)
    with locked(folder, wait=True):
        is_there = (folder / name).is_symlink() or (folder / name).exists()
        listing = change(read_bytes(folder / name, most, within=folder) if is_there else None)
        for object_name, data in new.items():
            try:
                write_once(folder / object_name, data)
            except FileExistsError:
                if read_bytes(folder / object_name, len(data) + 1, within=folder) != data:
                    raise _other(folder, object_name) from None
        write_whole(folder / name, listing)
    return str(folder)


def _put_on_s3(url: str, name: str, change: Change, new: Mapping[str, bytes], most: int) -> str:
    store = connect(url)
    import obstore  # noqa: PLC0415 - obygaze[remote], which `connect` asks for
    from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415 - the same

    files = ObstoreFiles(url, name, client=store)
    try:
        before, tag = files.read_tagged(name, most)
    except FileNotFoundError:
        before = None
        tag = ""
    listing = change(before)
    for object_name, data in new.items():
        with asking(url, object_name):
            try:
                obstore.put(store, object_name, data, mode="create")
            except AlreadyExistsError:
                if files.size(object_name) != len(data) or files.read(object_name) != data:
                    raise _other(url, object_name) from None
    with asking(url, name):
        try:
            obstore.put(store, name, listing, mode={"e_tag": tag} if tag else "create")
        except (AlreadyExistsError, PreconditionError):
            raise _LostRace from None
    return url


def _put_on_hub(url: str, name: str, change: Change, new: Mapping[str, bytes], most: int) -> str:
    target, api = begin_push(url)
    from huggingface_hub import CommitOperationAdd  # noqa: PLC0415 - obygaze[remote], as `begin_push` asks
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415 - the same

    with asking_hub(url):
        files = replace(target, commit=api.dataset_info(target.repository).sha or "")
    objects = {**new, name: change(read_or_none(files, name, most))}
    for object_name, data in new.items():
        if read_or_none(files, object_name, len(data)) not in (None, data):
            raise _other(url, object_name)
    with asking_hub(url):
        try:
            commit = api.create_commit(
                target.repository,
                [CommitOperationAdd(target.folder + path, data) for path, data in objects.items()],
                repo_type="dataset",
                commit_message=f"add {', '.join(objects)}",
                parent_commit=files.commit,
            )
        except HfHubHTTPError as error:
            if error.response.status_code in LOST_ON_HUB:
                raise _LostRace from None
            raise
    return replace(target, commit=commit.oid).where


def begin_push(url: str) -> "tuple[HubFiles, HfApi]":
    """Create the dataset repository of a URL of the Hub, if it is not there; return it and the client.

    Raises
    ------
    StoreError
        If nothing can be pushed to such a URL.
    """
    if not url.startswith("hf://"):
        raise StoreError(
            f"{url}: nothing can be pushed over HTTP; push into a folder, and copy it to where it is served"
        )
    with naming_extra(url):
        from huggingface_hub import HfApi  # noqa: PLC0415 - obygaze[remote]

    target = place_of(url)
    if target.commit:
        raise StoreError(f"{url}: leave out the revision, a push makes one")
    with asking_hub(url):
        api = HfApi()
        api.create_repo(target.repository, repo_type="dataset", exist_ok=True)
    return target, api
