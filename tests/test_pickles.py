"""What users hold can be pickled: stores and what is read from them by their place and fingerprint."""

import importlib
import inspect
import multiprocessing
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import obygaze_features as of
import obygaze_film
import obygaze_models as om
from obygaze_features.errors import StoreError
from obygaze_features.store.testing import seal_arrays

ROOT = Path(__file__).parents[1]
CLIPS = {"a-0": "a", "a-1": "a", "b-0": "b", "b-1": "b"}


def sealed(folder, seed=0):
    """Seal four clips of two movies, with tokens."""
    rng = np.random.default_rng(seed)
    arrays = {
        "pooled": rng.standard_normal((4, 3), np.float32),
        "tokens": rng.standard_normal((4, 5, 7)).astype(np.float16),
    }
    return seal_arrays(folder / "s", CLIPS, {"net": arrays})


def read(pickled):
    """Read a pickle of this test."""
    return pickle.loads(pickled)  # noqa: S301 - made a line above


def again(thing):
    """Pickle something and read it again, with every protocol."""
    protocols = range(2, pickle.HIGHEST_PROTOCOL + 1)
    return [read(pickle.dumps(thing, protocol)) for protocol in protocols]


@pytest.fixture
def store(tmp_path):
    return of.open_store(sealed(tmp_path))


@pytest.mark.parametrize("place", ["folder", "name", "relative", "zip"])
def test_a_store_is_opened_again_wherever_its_pickle_is_read(place, tmp_path, monkeypatch):
    path = sealed(tmp_path)
    monkeypatch.chdir(tmp_path)
    where = {
        "folder": path,
        "name": tmp_path / "s",
        "relative": path.relative_to(tmp_path),
        "zip": of.pack(path, tmp_path / "z.zip") if place == "zip" else path,
    }
    store = of.open_store(where[place])
    tokens, pickled = store["net"].tokens(), pickle.dumps(store["net"])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    group = read(pickled)
    assert np.array_equal(group.tokens(), tokens)
    assert group.clip_ids == store["net"].clip_ids


def test_a_store_on_a_server_is_opened_again_and_no_features_travel(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from share_a_store import serving

    sealed(tmp_path)
    with serving(tmp_path) as url:
        store = of.open_store(f"{url}/s-1.0.0")
        pickled = pickle.dumps(store)
        assert len(pickled) < 500
        assert np.array_equal(read(pickled)["net"].pooled(), store["net"].pooled())
    with pytest.raises(StoreError, match=url):
        read(pickled)


def test_a_pickled_store_stays_the_same_beside_a_newer_version(tmp_path, store):
    pickled = pickle.dumps(of.open_store(tmp_path / "s"))
    shutil.copytree(store.path, tmp_path / "s-2.0.0")
    assert read(pickled).path == store.path


def test_another_content_is_refused_and_a_place_that_is_gone_is_named(tmp_path, store):
    pickled = pickle.dumps(store["net"])
    shutil.rmtree(store.path)
    with pytest.raises(StoreError, match=str(store.path)):
        read(pickled)
    (tmp_path / "other").mkdir()
    shutil.copytree(sealed(tmp_path / "other", seed=1), store.path)
    with pytest.raises(StoreError, match=store.fingerprint[:8]):
        read(pickled)


def test_lazy_arrays_of_xarray_pickle(store):
    pytest.importorskip("xarray")
    for data in again(store["net"].to_xarray()):
        assert np.array_equal(data.tokens, store["net"].tokens())
    for tree in again(store.to_xarray()):
        assert np.array_equal(tree["net"].pooled, store["net"].pooled())


@pytest.fixture
def things(prepared, tmp_path, monkeypatch):
    """Each kind of thing that a public function gives; `prepared` holds films, a store, a run, models."""
    monkeypatch.chdir(prepared)
    store, manifest = of.open_store("stores/films"), of.read_manifest("films.csv")
    data = om.load_dataset(store, manifest)
    run = om.evaluate(data, ["linear"], task="hn_s", test="enhn_s")
    om.save_models(run, data, ["linear"], tmp_path)
    model = om.load_model(tmp_path / "linear.model")
    saved = om.saved(run)
    side = om.side(saved, "linear")
    sums = om.gram(data, "hn_s", least=1)
    return {
        "store": store,
        "group": store["toy"],
        "pieces": of.Pieces(store["toy"], "frames", [0] * len(store["toy"])),
        "manifest": manifest,
        "clip": manifest.clips[0],
        "codebook": manifest.codebook,
        "backbone": of.load_backbone("descriptors"),
        "sampling": of.uniform(4),
        "ranking": of.search_like(store, "film0-c000"),
        "verified": of.verify(store),
        "difference": of.diff(store, store),
        "dataset": data,
        "target": om.find_target("hn_s", manifest.codebook),
        "folds": om.leave_one_movie_out(data.clip_ids.tolist(), data.movies.tolist()),
        "run": run,
        "predictions": run.predictions,
        "saved run": saved,
        "side": side,
        "comparison": om.compare(side, side),
        "report": om.run_report(run),
        "model": model,
        "predicted": om.predict(model, store),
        "sums": sums,
        "probe": om.linear_probe().fit(data.X, data.levels == "S"),
        "timeline": obygaze_film.score_films(store, [model])[0],
    }


@pytest.mark.long
def test_everything_that_the_packages_hand_out_pickles(things):
    for name, thing in things.items():
        for copy in again(thing):
            assert type(copy) is type(thing), name
    data = things["dataset"]
    (copied,) = again(data)[-1:]
    assert np.array_equal(copied.X, data.X)
    assert copied.read("frames").shape == data.read("frames").shape


@pytest.mark.parametrize(
    "start_method",
    ["fork", *(pytest.param(name, marks=pytest.mark.long) for name in ("spawn", "forkserver"))],
)
@pytest.mark.filterwarnings("ignore:.*fork")  # beside threads, from Python 3.12 on
def test_everything_arrives_whole_in_a_process_of_any_start_method(things, start_method):
    if start_method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{start_method} is not of this system")
    with ProcessPoolExecutor(1, multiprocessing.get_context(start_method)) as pool:
        assert pool.submit(kinds_of, things).result() == kinds_of(things)


def kinds_of(things):
    """Name the class of each thing."""
    return {name: f"{type(thing).__module__}.{type(thing).__name__}" for name, thing in things.items()}


@pytest.mark.long
def test_every_public_class_is_tried(things):
    """Estimators are tried as they are made, errors below, everything else as it is handed out."""
    tried = {type(thing) for thing in things.values()}
    for package in (of, om, obygaze_film):
        for name in package.__all__:
            kind = getattr(package, name)
            if not inspect.isclass(kind) or kind in tried or issubclass(kind, of.ObygazeError):
                continue
            example = kind(om.linear_probe()) if kind is om.GroupedSelection else EXAMPLES.get(kind, kind)()
            for copy in again(example):
                assert type(copy) is kind, name


EXAMPLES = {om.ModelSpec: lambda: om.ModelSpec("mine", sorted, "frames")}
"""Classes whose objects need something to be made, and no public function hands out."""


for module in (
    "obygaze_features.manifest.importers.proposal",
    "obygaze_features.manifest.importers.table_layout",
    "obygaze_film.errors",
    "obygaze_models.errors",
    "obygaze_studies.errors",
):
    importlib.import_module(module)  # so that their errors are known below, whichever tests were read before


def errors(kind):
    """Yield the errors of users, each class once."""
    for derived in kind.__subclasses__():
        yield derived
        yield from errors(derived)


@pytest.mark.parametrize(
    "kind", sorted({of.ObygazeError, *errors(of.ObygazeError)}, key=lambda kind: kind.__name__)
)
def test_an_error_comes_back_whole_from_a_pool(kind):
    words = ["a.csv: what went wrong"]
    if kind is of.manifest.UnreadColumnsError:
        words = ["it holds levels", ("--column level=Stufe",), ("which is it?",)]
    error = kind(*words)
    for copy in again(error):
        assert type(copy) is kind
        assert str(copy) == str(error)
        assert vars(copy) == vars(error)
