"""Step 0: every tensor of the network is CLIP's or an identity (check 1 of the specification)."""

import json

import pytest

from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import BackboneError
from obygaze_studies.errors import TrainError
from tests.later import later

from .corpus import openai_names

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


def test_every_tensor_comes_from_where_the_original_takes_it(oracle, tensors):
    clip = oracle.load("clip")
    assert tensors.keys() == oracle.tensors.keys()
    for name, facts in oracle.tensors.items():
        source = facts["initial"].removeprefix("clip: ")
        expected = torch.eye(facts["shape"][0]) if source == "identity" else clip[source].float()
        assert torch.equal(tensors[name], expected), name


def test_groups_frozen_tensors_and_data_types_are_the_originals(oracle):
    for name, facts in oracle.tensors.items():
        assert rules.group_of(name, 1.0, 0.5) == GROUPS[facts["group"]], name
        assert rules.is_trained(name) == facts["trained"], name
        assert is_half(name) == (facts["dtype_original"] == "float16"), name


def test_a_clip_of_the_hub_gives_the_same_as_its_openai_names(clip, tmp_path):
    hub = plan.load_clip(find_weights(clip))
    path = openai_names(hub, tmp_path / "clip.safetensors")
    of_the_hub = plan.load_clip(find_weights(path))
    assert hub.keys() == of_the_hub.keys()
    assert all(torch.equal(hub[name], of_the_hub[name]) for name in hub)
    stored = load_file(clip / "model.safetensors")
    assert torch.equal(hub["visual.proj"], stored["visual_projection.weight"].T)
    query = "vision_model.encoder.layers.1.self_attn.q_proj.weight"
    assert torch.equal(hub["visual.transformer.resblocks.1.attn.in_proj_weight"][:64], stored[query])


def edited_config(clip, folder, **vision):
    for path in clip.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    config = json.loads((clip / "config.json").read_text())
    config["vision_config"] |= vision
    (folder / "config.json").write_text(json.dumps(config))
    return find_weights(folder)


def test_a_clip_that_is_not_built_as_openais_is_refused(clip, tmp_path):
    with pytest.raises(TrainError, match="hidden_act"):
        plan.load_clip(edited_config(clip, tmp_path, hidden_act="gelu"))
    with pytest.raises(BackboneError, match=r"tensors missing: vision.*layers\.2"):
        plan.load_clip(edited_config(clip, tmp_path, num_hidden_layers=3))


def test_untrained_networks_and_executable_files_are_refused(tmp_path):
    with pytest.raises(TrainError, match="CLIP"):
        plan.load_clip(find_weights("random:0"))
    (tmp_path / "ViT-B-32.pt").write_bytes(b"PK")
    with pytest.raises(TrainError, match=r"\.pt"):
        plan.load_clip(find_weights(tmp_path / "ViT-B-32.pt"))


def test_a_text_tower_that_cannot_become_the_temporal_transformer_is_refused(oracle):
    clip = plan.load_clip(find_weights(oracle.folder / "clip.safetensors"))
    for few, place in (({"max_frames": 8, "max_words": 12}, "3 blocks"), ({}, "20 positions")):
        with pytest.raises(TrainError, match=place):
            plan.initial_tensors("clip", clip, **few)
    with pytest.raises(BackboneError, match=r"missing: clip\.visual\.proj"):
        plan.initial_tensors("clip", {k: v for k, v in clip.items() if k != "visual.proj"}, **TINY)
    clip["visual.proj"] = torch.zeros(128, 32)
    with pytest.raises(TrainError, match="64"):
        plan.initial_tensors("clip", clip, **TINY)
