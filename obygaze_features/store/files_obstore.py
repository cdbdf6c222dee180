"""Read a store on S3, or over HTTP and HTTPS, through obstore, which is imported only when a URL is opened.

It looks for credentials where the services' own tools do: AWS_* variables, instance roles.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from obygaze_features.errors import InterruptedTransferError, StoreError
from obygaze_features.store import served
from obygaze_features.store.served import (
    Answer,
    ServedFiles,
    explain_missing_library,
    file_ends_error,
    no_ranges_error,
    one_line_message,
    too_slow_error,
    wrong_part_error,
)
from obygaze_features.templates import packaged

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_DEAD_PROXY = "127.0.0.1:0"
"""Address of a proxy that is not there: nothing can be reached through it."""
_ANOTHER_PART = re.compile(r"Requested \d+\.\.\d+, got \d+\.\.\d+|(?i:content[-_]range) header")
"""What obstore's messages have if a server sends another part than is asked for, or does not say which."""
_HOSTS = packaged(__package__, "s3_hosts.toml")
"""Names of environment variables with proxies and endpoints, and hosts that give credentials."""


def connect(url: str) -> "ObjectStore":
    """Make obstore's client for everything below a URL; no request is sent yet.

    Raises
    ------
    StoreError
        If the URL is not a valid one, or obstore is not installed.
    """
    with explain_missing_library(url):
        from obstore.exceptions import BaseError  # noqa: PLC0415 - obygaze[remote]
        from obstore.store import HTTPStore, S3Store  # noqa: PLC0415 - obygaze[remote]

    # The client repeats a failed request for `retry_timeout` seconds. After a silence of `read_timeout`,
    # which is longer, it gives up.
    waits: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=served.SLOW_S / 2)}
    # Six hours stand for no limit for a whole file: a shard may take long. `read_timeout` is for a silent
    # server.
    client: ClientConfig = {"timeout": timedelta(hours=6), "read_timeout": timedelta(seconds=served.SLOW_S)}
    try:
        client["allow_http"] = not url.startswith("https://")  # for S3, AWS_ENDPOINT_URL may be http
        if url.startswith("s3://"):
            client_of_s3: ClientConfig = {**client, **_only_known_hosts()}
            return S3Store.from_url(url, client_options=client_of_s3, retry_config=waits)
        return HTTPStore.from_url(url, client_options=client, retry_config=waits)
    except (BaseError, ValueError) as error:
        raise StoreError(f"{url}: {one_line_message(error)}") from None


def _only_known_hosts() -> "ClientConfig":
    """Return client settings that let S3 requests reach the configured endpoints and no other host.

    The client follows redirects to other hosts and sends the session token there; obstore has no setting
    against either. Therefore requests are sent through a proxy that does not exist, and so fail, unless they
    go to a known host. This is not needed if requests are unsigned, because these carry no token. If the
    environment names a proxy, that proxy is kept and nothing is set.
    """
    has_proxy = any(os.environ.get(name) for name in _HOSTS["proxies"])
    is_unsigned = os.environ.get("AWS_SKIP_SIGNATURE", "").lower() == "true"
    if has_proxy or is_unsigned:
        return {}

    known_hosts = []
    for name in _HOSTS["endpoints"]:
        host = urlsplit(os.environ.get(name, "")).hostname
        if host:
            known_hosts.append(host)
    known_hosts += _HOSTS["credentials"]  # of the services that give credentials

    # All requests but those to the known hosts go to the proxy.
    return {"proxy_url": f"http://{_DEAD_PROXY}", "proxy_excludes": ",".join(known_hosts)}


@dataclass(frozen=True)
class ObstoreFiles(ServedFiles):
    """A store that is a folder on a server; `client` is made for its URL, and repeats requests by itself."""

    client: "ObjectStore" = field(kw_only=True)

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        import obstore  # noqa: PLC0415 - obygaze[remote]

        with explain_obstore_errors(self.where, name):
            return obstore.head(self.client, name)["size"]

    @contextmanager
    def answer(self, name: str, start: int, stop: int | None) -> Iterator[Answer]:
        """Request a file, or the part from `start` to `stop`, and yield the server's answer."""
        import obstore  # noqa: PLC0415 - obygaze[remote]

        options: GetOptions = {}
        if start < 0:  # the last bytes
            options["range"] = {"suffix": -start}
        elif stop is not None:
            options["range"] = (start, stop)
        elif start:  # from there to the end
            options["range"] = {"offset": start}
        with explain_obstore_errors(self.where, name):
            result = obstore.get(self.client, name, options=options)
            first_byte, end_byte = result.range
            # Blocks are passed on in the size in which they arrive: a slow server might never fill larger
            # ones.
            blocks = map(bytes, result.stream(min_chunk_size=1))
            yield Answer(end_byte - first_byte, result.meta["e_tag"] or "", blocks)


@contextmanager
def explain_obstore_errors(location: str, name: str) -> Iterator[None]:
    """Convert errors of obstore within a `with` block to errors of one line.

    A missing file stays a FileNotFoundError. Errors after which another attempt may succeed become an
    InterruptedTransferError, and all others a StoreError.

    Parameters
    ----------
    location
        URL of the store, for the message.
    name
        The requested file.
    """
    from obstore.exceptions import (  # noqa: PLC0415 - obygaze[remote]
        BaseError,
        NotSupportedError,
        PermissionDeniedError,
        UnauthenticatedError,
    )

    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(2, "the server has no such file", f"{location}/{name}") from None
    except NotSupportedError as error:
        is_about_ranges = "range" in str(error).lower()
        if is_about_ranges:
            raise no_ranges_error(location, name) from None
        raise StoreError(f"{location}/{name}: {one_line_message(error)}") from None
    except (PermissionDeniedError, UnauthenticatedError):
        raise StoreError(
            f"{location}/{name}: the server refuses access; credentials are looked for where its own tools "
            "look"
        ) from None
    except BaseError as error:
        raise _transfer_error(error, location, name) from None


def _transfer_error(error: Exception, location: str, name: str) -> StoreError:
    """Return the error of one line for an error of obstore that has no class of its own.

    What happened is read from obstore's message, which describes its retries and their causes.
    """
    from obstore.exceptions import GenericError  # noqa: PLC0415 - obygaze[remote]

    message = str(error)
    is_to_other_host = f"{_DEAD_PROXY}," in message  # the proxy to which such requests are sent
    if is_to_other_host:
        return StoreError(
            f"{location}/{name}: the server redirects to another host, and credentials of S3 are not sent "
            "there; if you trust that host, name it in AWS_ENDPOINT_URL"
        )

    if "kind: Connect," in message:
        return InterruptedTransferError(
            f"no server answers at {urlsplit(location).netloc or location}; check the address of {location}"
        )
    if "status code: 416 " in message:  # range not satisfiable
        return file_ends_error(location, name)
    if _ANOTHER_PART.search(message):
        return wrong_part_error(location, name)
    if "source: TimedOut," in message:  # `read_timeout`; asked again, it would be waited for again
        return too_slow_error(location, name)

    may_succeed_later = isinstance(error, GenericError) and "redirect" not in message
    error_class = InterruptedTransferError if may_succeed_later else StoreError
    return error_class(f"{location}/{name}: {one_line_message(error)}")
