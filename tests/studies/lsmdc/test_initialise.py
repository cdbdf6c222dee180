"""Step 0: every tensor of the network is CLIP's or an identity (check 1 of the specification)."""

import json

import pytest

from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import BackboneError
from obygaze_studies.errors import TrainError
from tests.later import later

from .corpus import write_in_openai_format

torch = later("torch")
load_file = later("safetensors.torch", "load_file")
is_half = later("obygaze_studies.lsmdc.execution", "is_half")
plan = later("obygaze_studies.lsmdc.plan")
rules = later("obygaze_studies.lsmdc.step")

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
    for name, facts in oracle.tensors.items():
        assert rules.group_of(name, 1.0, 0.5) == GROUPS[facts["group"]], name
        assert rules.is_trained(name) == facts["trained"], name
        assert is_half(name) == (facts["dtype_original"] == "float16"), name


def test_a_clip_in_the_hubs_format_is_loaded_under_the_names_of_openai(clip):
    loaded = plan.load_clip(find_weights(clip))
    in_hubs_format = load_file(clip / "model.safetensors")
    assert torch.equal(loaded["visual.proj"], in_hubs_format["visual_projection.weight"].T)


def test_queries_keys_and_values_of_the_hubs_format_become_one_tensor_in_this_order(clip):
    loaded = plan.load_clip(find_weights(clip))
    in_hubs_format = load_file(clip / "model.safetensors")
    layer = "vision_model.encoder.layers.1.self_attn"
    parts = [in_hubs_format[f"{layer}.{part}_proj.weight"] for part in "qkv"]
    assert torch.equal(loaded["visual.transformer.resblocks.1.attn.in_proj_weight"], torch.cat(parts))


def test_a_clip_in_openais_format_is_loaded_as_it_is(clip, tmp_path):
    from_hubs_format = plan.load_clip(find_weights(clip))
    path = write_in_openai_format(from_hubs_format, tmp_path / "clip.safetensors")
    from_openais_format = plan.load_clip(find_weights(path))
    assert from_openais_format.keys() == from_hubs_format.keys()
    assert all(torch.equal(from_openais_format[name], from_hubs_format[name]) for name in from_hubs_format)


def clip_with_vision_config(clip, folder, **vision):
    """Copy a CLIP, with these fields in the configuration of its vision network."""
    for path in clip.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    config = json.loads((clip / "config.json").read_text())
    config["vision_config"] |= vision
    (folder / "config.json").write_text(json.dumps(config))
    return find_weights(folder)


def test_a_clip_of_another_activation_than_openais_is_refused(clip, tmp_path):
    with pytest.raises(TrainError, match="hidden_act"):
        plan.load_clip(clip_with_vision_config(clip, tmp_path, hidden_act="gelu"))


def test_a_clip_that_lacks_tensors_of_a_layer_is_refused(clip, tmp_path):
    with pytest.raises(BackboneError, match=r"tensors missing: vision.*layers\.2"):
        plan.load_clip(clip_with_vision_config(clip, tmp_path, num_hidden_layers=3))


def test_an_untrained_network_in_place_of_clip_is_refused():
    with pytest.raises(TrainError, match="CLIP"):
        plan.load_clip(find_weights("random:0"))


def test_a_file_of_weights_that_could_run_code_is_refused(tmp_path):
    (tmp_path / "ViT-B-32.pt").write_bytes(b"PK")
    with pytest.raises(TrainError, match=r"\.pt"):
        plan.load_clip(find_weights(tmp_path / "ViT-B-32.pt"))


@pytest.fixture
def tensors_of_clip(oracle):
    """The tensors of a CLIP whose text network has 3 blocks and 20 positions."""
    return plan.load_clip(find_weights(oracle.folder / "clip.safetensors"))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [({"max_frames": 8, "max_words": 12}, "3 blocks"), ({}, "20 positions")],
    ids=["fewer blocks than the usual 4 temporal layers", "fewer positions than the usual 32 words"],
)
def test_a_text_network_too_small_for_the_temporal_transformer_is_refused(tensors_of_clip, sizes, message):
    with pytest.raises(TrainError, match=message):
        plan.initial_tensors("clip", tensors_of_clip, **sizes)


def test_a_clip_without_a_projection_of_images_is_refused(tensors_of_clip):
    del tensors_of_clip["visual.proj"]
    with pytest.raises(BackboneError, match=r"missing: clip\.visual\.proj"):
        plan.initial_tensors("clip", tensors_of_clip, **TINY)


def test_a_clip_that_projects_images_to_another_width_than_texts_is_refused(tensors_of_clip):
    tensors_of_clip["visual.proj"] = torch.zeros(128, 32)
    with pytest.raises(TrainError, match="64"):  # the width of texts
        plan.initial_tensors("clip", tensors_of_clip, **TINY)
