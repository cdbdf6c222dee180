"""What hears: absent where there is no sound, partial where some is missing, and always the same bytes."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze.cli import main
from obygaze_features.commands.extract_output import outcome
from obygaze_features.errors import ExtractError, StoreError
from obygaze_features.extraction import RunReport, Stop, prepare
from obygaze_features.store.stage import read_stage
from tests.tiny_checkpoints import tiny_sound_checkpoint
from tests.video.sounding import tone, write_film

BOTH = ["descriptors", "sound"]


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """A film with sound, one whose sound ends early, one without, and a file that is none."""
    folder = tmp_path_factory.mktemp("films")
    write_film(folder / "full.mp4", {"eng": tone(330, 12.0)}, seconds=12.0)
    write_film(folder / "short.mkv", {"eng": tone(330, 6.0)}, seconds=12.0, codec="flac")
    write_film(folder / "silent.mp4", {}, seconds=12.0)
    (folder / "none.mp4").write_bytes(b"no video")
    clips = [
        of.Clip(f"{name.partition('.')[0]}-{k}", name, name, 4.0 * k, 4.0 * k + 4.0)
        for name in ("full.mp4", "short.mkv", "silent.mp4", "none.mp4")
        for k in range(3)
    ]
    return of.Manifest(tuple(clips), folder)


def extract(manifest, out, backbones, **settings):
    return of.extract(manifest, out, backbones, n_frames=4, licence="CC0-1.0", **{"workers": 1, **settings})


@pytest.fixture(scope="module")
def both(manifest, tmp_path_factory):
    """The store of what is seen and heard."""
    return extract(manifest, tmp_path_factory.mktemp("both") / "both", BOTH)


def clip_of(store, clip_id):
    return next(clip for clip in store.clips if clip.clip_id == clip_id)


def statuses(store):
    return {clip.clip_id: (clip.status, clip.absent.get("sound", "")) for clip in store.clips}


@pytest.mark.long  # decodes films
def test_a_clip_without_sound_is_absent_where_others_have_it(both):
    result = statuses(both)
    assert result["full-1"] == ("ok", "")
    assert result["silent-1"] == ("ok", "no sound track")
    assert result["short-2"] == ("ok", "no sound between 8 and 12 s")
    assert result["short-1"][0] == "partial"
    assert "no sound for" in clip_of(both, "short-1").reason
    assert result["none-0"][0] == "failed"
    with pytest.raises(StoreError, match="clip silent-1 is absent: no sound track"):
        both["sound"].read("silent-1", "frames")
    assert both.attributes["spec_version"] == "1.2"
    assert of.verify(both, "full").ok
    summary = outcome(read_stage(both.path.with_name("both.staging")), RunReport(), None, Stop(), "clip")
    assert re.search(r"3 +absent in sound +no sound track +silent-0", str(summary.text))


@pytest.mark.long
def test_alone_a_clip_without_sound_has_failed(manifest, both, tmp_path):
    store = extract(manifest, tmp_path / "heard", ["sound"])
    assert clip_of(store, "silent-1").status == "failed"
    assert clip_of(store, "silent-1").reason == "no sound track"
    for clip_id in ("full-0", "full-2", "short-0", "short-1"):
        alone, beside = (some["sound"].read(clip_id, "frames") for some in (store, both))
        assert np.array_equal(alone, beside)


def test_pictures_do_not_depend_on_what_is_heard(manifest, both, tmp_path):
    seen = extract(manifest, tmp_path / "seen", ["descriptors"])
    for clip_id in ("full-0", "short-1", "silent-2"):
        alone, beside = (some["descriptors"].read(clip_id, "frames") for some in (seen, both))
        assert np.array_equal(alone, beside)


@pytest.mark.long
def test_workers_and_resumption_do_not_change_a_byte(manifest, tmp_path, file_digests):
    extract(manifest, tmp_path / "one", BOTH)
    work = prepare(
        manifest, tmp_path / "two", BOTH, n_frames=4, workers=2, limit=5, licence="CC0-1.0", corpus="one"
    )
    work.run()
    extract(manifest, tmp_path / "two", BOTH, workers=3, corpus="one")
    assert file_digests(tmp_path / "one-1.0.0") == file_digests(tmp_path / "two-1.0.0")


def test_strict_fails_a_clip_with_a_hole_in_its_sound(manifest, tmp_path):
    store = extract(manifest, tmp_path / "strict", BOTH, strict=True)
    assert statuses(store)["short-1"][0] == "failed"
    assert statuses(store)["full-1"] == ("ok", "")


def test_sound_that_no_backbone_hears_is_remarked(manifest, tmp_path):
    work = prepare(manifest, tmp_path / "seen", n_frames=4, workers=1, licence="CC0-1.0")
    _, report = work.run()
    assert {note: n for note, n in report.remarks.items() if "sound" in note} == {
        "the file has sound, which no backbone here hears": 6
    }


def test_still_images_are_not_heard(tmp_path):
    clips = of.Manifest((of.Clip("a", "a", "a.png"),), tmp_path)
    with pytest.raises(ExtractError, match="'sound' hears, and the clips are still images"):
        of.extract(clips, tmp_path / "stills", ["sound"], licence="CC0-1.0")


def test_a_network_of_sound_is_extracted_like_the_descriptors_of_sound(manifest, tmp_path):
    weights = tiny_sound_checkpoint("hubert", tmp_path / "hubert")
    network = of.load_backbone("waveform", 4, weights=str(weights))
    store = extract(manifest, tmp_path / "both", [network, "descriptors"], note=lambda _: None)
    assert statuses(store)["full-1"][0] == "ok"
    assert clip_of(store, "silent-0").absent == {"waveform": "no sound track"}
    assert store["waveform"].read("full-0", "frames").shape == (4, 32)
    assert of.verify(store, "full").ok


@pytest.mark.long  # decodes films
def test_shots_are_found_on_frames_decoded_once_where_nothing_is_seen(tmp_path):
    frames = (np.full((48, 64, 3), 40 + 120 * (n // 100 % 2), np.uint8) for n in range(400))
    film = write_film(tmp_path / "film.mp4", {"eng": tone(330, 16.0)}, seconds=16.0, pictures=frames)
    windows = of.Manifest(
        tuple(of.Clip(f"w{k}", "film", film.name, 2.0 * k, 2.0 * k + 4.0) for k in range(7)), tmp_path
    )
    tables, notes = [], []
    for number, some in enumerate((["descriptors"], ["sound"])):
        table = tmp_path / f"shots{number}.csv"
        extract(windows, tmp_path / f"store{number}", some, shots=table, note=notes.append)
        tables.append(table.read_bytes())
    assert tables[0] == tables[1]
    assert not [note for note in notes if "second time" in note]


def hum(marked, generator):
    """What is heard of a level for a second: a tone after a moment of noise, or noise alone."""
    heard = noise(generator, 1.0)
    if marked:
        start = int(generator.integers(4_410, 22_050))
        heard[start:] = tone(330, 1.0, 0.1)[start:]
    return heard


def noise(generator, seconds):
    return generator.normal(0, 0.1, round(seconds * 44_100)).astype(np.float32)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Clips whose level is heard, and not seen."""
    folder, generator, clips = tmp_path_factory.mktemp("planted"), np.random.default_rng(0), []
    for number in range(36):
        marked = number % 2 == 0
        grey = int(generator.integers(40, 200))
        write_film(folder / f"{number}.mp4", {"eng": hum(marked, generator)}, seconds=1.0, grey=grey)
        movie = f"m{number // 2 % 6}"
        clips.append(of.Clip(f"c{number:02}", movie, f"{number}.mp4", level="S" if marked else "EN"))
    manifest = of.Manifest(tuple(clips), folder)
    return manifest, extract(manifest, folder / "planted", BOTH)


@pytest.mark.long
def test_a_planted_soundtrack_is_found_by_sound_and_not_by_pictures(planted):
    manifest, store = planted
    for name, low, high in (("sound", 0.95, 1.0), ("descriptors", 0.15, 0.85)):
        run = om.evaluate(om.load_dataset(store, manifest, backbone=name), ["linear"], "en_s")
        rows = run.metrics[(run.metrics["model"] == "linear") & (run.metrics["metric"] == "auc")]
        assert low <= float(rows["movie_mean"].iloc[0]) <= high


@pytest.mark.long
def test_a_film_is_run_with_a_model_of_what_is_seen_and_heard(planted, tmp_path):
    manifest, store = planted
    data = om.load_dataset([store, store], manifest, backbone=BOTH)
    specs = om.fused(["linear"], data, "late")
    run = om.evaluate(data, specs, "en_s")
    om.save_models(run, data, ["linear"], tmp_path, models=specs, licence="CC0-1.0")
    generator = np.random.default_rng(1)
    heard = np.concatenate([hum(second // 4 % 2, generator) for second in range(24)])
    film = write_film(tmp_path / "film.mp4", {"eng": heard}, seconds=24.0)
    out = tmp_path / "out"
    cut = ["--window", "1", "--hop", "1", "--shots", "none", "--out", str(out)]
    with pytest.raises(SystemExit) as ended:
        main(["film", "run", str(film), "--model", str(tmp_path / "linear.model"), *cut])
    assert ended.value.code in (0, None)
    record = json.loads((out / "scored" / "film.json").read_text("utf-8"))
    assert record["models"][0]["perceives"] == ["heard", "moving", "visual"]
    rows = pd.read_csv(out / "scored" / "timeline.csv")
    marked = rows["start_s"] // 4 % 2 == 1
    assert rows.loc[marked, "logit"].min() > rows.loc[~marked, "logit"].max()
