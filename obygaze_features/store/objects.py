"""Copy single files from a folder, a server, S3 or the Hub, resumed and checked, and put files there."""

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from obygaze_features.errors import FileEndsError, InterruptedTransferError, NoRangesError, StoreError
from obygaze_features.io import local_folder, local_path, make_folder, open_binary, write_once, write_whole
from obygaze_features.locks import locked
from obygaze_features.store.files_hub import LOST_ON_HUB, HubFiles, explain_hub_errors, parse_hub_url
from obygaze_features.store.files_obstore import ObstoreFiles, connect, explain_obstore_errors
from obygaze_features.store.files_remote import as_url, open_url
from obygaze_features.store.served import MIN_BYTES, explain_missing_library
from obygaze_features.store.store_files import BLOCK, FolderFiles, StoreFiles
from obygaze_features.untrusted import read_bytes

if TYPE_CHECKING:
    from huggingface_hub import HfApi

ATTEMPTS = 5
"""Attempts in a row, each with less than MIN_BYTES bytes more of a file, after which a download fails; and
attempts to change a list that others change, too."""
FIRST_WAIT_S = 0.1
"""Seconds before the first repeated attempt; the wait doubles with each attempt."""
MAX_WRONG_DIGESTS = 2
"""Complete downloads with a wrong digest after which a file counts as damaged on the server."""

Count = Callable[[str, int, int], None]
"""Called with (name, its size so far, new bytes)."""


def download_file(files: StoreFiles, name: str, partial: Path, expected: str, count: Count) -> None:
    """Download a file, or the rest of one that was downloaded in part, and check its digest.

    An interrupted transfer is continued from where it stopped, after a growing pause. After `ATTEMPTS`
    interruptions without progress it fails. If the server cannot continue a file, or the digest is wrong, the
    file is downloaded from its beginning.

    Parameters
    ----------
    files
        Where the file is.
    name
        Its name there.
    partial
        The file to complete.
    expected
        SHA-256 of the complete file.
    count
        Called when bytes have come.

    Raises
    ------
    StoreError
        If the file is not there, a whole download has a wrong digest twice, or nothing arrives any more.
    """
    n_wrong_digests = 0
    pauses = _Pauses()
    while n_wrong_digests < MAX_WRONG_DIGESTS:
        with os.fdopen(_open_to_append(partial), "a+b") as file:
            begins_anew = partial.stat().st_size == 0  # nothing is there of an earlier run or attempt
            try:
                digest = _append_rest(files, name, file, expected, count)
            except (NoRangesError, FileEndsError):
                if begins_anew:
                    raise
                # The server gives whole files only, or what is here is longer than its file: start again.
                file.truncate(0)
                continue
            except InterruptedTransferError:
                pauses.count_interruption(partial.stat().st_size)
                if pauses.are_too_many:
                    raise
                pauses.wait()
                continue  # with the bytes that have come

            if digest == expected:
                return

            # The digest is wrong. Only if the whole file came now is the server at fault; else the bytes that
            # were here before may be wrong.
            if begins_anew:
                n_wrong_digests += 1
            file.truncate(0)
    raise StoreError(
        f"{files.where}/{name}: what comes is not what its digest says, twice; it is damaged there"
    )


class _Pauses:
    """Counts the interruptions of a download in a row without progress, and pauses after each."""

    def __init__(self) -> None:
        """Begin a download, without an interruption yet."""
        self._n_failures = 0  # interruptions in a row without progress
        self._max_bytes = 0  # of the file that were there at an interruption so far

    def count_interruption(self, n_bytes: int) -> None:
        """Count an interruption after `n_bytes` bytes of the file.

        An interruption after `MIN_BYTES` more bytes than ever before is the first of a new count, as the
        download made progress. Fewer bytes may come of a server that never gets further.
        """
        made_progress = n_bytes >= self._max_bytes + MIN_BYTES
        if made_progress:
            self._n_failures = 0
        self._n_failures += 1
        self._max_bytes = max(self._max_bytes, n_bytes)

    @property
    def are_too_many(self) -> bool:
        """Whether the download has failed: there were `ATTEMPTS` interruptions in a row."""
        return self._n_failures >= ATTEMPTS

    def wait(self) -> None:
        """Pause, twice as long as after the interruption before."""
        time.sleep(FIRST_WAIT_S * 2**self._n_failures)


def _open_to_append(partial: Path) -> int:
    """Open a file to append to, and create it if needed; never follow a link that others may have made.

    Returns the file descriptor.
    """
    refuse_links = getattr(os, "O_NOFOLLOW", 0)  # Windows does not have this flag
    return open_binary(partial, os.O_RDWR | os.O_CREAT | os.O_APPEND | refuse_links)


def _append_rest(files: StoreFiles, name: str, file: BinaryIO, expected: str, count: Count) -> str:
    """Download and append the bytes that a partial file lacks; return the SHA-256 of the whole file.

    Parameters
    ----------
    files, name
        Where the file is, and its name there.
    file
        The partial file, open to read and to append.
    expected
        SHA-256 of the complete file. If the partial file has it already, nothing is requested.
    count
        Called for each block that comes with the name, the size so far and the bytes of the block.

    Raises
    ------
    StoreError
        If the file is not there.
    """
    # Digest what is here already.
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(BLOCK):
        digest.update(block)
    size = file.tell()
    is_complete = size > 0 and digest.hexdigest() == expected
    if is_complete:
        return expected

    # Append the rest.
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


def files_in(location: Path | str, *, links: bool = False) -> StoreFiles:
    """Return the files of a folder, local or at a URL; nothing is read yet.

    Parameters
    ----------
    location
        Path or URL of the folder.
    links
        Whether symbolic links in a local folder are followed, for callers that check digests themselves.

    Raises
    ------
    StoreError
        If the URL cannot be one, or what it needs is not installed.
    """
    url = as_url(location)
    if url is not None:
        return open_url(url)
    return FolderFiles(local_path(location), links=links)


def read_or_none(files: StoreFiles, name: str, maximum: int) -> bytes | None:
    """Read a whole file, whatever a server says of its size; None if it is not there.

    Parameters
    ----------
    files, name
        Where the file is, and its name there.
    maximum
        Bytes that it may have.

    Raises
    ------
    StoreError
        It has more than `maximum` bytes, or the server does not give it.
    """
    data = bytearray()
    try:
        for block in files.stream(name):
            data += block
            if len(data) > maximum:
                raise StoreError(f"{files.where}/{name}: more than the {maximum} bytes that it may have")
    except (FileNotFoundError, NotADirectoryError):
        return None
    return bytes(data)


ChangeList = Callable[[bytes | None], bytes]
"""Returns the new content of a list for its present content, which is None if there is no list; may
refuse."""


def put_with_list(
    location: Path | str, name: str, change: ChangeList, new: Mapping[str, bytes], maximum: int
) -> str:
    """Upload new files to a folder, S3 or the Hub, then update the file that lists them.

    Updates by others at the same time are not lost. A local folder is locked. Elsewhere the list is replaced
    only if it is still as it was read; otherwise it is read and changed again. New files never replace
    others.

    Parameters
    ----------
    location
        Path or URL of the folder.
    name
        File name of the list.
    change
        Returns the new content of the list for its present one; called again if the list has changed.
    new
        File name -> content of the new files.
    maximum
        Largest size of a list in bytes.

    Returns
    -------
    The place; on the Hub with the commit.

    Raises
    ------
    StoreError
        If nothing can be put there, another file is there, or every attempt lost a race.
    OutputError
        If the location is an address that is neither S3 nor the Hub.
    """
    url = as_url(location)
    for attempt in range(ATTEMPTS):
        time.sleep(FIRST_WAIT_S * (2**attempt - 1))  # 0 before the first attempt
        with suppress(_LostRace):  # then the list is read again in the next attempt
            if url is None:
                return _put_in_folder(local_folder(location), name, change, new, maximum)
            if url.startswith("s3://"):
                return _put_on_s3(url, name, change, new, maximum)
            return _put_on_hub(url, name, change, new, maximum)
    raise StoreError(f"{location}: others changed {name} each time that it was to be changed: push again")


class _LostRace(Exception):  # noqa: N818 - it is no error for users
    """Another process changed the list since it was read."""


def _name_taken_error(place: object, name: str) -> StoreError:
    """Return the error for a new file where a file of the same name has other content."""
    return StoreError(f"{place}/{name}: another file is there, and none is replaced: choose another version")


def _put_in_folder(
    folder: Path, list_name: str, change: ChangeList, new_files: Mapping[str, bytes], maximum: int
) -> str:
    """Put new files into a local folder, and update the file that lists them; return the folder's path.

    The folder is locked meanwhile.
    """
    make_folder(folder)
    with locked(folder, wait=True):
        list_file = folder / list_name
        is_there = list_file.is_symlink() or list_file.exists()
        present_list = read_bytes(list_file, maximum, within=folder) if is_there else None
        new_list = change(present_list)

        for file_name, data in new_files.items():
            try:
                write_once(folder / file_name, data)  # never replaces a file
            except FileExistsError:  # no error if it has this content
                if read_bytes(folder / file_name, len(data) + 1, within=folder) != data:
                    raise _name_taken_error(folder, file_name) from None

        # The list comes last, so that it never names a file that is not there.
        write_whole(list_file, new_list)
    return str(folder)


def _put_on_s3(
    url: str, list_name: str, change: ChangeList, new_files: Mapping[str, bytes], maximum: int
) -> str:
    """Put new files into a folder on S3, and update the file that lists them; return the URL.

    The list is replaced only if it still has the tag with which it was read: S3 gives each content of a file
    a tag (ETag), and compares it when the file is written.

    Raises
    ------
    _LostRace
        The list was changed meanwhile.
    """
    client = connect(url)
    import obstore  # noqa: PLC0415 - obygaze[remote], which `connect` asks for
    from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415 - the same

    files = ObstoreFiles(url, list_name, client=client)
    try:
        present_list, tag = files.read_tagged(list_name, maximum)
    except FileNotFoundError:
        present_list = None
        tag = ""
    new_list = change(present_list)

    for file_name, data in new_files.items():
        with explain_obstore_errors(url, file_name):
            try:
                obstore.put(client, file_name, data, mode="create")
            except AlreadyExistsError:
                has_this_content = files.size(file_name) == len(data) and files.read(file_name) == data
                if not has_this_content:
                    raise _name_taken_error(url, file_name) from None

    was_list_there = tag != ""
    with explain_obstore_errors(url, list_name):
        try:
            if was_list_there:  # refused if it was changed since it was read
                obstore.put(client, list_name, new_list, mode={"e_tag": tag})
            else:  # refused if it was made meanwhile
                obstore.put(client, list_name, new_list, mode="create")
        except (AlreadyExistsError, PreconditionError):
            raise _LostRace from None
    return url


def _put_on_hub(
    url: str, list_name: str, change: ChangeList, new_files: Mapping[str, bytes], maximum: int
) -> str:
    """Put new files and the changed list of them into a repository of the Hub, in one commit.

    The commit names the one that was read as its parent, so that the Hub refuses it if another was made
    meanwhile.

    Returns
    -------
    str
        The URL with the new commit.

    Raises
    ------
    _LostRace
        Another commit was made meanwhile.
    """
    target, api = begin_push(url)
    from huggingface_hub import CommitOperationAdd  # noqa: PLC0415 - obygaze[remote], as `begin_push` asks
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415 - the same

    # Read the list at the latest commit, and check that no new file would replace another.
    with explain_hub_errors(url):
        latest_commit = api.dataset_info(target.repository).sha or ""
    files = replace(target, commit=latest_commit)
    present_list = read_or_none(files, list_name, maximum)
    contents = {**new_files, list_name: change(present_list)}

    for file_name, data in new_files.items():
        present_data = read_or_none(files, file_name, len(data))
        is_name_taken = present_data is not None and present_data != data
        if is_name_taken:
            raise _name_taken_error(url, file_name)

    additions = [CommitOperationAdd(target.folder + path, data) for path, data in contents.items()]
    with explain_hub_errors(url):
        try:
            commit = api.create_commit(
                target.repository,
                additions,
                repo_type="dataset",
                commit_message=f"add {', '.join(contents)}",
                parent_commit=latest_commit,
            )
        except HfHubHTTPError as error:
            if error.response.status_code in LOST_ON_HUB:
                raise _LostRace from None
            raise
    return replace(target, commit=commit.oid).where


def begin_push(url: str) -> "tuple[HubFiles, HfApi]":
    """Create the dataset repository that a URL of the Hub names, if it does not exist.

    Returns
    -------
    HubFiles
        The repository and the folder in it.
    HfApi
        The client of the Hub's library.

    Raises
    ------
    StoreError
        If nothing can be pushed to such a URL.
    """
    if not url.startswith("hf://"):
        raise StoreError(
            f"{url}: nothing can be pushed over HTTP; push into a folder, and copy it to where it is served"
        )
    with explain_missing_library(url):
        from huggingface_hub import HfApi  # noqa: PLC0415 - obygaze[remote]

    target = parse_hub_url(url)
    if target.commit:
        raise StoreError(f"{url}: leave out the revision, a push makes one")
    with explain_hub_errors(url):
        api = HfApi()
        api.create_repo(target.repository, repo_type="dataset", exist_ok=True)
    return target, api
