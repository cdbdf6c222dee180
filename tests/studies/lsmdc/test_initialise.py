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

RATE_AND_DECAY_OF_GROUPS = ((0.5, 0.2), (1.0, 0.2), (0.5, 0.0), (1.0, 0.0))
"""Of the original's four groups, at the rate 1, and half of it for CLIP.

They are weights of CLIP, other weights, biases of CLIP and other biases.
"""

TINY = {"temporal_layers": 2, "max_frames": 8, "max_words": 12}
"""The size of a temporal transformer that the oracle's CLIP fits."""


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


def test_a_tensor_learns_at_the_rate_and_decays_as_in_the_original_code(oracle):
    """The original puts each tensor into one of four groups, which the oracle says of each by its name."""
    for name, facts in oracle.tensors.items():
        expected = RATE_AND_DECAY_OF_GROUPS[facts["group"]]
        assert rules.group_of(name, rate=1.0, clip_scale=0.5) == expected, name


def test_the_tensors_that_are_trained_are_those_that_the_original_code_trains(oracle):
    """The oracle says of each tensor whether the original trains it, or keeps it as it was in CLIP."""
    for name, facts in oracle.tensors.items():
        assert rules.is_trained(name) == facts["trained"], name


def test_the_tensors_in_float16_are_those_that_the_original_code_keeps_in_float16(oracle):
    """The oracle has the data type of each tensor in the original: float32 or float16."""
    for name, facts in oracle.tensors.items():
        assert is_half(name) == (facts["dtype_original"] == "float16"), name


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
    """The word random:0 stands for a network with random weights of seed 0; a training begins with CLIP's."""
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


def test_a_clip_with_fewer_blocks_than_the_temporal_transformer_is_refused(tensors_of_clip):
    """The temporal transformer begins with copies of the blocks of CLIP's text network.

    By default it has 4, and this CLIP has 3.
    """
    with pytest.raises(TrainError, match="3 blocks"):
        plan.initial_tensors("clip", tensors_of_clip, max_frames=8, max_words=12)


def test_a_clip_that_reads_shorter_texts_than_captions_are_is_refused(tensors_of_clip):
    """By default captions have up to 32 tokens, and this CLIP has 20 positions for tokens."""
    with pytest.raises(TrainError, match="20 positions"):
        plan.initial_tensors("clip", tensors_of_clip)


def test_a_clip_that_projects_pictures_to_another_width_than_texts_is_refused(tensors_of_clip):
    """Texts become vectors of 64 numbers, and by the replaced tensor pictures become vectors of 32."""
    of_another_width = tensors_of_clip | {"visual.proj": torch.zeros(128, 32)}

    with pytest.raises(TrainError, match="64"):
        plan.initial_tensors("clip", of_another_width, **TINY)


def test_a_clip_without_the_projection_of_pictures_is_refused_with_the_tensors_name(tensors_of_clip):
    del tensors_of_clip["visual.proj"]

    with pytest.raises(BackboneError, match=r"missing: clip\.visual\.proj"):
        plan.initial_tensors("clip", tensors_of_clip, **TINY)
