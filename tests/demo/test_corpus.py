"""The demo's corpus has the truths that were planted in it."""

import csv
from collections import Counter

import numpy as np

from obygaze_features.demo import plan_corpus
from obygaze_features.demo.corpus import CORRUPT, LONGEST, MISSING, SHORTEST, _write_movie
from obygaze_features.demo.drawing import CUES, HEIGHT, RATE, WIDTH, Look, draw_clip
from obygaze_models.protocol import VISUAL_CONCEPTS

PLAIN = Look((1.0, 1.0, 1.0), 0.4, 0.0)


def drawn(*concepts, strength=1.0, n_frames=48):
    return np.stack(list(draw_clip(PLAIN, concepts, strength, n_frames, seed=1))).astype(int)


def test_six_films_of_at_least_twenty_clips_of_five_to_twenty_seconds():
    films = plan_corpus()
    assert len(films) >= 6
    for film in films:
        assert len(film.clips) >= 20
        assert all(SHORTEST <= clip.n_frames / RATE <= LONGEST for clip in film.clips)
        assert {clip.level for clip in film.clips} == {"EN", "HN", "NS", "S"}


def test_concepts_follow_levels_as_annotators_use_them():
    for film in plan_corpus():
        for clip in film.clips:
            assert (len(clip.concepts) == 0) == (clip.level == "EN")
            assert len(set(clip.concepts)) == len(clip.concepts)


def test_every_visual_concept_has_a_cue_that_can_be_seen():
    assert set(CUES) == set(VISUAL_CONCEPTS)
    plain = drawn()
    for concept in CUES:
        frames = drawn(concept)
        assert frames.shape == (48, HEIGHT, WIDTH, 3)
        assert np.abs(frames - plain).max() > 20, concept


def test_clips_are_drawn_the_same_twice():
    assert np.array_equal(drawn("Body", "Look"), drawn("Body", "Look"))


def test_the_manifest_in_git_is_the_demos(demo_folder, repository):
    written = (demo_folder / "manifest.csv").read_text(encoding="utf-8")
    assert written == (repository / "manifests" / "demo.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(written.splitlines()))
    assert Counter(row["movie"] for row in rows) == {film.movie: 24 for film in plan_corpus()}


def test_the_two_planted_failures_are_listed_and_not_lost(demo_folder):
    with (demo_folder / "store-1.0.0" / "data" / "clips.csv").open(encoding="utf-8") as file:
        rows = {row["clip"]: row for row in csv.DictReader(file)}
    assert len(rows) == 144
    failed = {clip: row["reason"] for clip, row in rows.items() if row["status"] == "failed"}
    assert set(failed) == {CORRUPT, MISSING}
    assert all(failed.values())


def test_the_probe_beats_every_baseline(demo_folder):
    with (demo_folder / "run" / "metrics.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len({row["model"] for row in rows}) >= 5
    for name in ("f1_pos", "average_precision", "auc", "within_movie_auc"):
        column = "movie_mean" if name == "within_movie_auc" else "pooled"
        values = {row["model"]: float(row[column]) for row in rows if row["metric"] == name}
        probe = values.pop("mlp")
        assert probe > max(values.values()) + 0.1, name


def test_films_drawn_again_have_the_same_bytes(demo_folder, tree, tmp_path):
    for film in (plan_corpus()[0], next(film for film in plan_corpus() if film.one_file)):
        (tmp_path / film.movie).mkdir(exist_ok=True)
        _write_movie(film, tmp_path / film.movie)
        assert tree(tmp_path / film.movie) == tree(demo_folder / "films" / film.movie)


def test_the_demos_steps_give_the_same_bytes_with_one_worker(demo_folder, obygaze, tree, tmp_path):
    """Import, extraction and evaluation again, in another folder; the films are the first demo's."""
    again = tmp_path / "demo"
    again.mkdir()
    for name in ("films", "labels.csv"):
        (again / name).symlink_to(demo_folder / name)
    labels = ("--spans", "demo/labels.csv", "--out", "demo/manifest.csv")
    obygaze(tmp_path, 0, "manifest", "import", "folder", "demo/films", *labels)
    named = ("--corpus", "obygaze-demo", "--licence", "CC0-1.0", "--workers", 1)
    obygaze(tmp_path, 3, "extract", "demo/manifest.csv", "demo/store", *named)
    task = ("--task", "hn_s", "--test", "enhn_s", "--out", "demo/run")
    obygaze(tmp_path, 0, "evaluate", "demo/store-1.0.0", "demo/manifest.csv", *task)
    for name in ("store-1.0.0", "run"):
        assert tree(again / name) == tree(demo_folder / name)
    assert (again / "manifest.csv").read_bytes() == (demo_folder / "manifest.csv").read_bytes()
