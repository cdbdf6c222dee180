"""Bring single files from a folder, a server, S3 or the Hub, resumed and checked, and put them there."""

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from obygaze_features.errors import InterruptedTransferError, NoRangesError, StoreError
from obygaze_features.io import local_path, open_binary, write_whole
from obygaze_features.store.files_remote import (
    STEP,
    HubFiles,
    as_url,
    asking,
    asking_hub,
    connect,
    naming_extra,
    open_url,
    place_of,
)
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
    failures, wrong, furthest = 0, 0, 0
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


def put_objects(place: Path | str, objects: Mapping[str, bytes]) -> str:
    """Put small files into a folder, s3://BUCKET/NAME or hf://datasets/OWNER/NAME, one after the other.

    Returns the place; on the Hub with the commit.

    Raises
    ------
    StoreError
        If nothing can be put there.
    """
    url = as_url(place)
    if url is None:
        folder = local_path(place)
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in objects.items():
            write_whole(folder / name, data)
        return str(folder)
    if url.startswith("s3://"):
        store = connect(url)
        import obstore  # noqa: PLC0415 - obygaze[remote], which `connect` asks for

        for name, data in objects.items():
            with asking(url, name):
                obstore.put(store, name, data)
        return url
    target, api = begin_push(url)
    from huggingface_hub import CommitOperationAdd  # noqa: PLC0415 - obygaze[remote], as `begin_push` asks

    with asking_hub(url):
        done = api.create_commit(
            target.repository,
            [CommitOperationAdd(target.folder + name, data) for name, data in objects.items()],
            repo_type="dataset",
            commit_message=f"add {', '.join(objects)}",
        )
    return replace(target, commit=done.oid).where


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
