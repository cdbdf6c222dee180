"""Training finds what is planted, finds nothing in noise, and sees no test movie."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

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


def train_violence(sides, model):
    return call_test_clips(sides, "violence", model)


def train_affect(sides, model):
    return call_test_clips(sides, "affect", model)


def of_test(clips):
    return [clip for clip in clips if clip.split == "test"]


def labelled(manifest, violent, **extras):
    """Give clips other labels; `violent` and the extras take a clip, None is unlabelled."""
    names = {True: "violent", False: "nonviolent", None: None}
    cells = {True: "1", False: "0", None: ""}
    return manifest.with_clips(
        replace(
            clip,
            level=names[violent(clip)],
            extras={
                **clip.extras,
                "violence": cells[violent(clip)],
                **{name: value(clip) for name, value in extras.items()},
            },
        )
        for clip in manifest
    )


def test_separable_clips_have_average_precision_and_accuracies_of_1(make_task):
    store, manifest = make_task()
    clips = of_manifest(manifest)
    sides = load_sides(store, manifest)
    run, selection = train_violence(sides, LINEAR)
    assert average_precision(run, violence_qrels(of_test(clips))) == 1.0
    found = selection["violence"]
    assert (found["dev_clips"], found["dev_movies"]) == (120, 6)
    assert [one["name"] for one in found["candidates"]] == [f"C={C:g}" for C in LINEAR.choose.values]
    assert sum(one["chosen"] for one in found["candidates"]) == 1
    calls, selection = train_affect(sides, LINEAR)
    assert {one["step"] for one in selection["valence"]["candidates"]} == {1, 2}
    for axis, called in calls.items():
        assert accuracy(called, true_classes(of_test(clips), axis))[0]["accuracy_all"] == 1.0


def test_the_most_probable_class_is_called_not_the_one_nearest_to_the_mean():
    class Step:
        def __init__(self, p):
            self.p = p

        def scores(self, X, _):
            return np.full(len(X), np.log(self.p / (1 - self.p)))

    def called(*above):
        ladder = OrdinalModel(tuple(Step(p) for p in above))
        return called_ranks(ladder, np.zeros((1, 1)), np.array(["m"]), n_classes=3).tolist()

    assert called(0.55, 0.5) == [2], "the expected class is 1.05; the classes have .45, .05 and .5"
    assert called(0.9, 0.1) == [1]
    assert called(0.2, 0.1) == [0]


def test_any_model_of_the_zoo_is_trained_and_a_baseline_knows_nothing(make_task):
    sides = load_sides(*make_task())
    assert len(set(train_violence(sides, BUILTIN_MODELS["always_positive"])[0].values())) == 1
    calls, _ = train_affect(sides, BUILTIN_MODELS["median_level"])
    assert len(set(calls["arousal"].values())) == 1
    with pytest.raises(TaskError, match="median_level"):
        train_violence(sides, BUILTIN_MODELS["median_level"])
    with pytest.raises(TaskError, match="pcbm_lr"):
        train_violence(sides, BUILTIN_MODELS["pcbm_lr"])


def test_shuffled_labels_give_an_average_precision_within_the_noise_of_chance(make_task):
    store, manifest = make_task()
    rng = np.random.default_rng(0)
    found = []
    random = []
    for _ in range(3):
        ids = [clip.clip_id for clip in manifest]
        dealt = dict(zip(ids, rng.permutation([clip.level == "violent" for clip in manifest]), strict=True))
        shuffled = labelled(manifest, lambda clip, dealt=dealt: bool(dealt[clip.clip_id]))
        run, _ = train_violence(load_sides(store, shuffled), FAST)
        judged = violence_qrels(of_test(of_manifest(shuffled)))
        chance = expected_average_precision(len(judged), sum(judged.values()))
        found.append(average_precision(run, judged) - chance)
        for _ in range(100):
            order = dict(zip(run, rng.random(len(run)).tolist(), strict=True))
            random.append(average_precision(order, judged) - chance)
    assert abs(np.mean(found)) < 4 * np.std(random) / np.sqrt(len(found))
    assert abs(np.mean(random)) < 4 * np.std(random) / np.sqrt(len(random))


def test_a_split_with_a_movie_on_both_sides_is_refused(make_task):
    with pytest.raises(TaskError, match="'film00'"):
        load_sides(*make_task(leak=True))


def test_no_movie_is_on_both_sides_of_an_inner_fold_and_no_test_clip_is_trained_on(make_task):
    sides = load_sides(*make_task())
    X = sides.data.X
    movie_of = {row.tobytes(): movie for row, movie in zip(X, sides.data.movies.tolist(), strict=True)}
    seen = []

    class Watched(ClippedScaler):
        def fit(self, X, y=None):
            seen.append({movie_of[row.tobytes()] for row in X})
            return super().fit(X, y)

    train_violence(sides, spec(lambda _: make_pipeline(Watched(), LogisticRegression())))
    everything = set(sides.data.movies[sides.dev].tolist())
    assert seen.pop() == everything
    held = [everything - movies for movies in seen]
    assert (
        len(held) == 4
    )  # the inner folds: what stands before the last step learns the same for each penalty
    assert all(held)
    assert set.union(*held) == everything
    assert sum(map(len, held)) == len(everything)


def test_a_clip_without_features_is_missing_from_the_run_and_nothing_stands_in_for_it(make_task):
    sides = load_sides(*make_task(failed="ACCEDE00239.mp4"))
    run, _ = train_violence(sides, FAST)
    assert len(run) == 119
    (excluded,) = sides.excluded["test"]
    assert excluded == {"clip_id": "ACCEDE00239.mp4", "reason": "failed: the file is empty (0 bytes)"}


def test_test_clips_without_any_label_are_called_as_they_are_with_labels(make_task):
    store, manifest = make_task()
    blind = {axis: lambda clip, axis=axis: "" if clip.extras["split"] == "test" else clip.extras[axis]
             for axis in ("valence", "arousal")}  # fmt: skip

    def violent(clip):
        return None if clip.extras["split"] == "test" else clip.level == "violent"

    known = load_sides(store, manifest)
    unknown = load_sides(store, labelled(manifest, violent, **blind))
    assert train_violence(unknown, FAST) == train_violence(known, FAST)
    assert train_affect(unknown, FAST) == train_affect(known, FAST)


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
)
def test_the_origin_of_the_features_is_seen_in_the_provenance(make_task, provenance, pretrained):
    """Imported features of which no weights are declared are of unknown origin."""
    assert load_sides(*make_task(**provenance)).pretrained is pretrained


def test_dev_labels_that_teach_nothing_are_refused(make_task):
    store, manifest = make_task()

    def train(violent):
        return train_violence(load_sides(store, labelled(manifest, violent)), FAST)

    for violent, place in (
        (lambda _: None, "0 nonviolent, 0 violent"),
        (lambda _: False, "120 nonviolent, 0 violent"),
        (lambda clip: clip.movie == "film01", "violence: inner selection"),
    ):
        with pytest.raises(TaskError, match=place):
            train(violent)


def test_a_manifest_or_store_of_something_else_is_refused(make_task):
    store, manifest = make_task()
    with pytest.raises(TaskError, match="split"):
        load_sides(store, manifest.with_clips([]))
    with pytest.raises(TaskError, match="films"):
        load_sides(store, manifest.with_clips([clip for clip in manifest if clip.extras["split"] == "dev"]))
    with pytest.raises(DatasetError, match="xclip"):
        load_sides(store, manifest, backbone="xclip")
    with pytest.raises(TaskError, match="obygaze12"):
        load_sides(store, type(manifest)(manifest.clips[:0], manifest.root))
