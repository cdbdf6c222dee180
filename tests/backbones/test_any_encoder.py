"""Types of networks without a row of their own: they give what transformers gives by hand, or are refused."""

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
from tests.later import cpu, later, without_gradients
from tests.rounding import assert_close, network_rounding
from tests.tiny_checkpoints import tiny_text_checkpoint

torch = later("torch")
transformers = later("transformers")
conformance = later("obygaze_features.backbones", "conformance")
quiet = later("obygaze_features.backbones.checkpoint", "quiet")
untrained = later("obygaze_features.backbones.checkpoint", "untrained")

BODY = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
CONFIGS = {
    "convnext": {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1], "image_size": 64},
    "beit": BODY | {"image_size": 32, "patch_size": 16},
    "siglip2_vision_model": BODY | {"patch_size": 16, "num_patches": 64},
    "qwen3_vl_vision": {"hidden_size": 32, "intermediate_size": 64, "depth": 2, "num_heads": 2,
                        "patch_size": 16, "out_hidden_size": 24, "num_position_embeddings": 64,
                        "deepstack_visual_indexes": [0]},
    "vit_mae": BODY | {"image_size": 32, "patch_size": 16, "decoder_hidden_size": 32},
    "pixtral": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
                "image_size": 32, "patch_size": 16},
}  # fmt: skip
SQUARE = {"height": 32, "width": 32}
PROCESSORS = {
    "convnext": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 64},
                 "crop_pct": 0.875},
    "beit": {"image_processor_type": "BeitImageProcessor", "size": {"height": 36, "width": 36},
             "crop_size": SQUARE, "do_center_crop": True, "image_mean": [0.4, 0.5, 0.6]},
    "siglip2_vision_model": {"image_processor_type": "Siglip2ImageProcessor", "max_num_patches": 40,
                             "patch_size": 16},
    "qwen3_vl_vision": {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 16, "merge_size": 2,
                        "size": {"shortest_edge": 1024, "longest_edge": 64 * 256}},
    "vit_mae": {"image_processor_type": "ViTImageProcessor", "size": SQUARE},
    "pixtral": {"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 32},
                "patch_size": {"height": 16, "width": 16}},
}  # fmt: skip
PASSING = ["convnext", "beit", "siglip2_vision_model", "qwen3_vl_vision"]
SAME = network_rounding(3 * 2 * 16 * 16)
FRAMES = np.random.default_rng(3).integers(0, 256, (2, 3, 53, 87, 3), dtype=np.uint8)
"""Two clips of three frames, of no size that is easy."""


@pytest.fixture(scope="module")
def networks():
    """Make a tiny network of every type, by transformers itself."""
    made = {}
    for kind, changes in CONFIGS.items():
        config = transformers.AutoConfig.for_model(kind, **changes)
        network = untrained(lambda config=config: transformers.AutoModel.from_config(config), 0)
        for name, parameter in network.named_parameters():
            if not parameter.any():  # such as a query, which starts as zeros
                torch.manual_seed(len(name))
                parameter.data += 0.1 * torch.randn(parameter.shape)
        made[kind] = network
    return made


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep passes of the check in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def saved(networks, tmp_path):
    """Save the network of a type in the hub's format, with its processor beside it."""

    def save(kind, **changes):
        folder = tmp_path / kind
        with quiet():
            networks[kind].save_pretrained(folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSORS[kind] | changes))
        return folder

    return save


def picture_by_hand(kind, network, folder, frame):
    """Give one frame to transformers alone, as its documentation does; return its vector [D]."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    inputs = dict(processor(images=[frame], return_tensors="pt"))
    if kind == "qwen3_vl_vision":
        output = network(inputs["pixel_values"], grid_thw=inputs["image_grid_thw"])
        return output.last_hidden_state.mean(dim=0)
    output = network(**inputs)
    if kind == "beit":  # whose pooling layer is left out, as it may be untrained
        return output.last_hidden_state.mean(dim=1)[0]
    return output.pooler_output[0]


@without_gradients
@pytest.mark.parametrize("kind", PASSING)
def test_a_type_without_a_row_gives_what_its_class_gives_by_hand(saved, networks, kind):
    folder = saved(kind)
    backbone = load_backbone("image", 3, weights=str(folder), compute=cpu())
    prepared = np.array([[backbone.prepare(frame) for frame in clip] for clip in FRAMES])
    given = backbone.encode(prepared)
    expected = [
        torch.stack([picture_by_hand(kind, networks[kind], folder, frame) for frame in clip])
        for clip in FRAMES
    ]
    expected = torch.stack(expected)  # [2, 3, D]
    assert_close(given["frames"], expected, SAME)
    assert_close(given["pooled"], expected.mean(dim=1), SAME)
    assert {output.name: output.shape for output in backbone.outputs} == {
        "frames": tuple(expected.shape[1:]),
        "pooled": tuple(expected.shape[2:]),
    }


@pytest.mark.parametrize("kind", ["siglip2_vision_model", "qwen3_vl_vision"])
def test_frames_of_any_form_make_prepared_pictures_of_one_size(saved, kind):
    backbone = load_backbone("image", 1, weights=str(saved(kind)), compute=cpu())
    shapes = {
        backbone.prepare(np.zeros((*sides, 3), np.uint8)).shape for sides in ((90, 160), (160, 90), (64, 64))
    }
    assert len(shapes) == 1
    sent = pickle.loads(pickle.dumps(backbone.prepare))  # noqa: S301 - our own bytes, as it goes to the processes that decode
    assert np.array_equal(sent(FRAMES[0, 0]), backbone.prepare(FRAMES[0, 0]))


@without_gradients
def test_texts_of_a_naflex_siglip_share_the_space_of_its_pictures(tmp_path):
    folder = tiny_text_checkpoint("siglip", tmp_path / "net")  # for its tokenizer
    words = {"vocab_size": 99, "max_position_embeddings": 16, "pad_token_id": 0, "eos_token_id": 2}
    body = CONFIGS["siglip2_vision_model"]
    config = transformers.AutoConfig.for_model(
        "siglip2", vision_config=body, text_config=BODY | words | {"projection_size": 32}
    )
    network = untrained(lambda: transformers.Siglip2Model(config), 0)
    for name, parameter in network.named_parameters():
        if not parameter.any():  # such as a query, which starts as zeros
            torch.manual_seed(len(name))
            parameter.data += 0.1 * torch.randn(parameter.shape)
    with quiet():
        network.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSORS["siglip2_vision_model"]))

    seen = load_backbone("image", 3, weights=str(folder), compute=cpu())
    read = load_text_backbone("text", weights=str(folder), compute=cpu())

    (tokens,) = read.tokenize(["a sad man"])
    ids = torch.tensor([tokens.ids])
    assert ids.shape == (1, 16)  # filled up, as in its training
    expected = network.get_text_features(input_ids=ids).pooler_output
    assert_close(read.encode(ids.numpy()), expected, SAME)
    assert seen.provenance["space"] == read.provenance["space"]
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    pictures = network.get_image_features(**processor(images=[FRAMES[0, 0]], return_tensors="pt"))
    given = seen.encode(np.array([[seen.prepare(FRAMES[0, 0])] * 3]))
    assert_close(given["frames"][0, 0], pictures.pooler_output[0], SAME)


def test_the_page_has_the_table_of_types_that_were_tried(monkeypatch):
    root = Path(__file__).parents[2]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # as the script sets it
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    script = importlib.import_module("encoder_types")
    outcomes = script.read_table(root / "benchmarks" / "encoder_types.csv")
    page = (root / "docs" / "encoder-types.md").read_text(encoding="utf-8")
    for line in script.table_lines(outcomes):
        assert line in page
    by_type = {outcome.model_type: outcome.result for outcome in outcomes}
    assert list(by_type.values()).count("passed") >= 75
    assert by_type["vit_mae"] == by_type["pixtral"] == "refused by the check"


def test_a_network_that_masks_at_random_fails_the_check(saved):
    with pytest.raises(BackboneError, match="weights check") as refused:
        load_backbone("image", weights=str(saved("vit_mae")), compute=cpu())
    assert "deterministic" in str(refused.value)


def test_a_network_that_packs_a_batch_into_one_row_fails_the_check(saved):
    with pytest.raises(BackboneError, match="weights check") as refused:
        load_backbone("image", weights=str(saved("pixtral")), compute=cpu())
    assert "6 pictures gave 1 row" in str(refused.value) or "4 pictures gave 1 row" in str(refused.value)


def test_a_network_without_a_processor_beside_it_is_refused(saved):
    folder = saved("convnext")
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(BackboneError, match="processor"):
        load_backbone("image", weights=str(folder), compute=cpu())


def test_a_processor_whose_pictures_have_no_fixed_size_is_refused(saved):
    folder = saved(
        "beit", do_center_crop=False, size={"shortest_edge": 32}, image_processor_type="BitImageProcessor"
    )
    with pytest.raises(BackboneError, match="sizes that depend on the frame"):
        load_backbone("image", weights=str(folder), compute=cpu())


def test_a_network_of_pictures_is_no_backbone_of_clips(saved):
    with pytest.raises(BackboneError, match="--backbone image"):
        load_backbone("video", weights=str(saved("convnext")), compute=cpu())


@pytest.mark.parametrize("option", [{"tokens": "patches"}, {"layers": "1"}])
def test_what_only_rows_say_is_not_offered(saved, option):
    with pytest.raises(BackboneError, match=f"--{next(iter(option))}"):
        load_backbone("image", weights=str(saved("convnext")), compute=cpu(), **option)


def test_the_check_runs_once_for_each_file_of_weights(saved, cache, monkeypatch):
    folder = saved("convnext")
    load_backbone("image", weights=str(folder), compute=cpu())
    assert len(list(cache.rglob("*.json"))) == 1

    def never(*_):
        raise AssertionError("checked again")

    monkeypatch.setattr(conformance, "_run_checks", never)
    load_backbone("image", weights=str(folder), compute=cpu())
    tensors = bytearray((folder / "model.safetensors").read_bytes())
    tensors[-1] ^= 1
    (folder / "model.safetensors").write_bytes(tensors)
    with pytest.raises(AssertionError, match="checked again"):
        load_backbone("image", weights=str(folder), compute=cpu())


@pytest.mark.parametrize("library", ["transformers", "torch", "timm"])
def test_the_check_runs_again_with_another_version_of_a_library(saved, cache, monkeypatch, library):
    folder = saved("convnext")
    load_backbone("image", weights=str(folder), compute=cpu())
    installed = conformance.version
    monkeypatch.setattr(conformance, "version", lambda name: "99.0" if name == library else installed(name))
    load_backbone("image", weights=str(folder), compute=cpu())
    assert len(list(cache.rglob("*.json"))) == 2


def test_a_damaged_pass_is_no_pass(saved, cache):
    folder = saved("convnext")
    load_backbone("image", weights=str(folder), compute=cpu())
    (kept,) = cache.rglob("*.json")
    whole = kept.read_bytes()
    kept.write_text("{")
    load_backbone("image", weights=str(folder), compute=cpu())
    assert kept.read_bytes() == whole


@pytest.mark.parametrize(("kind", "code"), [("convnext", 0), ("vit_mae", 3)])
def test_the_command_says_what_was_checked_and_which_output_is_the_vector(saved, kind, code):
    words = ["weights", "check", str(saved(kind)), "--json"]
    result = CliRunner().invoke(root_command(), words, catch_exceptions=False)
    assert result.exit_code == code
    shown = json.loads(result.stdout)
    assert shown["model_type"] == kind
    assert shown["passed"] is (code == 0)
    checks = {finding["check"]: finding["passed"] for finding in shown["findings"]}
    assert list(checks) == list(conformance.CHECKS)
    assert checks["deterministic"] is (code == 0)
    assert "pooler_output" in shown["pooled"] or "last_hidden_state" in shown["pooled"]
