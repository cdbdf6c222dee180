"""The demo's corpus has the truths that were planted in it."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from obygaze import demo, demo_corpus
from obygaze.demo_corpus import (
    ACCOMPANYING,
    CORRUPT,
    DECISIVE,
    HEIGHT,
    INDEPENDENT,
    LONGEST_CLIP_S,
    MISSING,
    RATE,
    SHORTEST_CLIP_S,
    UNLABELLED,
    WIDTH,
    DemoClip,
    Look,
    _write_movie,
    draw_clip,
    plan_corpus,
)
from obygaze_features.manifest import builtin_codebook
from tests import command
from tests.files import rows_of
from tests.private import files_below, marks_in

PLAIN = Look((1.0, 1.0, 1.0), 0.4, 0.0)


def draw_frames(*concepts):
    """Draw 48 frames of a clip that shows concepts, and nothing without any."""
    clip = DemoClip("clip", "S", concepts, PLAIN, strength=1.0, n_frames=48, seed=1)
    return np.stack(list(draw_clip(clip))).astype(int)


def test_seven_films_of_at_least_twenty_clips_of_five_to_twenty_seconds():
    films = plan_corpus()
    assert len(films) == 7
    for film in films:
        assert len(film.clips) >= 20
        assert all(SHORTEST_CLIP_S <= clip.n_frames / RATE <= LONGEST_CLIP_S for clip in film.clips)
        assert {clip.level for clip in film.clips} == {"EN", "HN", "NS", "S"}


def test_the_level_is_en_without_concepts_s_with_body_and_hn_with_others():
    strengths = {}
    for film in plan_corpus():
        for clip in film.clips:
            assert (len(clip.concepts) == 0) == (clip.level == "EN")
            assert len(set(clip.concepts)) == len(clip.concepts)
            if clip.level in {"HN", "S"}:
                assert ("Body" in clip.concepts) == (clip.level == "S")
                strengths.setdefault(clip.level, []).append(clip.strength)
    # How visible the cues are does not tell levels apart.
    assert abs(np.mean(strengths["HN"]) - np.mean(strengths["S"])) < 0.05


@pytest.mark.long
def test_every_visual_concept_has_a_cue_that_can_be_seen():
    concepts = (*DECISIVE, *ACCOMPANYING, *INDEPENDENT)
    assert set(concepts) == set(builtin_codebook("obygaze12").visual_concepts)
    without = draw_frames()
    for concept in concepts:
        frames = draw_frames(concept)
        assert frames.shape == (48, HEIGHT, WIDTH, 3)
        assert np.abs(frames - without).max() > 20, concept


def test_the_manifest_in_git_has_the_clips_and_labels_that_are_planted(repository):
    rows = {row["clip_id"]: row for row in rows_of(repository / "manifests" / "demo.csv")}
    planned = [clip for film in plan_corpus() for clip in film.clips]
    assert list(rows) == [clip.clip_id for clip in planned]
    for clip in planned:
        row = rows[clip.clip_id]
        labelled = row["movie"] != UNLABELLED
        assert row["level"] == (clip.level if labelled else "")
        assert set(filter(None, row["concepts"].split(";"))) == (set(clip.concepts) if labelled else set())


@pytest.mark.long  # of the demo, as a user runs it
def test_the_demo_writes_the_manifest_that_is_in_git(demo_folder, repository):
    written = (demo_folder / "manifest.csv").read_text(encoding="utf-8")
    assert written == (repository / "manifests" / "demo.csv").read_text(encoding="utf-8")


@pytest.mark.long  # of the demo, as a user runs it
def test_the_store_of_the_demo_lists_the_damaged_and_the_missing_video_as_failed(demo_folder):
    rows = {row["clip"]: row for row in rows_of(demo_folder / "store-1.0.0" / "data" / "clips.csv")}
    assert len(rows) == 168
    failed = {clip: row["reason"] for clip, row in rows.items() if row["status"] == "failed"}
    assert set(failed) == {CORRUPT, MISSING}
    assert all(failed.values())


@pytest.mark.long  # of the demo, as a user runs it
def test_the_folder_of_a_demo_that_ended_is_marked_as_finished(demo_folder):
    assert (demo_folder / demo.MARK_FILE).read_text(encoding="utf-8") == demo.MARK_OF_FINISHED


@pytest.mark.long  # of the demo: what decoding, descriptors and models make of planted pictures
def test_linear_and_mlp_beat_every_baseline_and_bottlenecks_beat_their_controls(demo_folder):
    rows = rows_of(demo_folder / "run" / "metrics.csv")
    for name in ("average_precision", "within_movie_auc"):
        values = {row["model"]: float(row["pooled"]) for row in rows if row["metric"] == name}
        networks = [values.pop(model) for model in ("linear", "mlp")]
        bottlenecks = [values.pop(model) for model in ("pcbm_lr", "pcbm_dt")]
        controls = [values.pop(f"pcbm_lr_{control}") for control in ("random", "shuffled")]
        baselines = values.values()
        assert min(networks + bottlenecks) > max(baselines) + 0.1, name
        assert min(bottlenecks) > max(controls) + 0.1, name
        assert max(networks + bottlenecks) < 0.97, f"{name}: the films are too easy to teach anything"


@pytest.mark.long  # of the demo: the film that was never labelled
def test_a_kept_bottleneck_predicts_the_film_that_nobody_labelled(demo_folder):
    planted = {row["clip_id"]: row for row in rows_of(demo_folder / "planted.csv")}
    labels = rows_of(demo_folder / "labels.csv")
    assert {row["movie"] for row in labels if not row["level"]} == {"tt9000007"}
    predicted = [row for row in rows_of(demo_folder / "predictions.csv") if row["movie"] == "tt9000007"]
    assert len(predicted) == 24
    shown = ["Body" in planted[row["clip_id"]]["concepts"] for row in predicted]
    assert roc_auc_score(shown, [float(row["logit"]) for row in predicted]) > 0.9


@pytest.mark.long  # draws whole films again
@pytest.mark.nightly
def test_films_drawn_again_have_the_same_bytes(demo_folder, tree, tmp_path):
    for film in (plan_corpus()[0], next(film for film in plan_corpus() if film.one_file)):
        (tmp_path / film.movie).mkdir(exist_ok=True)
        _write_movie(film, tmp_path / film.movie)
        assert tree(tmp_path / film.movie) == tree(demo_folder / "films" / film.movie)


@pytest.mark.parametrize(
    ("mark", "left"),
    [
        (demo.MARK_OF_STOPPED, {demo.MARK_FILE, demo.STAGING_FOLDER}),
        (demo.MARK_OF_FINISHED, {demo.MARK_FILE}),
    ],
    ids=["stopped", "finished"],
)
def test_a_new_demo_empties_the_folder_but_for_the_staging_folder_of_a_stopped_one(tmp_path, mark, left):
    (tmp_path / demo.MARK_FILE).write_text(mark, encoding="utf-8")
    for name in (demo.STAGING_FOLDER, "films", "store-1.0.0"):
        (tmp_path / name).mkdir()
    demo._prepare_folder(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == left
    # Until it ends, the new demo counts as stopped.
    assert (tmp_path / demo.MARK_FILE).read_text(encoding="utf-8") == demo.MARK_OF_STOPPED


@pytest.mark.parametrize(
    ("code_of_last_step", "mark"),
    [(0, demo.MARK_OF_FINISHED), (1, demo.MARK_OF_STOPPED)],
    ids=["it ends well", "it fails"],
)
def test_a_demo_is_finished_only_when_its_last_step_ended_well(
    tmp_path, monkeypatch, code_of_last_step, mark
):
    """The next demo resumes one that was stopped, and removes the staging folder of a finished one."""

    def pretend_to_run(_ctx, words):
        code_of_step = {"extract": 3, "film": code_of_last_step}  # two clips are planted as failed
        return code_of_step.get(words[0], 0)

    monkeypatch.setattr(demo, "run_command", pretend_to_run)
    monkeypatch.setattr(demo_corpus, "write_corpus", lambda out, *_, **__: out / "labels.csv")
    monkeypatch.setattr(demo_corpus, "compare_with_planted", lambda _out: [])
    assert command.obygaze("demo", "--out", tmp_path / "demo") == code_of_last_step
    assert (tmp_path / "demo" / demo.MARK_FILE).read_text(encoding="utf-8") == mark


@pytest.mark.long  # looks into every file of the demo
def test_no_file_of_the_demo_names_the_folder_above_it_or_a_secret(demo_folder):
    files = files_below(demo_folder)
    assert len(files) > 50
    assert not marks_in(files)
