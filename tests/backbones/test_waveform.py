"""Networks of sound give what transformers' own extractor and network give, window by window.

A sound is cut into windows as long as the network takes, and the network gives a vector for each step in
time, such as 20 ms.
"""

import json
import math

import numpy as np
import pytest

from obygaze_features.backbones import load_backbone
from obygaze_features.errors import BackboneError
from tests.lazy_import import lazy_import, without_gradients
from tests.rounding import network_rounding
from tests.tiny_checkpoints import tiny_sound_checkpoint

torch = lazy_import("torch")
transformers = lazy_import("transformers")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")
waveform = lazy_import("obygaze_features.backbones.waveform")
SOUNDS = lazy_import("obygaze_features.backbones.waveform", "SOUNDS")
RATE = 16_000
NETWORK_ROUNDING = network_rounding(7 * 16 * 3, layers=4)  # behind seven convolutions
TYPES = (
    *("wav2vec2", "hubert", "wavlm", "whisper", "audio-spectrogram-transformer", "clap"),
    "pe_audio_encoder",
)
# Of the tiny networks of tests; the others take any length, and 30 s are the most at once.
LONGEST_WINDOW_S = {"whisper": 4.0, "audio-spectrogram-transformer": 1.28, "clap": 2.0}


@pytest.fixture(scope="module")
def checkpoint_folders(tmp_path_factory):
    """Tiny checkpoints of networks of sound: type -> folder."""
    folder = tmp_path_factory.mktemp("hearing")
    return {model_type: tiny_sound_checkpoint(model_type, folder / model_type) for model_type in TYPES}


def test_every_type_of_network_of_sound_is_tried():
    """All but PE-AV are in TYPES, which tests here run on; it needs timm, as test_timm_encoders.py does."""
    assert set(TYPES) | {"pe_audio_video"} == set(SOUNDS.keys())


def noise(seconds):
    """Return noise at 16 kHz."""
    return np.random.default_rng(0).normal(0, 0.1, round(seconds * RATE)).astype(np.float32)


@without_gradients
def steps_by_hand(model_type, folder, window):
    """Return the vectors of the steps of a window, computed by classes of transformers alone."""
    with quiet():
        extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
        if model_type == "clap":
            network = transformers.ClapModel.from_pretrained(folder).eval()
        else:
            network = transformers.AutoModel.from_pretrained(folder).eval()
    inputs = extractor(window, sampling_rate=RATE, return_tensors="pt")
    if model_type == "clap":
        return network.audio_projection(network.audio_model(**inputs).pooler_output).numpy()
    if model_type == "whisper":
        network = network.encoder
    tokens = network(**inputs).last_hidden_state[0].numpy()  # [tokens, width]
    if model_type == "whisper":
        n_steps = len(window) // (RATE // 50)  # of 20 ms; those behind the window are silence
        return tokens[:n_steps]
    if model_type == "audio-spectrogram-transformer":
        patches = tokens[2:]  # behind the class and the distillation token
        n_bands = 2  # of frequencies
        steps = patches.reshape(n_bands, 12, -1).mean(axis=0)
        n_steps = len(window) // (RATE // 10)  # of 100 ms
        return steps[:n_steps]
    return tokens


@pytest.mark.parametrize("model_type", TYPES)
@pytest.mark.parametrize("seconds", [0.9, 4.5])
def test_steps_equal_those_of_transformers_for_each_window(checkpoint_folders, model_type, seconds):
    """A sound longer than the network takes is cut into windows of equal length, as few as possible.

    Of the tiny networks Whisper takes 4 s, a spectrogram transformer 1.28 s, and CLAP 2 s; others get 30 s at
    most. A network gives a vector for each step, such as 20 ms, and `middles` says at which sample of the
    sound each step has its middle. The vectors must be those of transformers for each window.
    """
    folder = checkpoint_folders[model_type]
    encoder = load_backbone("waveform", n_frames=4, weights=str(folder)).encode
    sound = noise(seconds)
    n_windows = math.ceil(seconds / LONGEST_WINDOW_S.get(model_type, 30.0))
    size = len(sound) // n_windows
    windows = [sound[k * size : (k + 1) * size] for k in range(n_windows)]

    steps, middles = encoder.steps(sound)

    expected = np.concatenate([steps_by_hand(model_type, folder, window) for window in windows])
    assert steps.shape == expected.shape
    assert np.abs(steps - expected).max() <= NETWORK_ROUNDING * max(np.abs(expected).max(), 1.0)
    assert (np.diff(middles) > 0).all()
    assert 0 < middles[0] <= middles[-1] < len(sound)


@pytest.mark.parametrize(("milliseconds", "n_steps"), [(1, 1), (39, 1), (40, 2)])
def test_a_sound_shorter_than_two_steps_of_whisper_has_one(checkpoint_folders, milliseconds, n_steps):
    """A step is 20 ms. The padding behind the sound, to the network's window, has no steps."""
    encoder = load_backbone("waveform", n_frames=1, weights=str(checkpoint_folders["whisper"])).encode

    steps, _middles = encoder.steps(noise(milliseconds / 1000))

    assert len(steps) == n_steps


@pytest.mark.parametrize("model_type", TYPES)
def test_a_clip_has_the_mean_of_its_parts_and_the_same_bytes_in_any_batch(checkpoint_folders, model_type):
    """A clip has a part for each of its frames, here three."""
    backbone = load_backbone("waveform", n_frames=3, weights=str(checkpoint_folders[model_type]))
    clip = in_three_parts(noise(seconds=3.6))
    another_clip = clip[::-1].copy()

    alone = backbone.encode([clip])
    in_a_batch = backbone.encode([another_clip, clip])

    frames = alone["frames"][0]
    assert frames.shape == backbone.outputs[0].shape
    assert np.array_equal(frames, in_a_batch["frames"][1])
    assert np.allclose(alone["pooled"][0], frames.mean(axis=0), atol=NETWORK_ROUNDING)


@pytest.mark.parametrize("model_type", [model_type for model_type in TYPES if model_type != "clap"])
def test_a_part_has_the_mean_of_the_steps_whose_middles_lie_in_it(checkpoint_folders, model_type):
    """The second of three parts is looked at. One step of CLAP is a whole window, longer than a part."""
    backbone = load_backbone("waveform", n_frames=3, weights=str(checkpoint_folders[model_type]))
    sound = noise(seconds=3.6)

    frames = backbone.encode([in_three_parts(sound)])["frames"][0]

    steps, middles = backbone.encode.steps(sound)
    length_of_part = len(sound) // 3
    is_in_second_part = (middles >= length_of_part) & (middles < 2 * length_of_part)
    expected = steps[is_in_second_part].mean(axis=0)
    assert np.allclose(frames[1], expected, atol=NETWORK_ROUNDING)


def in_three_parts(sound):
    """Cut a sound into three parts [3, L] of one clip, each with NaN after its end."""
    parts = [np.pad(part, (0, 100), constant_values=np.nan) for part in np.split(sound, 3)]
    return np.stack(parts)


def test_a_part_shorter_than_a_step_gets_the_nearest_step(checkpoint_folders):
    """The second part is one sample long, and no step (20 ms) has its middle there: it gets the last step."""
    backbone = load_backbone("waveform", n_frames=2, weights=str(checkpoint_folders["hubert"]))
    parts = np.full((2, 16_000), np.nan, np.float32)  # NaN after the end of a part
    parts[0] = noise(seconds=1.0)
    parts[1, 0] = 0.0

    _first, second = backbone.encode([parts])["frames"][0]

    whole_sound = parts[np.isfinite(parts)]
    steps, _middles = backbone.encode.steps(whole_sound)
    assert np.array_equal(second, steps[-1])


def test_a_network_of_texts_is_refused_with_the_types_that_hear(tmp_path):
    """BERT reads texts and hears nothing. The error names its type, and the types that can be loaded."""
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2)
    BertModel(config).save_pretrained(tmp_path)

    with pytest.raises(BackboneError, match="'bert' is not one that hears here; there is wav2vec2"):
        load_backbone("waveform", weights=str(tmp_path))


@pytest.mark.parametrize(
    ("model_type", "change", "message"),
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
def test_an_extractor_configuration_that_does_not_fit_the_network_is_refused(
    tmp_path, model_type, change, message
):
    """The file beside the weights says how sound is prepared. One field is changed, or the file removed."""
    folder = tiny_sound_checkpoint(model_type, tmp_path / "network")
    file = folder / waveform.EXTRACTOR
    if change is None:
        file.unlink()
    else:
        configuration = json.loads(file.read_text())
        file.write_text(json.dumps(configuration | change), encoding="utf-8")

    with pytest.raises(BackboneError, match=message):
        load_backbone("waveform", weights=str(folder))


def test_weights_must_be_named():
    """The backbone `waveform` is of any network of sound, so there are no weights by default."""
    with pytest.raises(BackboneError, match="give --weights"):
        load_backbone("waveform")


def test_windows_are_encoded_fewer_at_once_when_memory_runs_out(checkpoint_folders, monkeypatch):
    """Nine seconds are five windows of CLAP (2 s each at most). Memory for two at once is pretended."""
    encoder = load_backbone("waveform", n_frames=4, weights=str(checkpoint_folders["clap"])).encode
    sound = noise(seconds=9.0)
    expected, _ = encoder.steps(sound)
    forward = encoder._forward

    def run_out_of_memory_above_two_windows(windows):
        if len(windows) > 2:
            raise torch.OutOfMemoryError
        return forward(windows)

    monkeypatch.setattr("obygaze_features.backbones.runner.PAUSE_S", 0)  # before it tries again
    monkeypatch.setattr(encoder, "_forward", run_out_of_memory_above_two_windows)
    steps, _ = encoder.steps(sound)

    np.testing.assert_allclose(steps, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
