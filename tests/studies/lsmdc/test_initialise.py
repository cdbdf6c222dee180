"""Step 0: every tensor of the network is CLIP's or an identity (check 1 of the specification)."""

import json

import pytest

from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import BackboneError
from obygaze_studies.errors import TrainError
from tests.lazy_import import lazy_import

from .corpus import write_in_openai_format

torch = lazy_import("torch")
load_file = lazy_import("safetensors.torch", "load_file")
is_half = lazy_import("obygaze_studies.lsmdc.execution", "is_half")
plan = lazy_import("obygaze_studies.lsmdc.plan")
rules = lazy_import("obygaze_studies.lsmdc.step")

GROUPS = ((0.5, 0.2), (1.0, 0.2), (0.5, 0.0), (1.0, 0.0))
"""Rate and decay of the original's groups, at rate 1 and half of it for CLIP."""

TINY = {"temporal_layers": 2, "max_frames": 8, "max_words": 12}


@pytest.fixture(scope="module")
def tensors(oracle):
    clip = plan.load_clip(find_weights(oracle.folder / "clip.safetensors"))
    return plan.initial_tensors("clip", clip, **TINY)


def test_every_initial_tensor_is_clips_or_an_identity(oracle, tensors):
    """The original copies each tensor from CLIP, or starts from an identity matrix. The oracle says which."""
    clip = oracle.load("clip")
    assert tensors.keys() == oracle.tensors.keys()
    for name, facts in oracle.tensors.items():
        source = facts["initial"]  # "identity", or "clip: " and the name of a tensor of CLIP
        if source == "identity":
            expected = torch.eye(facts["shape"][0])
        else:
            expected = clip[source.removeprefix("clip: ")].float()
        assert torch.equal(tensors[name], expected), name


def test_groups_frozen_tensors_and_data_types_are_the_originals(oracle):
    """A tensor is in a group with its learning rate and decay, is trained or frozen, and has 32 or 16 bits.

    The oracle says so of each tensor of the original's network. The rate is 1 here, and half of it for the
    tensors of CLIP.
    """
    for name, facts in oracle.tensors.items():
        expected_group = GROUPS[facts["group"]]
        has_16_bits = facts["dtype_original"] == "float16"

        assert rules.group_of(name, rate=1.0, clip_scale=0.5) == expected_group, name
        assert rules.is_trained(name) == facts["trained"], name
        assert is_half(name) == has_16_bits, name


def test_a_clip_in_the_hubs_format_is_loaded_under_the_names_of_openai(clip, tmp_path):
    """Queries, keys and values become one tensor, in this order. OpenAI's format is loaded as it is."""
    loaded = plan.load_clip(find_weights(clip))
    in_hubs_format = load_file(clip / "model.safetensors")
    assert torch.equal(loaded["visual.proj"], in_hubs_format["visual_projection.weight"].T)
    layer = "vision_model.encoder.layers.1.self_attn"
    parts = [in_hubs_format[f"{layer}.{part}_proj.weight"] for part in "qkv"]
    assert torch.equal(loaded["visual.transformer.resblocks.1.attn.in_proj_weight"], torch.cat(parts))

    path = write_in_openai_format(loaded, tmp_path / "clip.safetensors")
    from_openais_format = plan.load_clip(find_weights(path))
    assert from_openais_format.keys() == loaded.keys()
    assert all(torch.equal(from_openais_format[name], loaded[name]) for name in loaded)


def clip_with_vision_config(clip, folder, **vision):
    """Copy a CLIP, with these fields in the configuration of its vision network."""
    for path in clip.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    config = json.loads((clip / "config.json").read_text())
    config["vision_config"] |= vision
    (folder / "config.json").write_text(json.dumps(config))
    return find_weights(folder)


def test_a_clip_with_another_function_or_more_layers_than_its_weights_is_refused(clip, tmp_path):
    """The tiny CLIP has two layers, 0 and 1, and OpenAI's activation function; configurations differ."""
    with_another_function = clip_with_vision_config(clip, tmp_path, hidden_act="gelu")
    with pytest.raises(TrainError, match="hidden_act"):
        plan.load_clip(with_another_function)

    with_a_third_layer = clip_with_vision_config(clip, tmp_path, num_hidden_layers=3)
    with pytest.raises(BackboneError, match=r"tensors missing: vision.*layers\.2"):
        plan.load_clip(with_a_third_layer)


def test_random_weights_are_no_clip_to_train_from():
    with pytest.raises(TrainError, match="CLIP"):
        plan.load_clip(find_weights("random:0"))


def test_weights_in_a_pickle_are_refused_by_the_files_name(tmp_path):
    """PyTorch's files (.pt) begin with PK and hold a pickle: to read it may run a stranger's code."""
    pickle = tmp_path / "ViT-B-32.pt"
    pickle.write_bytes(b"PK")

    with pytest.raises(TrainError, match=r"\.pt"):
        plan.load_clip(find_weights(pickle))


@pytest.fixture
def tensors_of_clip(oracle):
    """The tensors of a CLIP whose text network has 3 blocks and 20 positions."""
    return plan.load_clip(find_weights(oracle.folder / "clip.safetensors"))


def test_a_clip_that_does_not_fit_the_temporal_transformer_is_refused(tensors_of_clip):
    """Usually it has 4 temporal layers and 32 words. Texts are projected to a width of 64."""
    with pytest.raises(TrainError, match="3 blocks"):
        plan.initial_tensors("clip", tensors_of_clip, max_frames=8, max_words=12)
    with pytest.raises(TrainError, match="20 positions"):
        plan.initial_tensors("clip", tensors_of_clip)
    of_another_width = tensors_of_clip | {"visual.proj": torch.zeros(128, 32)}
    with pytest.raises(TrainError, match="64"):
        plan.initial_tensors("clip", of_another_width, **TINY)
    without_projection = {name: value for name, value in tensors_of_clip.items() if name != "visual.proj"}
    with pytest.raises(BackboneError, match=r"missing: clip\.visual\.proj"):
        plan.initial_tensors("clip", without_projection, **TINY)
