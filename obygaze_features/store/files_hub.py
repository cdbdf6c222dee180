"""Read a store on the Hugging Face Hub, whose library is imported only when a URL is opened.

The library looks for credentials where the Hub's own tools do (`hf auth login`). A URL is
`hf://datasets/OWNER/NAME[@REVISION][/FOLDER]`. A store is read at one commit, and stays in the library's
cache.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path

from obygaze_features.errors import InterruptedTransferError, StoreError
from obygaze_features.store.served import READERS, Listed, explain_missing_library, one_line_message
from obygaze_features.store.store_files import FolderFiles

_HUB_URL = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)(?:@([\w.-]+))?((?:/[\w.-]+)*)/?")
"""URL of a store: repository, revision if there is one, and folder."""
_COMMIT = re.compile(r"[0-9a-f]{40}")

LOST_ON_HUB = (409, 412)
"""Status codes with which the Hub answers if the parent commit is no longer the last one."""


@dataclass(frozen=True)
class HubFiles(Listed):
    """A store in a dataset repository, at one commit.

    Attributes
    ----------
    repository
        `OWNER/NAME`.
    commit
        Its 40 hexadecimal digits; of a URL that was only parsed, any revision, or "".
    folder
        Folder of the store in the repository, with a slash at its end; "" for the repository itself.
    readers
        Number of files to read concurrently.
    """

    repository: str
    commit: str
    folder: str
    readers: int = READERS

    @property
    def where(self) -> str:
        """URL of the store, with the commit."""
        return f"hf://datasets/{self.repository}@{self.commit}/{self.folder}".rstrip("/")

    @property
    def name(self) -> str:
        """Name of the folder, or of the repository."""
        return (self.folder.rstrip("/") or self.repository).rpartition("/")[2]

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return self._download(name).stat().st_size

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file, or the part from `start` to `stop`, from the library's cache; download it if needed.

        Files of the cache are links to where their content lies, so links are followed.
        """
        path = self._download(name)
        return FolderFiles(path.parent, links=True).read(path.name, start, stop)

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks."""
        path = self._download(name)
        return FolderFiles(path.parent, links=True).stream(path.name, start)

    def _download(self, name: str) -> Path:
        """Return the path of a file in the library's cache, downloaded if it is not there."""
        from huggingface_hub import hf_hub_download  # noqa: PLC0415 - obygaze[remote]

        path_in_repository = self.folder + name
        with explain_hub_errors(f"{self.where}/{name}"):
            path = hf_hub_download(
                self.repository, path_in_repository, repo_type="dataset", revision=self.commit
            )
        return Path(path)


def open_hub(url: str) -> HubFiles:
    """Return the files of a store on the Hub, at the commit to which the URL's revision points now.

    With a fixed commit, all files come from one version of the repository, even if it changes meanwhile.
    """
    files = parse_hub_url(url)
    with explain_missing_library(url):
        from huggingface_hub import HfApi  # noqa: PLC0415 - obygaze[remote]

    if _COMMIT.fullmatch(files.commit):
        return files

    with explain_hub_errors(url):
        commit = HfApi().dataset_info(files.repository, revision=files.commit or None).sha
    if not commit or not _COMMIT.fullmatch(commit):
        raise StoreError(f"{url}: the Hub gives no commit for it")
    return replace(files, commit=commit)


def parse_hub_url(url: str) -> HubFiles:
    """Parse a URL hf://datasets/OWNER/NAME[@REVISION][/FOLDER] without a request to the Hub.

    The field `commit` of the result holds the revision as the URL states it, or "" if it states none.
    """
    match = _HUB_URL.fullmatch(url)
    if match is None:
        raise StoreError(f"{url}: expected hf://datasets/OWNER/NAME[@REVISION][/FOLDER]")
    repository, revision, folder = match.groups()
    folder = folder.strip("/")
    return HubFiles(repository, commit=revision or "", folder=f"{folder}/" if folder else "")


@contextmanager
def explain_hub_errors(location: str) -> Iterator[None]:
    """Convert errors of the Hub's library or the network within a `with` block to errors of one line.

    A missing file stays a FileNotFoundError. Errors after which another attempt may succeed become an
    InterruptedTransferError, and all others a StoreError.

    Parameters
    ----------
    location
        URL of the store or file, for the message.
    """
    from huggingface_hub.errors import (  # noqa: PLC0415 - obygaze[remote]
        EntryNotFoundError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    # The library uses httpx or httpx2; the base of its error is the error of the one that it uses.
    any_http_error: type[Exception] = HfHubHTTPError.__bases__[0]

    try:
        yield
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise StoreError(
            f"{location}: no such dataset or revision, or it is private (hf auth login gives access)"
        ) from None
    except LocalEntryNotFoundError as error:  # the file is not in the cache, and the Hub cannot be reached
        raise InterruptedTransferError(f"{location}: {one_line_message(error)}") from None
    except EntryNotFoundError:
        raise FileNotFoundError(2, "the Hub has no such file", location) from None
    except HfHubHTTPError as error:
        code = error.response.status_code
        if code in LOST_ON_HUB:
            raise StoreError(f"{location}: another push came in between: push again, which goes on") from None
        is_server_error = code >= HTTPStatus.INTERNAL_SERVER_ERROR  # 500 and above
        asks_to_wait = code in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
        may_succeed_later = is_server_error or asks_to_wait
        error_class = InterruptedTransferError if may_succeed_later else StoreError
        raise error_class(f"{location}: {one_line_message(error)}") from None
    except HFValidationError as error:
        raise StoreError(f"{location}: {one_line_message(error)}") from None
    except (ConnectionError, any_http_error) as error:
        raise InterruptedTransferError(f"{location}: {one_line_message(error)}") from None
