"""Networks that hear give what transformers' own extractor and forward give, window by window."""

import json
import math

import numpy as np
import pytest

from obygaze_features.backbones import load_backbone
from obygaze_features.errors import BackboneError
from tests.later import later, without_gradients
from tests.rounding import network_rounding
from tests.tiny_checkpoints import tiny_sound_checkpoint

torch = later("torch")
transformers = later("transformers")
quiet = later("obygaze_features.backbones.checkpoint", "quiet")
waveform = later("obygaze_features.backbones.waveform")
KINDS = later("obygaze_features.backbones.waveform", "SOUNDS")

RATE = 16_000
NETWORK_ROUNDING = network_rounding(7 * 16 * 3, layers=4)  # behind seven convolutions
HEARING = (
    *("wav2vec2", "hubert", "wavlm", "whisper", "audio-spectrogram-transformer", "clap"),
    "pe_audio_encoder",
)
LONGEST_S = {"whisper": 4.0, "audio-spectrogram-transformer": 1.28, "clap": 2.0}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hearing")
    return {kind: tiny_sound_checkpoint(kind, folder / kind) for kind in HEARING}


def test_every_kind_is_tried():
    # A whole PE-AV needs timm for its pictures: its sound is tried in test_timm_encoders.py.
    assert {*HEARING, "pe_audio_video"} == {*KINDS.keys()}


def samples(seconds, seed=0):
    return np.random.default_rng(seed).normal(0, 0.1, round(seconds * RATE)).astype(np.float32)


@without_gradients
def plain(kind, folder, window):
    """Run a window through classes of transformers."""
    with quiet():
        extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
        if kind == "clap":
            network = transformers.ClapModel.from_pretrained(folder).eval()
        else:
            network = transformers.AutoModel.from_pretrained(folder).eval()
    inputs = extractor(window, sampling_rate=RATE, return_tensors="pt")
    if kind == "clap":
        return network.audio_projection(network.audio_model(**inputs).pooler_output).numpy()
    network = network.encoder if kind == "whisper" else network
    hidden = network(**inputs).last_hidden_state[0].numpy()
    if kind == "whisper":
        return hidden[: len(window) // 320]
    if kind == "audio-spectrogram-transformer":
        return hidden[2:].reshape(2, 12, -1).mean(axis=0)[: len(window) // 1600]
    return hidden


@pytest.mark.parametrize("kind", HEARING)
@pytest.mark.parametrize("seconds", [0.9, 4.5])
def test_the_steps_are_those_of_transformers_for_every_window(folders, kind, seconds):
    encoder = load_backbone("waveform", 4, weights=str(folders[kind])).encode
    heard = samples(seconds)
    n_windows = math.ceil(seconds / LONGEST_S.get(kind, 30.0))
    size = len(heard) // n_windows
    windows = [heard[k * size : (k + 1) * size] for k in range(n_windows)]
    expected = np.concatenate([plain(kind, folders[kind], window) for window in windows])

    steps, middles = encoder.steps(heard)

    assert steps.shape == expected.shape
    assert np.abs(steps - expected).max() <= NETWORK_ROUNDING * max(np.abs(expected).max(), 1.0)
    assert (np.diff(middles) > 0).all()
    assert 0 < middles[0] <= middles[-1] < len(heard)


@pytest.mark.parametrize("kind", HEARING)
def test_a_clip_gets_the_same_bytes_in_any_batch(folders, kind):
    backbone = load_backbone("waveform", 3, weights=str(folders[kind]))
    clip = in_three_parts(samples(3.6))
    reversed_clip = clip[::-1].copy()
    alone = backbone.encode([clip])["frames"]
    in_a_batch = backbone.encode([reversed_clip, clip])["frames"]
    assert alone.shape == (1, *backbone.outputs[0].shape)
    assert np.array_equal(alone[0], in_a_batch[1])


@pytest.mark.parametrize("kind", HEARING)
def test_a_part_of_a_clip_is_the_mean_of_its_steps_and_the_clip_that_of_its_parts(folders, kind):
    backbone = load_backbone("waveform", 3, weights=str(folders[kind]))
    heard = samples(3.6)
    arrays = backbone.encode([in_three_parts(heard)])
    frames = arrays["frames"][0]
    if kind != "clap":  # which has one step a window
        steps, middles = backbone.encode.steps(heard)
        in_second_part = (middles >= 19_200) & (middles < 38_400)
        assert np.allclose(frames[1], steps[in_second_part].mean(axis=0), atol=NETWORK_ROUNDING)
    assert np.allclose(arrays["pooled"][0], frames.mean(axis=0), atol=NETWORK_ROUNDING)


def in_three_parts(heard):
    """Cut a sound into three parts [3, L] of one clip, each with NaN after its end."""
    parts = [np.pad(part, (0, 100), constant_values=np.nan) for part in np.split(heard, 3)]
    return np.stack(parts)


def test_a_part_that_is_shorter_than_a_step_has_the_nearest_one(folders):
    backbone = load_backbone("waveform", 2, weights=str(folders["hubert"]))
    parts = np.full((2, 16_000), np.nan, np.float32)
    parts[0] = samples(1.0)
    parts[1, 0] = 0.0  # a part of one sample
    frames = backbone.encode([parts])["frames"][0]
    steps, _ = backbone.encode.steps(parts[np.isfinite(parts)])
    assert np.array_equal(frames[1], steps[-1])


def test_what_is_not_understood_is_refused_by_its_name(tmp_path):
    from transformers import BertConfig, BertModel

    BertModel(BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2)).save_pretrained(
        tmp_path
    )
    with pytest.raises(BackboneError, match="'bert' is not one that hears here; there is wav2vec2"):
        load_backbone("waveform", weights=str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("hubert", {"feature_extractor_type": "ClapFeatureExtractor"}, "is of 'ClapFeatureExtractor'"),
        ("hubert", {"sampling_rate": 10**9}, "1000000000 samples a second"),
        ("whisper", {"feature_size": 80}, "feature_size is 80, and the network's num_mel_bins 20"),
        ("whisper", {"chunk_length": 10**6}, "windows of 1e"),
        ("clap", {"feature_size": 64}, "feature_size is 64, and the network's num_mel_bins 32"),
        ("audio-spectrogram-transformer", {"max_length": 1024}, "max_length is 1024, and the network's"),
        ("hubert", None, "is missing"),
    ],
)
def test_numbers_beside_the_weights_that_do_not_fit_are_refused(tmp_path, kind, change, message):
    folder = tiny_sound_checkpoint(kind, tmp_path / "network")
    beside = folder / waveform.EXTRACTOR
    if change is None:
        beside.unlink()
    else:
        beside.write_text(json.dumps(json.loads(beside.read_text()) | change), encoding="utf-8")
    with pytest.raises(BackboneError, match=message):
        load_backbone("waveform", weights=str(folder))


def test_weights_must_be_named():
    with pytest.raises(BackboneError, match="give --weights"):
        load_backbone("waveform")


def test_windows_that_do_not_fit_in_the_memory_together_are_heard_fewer_at_once(folders, monkeypatch):
    encoder = load_backbone("waveform", 4, weights=str(folders["clap"])).encode
    heard, forward = samples(9.0), encoder._forward
    expected, _ = encoder.steps(heard)

    def small(windows):
        if len(windows) > 2:
            raise torch.OutOfMemoryError
        return forward(windows)

    monkeypatch.setattr("obygaze_features.backbones.runner.PAUSE_S", 0)
    monkeypatch.setattr(encoder, "_forward", small)
    np.testing.assert_allclose(encoder.steps(heard)[0], expected, rtol=0, atol=1e-5 * np.abs(expected).max())
