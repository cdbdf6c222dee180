"""What every test may ask for."""

import gc
import importlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import obygaze_features as of
import obygaze_models as om
from obygaze_features import sandbox
from obygaze_features.manifest import Codebook, Manifest, builtin_codebook
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset import Dataset
from obygaze_models.protocol import Labels
from obygaze_studies.mobygaze import import_mobygaze
from obygaze_studies.obygaze12 import import_obygaze12
from tests.browsers import running_chromium

# No test depends on how busy the machine is, nor on chance: examples follow from each test's own code.
# `make fuzz` tries others, and eighty times as many.
PROFILE = settings(
    deadline=None,
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("obygaze", PROFILE, derandomize=True, database=None)
settings.register_profile(
    "fuzz", PROFILE, derandomize=False, database=None, max_examples=1000, print_blob=True
)
settings.load_profile("obygaze")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search for no garbage while tests are collected: there is none, and it takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what collecting made out of every later search for garbage, and note large libraries in it.

    Later searches are a tenth as frequent: they took a fiftieth of the time.
    """
    session.config.heavy = {"matplotlib", "ray", "torch", "transformers"} & sys.modules.keys()
    gc.freeze()
    gc.set_threshold(7000, 10, 10)


@pytest.fixture(scope="session", autouse=True)
def _no_constants_of_whatever_is_imported() -> Iterator[None]:
    """Keep Hypothesis from drawing constants of our modules: which are imported depends on earlier tests."""
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")
    with pytest.MonkeyPatch.context() as patch:
        if settings().derandomize and hasattr(providers, "_get_local_constants"):
            patch.setattr(providers, "_get_local_constants", providers.Constants)
        yield


@pytest.fixture(scope="session", autouse=True)
def _servers_of_the_tests_alone() -> Iterator[None]:
    """Reach servers here directly, and with what a test states: no proxy, no credentials from outside."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.lower() in {"http_proxy", "https_proxy", "all_proxy"} or name.startswith("AWS_"):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk() -> Iterator[None]:
    """Force nothing to the disk in this process: `tests/disk` tries power cuts, in processes of its own."""
    with pytest.MonkeyPatch.context() as patch:
        if "SIMULATED" not in os.environ:  # simulated systems refuse what theirs would refuse to force
            patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _files_are_read_here() -> Iterator[None]:
    """Read the files of strangers in this process, as their child does: a fork of this one takes some 30 ms.

    `test_limits.py` has children.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sandbox._state, "is child", True)
        yield


SHARED_DATA = Path(os.environ.get("OBYGAZE_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real annotations, videos and oracles, which the project's licence forbids to carry along."""
    if not SHARED_DATA.is_dir():
        message = (
            f"no test data at {SHARED_DATA}: fetch the annotations and videos that tests/README.md names, "
            "or point OBYGAZE_TEST_DATA at them"
        )
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return SHARED_DATA


@pytest.fixture(scope="session")
def obygaze12(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """ObyGaze12's clips, with the folds of the released split files."""
    return import_obygaze12(shared_data / "obygaze12", tmp_path_factory.mktemp("manifest")).manifest


@pytest.fixture(scope="session")
def segments(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """MObyGaze's free segments of two annotators."""
    return import_mobygaze(shared_data / "mobygaze", tmp_path_factory.mktemp("manifest")).manifest


@pytest.fixture(scope="session")
def toy_films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples' films.csv and more.csv, stores of both, kept models and a video of 16 frames."""
    from obygaze.demo_corpus import write_video
    from obygaze_models.models import attention, linear

    folder = tmp_path_factory.mktemp("toy")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1] / "examples"))
        from toy_films import write_toy_films

    write_toy_films(folder)
    write_toy_films(folder, "more", first=6)
    for name in ("videos", "copies", "shared"):
        (folder / name).mkdir()
    data = om.load_dataset(of.open_store(folder / "stores" / "films"), of.read_manifest(folder / "films.csv"))
    briefly = replace(
        attention.SPECS[0], make=lambda seed: attention.AttentionPooling(max_epochs=2, random_state=seed)
    )
    specs = [*linear.SPECS, briefly]
    run = om.evaluate(data, specs, task="hn_s", test="enhn_s")
    om.save_models(run, data, ["linear", "attention"], folder / "kept", models=specs, licence="MIT")
    frames = (np.full((48, 64, 3), 5 * index, np.uint8) for index in range(16))
    write_video(folder / "videos" / "clip.mp4", frames, rate=8)
    return folder


@pytest.fixture(scope="module")
def prepared(toy_films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of it to work in."""
    return shutil.copytree(toy_films, tmp_path_factory.mktemp("doctests"), dirs_exist_ok=True)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One running browser for all tests of a process: Playwright refuses a second one."""
    yield from running_chromium()


@pytest.fixture(scope="session")
def grad_cam() -> None:
    """Import the package grad-cam; skip the test where it is not installed."""
    import_beside_torchvision("pytorch_grad_cam", "saliency")


@pytest.fixture(scope="session")
def open_clip() -> Any:
    """Import the package open_clip; skip the test where it is not installed."""
    return import_beside_torchvision("open_clip", "openclip")


def import_beside_torchvision(package: str, extra: str) -> Any:
    """Import a package; where torchvision is not installed, beside a stand-in that goes again."""
    pytest.importorskip("transformers")  # first, so that it never sees the stand-in
    if find_spec(package) is None:
        pytest.skip(f"no {package}: it is in the extra `{extra}`")
    if find_spec("torchvision") is not None:
        return importlib.import_module(package)
    standins = str(Path(__file__).parent / "backbones" / "standins")
    sys.path.insert(0, standins)
    try:
        return importlib.import_module(package)
    finally:
        sys.path.remove(standins)
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]


def planted(
    *,
    direction: float = 0.0,
    film: float = 0.0,
    n_movies: int = 6,
    n_per_movie: int = 40,
    n_features: int = 12,
    seed: int = 0,
) -> Dataset:
    """Make clips of which about a quarter are S, the others EN and HN.

    `direction` is how far S clips are moved along one direction, the same in every movie; `film` how far
    each movie is moved in a direction of its own. Movies differ in their share of S clips.
    """
    rng = np.random.default_rng(seed)
    movie_of = np.repeat(np.arange(n_movies), n_per_movie)
    shares = np.linspace(0.1, 0.4, n_movies)
    y = (rng.random(movie_of.size) < shares[movie_of]).astype(np.int64)
    levels = np.where(y == 1, "S", np.where(rng.random(y.size) < 0.5, "EN", "HN"))
    axis = rng.normal(size=n_features)
    axis /= np.linalg.norm(axis)
    X = rng.normal(size=(y.size, n_features)) + direction * y[:, None] * axis
    X += film * rng.normal(size=(n_movies, n_features))[movie_of]
    return dataset(X, levels, np.array([f"tt{movie:07}" for movie in movie_of]))


def dataset(
    X: np.ndarray,
    levels: np.ndarray,
    movies: np.ndarray,
    present: np.ndarray | None = None,
    codebook: Codebook | None = None,
) -> Dataset:
    """Wrap arrays as a dataset in which nothing was left out; without `present` no concept is marked."""
    known = codebook or builtin_codebook("obygaze12")
    n, concepts = len(levels), known.visual_concepts
    return Dataset(
        X=X.astype(np.float32),
        labels=Labels(
            clip_ids=np.array([f"{movie}-{index:03}" for index, movie in enumerate(movies)]),
            movies=movies,
            levels=levels,
            present=np.zeros((n, len(concepts)), bool) if present is None else present.astype(bool),
            concepts=concepts,
            scales={},
        ),
        codebook=known,
        backbone="planted",
        features="pooled",
        pool="as stored",
        store="f" * 64,
        label="planted",
    )


def planted_concepts(
    *, n_movies: int = 6, n_per_movie: int = 40, n_features: int = 24, seed: int = 0
) -> Dataset:
    """Make clips whose level follows from their concepts: S shows Body with another, HN others, EN none.

    Each concept moves features along a direction of its own; each movie is moved too.
    """
    rng = np.random.default_rng(seed)
    movie_of = np.repeat(np.arange(n_movies), n_per_movie)
    levels = rng.choice(["EN", "HN", "S"], size=movie_of.size, p=[0.4, 0.3, 0.3])
    names = builtin_codebook("obygaze12").visual_concepts
    body, others = names.index("Body"), [index for index, name in enumerate(names) if name != "Body"]
    present = np.zeros((levels.size, len(names)), dtype=bool)
    for row, level in enumerate(levels):
        present[row, body] = level == "S"
        if level != "EN":
            present[row, rng.choice(others, size=rng.integers(1, 3), replace=False)] = True
    axes = np.linalg.qr(rng.normal(size=(n_features, len(names))))[0].T
    X = 3.0 * present @ axes + rng.normal(size=(levels.size, n_features))
    X += rng.normal(size=(n_movies, n_features))[movie_of]
    movies = np.array([f"tt{movie:07}" for movie in movie_of])
    return dataset(X, levels, movies, present)


@pytest.fixture(scope="session")
def make_synthetic_data() -> Callable[..., Dataset]:
    return planted


@pytest.fixture(scope="session")
def make_synthetic_concepts() -> Callable[..., Dataset]:
    return planted_concepts


@pytest.fixture(scope="session")
def wrap_arrays() -> Callable[..., Dataset]:
    return dataset


@pytest.fixture(scope="session")
def make_store() -> Callable[..., Path]:
    return seal_arrays


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Sum up what was skipped, in one line for each reason."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.getreports("skipped")
        if isinstance(report.longrepr, tuple)
    )
    for reason, number in reasons.most_common():
        terminalreporter.write_line(f"{number} skipped: {reason}")
