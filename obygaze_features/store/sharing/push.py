"""Putting a sealed store where others can read it: a folder, S3, the Hub."""

from pathlib import Path

from obygaze_features.store.errors import StoreError
from obygaze_features.store.reading.absent import absent_files
from obygaze_features.store.reading.listing import listed
from obygaze_features.store.reading.locate import check_version
from obygaze_features.store.reading.objects import Folder, digest_of
from obygaze_features.store.reading.remote import as_url
from obygaze_features.store.sharing.transfer import Progress, bring


def push(source: Folder, destination: str, progress: Progress | None = None) -> str:
    """Copy a sealed store to `destination` and return where it is.

    Run again after a kill it goes on where it was.

    Parameters
    ----------
    destination
        A folder to make, s3://BUCKET/NAME, or hf://datasets/OWNER/NAME.

    Raises
    ------
    StoreError
        If the store states no licence, is partial or damaged, or another store is at `destination`.
    """
    licence = check_version(source).get("licence")
    if licence == "NOASSERTION" or not licence:
        raise StoreError(
            f"{source.where}: its licence is {licence or 'not there'}, and nobody may use what has none; "
            "state one when sealing: obygaze store seal NAME --licence CC-BY-4.0 (or what it is) "
            "--store-version 1.0.1"
        )
    if absent_files(source):
        raise StoreError(f"{source.where}: is a partial copy; push the whole store")
    url = as_url(destination)
    if url is None:
        return str(bring(source, Path(destination), progress=progress).path)
    if url.startswith("s3://"):
        from obygaze_features.store.sharing.s3 import push_to_s3  # noqa: PLC0415 - imports obstore

        return push_to_s3(source, url, progress)
    if url.startswith("hf://"):
        from obygaze_features.store.sharing.hub import push_to_hub  # noqa: PLC0415 - imports huggingface_hub

        _check_all(source)
        return push_to_hub(source, url)
    raise StoreError(
        f"{url}: nothing can be pushed over HTTP; copy the folder, or its zip, to where it is served from"
    )


def _check_all(source: Folder) -> None:
    """Find damage before it is published."""
    for name, said in listed(source).items():
        if digest_of(source, name) != said:
            raise StoreError(
                f"{source.where}/{name}: is not what its digest says; "
                f"run: obygaze store verify --full {source.where}"
            )
