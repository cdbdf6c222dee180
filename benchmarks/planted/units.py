"""Units without labels (`model units`): planted atoms found, and nothing found where nothing is.

A token is a sum of 4 of 64 atoms in 256 dimensions, of weights .5 to 1.5, and noise of .3 of an atom's
length. Atoms are random directions, active independently or in pairs half of the time; or they have a cosine
of .5 with each other.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import cpu_s
from benchmarks.planted.corpora import smooth
from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from obygaze_models.concepts.dictionary import Dictionary, strongest_activations
from obygaze_models.concepts.dictionary_learning import learn_dictionary
from obygaze_models.evaluation.significance import associate

N_ATOMS = 64
WIDTH = 256
N_AT_ONCE = 4
N_TOKENS = 16
NOISE = 0.3
N_MOVIES = 12
N_CLIPS = 40


def tokens_of(
    rng: np.random.Generator, n: int, pairs: float = 0.0, cosine: float = 0.0
) -> tuple[NDArray[np.float32], Floats]:
    """Draw tokens [n / 16, 16, D], and the atoms [A, D]."""
    atoms = rng.normal(size=(N_ATOMS, WIDTH))
    shared = rng.normal(size=WIDTH)
    shared /= np.linalg.norm(shared)
    atoms -= (atoms @ shared)[:, None] * shared
    atoms *= np.sqrt(1 - cosine) / np.linalg.norm(atoms, axis=1, keepdims=True)
    atoms += np.sqrt(cosine) * shared
    chosen = np.argsort(rng.random((n, N_ATOMS)), axis=1)[:, :N_AT_ONCE]
    partner = chosen[:, ::2] ^ 1
    chosen[:, 1::2] = np.where(rng.random(partner.shape) < pairs, partner, chosen[:, 1::2])
    weights = np.zeros((n, N_ATOMS))
    weights[np.arange(n)[:, None], chosen] = rng.uniform(0.5, 1.5, chosen.shape)
    tokens = weights @ atoms + NOISE * rng.normal(size=(n, WIDTH)) / np.sqrt(WIDTH)
    return tokens.reshape(-1, N_TOKENS, WIDTH).astype(np.float32), atoms


def dictionary_of(tokens: NDArray[np.float32], n_units: int, n_active: int = N_AT_ONCE) -> Dictionary:
    """Learn units on tokens [N, T, D]."""
    return learn_dictionary(
        lambda rows: tokens[rows].reshape(-1, tokens.shape[-1]),
        len(tokens), n_units=n_units, n_active=n_active, n_epochs=12, seed=0,
    )  # fmt: skip


def of_atoms(rng: np.random.Generator, n_units: int, pairs: float, cosine: float) -> Draw:
    """Learn units, and find the nearest of each atom."""
    tokens, atoms = tokens_of(rng, 20_000, pairs, cosine)
    dictionary = dictionary_of(tokens, n_units)
    nearest = (atoms @ dictionary.decoder.T).max(axis=1)
    return {
        "mean cosine": nearest,
        "atoms above .9": nearest > 0.9,
        "unexplained": dictionary.unexplained,
        "dead": dictionary.n_dead / n_units,
    }


def of_nothing(rng: np.random.Generator, share: float, order: float) -> Draw:
    """Learn units on tokens each of whose dimensions is dealt anew to clips; compare with smooth labels."""
    tokens, _ = tokens_of(rng, N_MOVIES * N_CLIPS * N_TOKENS)
    for column in range(WIDTH):
        tokens[..., column] = tokens[rng.permutation(len(tokens)), :, column]
    dictionary = learn_dictionary(
        lambda rows: tokens[rows].reshape(-1, WIDTH),
        len(tokens), n_units=256, n_active=N_AT_ONCE, n_epochs=2, seed=0,
    )  # fmt: skip
    movies = np.repeat(np.arange(N_MOVIES), N_CLIPS)
    latent = np.concatenate([smooth(rng, N_CLIPS, order) for _ in range(N_MOVIES)])
    latent = latent[:, 0] + 0.5 * rng.normal(size=N_MOVIES)[movies]
    present = (latent < np.quantile(latent, share))[:, None]
    largest, _ = strongest_activations(dictionary, tokens)
    _, p = associate(largest, present, movies.astype(str), seed=int(rng.integers(2**31)))
    return {"a unit found": (p <= 0.05).any()}


def of_cost(rng: np.random.Generator, n_clips: int) -> Draw:
    """Train 4,096 units for an epoch on 16 tokens of 768 numbers a clip, and in torch by a plain loop."""
    from benchmarks.planted.plain_autoencoder import plain_loop

    tokens = rng.standard_normal((64, N_TOKENS, 768), np.float32)
    sizes = {"n_units": 4096, "n_active": 32}
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the highest use of memory is counted from here
    before = _kilobytes("VmRSS")
    start = cpu_s()
    dictionary = learn_dictionary(
        lambda rows: tokens[rows % 64].reshape(-1, 768), n_clips, n_epochs=1, seed=0, **sizes
    )
    ours = cpu_s() - start
    memory = _kilobytes("VmHWM") - before
    start = cpu_s()
    plain_loop(tokens.reshape(-1, 768), dictionary.step, **sizes)
    theirs = cpu_s() - start
    return {"CPU s": ours, "plain loop, CPU s": theirs, "ratio": ours / theirs, "MB": memory / 1000}


def _kilobytes(name: str) -> int:
    return int(Path("/proc/self/status").read_text("ascii").split(f"{name}:")[1].split()[0])


ROWS = [
    Row(
        "units", "docs/when.md", "model units", "Known directions (atoms), and the units nearest to them.",
        ("atoms", "units"),
        [*(Cell((name, str(n)), (n, pairs, 0.0), {"mean cosine": Column(0.95)})
           for name, pairs in (("independent", 0.0), ("half in pairs", 0.5)) for n in (128, 512)),
         Cell(("cosine .5 with each other", "128"), (128, 0.0, 0.5))],
        of_atoms,
        {"mean cosine": Column(), "atoms above .9": Column(digits=2), "unexplained": Column(),
         "dead": Column(digits=2)},
        full=5, small=1, small_cells=1,
    ),
    Row(
        "units-null", "docs/when.md", "model units --labels",
        "Each dimension of the tokens is redistributed among the clips, so that no unit is related to the "
        "concept: share of runs in which a unit is found that goes with it.",
        ("clips with the concept", "correlation of neighbours"),
        [Cell((f"{share:g}", f"{order:g}"), (share, order), {"a unit found": Column(high=0.08)})
         for share, order in ((0.3, 0.8), (0.1, 0.8), (0.3, 0.95))],
        of_nothing, {"a unit found": Column()}, full=200, small=2, small_cells=1,
    ),
    Row(
        "units-cost", "docs/when.md", "model units",
        "Cost of an epoch: CPU seconds, those of a plain loop in torch, and additional memory (16 tokens of "
        "768 numbers a clip, 4,096 units of which 32 are active).",
        ("clips",), [Cell(("1,914",), (1914,))], of_cost,
        {"CPU s": Column(digits=0), "plain loop, CPU s": Column(digits=0),
         "ratio": Column(high=1.3, digits=2), "MB": Column(high=300, digits=0)},
        full=1, small=1, small_cells=1,
    ),
]  # fmt: skip
