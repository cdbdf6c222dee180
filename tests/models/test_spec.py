"""A lab's own model is found by its name and evaluated without a line of ours changed."""

import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
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
def data(make_planted):
    return make_planted(direction=3.0, film=0.5, n_movies=4, n_per_movie=30)


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

    The two values of the grid of `lab_grid` are recorded for each of the four films left out.
    """
    run = evaluate(data, [text], "enhn_s")
    assert within_movie_aucs(run)[name] > 0.8
    assert next(iter(run.record["models"])) == name
    assert (run.selection["model"] == name).sum() == (2 * 4 if name == "lab_grid" else 0)


def test_a_pipeline_of_scikit_learn_keeps_its_own_scores(data):
    """The evaluation trains it on all films but one, as is done here by hand."""
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
    run = evaluate(data, {"mine": pipeline}, "enhn_s")
    scores = run.predictions.table.query("model == 'mine' and fold == 0")["score"]
    y = data.levels == "S"
    held_out = data.movies == data.movies[0]
    pipeline.fit(data.X[~held_out], y[~held_out])
    np.testing.assert_allclose(scores, pipeline.decision_function(data.X[held_out]), atol=1e-5)


@pytest.mark.long
def test_a_skorch_estimator_is_evaluated(data):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    skorch = pytest.importorskip("skorch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(12, 2)

        def forward(self, X):
            return torch.softmax(self.layer(X), dim=1)

    def make(seed):
        torch.manual_seed(seed)
        return skorch.NeuralNetClassifier(
            Net, max_epochs=4, lr=0.5, batch_size=30, train_split=None, verbose=0
        )

    first = evaluate(data, {"skorch": make}, "enhn_s")
    again = evaluate(data, {"skorch": make}, "enhn_s")
    assert within_movie_aucs(first)["skorch"] > 0.8
    assert " at 0x" not in str(first.record["models"]["skorch"])
    assert first.record == again.record


class NeedsMovies(LogisticRegression):
    """Weighs movies alike; requests them by scikit-learn's metadata routing, and refuses to do without."""

    __metadata_request__fit = {"groups": True}  # noqa: RUF012 - as scikit-learn writes it

    def fit(self, X, y, groups=None):
        if groups is None:
            raise ValueError("give the movies")
        assert len(groups) == len(X)
        _, movie_of, n_clips = np.unique(groups, return_inverse=True, return_counts=True)
        return super().fit(X, y, sample_weight=1 / n_clips[movie_of])


@pytest.mark.long
def test_an_estimator_that_requests_movies_gets_them_in_every_inner_fold_too(data):
    models = {
        "plain": NeedsMovies(),
        "in_pipeline": make_pipeline(StandardScaler(), NeedsMovies()),
        "in_spec": ModelSpec("in_spec", "", lambda _: NeedsMovies(), choose=Grid("C", (0.1, 1.0))),
    }
    auc_of = within_movie_aucs(evaluate(data, models, "enhn_s"))  # which fails where movies are not given

    for name in models:
        assert auc_of[name] > 0.8


def test_every_part_of_an_estimator_draws_from_the_runs_seed():
    network = MLPClassifier(4, max_iter=3, early_stopping=False)
    spec = as_spec("net", make_pipeline(StandardScaler(), network))
    for seed in (3, 4):
        assert spec.make(seed).get_params()["mlpclassifier__random_state"] == seed
    assert network.random_state is None

    of_factory = as_spec("net", lambda *, seed=0: MLPClassifier(random_state=seed))
    assert of_factory.make(5).random_state == 5
    assert as_spec("net", MLPClassifier()).draws()
    assert not as_spec("plain", StandardScaler()).draws()


@pytest.mark.nightly
@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name for name, spec in BUILTIN_MODELS.items() if spec.reads in ("frames", "tokens")]
)
def test_frames_in_another_unit_have_the_same_scores(name):
    """Even in units in which the squares of features are too large, or too small, for float32."""
    rng = np.random.default_rng(0)
    y = np.arange(32) % 2
    movies = np.repeat(["a", "b", "c", "d"], 8)
    present = pd.DataFrame(rng.integers(2, size=(32, 2)), columns=["Body", "Look"])
    X = rng.standard_normal((32, 3, 4)).astype(np.float32)
    X[:, 1, 0] += 2 * y
    X[..., 1:3] += present.to_numpy()[:, None]

    def scores_in_unit(scale):
        frames = X * np.float32(scale)
        model = fit(BUILTIN_MODELS[name], 0, frames, y, movies=movies, present=present)
        return model.scores(frames, movies)

    for scale in (2.0**80, 2.0**-80):
        np.testing.assert_allclose(scores_in_unit(scale), scores_in_unit(1), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model", ["own/planted_net.py:make", "own.planted_net:make"])
def test_a_file_of_the_folder_is_named_by_path_or_as_a_module(tmp_path, monkeypatch, model):
    (tmp_path / "own").mkdir()
    text = "from sklearn.svm import LinearSVC\n\n\ndef make():\n    return LinearSVC()\n"
    (tmp_path / "own" / "planted_net.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("own", "own.planted_net"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (spec,) = [spec for spec in models_for("levels", [model]) if spec.name == model]

    assert type(spec.make(0)).__name__ == "LinearSVC"


def test_a_model_of_a_module_may_be_given_a_name_that_is_free():
    spec, *_ = models_for("levels", ["forest=sklearn.ensemble:HistGradientBoostingClassifier"])
    assert (spec.name, spec.title) == ("forest", "forest")
    assert type(spec.make(0)).__name__ == "HistGradientBoostingClassifier"
    for name in ("linear", "", "a b", "a=b"):  # `linear` is a built-in model
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
    with pytest.raises(ModelError, match=message) as caught:
        models_for("levels", [model])
    assert "\n" not in str(caught.value)


class WithoutScores(BaseEstimator):
    def fit(self, X, y):
        del X, y
        return self


class WithTwoScores(WithoutScores):
    def decision_function(self, X):
        return np.zeros((len(X), 2))


class FailingInFit(WithTwoScores):
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
    with pytest.raises(ModelError, match=message):
        evaluate(data, {"mine": estimator}, "enhn_s")


def test_an_estimator_without_a_name_is_refused(data):
    for nameless in (LogisticRegression(), [LogisticRegression()], RandomForestClassifier()):
        with pytest.raises(ArgumentError, match="NAME: VALUE"):
            evaluate(data, nameless, task="hn_s")
        with pytest.raises(ModelError, match="my_model"):
            models_for("levels", nameless)


def test_two_models_of_one_name_are_refused_and_a_name_given_twice_counts_once(data):
    other = ModelSpec("linear", "Another", lambda _: LogisticRegression())
    with pytest.raises(ModelError, match="'linear'"):
        evaluate(data, [BUILTIN_MODELS["linear"], other], "enhn_s")
    first, second, *_ = models_for("levels", ["linear", "linear"])
    assert (first.name, second.name) == ("linear", "always_positive")


@pytest.mark.usefixtures("_lab_package")
def test_a_labs_model_of_frames_needs_a_store_of_frames(make_store, tmp_path):
    """S clips are moved in both of their frames. A model of frames is refused before any is trained."""
    is_s = np.arange(48) % 2 == 1
    clips = []
    for row in range(48):
        movie = f"m{row // 12}"
        clips.append(Clip(f"{movie}-{row:02}", movie, level="S" if is_s[row] else "EN"))
    manifest = Manifest(tuple(clips), tmp_path)
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    frames = np.random.default_rng(0).normal(size=(48, 2, 5)).astype(np.float32)
    frames[is_s, :, 0] += 3
    pooled = {"pooled": frames.mean(axis=1)}
    with_frames = open_store(make_store(tmp_path / "with", movie_of, {"one": pooled | {"frames": frames}}))
    without_frames = open_store(make_store(tmp_path / "without", movie_of, {"one": pooled}))

    run = evaluate(load_dataset(with_frames, manifest), ["thelab_models:FRAMES"], "en_s")
    assert within_movie_aucs(run)["frame_mean"] > 0.9

    data = load_dataset(without_frames, manifest)
    steps_of_training = []
    with pytest.raises(DatasetError, match="one has no frames"):
        evaluate(data, ["linear", "frames_of_lab"], "en_s", progress=lambda *s: steps_of_training.append(s))
    assert steps_of_training == []
