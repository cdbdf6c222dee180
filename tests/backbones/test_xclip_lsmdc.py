"""The port of the LSMDC X-CLIP gives what the original gave, from the original's files and no others."""

import json

import numpy as np
import pytest
import torch

from obygaze_features.backbones import load_backbone
from obygaze_features.backbones.weights import find_weights
from obygaze_features.backbones.xclip_lsmdc import load
from obygaze_features.backbones.xclip_lsmdc_checkpoint import LsmdcFormat
from obygaze_features.errors import BackboneError
from obygaze_studies.lsmdc.step import similarities
from tests.tiny_checkpoints import tiny_lsmdc

TOLERANCE = 1e-5  # the wrong epsilon in the temporal layer norms would be 1.8e-5 off


@pytest.fixture(scope="module")
def oracle(shared_data):
    return shared_data / "oracles" / "xclip_lsmdc_oracle"


@pytest.fixture(scope="module")
def network(oracle):
    return load(find_weights(oracle / "weights.safetensors"))[0]


@pytest.fixture(scope="module")
def expected(oracle):
    return np.load(oracle / "expected_fp32.npz")


@pytest.fixture(scope="module")
def found(oracle, network):
    """Every output on the oracle's clips, some of them shorter than 12 frames."""
    inputs = np.load(oracle / "inputs.npz")
    mask = torch.from_numpy(inputs["video_mask"]).bool()
    frames = torch.from_numpy(inputs["frames_u8"]).float() / 255
    mean, std = (torch.from_numpy(inputs[key]).float().reshape(3, 1, 1) for key in ("mean", "std"))
    pixels = torch.where(mask[:, :, None, None, None], (frames - mean) / std, 0.0)
    with torch.inference_mode():
        visual = network.encode_frames(pixels)
        temporal = network.relate_frames(visual, mask)
        video = network.video_vector(temporal, mask)
        sentences, words = network.encode_text(torch.from_numpy(inputs["input_ids"]).long())
        scores = similarities(network, sentences=sentences, words=words, frames=visual, videos=video)
    return {
        "visual_output": visual,
        "temporal_output": temporal,
        "temporal_transformer_out": temporal - visual,
        "video_embedding": video,
        "sentence_output": sentences[:, None],
        "word_features_raw": words,
        "logits": scores.pop("logits"),
        **{f"logits_{name}": score for name, score in scores.items()},
    }


@pytest.mark.parametrize(
    "name",
    [
        "visual_output",
        "temporal_transformer_out",
        "temporal_output",
        "video_embedding",
        "sentence_output",
        "word_features_raw",
        "logits_video_sentence",
        "logits_video_word",
        "logits_sentence_frame",
        "logits_frame_word",
        "logits",
    ],
)
def test_the_port_is_the_original(found, expected, name):
    assert found[name].shape == expected[name].shape
    assert np.abs(found[name].numpy() - expected[name]).max() <= TOLERANCE


def test_the_loss_of_the_scores_is_the_originals(found, expected):
    logits, pairs = found["logits"], torch.arange(4)
    loss = sum(torch.nn.functional.cross_entropy(scores, pairs) for scores in (logits, logits.T)) / 2
    assert float(loss) == pytest.approx(float(expected["loss"]), abs=TOLERANCE)


def test_the_backbone_is_the_original_on_a_whole_clip(oracle, expected):
    inputs = np.load(oracle / "inputs.npz")
    whole = inputs["video_mask"].astype(bool).all(axis=1)
    backbone = load_backbone("xclip-lsmdc", weights=str(oracle / "weights.safetensors"))
    result = backbone.encode(inputs["frames_u8"][whole].transpose(0, 1, 3, 4, 2))
    assert whole.sum() == 1
    assert np.abs(result["frames"] - expected["temporal_output"][whole]).max() <= TOLERANCE
    assert np.abs(result["pooled"] - expected["video_embedding"][whole]).max() <= TOLERANCE
    assert np.abs(result["tokens"] - expected["visual_output"][whole]).max() <= 2e-3  # float16


def test_the_wrong_epsilon_would_be_seen(oracle, network, found, expected):
    inputs = np.load(oracle / "inputs.npz")
    norms = [m for m in network.temporal.modules() if isinstance(m, torch.nn.LayerNorm)]
    assert {norm.eps for norm in norms} == {1e-12}
    for norm in norms:
        norm.eps = 1e-5
    try:
        mask = torch.from_numpy(inputs["video_mask"]).bool()
        with torch.inference_mode():
            wrong = network.relate_frames(found["visual_output"], mask).numpy()
    finally:
        for norm in norms:
            norm.eps = 1e-12
    assert np.abs(wrong - expected["temporal_output"]).max() > TOLERANCE


def test_the_real_checkpoint_has_these_names_and_shapes(oracle):
    keys = json.loads((oracle / "state_dict_keys_vitb16_full.json").read_text())
    assert {tensor.original: list(tensor.shape) for tensor in LsmdcFormat().tensors()} == {
        name: tensor["shape"] for name, tensor in keys.items()
    }
    assert len(keys) == 359


def save(path, tensors):
    torch.save(tensors, path)
    return str(path)


def test_the_prefix_of_distributed_training_is_stripped(tmp_path, clips):
    prefixed = {f"module.{key}": value for key, value in tiny_lsmdc().items()}
    batch = clips[:1, :12]
    plain, stripped = (
        load_backbone("xclip-lsmdc", weights=save(tmp_path / f"{i}.bin", tensors)).encode(batch)["pooled"]
        for i, tensors in enumerate((tiny_lsmdc(), prefixed))
    )
    assert np.array_equal(plain, stripped)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda t: t.pop("clip.visual.proj"), "1 tensors missing: clip.visual.proj"),
        (lambda t: t.pop("transformerClip.resblocks.0.ln_1.bias"), "1 tensors missing: transformerClip"),
        (lambda t: t.pop("clip.ln_final.bias"), "1 tensors missing: clip.ln_final.bias"),
        (lambda t: t.update(extra=torch.zeros(1)), "has no place for: extra"),
        (
            lambda t: t.update(word_mat_weight=torch.zeros(3, 3)),
            r"of another shape: word_mat_weight \[3, 3\], not",
        ),
        (lambda t: t.update({"clip.visual.proj": torch.zeros(3)}), "of another shape: clip.visual.proj"),
        (
            lambda t: t.update({"clip.logit_scale": torch.tensor(1)}),
            "holds torch.int64, expected floating point",
        ),
    ],
)
def test_a_checkpoint_that_is_not_exactly_the_originals_is_refused(tmp_path, edit, words):
    tensors = tiny_lsmdc()
    edit(tensors)
    with pytest.raises(BackboneError, match=words):
        load_backbone("xclip-lsmdc", weights=save(tmp_path / "net.bin", tensors))


def test_a_file_that_is_no_state_dict_is_refused(tmp_path):
    with pytest.raises(BackboneError, match="expected a state dict"):
        load_backbone("xclip-lsmdc", weights=save(tmp_path / "net.bin", {"epoch": 3}))


def test_a_folder_of_the_hub_and_no_weights_at_all_are_refused(checkpoints):
    with pytest.raises(BackboneError, match="loads one file of the original's format"):
        load_backbone("xclip-lsmdc", weights=str(checkpoints["clip"]))
    with pytest.raises(BackboneError, match="has no public weights"):
        load_backbone("xclip-lsmdc")
