"""MObyGaze's tables find what is planted in each modality, on each expert's labels."""

from dataclasses import dataclass

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
NO_FEATURES = ""
NO_LABELS = ""
"""What a row of the report has in place of features and labels where no model is trained."""
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
    """The planted `Corpus`: of 120 windows 40 % are S and the others EN; each expert errs in 15 % of them.

    Where a window is S, the first feature of all its frames is higher: by 2.5 in what is heard, and by .3 in
    what is seen.
    """
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


@pytest.fixture(scope="module")
def linear_report(corpus):
    """The report on linear models of both modalities."""
    features = {"visual": (corpus.seen, None), "audio": (corpus.heard, None)}
    return mobygaze_report(corpus.manifest, features, task="en_s", models=("linear",))


@pytest.mark.long
def test_there_is_a_table_for_each_expert_and_for_what_they_agree_on(linear_report):
    """Models of EN vs S are tested on the labels of either expert, and where both experts agree."""
    titles = [table.title.partition(":")[0] for table in linear_report.blocks]

    assert titles == ["en_s@annotator1", "en_s@annotator2", "en_s@agreed"]


@pytest.mark.long
def test_a_table_has_a_row_for_each_set_of_features_and_each_rule_for_labels_of_experts(linear_report):
    """Models read pictures, sound or both. They learn from merged labels, those of an expert, or soft ones.

    The last two rows, of the other expert and of chance, read no features and learn from no labels.
    """
    n_sets_of_features = 3
    n_rules = 4

    *rows_of_models, row_of_other_expert, row_of_chance = linear_report.blocks[0].rows

    assert len(rows_of_models) == n_sets_of_features * n_rules
    assert row_of_other_expert[:3] == (NO_FEATURES, NO_LABELS, "other_expert")
    assert row_of_chance[:3] == (NO_FEATURES, NO_LABELS, "(chance)")


@pytest.mark.long
def test_the_other_expert_is_tested_like_a_model(linear_report):
    """Both experts err in 15 % of the windows, independently.

    So each agrees with the other's label with the probability .85^2 + .15^2 = .745. The AUC of the calls of
    annotator2 for the labels of annotator1 is near this.
    """
    auc = mean_auc(linear_report)["en_s@annotator1", NO_FEATURES, NO_LABELS, "other_expert"]

    assert 0.6 < auc < 0.85


@pytest.mark.long
@pytest.mark.parametrize("rule", ["merged", "of annotator1", "of annotator2", "soft"])
def test_sound_tells_the_planted_level_and_pictures_hardly(linear_report, rule):
    """The level was planted to move a number of sound by 2.5 standard deviations, one of pictures by .3.

    Models are trained by any rule for the labels of two experts, and tested where both agree.
    """
    auc = mean_auc(linear_report)

    by_sound = auc["en_s@agreed", "audio", rule, "linear"]
    by_pictures = auc["en_s@agreed", "visual", rule, "linear"]
    by_both = auc["en_s@agreed", "all", rule, "linear"]
    assert by_sound > 0.9
    assert by_sound > by_pictures + 0.1
    assert by_both == pytest.approx(by_sound, abs=0.05)


@pytest.mark.long
def test_an_attention_model_of_the_frames_of_sound_tells_the_level_that_both_experts_agree_on(corpus):
    """Sound shows the planted level in each of a window's four frames, which attention models read.

    The model is trained on merged labels of both experts, and tested on windows on which they agree. Its AUC
    stands beside that of the baseline `other_expert`, which calls a window what the other expert calls it.
    """
    stores_of_features = {"audio": (corpus.heard, None)}

    report = mobygaze_report(
        corpus.manifest, stores_of_features, task="en_s", models=("attention",), rules=("merged",)
    )

    auc_of = mean_auc(report)  # by what is tested on, features, labels, model
    assert auc_of["en_s@agreed", "audio", "merged", "attention"] > 0.9
    assert set(report.data["model"]) == {"attention", "other_expert"}


def segments_of_two_windows(manifest):
    """Merge each expert's windows of 30 s, two by two, into segments of a minute.

    A segment is S where the expert called one of its two windows S.
    """
    segments = {}
    for clip in manifest:
        minute = int(clip.start_s // 60)
        segment_id = f"{clip.movie}-s{minute}"
        first_window = segments.get((segment_id, clip.annotator))
        is_s = clip.level == "S" or (first_window is not None and first_window.level == "S")
        start = 60.0 * minute
        segments[segment_id, clip.annotator] = of.Clip(
            segment_id,
            clip.movie,
            start_s=start,
            end_s=start + 60,
            level="S" if is_s else clip.level,
            annotator=clip.annotator,
        )
    return manifest.with_clips(segments.values())


@pytest.mark.long
def test_a_model_of_segments_reads_the_features_of_all_windows_in_a_segment(corpus):
    """The stores have features of windows of 30 s. Experts label segments of a minute, each of two windows.

    A segment is a bag of windows (`bags`): it is S if one of them is. Sound tells the planted level of a
    window and pictures hardly do, so that models which read sound, or sound and pictures ("all"), find S, and
    models of pictures don't. They learn from merged labels, and are tested where both experts agree.
    """
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


class PartsHandedOver:
    """Notes the parts of a report that are handed over, each with all so far; may interrupt at the n-th."""

    def __init__(self, interrupt_at=None):
        self.interrupt_at = interrupt_at
        self.parts = []
        self.wholes = []

    def __call__(self, part, whole):
        self.parts.append(part)
        self.wholes.append(whole)
        if len(self.parts) == self.interrupt_at:
            raise KeyboardInterrupt


def fail_where_anything_is_trained(monkeypatch):
    """Let the function fail that trains and tests models."""

    def fail(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(tables.om, "evaluate", fail)


@pytest.mark.long
def test_an_interrupted_report_is_handed_over_in_parts_and_resumed_without_training_again(
    corpus, tmp_path, monkeypatch
):
    """A report has three parts by its labels: of both annotators merged, of each alone, and soft ones.

    Each part is handed to `on_report` when it is trained, with all so far. The user stops the program at the
    first, and resumes it from the files of what was trained, one for each kind of labels, features and seed.
    """
    features = {"audio": (corpus.heard, None)}
    kept = tmp_path / "kept"
    kept.mkdir()
    options = {"task": "en_s", "models": ("linear",), "results_folder": kept}

    interrupting = PartsHandedOver(interrupt_at=1)
    with pytest.raises(KeyboardInterrupt):
        mobygaze_report(corpus.manifest, features, **options, on_report=interrupting)
    (first_part,) = interrupting.parts
    (all_so_far,) = interrupting.wholes
    assert first_part.data.equals(all_so_far.data)
    assert [path.name for path in kept.iterdir()] == ["merged-audio-0.json"]

    resumed = PartsHandedOver()
    report = mobygaze_report(corpus.manifest, features, **options, on_report=resumed)
    labels_of_parts = [set(part.data["labels"]) - {""} for part in resumed.parts]
    assert labels_of_parts == [{"merged"}, {"of annotator1", "of annotator2"}, {"soft"}]

    fail_where_anything_is_trained(monkeypatch)
    report_of_kept_results = mobygaze_report(corpus.manifest, features, **options)
    assert to_json(report_of_kept_results) == to_json(report)


@pytest.mark.long
def test_the_command_prints_the_report_as_json(linear_report, corpus, tmp_path, monkeypatch, capsys):
    """The command gets a report that was made before, in place of one that it would train models for."""
    of.write_manifest(corpus.manifest, tmp_path / "films.csv")
    monkeypatch.setattr(tables, "mobygaze_report", lambda *_, **__: linear_report)

    words = ["mobygaze", str(tmp_path / "films.csv"), f"audio={corpus.heard.where}", "--json"]
    root_command().main(words, standalone_mode=False)

    assert capsys.readouterr().out == to_json(linear_report)
