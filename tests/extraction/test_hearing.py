"""What hears: absent where there is no sound, partial where some is missing, and always the same bytes."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.commands.extract_output import outcome
from obygaze_features.errors import ExtractError, StoreError
from obygaze_features.extraction import RunReport, Stop, prepare
from obygaze_features.store.stage import read_stage
from tests.command import obygaze
from tests.tiny_checkpoints import tiny_sound_checkpoint
from tests.video.sounding import RATE, tone, write_film

SEEN_AND_HEARD = ["descriptors", "sound"]


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """Clips of 4 s, three of each of four files of 12 s: their ids are the file's name and 0, 1 or 2.

    `full` has sound, that of `short` ends after 6 s, `silent` has none, and `none` is no video.
    """
    folder = tmp_path_factory.mktemp("films")
    write_film(folder / "full.mp4", {"eng": tone(hz=330, seconds=12.0)}, seconds=12.0)
    write_film(folder / "short.mkv", {"eng": tone(hz=330, seconds=6.0)}, seconds=12.0, codec="flac")
    write_film(folder / "silent.mp4", {}, seconds=12.0)
    (folder / "none.mp4").write_bytes(b"no video")
    clips = []
    for file in ("full.mp4", "short.mkv", "silent.mp4", "none.mp4"):
        for number in range(3):
            clip_id = f"{Path(file).stem}-{number}"
            start_s = 4.0 * number
            clips.append(of.Clip(clip_id, file, file, start_s, start_s + 4.0))
    return of.Manifest(tuple(clips), folder)


def extract(manifest, out, backbones, **settings):
    return of.extract(manifest, out, backbones, n_frames=4, licence="CC0-1.0", **{"workers": 1, **settings})


@pytest.fixture(scope="module")
def seen_and_heard_store(manifest, tmp_path_factory):
    """The store of descriptors of pictures and of sound."""
    return extract(manifest, tmp_path_factory.mktemp("both") / "both", SEEN_AND_HEARD)


def clip_of(store, clip_id):
    (clip,) = [clip for clip in store.clips if clip.clip_id == clip_id]
    return clip


@pytest.mark.long  # decodes films
@pytest.mark.parametrize(
    ("clip_id", "status", "why_no_sound"),
    [
        ("full-1", "ok", ""),
        ("silent-1", "ok", "no sound track"),
        ("short-2", "ok", "no sound between 8 and 12 s"),
        ("short-1", "partial", ""),
        ("none-0", "failed", ""),
    ],
    ids=["with sound", "without sound", "behind the end of the sound", "over its end", "no video"],
)
def test_a_clip_without_sound_is_absent_in_the_group_of_sound_and_ok_in_that_of_pictures(
    seen_and_heard_store, clip_id, status, why_no_sound
):
    """Each clip is 4 s of a file of 12 s, and a store has features of its pictures and of its sound.

    full-1 has sound. The file of silent-1 has no sound track. The sound of `short` ends at 6 s: short-1 is
    from 4 to 8 s, so that a part of its sound is missing (partial), and short-2 from 8 to 12 s, so that it
    has none. The file `none` is no video, so that none-0 has failed in both groups.
    """
    clip = clip_of(seen_and_heard_store, clip_id)

    assert clip.status == status
    assert clip.absent.get("sound", "") == why_no_sound


@pytest.mark.long
def test_a_store_with_clips_without_sound_is_whole_and_of_format_1_2(seen_and_heard_store):
    """Earlier formats had no clips that are absent in one group alone."""
    assert seen_and_heard_store.attributes["spec_version"] == "1.2"
    assert of.verify(seen_and_heard_store, "full").ok


@pytest.mark.long
def test_a_store_says_why_and_for_how_long_clips_have_no_sound(seen_and_heard_store):
    """The sound of short-1 ends after 2 of its 4 s; the file of silent-1 has no sound track."""
    assert "no sound for" in clip_of(seen_and_heard_store, "short-1").reason
    with pytest.raises(StoreError, match="clip silent-1 is absent: no sound track"):
        seen_and_heard_store["sound"].read("silent-1", "frames")


@pytest.mark.long
def test_the_summary_of_an_extraction_counts_clips_without_sound_by_reason(seen_and_heard_store):
    """Three clips are of the file without a sound track, the first of which is silent-0."""
    stage = read_stage(seen_and_heard_store.path.with_name("both.staging"))

    summary = outcome(stage, RunReport(), sealed=None, stop=Stop(), unit="clip")

    assert re.search(r"3 +absent in sound +no sound track +silent-0", str(summary.text))


def assert_same_frames(store, other_store, backbone, clip_ids):
    for clip_id in clip_ids:
        frames = store[backbone].read(clip_id, "frames")
        other_frames = other_store[backbone].read(clip_id, "frames")
        assert np.array_equal(frames, other_frames), clip_id


@pytest.mark.long
def test_what_is_heard_does_not_depend_on_what_is_seen(manifest, seen_and_heard_store, tmp_path):
    """One store has features of sound alone, another one of sound and of pictures.

    In both, clips have the same features of sound.
    """
    heard_store = extract(manifest, tmp_path / "heard", ["sound"])

    clips_with_sound = ["full-0", "full-2", "short-0", "short-1"]
    assert_same_frames(heard_store, seen_and_heard_store, "sound", clips_with_sound)


@pytest.mark.long
def test_a_clip_without_sound_has_failed_in_a_store_of_sound_alone(manifest, tmp_path):
    """The file of silent-1 has no sound track, and nothing else is extracted of it."""
    of_one_clip = manifest.with_clips([clip for clip in manifest if clip.clip_id in ("silent-1", "full-1")])

    heard_store = extract(of_one_clip, tmp_path / "heard", ["sound"])

    silent_clip = clip_of(heard_store, "silent-1")
    assert silent_clip.status == "failed"
    assert silent_clip.reason == "no sound track"


@pytest.mark.long
def test_what_is_seen_does_not_depend_on_what_is_heard(manifest, seen_and_heard_store, tmp_path):
    """One store has features of pictures alone, another one of pictures and of sound.

    In both, clips have the same features of pictures, whether they have sound (full-0), a part of it
    (short-1) or none (silent-2).
    """
    seen_store = extract(manifest, tmp_path / "seen", ["descriptors"])

    assert_same_frames(seen_store, seen_and_heard_store, "descriptors", ["full-0", "short-1", "silent-2"])


@pytest.mark.long
def test_an_extraction_of_pictures_alone_remarks_on_clips_whose_files_have_sound(manifest, tmp_path):
    """Six clips are of the two files with sound, `full` and `short`, three of each."""
    work = prepare(manifest, tmp_path / "seen", n_frames=4, workers=1, licence="CC0-1.0")

    _stage, report = work.run()

    remarks_on_sound = {remark: n for remark, n in report.remarks.items() if "sound" in remark}
    assert remarks_on_sound == {"the file has sound, which no backbone here hears": 6}


@pytest.mark.long
def test_workers_and_resumption_do_not_change_a_byte(manifest, tmp_path, file_digests):
    """One store is made at once by one worker, and the other in two runs of 2 and 3 workers."""
    extract(manifest, tmp_path / "at-once", SEEN_AND_HEARD, workers=1, corpus="films")

    five_clips_first = {"n_frames": 4, "workers": 2, "limit": 5, "licence": "CC0-1.0", "corpus": "films"}
    prepare(manifest, tmp_path / "resumed", SEEN_AND_HEARD, **five_clips_first).run()
    extract(manifest, tmp_path / "resumed", SEEN_AND_HEARD, workers=3, corpus="films")

    assert file_digests(tmp_path / "resumed-1.0.0") == file_digests(tmp_path / "at-once-1.0.0")


@pytest.mark.long
def test_strict_fails_a_clip_with_a_hole_in_its_sound(manifest, tmp_path):
    """The clip short-1 is from 4 to 8 s of a file whose sound ends at 6 s."""
    store = extract(manifest, tmp_path / "strict", SEEN_AND_HEARD, strict=True)

    assert clip_of(store, "short-1").status == "failed"
    assert clip_of(store, "full-1").status == "ok"


def test_sound_of_still_images_is_refused(tmp_path):
    """The manifest has one clip, a picture in a.png, and the backbone `sound` hears."""
    still_image = of.Manifest((of.Clip("a", "a", "a.png"),), tmp_path)

    with pytest.raises(ExtractError, match="'sound' hears, and the clips are still images"):
        of.extract(still_image, tmp_path / "stills", ["sound"], licence="CC0-1.0")


@pytest.mark.long
def test_a_network_of_sound_is_extracted_beside_descriptors_of_pictures(manifest, tmp_path):
    """The network is a tiny HuBERT, whose vectors have 32 numbers; each clip has four."""
    weights = tiny_sound_checkpoint("hubert", tmp_path / "hubert")
    hubert = of.load_backbone("waveform", n_frames=4, weights=str(weights))

    store = extract(manifest, tmp_path / "both", [hubert, "descriptors"], note=lambda _: None)

    assert clip_of(store, "full-1").status == "ok"
    assert clip_of(store, "silent-0").absent == {"waveform": "no sound track"}
    assert store["waveform"].read("full-0", "frames").shape == (4, 32)
    assert of.verify(store, "full").ok


def sound_of_a_second(has_tone, generator):
    """Make a second of noise; a tone may take its place from a time between 0.1 and 0.5 s on."""
    sound = generator.normal(0, 0.1, RATE).astype(np.float32)
    if has_tone:
        start = int(generator.integers(RATE // 10, RATE // 2))
        sound[start:] = tone(hz=330, seconds=1.0, level=0.1)[start:]
    return sound


@pytest.fixture(scope="module")
def manifest_and_store_of_level_that_is_heard(tmp_path_factory):
    """The manifest of 36 clips, and a store of what is seen and heard in them.

    Each of six movies has three clips of level S and three of EN. In those of S a tone is heard; all are of a
    grey by chance.
    """
    folder = tmp_path_factory.mktemp("planted")
    generator = np.random.default_rng(0)
    clips = []
    for number in range(36):
        pair, place_in_pair = divmod(number, 2)
        level = ("S", "EN")[place_in_pair]
        movie = f"m{pair % 6}"
        grey = int(generator.integers(40, 200))
        sound = sound_of_a_second(level == "S", generator)
        write_film(folder / f"{number}.mp4", {"eng": sound}, seconds=1.0, grey=grey)
        clips.append(of.Clip(f"c{number:02}", movie, f"{number}.mp4", level=level))
    manifest = of.Manifest(tuple(clips), folder)
    return manifest, extract(manifest, folder / "planted", SEEN_AND_HEARD)


@pytest.mark.long
@pytest.mark.parametrize(
    ("backbone", "min_auc", "max_auc"),
    [("sound", 0.95, 1.0), ("descriptors", 0.15, 0.85)],
    ids=["heard", "seen: about chance"],
)
def test_a_level_that_is_only_heard_is_predicted_from_sound_alone(
    manifest_and_store_of_level_that_is_heard, backbone, min_auc, max_auc
):
    """A tone is heard in clips of level S, and not in those of EN; pictures are grey by chance.

    An AUC of 1 is a perfect prediction, and 0.5 is chance.
    """
    manifest, store = manifest_and_store_of_level_that_is_heard
    data = om.load_dataset(store, manifest, backbone=backbone)

    run = om.evaluate(data, ["linear"], "en_s")

    aucs = run.metrics.query("model == 'linear' and metric == 'auc'")["movie_mean"]
    assert min_auc <= float(aucs.iloc[0]) <= max_auc


def save_model_that_hears_the_level(manifest_and_store, folder):
    """Train a linear model of what is seen and one of what is heard, fused late, and return their file."""
    manifest, store = manifest_and_store
    data = om.load_dataset([store, store], manifest, backbone=SEEN_AND_HEARD)
    specs = om.fused(["linear"], data, "late")
    run = om.evaluate(data, specs, "en_s")
    om.save_models(run, data, ["linear"], folder / "models", models=specs, licence="CC0-1.0")
    return folder / "models" / "linear.model"


@pytest.mark.long
def test_windows_of_a_film_whose_sound_is_of_the_level_have_higher_scores(
    manifest_and_store_of_level_that_is_heard, tmp_path
):
    """In 36 clips a tone is heard where the level is S; a linear model of what is seen and heard learns this.

    In a film of 24 s the tone sounds in every other 4 s, from 4 s on. Each window of a second with the tone
    gets a higher score than any without it.
    """
    path_of_model = save_model_that_hears_the_level(manifest_and_store_of_level_that_is_heard, tmp_path)
    seconds_with_tone = [*range(4, 8), *range(12, 16), *range(20, 24)]
    generator = np.random.default_rng(1)
    sounds = [sound_of_a_second(second in seconds_with_tone, generator) for second in range(24)]
    film = write_film(tmp_path / "film.mp4", {"eng": np.concatenate(sounds)}, seconds=24.0)

    windows_of_a_second = ["--window", "1", "--hop", "1", "--shots", "none"]
    words = ["film", "run", film, "--model", path_of_model, *windows_of_a_second, "--out", tmp_path / "out"]
    assert obygaze(*words) == 0

    windows = pd.read_csv(tmp_path / "out" / "scored" / "timeline.csv")
    has_tone = windows["start_s"].isin(seconds_with_tone)
    assert windows.loc[has_tone, "logit"].min() > windows.loc[~has_tone, "logit"].max()
    record = json.loads((tmp_path / "out" / "scored" / "film.json").read_text("utf-8"))
    assert record["models"][0]["perceives"] == ["heard", "moving", "visual"]
