"""Our LSMDC X-CLIP gives what its authors' own code gave, from their files and no others.

The oracle is a tiny network of theirs: its weights, inputs and outputs.
"""

import json

import numpy as np
import pytest

from obygaze_features.backbones import load_backbone
from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import BackboneError
from tests.lazy_import import lazy_import
from tests.rounding import assert_close, network_rounding, rounding
from tests.tiny_checkpoints import tiny_lsmdc

torch = lazy_import("torch")
load = lazy_import("obygaze_features.backbones.xclip_lsmdc", "load")
LsmdcFormat = lazy_import("obygaze_features.backbones.xclip_lsmdc_network", "LsmdcFormat")
similarities = lazy_import("obygaze_studies.lsmdc.step", "similarities")
NETWORK_ROUNDING = network_rounding(3 * 16 * 16, layers=4, width=128)


@pytest.fixture(scope="module")
def oracle(shared_data):
    """The folder of a tiny network of the authors' code: its weights, inputs and outputs."""
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
    """The authors' own code was run once, on the same weights and clips; its arrays are kept by name."""
    for name, values in outputs.items():
        expected = outputs_of_original[name]
        assert values.shape == expected.shape
        assert_close(values, expected, NETWORK_ROUNDING)


def test_the_temporal_layer_norms_have_the_originals_epsilon(network):
    """It is 1e-12, and 1e-5 in CLIP's own norms. Outputs don't show it: they differ by less than rounding."""
    for name, module in network.named_modules():
        if isinstance(module, torch.nn.LayerNorm):
            expected = 1e-12 if name.startswith("temporal") else 1e-5
            assert module.eps == expected


def test_the_loss_of_the_scores_is_the_originals(outputs, outputs_of_original):
    """It is the mean of two cross-entropies: of texts given videos, and of videos given texts.

    There are four of each, and video k belongs to text k.
    """
    logits = outputs["logits"]
    own = torch.arange(4)

    loss_of_texts = torch.nn.functional.cross_entropy(logits, own)
    loss_of_videos = torch.nn.functional.cross_entropy(logits.T, own)
    loss = (loss_of_texts + loss_of_videos) / 2

    assert float(loss) == pytest.approx(float(outputs_of_original["loss"]), rel=NETWORK_ROUNDING)


def test_the_backbone_gives_the_original_outputs_of_a_clip_of_12_frames(oracle, outputs_of_original):
    """The authors' code was run once on some clips with the same weights, and its outputs are kept by name.

    One of the clips has all 12 frames, as our backbone needs them; the others are shorter and not used here.
    Tokens are stored as float16, hence with the rounding of that type.
    """
    inputs = np.load(oracle / "inputs.npz")
    has_12_frames = inputs["video_mask"].astype(bool).all(axis=1)
    assert has_12_frames.sum() == 1
    frames = inputs["frames_u8"][has_12_frames].transpose(0, 1, 3, 4, 2)  # with the channels last
    backbone = load_backbone("xclip-lsmdc", weights=str(oracle / "weights.safetensors"))

    arrays = backbone.encode(frames)

    def original(name):
        return outputs_of_original[name][has_12_frames]

    assert_close(arrays["frames"], original("temporal_output"), NETWORK_ROUNDING)
    assert_close(arrays["pooled"], original("video_embedding"), NETWORK_ROUNDING)
    assert_close(arrays["tokens"], original("visual_output"), rounding("float16", 1))


def test_the_real_checkpoint_has_these_names_and_shapes(oracle):
    """The names and shapes of the 359 tensors of the authors' checkpoint are kept; its weights are not."""
    tensors = json.loads((oracle / "state_dict_keys_vitb16_full.json").read_text())
    shapes_of_checkpoint = {name: tuple(tensor["shape"]) for name, tensor in tensors.items()}

    assert LsmdcFormat().shapes() == shapes_of_checkpoint
    assert len(shapes_of_checkpoint) == 359


def save(path, tensors):
    torch.save(tensors, path)
    return str(path)


def test_the_prefix_of_distributed_training_is_stripped(tmp_path, two_clips_of_32_frames):
    """PyTorch's DistributedDataParallel saves names with "module." in front."""
    tensors = tiny_lsmdc()
    tensors_with_prefix = {f"module.{name}": tensor for name, tensor in tensors.items()}
    plain = load_backbone("xclip-lsmdc", weights=save(tmp_path / "plain.bin", tensors))
    prefixed = load_backbone("xclip-lsmdc", weights=save(tmp_path / "prefixed.bin", tensors_with_prefix))
    one_clip = two_clips_of_32_frames[:1, :12]

    vector = plain.encode(one_clip)["pooled"]

    assert np.array_equal(prefixed.encode(one_clip)["pooled"], vector)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ("clip.visual.proj", r"missing: clip\.visual\.proj"),
        ("transformerClip.resblocks.0.ln_1.bias", "missing: transformerClip"),
        ("clip.ln_final.bias", r"missing: clip\.ln_final\.bias"),
    ],
)
def test_a_checkpoint_that_lacks_a_tensor_is_refused(tmp_path, tensor, message):
    """One tensor of a good checkpoint is removed, and the message names it."""
    tensors = tiny_lsmdc()
    del tensors[tensor]
    weights = save(tmp_path / "net.bin", tensors)

    with pytest.raises(BackboneError, match=message):
        load_backbone("xclip-lsmdc", weights=weights)


def zeros(*shape):
    """Make a tensor of zeros once torch is there, which is not when tests are collected."""
    return lambda: torch.zeros(*shape)


LAYER_OF_A_HUGE_NUMBER = f"clip.transformer.resblocks.{'9' * 5000}.ln_1.bias"


@pytest.mark.parametrize(
    ("tensor", "make_values", "message"),
    [
        ("extra", zeros(1), "place for: extra"),
        ("word_mat_weight", zeros(3, 3), r"shape: word_mat_weight \[3, 3\]"),
        ("clip.visual.proj", zeros(3), r"shape: clip\.visual\.proj"),
        ("clip.logit_scale", lambda: torch.tensor(1), r"clip\.logit_scale is int64"),
        ("frame_logit_weight", zeros(10**7, 0), "another shape: frame_logit_weight"),
        (LAYER_OF_A_HUGE_NUMBER, zeros(1), "9999"),
        ("clip.visual.conv1.weight", zeros(64, 3, 0, 0), "heads"),
        ("clip.visual.proj", zeros(64, 8), "heads"),
    ],
    ids=[
        "a tensor too many",
        "another square",
        "too few axes",
        "an integer",
        "many rows of no numbers",
        "a layer of a huge number",
        "patches of no pixels",
        "a width of which no number of heads follows",
    ],
)
def test_a_checkpoint_with_a_tensor_that_does_not_fit_is_refused(tmp_path, tensor, make_values, message):
    """One tensor of a good checkpoint is added, or replaced by one of another shape or type.

    The message names the tensor. Some tensors show the sizes of the network, such as the width of its vectors
    and the side of a patch. From wrong ones no network follows: patches of no pixels, or a width that does
    not divide into attention heads of 64. Then the message says that these are no CLIP with such heads.
    """
    tensors = tiny_lsmdc()
    tensors[tensor] = make_values()
    weights = save(tmp_path / "net.bin", tensors)

    with pytest.raises(BackboneError, match=message):
        load_backbone("xclip-lsmdc", weights=weights)


def test_a_file_of_numbers_that_are_no_tensors_is_no_checkpoint(tmp_path):
    """It says nothing but that a training had three epochs; tensors by name are called a state dict."""
    weights = save(tmp_path / "net.bin", {"epoch": 3})

    with pytest.raises(BackboneError, match="state dict"):
        load_backbone("xclip-lsmdc", weights=weights)


def test_weights_of_a_plain_clip_network_are_refused(tiny_checkpoints):
    """The backbone `xclip-lsmdc` is an X-CLIP that has a CLIP, the network of pictures and texts, in itself.

    In its weights the names of CLIP's tensors begin with "clip.", as in clip.positional_embedding. No name in
    a checkpoint of CLIP alone begins so: the message names a tensor that is missing.
    """
    with pytest.raises(BackboneError, match=r"missing: clip\.positional_embedding"):
        load_backbone("xclip-lsmdc", weights=str(tiny_checkpoints["clip"]))


def test_weights_must_be_given():
    """The backbone has no weights by default."""
    with pytest.raises(BackboneError, match="give --weights"):
        load_backbone("xclip-lsmdc")
