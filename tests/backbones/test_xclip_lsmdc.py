"""Our LSMDC X-CLIP gives what its authors' own code gave, from their files and no others.

The oracle is a tiny network of theirs: its weights, inputs and outputs.
"""

import json

import numpy as np
import pytest

from obygaze_features.backbones import load_backbone
from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import BackboneError
from tests.later import later
from tests.rounding import assert_close, network_rounding, rounding
from tests.tiny_checkpoints import tiny_lsmdc

torch = later("torch")
load = later("obygaze_features.backbones.xclip_lsmdc", "load")
LsmdcFormat = later("obygaze_features.backbones.xclip_lsmdc_network", "LsmdcFormat")
similarities = later("obygaze_studies.lsmdc.step", "similarities")
NETWORK_ROUNDING = network_rounding(3 * 16 * 16, layers=4, width=128)


@pytest.fixture(scope="module")
def oracle(shared_data):
    return shared_data / "oracles" / "xclip_lsmdc_oracle"


@pytest.fixture(scope="module")
def network(oracle):
    return load(find_weights(oracle / "weights.safetensors"))[0]


@pytest.fixture(scope="module")
def outputs_of_original(oracle):
    """What the authors' code gave: name -> array."""
    return np.load(oracle / "expected_fp32.npz")


@pytest.fixture(scope="module")
def outputs(oracle, network):
    """What our network gives of the oracle's clips, some shorter than 12 frames: name -> values."""
    inputs = np.load(oracle / "inputs.npz")
    mask = torch.from_numpy(inputs["video_mask"]).bool()
    frames = torch.from_numpy(inputs["frames_u8"]).float() / 255
    mean = torch.from_numpy(inputs["mean"]).float().reshape(3, 1, 1)
    std = torch.from_numpy(inputs["std"]).float().reshape(3, 1, 1)
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


def test_every_output_is_that_of_the_original(outputs, outputs_of_original):
    for name, values in outputs.items():
        assert values.shape == outputs_of_original[name].shape
        assert_close(values, outputs_of_original[name], NETWORK_ROUNDING)


def test_the_temporal_layer_norms_have_the_originals_epsilon(network):
    """Outputs don't show it: with CLIP's own, 1e-5, they differ by less than rounding."""
    for name, part in network.named_modules():
        if isinstance(part, torch.nn.LayerNorm):
            assert part.eps == (1e-12 if name.startswith("temporal") else 1e-5)


def test_the_loss_of_the_scores_is_the_originals(outputs, outputs_of_original):
    """It is the mean of two cross-entropies: of texts given videos, and of videos given texts."""
    logits = outputs["logits"]
    own_text = torch.arange(4)  # video k belongs to text k
    cross_entropy = torch.nn.functional.cross_entropy
    loss = (cross_entropy(logits, own_text) + cross_entropy(logits.T, own_text)) / 2
    assert float(loss) == pytest.approx(float(outputs_of_original["loss"]), rel=NETWORK_ROUNDING)


def test_the_backbone_gives_the_original_outputs_of_a_clip_of_12_frames(oracle, outputs_of_original):
    """One clip of the oracle has all 12; the others are shorter."""
    inputs = np.load(oracle / "inputs.npz")
    whole = inputs["video_mask"].astype(bool).all(axis=1)
    backbone = load_backbone("xclip-lsmdc", weights=str(oracle / "weights.safetensors"))
    result = backbone.encode(inputs["frames_u8"][whole].transpose(0, 1, 3, 4, 2))

    assert whole.sum() == 1
    assert_close(result["frames"], outputs_of_original["temporal_output"][whole], NETWORK_ROUNDING)
    assert_close(result["pooled"], outputs_of_original["video_embedding"][whole], NETWORK_ROUNDING)
    assert_close(result["tokens"], outputs_of_original["visual_output"][whole], rounding("float16", 1))


def test_the_real_checkpoint_has_these_names_and_shapes(oracle):
    """Their names and shapes are kept in a file; the weights are not."""
    keys = json.loads((oracle / "state_dict_keys_vitb16_full.json").read_text())
    assert LsmdcFormat().shapes() == {name: tuple(tensor["shape"]) for name, tensor in keys.items()}
    assert len(keys) == 359


def save(path, tensors):
    torch.save(tensors, path)
    return str(path)


def test_the_prefix_of_distributed_training_is_stripped(tmp_path, clips):
    """PyTorch's DistributedDataParallel saves names with "module." in front."""
    prefixed = {f"module.{key}": value for key, value in tiny_lsmdc().items()}
    plain = load_backbone("xclip-lsmdc", weights=save(tmp_path / "plain.bin", tiny_lsmdc()))
    stripped = load_backbone("xclip-lsmdc", weights=save(tmp_path / "prefixed.bin", prefixed))
    batch = clips[:1, :12]
    assert np.array_equal(plain.encode(batch)["pooled"], stripped.encode(batch)["pooled"])


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (lambda t: t.pop("clip.visual.proj"), r"missing: clip\.visual\.proj"),
        (lambda t: t.pop("transformerClip.resblocks.0.ln_1.bias"), "missing: transformerClip"),
        (lambda t: t.pop("clip.ln_final.bias"), r"missing: clip\.ln_final\.bias"),
        (lambda t: t.update(extra=torch.zeros(1)), "place for: extra"),
        (lambda t: t.update(word_mat_weight=torch.zeros(3, 3)), r"shape: word_mat_weight \[3, 3\]"),
        (lambda t: t.update({"clip.visual.proj": torch.zeros(3)}), r"shape: clip\.visual\.proj"),
        (lambda t: t.update({"clip.logit_scale": torch.tensor(1)}), r"clip\.logit_scale is int64"),
        (lambda t: (t.clear(), t.update(epoch=3)), "state dict"),
        (lambda t: t.update(frame_logit_weight=torch.zeros(10**7, 0)), "another shape: frame_logit_weight"),
        (lambda t: t.update({f"clip.transformer.resblocks.{'9' * 5000}.ln_1.bias": torch.ones(1)}), "9999"),
        (lambda t: t.update({"clip.visual.conv1.weight": torch.ones(64, 3, 0, 0)}), "heads"),
        (lambda t: t.update({"clip.visual.proj": torch.ones(64, 8)}), "heads"),
    ],
)
def test_a_checkpoint_that_differs_from_the_original_is_refused(tmp_path, edit, place):
    tensors = tiny_lsmdc()
    edit(tensors)
    with pytest.raises(BackboneError, match=place):
        load_backbone("xclip-lsmdc", weights=save(tmp_path / "net.bin", tensors))


def test_weights_of_a_clip_are_refused(checkpoints):
    with pytest.raises(BackboneError, match=r"missing: clip\.positional_embedding"):
        load_backbone("xclip-lsmdc", weights=str(checkpoints["clip"]))


def test_weights_must_be_given():
    with pytest.raises(BackboneError, match="give --weights"):
        load_backbone("xclip-lsmdc")
