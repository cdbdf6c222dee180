"""Publish a sealed store: write its card, pack it into one zip, push it to a folder, to S3 or to the Hub."""

import hashlib
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from threading import Lock
from typing import TYPE_CHECKING, Literal

from obygaze_features.arguments import checked
from obygaze_features.errors import StoreError
from obygaze_features.exchange.citing import citation_of
from obygaze_features.exchange.transfer import (
    FileProgress,
    download,
    file_progress_shown,
    new_file,
    run_in_threads,
)
from obygaze_features.io import NO_LICENCE, local_path, sha256_of, store_path
from obygaze_features.screen import Progress, shown_progress
from obygaze_features.store.croissant import croissant
from obygaze_features.store.files_hub import HubFiles, explain_hub_errors
from obygaze_features.store.files_obstore import connect, explain_obstore_errors
from obygaze_features.store.files_remote import as_url
from obygaze_features.store.files_zip import ROOT_METADATA, ZipFiles, is_zip_name
from obygaze_features.store.format import (
    CARD,
    CROISSANT,
    DIGESTS,
    PAYLOAD,
    TABLE,
    TAG_DIGESTS,
    ZARR_METADATA,
    next_patch,
)
from obygaze_features.store.group import spec_of
from obygaze_features.store.metadata import facts_of, readme
from obygaze_features.store.objects import begin_push
from obygaze_features.store.provenance import validate_licence
from obygaze_features.store.sealing import VERSION
from obygaze_features.store.store import Place, Store, files_of, open_files, read_attributes
from obygaze_features.store.store_files import FolderFiles, StoreFiles, absent_files, digest_of, read_digests

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile
    from obstore.store import ObjectStore

WRITERS = 4
"""Concurrent uploads; each holds one object, at most a shard, in memory."""

EARLIEST_DATE = (1980, 1, 1, 0, 0, 0)
"""The first date that a zip can state; all members have it, so that the bytes do not depend on the time."""

UNIX = 3
"""Number of the system in a zip by which the modes of its files are read."""


def card_files(store: Store, licence: str | None = None) -> dict[str, bytes]:
    """Return new versions of a store's README.md and croissant.json: file name -> bytes.

    They also hold citations with the store's fingerprint. The sealed store itself is not changed.

    Parameters
    ----------
    store
        The store.
    licence
        SPDX expression, needed if the store was sealed without a licence; None for the store's own.

    Raises
    ------
    StoreError
        If no licence is stated, or one that differs from the store's.
    """
    sealed_licence = str(store.attributes["licence"])
    has_licence = sealed_licence != NO_LICENCE
    if licence is None and not has_licence:
        raise StoreError(
            f"{store.where}: no licence is recorded, and a shared store needs one: "
            "give it with --licence SPDX"
        )
    is_other_licence = licence is not None and licence != sealed_licence
    if is_other_licence and has_licence:
        raise StoreError(
            f"{store.where}: sealed under {sealed_licence}, not {licence}; "
            "a new licence needs a new version of the store"
        )
    shown_licence = sealed_licence if licence is None else validate_licence(licence)

    attributes = {**store.attributes, "licence": shown_licence}
    facts = facts_of(attributes, store.clips, [spec_of(store[name]) for name in store])
    metadata = croissant(facts, store.version, digest_of(store.files, TABLE), store.files.size(TABLE))
    citation = citation_of(store, shown_licence)
    citation_lines = [citation.apa(), "", *citation.bibtex().splitlines()]
    return {CARD: readme(facts, citation_lines).encode(), CROISSANT: metadata}


# --- one zip
# ---------------------------------------------------------------------------
@checked
def pack(store: Place, out: Path | str | None = None, progress: Progress | bool | None = None) -> Path:
    """Write a sealed store into one zip; the same store gives the same bytes.

    Every file is checked against its digest on the way.

    Parameters
    ----------
    store
        A store, or its path.
    out
        The zip to make, whose name ends in .zip; None for `NAME-VERSION.zip` beside the store's folder.
    progress
        Called with (bytes written, bytes in all). Or whether to show a bar: by default only in a notebook.

    Raises
    ------
    StoreError
        If the store is partial or damaged, or there is something at `out` already, or its name is no zip's.

    Examples
    --------
    >>> from obygaze_features import open_store, pack
    >>> packed = pack("stores/films", "films.zip")
    >>> open_store(packed).names
    ('toy',)
    """
    files: StoreFiles
    if out is None:  # the zip is written beside the store, which must then be a folder
        folder = folder_of(store)
        files = folder
        out = store_path(folder.path).with_name(f"{folder.name}.zip")
    elif isinstance(store, str | Path):
        files = folder_of(store)
    else:
        files = files_of(store)
    out = local_path(out)
    if not is_zip_name(out.name):
        raise StoreError(f"{out}: name it .zip: a packed store is known by that")

    _refuse_partial_copy(files, "pack")
    digests = read_digests(files)
    names = sorted([*digests, TAG_DIGESTS], key=_reading_order)
    # Files that the store's digests name and that are not there, or the other way round.
    missing_or_extra = sorted(set(files.names()).symmetric_difference(names))
    if missing_or_extra:
        raise StoreError(
            f"{files.where}: {missing_or_extra[0]} is missing, or too many; a whole store is needed; "
            f"run: obygaze store verify {files.where}"
        )

    sizes = {name: files.size(name) for name in names}
    n_total = sum(sizes.values())
    n_written = 0
    with (
        new_file(out) as temporary_path,
        zipfile.ZipFile(temporary_path, "w", zipfile.ZIP_STORED) as archive,
        shown_progress(progress, "pack", "B", scaled=True) as show,
    ):
        for name in names:
            _add_member(archive, files, name, sizes[name], digests.get(name))
            n_written += sizes[name]
            show(n_written, n_total)
    return out


def _refuse_partial_copy(files: StoreFiles, verb: str) -> None:
    """Raise a StoreError if a store is a partial copy; `verb` is what was to be done with it."""
    if absent_files(files):
        raise StoreError(f"{files.where}: is a partial copy; {verb} the whole store")


def folder_of(store: Place) -> FolderFiles:
    """Return the files of a store that is a folder on this machine.

    Raises
    ------
    StoreError
        The store is a zip or at a URL.
    """
    files = files_of(store)
    if isinstance(files, ZipFiles):
        raise StoreError(
            f"{files.where}: a packed store, and its folder is needed: "
            f"obygaze store unpack {quote(files.where)}"
        )
    if not isinstance(files, FolderFiles):
        raise StoreError(
            f"{files.where}: not a folder, which is needed; obygaze store unpack or pull makes one of it"
        )
    return files


def _reading_order(name: str) -> tuple[int, str]:
    """Return the key by which files are sorted in a zip: number of their kind, then name.

    What is read first comes first, so that a reader of a zip at a URL needs few requests.
    """
    if name == ROOT_METADATA:
        kind = 0
    elif not name.startswith(PAYLOAD):  # files beside the payload
        kind = 1
    elif name == TABLE:
        kind = 2
    elif name.endswith(ZARR_METADATA):  # metadata of groups and arrays
        kind = 3
    else:  # the arrays
        kind = 4
    return kind, name


def _add_member(
    archive: zipfile.ZipFile, files: StoreFiles, name: str, size: int, expected: str | None
) -> None:
    """Add a file of a store to a zip, and check it against its digest (`expected`; None if it has none).

    Date, system and mode are fixed, so that the same file always gives the same bytes.

    Raises
    ------
    StoreError
        The file has another digest.
    """
    member = zipfile.ZipInfo(f"{files.name}/{name}", EARLIEST_DATE)
    member.create_system = UNIX
    member.external_attr = (stat.S_IFREG | 0o644) << 16  # where Unix has the mode of a file
    member.file_size = size
    digest = hashlib.sha256()
    with archive.open(member, "w") as file:
        for block in files.stream(name):
            digest.update(block)
            file.write(block)
    if expected is not None and digest.hexdigest() != expected:
        raise _digest_error(files, name)


# --- copies elsewhere; one that was stopped resumes
# ---------------------------------------------------------------------------
@checked
def push(store: Place, destination: Path | str, progress: FileProgress | bool | None = None) -> str:
    """Copy a sealed store to `destination` and return its location.

    Run again after a kill, it resumes where it stopped.

    Parameters
    ----------
    store
        A store that is a folder, or its path.
    destination
        A folder to make, s3://BUCKET/NAME, or hf://datasets/OWNER/NAME.
    progress
        Called with (files done, files in all, bytes sent), except by the Hub's library, which shows its own
        progress. Or whether to show a bar: by default only in a notebook.

    Raises
    ------
    StoreError
        If the store states no licence, is partial or damaged, or another store is at `destination`.

    Examples
    --------
    >>> from obygaze_features import open_store, push
    >>> place = push("stores/films", "shared/films-1.0.0")
    >>> open_store(place).names
    ('toy',)
    """
    source = folder_of(store)
    licence = read_attributes(source).get("licence")
    has_licence = bool(licence) and licence != NO_LICENCE
    if not has_licence:
        version = open_files(source).version
        next_version = next_patch(version) if VERSION.fullmatch(version) else "X.Y.Z"
        raise StoreError(
            f"{source.where}: its licence is {licence or 'missing'}, without one others may not use it; "
            "state one when sealing: "
            f"obygaze store seal NAME --licence CC-BY-4.0 (or another) --store-version {next_version}"
        )
    _refuse_partial_copy(source, "push")
    url = as_url(destination)  # None: it is a folder
    with file_progress_shown(progress, "push") as show:
        if url is None:
            return str(download(source, store_path(destination), progress=show).path)
        if url.startswith("s3://"):
            return push_to_s3(source, url, show)

    # It is on the Hub, whose library reads the files itself and reports its own progress. Folder and S3 check
    # each file as they copy it; here damage must be found before the library publishes it.
    _refuse_damaged_files(source)
    target, api = begin_push(url)
    return push_to_hub(source, target, api)


def _refuse_damaged_files(source: FolderFiles) -> None:
    """Raise a StoreError if the digest of a file is not the one that the sealed store records."""
    for name, expected in read_digests(source).items():
        if digest_of(source, name) != expected:
            raise _digest_error(source, name)


def push_to_s3(source: FolderFiles, url: str, progress: FileProgress) -> str:
    """Upload the files of a store that an S3 bucket lacks, so that a stopped push resumes; return the URL.

    S3 stores an object as a whole or not at all, so an object of the right size was uploaded. The tag
    manifest is uploaded first, because it shows which store is being uploaded here. The list of digests is
    uploaded last: a store cannot be read without it, so it shows that the store is complete.

    Parameters
    ----------
    source
        The store.
    url
        Where it is uploaded to.
    progress
        Called with the files uploaded, the files in all, and the bytes sent.

    Raises
    ------
    StoreError
        Another store, or a part of one, is there; or a file of the store is damaged.
    """
    digests = {**read_digests(source), TAG_DIGESTS: digest_of(source, TAG_DIGESTS)}
    client = connect(url)
    sizes = _sizes_on_s3(client, url)
    _refuse_other_objects(client, url, sizes, digests)
    missing = [name for name in sorted(digests) if sizes.get(name) != source.size(name)]

    lock = Lock()  # held while the counts below change
    n_done = len(digests) - len(missing)
    n_bytes_sent = 0

    def upload(name: str) -> None:
        """Check the digest of a file, upload it, and report progress."""
        nonlocal n_done, n_bytes_sent
        data = source.read(name)
        if sha256_of(data) != digests[name]:
            raise _digest_error(source, name)
        _put_object(client, url, name, data)
        with lock:
            n_done += 1
            n_bytes_sent += len(data)
            progress(n_done, len(digests), n_bytes_sent)

    if TAG_DIGESTS in missing:  # first
        upload(TAG_DIGESTS)
    missing_others = [name for name in missing if name not in (TAG_DIGESTS, DIGESTS)]
    run_in_threads(upload, missing_others, WRITERS)
    if DIGESTS in missing:  # last
        upload(DIGESTS)
    return url


def _put_object(client: "ObjectStore", url: str, name: str, data: bytes) -> None:
    """Upload one file of a store to S3.

    Raises
    ------
    StoreError
        It is the tag manifest, and another push has uploaded one already.
    """
    import obstore  # noqa: PLC0415 - obygaze[remote]
    from obstore.exceptions import AlreadyExistsError  # noqa: PLC0415 - the same

    # Of two pushes at the same time, only one can create the tag manifest, which is uploaded first.
    mode: Literal["create", "overwrite"] = "create" if name == TAG_DIGESTS else "overwrite"
    with explain_obstore_errors(url, name):
        try:
            obstore.put(client, name, data, mode=mode)
        except AlreadyExistsError:
            raise StoreError(f"{url}: another push has begun here: push again, or to another place") from None


def _sizes_on_s3(client: "ObjectStore", url: str) -> dict[str, int]:
    """Return the size in bytes of every object below a URL of S3, by its name relative to the URL.

    `client` is the client for this URL.
    """
    import obstore  # noqa: PLC0415 - obygaze[remote]

    sizes = {}
    with explain_obstore_errors(url, "LIST"):
        for page in obstore.list(client, chunk_size=1000):
            for entry in page:
                sizes[entry["path"]] = entry["size"]
    return sizes


def _refuse_other_objects(
    client: "ObjectStore", url: str, sizes: Mapping[str, int], digests: Mapping[str, str]
) -> None:
    """Refuse to upload to a URL with objects that are not part of the same store.

    `sizes` has the bytes of each object that is there, and `digests` the SHA-256 of each file to upload.
    """
    import obstore  # noqa: PLC0415 - obygaze[remote]

    unknown = sorted(sizes.keys() - digests.keys())
    if unknown:
        raise StoreError(
            f"{url}: {unknown[0]} is there, which this store does not have; push to another place"
        )
    if not sizes:
        return
    # The tag manifest is uploaded first, and has the digests of the other manifest and the metadata: it tells
    # one store from another.
    is_same_store = False
    if TAG_DIGESTS in sizes:
        with explain_obstore_errors(url, TAG_DIGESTS):
            tag_manifest = obstore.get(client, TAG_DIGESTS).bytes().to_bytes()
        is_same_store = sha256_of(tag_manifest) == digests[TAG_DIGESTS]
    if not is_same_store:
        raise StoreError(f"{url}: another store, or a part of one, is there; push to another place")


def _digest_error(files: StoreFiles, name: str) -> StoreError:
    """Return the error for a file whose bytes do not have the digest that its store records."""
    return StoreError(
        f"{files.where}/{name}: is not what its digest says; run: obygaze store verify --full {files.where}"
    )


def push_to_hub(source: FolderFiles, target: HubFiles, api: "HfApi") -> str:
    """Upload a store into a dataset repository of the Hub; return its URL with the commit.

    The two manifests are uploaded last, because a store cannot be read without them. The Hub's library skips
    files that are there already, so a stopped push resumes. At the end all files are compared by their
    digests.

    Parameters
    ----------
    source
        The store.
    target
        Repository and folder on the Hub.
    api
        The Hub's client.

    Raises
    ------
    StoreError
        Another push came in between, so that a file on the Hub is another one.
    """
    from huggingface_hub.hf_api import RepoFile  # noqa: PLC0415 - obygaze[remote]

    manifests = [DIGESTS, TAG_DIGESTS]
    folder = target.folder.rstrip("/") or None
    with explain_hub_errors(target.where):
        latest_commit = api.dataset_info(target.repository).sha
        upload = partial(
            api.upload_folder,
            repo_id=target.repository,
            repo_type="dataset",
            folder_path=source.path,
            path_in_repo=folder,
        )
        # With `parent_commit` the Hub refuses a commit if another push came in between.
        commit_of_files = upload(
            commit_message=f"{source.name}: files",
            allow_patterns=None,
            ignore_patterns=manifests,
            parent_commit=latest_commit,
        )
        commit = upload(
            commit_message=f"{source.name}: digests",
            allow_patterns=manifests,
            ignore_patterns=None,
            parent_commit=commit_of_files.oid,
        )
        tree = api.list_repo_tree(
            target.repository, folder, repo_type="dataset", revision=commit.oid, recursive=True
        )
        entries = {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
    pushed = replace(target, commit=commit.oid)
    # The library may divide an upload into several commits, and only the first of them has the parent that is
    # given: another push may have come in between the others. So the files on the Hub are compared.
    digests = {**read_digests(source), TAG_DIGESTS: digest_of(source, TAG_DIGESTS)}
    for name, digest in digests.items():
        if not _is_on_hub(entries.get(target.folder + name), source, name, digest):
            raise StoreError(
                f"{pushed.where}/{name}: another push came in between: push again, which goes on"
            )
    return pushed.where


def _is_on_hub(entry: "RepoFile | None", source: FolderFiles, name: str, digest: str) -> bool:
    """Return whether an entry of a repository is a file of the store, by its digest.

    The Hub states the SHA-256 of large files, which it stores with LFS, and for others the SHA-1 of Git.
    `entry` is None if the Hub has no such file.
    """
    if entry is None:
        return False
    if entry.lfs:
        return bool(entry.lfs.sha256 == digest)
    return bool(entry.blob_id == _git_digest(source, name))


def _git_digest(files: StoreFiles, name: str) -> str:
    """Return the SHA-1 that Git gives a file: of a header with its size, and its bytes."""
    data = files.read(name)
    header = b"blob %d\0" % len(data)
    # It is only compared with what the Hub says, so that SHA-1 is good enough.
    return hashlib.sha1(header + data, usedforsecurity=False).hexdigest()
