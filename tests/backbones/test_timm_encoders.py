"""Networks of timm, and networks of transformers that are made of its layers; run where timm is installed."""

import json

import numpy as np
import pytest

from obygaze_features.backbones import load_backbone
from tests.lazy_import import cpu, lazy_import, without_gradients
from tests.rounding import assert_close, network_rounding

timm = pytest.importorskip("timm", reason="needs obygaze[timm]", exc_type=ImportError)
torch = lazy_import("torch")
transformers = lazy_import("transformers")
save_file = lazy_import("safetensors.torch", "save_file")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")
untrained = lazy_import("obygaze_features.backbones.checkpoint", "untrained")
NETWORK_ROUNDING = network_rounding(3 * 2 * 16 * 16)
FRAMES = np.random.default_rng(3).integers(0, 256, (4, 53, 87, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep passes of the check in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def vit_of_timm(tmp_path):
    """A tiny network of timm and its folder, which is as timm's repositories: own names, no `model_type`."""
    network = untrained(lambda: timm.create_model("test_vit", num_classes=0), 0)
    folder = tmp_path / "vit"
    folder.mkdir()
    save_file(network.state_dict(), folder / "model.safetensors")
    prepared = {"input_size": [3, 160, 160], "crop_pct": 0.95, "interpolation": "bicubic",
                "crop_mode": "center", "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.2, 0.3], "num_classes": 0,
                "fixed_input_size": True}  # fmt: skip
    config = {"architecture": "test_vit", "num_classes": 0, "num_features": 64, "pretrained_cfg": prepared}
    (folder / "config.json").write_text(json.dumps(config))
    return folder, network


@without_gradients
def test_the_vectors_of_a_repository_of_timm_are_those_of_timm(vit_of_timm):
    """The folder has a tiny vision transformer of timm, with a configuration as timm's repositories have it.

    Transformers reads it by its class TimmWrapper. Four frames of noise make one clip.
    """
    folder, network = vit_of_timm
    backbone = load_backbone("image", n_frames=4, weights=str(folder), compute=cpu())

    vectors_of_frames = backbone.encode(clip_of_four_frames(backbone))["frames"][0]

    expected = network(pixels_by_processor(folder))
    assert_close(vectors_of_frames, expected, NETWORK_ROUNDING)
    assert backbone.provenance["architecture"]["type"] == "timm_wrapper"


def clip_of_four_frames(backbone):
    """Prepare FRAMES as one clip for a backbone."""
    return np.array([[backbone.prepare(frame) for frame in FRAMES]])


def pixels_by_processor(folder):
    """Prepare FRAMES by transformers' processor beside the weights: [4, 3, h, w]."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder)
    return torch.cat([processor(frame, return_tensors="pt")["pixel_values"] for frame in FRAMES])


def save_classifier(architecture, folder):
    """Save a tiny classifier of timm, of the classes "a kiss", "a barbell" and "a stove", and return it."""
    network = untrained(lambda: timm.create_model(architecture, num_classes=3), 0)
    save_file(network.state_dict(), folder / "model.safetensors")
    prepared = {"input_size": [3, 160, 160], "interpolation": "bicubic", "crop_pct": 0.95,
                "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.2, 0.3], "fixed_input_size": True}  # fmt: skip
    config = {"architecture": architecture, "num_classes": 3, "num_features": 64,
              "label_names": ["a kiss", "a barbell", "a stove"], "pretrained_cfg": prepared}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return network


@without_gradients
@pytest.mark.parametrize("architecture", ["test_vit", "test_resnet", "test_convnext", "test_efficientnet"])
def test_answers_of_a_classifier_of_timm_are_its_probabilities(tmp_path, architecture):
    """They are averaged over the four frames of a clip. The tiny classifier has three classes."""
    network = save_classifier(architecture, tmp_path)
    backbone = load_backbone("image", n_frames=4, weights=str(tmp_path), answers=True, compute=cpu())

    answers = backbone.encode(clip_of_four_frames(backbone))["answers/pooled"][0]

    probabilities_of_frames = network(pixels_by_processor(tmp_path)).softmax(dim=-1)
    expected = probabilities_of_frames.mean(dim=0).numpy()
    assert np.abs(answers - expected).max() <= 1e-6
    (group_of_answers,) = backbone.side_groups
    names = group_of_answers.provenance["architecture"]["features"]
    assert names == ["a kiss", "a barbell", "a stove"]


@without_gradients
@pytest.mark.parametrize("architecture", ["test_vit", "test_resnet", "test_convnext", "test_efficientnet"])
def test_vectors_of_a_classifier_of_timm_are_the_same_with_answers_as_without(tmp_path, architecture):
    """Answers, the probabilities of the classifier's three classes, are additional outputs."""
    save_classifier(architecture, tmp_path)
    without_answers = load_backbone("image", n_frames=4, weights=str(tmp_path), compute=cpu())
    with_answers = load_backbone("image", n_frames=4, weights=str(tmp_path), answers=True, compute=cpu())
    clip = clip_of_four_frames(without_answers)

    arrays = without_answers.encode(clip)
    arrays_beside_answers = with_answers.encode(clip)

    for name, array in arrays.items():
        assert np.array_equal(arrays_beside_answers[name], array)


TINY_TRANSFORMER = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
}
VIDEO = TINY_TRANSFORMER | {
    "vision_config": {
        "model_type": "timm_wrapper",
        "architecture": "vit_pe_core_tiny_patch16_384",
        "do_pooling": True,
        "num_classes": 32,
        "model_args": {"img_size": 64, "depth": 1},
    }
}
SOUND = TINY_TRANSFORMER | {
    "dac_config": {"model_type": "dac", "downsampling_ratios": [2, 8, 10, 12], "encoder_hidden_size": 4,
                   "codebook_dim": 8, "decoder_hidden_size": 16, "n_codebooks": 1}
}  # fmt: skip
TEXT = {"model_type": "modernbert", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
         "num_attention_heads": 2, "vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
         "cls_token_id": 1, "sep_token_id": 2}  # fmt: skip
SOUND_AND_VIDEO = {
    "text_config": TEXT,
    "audio_video_config": TINY_TRANSFORMER
    | {
        "audio_config": {"model_type": "pe_audio_encoder", **SOUND},
        "video_config": {"model_type": "pe_video_encoder", **VIDEO},
    },
}


def save_perception_encoder(kind, fields, folder):
    """Write a tiny Perception Encoder with the processors of pictures and of sound beside it."""
    config = transformers.AutoConfig.for_model(kind, **fields)
    network = untrained(lambda: transformers.AutoModel.from_config(config), 0)
    with quiet():
        network.save_pretrained(folder)
        transformers.PeAudioFeatureExtractor().save_pretrained(folder)
    settings = {"video_processor_type": "PeVideoVideoProcessor", "do_resize": True,
                "size": {"height": 64, "width": 64}}  # fmt: skip
    (folder / "video_preprocessor_config.json").write_text(json.dumps(settings))
    return network


def save_encoder_of_videos(folder):
    """Write a tiny Perception Encoder of videos alone, and return it."""
    return save_perception_encoder("pe_video_encoder", VIDEO, folder)


def save_encoder_of_sound_and_videos(folder):
    """Write a tiny Perception Encoder of both, and return its part for videos."""
    network = save_perception_encoder("pe_audio_video", SOUND_AND_VIDEO, folder)
    return network.video_model.video_encoder


@without_gradients
@pytest.mark.parametrize("save_encoder", [save_encoder_of_videos, save_encoder_of_sound_and_videos])
def test_a_perception_encoder_of_videos_gives_the_vectors_of_transformers(tmp_path, save_encoder):
    """The network is one of videos alone, or one of sound and videos, whose part for videos is then used.

    The vectors of a clip of four frames, and of each of them, are those that transformers gives, with its own
    processor of videos.
    """
    video_encoder = save_encoder(tmp_path)
    backbone = load_backbone("video", n_frames=4, weights=str(tmp_path), compute=cpu())

    arrays = backbone.encode(clip_of_four_frames(backbone))

    processor = transformers.AutoVideoProcessor.from_pretrained(tmp_path)
    video = torch.from_numpy(FRAMES).permute(0, 3, 1, 2)
    inputs = processor(videos=[video], do_sample_frames=False, return_tensors="pt")
    expected = video_encoder(pixel_values_videos=inputs["pixel_values_videos"])
    assert_close(arrays["pooled"], expected.pooler_output, NETWORK_ROUNDING)
    assert_close(arrays["frames"], expected.last_hidden_state, NETWORK_ROUNDING)


@without_gradients
def test_a_perception_encoder_of_sound_gives_the_steps_of_transformers(tmp_path):
    """The network takes 48 000 samples a second, and makes a vector, a step, of each 1920 of them.

    So a second of noise has 25 steps, each with the place of its middle.
    """
    network = save_perception_encoder("pe_audio_video", SOUND_AND_VIDEO, tmp_path)
    encoder = load_backbone("waveform", n_frames=2, weights=str(tmp_path), compute=cpu()).encode
    assert encoder.rate == 48_000
    second_of_noise = np.random.default_rng(0).normal(0, 0.1, 48_000).astype(np.float32)

    steps, middles = encoder.steps(second_of_noise)

    extractor = transformers.PeAudioFeatureExtractor.from_pretrained(tmp_path)
    inputs = extractor(second_of_noise, sampling_rate=48_000, return_tensors="pt")
    expected = network.audio_model.audio_encoder(**inputs).last_hidden_state[0]
    assert_close(steps, expected, NETWORK_ROUNDING)
    assert len(middles) == 48_000 / 1920
