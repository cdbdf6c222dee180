"""Training finds what is planted, finds nothing in noise, and sees no test movie."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from obygaze_features.manifest import Manifest
from obygaze_models.errors import DatasetError
from obygaze_models.evaluation.metrics import expected_average_precision
from obygaze_models.models.choices import Grid
from obygaze_models.models.ordinal import OrdinalModel
from obygaze_models.models.registry import BUILTIN_MODELS
from obygaze_models.models.scaling import ClippedScaler
from obygaze_models.models.spec import ModelSpec
from obygaze_studies.errors import TaskError
from obygaze_studies.mediaeval15 import accuracy, average_precision, of_manifest
from obygaze_studies.mediaeval15.annotations import true_classes, violence_qrels
from obygaze_studies.mediaeval15.training import call_test_clips, called_ranks, load_sides

LINEAR = BUILTIN_MODELS["linear"]
PENALTIES = (0.01, 1.0)


def spec(make, choose=None):
    """Make a model of two penalties; fast, and its estimators are a test's to watch."""
    return ModelSpec("own", "Own", make, choose=choose or Grid("logisticregression__C", PENALTIES))


FAST = spec(lambda _: make_pipeline(ClippedScaler(), LogisticRegression()))
"""A logistic regression, which is trained in no time."""


def train_violence(dev_and_test, model):
    """Train on the dev clips; return the test clips' scores of violence, and how the model was chosen."""
    return call_test_clips(dev_and_test, "violence", model)


def train_affect(dev_and_test, model):
    """Train on the dev clips; return the test clips' classes by axis, and how the models were chosen."""
    return call_test_clips(dev_and_test, "affect", model)


def annotations_of_test_clips(manifest):
    """List the annotations of the test clips."""
    return [clip for clip in of_manifest(manifest) if clip.split == "test"]


def with_violence(manifest, is_violent):
    """Label clips anew: `is_violent` is a function of a clip, of which None is unlabelled."""
    level_of = {True: "violent", False: "nonviolent", None: None}
    cell_of = {True: "1", False: "0", None: ""}
    clips = []
    for clip in manifest:
        violent = is_violent(clip)
        extras = clip.extras | {"violence": cell_of[violent]}
        clips.append(replace(clip, level=level_of[violent], extras=extras))
    return manifest.with_clips(clips)


@pytest.fixture
def store_and_manifest(make_task):
    """The store and the manifest of twelve films whose clips are told apart by 20 standard deviations."""
    store, manifest = make_task()
    return store, manifest


@pytest.fixture
def dev_and_test(store_and_manifest):
    """Its dev clips, of six films, and its test clips, of the six others."""
    return load_sides(*store_and_manifest)


def test_violence_that_is_separable_has_an_average_precision_of_1(store_and_manifest, dev_and_test):
    """Violent and other clips of twelve films are far apart in the features.

    A linear model of six of the films puts all violent clips of the six others before the rest.
    """
    _, manifest = store_and_manifest

    scores, _ = train_violence(dev_and_test, LINEAR)

    truth = violence_qrels(annotations_of_test_clips(manifest))
    assert average_precision(scores, truth) == 1.0


def test_the_penalty_of_a_linear_model_is_chosen_on_dev_clips_and_recorded(dev_and_test):
    """The linear model has a list of penalties C, of which one is chosen on 120 dev clips of six films."""
    _, selection = train_violence(dev_and_test, LINEAR)

    record = selection["violence"]
    assert record["dev_clips"] == 120
    assert record["dev_movies"] == 6

    candidates = record["candidates"]
    assert [candidate["name"] for candidate in candidates] == [f"C={C:g}" for C in LINEAR.choose.values]
    assert [candidate["chosen"] for candidate in candidates].count(True) == 1


def test_affect_that_is_separable_has_an_accuracy_of_1_and_a_penalty_for_each_step(
    store_and_manifest, dev_and_test
):
    """Each axis has three classes, whose clips are far apart in the features of twelve films.

    A model of six of the films asks in two steps whether a clip is above the first class, and whether it is
    above the second; each step has its own penalty.
    """
    _, manifest = store_and_manifest

    called_classes, selection = train_affect(dev_and_test, LINEAR)

    for axis in ("valence", "arousal"):
        truth = true_classes(annotations_of_test_clips(manifest), axis)
        values, *_ = accuracy(called_classes[axis], truth)
        assert values["accuracy_all"] == 1.0
    steps = {candidate["step"] for candidate in selection["valence"]["candidates"]}
    assert steps == {1, 2}


class ConstantModel:
    """A model of whether a clip is above a class, by which all clips are so with the same probability p."""

    def __init__(self, p):
        self.p = p

    def scores(self, X, _):
        """Return the logit of p for each clip."""
        return np.full(len(X), np.log(self.p / (1 - self.p)))


@pytest.mark.parametrize(
    ("p_above_0", "p_above_1", "called"),
    [
        (0.55, 0.5, 2),  # classes 0, 1 and 2 have .45, .05 and .5, although their mean is 1.05
        (0.9, 0.1, 1),
        (0.2, 0.1, 0),
    ],
)
def test_the_most_probable_class_is_called_not_the_one_nearest_to_the_mean(p_above_0, p_above_1, called):
    """A clip is above class 0 with probability a and above class 1 with b.

    Then the classes have 1 - a, a - b and b.
    """
    model = OrdinalModel((ConstantModel(p_above_0), ConstantModel(p_above_1)))
    assert called_ranks(model, np.zeros((1, 1)), np.array(["m"]), n_classes=3).tolist() == [called]


def test_baselines_score_or_call_all_clips_alike(dev_and_test):
    """One baseline calls every clip violent, and the other gives all the median class of the dev clips."""
    scores, _ = train_violence(dev_and_test, BUILTIN_MODELS["always_positive"])
    called_classes, _ = train_affect(dev_and_test, BUILTIN_MODELS["median_level"])

    assert len(set(scores.values())) == 1
    assert len(set(called_classes["arousal"].values())) == 1


@pytest.mark.parametrize(
    "name",
    ["median_level", "pcbm_lr"],
    ids=["a model of ordered levels", "a model that reads concepts, which the task's clips don't have"],
)
def test_a_model_that_cannot_score_violence_by_features_alone_is_refused(dev_and_test, name):
    """Violence has two classes: a clip is violent, or it is not. The refusal names the model."""
    with pytest.raises(TaskError, match=name):
        train_violence(dev_and_test, BUILTIN_MODELS[name])


def with_labels_shuffled(manifest, rng):
    """Deal the labels of violence out among the clips anew."""
    labels = rng.permutation([clip.level == "violent" for clip in manifest])
    label_of = {clip.clip_id: bool(label) for clip, label in zip(manifest, labels, strict=True)}
    return with_violence(manifest, lambda clip: label_of[clip.clip_id])


@pytest.mark.long
def test_a_model_trained_on_shuffled_labels_has_the_average_precision_of_random_scores(store_and_manifest):
    """A model of labels that were dealt out anew knows nothing, like scores that are drawn at random.

    Of each precision, the one to be expected of a random order is taken away, so that the means of both
    should be 0. They may be off by four standard errors, of 3 shuffles and of 100 random runs for each.
    """
    store, manifest = store_and_manifest
    rng = np.random.default_rng(0)
    n_shuffles = 3
    n_random_runs = 100
    excess_of_models = []
    excess_of_random_scores = []
    for _ in range(n_shuffles):
        shuffled = with_labels_shuffled(manifest, rng)
        truth = violence_qrels(annotations_of_test_clips(shuffled))
        expected = expected_average_precision(len(truth), sum(truth.values()))

        scores, _ = train_violence(load_sides(store, shuffled), FAST)
        excess_of_models.append(average_precision(scores, truth) - expected)

        for _ in range(n_random_runs):
            random_scores = dict(zip(scores, rng.random(len(scores)).tolist(), strict=True))
            excess_of_random_scores.append(average_precision(random_scores, truth) - expected)

    deviation = np.std(excess_of_random_scores)
    assert abs(np.mean(excess_of_models)) < 4 * deviation / np.sqrt(n_shuffles)
    assert abs(np.mean(excess_of_random_scores)) < 4 * deviation / np.sqrt(n_shuffles * n_random_runs)


def movies_of_each_fit(dev_and_test):
    """Train a model of violence; list the movies of the clips that it was fitted on, fit by fit."""
    movies = dev_and_test.data.movies.tolist()
    movie_of_features = {row.tobytes(): movie for row, movie in zip(dev_and_test.data.X, movies, strict=True)}
    movies_of_fits = []

    class WatchedScaler(ClippedScaler):
        def fit(self, X, y=None):
            movies_of_fits.append({movie_of_features[row.tobytes()] for row in X})
            return super().fit(X, y)

    train_violence(dev_and_test, spec(lambda _: make_pipeline(WatchedScaler(), LogisticRegression())))
    return movies_of_fits


def test_no_test_clip_is_trained_on_and_each_movie_is_held_out_of_one_inner_fold(dev_and_test):
    """The penalty is chosen on four inner folds, and the model then fitted on all dev clips, of six films.

    An inner fold holds out some of the films, to test on. The penalties share one fit of the scaler in each
    fold, so that five fits are seen.
    """
    dev_movies = set(dev_and_test.data.movies[dev_and_test.dev].tolist())

    *movies_of_inner_folds, movies_of_last_fit = movies_of_each_fit(dev_and_test)

    assert movies_of_last_fit == dev_movies
    assert len(movies_of_inner_folds) == 4
    all_held_out = []
    for movies in movies_of_inner_folds:
        held_out = dev_movies - movies
        assert held_out
        all_held_out += held_out
    assert sorted(all_held_out) == sorted(dev_movies)


def test_a_test_clip_without_features_has_no_score_and_is_listed_with_its_reason(make_task):
    """Of 120 test clips, one has no features, as its file was empty."""
    dev_and_test = load_sides(*make_task(failed="ACCEDE00239.mp4"))

    scores, _ = train_violence(dev_and_test, FAST)

    assert len(scores) == 119
    (excluded,) = dev_and_test.excluded["test"]
    assert excluded == {"clip_id": "ACCEDE00239.mp4", "reason": "failed: the file is empty (0 bytes)"}


def without_labels_of_test_clips(manifest):
    """Copy a manifest in which test clips have no label of violence, valence or arousal."""
    clips = []
    for clip in manifest:
        if clip.extras["split"] == "test":
            without_labels = clip.extras | {"violence": "", "valence": "", "arousal": ""}
            clips.append(replace(clip, level=None, extras=without_labels))
        else:
            clips.append(clip)
    return manifest.with_clips(clips)


@pytest.mark.parametrize("train", [train_violence, train_affect])
def test_labels_of_test_clips_change_neither_calls_nor_the_choice_of_the_model(
    store_and_manifest, dev_and_test, train
):
    """In `dev_and_test` all clips are labelled, and in a copy only the dev clips, which a model may see.

    So both have to give the test clips the same scores of violence, or classes of affect, and choose the
    same penalty.
    """
    store, manifest = store_and_manifest
    dev_and_test_without_test_labels = load_sides(store, without_labels_of_test_clips(manifest))

    assert train(dev_and_test_without_test_labels, FAST) == train(dev_and_test, FAST)


@pytest.mark.parametrize(
    ("provenance", "pretrained"),
    [
        ({"weights_sha256": "0" * 64}, True),
        ({"weights_sha256": "0" * 64, "untrained": True}, False),
        ({}, False),
        ({"imported": True}, None),
        ({"imported": True, "weights_sha256": "0" * 64}, True),
        ({"imported": True, "untrained": True}, False),
    ],
    ids=[
        "weights",
        "random weights",
        "no weights",
        "imported without a word on weights",
        "imported, by weights",
        "imported, by random weights",
    ],
)
def test_the_provenance_of_features_says_whether_a_pretrained_network_made_them(
    make_task, provenance, pretrained
):
    """The task asks for it. Without weights, a descriptor made the features, and nothing was trained.

    Of imported features this is unknown (None) where the provenance does not say by which weights.
    """
    assert load_sides(*make_task(**provenance)).pretrained is pretrained


@pytest.mark.parametrize(
    ("is_violent", "message"),
    [
        (lambda _: None, "0 nonviolent, 0 violent"),
        (lambda _: False, "120 nonviolent, 0 violent"),
        (lambda clip: clip.movie == "film01", "violence: inner selection"),
    ],
    ids=["no label", "no violence", "violence in one film alone"],
)
def test_dev_labels_that_teach_nothing_are_refused(store_and_manifest, is_violent, message):
    """The 120 dev clips are labelled anew by `is_violent`, a function of a clip, of which None is no label.

    A penalty is chosen on folds of films, which is impossible where one film alone has violent clips.
    """
    store, manifest = store_and_manifest
    dev_and_test = load_sides(store, with_violence(manifest, is_violent))

    with pytest.raises(TaskError, match=message):
        train_violence(dev_and_test, FAST)


def test_a_manifest_without_clips_is_refused_as_it_has_no_split(store_and_manifest):
    store, manifest = store_and_manifest
    without_clips = manifest.with_clips([])

    with pytest.raises(TaskError, match="split"):
        load_sides(store, without_clips)


def test_a_manifest_without_test_clips_is_refused_with_the_name_of_the_store(store_and_manifest):
    """All clips of the manifest are in dev. The store, called films, has features of both sides."""
    store, manifest = store_and_manifest
    dev_clips_alone = manifest.with_clips(clip for clip in manifest if clip.extras["split"] == "dev")

    with pytest.raises(TaskError, match="films"):
        load_sides(store, dev_clips_alone)


def test_a_manifest_of_another_codebook_than_the_tasks_is_refused_by_its_name(store_and_manifest):
    """A manifest has the codebook obygaze12 where none is given; the task has one of its own."""
    store, manifest = store_and_manifest
    of_obygaze12 = Manifest(clips=(), root=manifest.root)

    with pytest.raises(TaskError, match="obygaze12"):
        load_sides(store, of_obygaze12)


def test_a_store_without_features_of_the_backbone_that_is_asked_for_is_refused(store_and_manifest):
    """The store has a group `descriptors`, and features of X-CLIP are asked for."""
    store, manifest = store_and_manifest

    with pytest.raises(DatasetError, match="xclip"):
        load_sides(store, manifest, backbone="xclip")


def test_a_film_of_dev_and_of_test_clips_is_refused_by_its_name(make_task):
    """The first clip of film00 is in test, its others in dev: a model would be tested on a film it knows."""
    store, with_film00_on_both_sides = make_task(leak=True)

    with pytest.raises(TaskError, match="'film00'"):
        load_sides(store, with_film00_on_both_sides)
