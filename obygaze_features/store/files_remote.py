"""Read a sealed store on a server: over HTTP and HTTPS, on S3 through obstore, on the Hugging Face Hub.

obstore and huggingface_hub are imported only when a URL is opened. They look for credentials where the
services' own tools do (AWS_* variables, instance roles, `hf auth login`). A place on the Hub is
`hf://datasets/OWNER/NAME[@REVISION][/FOLDER]`; it is read at one commit and kept in the library's cache.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from obygaze_features.errors import (
    InterruptedTransferError,
    NoRangesError,
    StoreError,
    first_line,
    install_command,
)
from obygaze_features.store.files_zip import ZIP_SUFFIX, open_within
from obygaze_features.store.store_files import BLOCK, FolderFiles, StoreFiles, named, refuse_giants

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult
    from obstore.store import ClientConfig, ObjectStore, RetryConfig
T = TypeVar("T")

READERS = 8
"""Requests under way at a time."""

STEP, SLOW_S = 1 << 16, 60.0
"""A transfer is aborted if the server sends fewer than STEP bytes in SLOW_S seconds, or none at all."""

REQUESTS = 4
"""How often a part is asked for without obstore, which repeats requests by itself."""

_NOWHERE = "127.0.0.1:0"
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_ENDPOINTS = (
    *("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_STS"),
    *("AWS_METADATA_ENDPOINT", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
)

_CREDENTIALS = (
    *("amazonaws.com", "amazonaws.com.cn", "169.254.169.254", "169.254.170.2", "169.254.170.23"),
    *("fd00:ec2::254", "fd00:ec2::23"),
)
"""Hosts of AWS, and those inside its machines that serve credentials."""
BACKSLASH = "\\"
# A path that went through pathlib has lost one of its slashes, or has those of Windows.
_URL = re.compile(r"(https?|s3|hf):[/\\]+(?=[^/\\])")
_PLACE = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+?)(?:@([\w./-]+?))?((?:/[\w.-]+)*)")
_PINNED = re.compile(r"[0-9a-f]{40}")


def as_url(path: Path | str) -> str | None:
    """Return a place as a URL without its last slash, or None if it is a path."""
    text = str(path)
    match = _URL.match(text)
    return f"{match[1]}://{text[match.end() :].replace(BACKSLASH, '/').rstrip('/')}" if match else None


def open_url(url: str) -> StoreFiles:
    """Find the store at a URL: a folder, or a zip by its name. Nothing is read of a folder yet.

    Raises
    ------
    StoreError
        If the URL cannot be one, or a zip is not what `pack` writes.
    """
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        host = parts.hostname or ""
        raise StoreError(
            f"{parts.scheme}://{host}{parts.path}: this URL also has a user, a query or a fragment, which "
            "would be stored and shown; give the plain URL, and credentials where the library looks for them"
        )
    if parts.scheme == "hf":
        return open_hub(url)
    above, _, name = url.rpartition("/")
    is_zip = name.lower().endswith(ZIP_SUFFIX)
    place, own = (above, "") if is_zip else (url, name)
    plain = parts.scheme != "s3" and find_spec("obstore") is None
    files = WebFiles(place, own) if plain else HttpFiles(place, own, connect(place))
    return open_within(files, name, url) if is_zip else files


@contextmanager
def naming_extra(url: str) -> Iterator[None]:
    """Name the extra to install if a client library is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise StoreError(
            f"{url}: this needs {error.name}; install it with: {install_command('obygaze[remote]')}"
        ) from error


# --- HTTP, HTTPS and S3
# ---------------------------------------------------------------------------
def connect(url: str) -> "ObjectStore":
    """Make the client for everything below a URL; no request is sent yet.

    Raises
    ------
    StoreError
        If the URL cannot be one, or obstore is not installed.
    """
    with naming_extra(url):
        from obstore.exceptions import BaseError  # noqa: PLC0415 - obygaze[remote]
        from obstore.store import HTTPStore, S3Store  # noqa: PLC0415 - obygaze[remote]

    # The client does not try again after a silence, which takes longer than this.
    waits: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=SLOW_S / 2)}
    # No limit for a whole file: a shard may take long. `read_timeout` is for a silent server.
    client: ClientConfig = {"timeout": timedelta(hours=6), "read_timeout": timedelta(seconds=SLOW_S)}
    try:
        client["allow_http"] = not url.startswith("https://")  # for S3, AWS_ENDPOINT_URL may be http
        if url.startswith("s3://"):
            return S3Store.from_url(url, client_options={**client, **_known_hosts()}, retry_config=waits)
        return HTTPStore.from_url(url, client_options=client, retry_config=waits)
    except (BaseError, ValueError) as error:
        raise StoreError(f"{url}: {_line(error)}") from None


def _known_hosts() -> "ClientConfig":
    """Return settings with which S3's client reaches the endpoint's host, and no other.

    The client follows redirections and takes the session token along (obstore has no setting for either).
    All other hosts are therefore left to a proxy that is not there. Where the environment names a proxy, that
    one stays.
    """
    if any(map(os.environ.get, _PROXIES)) or os.environ.get("AWS_SKIP_SIGNATURE", "").lower() == "true":
        return {}
    named = [urlsplit(os.environ.get(name, "")).hostname or "" for name in _ENDPOINTS]
    return {
        "proxy_url": f"http://{_NOWHERE}",
        "proxy_excludes": ",".join([*filter(None, named), *_CREDENTIALS]),
    }


@dataclass(frozen=True)
class HttpFiles:
    """A store that is a folder on a server; its files are those of the lists of digests."""

    where: str
    name: str
    store: "ObjectStore"
    readers: int = READERS

    def names(self) -> list[str]:
        """List the files that the lists of digests name."""
        return named(self)

    def is_plain(self, _name: str) -> bool:
        """Whether it is plain: a server has nothing else."""
        return True

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        import obstore  # noqa: PLC0415 - obygaze[remote]

        with asking(self.where, name):
            return obstore.head(self.store, name)["size"]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file or a part of it in one request."""
        if stop is not None and start >= 0 and stop <= start:
            return b""
        with asking(self.where, name):
            result = self._get(name, start, stop)
            first, last = result.range
            refuse_giants(last - first, f"{self.where}/{name}")
            return b"".join(self._blocks(result, name))

    def read_tagged(self, name: str, most: int) -> tuple[bytes, str]:
        """Read a file of at most `most` bytes, and the tag by which the server knows these bytes (ETag)."""
        with asking(self.where, name):
            result = self._get(name, 0, None)
            if (size := result.meta["size"]) > most:
                raise StoreError(f"{self.where}/{name}: {size} bytes are more than it may have ({most})")
            return b"".join(self._blocks(result, name)), result.meta["e_tag"] or ""

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks as they come."""
        with asking(self.where, name):
            yield from self._blocks(self._get(name, start, None), name)

    def _blocks(self, result: "GetResult", name: str) -> Iterator[bytes]:
        """Yield blocks as they arrive; abort if the server is too slow.

        Blocks have the size in which they arrive: larger ones of a slow server might never be full.
        """
        return _in_time(map(bytes, result.stream(min_chunk_size=1)), self.where, name)

    def _get(self, name: str, start: int, stop: int | None) -> "GetResult":
        import obstore  # noqa: PLC0415 - obygaze[remote]

        options: GetOptions = {}
        if start < 0:
            options["range"] = {"suffix": -start}
        elif stop is not None:
            options["range"] = (start, stop)
        elif start:
            options["range"] = {"offset": start}
        return obstore.get(self.store, name, options=options)


def _in_time(blocks: Iterable[bytes], where: str, name: str) -> Iterator[bytes]:
    """Yield blocks; abort if they are too slow."""
    until, came = time.monotonic() + SLOW_S, 0
    for block in blocks:
        yield block
        came += len(block)
        now = time.monotonic()
        if came >= STEP:
            until, came = now + SLOW_S, 0
        elif now > until:
            raise _slow(where, name)


# --- HTTP and HTTPS by the standard library, on a laptop's install
# ---------------------------------------------------------------------------
_OPENER = OpenerDirector()  # of these protocols alone: a redirection leads to no file
for _handler in (
    *(ProxyHandler, UnknownHandler, HTTPHandler, HTTPSHandler),
    *(HTTPDefaultErrorHandler, HTTPRedirectHandler, HTTPErrorProcessor),
):
    _OPENER.add_handler(_handler())


@dataclass(frozen=True)
class WebFiles:
    """A store that is a folder on a server, read without obstore: one connection a request."""

    where: str
    name: str
    readers: int = READERS

    def names(self) -> list[str]:
        """List the files that the lists of digests name."""
        return named(self)

    def is_plain(self, _name: str) -> bool:
        """Whether it is plain: a server has nothing else."""
        return True

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        with self._asked(name, method="HEAD") as answer:
            length = answer.headers.get("Content-Length", "")
            if not length.isdecimal():
                raise StoreError(f"{self.where}/{name}: the server does not say how large it is")
            return int(length)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file or a part of it; asked again where the server breaks off."""
        if stop is not None and start >= 0 and stop <= start:
            return b""
        for left in reversed(range(REQUESTS)):
            data = bytearray()
            try:
                with self._asked(name, start, stop) as answer:
                    for block in self._blocks(answer, name):
                        data += block
                        refuse_giants(len(data) + (answer.length or 0), f"{self.where}/{name}")
                break
            except InterruptedTransferError:
                if not left:
                    raise
        return bytes(data)

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks as they come."""
        with self._asked(name, start) as answer:
            yield from self._blocks(answer, name)

    def _blocks(self, answer: HTTPResponse, name: str) -> Iterator[bytes]:
        yield from _in_time(iter(lambda: answer.read1(BLOCK), b""), self.where, name)
        if answer.length:
            raise InterruptedTransferError(f"{self.where}/{name}: the server breaks off")

    @contextmanager
    def _asked(
        self, name: str, start: int = 0, stop: int | None = None, method: str = "GET"
    ) -> Iterator[HTTPResponse]:
        """Send a request; turn errors of the server or the network into one line."""
        last = "" if stop is None else stop - 1
        part = {"Range": f"bytes={start}" if start < 0 else f"bytes={start}-{last}"}
        asked = start != 0 or stop is not None
        headers = part if asked else {}
        request = Request(f"{self.where}/{quote(name)}", headers=headers, method=method)  # noqa: S310 - http
        try:
            with _OPENER.open(request, timeout=SLOW_S) as answer:
                if asked and answer.status != HTTPStatus.PARTIAL_CONTENT:
                    raise _no_ranges(self.where)
                yield answer
        except HTTPError as error:
            error.close()
            if error.code in (404, 410):
                raise FileNotFoundError(2, "the server has no such file", f"{self.where}/{name}") from None
            again = error.code >= 500 or error.code in (408, 429)
            kind = InterruptedTransferError if again else StoreError
            raise kind(f"{self.where}/{name}: {_line(error)}") from None
        except TimeoutError:
            raise _slow(self.where, name) from None
        except (URLError, HTTPException, ConnectionError) as error:
            raise InterruptedTransferError(f"{self.where}/{name}: {_line(error)}") from None


@contextmanager
def asking(where: str, name: str) -> Iterator[None]:
    """Turn errors of the server or the network into one line."""
    from obstore.exceptions import (  # noqa: PLC0415 - obygaze[remote]
        BaseError,
        GenericError,
        NotSupportedError,
        PermissionDeniedError,
        UnauthenticatedError,
    )

    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(2, "the server has no such file", f"{where}/{name}") from None
    except NotSupportedError as error:
        if "ange" not in str(error):
            raise StoreError(f"{where}/{name}: {_line(error)}") from None
        raise _no_ranges(where) from None
    except (PermissionDeniedError, UnauthenticatedError):
        raise StoreError(
            f"{where}/{name}: the server refuses access; credentials are looked for where its own tools look"
        ) from None
    except BaseError as error:
        if f"{_NOWHERE}," in str(error):
            raise StoreError(
                f"{where}/{name}: the server redirects to another host, and credentials of S3 are not sent "
                "there; if you trust that host, name it in AWS_ENDPOINT_URL"
            ) from None
        if "kind: Connect," in str(error):  # part of obstore's description of its retries
            raise InterruptedTransferError(
                f"no server answers at {urlsplit(where).netloc or where}; check the address of {where}"
            ) from None
        if "source: TimedOut," in str(error):  # `read_timeout`; asked again, it would be waited for again
            raise _slow(where, name) from None
        again = isinstance(error, GenericError) and "redirect" not in str(error)
        kind = InterruptedTransferError if again else StoreError
        raise kind(f"{where}/{name}: {_line(error)}") from None


def _no_ranges(where: str) -> NoRangesError:
    """Say that a server gives whole files only."""
    return NoRangesError(
        f"{where}: this server gives whole files only and this needs parts of them (range requests); "
        "pull the store, or serve it with nginx, Apache or S3"
    )


def _slow(where: str, name: str) -> StoreError:
    return StoreError(
        f"{where}/{name}: the server sends less than {STEP // 1024} KiB in {SLOW_S:.0f} s; "
        "run the command again later (a pull goes on where it stopped)"
    )


def _line(error: BaseException) -> str:
    """Return the first line of a message, without retries, queries, and the page that a server sent."""
    text = first_line(error)
    text = re.sub(r"^.* after \d+ retries, .*? +- ", "", text)
    return re.sub(r"\?\S*", "", text.partition(": <")[0]).strip()[:300]


# --- the Hugging Face Hub
# ---------------------------------------------------------------------------
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
        return FolderFiles(path.parent, links=True).read(path.name, start, stop)

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks."""
        path = self._here(name)
        return FolderFiles(path.parent, links=True).stream(path.name, start)

    def _here(self, name: str) -> Path:
        from huggingface_hub import hf_hub_download  # noqa: PLC0415 - obygaze[remote]

        with asking_hub(f"{self.where}/{name}"):
            return Path(
                hf_hub_download(
                    self.repository, self.folder + name, repo_type="dataset", revision=self.commit
                )
            )


def open_hub(url: str) -> HubFiles:
    """Find a store on the Hub and pin the commit of its revision."""
    files = place_of(url)
    with naming_extra(url):
        from huggingface_hub import HfApi  # noqa: PLC0415 - obygaze[remote]

    if _PINNED.fullmatch(files.commit):
        return files
    with asking_hub(url):
        commit = HfApi().dataset_info(files.repository, revision=files.commit or None).sha
    if not commit or not _PINNED.fullmatch(commit):
        raise StoreError(f"{url}: the Hub gives no commit for it")
    return replace(files, commit=commit)


def place_of(url: str) -> HubFiles:
    """Parse a URL of the Hub; the commit is the revision in it, or empty."""
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
    except LocalEntryNotFoundError as error:  # it is not in the cache, and the Hub cannot be reached
        raise InterruptedTransferError(f"{where}: {_line(error)}") from None
    except EntryNotFoundError:
        raise FileNotFoundError(2, "the Hub has no such file", where) from None
    except HfHubHTTPError as error:
        code = error.response.status_code
        kind = InterruptedTransferError if code >= 500 or code in (408, 429) else StoreError
        raise kind(f"{where}: {_line(error)}") from None
    except HFValidationError as error:
        raise StoreError(f"{where}: {_line(error)}") from None
    except (ConnectionError, any_http_error) as error:
        raise InterruptedTransferError(f"{where}: {_line(error)}") from None
