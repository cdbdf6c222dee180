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


def seal_four_clips(folder, seed=0):
    """Seal a store s-1.0.0 of four clips of two movies, with vectors and tokens that a seed gives."""
    rng = np.random.default_rng(seed)
    arrays = {
        "pooled": rng.standard_normal((4, 3), np.float32),
        "tokens": rng.standard_normal((4, 5, 7)).astype(np.float16),
    }
    return seal_arrays(folder / "s", CLIPS, {"net": arrays})


def unpickle(pickled):
    """Read a pickle of this test."""
    return pickle.loads(pickled)  # noqa: S301 - made a line above


def unpickled_by_every_protocol(value):
    """Pickle something and read it again, with every protocol of Python's from 2 on."""
    protocols = range(2, pickle.HIGHEST_PROTOCOL + 1)
    return [unpickle(pickle.dumps(value, protocol)) for protocol in protocols]


@pytest.fixture
def store(tmp_path):
    return of.open_store(seal_four_clips(tmp_path))


@pytest.mark.parametrize("place", ["folder", "name", "relative", "zip"])
def test_a_group_of_a_store_is_opened_again_wherever_its_pickle_is_read(place, tmp_path, monkeypatch):
    """The store was opened by its folder, by its name without a version, by a relative path, or as a zip.

    The pickle is read in another current folder than it was written in.
    """
    folder = seal_four_clips(tmp_path)
    monkeypatch.chdir(tmp_path)
    if place == "folder":
        store = of.open_store(folder)
    elif place == "name":
        store = of.open_store(tmp_path / "s")
    elif place == "relative":
        store = of.open_store("s-1.0.0")
    else:
        store = of.open_store(of.pack(folder, tmp_path / "z.zip"))
    group = store["net"]
    tokens = group.tokens()
    pickled = pickle.dumps(group)

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    unpickled = unpickle(pickled)

    assert np.array_equal(unpickled.tokens(), tokens)
    assert unpickled.clip_ids == group.clip_ids


def test_a_store_on_a_server_is_opened_again_and_no_features_travel(tmp_path, monkeypatch):
    """The pickle has the store's URL, in less than 500 bytes; when the server is gone, it can't be read."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    from share_a_store import serving

    seal_four_clips(tmp_path)
    with serving(tmp_path) as url:
        store = of.open_store(f"{url}/s-1.0.0")
        pickled = pickle.dumps(store)
        unpickled = unpickle(pickled)
        assert np.array_equal(unpickled["net"].pooled(), store["net"].pooled())

    assert len(pickled) < 500
    with pytest.raises(StoreError, match=url):
        unpickle(pickled)


def test_a_pickled_store_stays_the_same_beside_a_newer_version(tmp_path, store):
    """The store was opened by its name, `s`, which is the newest version: here 1.0.0, and later 2.0.0."""
    opened_by_name = of.open_store(tmp_path / "s")
    assert opened_by_name.path == store.path
    pickled = pickle.dumps(opened_by_name)

    shutil.copytree(store.path, tmp_path / "s-2.0.0")
    unpickled = unpickle(pickled)

    assert unpickled.path == store.path


def test_a_pickle_of_a_store_that_is_gone_is_refused_by_the_stores_place(store):
    """A pickle holds no features, but the place of the store, which is opened when the pickle is read."""
    group_of_store = store["net"]
    pickled = pickle.dumps(group_of_store)
    shutil.rmtree(store.path)

    with pytest.raises(StoreError, match=str(store.path)):
        unpickle(pickled)


def test_a_pickle_of_a_store_that_was_replaced_by_another_is_refused_by_its_fingerprint(tmp_path, store):
    """A pickle holds the place of the store and its fingerprint. At the place is a store of other features.

    The message has the first digits of the fingerprint that was expected.
    """
    group_of_store = store["net"]
    pickled = pickle.dumps(group_of_store)
    shutil.rmtree(store.path)
    (tmp_path / "other").mkdir()
    other_store = seal_four_clips(tmp_path / "other", seed=1)
    shutil.copytree(other_store, store.path)

    with pytest.raises(StoreError, match=store.fingerprint[:8]):
        unpickle(pickled)


def test_lazy_arrays_of_xarray_pickle(store):
    """A group gives a dataset of xarray, a store a tree of them; their arrays are read when they are used."""
    pytest.importorskip("xarray")
    group = store["net"]

    for data in unpickled_by_every_protocol(group.to_xarray()):
        assert np.array_equal(data.tokens, group.tokens())
    for tree in unpickled_by_every_protocol(store.to_xarray()):
        assert np.array_equal(tree["net"].pooled, group.pooled())


@pytest.fixture
def public_objects(prepared, tmp_path, monkeypatch):
    """What a public function gives, an object of each class, by its name in words.

    `prepared` is a folder with films, stores and models.
    """
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
def test_all_objects_that_public_functions_give_pickle(public_objects):
    """`public_objects` has one of each class, such as a store, a dataset, a run or a model.

    Each is pickled and read again with every protocol of Python's from 2 on.
    """
    for name, value in public_objects.items():
        for unpickled in unpickled_by_every_protocol(value):
            assert type(unpickled) is type(value), name


@pytest.mark.long
def test_an_unpickled_dataset_has_its_features_and_reads_its_frames(public_objects):
    """A dataset has the features of its clips in memory, and reads their frames from the store when asked."""
    data = public_objects["dataset"]

    unpickled = unpickle(pickle.dumps(data, pickle.HIGHEST_PROTOCOL))

    assert np.array_equal(unpickled.X, data.X)
    assert unpickled.read("frames").shape == data.read("frames").shape


@pytest.mark.parametrize(
    "start_method",
    ["fork", *(pytest.param(name, marks=pytest.mark.long) for name in ("spawn", "forkserver"))],
)
@pytest.mark.filterwarnings("ignore:.*fork")  # beside threads, from Python 3.12 on
def test_public_objects_arrive_whole_in_a_process_of_any_start_method(public_objects, start_method):
    """They are sent to another process, pickled, which answers with the names of their classes."""
    if start_method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{start_method} is not of this system")

    with ProcessPoolExecutor(1, multiprocessing.get_context(start_method)) as pool:
        classes_there = pool.submit(class_names, public_objects).result()

    assert classes_there == class_names(public_objects)


def class_names(objects):
    """Return the class of each object, as text, by the object's name."""
    return {name: f"{type(value).__module__}.{type(value).__name__}" for name, value in objects.items()}


@pytest.mark.long
def test_objects_of_public_classes_that_no_function_gives_pickle_too(public_objects):
    """Such as estimators, which users make themselves. Errors have a test of their own."""
    classes_tried = {type(value) for value in public_objects.values()}
    for package in (of, om, obygaze_film):
        for name in package.__all__:
            public_class = getattr(package, name)
            if not inspect.isclass(public_class) or public_class in classes_tried:
                continue
            if issubclass(public_class, of.ObygazeError):
                continue
            make = MAKE_OBJECT_OF.get(public_class, public_class)
            for unpickled in unpickled_by_every_protocol(make()):
                assert type(unpickled) is public_class, name


MAKE_OBJECT_OF = {
    om.ModelSpec: lambda: om.ModelSpec("mine", sorted, "frames"),
    om.GroupedSelection: lambda: om.GroupedSelection(om.linear_probe()),
}
"""Classes whose objects need something to be made, and that no public function gives."""


for module in (
    "obygaze_features.manifest.importers.proposal",
    "obygaze_features.manifest.importers.table_layout",
    "obygaze_film.errors",
    "obygaze_models.errors",
    "obygaze_studies.errors",
):
    importlib.import_module(module)  # so that their errors are known below, whichever tests were read before


def errors_below(error_class):
    """Yield the classes of errors that are derived from one."""
    for derived in error_class.__subclasses__():
        yield derived
        yield from errors_below(derived)


ERRORS_OF_USERS = sorted({of.ObygazeError, *errors_below(of.ObygazeError)}, key=lambda one: one.__name__)


@pytest.mark.parametrize("error_class", ERRORS_OF_USERS)
def test_an_error_of_ours_pickles_with_its_message_and_all_else_that_it_holds(error_class):
    """So it comes back whole from another process. One class, UnreadColumnsError, holds more than a message.

    Each is pickled and read again with every protocol of Python's from 2 on.
    """
    arguments = ["a.csv: what went wrong"]
    if error_class is of.manifest.UnreadColumnsError:
        arguments = ["it holds levels", ("--column level=Stufe",), ("which is it?",)]
    error = error_class(*arguments)

    for unpickled in unpickled_by_every_protocol(error):
        assert type(unpickled) is error_class
        assert str(unpickled) == str(error)
        assert vars(unpickled) == vars(error)
