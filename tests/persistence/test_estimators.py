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
from sklearn.base import BaseEstimator, ClassifierMixin, clone
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
from tests.planted_models import corpus, load_checking_round_trip
from tests.store.serving import serving

from .model_files import members_of, zip_archive_of

FROZEN_FILES = Path(__file__).parent / "frozen"
FROZEN_PCBM_DT = FROZEN_FILES / "protocol_4_pcbm_dt.model"


class Nearest(ClassifierMixin, BaseEstimator):
    """A lab's own: the side of the middle between two classes' means."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def decision_function(self, X):
        return np.asarray((X - self.means_.mean(axis=0)) @ (self.means_[1] - self.means_[0]))


class NearestWithArrays(Nearest):
    """The same classifier, which can be saved as it gives its arrays and takes them back."""

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


class OtherWithArrays(NearestWithArrays):
    """Another class that takes the same arrays."""


MODELS = {
    "lab:with_arrays": NearestWithArrays(),
    "lab:without_arrays": Nearest(),
    "svm": make_pipeline(ClippedScaler(), SVC(C=0.1)),
    "forest": RandomForestClassifier(3, random_state=0),
}


@pytest.fixture(scope="module")
def data_and_run(tmp_path_factory):
    """A planted corpus of four films, and an evaluation of `MODELS` on it."""
    from obygaze_models.dataset import load_dataset

    data = load_dataset(*corpus(tmp_path_factory.mktemp("planted"), "films", ("a", "b", "c", "d")))
    return data, evaluate(data, MODELS, "calm_violent")


def test_frozen_models_of_every_kind_have_the_same_arrays_after_they_were_constructed():
    kinds = set()
    for path in sorted(FROZEN_FILES.glob("protocol_4_*.model")):
        file = read_model(path)
        state = to_state(construct(file))
        assert state.kind == file.card.kind
        assert file.card.parameters.items() <= state.parameters.items()  # which has newer ones besides
        assert state.arrays.keys() == file.arrays.keys()
        for name, array in state.arrays.items():
            np.testing.assert_array_equal(array, file.arrays[name])
        kinds.add(file.card.kind)
    assert kinds == {*CONVERSIONS}


@pytest.mark.parametrize(
    ("kind", "estimator", "shape"),
    [
        ("linear", make_frames_probe("mean"), (60, 5, 3)),
        ("linear", make_frames_probe("max"), (60, 5, 3)),
        ("cav", LinearCAV("ridge", clip=5.0), (60, 8)),
    ],
    ids=["mean of frames", "max of frames", "clipped CAV"],
)
def test_an_estimator_without_a_frozen_file_has_the_same_scores_after_it_was_stored(kind, estimator, shape):
    X = np.random.default_rng(0).normal(3, 2, shape)
    y = np.arange(60) % 2
    X[y == 1] += 0.5
    state = to_state(estimator.fit(X, y))
    of_same_kind = read_model(FROZEN_FILES / f"protocol_4_{kind}.model")
    card = structs.replace(of_same_kind.card, parameters=dict(state.parameters), n_features=shape[-1])
    read_again = construct(replace(of_same_kind, card=card, arrays=dict(state.arrays)))
    np.testing.assert_array_equal(read_again.decision_function(X), estimator.decision_function(X))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((ClippedScaler(), LogisticRegression()), True),
        ((FramePool("mean"), ClippedScaler(), RidgeLogistic()), True),
        ((LogisticRegression(),), False),
        ((StandardScaler(), LogisticRegression()), False),
        ((StandardScaler(), ClippedScaler(), LogisticRegression()), False),
        ((ClippedScaler(), SVC()), False),
    ],
)
def test_a_linear_probe_is_a_clipped_scaler_and_a_logistic_regression(steps, expected):
    assert is_linear(make_pipeline(*steps)) is expected


# A lab's own estimators.


@pytest.fixture
def saved_path(data_and_run, tmp_path):
    """The file of the lab's own model `lab:with_arrays`."""
    data, run = data_and_run
    return save_models(run, data, ["lab:with_arrays"], tmp_path, models=MODELS)["lab:with_arrays"]


@pytest.mark.long
def test_a_labs_own_estimator_is_saved_by_its_arrays_and_scores_the_same_when_loaded(
    data_and_run, saved_path, tmp_path
):
    data, _ = data_and_run
    model = load_checking_round_trip(saved_path, tmp_path, offered=MODELS)
    is_judged = data.levels != "unsure"
    expected = NearestWithArrays().fit(data.X[is_judged], data.levels[is_judged])
    np.testing.assert_allclose(model.logits(data.X), expected.decision_function(data.X), rtol=1e-5)
    assert saved_path.name == "lab_with_arrays.model"


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        ({}, "'lab:with_arrays', which no installed package offers"),
        ({"lab:with_arrays": Nearest()}, "'lab:with_arrays'"),
        ({"lab:with_arrays": OtherWithArrays()}, "'lab:with_arrays'"),
    ],
    ids=["none", "one without arrays", "another class"],
)
def test_no_module_is_imported_because_a_model_file_names_it(saved_path, offered, message):
    """The estimator has to be offered under the name in the file, by a package or by the caller."""
    with pytest.raises(ModelError, match=message):
        load_model(saved_path, offered=offered)


@pytest.mark.long
def test_a_run_saves_the_models_that_it_was_given_and_pickled_those_that_can_be_pickled(
    data_and_run, saved_path, tmp_path
):
    data, run = data_and_run
    by_function = save_models(run, data, ["lab:with_arrays"], tmp_path / "a")["lab:with_arrays"]
    by_method = run.save(data, ["lab:with_arrays"], tmp_path / "b")["lab:with_arrays"]
    assert saved_path.read_bytes() == by_function.read_bytes() == by_method.read_bytes()

    not_picklable = ModelSpec("lambda", "lambda", lambda _seed: linear_probe())
    run = evaluate(data, {"linear": linear_probe(), "lambda": not_picklable})
    unpickled = pickle.loads(pickle.dumps(run))  # noqa: S301 - made here
    assert unpickled.predictions.table.equals(run.predictions.table)
    paths = run.save(data, ["linear", "lambda"], tmp_path / "a")
    path = unpickled.save(data, ["linear"], tmp_path / "b")["linear"]
    assert path.read_bytes() == paths["linear"].read_bytes()
    with pytest.raises(ModelError, match="models="):
        unpickled.save(data, ["lambda"], tmp_path / "b")


@pytest.mark.long
def test_an_estimator_of_scikit_learn_is_saved_by_skops_and_scores_the_same_when_loaded(
    data_and_run, svm_path, tmp_path
):
    data, run = data_and_run
    again = save_models(run, data, ["svm"], tmp_path, models=MODELS)["svm"]
    assert again.read_bytes() == svm_path.read_bytes()
    model = load_model(again)
    assert model.card.kind == "skops"
    is_judged = data.levels != "unsure"
    expected = clone(MODELS["svm"]).fit(data.X[is_judged], data.levels[is_judged] == "violent")
    np.testing.assert_allclose(model.logits(data.X), expected.decision_function(data.X), rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["lab:without_arrays", "forest"], ids=["no arrays", "a class that skops does not trust"]
)
def test_an_estimator_that_cannot_be_saved_is_refused_in_one_line(data_and_run, tmp_path, name):
    pytest.importorskip("skops")
    data, run = data_and_run
    with pytest.raises(ModelError) as refused:
        save_models(run, data, [name], tmp_path / "new", models=MODELS)
    assert len(str(refused.value).splitlines()) == 1
    assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def svm_path(data_and_run, tmp_path_factory):
    """The file of a support vector machine, whose only array, `skops`, is a skops archive as bytes."""
    pytest.importorskip("skops")
    data, run = data_and_run
    return save_models(run, data, ["svm"], tmp_path_factory.mktemp("svm"), models=MODELS)["svm"]


def test_a_skops_archive_that_was_tampered_with_is_refused(svm_path, tmp_path):
    from skops import io

    file = read_model(svm_path)
    archive = file.arrays["skops"]
    untrusted = io.dumps(Nearest().fit(np.array([[0.0], [1.0]]), np.array([0, 1])))
    compressed = zip_archive_of(members_of(archive), zipfile.ZIP_DEFLATED)
    padded_to_integers = archive.tobytes() + bytes(-len(archive) % 8)
    wanted = "the array skops, of bytes"
    for arrays, message in (
        ({"skops": np.frombuffer(untrusted, np.uint8)}, "is not trusted in a file"),
        ({"skops": archive[: len(archive) // 2]}, "its skops archive is damaged"),
        ({"skops": np.frombuffer(compressed, np.uint8)}, "compressed"),
        ({"skops": np.frombuffer(padded_to_integers, "<i8")}, wanted),
        ({"skops": archive, "more": archive[:1]}, wanted),
        ({"more": archive}, wanted),
    ):
        tampered = tmp_path / "tampered.model"
        tampered.write_bytes(pack(file.card, arrays, file.other_arrays))
        with pytest.raises(ModelError, match=message):
            load_model(tampered)


# Trees are walked only after their nodes were checked.


def node(concept=0, threshold=0.5, left=1, right=2, n_negative=6, n_positive=8):
    """Make a row of the table of nodes: a step at a concept, to the rows `left` or `right`."""
    return [concept, threshold, left, right, n_negative, n_positive]


def leaf(n_negative=3, n_positive=4):
    """Make a row of the table of nodes for a leaf."""
    return node(-1, 0, -1, -1, n_negative, n_positive)


A_STEP_AND_TWO_LEAVES = [node(), leaf(), leaf()]


@pytest.mark.parametrize(
    "nodes",
    [
        [node(left=0, right=1), leaf()],  # following it would not end
        [node(), leaf()],
        [node(concept=3), leaf(), leaf()],
        [node(right=1.5), leaf(), leaf()],
        [node(n_negative=0, n_positive=0), leaf(), leaf()],
        [node(n_negative=-1), leaf(), leaf()],
        [node(concept=-1), leaf(), leaf()],
    ],
    ids=[
        "a child that is its parent",
        "a child that is not there",
        "a concept that is not there",
        "a child between two rows",
        "no clips",
        "a negative number of clips",
        "a leaf with children",
    ],
)
def test_a_table_of_nodes_that_is_no_tree_is_refused(nodes):
    _check_nodes_table(np.array(A_STEP_AND_TWO_LEAVES, dtype=float), n_values=3)
    with pytest.raises(ModelError):
        _check_nodes_table(np.array(nodes, dtype=float), n_values=3)


def test_a_stored_tree_leads_each_clip_to_the_leaf_that_its_nodes_say():
    all_negative, all_positive = leaf(n_negative=8, n_positive=0), leaf(n_negative=0, n_positive=8)
    nodes = np.array([node(concept=1, threshold=0.5), all_negative, all_positive], dtype=float)
    clip_at_the_threshold = [9.0, 0.5]
    clip_above = [0.0, 0.6]
    scores = head_scores(stored_tree(nodes), np.array([clip_at_the_threshold, clip_above]))
    # Both classes are counted one clip more than there are, so that no score is infinite: log(9 / 1).
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
        ("mlp", {}, {"mean": np.zeros(8)}),
    ],
    ids=[
        "a negative limit",
        "a negative penalty",
        "an unknown pooling of frames",
        "an unknown rule for directions",
        "a bank with a negative clipping",
        "a mean of one feature for eight",
        "clipping without mean and scale",
        "an unknown kind of CAV",
        "float64 beside float32",
    ],
)
def test_parameters_and_arrays_that_an_estimator_cannot_have_are_refused(name, parameters, arrays):
    file = read_model(FROZEN_FILES / f"protocol_4_{name}.model")
    card = structs.replace(file.card, parameters={**file.card.parameters, **parameters})
    construct(file)
    with pytest.raises(ModelError):
        construct(replace(file, card=card, arrays={**file.arrays, **arrays}))


PCBM_DT_FILE = FROZEN_PCBM_DT.read_bytes()


@pytest.mark.long
@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.tuples(st.integers(0, len(PCBM_DT_FILE) - 1), st.integers(0, 255)), min_size=1, max_size=4)
)
def test_any_changed_bytes_of_a_concept_model_give_a_model_or_one_clear_error(tmp_path, changes):
    data = bytearray(PCBM_DT_FILE)
    for place, value in changes:
        data[place] = value
    path = tmp_path / "a.model"
    path.write_bytes(data)
    try:
        model = load_model(path)
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either is right
        return
    two_clips = np.zeros((2, 8), dtype=np.float32)
    with np.errstate(all="ignore"):  # changed numbers may overflow
        model.contributions(two_clips)
        assert len(model.intervene(two_clips, {model.concepts[0]: 0.5})) == 2


# On servers.


def test_a_model_is_read_from_a_server_as_from_a_folder(tmp_path):
    pytest.importorskip("obstore")
    with serving(FROZEN_FILES) as site:
        remote = read_model(f"{site.url}/{FROZEN_PCBM_DT.name}")
        assert remote.where == f"{site.url}/{FROZEN_PCBM_DT.name}"
        assert remote.card == read_model(FROZEN_PCBM_DT).card
        assert construct(remote).concepts_ == ("Gun", "Dim light")
        with pytest.raises(FileNotFoundError):
            read_model(f"{site.url}/nothing.model")
    with pytest.raises(ModelError):
        read_model(tmp_path)
