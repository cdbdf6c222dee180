"""MObyGaze's tables find what is planted in each modality, on each expert's labels."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import obygaze_features as of
from obygaze.cli import root_command
from obygaze_features.manifest import builtin_codebook
from obygaze_features.store.testing import seal_arrays
from obygaze_models.report import to_json
from obygaze_studies.mobygaze import mobygaze_report, tables

FILMS = [f"f{number}" for number in range(5)]
WINDOWS_A_FILM = 24
WINDOW_S = 30.0
STRENGTH = {"seen": 0.3, "heard": 2.5}
"""By how much the level moves a feature of each modality."""


@dataclass(frozen=True)
class Corpus:
    """120 windows of five films that two experts judged; the level is heard, and hardly seen.

    Attributes
    ----------
    manifest
        A row for each window and expert, annotator1 and annotator2, who err in 15 % of windows.
    seen, heard
        Stores of four frames a window.
    """

    manifest: of.Manifest
    seen: of.Store
    heard: of.Store


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """120 windows of five films."""
    folder = tmp_path_factory.mktemp("mobygaze")
    generator = np.random.default_rng(0)
    n = len(FILMS) * WINDOWS_A_FILM
    is_s = generator.random(n) < 0.4
    clips = []
    movie_of = {}
    span_of = {}
    for i in range(n):
        film = FILMS[i // WINDOWS_A_FILM]
        start = WINDOW_S * (i % WINDOWS_A_FILM)
        clip_id = f"{film}-{i % WINDOWS_A_FILM:02}"
        movie_of[clip_id] = film
        span_of[clip_id] = (start, start + WINDOW_S)
        for expert in ("annotator1", "annotator2"):
            level = "S" if is_s[i] ^ (generator.random() < 0.15) else "EN"
            clips.append(of.Clip(clip_id, film, f"{film}.mp4", *span_of[clip_id], level, (), expert))
    stores = {}
    for name, strength in STRENGTH.items():
        frames = generator.normal(size=(n, 4, 5)).astype(np.float32)
        frames[:, :, 0] += (strength * is_s)[:, None]
        arrays = {name: {"frames": frames, "pooled": frames.mean(axis=1)}}
        path = seal_arrays(folder / name, movie_of, arrays, n_frames=4, spans=span_of)
        stores[name] = of.open_store(path)
    manifest = of.Manifest(tuple(clips), folder, builtin_codebook("mobygaze"))
    return Corpus(manifest, stores["seen"], stores["heard"])


def mean_auc(report):
    """Return the mean AUC over films by what it is tested on, features, labels and model."""
    rows = report.data[report.data["metric"] == "auc"]
    return rows.set_index(["tested_on", "features", "labels", "model"])["movie_mean"]


LABEL_RULES = ("merged", "of annotator1", "of annotator2", "soft")


@pytest.fixture(scope="module")
def linear_report(corpus):
    """The report on linear models of both modalities."""
    features = {"visual": (corpus.seen, None), "audio": (corpus.heard, None)}
    return mobygaze_report(corpus.manifest, features, task="en_s", models=("linear",))


@pytest.mark.long
def test_there_is_a_table_for_each_expert_and_for_what_they_agree_on(linear_report):
    tested_on = [block.title.partition(":")[0] for block in linear_report.blocks]
    assert tested_on == ["en_s@annotator1", "en_s@annotator2", "en_s@agreed"]


@pytest.mark.long
@pytest.mark.parametrize("rule", LABEL_RULES)
def test_sound_tells_the_planted_level_and_pictures_hardly(linear_report, rule):
    auc = mean_auc(linear_report)
    heard = auc["en_s@agreed", "audio", rule, "linear"]
    seen = auc["en_s@agreed", "visual", rule, "linear"]
    both = auc["en_s@agreed", "all", rule, "linear"]

    assert heard > 0.9
    assert heard > seen + 0.1
    assert both == pytest.approx(heard, abs=0.05)


@pytest.mark.long
def test_the_last_two_rows_of_a_table_are_of_the_other_expert_and_of_chance(linear_report):
    features = ("pictures", "sound", "both")
    *of_models, of_other_expert, of_chance = linear_report.blocks[0].rows
    assert len(of_models) == len(features) * len(LABEL_RULES)
    assert of_other_expert[:3] == ("", "", "other_expert")  # without features and labels to train on
    assert of_chance[:3] == ("", "", "(chance)")


@pytest.mark.long
def test_the_other_expert_tells_an_experts_labels_despite_15_percent_errors(linear_report):
    """Both experts err in 15% of the windows, independently.

    The AUC of one expert's calls for the other's labels is about 0.75.
    """
    assert 0.6 < mean_auc(linear_report)["en_s@annotator1", "", "", "other_expert"] < 0.85


@pytest.mark.long
def test_attention_reads_the_frames_of_a_modality(corpus):
    features = {"audio": (corpus.heard, None)}
    report = mobygaze_report(corpus.manifest, features, task="en_s", models=("attention",), rules=("merged",))
    assert mean_auc(report)["en_s@agreed", "audio", "merged", "attention"] > 0.9
    assert set(report.data["model"]) == {"attention", "other_expert"}


def segments_of_two_windows(manifest):
    """Make segments of a minute, which are S where one of their two windows is."""
    segments = {}
    for clip in manifest:
        minute = int(clip.start_s // 60)
        key = (f"{clip.movie}-s{minute}", clip.annotator)
        level = clip.level
        if key in segments and segments[key].level == "S":
            level = "S"
        start = 60.0 * minute
        segments[key] = of.Clip(key[0], clip.movie, "", start, start + 60, level, (), clip.annotator)
    return manifest.with_clips(segments.values())


@pytest.mark.long
def test_segments_are_bags_of_the_stores_windows(corpus):
    report = mobygaze_report(
        segments_of_two_windows(corpus.manifest),
        {"audio": (corpus.heard, None), "visual": (corpus.seen, None)},
        task="en_s",
        models=("linear", "attention"),
        rules=("merged",),
        bags=True,
    )
    auc = mean_auc(report)

    assert auc["en_s@agreed", "all", "merged", "linear"] > 0.85
    assert auc["en_s@agreed", "audio", "merged", "attention"] > 0.85
    assert auc["en_s@agreed", "visual", "merged", "attention"] < 0.8


@dataclass(frozen=True)
class Resumed:
    """A report that was interrupted after its first part, and made again.

    Attributes
    ----------
    folder
        Where its runs are kept.
    files_when_interrupted
        Names of the files there, when it was interrupted.
    handed_over
        Each part, and the whole until then, as they were handed over.
    report
        The whole report.
    """

    folder: Path
    files_when_interrupted: list[str]
    handed_over: list[tuple[Any, Any]]
    report: Any


@pytest.fixture(scope="module")
def resumed(corpus, tmp_path_factory):
    """The report of a linear model of sound, interrupted and made again."""
    folder = tmp_path_factory.mktemp("kept")
    features = {"audio": (corpus.heard, None)}
    handed_over = []

    def interrupt_after_the_first(part, whole):
        handed_over.append((part, whole))
        if len(handed_over) == 1:
            raise KeyboardInterrupt

    options = {
        "task": "en_s",
        "models": ("linear",),
        "results_folder": folder,
        "on_report": interrupt_after_the_first,
    }
    with pytest.raises(KeyboardInterrupt):
        mobygaze_report(corpus.manifest, features, **options)
    files = [path.name for path in folder.iterdir()]
    report = mobygaze_report(corpus.manifest, features, **options)
    return Resumed(folder, files, handed_over, report)


@pytest.mark.long
def test_the_first_part_of_a_report_is_handed_over_early(resumed):
    """Training takes hours, so each part is shown as soon as it is there.

    The run was interrupted after the first part.
    """
    (first_part, report_until_then), *_ = resumed.handed_over
    assert first_part.data.equals(report_until_then.data)
    assert resumed.files_when_interrupted == ["merged-audio-0.json"]  # of merged labels, sound and seed 0


def test_a_report_is_handed_over_in_parts_of_one_rule_for_labels_each(resumed):
    _interrupted, *parts_and_reports = resumed.handed_over
    labels = [set(part.data["labels"]) - {""} for part, _ in parts_and_reports]
    assert labels == [{"merged"}, {"of annotator1", "of annotator2"}, {"soft"}]


def test_runs_that_are_kept_are_read_again(corpus, resumed, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(tables.om, "evaluate", refuse)
    features = {"audio": (corpus.heard, None)}
    report = mobygaze_report(
        corpus.manifest, features, task="en_s", models=("linear",), results_folder=resumed.folder
    )
    assert to_json(report) == to_json(resumed.report)


def test_the_command_prints_the_report_as_json(corpus, resumed, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "mobygaze_report", lambda *_, **__: resumed.report)
    of.write_manifest(corpus.manifest, tmp_path / "films.csv")
    words = ["mobygaze", str(tmp_path / "films.csv"), f"audio={corpus.heard.where}", "--json"]
    root_command().main(words, standalone_mode=False)
    assert capsys.readouterr().out == to_json(resumed.report)
