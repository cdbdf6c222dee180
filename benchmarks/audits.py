"""Compare the exact and the sampled p of embedding association tests: time, memory and error.

Run by hand: ``python benchmarks/audits.py``. CPU seconds of one thread; the sampled p is drawn ten times.
"""

import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from obygaze_studies.eat.effect_size import MOST_EXACT, Associations, effect, exact, sampled

DRAWS = (1_000, 10_000, 100_000)
SEEDS = range(10)

T = TypeVar("T")


def targets(n: int, shift: float) -> Associations:
    """Draw associations of n + n targets; those of X lie higher."""
    rng = np.random.default_rng(n)
    return Associations(rng.normal(size=n) / 10 + shift / 10, rng.normal(size=n) / 10)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Give a result and the CPU seconds that it took."""
    start = time.process_time()
    return work(), time.process_time() - start


def main() -> None:
    """Print the figures."""
    with threadpool_limits(1):
        print(
            "| targets | partitions | exact p | normal p | exact, s | "
            + " | ".join(f"{n:,} drawn: worst error, s" for n in DRAWS)
            + " |"
        )
        print("| --- " * (5 + len(DRAWS)) + "|")
        for n in (5, 8, 10, 15, 20, MOST_EXACT // 2):
            found = targets(n, 0.5)
            counted, seconds = timed(lambda found=found: exact(found))
            cells = []
            for n_perm in DRAWS:
                drawn, each = timed(
                    lambda found=found, n_perm=n_perm: [
                        sampled(found, n_perm=n_perm, seed=seed).p for seed in SEEDS
                    ]
                )
                worst = max(abs(one - counted.p) for one in drawn)
                cells.append(f"{worst:.5f}, {each / len(SEEDS):.3f}")
            normal = effect(found).p_normal
            print(
                f"| {n} + {n} | {counted.total:,} | {counted.p:.6f} | {normal:.6f} | {seconds:.3f} | "
                + " | ".join(cells)
                + " |"
            )
        print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
