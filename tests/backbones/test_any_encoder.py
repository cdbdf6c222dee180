"""Networks that networks.toml does not list: they give what transformers gives by hand, or are refused."""

import importlib
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from obygaze.cli import root_command
from obygaze_features.backbones import load_backbone, load_text_backbone
from obygaze_features.errors import BackboneError
from tests.lazy_import import cpu, lazy_import, without_gradients
from tests.rounding import assert_close, network_rounding
from tests.tiny_checkpoints import tiny_text_checkpoint

torch = lazy_import("torch")
transformers = lazy_import("transformers")
conformance = lazy_import("obygaze_features.backbones", "conformance")
_is_batch_invariant = lazy_import("obygaze_features.backbones.conformance", "_is_batch_invariant")
_is_deterministic = lazy_import("obygaze_features.backbones.conformance", "_is_deterministic")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")
untrained = lazy_import("obygaze_features.backbones.checkpoint", "untrained")
TINY_TRANSFORMER = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
CONFIGS = {
    "convnext": {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1], "image_size": 64},
    "beit": TINY_TRANSFORMER | {"image_size": 32, "patch_size": 16},
    "siglip2_vision_model": TINY_TRANSFORMER | {"patch_size": 16, "num_patches": 64},
    "qwen3_vl_vision": {"hidden_size": 32, "intermediate_size": 64, "depth": 2, "num_heads": 2,
                        "patch_size": 16, "out_hidden_size": 24, "num_position_embeddings": 64,
                        "deepstack_visual_indexes": [0]},
    "vit_mae": TINY_TRANSFORMER | {"image_size": 32, "patch_size": 16, "decoder_hidden_size": 32},
    "pixtral": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
                "image_size": 32, "patch_size": 16},
}  # fmt: skip
ROOT = Path(__file__).parents[2]
SQUARE_32 = {"height": 32, "width": 32}
PROCESSORS = {
    "convnext": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 64},
                 "crop_pct": 0.875},
    "beit": {"image_processor_type": "BeitImageProcessor", "size": {"height": 36, "width": 36},
             "crop_size": SQUARE_32, "do_center_crop": True, "image_mean": [0.4, 0.5, 0.6]},
    "siglip2_vision_model": {"image_processor_type": "Siglip2ImageProcessor", "max_num_patches": 40,
                             "patch_size": 16},
    "qwen3_vl_vision": {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 16, "merge_size": 2,
                        "size": {"shortest_edge": 1024, "longest_edge": 64 * 256}},
    "vit_mae": {"image_processor_type": "ViTImageProcessor", "size": SQUARE_32},
    "pixtral": {"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 32},
                "patch_size": {"height": 16, "width": 16}},
}  # fmt: skip
TYPES_THAT_PASS_THE_CHECK = ["convnext", "beit", "siglip2_vision_model", "qwen3_vl_vision"]
NETWORK_ROUNDING = network_rounding(3 * 2 * 16 * 16)
FRAMES = np.random.default_rng(3).integers(0, 256, (2, 3, 53, 87, 3), dtype=np.uint8)
"""Two clips of three frames, of a size that no network takes as it is."""


def random_network(auto_class, config):
    """Make a network with random weights, also where they start as zeros: it would ignore its picture."""
    network = untrained(lambda: auto_class.from_config(config), 0)
    for name, parameter in network.named_parameters():
        if not parameter.any():
            torch.manual_seed(len(name))
            parameter.data += 0.1 * torch.randn(parameter.shape)
    return network


@pytest.fixture(scope="module")
def networks():
    """Make a tiny network of every type, by transformers itself."""
    return {
        model_type: random_network(
            transformers.AutoModel, transformers.AutoConfig.for_model(model_type, **fields)
        )
        for model_type, fields in CONFIGS.items()
    }


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep the records of passed weights checks in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def save_network(networks, tmp_path):
    """Save the tiny network of a type in the hub's format, with its processor beside it; its folder."""

    def save(model_type, **changes):
        folder = tmp_path / model_type
        with quiet():
            networks[model_type].save_pretrained(folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSORS[model_type] | changes))
        return folder

    return save


def vector_by_hand(model_type, network, folder, frame):
    """Give one frame to transformers alone, as its documentation does; return its vector [D]."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    inputs = dict(processor(images=[frame], return_tensors="pt"))
    if model_type == "qwen3_vl_vision":
        output = network(inputs["pixel_values"], grid_thw=inputs["image_grid_thw"])
        return output.last_hidden_state.mean(dim=0)
    output = network(**inputs)
    if model_type == "beit":  # whose pooling layer is left out, as it may be untrained
        return output.last_hidden_state.mean(dim=1)[0]
    return output.pooler_output[0]


@pytest.mark.long
@without_gradients
@pytest.mark.parametrize("model_type", TYPES_THAT_PASS_THE_CHECK)
def test_an_unlisted_type_gives_what_its_class_gives_by_hand(save_network, networks, model_type):
    """Types of networks that nobody listed in networks.toml are loaded by general rules.

    The expected vectors are of a tiny network, to which each frame of two clips of three frames is given by
    transformers alone. A clip has the mean of its frames.
    """
    folder = save_network(model_type)
    backbone = load_backbone("image", n_frames=3, weights=str(folder), compute=cpu())
    clips = np.array([[backbone.prepare(frame) for frame in clip] for clip in FRAMES])

    arrays = backbone.encode(clips)

    vectors_of_clips = []
    for clip in FRAMES:
        vectors = [vector_by_hand(model_type, networks[model_type], folder, frame) for frame in clip]
        vectors_of_clips.append(torch.stack(vectors))
    expected = torch.stack(vectors_of_clips)
    n_clips, n_frames, width = expected.shape
    assert (n_clips, n_frames) == (2, 3)
    assert_close(arrays["frames"], expected, NETWORK_ROUNDING)
    assert_close(arrays["pooled"], expected.mean(dim=1), NETWORK_ROUNDING)
    stated_shapes = {output.name: output.shape for output in backbone.outputs}
    assert stated_shapes == {"frames": (3, width), "pooled": (width,)}


@pytest.mark.parametrize("model_type", ["siglip2_vision_model", "qwen3_vl_vision"])
def test_wide_high_and_square_frames_are_prepared_to_one_shape(save_network, model_type):
    """These networks take pictures of any shape, but a store needs one."""
    folder = save_network(model_type)
    prepare = load_backbone("image", n_frames=1, weights=str(folder), compute=cpu()).prepare

    shape_of_wide = prepare(np.zeros((90, 160, 3), np.uint8)).shape
    shape_of_high = prepare(np.zeros((160, 90, 3), np.uint8)).shape
    shape_of_square = prepare(np.zeros((64, 64, 3), np.uint8)).shape

    assert shape_of_wide == shape_of_high
    assert shape_of_wide == shape_of_square


@pytest.mark.parametrize("model_type", ["siglip2_vision_model", "qwen3_vl_vision"])
def test_decode_workers_prepare_frames_in_the_same_way(save_network, model_type):
    """Workers are processes, which get the function that prepares frames as a pickle."""
    folder = save_network(model_type)
    prepare = load_backbone("image", n_frames=1, weights=str(folder), compute=cpu()).prepare
    frame = FRAMES[0, 0]

    prepare_in_worker = pickle.loads(pickle.dumps(prepare))  # noqa: S301 - our own bytes

    assert np.array_equal(prepare_in_worker(frame), prepare(frame))


@pytest.fixture
def siglip2(tmp_path):
    """A tiny SigLIP 2 of pictures of any shape and of texts: its folder and the network."""
    folder = tiny_text_checkpoint("siglip", tmp_path / "net")  # for its tokenizer
    config = transformers.AutoConfig.for_model(
        "siglip2",
        vision_config=CONFIGS["siglip2_vision_model"],
        text_config={
            **TINY_TRANSFORMER,
            "vocab_size": 99,
            "max_position_embeddings": 16,
            "pad_token_id": 0,
            "eos_token_id": 2,
            "projection_size": 32,
        },
    )
    network = random_network(transformers.AutoModel, config)
    with quiet():
        network.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSORS["siglip2_vision_model"]))
    return folder, network


@without_gradients
def test_texts_of_a_siglip_2_are_padded_to_16_tokens_as_by_transformers(siglip2):
    """SigLIP 2 was trained on texts padded to a fixed length, here 16 (`max_position_embeddings`)."""
    folder, network = siglip2
    backbone = load_text_backbone("text", weights=str(folder), compute=cpu())

    (tokens,) = backbone.tokenize(["a sad man"])
    ids = np.array([tokens.ids])
    vectors = backbone.encode(ids)

    assert ids.shape == (1, 16)
    expected = network.get_text_features(input_ids=torch.from_numpy(ids)).pooler_output
    assert_close(vectors, expected, NETWORK_ROUNDING)


@pytest.mark.long
@without_gradients
def test_pictures_of_a_siglip_2_have_the_vectors_of_transformers(siglip2):
    """The three frames of a clip are the same picture."""
    folder, network = siglip2
    picture = FRAMES[0, 0]
    backbone = load_backbone("image", n_frames=3, weights=str(folder), compute=cpu())

    clip = np.array([[backbone.prepare(picture)] * 3])
    vector = backbone.encode(clip)["frames"][0, 0]

    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    inputs = processor(images=[picture], return_tensors="pt")
    expected = network.get_image_features(**inputs).pooler_output[0]
    assert_close(vector, expected, NETWORK_ROUNDING)


@pytest.mark.long
def test_pictures_of_a_siglip_2_share_a_space_with_its_texts(siglip2):
    """Vectors of one space may be compared, such as a text with pictures."""
    folder, _network = siglip2

    of_pictures = load_backbone("image", n_frames=3, weights=str(folder), compute=cpu())
    of_texts = load_text_backbone("text", weights=str(folder), compute=cpu())

    assert of_pictures.provenance["space"] == of_texts.provenance["space"]


@pytest.fixture
def encoder_types(monkeypatch):
    """The script that tries every type of transformers, and the table of outcomes that it wrote."""
    benchmarks = ROOT / "benchmarks"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # as the script sets it
    monkeypatch.syspath_prepend(str(benchmarks))
    script = importlib.import_module("encoder_types")
    return script, script.read_table(benchmarks / "encoder_types.csv")


def test_the_page_encoder_types_has_the_table_of_outcomes(encoder_types):
    """The script benchmarks/encoder_types.py tried each type of transformers and wrote this table."""
    script, outcomes = encoder_types
    page = (ROOT / "docs" / "encoder-types.md").read_text(encoding="utf-8")

    for line in script.table_lines(outcomes):
        assert line in page


def test_types_that_the_check_refused_are_in_the_table(encoder_types):
    """The type vit_mae masks at random, and pixtral gives one row for several pictures.

    Of more than 100 types at least 75 passed, so that the check is not too strict.
    """
    _script, outcomes = encoder_types

    result_of = {outcome.model_type: outcome.result for outcome in outcomes}

    assert result_of["vit_mae"] == "refused by the check"
    assert result_of["pixtral"] == "refused by the check"
    n_passed = list(result_of.values()).count("passed")
    assert n_passed >= 75


@pytest.mark.parametrize(
    ("model_type", "reason"),
    [("vit_mae", "deterministic"), ("pixtral", "[2-9] pictures gave 1 row")],
    ids=["it masks a picture at random", "it gives one row for several pictures"],
)
def test_a_network_without_a_stable_vector_for_each_picture_fails_the_weights_check(
    save_network, model_type, reason
):
    """A network of a type that networks.toml does not list is checked when it is loaded first."""
    folder = save_network(model_type)

    with pytest.raises(BackboneError, match=f"{reason}.*weights check"):
        load_backbone("image", weights=str(folder), compute=cpu())


def test_a_network_that_gives_nan_for_a_clip_alone_fails_the_check_of_batches():
    """A clip must have the same vector alone as in a batch with others.

    This network gives ones for two clips, and NaN for one clip alone. NaN must not pass for close to 1.
    """

    def encode(clips):
        if len(clips) == 1:
            return {"pooled": torch.full((1, 4), float("nan"))}
        return {"pooled": torch.ones(len(clips), 4)}

    two_clips = torch.zeros(2, 3, 3, 8, 8)  # [clips, frames, colours, height, width]
    arrays_of_both = encode(two_clips)

    outcome = _is_batch_invariant(encode, two_clips, arrays_of_both)

    assert not outcome.passed


def test_a_network_whose_second_run_gives_nan_is_not_deterministic():
    """A network must give the same whenever it is run on the same two clips.

    Of its two arrays, "pooled" is the same in both runs, and "frames" is all 1 and then all NaN.
    """
    two_clips = torch.zeros(2, 3, 3, 8, 8)  # [clips, frames, colours, height, width]
    arrays_of_first_run = {"pooled": torch.ones(2, 4), "frames": torch.ones(2, 3, 4)}
    arrays_of_second_run = {"pooled": torch.ones(2, 4), "frames": torch.full((2, 3, 4), float("nan"))}

    def run_again(_clips):
        return arrays_of_second_run

    outcome = _is_deterministic(run_again, two_clips, arrays_of_first_run)

    assert not outcome.passed


def test_a_network_without_a_processor_beside_it_is_refused(save_network):
    """Nothing says how its pictures are prepared."""
    folder = save_network("convnext")
    (folder / "preprocessor_config.json").unlink()

    with pytest.raises(BackboneError, match="processor"):
        load_backbone("image", weights=str(folder), compute=cpu())


def test_a_processor_whose_pictures_have_no_fixed_size_is_refused(save_network):
    """Only the shorter side is resized, to 32, and nothing is cropped: a wider frame stays wider."""
    folder = save_network(
        "beit", do_center_crop=False, size={"shortest_edge": 32}, image_processor_type="BitImageProcessor"
    )

    with pytest.raises(BackboneError, match="sizes that depend on the frame"):
        load_backbone("image", weights=str(folder), compute=cpu())


def test_a_network_of_pictures_is_no_backbone_of_clips(save_network):
    """ConvNeXt takes single pictures. The error names the backbone that fits."""
    folder = save_network("convnext")

    with pytest.raises(BackboneError, match="--backbone image"):
        load_backbone("video", weights=str(folder), compute=cpu())


@pytest.mark.parametrize(("option", "value"), [("tokens", "patches"), ("layers", "1")])
def test_tokens_and_layers_of_an_unlisted_type_are_refused(save_network, option, value):
    """Where the tokens and layers of a network are is only known for types that networks.toml lists."""
    folder = save_network("convnext")

    with pytest.raises(BackboneError, match=f"--{option}"):
        load_backbone("image", weights=str(folder), compute=cpu(), **{option: value})


def flip_the_last_bit(file):
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


@pytest.mark.long
def test_the_check_runs_once_for_each_file_of_weights(save_network, cache, monkeypatch):
    """A network that is loaded for the first time is checked, and a record of it is kept.

    The same weights are not checked again; weights with one changed bit are.
    """
    folder = save_network("convnext")
    load_backbone("image", weights=str(folder), compute=cpu())
    assert len(list(cache.rglob("*.json"))) == 1

    def fail_when_checked(*_):
        raise AssertionError("checked again")

    monkeypatch.setattr(conformance, "_run_checks", fail_when_checked)
    load_backbone("image", weights=str(folder), compute=cpu())

    flip_the_last_bit(folder / "model.safetensors")
    with pytest.raises(AssertionError, match="checked again"):
        load_backbone("image", weights=str(folder), compute=cpu())


@pytest.mark.long
@pytest.mark.parametrize("library", ["transformers", "torch", "timm"])
def test_the_check_runs_again_with_another_version_of_a_library(save_network, cache, monkeypatch, library):
    """Each check leaves a record. Before the second load, a library pretends to have the version 99.0."""
    folder = save_network("convnext")
    load_backbone("image", weights=str(folder), compute=cpu())
    installed_version = conformance.version

    def version(name):
        return "99.0" if name == library else installed_version(name)

    monkeypatch.setattr(conformance, "version", version)
    load_backbone("image", weights=str(folder), compute=cpu())

    assert len(list(cache.rglob("*.json"))) == 2


@pytest.mark.long
def test_a_damaged_record_of_a_passed_check_is_written_again(save_network, cache):
    """Loading a network for the first time checks it, and leaves a record, a JSON file in the cache.

    The record is cut to its first character, so that the network is checked again.
    """
    folder = save_network("convnext")
    load_backbone("image", weights=str(folder), compute=cpu())
    (record,) = cache.rglob("*.json")
    content = record.read_bytes()

    record.write_text("{")
    load_backbone("image", weights=str(folder), compute=cpu())

    assert record.read_bytes() == content


@pytest.mark.parametrize(
    ("model_type", "passes", "exit_code", "vector"),
    [("convnext", True, 0, "pooler_output"), ("vit_mae", False, 3, "last_hidden_state")],
)
def test_weights_check_prints_its_findings_and_the_output_it_uses(
    save_network, model_type, passes, exit_code, vector
):
    """A ConvNeXt passes every check. A masked autoencoder hides patches at random: it is not deterministic.

    The command prints the name in transformers of the output that a vector is made of (`vector`).
    """
    folder = save_network(model_type)

    result = CliRunner().invoke(
        root_command(), ["weights", "check", str(folder), "--json"], catch_exceptions=False
    )

    assert result.exit_code == exit_code
    output = json.loads(result.stdout)
    assert output["model_type"] == model_type
    assert output["passed"] is passes
    passed_of_check = {finding["check"]: finding["passed"] for finding in output["findings"]}
    assert list(passed_of_check) == list(conformance.CHECKS)
    assert passed_of_check["deterministic"] is passes
    assert vector in output["pooled"]
