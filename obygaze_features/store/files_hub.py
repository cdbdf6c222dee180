"""Read a sealed store on the Hugging Face Hub, through its library.

A place is `hf://datasets/OWNER/NAME[@REVISION][/FOLDER]`; it is read at one commit and kept in the library's
cache. The library is imported only when such a place is opened, and looks for credentials where its own tools
do (`hf auth login`).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from obygaze_features.errors import InterruptedTransferError, StoreError, first_line
from obygaze_features.store.store_files import FolderFiles, OnPiece, named

_PLACE = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+?)(?:@([\w./-]+?))?((?:/[\w.-]+)*)")
_PINNED = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class HubFiles:
    """A store in a dataset repository, at one commit; `folder` is empty or ends with a slash."""

    repository: str
    commit: str
    folder: str
    readers: int = 8

    @property
    def where(self) -> str:
        """Its place, with the commit."""
        return f"hf://datasets/{self.repository}@{self.commit}/{self.folder}".rstrip("/")

    @property
    def name(self) -> str:
        """Name of the folder, or of the repository."""
        return (self.folder.rstrip("/") or self.repository).rpartition("/")[2]

    def names(self) -> list[str]:
        """List the files that the lists of digests name."""
        return named(self)

    def is_plain(self, _name: str) -> bool:
        """Whether it is plain: the Hub has nothing else."""
        return True

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return self._here(name).stat().st_size

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file or a part of it."""
        path = self._here(name)
        return FolderFiles(path.parent).read(path.name, start, stop)

    def fill(self, name: str, buffer: memoryview, seen: OnPiece) -> tuple[int, bytes]:
        """Read the beginning of a file into a buffer."""
        path = self._here(name)
        return FolderFiles(path.parent).fill(path.name, buffer, seen)

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks."""
        path = self._here(name)
        return FolderFiles(path.parent).stream(path.name, start)

    def _here(self, name: str) -> Path:
        from huggingface_hub import hf_hub_download  # noqa: PLC0415 - obygaze[remote]

        with asking_hub(f"{self.where}/{name}"):
            return Path(
                hf_hub_download(
                    self.repository, self.folder + name, repo_type="dataset", revision=self.commit
                )
            )


def open_hub(url: str) -> HubFiles:
    """Find a store on the Hub and pin the commit that its revision is now."""
    place = place_of(url)
    with naming_extra(url):
        from huggingface_hub import HfApi  # noqa: PLC0415 - obygaze[remote]

    if _PINNED.fullmatch(place.commit):
        return place
    with asking_hub(url):
        commit = HfApi().dataset_info(place.repository, revision=place.commit or None).sha
    if not commit or not _PINNED.fullmatch(commit):
        raise StoreError(f"{url}: the Hub gives no commit for it")
    return replace(place, commit=commit)


def place_of(url: str) -> HubFiles:
    """Take the parts of an address; the commit is the revision that it names, or empty."""
    match = _PLACE.fullmatch(url)
    if match is None:
        raise StoreError(f"{url}: expected hf://datasets/OWNER/NAME[@REVISION][/FOLDER]")
    folder = match[3].strip("/")
    return HubFiles(match[1], match[2] or "", f"{folder}/" if folder else "")


@contextmanager
def asking_hub(where: str) -> Iterator[None]:
    """Turn errors of the Hub's library or the network into one line."""
    from huggingface_hub.errors import (  # noqa: PLC0415 - obygaze[remote]
        EntryNotFoundError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    any_http_error: type[Exception] = HfHubHTTPError.__bases__[0]  # httpx's or httpx2's, as the library chose
    try:
        yield
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise StoreError(
            f"{where}: no such dataset or revision, or it is private (hf auth login gives access)"
        ) from None
    except LocalEntryNotFoundError as error:  # it is not in the cache, and the Hub cannot be asked
        raise InterruptedTransferError(f"{where}: {_hub_line(error)}") from None
    except EntryNotFoundError:
        raise FileNotFoundError(2, "the Hub has no such file", where) from None
    except HfHubHTTPError as error:
        code = error.response.status_code
        kind = InterruptedTransferError if code >= 500 or code in (408, 429) else StoreError
        raise kind(f"{where}: {_hub_line(error)}") from None
    except HFValidationError as error:
        raise StoreError(f"{where}: {_hub_line(error)}") from None
    except (ConnectionError, any_http_error) as error:
        raise InterruptedTransferError(f"{where}: {_hub_line(error)}") from None


def _hub_line(error: BaseException) -> str:
    text = first_line(error)
    return re.sub(r"\?\S*", "", text).strip()[:300]


@contextmanager
def naming_extra(url: str) -> Iterator[None]:
    """Name the extra to install where a client's library is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise StoreError(
            f"{url}: this needs {error.name}; install it with: pip install 'obygaze[remote]'"
        ) from error
