"""Training finds what is planted, finds nothing in noise, and sees no test movie."""

from dataclasses import replace

import numpy as np
import pytest

from obygaze_models.evaluation.metrics import expected_average_precision
from obygaze_models.tasks.mediaeval15 import (
    TaskError,
    accuracy,
    average_precision,
    of_manifest,
)
from obygaze_models.tasks.mediaeval15.annotations import true_classes, violence_qrels
from obygaze_models.tasks.mediaeval15.corpus import load_corpus
from obygaze_models.tasks.mediaeval15.train import CANDIDATES, train_affect, train_violence


def of_test(clips):
    return [clip for clip in clips if clip.split == "test"]


def test_separable_clips_have_average_precision_and_accuracies_of_1(make_task):
    store, manifest = make_task()
    clips = of_manifest(manifest)
    corpus = load_corpus(store, clips)
    run, selected = train_violence(corpus)
    assert average_precision(run, violence_qrels(of_test(clips))) == 1.0
    assert (selected.n_clips, selected.n_movies, set(selected.measures)) == (120, 6, set(CANDIDATES))
    calls, _ = train_affect(corpus)
    for axis, called in calls.items():
        assert accuracy(called, true_classes(of_test(clips), axis)).accuracy_all == 1.0


def test_shuffled_labels_give_an_average_precision_within_the_noise_of_chance(make_task):
    store, manifest = make_task()
    rng = np.random.default_rng(0)
    found, random = [], []
    for _ in range(3):
        dealt = rng.permutation([clip.extras["violence"] for clip in manifest]).tolist()
        clips = of_manifest(
            manifest.with_clips(
                replace(clip, extras={**clip.extras, "violence": label})
                for clip, label in zip(manifest, dealt, strict=True)
            )
        )
        run, _ = train_violence(load_corpus(store, clips))
        judged = violence_qrels(of_test(clips))
        chance = expected_average_precision(len(judged), sum(judged.values()))
        found.append(average_precision(run, judged) - chance)
        for _ in range(100):
            order = dict(zip(run, rng.random(len(run)).tolist(), strict=True))
            random.append(average_precision(order, judged) - chance)
    assert abs(np.mean(found)) < 4 * np.std(random) / np.sqrt(len(found))
    assert abs(np.mean(random)) < 4 * np.std(random) / np.sqrt(len(random))


def test_a_split_with_a_movie_on_both_sides_is_refused(make_task):
    store, manifest = make_task(leak=True)
    with pytest.raises(TaskError, match="the split leaks: movie 'film00' has clips in dev and in test"):
        load_corpus(store, of_manifest(manifest))


def test_no_movie_is_on_both_sides_of_an_inner_fold(make_task, monkeypatch):
    from obygaze_models.tasks.mediaeval15 import train

    store, manifest = make_task()
    corpus = load_corpus(store, of_manifest(manifest))
    movie_of = {row.tobytes(): movie for row, movie in zip(corpus.dev.X, corpus.dev.movies, strict=True)}
    fitted, seen = train._fitted, []

    def remember(C, X, y):
        seen.append({movie_of[row.tobytes()] for row in X})
        return fitted(C, X, y)

    monkeypatch.setattr(train, "_fitted", remember)
    train_violence(corpus)
    everything = set(corpus.dev.movies)
    assert seen.pop() == everything
    assert len(seen) == 4 * len(CANDIDATES)
    held = [everything - movies for movies in seen[:4]]
    assert all(held)
    assert set.union(*held) == everything
    assert sum(map(len, held)) == len(everything)


def test_the_same_training_gives_the_same_scores(make_task):
    store, manifest = make_task(distance=0.5)
    corpus = load_corpus(store, of_manifest(manifest))
    assert train_violence(corpus)[0] == train_violence(corpus)[0]


def test_a_clip_without_features_is_missing_from_the_run_and_nothing_stands_in_for_it(make_task):
    store, manifest = make_task(failed="ACCEDE00239.mp4")
    corpus = load_corpus(store, of_manifest(manifest))
    run, _ = train_violence(corpus)
    assert len(run) == 119
    (excluded,) = corpus.test.excluded
    assert (excluded.clip_id, excluded.reason) == ("ACCEDE00239.mp4", "failed: the file is empty (0 bytes)")


def test_pretrained_weights_are_seen_in_the_provenance(make_task):
    store, manifest = make_task(weights_sha256="0" * 64)
    assert load_corpus(store, of_manifest(manifest)).pretrained
    store, manifest = make_task()
    assert not load_corpus(store, of_manifest(manifest)).pretrained


def test_dev_labels_that_teach_nothing_are_refused(make_task):
    store, manifest = make_task()

    def with_violence(value_of):
        clips = [replace(clip, extras={**clip.extras, "violence": value_of(clip)}) for clip in manifest]
        return load_corpus(store, of_manifest(manifest.with_clips(clips)))

    with pytest.raises(
        TaskError, match=r"violence needs dev clips of two classes at least .* none is labelled"
    ):
        train_violence(with_violence(lambda _: ""))
    with pytest.raises(TaskError, match="all 120 are 0"):
        train_violence(with_violence(lambda _: "0"))
    with pytest.raises(
        TaskError, match=r"violence: .* the rarest class, 1 \(20 dev clips, .* needs both classes"
    ):
        train_violence(with_violence(lambda clip: str(int(clip.movie == "film01"))))


def test_a_manifest_or_store_of_something_else_is_refused(make_task):
    store, manifest = make_task()
    with pytest.raises(TaskError, match="no column split"):
        of_manifest(manifest.with_clips([]))
    clips = of_manifest(manifest)
    with pytest.raises(TaskError, match="no test clip among its 120"):
        load_corpus(store, [clip for clip in clips if clip.split == "dev"])
    with pytest.raises(TaskError, match="has no frames features: it has pooled"):
        load_corpus(store, clips, features="frames")
