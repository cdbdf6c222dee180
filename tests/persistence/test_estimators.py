"""Every kind of estimator in a file: the zoo's, a lab's own, scikit-learn's parts; and files on servers."""

import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from obygaze_models.concepts.head_scores import head_scores
from obygaze_models.concepts.linear_cav import LinearCAV
from obygaze_models.errors import ModelError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models.frames import FramePool
from obygaze_models.models.linear import linear_probe, make_frames_probe
from obygaze_models.models.ridge_logistic import RidgeLogistic
from obygaze_models.models.scaling import ClippedScaler
from obygaze_models.models.spec import ModelSpec
from obygaze_models.persistence.estimators import CONVERSIONS, _check_nodes_table, is_linear, stored_tree
from obygaze_models.persistence.model_file import construct, pack, read_model, to_state
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.saved_model import load_model
from tests.planted_models import corpus, kept_alike
from tests.store.serving import serving

from .model_files import members, zipped

FROZEN = Path(__file__).parent / "frozen"
TREE = FROZEN / "protocol_4_pcbm_dt.model"


class Nearest(ClassifierMixin, BaseEstimator):
    """A lab's own: the side of the middle between two classes' means."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def decision_function(self, X):
        return np.asarray((X - self.means_.mean(axis=0)) @ (self.means_[1] - self.means_[0]))


class Kept(Nearest):
    """The same, that can be kept."""

    def to_arrays(self):
        return {"means": self.means_}

    @classmethod
    def from_arrays(cls, arrays):
        if arrays["means"].shape[0] != 2:
            raise ValueError("expected two means")
        estimator = cls()
        estimator.means_ = arrays["means"]
        estimator.classes_ = np.array([0, 1])
        return estimator


class Renamed(Kept):
    """Another class that takes the same arrays."""


MODELS = {
    "lab:kept": Kept(),
    "lab:lost": Nearest(),
    "svm": make_pipeline(ClippedScaler(), SVC(C=0.1)),
    "forest": RandomForestClassifier(3, random_state=0),
}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    from obygaze_models.dataset import load_dataset

    data = load_dataset(*corpus(tmp_path_factory.mktemp("own"), "films", ("a", "b", "c", "d")))
    return data, evaluate(data, MODELS, "calm_violent")


def test_every_kind_of_the_zoo_has_a_frozen_file():
    kinds = {read_model(path).card.kind for path in FROZEN.glob("protocol_4_*.model")}
    assert kinds == {*CONVERSIONS}


@pytest.mark.parametrize("path", sorted(FROZEN.glob("protocol_4_*.model")), ids=lambda path: path.stem)
def test_what_is_read_is_kept_as_it_was(path):
    file = read_model(path)
    state = to_state(construct(file))
    assert state.kind == file.card.kind
    assert file.card.parameters.items() <= state.parameters.items()  # newer ones have their usual value
    assert state.arrays.keys() == file.arrays.keys()
    for name, array in state.arrays.items():
        np.testing.assert_array_equal(array, file.arrays[name])


@pytest.mark.parametrize(
    ("kind", "estimator", "shape"),
    [
        ("linear", make_frames_probe("mean"), (60, 5, 3)),
        ("linear", make_frames_probe("max"), (60, 5, 3)),
        ("cav", LinearCAV("ridge", clip=5.0), (60, 8)),
    ],
)
def test_what_no_frozen_file_has_is_read_back_as_it_was(kind, estimator, shape):
    X = np.random.default_rng(0).normal(3, 2, shape)
    y = np.arange(60) % 2
    X[y == 1] += 0.5
    state = to_state(estimator.fit(X, y))
    file = read_model(FROZEN / f"protocol_4_{kind}.model")
    card = structs.replace(file.card, parameters=dict(state.parameters), n_features=shape[-1])
    read_again = construct(replace(file, card=card, arrays=dict(state.arrays)))
    np.testing.assert_array_equal(read_again.decision_function(X), estimator.decision_function(X))


@pytest.mark.parametrize(
    ("steps", "is_one"),
    [
        ((ClippedScaler(), LogisticRegression()), True),
        ((FramePool("mean"), ClippedScaler(), RidgeLogistic()), True),
        ((LogisticRegression(),), False),
        ((StandardScaler(), LogisticRegression()), False),
        ((StandardScaler(), ClippedScaler(), LogisticRegression()), False),
        ((ClippedScaler(), SVC()), False),
    ],
)
def test_a_linear_probe_is_one_by_all_its_steps(steps, is_one):
    assert is_linear(make_pipeline(*steps)) is is_one


# A lab's own.


def test_an_estimator_that_gives_its_arrays_is_kept_and_found_again_where_it_is_offered(own, tmp_path):
    data, run = own
    paths = save_models(run, data, ["lab:kept"], tmp_path, models=MODELS)
    assert paths["lab:kept"].name == "lab_kept.model"
    model = kept_alike(paths["lab:kept"], tmp_path, offered=MODELS)
    expected = Kept().fit(data.X[data.levels != "unsure"], data.levels[data.levels != "unsure"])
    np.testing.assert_allclose(model.logits(data.X), expected.decision_function(data.X), rtol=1e-5)
    assert model.calibration.p_skilled > 0.9
    # No module is imported because a file names it.
    with pytest.raises(ModelError, match="'lab:kept', which no installed package offers"):
        load_model(paths["lab:kept"])
    for offered in (Nearest(), Renamed()):
        with pytest.raises(ModelError, match="'lab:kept'"):
            load_model(paths["lab:kept"], offered={"lab:kept": offered})


def test_a_run_keeps_its_own_models_by_their_names(own, tmp_path):
    data, run = own
    named = save_models(run, data, ["lab:kept"], tmp_path / "given", models=MODELS)["lab:kept"]
    by_name = save_models(run, data, ["lab:kept"], tmp_path / "by-name")["lab:kept"]
    by_run = run.save(data, ["lab:kept"], tmp_path / "by-run")["lab:kept"]
    assert named.read_bytes() == by_name.read_bytes() == by_run.read_bytes()


def test_a_run_that_comes_from_another_process_keeps_what_can_be_sent_there(own, tmp_path):
    data, _ = own
    here_alone = ModelSpec("stays", "stays", lambda _seed: linear_probe())
    models = {"sent": linear_probe(), "stays": here_alone}
    run = evaluate(data, models)
    there = pickle.loads(pickle.dumps(run))  # noqa: S301 - made here
    assert there.predictions.table.equals(run.predictions.table)
    kept_here = run.save(data, ["sent", "stays"], tmp_path / "here")
    sent = there.save(data, ["sent"], tmp_path / "there")["sent"]
    assert sent.read_bytes() == kept_here["sent"].read_bytes()
    with pytest.raises(ModelError, match="models="):
        there.save(data, ["stays"], tmp_path / "there")


def test_an_estimator_of_scikit_learns_parts_is_kept_by_skops_the_same_bytes_every_time(own, tmp_path):
    pytest.importorskip("skops")
    data, run = own
    first, second = (
        save_models(run, data, ["svm"], tmp_path / n, models=MODELS)["svm"].read_bytes() for n in "ab"
    )
    assert first == second
    model = load_model(tmp_path / "a" / "svm.model")
    assert model.card.kind == "skops"
    assert (model.logits(data.X[:9]) == model.estimator.decision_function(data.X[:9])).all()
    assert model.is_out_of_distribution(data.X).mean() < 0.05


@pytest.mark.parametrize("name", ["lab:lost", "forest"])
def test_what_can_not_be_kept_is_one_line(own, tmp_path, name):
    pytest.importorskip("skops")
    data, run = own
    with pytest.raises(ModelError) as refused:
        save_models(run, data, [name], tmp_path / "new", models=MODELS)
    assert len(str(refused.value).splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_a_skops_archive_with_foreign_code_or_damage_is_refused(own, tmp_path):
    skops = pytest.importorskip("skops.io")
    data, run = own
    path = save_models(run, data, ["svm"], tmp_path, models=MODELS)["svm"]
    file = read_model(path)
    foreign = np.frombuffer(skops.dumps(Nearest().fit(data.X, data.levels == "calm")), dtype=np.uint8)
    archive = file.arrays["skops"]
    padded = archive.tobytes() + bytes(-len(archive) % 8)
    for arrays, message in (
        ({"skops": foreign}, "is not trusted in a file: nothing was made of it"),
        ({"skops": archive[: len(archive) // 2]}, "its skops archive is damaged"),
        ({"skops": np.frombuffer(zipped(members(archive), zipfile.ZIP_DEFLATED), np.uint8)}, "compressed"),
        ({"skops": np.frombuffer(padded, "<i8")}, "the array skops, of bytes"),
        ({"skops": archive, "more": archive[:1]}, "the array skops, of bytes"),
        ({"more": archive}, "the array skops, of bytes"),
    ):
        path.write_bytes(pack(file.card, arrays, file.other_arrays))
        with pytest.raises(ModelError, match=message):
            load_model(path)


# Trees are walked only after their nodes were checked.


LEAF = [-1, 0, -1, -1, 3, 4]


@pytest.mark.parametrize(
    "nodes",
    [
        [[0, 0.5, 0, 1, 6, 8], LEAF],  # a child that is its parent: a walk would not end
        [[0, 0.5, 1, 2, 6, 8], LEAF],  # a child that is not there
        [[3, 0.5, 1, 2, 6, 8], LEAF, LEAF],  # a concept that is not there
        [[0, 0.5, 1, 1.5, 6, 8], LEAF, LEAF],  # half a node
        [[0, 0.5, 1, 2, 0, 0], LEAF, LEAF],  # no clips
        [[0, 0.5, 1, 2, -1, 8], LEAF, LEAF],
        [[-1, 0.5, 1, 2, 6, 8], LEAF, LEAF],
    ],
)
def test_a_table_that_is_no_tree_is_refused(nodes):
    _check_nodes_table(np.array([[0, 0.5, 1, 2, 6, 8], LEAF, LEAF], dtype=float), 3)
    with pytest.raises(ModelError):
        _check_nodes_table(np.array(nodes, dtype=float), 3)


def test_a_stored_tree_leads_each_row_to_the_leaf_that_its_nodes_say():
    table = np.array([[1, 0.5, 1, 2, 8, 8], [-1, 0, -1, -1, 8, 0], [-1, 0, -1, -1, 0, 8]], dtype=float)
    _check_nodes_table(table, 2)  # also of leaves with one class alone
    scores = head_scores(stored_tree(table), np.array([[9.0, 0.5], [0.0, 0.6]]))
    assert scores.tolist() == [-np.log(9), np.log(9)]


@pytest.mark.parametrize(
    ("name", "parameters", "arrays"),
    [
        ("linear", {"limit": -1.0}, {}),
        ("linear", {"C": -1.0}, {}),
        ("linear", {"frames": "middle"}, {}),
        ("bank", {"directions": "other"}, {}),
        ("bank", {"clip": -1.0}, {"feature_mean": np.zeros(8), "feature_scale": np.ones(8)}),
        ("cav", {"clip": 5.0}, {"feature_mean": np.zeros(1), "feature_scale": np.ones(8)}),
        ("cav", {"clip": 5.0}, {}),
        ("cav", {"kind": "tree"}, {}),
        ("mlp", {}, {"mean": np.zeros(8)}),  # float64 beside float32
    ],
)
def test_parameters_and_arrays_that_no_estimator_has_are_refused(name, parameters, arrays):
    file = read_model(FROZEN / f"protocol_4_{name}.model")
    card = structs.replace(file.card, parameters={**file.card.parameters, **parameters})
    construct(file)
    with pytest.raises(ModelError):
        construct(replace(file, card=card, arrays={**file.arrays, **arrays}))


DATA = TREE.read_bytes()


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_any_changed_bytes_of_a_concept_model_give_a_model_or_one_clear_error(tmp_path, changes):
    data = bytearray(DATA)
    for place, value in changes:
        data[place] = value
    path = tmp_path / "a.model"
    path.write_bytes(data)
    try:
        model = load_model(path)
    except ModelError as error:
        outcome = str(error)
    else:
        outcome = "read"
        X = np.zeros((2, 8), dtype=np.float32)
        with np.errstate(all="ignore"):
            model.contributions(X)
            assert len(model.intervene(X, {model.concepts[0]: 0.5})) == 2
    assert len(outcome.splitlines()) == 1


# On servers.


def test_a_model_is_read_from_a_server_as_from_a_folder():
    pytest.importorskip("obstore")
    with serving(FROZEN) as site:
        remote = read_model(f"{site.url}/{TREE.name}")
        assert remote.where == f"{site.url}/{TREE.name}"
        assert remote.card == read_model(TREE).card
        assert construct(remote).concepts_ == ("Gun", "Dim light")
        with pytest.raises(FileNotFoundError):
            read_model(f"{site.url}/nothing.model")


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(ModelError):
        read_model(tmp_path)
