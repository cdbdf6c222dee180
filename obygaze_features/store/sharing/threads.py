"""One function over many names, several at once."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor


def each(work: Callable[[str], None], names: Iterable[str], threads: int) -> None:
    """Call `work` for every name; the first error ends it, and what has not begun by then is left."""
    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(work, name) for name in names]
        try:
            for job in running:
                job.result()
        except BaseException:
            for job in running:
                job.cancel()
            raise
