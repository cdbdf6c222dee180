"""MObyGaze's tables find what is planted in each modality, on each expert's labels."""

import numpy as np
import pytest

import obygaze_features as of
from obygaze.cli import table_of_contents
from obygaze_features.manifest import builtin_codebook
from obygaze_features.store.testing import seal_arrays
from obygaze_models.report import to_json
from obygaze_studies.mobygaze import mobygaze_report, tables

FILMS = [f"f{k}" for k in range(5)]
PER_FILM = 24


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Windows of five films that two experts judged; the level is heard, and hardly seen."""
    folder = tmp_path_factory.mktemp("mobygaze")
    generator = np.random.default_rng(0)
    n = len(FILMS) * PER_FILM
    truth = generator.random(n) < 0.4
    clips = []
    movie_of = {}
    spans = {}
    for i in range(n):
        film = FILMS[i // PER_FILM]
        start = 30.0 * (i % PER_FILM)
        clip_id = f"{film}-{i % PER_FILM:02}"
        movie_of[clip_id] = film
        spans[clip_id] = (start, start + 30)
        for name in ("annotator1", "annotator2"):
            level = "S" if truth[i] ^ (generator.random() < 0.15) else "EN"
            clips.append(of.Clip(clip_id, film, f"{film}.mp4", start, start + 30, level, (), name))
    stores = {}
    for name, weight in (("seen", 0.3), ("heard", 2.5)):
        frames = generator.normal(size=(n, 4, 5)).astype(np.float32)
        frames[:, :, 0] += (weight * truth)[:, None]
        arrays = {name: {"frames": frames, "pooled": frames.mean(axis=1)}}
        path = seal_arrays(folder / name, movie_of, arrays, n_frames=4, spans=spans)
        stores[name] = of.open_store(path)
    codebook = builtin_codebook("mobygaze")
    return of.Manifest(tuple(clips), folder, codebook), stores


def means(report):
    rows = report.data[report.data["metric"] == "auc"]
    return rows.set_index(["tested_on", "features", "labels", "model"])["movie_mean"]


@pytest.mark.long
def test_each_modality_and_all_stand_beside_the_other_expert_for_every_rule(corpus):
    manifest, stores = corpus
    report = mobygaze_report(
        manifest,
        {"visual": (stores["seen"], None), "audio": (stores["heard"], None)},
        task="en_s",
        models=("linear",),
    )
    assert [block.title.partition(":")[0] for block in report.blocks] == [
        *("en_s@annotator1", "en_s@annotator2", "en_s@agreed"),
    ]
    mean = means(report)
    rules = ("merged", "of annotator1", "of annotator2", "soft")
    for rule in rules:
        heard = mean["en_s@agreed", "audio", rule, "linear"]
        seen = mean["en_s@agreed", "visual", rule, "linear"]
        both = mean["en_s@agreed", "all", rule, "linear"]
        assert heard > max(0.9, seen + 0.1)
        assert abs(both - heard) < 0.05
    assert 0.6 < mean["en_s@annotator1", "", "", "other_expert"] < 0.85
    rows = report.blocks[0].rows
    assert [row[:3] for row in rows[-2:]] == [("", "", "other_expert"), ("", "", "(chance)")]
    assert len(rows) == 3 * len(rules) + 2


@pytest.mark.long
def test_attention_reads_the_frames_of_each_modality(corpus):
    manifest, stores = corpus
    report = mobygaze_report(
        manifest, {"audio": (stores["heard"], None)}, task="en_s", models=("attention",), rules=("merged",)
    )
    mean = means(report)
    assert mean["en_s@agreed", "audio", "merged", "attention"] > 0.9
    assert set(report.data["model"]) == {"attention", "other_expert"}


@pytest.mark.long
def test_segments_are_bags_of_the_stores_windows(corpus):
    manifest, stores = corpus
    merged = {}
    for clip in manifest:  # two windows are a segment, which begins and ends as they do
        first = int(clip.start_s // 60)
        at = (f"{clip.movie}-s{first}", clip.annotator)
        level = "S" if "S" in (clip.level, merged[at].level if at in merged else "") else "EN"
        merged[at] = of.Clip(at[0], clip.movie, "", 60.0 * first, 60.0 * first + 60, level, (), at[1])
    report = mobygaze_report(
        manifest.with_clips(merged.values()),
        {"audio": (stores["heard"], None), "visual": (stores["seen"], None)},
        task="en_s",
        models=("linear", "attention"),
        rules=("merged",),
        bags=True,
    )
    mean = means(report)
    assert mean["en_s@agreed", "all", "merged", "linear"] > 0.85
    assert mean["en_s@agreed", "audio", "merged", "attention"] > 0.85
    assert mean["en_s@agreed", "visual", "merged", "attention"] < 0.8


def test_tables_are_handed_over_when_made_and_runs_that_are_kept_are_read_again(
    corpus, tmp_path, monkeypatch, capsys
):
    manifest, stores = corpus
    heard = {"audio": (stores["heard"], None)}
    how = {"task": "en_s", "models": ("linear",), "kept": tmp_path}
    handed = []

    def made(own, whole):
        handed.append((own, whole))
        if len(handed) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mobygaze_report(manifest, heard, made=made, **how)
    assert handed[0][0].data.equals(handed[0][1].data)
    assert [path.name for path in tmp_path.iterdir()] == ["merged-audio-0.json"]
    whole = mobygaze_report(manifest, heard, made=made, **how)
    assert [set(own.data["labels"]) - {""} for own, _ in handed[1:]] == [
        {"merged"},
        {"of annotator1", "of annotator2"},
        {"soft"},
    ]

    def refuse(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr(tables.om, "evaluate", refuse)
    assert to_json(mobygaze_report(manifest, heard, **how)) == to_json(whole)
    monkeypatch.setattr(tables, "mobygaze_report", lambda *_, **__: whole)
    of.write_manifest(manifest, tmp_path / "films.csv")
    words = ["mobygaze", str(tmp_path / "films.csv"), f"audio={stores['heard'].where}", "--json"]
    table_of_contents().main(words, standalone_mode=False)
    assert capsys.readouterr().out == to_json(whole)
