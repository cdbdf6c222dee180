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
    """A file of each kind, written long ago, is made an estimator and taken apart again.

    The estimator may have parameters that are newer than the file.
    """
    kinds = set()
    for path in sorted(FROZEN_FILES.glob("protocol_4_*.model")):
        file = read_model(path)

        estimator = construct(file)
        state = to_state(estimator)

        assert state.kind == file.card.kind
        assert file.card.parameters.items() <= state.parameters.items()
        assert state.arrays.keys() == file.arrays.keys()
        for name, array in state.arrays.items():
            np.testing.assert_array_equal(array, file.arrays[name])
        kinds.add(file.card.kind)

    all_kinds = set(CONVERSIONS)
    assert kinds == all_kinds


def two_classes_of_clips(shape):
    """Features of clips of two classes, every second one with a 1; these are higher by .5."""
    X = np.random.default_rng(0).normal(3, 2, shape)
    y = np.arange(len(X)) % 2
    X[y == 1] += 0.5
    return X, y


def stored_and_read_again(estimator, kind, n_features):
    """Put an estimator's parameters and arrays into a file of its kind that older code wrote, and read it."""
    state = to_state(estimator)
    file_of_kind = read_model(FROZEN_FILES / f"protocol_4_{kind}.model")
    card = structs.replace(file_of_kind.card, parameters=dict(state.parameters), n_features=n_features)
    return construct(replace(file_of_kind, card=card, arrays=dict(state.arrays)))


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_linear_probe_of_frames_has_the_same_scores_after_it_was_stored(pooling):
    """60 clips have 5 frames each, of 3 features; the probe takes the mean or the largest of the frames."""
    X, y = two_classes_of_clips((60, 5, 3))
    estimator = make_frames_probe(pooling).fit(X, y)

    estimator_again = stored_and_read_again(estimator, "linear", n_features=3)

    np.testing.assert_array_equal(estimator_again.decision_function(X), estimator.decision_function(X))


def test_a_cav_that_clips_features_has_the_same_scores_after_it_was_stored():
    """A CAV (concept activation vector) is a plane in feature space; 60 clips have 8 features.

    Features further than 5 deviations from their mean are moved to 5.
    """
    X, y = two_classes_of_clips((60, 8))
    estimator = LinearCAV("ridge", clip=5.0).fit(X, y)

    estimator_again = stored_and_read_again(estimator, "cav", n_features=8)

    np.testing.assert_array_equal(estimator_again.decision_function(X), estimator.decision_function(X))


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
    """Such a pipeline is stored as one of our own. Frames may be pooled to vectors before."""
    pipeline = make_pipeline(*steps)

    assert is_linear(pipeline) is expected


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
    """A model is trained on the clips that have a label: "unsure" is a level that is no label."""
    data, _ = data_and_run

    model = load_checking_round_trip(saved_path, tmp_path, offered=MODELS)

    has_label = data.levels != "unsure"
    expected = NearestWithArrays().fit(data.X[has_label], data.levels[has_label])
    np.testing.assert_allclose(model.logits(data.X), expected.decision_function(data.X), rtol=1e-5)
    assert saved_path.name == "lab_with_arrays.model"


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        pytest.param({}, "'lab:with_arrays', which no installed package offers", id="nothing is offered"),
        pytest.param(
            {"lab:with_arrays": Nearest()}, "'lab:with_arrays'", id="an estimator that takes no arrays"
        ),
        pytest.param(
            {"lab:with_arrays": OtherWithArrays()},
            "'lab:with_arrays'",
            id="an estimator of another class than the saved one",
        ),
    ],
)
def test_a_model_of_a_labs_own_class_is_loaded_only_if_that_class_is_offered_under_its_name(
    saved_path, offered, message
):
    """A file may come from strangers: no module is imported because the file names it.

    This one has the arrays of a lab's own model, `lab:with_arrays`, of the class NearestWithArrays. The class
    must be offered under that name, by an installed package or by the caller; otherwise the file is refused,
    and the message names the model.
    """
    with pytest.raises(ModelError, match=message):
        load_model(saved_path, offered=offered)


@pytest.mark.long
def test_a_run_saves_the_models_that_it_was_given(data_and_run, saved_path, tmp_path):
    """A run is an evaluation. It knows its models, so that they need not be given again to save one."""
    data, run = data_and_run

    by_function = save_models(run, data, ["lab:with_arrays"], tmp_path / "a")["lab:with_arrays"]
    by_method = run.save(data, ["lab:with_arrays"], tmp_path / "b")["lab:with_arrays"]

    assert by_function.read_bytes() == saved_path.read_bytes()
    assert by_method.read_bytes() == saved_path.read_bytes()


@pytest.mark.long
def test_a_run_that_was_pickled_saves_the_models_that_can_be_pickled(data_and_run, tmp_path):
    """Of two models, one is made by a lambda, which can't be pickled. It has to be given again (models=)."""
    data, _ = data_and_run
    not_picklable = ModelSpec("lambda", "lambda", lambda _seed: linear_probe())
    run = evaluate(data, {"linear": linear_probe(), "lambda": not_picklable})

    unpickled = pickle.loads(pickle.dumps(run))  # noqa: S301 - made here
    linear_of_run = run.save(data, ["linear", "lambda"], tmp_path / "a")["linear"]
    linear_of_unpickled = unpickled.save(data, ["linear"], tmp_path / "b")["linear"]

    assert unpickled.predictions.table.equals(run.predictions.table)
    assert linear_of_unpickled.read_bytes() == linear_of_run.read_bytes()
    with pytest.raises(ModelError, match="models="):
        unpickled.save(data, ["lambda"], tmp_path / "b")


@pytest.mark.long
def test_an_estimator_of_scikit_learn_is_saved_by_skops_and_scores_the_same_when_loaded(
    data_and_run, svm_path, tmp_path
):
    """The estimator is a support vector machine that tells violent clips from calm ones.

    It is trained on the clips that have a label: "unsure" is a level that is no label.
    """
    data, run = data_and_run
    path = save_models(run, data, ["svm"], tmp_path, models=MODELS)["svm"]
    assert path.read_bytes() == svm_path.read_bytes(), "a second file has the same bytes"

    model = load_model(path)

    assert model.card.kind == "skops"
    has_label = data.levels != "unsure"
    expected = clone(MODELS["svm"]).fit(data.X[has_label], data.levels[has_label] == "violent")
    np.testing.assert_allclose(model.logits(data.X), expected.decision_function(data.X), rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["lab:without_arrays", "forest"], ids=["no arrays", "a class that skops does not trust"]
)
def test_an_estimator_that_cannot_be_saved_is_refused_in_one_line(data_and_run, tmp_path, name):
    """One is a lab's classifier that gives no arrays, one a forest of scikit-learn. No folder is made."""
    pytest.importorskip("skops")
    data, run = data_and_run

    with pytest.raises(ModelError) as refusal:
        save_models(run, data, [name], tmp_path / "new", models=MODELS)

    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "new").exists()


@pytest.fixture(scope="module")
def svm_path(data_and_run, tmp_path_factory):
    """The file of a support vector machine, whose only array, `skops`, is a skops archive as bytes."""
    pytest.importorskip("skops")
    data, run = data_and_run
    return save_models(run, data, ["svm"], tmp_path_factory.mktemp("svm"), models=MODELS)["svm"]


def arrays_of_an_untrusted_class(_):
    """Return arrays with an archive of skops of the class Nearest, which nobody trusts."""
    from skops import io

    archive = io.dumps(Nearest().fit(np.array([[0.0], [1.0]]), np.array([0, 1])))
    return {"skops": np.frombuffer(archive, np.uint8)}


def arrays_of_half_an_archive(archive):
    """Return arrays with the first half of an archive of skops."""
    return {"skops": archive[: len(archive) // 2]}


def arrays_of_a_compressed_archive(archive):
    """Return arrays with an archive of skops whose members are compressed, and may be huge once unpacked."""
    compressed = zip_archive_of(members_of(archive), zipfile.ZIP_DEFLATED)
    return {"skops": np.frombuffer(compressed, np.uint8)}


def arrays_of_integers(archive):
    """Give the bytes of the archive as integers of 8 bytes, filled up with zeros."""
    padding = bytes(-len(archive) % 8)
    return {"skops": np.frombuffer(archive.tobytes() + padding, "<i8")}


def arrays_with_one_more(archive):
    """Return arrays with an archive of skops, and another array beside it."""
    return {"skops": archive, "more": archive[:1]}


def arrays_of_another_name(archive):
    """Return arrays with an archive of skops under another name than "skops"."""
    return {"more": archive}


@pytest.mark.parametrize(
    ("tampered_arrays", "message"),
    [
        (arrays_of_an_untrusted_class, "is not trusted in a file"),
        (arrays_of_half_an_archive, "its skops archive is damaged"),
        (arrays_of_a_compressed_archive, "compressed"),
        (arrays_of_integers, "the array skops, of bytes"),
        (arrays_with_one_more, "the array skops, of bytes"),
        (arrays_of_another_name, "the array skops, of bytes"),
    ],
)
def test_a_skops_archive_that_was_tampered_with_is_refused(svm_path, tmp_path, tampered_arrays, message):
    """A model of scikit-learn is stored by the library skops, which names the classes to make, in a zip file.

    Its bytes are the array "skops" of the model file at `svm_path`. The array is changed, and the digests of
    the file are made to fit.
    """
    file = read_model(svm_path)
    arrays = tampered_arrays(file.arrays["skops"])
    tampered_file = tmp_path / "tampered.model"
    tampered_file.write_bytes(pack(file.card, arrays, file.other_arrays))

    with pytest.raises(ModelError, match=message):
        load_model(tampered_file)


# Trees are walked only after their nodes were checked.


def node(concept=0, threshold=0.5, left=1, right=2, n_negative=6, n_positive=8):
    """Make a row of the table of nodes: a step at a concept, to the rows `left` or `right`."""
    return [concept, threshold, left, right, n_negative, n_positive]


def leaf(n_negative=3, n_positive=4):
    """Make a row of the table of nodes for a leaf."""
    return node(concept=-1, threshold=0, left=-1, right=-1, n_negative=n_negative, n_positive=n_positive)


def test_a_table_of_a_step_and_two_leaves_is_a_tree():
    """Row 0 is a step at one of three concepts, and leads to leaves in rows 1 and 2: no error is raised."""
    nodes = np.array([node(), leaf(), leaf()], dtype=float)

    _check_nodes_table(nodes, n_values=3)


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
    """Row 0 of a sound table is a step at one of three concepts, and leads to the leaves in rows 1 and 2."""
    with pytest.raises(ModelError):
        _check_nodes_table(np.array(nodes, dtype=float), n_values=3)


def test_a_stored_tree_leads_each_clip_to_the_leaf_that_its_nodes_say():
    """The tree asks whether the second concept is above .5. If not, all 8 training clips were negative.

    Both classes are counted one clip more than there are, so that no score is infinite: it is log(9 / 1).
    """
    step = node(concept=1, threshold=0.5)
    all_negative = leaf(n_negative=8, n_positive=0)
    all_positive = leaf(n_negative=0, n_positive=8)
    tree = stored_tree(np.array([step, all_negative, all_positive], dtype=float))
    clip_at_the_threshold = [9.0, 0.5]
    clip_above = [0.0, 0.6]

    scores = head_scores(tree, np.array([clip_at_the_threshold, clip_above]))

    assert scores.tolist() == [-np.log(9), np.log(9)]


def sound_model(kind):
    """Read the file of a model of 8 features that older code wrote."""
    file = read_model(FROZEN_FILES / f"protocol_4_{kind}.model")
    construct(file)  # raises no error
    return file


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        pytest.param("linear", {"limit": -1.0}, id="a negative limit"),
        pytest.param("linear", {"C": -1.0}, id="a negative penalty"),
        pytest.param("linear", {"frames": "middle"}, id="an unknown pooling of frames"),
        pytest.param("bank", {"directions": "other"}, id="an unknown rule for directions"),
        pytest.param("cav", {"clip": 5.0}, id="clipping without the mean and scale of features"),
        pytest.param("cav", {"kind": "tree"}, id="an unknown kind of CAV"),
    ],
)
def test_parameters_that_an_estimator_cannot_have_are_refused(kind, parameters):
    """In the card of a sound model, these parameters are put in place of its own."""
    file = sound_model(kind)
    card = structs.replace(file.card, parameters={**file.card.parameters, **parameters})

    with pytest.raises(ModelError):
        construct(replace(file, card=card))


@pytest.mark.parametrize(
    ("kind", "parameters", "arrays"),
    [
        pytest.param(
            "bank",
            {"clip": -1.0},
            {"feature_mean": np.zeros(8), "feature_scale": np.ones(8)},
            id="mean and scale for a negative clipping",
        ),
        pytest.param(
            "cav",
            {"clip": 5.0},
            {"feature_mean": np.zeros(1), "feature_scale": np.ones(8)},
            id="a mean of one feature for eight",
        ),
        pytest.param("mlp", {}, {"mean": np.zeros(8)}, id="float64 beside float32"),
    ],
)
def test_arrays_that_an_estimator_cannot_have_are_refused(kind, parameters, arrays):
    """In the file of a sound model of 8 features, these parameters and arrays are put in place of its own."""
    file = sound_model(kind)
    card = structs.replace(file.card, parameters={**file.card.parameters, **parameters})
    changed_file = replace(file, card=card, arrays={**file.arrays, **arrays})

    with pytest.raises(ModelError):
        construct(changed_file)


PCBM_DT_FILE = FROZEN_PCBM_DT.read_bytes()


def assert_explains_two_clips(model):
    """A model that is read can say what its concepts contribute, and its score if one is set by hand."""
    two_clips = np.zeros((2, 8), dtype=np.float32)
    with np.errstate(all="ignore"):  # changed numbers may overflow
        model.contributions(two_clips)
        scores = model.intervene(two_clips, {model.concepts[0]: 0.5})
    assert len(scores) == 2


PLACES_IN_THE_FILE = st.integers(0, len(PCBM_DT_FILE) - 1)
VALUES_OF_A_BYTE = st.integers(0, 255)


@pytest.mark.long
@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.tuples(PLACES_IN_THE_FILE, VALUES_OF_A_BYTE), min_size=1, max_size=4))
def test_any_changed_bytes_of_a_concept_model_give_a_model_or_one_clear_error(tmp_path, changed_bytes):
    """One to four bytes of the file of a model of concepts, at any places, get other values: (place, value).

    Either the file is refused by an error of one line, or the model works; its numbers may be others.
    """
    content = bytearray(PCBM_DT_FILE)
    for place, value in changed_bytes:
        content[place] = value
    path = tmp_path / "a.model"
    path.write_bytes(content)

    try:
        model = load_model(path)
    except ModelError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either is right
        return
    assert_explains_two_clips(model)


# On servers.


def test_a_model_is_read_from_a_server_as_from_a_folder():
    """The folder of frozen files is served. The model, a bottleneck, has the concepts Gun and Dim light."""
    pytest.importorskip("obstore")
    with serving(FROZEN_FILES) as server:
        url = f"{server.url}/{FROZEN_PCBM_DT.name}"

        file = read_model(url)

        assert file.where == url
        assert file.card == read_model(FROZEN_PCBM_DT).card
        assert construct(file).concepts_ == ("Gun", "Dim light")


def test_a_model_that_the_server_does_not_have_is_an_error():
    """The server has a folder of models, of which none is called nothing.model."""
    pytest.importorskip("obstore")

    with serving(FROZEN_FILES) as server, pytest.raises(FileNotFoundError):
        read_model(f"{server.url}/nothing.model")


def test_reading_a_folder_as_a_model_is_refused(tmp_path):
    """A person typed a folder where the file of a model is expected."""
    with pytest.raises(ModelError):
        read_model(tmp_path)
