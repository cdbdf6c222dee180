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
    MISSING,
    RATE,
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


def draw_frames(*concepts):
    """Draw 48 frames of a clip, all in one look, that shows the cues of concepts, or no cue without any."""
    look = Look((1.0, 1.0, 1.0), brightness=0.4, grain=0.0)
    clip = DemoClip("clip", "S", concepts, look, strength=1.0, n_frames=48, seed=1)
    return np.stack(list(draw_clip(clip))).astype(int)


def test_the_demo_has_seven_films_of_twenty_or_more_clips_of_all_levels():
    """The levels are those of ObyGaze12: easy negative, hard negative, not sure, sure."""
    films = plan_corpus()

    assert len(films) == 7
    for film in films:
        assert len(film.clips) >= 20
        assert {clip.level for clip in film.clips} == {"EN", "HN", "NS", "S"}


def test_clips_of_the_demo_last_five_to_twenty_seconds():
    """A clip is planned as a number of frames, of which RATE are shown in a second."""
    for film in plan_corpus():
        for clip in film.clips:
            seconds = clip.n_frames / RATE
            assert 5 <= seconds <= 20


def test_the_level_of_a_demo_clip_follows_from_its_concepts():
    """EN has no concept, S has Body, and HN has others. NS, not sure, has any."""
    films = plan_corpus()

    for film in films:
        for clip in film.clips:
            assert len(set(clip.concepts)) == len(clip.concepts)
            if clip.level == "EN":
                assert clip.concepts == ()
            else:
                assert clip.concepts != ()
            if clip.level == "S":
                assert "Body" in clip.concepts
            if clip.level == "HN":
                assert "Body" not in clip.concepts


def test_how_visible_the_cues_are_does_not_tell_levels_apart():
    """The strength of a clip's cues is the same on average for HN and S, but for .05."""
    strengths = {"EN": [], "HN": [], "NS": [], "S": []}
    for film in plan_corpus():
        for clip in film.clips:
            strengths[clip.level].append(clip.strength)

    assert np.mean(strengths["HN"]) == pytest.approx(np.mean(strengths["S"]), abs=0.05)


@pytest.mark.long
def test_every_visual_concept_has_a_cue_that_can_be_seen():
    """With the cue of a concept some pixel differs by more than 20 of 255 from the same clip without it."""
    concepts = (*DECISIVE, *ACCOMPANYING, *INDEPENDENT)
    assert set(concepts) == set(builtin_codebook("obygaze12").visual_concepts)

    frames_without_cue = draw_frames()
    for concept in concepts:
        frames = draw_frames(concept)
        assert frames.shape == (48, HEIGHT, WIDTH, 3)
        assert np.abs(frames - frames_without_cue).max() > 20, concept


def test_the_manifest_in_git_has_the_clips_and_labels_that_are_planted(repository):
    """One of the seven films is for prediction: its clips have no labels in the manifest."""
    row_of_clip = {row["clip_id"]: row for row in rows_of(repository / "manifests" / "demo.csv")}
    planned = [clip for film in plan_corpus() for clip in film.clips]

    assert list(row_of_clip) == [clip.clip_id for clip in planned]
    for clip in planned:
        row = row_of_clip[clip.clip_id]
        concepts = set(row["concepts"].split(";")) - {""}
        if row["movie"] == UNLABELLED:
            assert row["level"] == ""
            assert concepts == set()
        else:
            assert row["level"] == clip.level
            assert concepts == set(clip.concepts)


@pytest.mark.long
def test_the_demo_writes_the_manifest_that_is_in_git(demo_folder, repository):
    """`demo_folder` is what `obygaze demo` wrote; manifests/demo.csv is in git."""
    written_by_demo = (demo_folder / "manifest.csv").read_text(encoding="utf-8")
    in_git = (repository / "manifests" / "demo.csv").read_text(encoding="utf-8")

    assert written_by_demo == in_git


@pytest.mark.long
def test_the_store_of_the_demo_lists_the_damaged_and_the_missing_video_as_failed(demo_folder):
    """Of the 168 clips that `obygaze demo` makes, the file of one is corrupt, and that of another missing."""
    rows = rows_of(demo_folder / "store-1.0.0" / "data" / "clips.csv")
    reason_of_failed = {row["clip"]: row["reason"] for row in rows if row["status"] == "failed"}

    assert len(rows) == 168
    assert set(reason_of_failed) == {CORRUPT, MISSING}
    for reason in reason_of_failed.values():
        assert reason != ""


@pytest.mark.long
def test_the_folder_of_a_demo_that_ended_is_marked_as_finished(demo_folder):
    """The mark is a file in it: the next demo empties a folder with this mark, and resumes one without."""
    assert (demo_folder / demo.MARK_FILE).read_text(encoding="utf-8") == demo.MARK_OF_FINISHED


@pytest.mark.long
@pytest.mark.parametrize("metric", ["average_precision", "within_movie_auc"])
def test_in_the_demo_models_beat_baselines_and_bottlenecks_beat_their_controls(demo_folder, metric):
    """The corpus is made to show this: each by .1 or more, and no model near 1, which would teach nothing.

    A baseline looks at no feature; a control is a bottleneck with the wrong concepts.
    """
    rows = rows_of(demo_folder / "run" / "metrics.csv")
    value_of_model = {row["model"]: float(row["pooled"]) for row in rows if row["metric"] == metric}
    networks = [value_of_model.pop("linear"), value_of_model.pop("mlp")]
    bottlenecks = [value_of_model.pop("pcbm_lr"), value_of_model.pop("pcbm_dt")]
    controls = [value_of_model.pop("pcbm_lr_random"), value_of_model.pop("pcbm_lr_shuffled")]
    baselines = value_of_model.values()  # all others

    assert min(networks) > max(baselines) + 0.1
    assert min(bottlenecks) > max(baselines) + 0.1
    assert min(bottlenecks) > max(controls) + 0.1
    assert max(networks) < 0.97
    assert max(bottlenecks) < 0.97


@pytest.mark.long
def test_a_saved_bottleneck_predicts_the_film_that_nobody_labelled(demo_folder):
    """The seventh film, of 24 clips, has no labels. Its clips of the planted level S show Body.

    The model, trained on the other six films, gives clips with Body higher logits than others.
    """
    labels = rows_of(demo_folder / "labels.csv")
    assert {row["movie"] for row in labels if not row["level"]} == {"tt9000007"}

    concepts_planted = {row["clip_id"]: row["concepts"] for row in rows_of(demo_folder / "planted.csv")}
    rows = [row for row in rows_of(demo_folder / "predictions.csv") if row["movie"] == "tt9000007"]
    shows_body = ["Body" in concepts_planted[row["clip_id"]] for row in rows]
    logits = [float(row["logit"]) for row in rows]

    assert len(rows) == 24
    assert roc_auc_score(shows_body, logits) > 0.9


@pytest.mark.long
@pytest.mark.nightly
def test_films_of_the_demo_drawn_again_have_the_same_bytes(demo_folder, tree, tmp_path):
    """One film that has a file for each clip, and one that is a file as a whole; `tree` digests all files."""
    films = plan_corpus()
    film_of_clips = films[0]
    film_of_one_file = next(film for film in films if film.one_file)

    for film in (film_of_clips, film_of_one_file):
        folder = tmp_path / film.movie
        folder.mkdir(exist_ok=True)
        no_parent = None  # drawn in this process
        _write_movie((film, folder), no_parent)

        assert tree(folder) == tree(demo_folder / "films" / film.movie)


@pytest.mark.parametrize(
    ("mark", "left"),
    [
        (demo.MARK_OF_STOPPED, {demo.MARK_FILE, demo.STAGING_FOLDER}),
        (demo.MARK_OF_FINISHED, {demo.MARK_FILE}),
    ],
    ids=["stopped", "finished"],
)
def test_a_new_demo_empties_the_folder_but_for_the_staging_folder_of_a_stopped_one(tmp_path, mark, left):
    """The folder is that of an earlier demo, with a file that marks it as stopped or finished.

    The staging folder has the features that a stopped demo extracted: the new one goes on with it. Until
    it ends, the new demo counts as stopped.
    """
    (tmp_path / demo.MARK_FILE).write_text(mark, encoding="utf-8")
    for name in (demo.STAGING_FOLDER, "films", "store-1.0.0"):
        (tmp_path / name).mkdir()

    demo._prepare_folder(tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == left
    assert (tmp_path / demo.MARK_FILE).read_text(encoding="utf-8") == demo.MARK_OF_STOPPED


@pytest.mark.parametrize(
    ("code_of_last_step", "mark"),
    [(0, demo.MARK_OF_FINISHED), (1, demo.MARK_OF_STOPPED)],
    ids=["it ends well", "it fails"],
)
def test_a_demo_is_finished_only_when_its_last_step_ended_well(
    tmp_path, monkeypatch, code_of_last_step, mark
):
    """A demo marks its folder as finished or stopped: the next one resumes what was stopped.

    The steps of a demo are commands. Here they are not run: each ends well, but for the last one, `film`,
    which ends with `code_of_last_step`, and `extract`, whose code 3 says that clips have failed, as was
    planted.
    """

    def pretend_to_run(_ctx, words):
        code_of_step = {"extract": 3, "film": code_of_last_step}
        return code_of_step.get(words[0], 0)

    monkeypatch.setattr(demo, "run_command", pretend_to_run)
    monkeypatch.setattr(demo_corpus, "write_corpus", lambda out, *_, **__: out / "labels.csv")
    monkeypatch.setattr(demo_corpus, "compare_with_planted", lambda _out: [])

    code = command.obygaze("demo", "--out", tmp_path / "demo")

    assert code == code_of_last_step
    assert (tmp_path / "demo" / demo.MARK_FILE).read_text(encoding="utf-8") == mark


@pytest.mark.long
def test_no_file_of_the_demo_names_the_folder_above_it_or_a_secret(demo_folder):
    """The demo ran in a folder of a marked name, with marked secrets in the environment."""
    files = files_below(demo_folder)
    files_with_marks = marks_in(files)

    assert not files_with_marks
    assert len(files) > 50
