"""A lab's own model is found by its name and evaluated without a line of ours changed."""

import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from obygaze_features.errors import ArgumentError
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import open_store
from obygaze_models.dataset import load_dataset
from obygaze_models.errors import DatasetError, ModelError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models import Grid, ModelSpec, fit
from obygaze_models.models.other_models import as_spec
from obygaze_models.models.registry import BUILTIN_MODELS, models_for
from tests.lab_package import describe

LAB_MODULE = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from obygaze_models.models import Grid, ModelSpec


class Difference(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.axis_ = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
        return self

    def decision_function(self, X):
        return X @ self.axis_


ready = Difference()
SPEC = ModelSpec(
    "lab_grid", "The lab's", lambda seed: LogisticRegression(random_state=seed), choose=Grid("C", (0.1, 1.0))
)
NUMBER = 3


class FrameMean(Difference):
    def fit(self, X, y):
        assert X.ndim == 3
        return super().fit(X.mean(axis=1), y)

    def decision_function(self, X):
        return super().decision_function(X.mean(axis=1))


FRAMES = ModelSpec("frame_mean", "Mean of frames", lambda seed: FrameMean(), reads="frames")


def broken():
    raise RuntimeError("no licence")
"""


@pytest.fixture
def _lab_package(tmp_path, monkeypatch):
    """Install a package of a lab, with metadata that offers its models."""
    (tmp_path / "thelab_models.py").write_text(LAB_MODULE)
    (tmp_path / "thelab_torn.py").write_text("import a_package_that_is_not_there\n")
    entry_points = """
        [obygaze.models]
        difference = thelab_models:Difference
        frames_of_lab = thelab_models:FRAMES
        torn = thelab_torn:make
        gone = thelab_models:gone
        """
    describe(tmp_path, "thelab", textwrap.dedent(entry_points))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in ("thelab_models", "thelab_torn"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def data(make_synthetic_data):
    return make_synthetic_data(direction=3.0, film=0.5, n_movies=4, n_per_movie=30)


def within_movie_aucs(run):
    """Return the AUC within films of each model."""
    rows = run.metrics[run.metrics["metric"] == "within_movie_auc"]
    return dict(zip(rows["model"], rows["pooled"], strict=True))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("thelab_models:Difference", "thelab_models:Difference"),
        ("thelab_models:ready", "thelab_models:ready"),
        ("thelab_models:SPEC", "lab_grid"),
        ("difference", "difference"),
    ],
    ids=["a class", "an instance", "a spec", "an entry point"],
)
@pytest.mark.usefixtures("_lab_package")
def test_a_model_of_an_installed_package_is_found_by_its_name(data, text, name):
    """It may be named by module and attribute, or by the entry point that the package offers.

    Only the spec, `lab_grid`, has something to choose: the two values of its grid are recorded for each of
    the four films left out.
    """
    run = evaluate(data, [text], "enhn_s")

    assert within_movie_aucs(run)[name] > 0.8
    assert next(iter(run.record["models"])) == name
    n_recorded_candidates = (run.selection["model"] == name).sum()
    assert n_recorded_candidates == (2 * 4 if name == "lab_grid" else 0)


def test_a_pipeline_of_scikit_learn_keeps_its_own_scores(data):
    """The evaluation trains it on all films but one, as is done here by hand for the first fold."""
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))

    run = evaluate(data, {"mine": pipeline}, "enhn_s")

    scores_of_first_fold = run.predictions.table.query("model == 'mine' and fold == 0")["score"]
    is_s = data.levels == "S"
    held_out = data.movies == data.movies[0]
    pipeline.fit(data.X[~held_out], is_s[~held_out])
    expected = pipeline.decision_function(data.X[held_out])
    np.testing.assert_allclose(scores_of_first_fold, expected, atol=1e-5)


def make_skorch_estimator(seed):
    """Make an estimator of scikit-learn from a network of PyTorch with one layer of twelve features."""
    import skorch
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(12, 2)

        def forward(self, X):
            return torch.softmax(self.layer(X), dim=1)

    torch.manual_seed(seed)
    return skorch.NeuralNetClassifier(Net, max_epochs=4, lr=0.5, batch_size=30, train_split=None, verbose=0)


@pytest.mark.long
def test_a_skorch_estimator_is_evaluated(data):
    """Skorch is a library that makes an estimator of scikit-learn from a network of PyTorch.

    Two runs have the same record, in which the network has no address in memory, such as "at 0x7f".
    """
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    pytest.importorskip("skorch")

    first_run = evaluate(data, {"skorch": make_skorch_estimator}, "enhn_s")
    second_run = evaluate(data, {"skorch": make_skorch_estimator}, "enhn_s")

    assert within_movie_aucs(first_run)["skorch"] > 0.8
    assert " at 0x" not in str(first_run.record["models"]["skorch"])
    assert first_run.record == second_run.record


class NeedsMovies(LogisticRegression):
    """Weighs movies alike; requests them by scikit-learn's metadata routing, and fails without them."""

    __metadata_request__fit = {"groups": True}  # noqa: RUF012 - as scikit-learn writes it

    def fit(self, X, y, groups=None):
        if groups is None:
            raise ValueError("give the movies")
        assert len(groups) == len(X)
        _, movie_of, n_clips = np.unique(groups, return_inverse=True, return_counts=True)
        return super().fit(X, y, sample_weight=1 / n_clips[movie_of])


@pytest.mark.long
def test_an_estimator_that_requests_movies_gets_them_in_every_inner_fold_too(data):
    """The estimator fails without movies: alone, in a pipeline, and where its penalty is chosen."""
    models = {
        "plain": NeedsMovies(),
        "in_pipeline": make_pipeline(StandardScaler(), NeedsMovies()),
        "in_spec": ModelSpec("in_spec", "", lambda _: NeedsMovies(), choose=Grid("C", (0.1, 1.0))),
    }

    auc_of = within_movie_aucs(evaluate(data, models, "enhn_s"))

    assert auc_of["plain"] > 0.8
    assert auc_of["in_pipeline"] > 0.8
    assert auc_of["in_spec"] > 0.8


def test_a_network_in_a_pipeline_gets_the_runs_seed_and_the_users_own_object_is_not_changed():
    """The user's network has no seed. A spec makes copies of the pipeline, with the seeds 3 and 4."""
    network = MLPClassifier(4, max_iter=3, early_stopping=False)
    spec = as_spec("net", make_pipeline(StandardScaler(), network))

    with_seed_3 = spec.make(3)
    with_seed_4 = spec.make(4)

    assert with_seed_3.get_params()["mlpclassifier__random_state"] == 3
    assert with_seed_4.get_params()["mlpclassifier__random_state"] == 4
    assert network.random_state is None


def test_an_estimator_draws_random_numbers_if_it_has_a_seed():
    """A network has the parameter `random_state`, and a scaler has none."""
    assert as_spec("net", MLPClassifier()).draws()
    assert not as_spec("plain", StandardScaler()).draws()


def frames_that_show_a_label_and_two_concepts():
    """32 clips of four films: frames [32, 3, 4], labels, films, and a table of the concepts Body and Look."""
    rng = np.random.default_rng(0)
    y = np.arange(32) % 2
    movies = np.repeat(["a", "b", "c", "d"], 8)
    present = pd.DataFrame(rng.integers(2, size=(32, 2)), columns=["Body", "Look"])
    X = rng.standard_normal((32, 3, 4)).astype(np.float32)
    X[:, 1, 0] += 2 * y
    X[:, :, 1:3] += present.to_numpy()[:, None]
    return X, y, movies, present


@pytest.mark.nightly
@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name for name, spec in BUILTIN_MODELS.items() if spec.reads in ("frames", "tokens")]
)
def test_frames_in_another_unit_have_the_same_scores(name):
    """Features are multiplied by 2^80, or divided by it: each model of frames gives the same scores.

    The squares of such features, about 2^160 or 2^-160, are too large or too small for float32.
    """
    X, y, movies, present = frames_that_show_a_label_and_two_concepts()

    def scores_in_unit(scale):
        frames = X * np.float32(scale)
        model = fit(BUILTIN_MODELS[name], seed=0, X=frames, y=y, movies=movies, present=present)
        return model.scores(frames, movies)

    expected = scores_in_unit(1)
    np.testing.assert_allclose(scores_in_unit(2.0**80), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(scores_in_unit(2.0**-80), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model", ["own/planted_net.py:make", "own.planted_net:make"])
def test_a_file_of_the_folder_is_named_by_path_or_as_a_module(tmp_path, monkeypatch, model):
    """The working folder has own/planted_net.py, whose function `make` gives a LinearSVC."""
    (tmp_path / "own").mkdir()
    source = "from sklearn.svm import LinearSVC\n\n\ndef make():\n    return LinearSVC()\n"
    (tmp_path / "own" / "planted_net.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("own", "own.planted_net"):  # which another case may have imported
        monkeypatch.delitem(sys.modules, name, raising=False)

    (spec,) = [spec for spec in models_for("levels", [model]) if spec.name == model]

    assert type(spec.make(0)).__name__ == "LinearSVC"


def test_a_model_of_a_module_may_be_given_a_name():
    """It is typed as NAME=MODULE:FACTORY."""
    spec, *_baselines = models_for("levels", ["forest=sklearn.ensemble:HistGradientBoostingClassifier"])

    assert spec.name == "forest"
    assert spec.title == "forest"
    assert type(spec.make(0)).__name__ == "HistGradientBoostingClassifier"


@pytest.mark.parametrize("name", ["linear", "", "a b", "a=b"], ids=["built in", "empty", "a blank", "a ="])
def test_a_name_of_a_built_in_model_or_with_other_signs_is_refused(name):
    """A name that is typed before "=" may have letters, digits and a few signs, but no blank or "="."""
    with pytest.raises(ModelError):
        models_for("levels", [f"{name}=sklearn.svm:LinearSVC"])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("liner", "'liner'.*'linear'"),
        ("xyz", "'xyz'.*linear, mlp, .*MODULE:FACTORY"),
        ("nowhere.models:make", r"--model nowhere\.models:make"),
        ("thelab_torn:make", "thelab_torn.*'a_package_that_is_not_there'"),
        ("torn", "torn of thelab_torn:make.*'a_package_that_is_not_there'"),
        ("gone", "gone of thelab_models:gone"),
        ("thelab_models:missing", "thelab_models has no missing"),
        ("thelab_models:NUMBER", "NUMBER is a int"),
        ("thelab_models:broken", "thelab_models:broken .*RuntimeError: no licence"),
    ],
    ids=[
        "a misspelt name",
        "an unknown name",
        "no such module",
        "a module that cannot be imported",
        "an entry point of such a module",
        "an entry point to nothing",
        "no such attribute",
        "a number",
        "a factory that fails",
    ],
)
@pytest.mark.usefixtures("_lab_package")
def test_a_model_that_can_not_be_found_is_refused_in_one_line(model, message):
    """A lab's package offers entry points that are wrong in one respect, such as `torn` and `gone`."""
    with pytest.raises(ModelError, match=message) as refused:
        models_for("levels", [model])

    assert "\n" not in str(refused.value)


class WithoutScores(BaseEstimator):
    """An estimator that can be fitted and has no method that scores."""

    def fit(self, X, y):
        del X, y
        return self


class WithTwoScores(WithoutScores):
    """An estimator that gives two scores a clip."""

    def decision_function(self, X):
        return np.zeros((len(X), 2))


class FailingInFit(WithTwoScores):
    """An estimator that fails when it is fitted."""

    def fit(self, X, y):
        del X, y
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (WithoutScores(), "model mine .*WithoutScores"),
        (WithTwoScores(), r"model mine .*shape \[\d+\]"),
        (FailingInFit(), "model mine .*mat1 and mat2 shapes"),
    ],
)
def test_an_estimator_that_can_not_be_used_is_refused_in_one_line(data, estimator, message):
    """One has no method that scores, one gives two scores a clip, and one fails when it is fitted.

    The message names the model by the user's name, "mine".
    """
    with pytest.raises(ModelError, match=message):
        evaluate(data, {"mine": estimator}, "enhn_s")


@pytest.mark.parametrize(
    "without_a_name",
    [LogisticRegression(), [LogisticRegression()], RandomForestClassifier()],
    ids=["an estimator", "a list of one", "an estimator that has a length"],
)
def test_an_estimator_without_a_name_is_refused(data, without_a_name):
    """The messages show how to name it: by a dict, as {"my_model": estimator}."""
    with pytest.raises(ArgumentError, match="NAME: VALUE"):
        evaluate(data, without_a_name, task="hn_s")
    with pytest.raises(ModelError, match="my_model"):
        models_for("levels", without_a_name)


def test_two_models_of_one_name_are_refused(data):
    """The other model has the name of the built-in linear probe."""
    another_linear = ModelSpec("linear", "Another", lambda _: LogisticRegression())

    with pytest.raises(ModelError, match="'linear'"):
        evaluate(data, [BUILTIN_MODELS["linear"], another_linear], "enhn_s")


def test_a_name_given_twice_counts_once():
    """After the models that were asked for come the baselines, of which `always_positive` is the first."""
    first, second, *_ = models_for("levels", ["linear", "linear"])

    assert first.name == "linear"
    assert second.name == "always_positive"


def load_planted_frames(make_store, folder, *, stores_frames):
    """Load 48 clips of two frames; S clips are moved in both. The store may keep their means alone."""
    is_s = np.arange(48) % 2 == 1
    clips = []
    for row in range(48):
        movie = f"m{row // 12}"
        clips.append(Clip(f"{movie}-{row:02}", movie, level="S" if is_s[row] else "EN"))
    frames = np.random.default_rng(0).normal(size=(48, 2, 5)).astype(np.float32)
    frames[is_s, :, 0] += 3
    arrays = {"pooled": frames.mean(axis=1)}
    if stores_frames:
        arrays["frames"] = frames
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    store = open_store(make_store(folder / "store", movie_of, {"one": arrays}))
    return load_dataset(store, Manifest(tuple(clips), folder))


@pytest.mark.usefixtures("_lab_package")
def test_a_labs_model_of_frames_is_given_the_frames_of_a_store(make_store, tmp_path):
    """Clips of level S are moved in both of their frames. The model fails unless it is given frames."""
    data = load_planted_frames(make_store, tmp_path, stores_frames=True)

    run = evaluate(data, ["thelab_models:FRAMES"], "en_s")

    assert within_movie_aucs(run)["frame_mean"] > 0.9


@pytest.mark.usefixtures("_lab_package")
def test_a_model_of_frames_is_refused_for_a_store_without_frames_before_any_model_is_trained(
    make_store, tmp_path
):
    """The group `one` has pooled vectors alone, which the other model, linear, reads."""
    data = load_planted_frames(make_store, tmp_path, stores_frames=False)
    steps_of_training = []

    def note_progress(*step):
        steps_of_training.append(step)

    with pytest.raises(DatasetError, match="one has no frames"):
        evaluate(data, ["linear", "frames_of_lab"], "en_s", progress=note_progress)

    assert steps_of_training == []


class Drawing(ClassifierMixin, BaseEstimator):
    """An estimator that draws random numbers by a seed of its own name."""

    def __init__(self, width=3, seed=0):
        self.width = width
        self.seed = seed

    def fit(self, *_):
        return self

    def decision_function(self, rows):
        return np.zeros(len(rows))


class ThresholdOfItsOwn(Drawing):
    """Drawing, with a threshold that the training sets."""

    threshold_ = 1.5


@pytest.mark.parametrize(("estimator", "threshold"), [(Drawing, 0.0), (ThresholdOfItsOwn, 1.5)])
def test_scores_are_logits_unless_the_estimator_sets_a_threshold(estimator, threshold):
    """A clip is called positive above the threshold: a logit of 0 stands for a probability of one half.

    The model's folds of movies choose nothing, not even a threshold.
    """
    spec = ModelSpec("drawing", "Drawing", lambda seed: estimator(seed=seed), choose=None)
    movies = np.array(["a", "a", "b", "b"])

    model = fit(spec, seed=0, X=np.zeros((4, 3)), y=np.array([0, 1, 0, 1]), movies=movies)

    assert model.threshold == threshold


@pytest.mark.parametrize(
    "factory",
    [
        lambda seed: Drawing(seed=seed),
        lambda number: Drawing(seed=number),
        lambda width=3, seed=0: Drawing(width, seed),
        lambda width=3, *, seed: Drawing(width, seed),
        lambda *, random_state=0: Drawing(seed=random_state),
        Drawing,
    ],
    ids=["seed", "first argument", "second argument", "by name alone", "scikit-learn's name", "class"],
)
def test_every_form_of_a_factory_gets_the_runs_seed_and_keeps_its_other_arguments(factory):
    """Else all seeds of a run would train one and the same model, and its spread would seem to be 0."""
    spec = as_spec("drawing", factory)

    for seed in (0, 5):
        estimator = spec.make(seed)
        assert (estimator.width, estimator.seed) == (3, seed)
