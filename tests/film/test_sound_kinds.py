"""Kinds of sound: a planted soundtrack is named by the second, kept, shown, and called a rule of thumb."""

import numpy as np
import pytest
from scipy import signal

from obygaze_features.backbones import sound
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_film.errors import FilmError
from obygaze_film.exchange import export
from obygaze_film.page import film_page
from obygaze_film.rows import windows_of
from obygaze_film.score import score_film
from obygaze_film.sound_kinds import sounds_of
from obygaze_film.timeline import Timeline
from tests.film.films import film_store
from tests.planted_models import D

TRACK = (("silence", 20), ("speech", 40), ("music", 40), ("other", 20), ("speech", 20))
"""What is planted, and for how many seconds."""

WINDOW_S, HOP_S, N = 4.0, 2.0, 2


def syllables(seconds, rng):
    """A buzz through two formants that change with every syllable, a fifth of a second each, after a hiss."""
    made = []
    for _ in range(5 * seconds):
        times = np.arange(2240) / sound.RATE
        voice = signal.sawtooth(2 * np.pi * rng.uniform(100, 160) * times)
        for hz in (rng.uniform(300, 800), rng.uniform(900, 2500)):
            voice = signal.lfilter(*signal.iirpeak(hz, 4, fs=sound.RATE), voice) + 0.1 * voice
        hiss = 0.05 * rng.normal(size=480)
        made += [hiss, 0.3 * voice * signal.windows.tukey(len(voice), 0.3), np.zeros(480)]
    return np.concatenate(made)


def chords(seconds, rng):
    """Three partials of each of three tones, which change every two seconds."""
    times = np.arange(2 * sound.RATE) / sound.RATE
    made = []
    for _ in range(seconds // 2):
        root = rng.uniform(110, 220)
        tones = [root * step * n for step in (1, 1.25, 1.5) for n in (1, 2, 3)]
        made.append(0.03 * np.sum([np.sin(2 * np.pi * hz * times) for hz in tones], axis=0))
    return np.concatenate(made)


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """A store of a film with pictures and the planted soundtrack; its first window could not be heard."""
    rng = np.random.default_rng(5)
    make = {
        "silence": lambda seconds, _: np.zeros(seconds * sound.RATE),
        "speech": syllables,
        "music": chords,
        "other": lambda seconds, rng: 0.05 * rng.normal(size=seconds * sound.RATE),
    }
    samples = np.concatenate([make[kind](seconds, rng) for kind, seconds in TRACK]).astype(np.float32)
    steps = sound.measure(samples).reshape(-1, sound.STEPS_A_SECOND, len(sound.FEATURES))
    whole_s, size = len(samples) / sound.RATE, WINDOW_S / N
    starts = np.arange(0, whole_s - WINDOW_S + 1, HOP_S)
    ids = [f"tt0000001-{number:04d}" for number in range(len(starts))]
    parts = [steps[int(start) : int(start + WINDOW_S)].reshape(N, -1, steps.shape[2]) for start in starts]
    store = open_store(
        seal_arrays(
            tmp_path_factory.mktemp("heard") / "film",
            dict.fromkeys(ids, "tt0000001"),
            {
                "descriptors": {"pooled": rng.normal(size=(len(ids), D)).astype(np.float32)},
                "sound": {"frames": np.stack([sound.prepare(part) for part in parts])},
            },
            n_frames=N,
            spans={name: (start, start + WINDOW_S) for name, start in zip(ids, starts.tolist(), strict=True)},
            times={
                name: start + size * (np.arange(N) + 0.5) for name, start in zip(ids, starts, strict=True)
            },
            absent={ids[0]: {"sound": "no sound"}},
        )
    )
    store["sound"].provenance["architecture"] = {"features": list(sound.FEATURES)}  # not of the other group
    return store


@pytest.fixture(scope="module")
def film(heard, trained):
    return score_film(heard, [trained.paths["pcbm_lr"]])


def test_the_planted_soundtrack_is_named_second_by_second(film):
    planted = np.repeat([kind for kind, _ in TRACK], [seconds for _, seconds in TRACK])
    found = np.full(len(planted), "", object)
    for start, end, kind in film.sounds.itertuples(index=False, name=None):
        assert (found[int(start) : int(end)] == "").all()
        found[int(start) : int(end)] = kind
    assert found[:2].tolist() == ["", ""]  # that window alone covers them
    borders = np.cumsum([seconds for _, seconds in TRACK])
    inside = np.abs(np.arange(len(planted))[:, None] + 0.5 - borders).min(axis=1) > WINDOW_S / N
    inside[:2] = False
    assert (found[inside] == planted[inside]).all()
    assert film.sounds["text"].tolist() == [kind for kind, _ in TRACK]


def test_it_is_kept_shown_and_exported_as_a_rule_of_thumb(film, tmp_path):
    film.write(tmp_path / "film")
    read = Timeline.read(tmp_path / "film")
    assert read.sounds.to_dict("list") == film.sounds.to_dict("list")
    page = film_page([read])
    assert page.count("<span>Speech</span>") == page.count("<span>Music</span>") == 1
    assert "by a rule of thumb" in page
    assert "règle approximative" in film_page([read], language="fr")
    assert "obygaze: sounds (rule of thumb)" in export(read, "eaf")
    for kind in ("vtt", "srt", "csv", "edl", "jsonld", "iiif"):
        written = export(read, kind, tiers=("sounds",))
        assert written.count("speech") == 3 if kind != "jsonld" else "speech" in written
        assert "by a rule of thumb" in written
    changed = (tmp_path / "film" / "sounds.csv").read_text("utf-8").replace("music", "speech")
    (tmp_path / "film" / "sounds.csv").write_text(changed, encoding="utf-8")
    with pytest.raises(FilmError, match=r"sounds\.csv"):
        Timeline.read(tmp_path / "film")


def test_a_film_without_sound_has_no_such_tier(trained, tmp_path):
    film = score_film(film_store(tmp_path, "tt0000001", end_s=60.0), [trained.paths["pcbm_lr"]])
    assert film.sounds.empty
    assert "sounds.csv" not in film.files()
    assert "rule of thumb" not in film_page([film]) + export(film, "eaf")


def test_features_of_sound_from_another_tool_are_not_read(tmp_path):
    rows = {"sound": {"frames": np.zeros((1, N, 3), np.float32)}}
    path = seal_arrays(tmp_path / "other", {"a": "film"}, rows, n_frames=N, spans={"a": (0.0, 4.0)})
    store = open_store(path)
    assert sounds_of(store, windows_of(store)["film"]).empty
