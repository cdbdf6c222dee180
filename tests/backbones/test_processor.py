"""The processor's and the tokenizer's configuration beside a CLIP or SigLIP decide what it is given."""

import json
import shutil
import string

import numpy as np
import pytest
from click.testing import CliRunner
from huggingface_hub import constants
from PIL import Image
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import Siglip2Tokenizer, SiglipImageProcessorPil

from obygaze_features.backbones import load_backbone, load_network, load_text_backbone
from obygaze_features.backbones.clip_siglip import preset_of_processor
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.weights import Weights
from obygaze_features.commands.weights_commands import fetch
from obygaze_features.errors import BackboneError
from tests.tiny_checkpoints import LIMIT, tiny_text_checkpoint

CPU = Compute(device="cpu")
FRAME = np.random.default_rng(0).integers(0, 256, (272, 638, 3), dtype=np.uint8)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SPECIAL = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")
# As the repositories of Google have them: 3 is Pillow's bicubic filter, 2 the bilinear one of SigLIP 2.
SIGLIP = {
    "do_convert_rgb": None,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_processor_type": "SiglipImageProcessor",
    "image_std": [0.5, 0.5, 0.5],
    "processor_class": "SiglipProcessor",
    "resample": 3,
    "rescale_factor": 0.00392156862745098,
    "size": {"height": 224, "width": 224},
}
SIGLIP2 = SIGLIP | {"resample": 2}
# As OpenAI's repository had it in 2021.
CLIP = {
    "crop_size": 224,
    "do_center_crop": True,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "CLIPFeatureExtractor",
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.2613026, 0.2757771],
    "resample": 3,
    "size": 224,
}
GEMMA = {
    "tokenizer_class": "GemmaTokenizer",
    "add_bos_token": False,
    "add_eos_token": True,
    "padding_side": "right",
    "model_input_names": ["input_ids"],
    **{f"{token[1:-1]}_token": token for token in SPECIAL[:4]},
}


def write(folder, name, content):
    (folder / name).write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def made(tmp_path):
    """Make a tiny checkpoint with the processor's configuration beside it."""

    def make(family, processor, name="preprocessor_config.json"):
        folder = tiny_text_checkpoint(family, tmp_path / "net")
        write(folder, name, processor)
        return folder

    return make


@pytest.fixture
def second(made):
    """Make a tiny SigLIP 2: the tokenizer is a Gemma of letters, of both cases."""

    def make(**config):
        folder = made("siglip", SIGLIP2)
        (folder / "vocab.txt").unlink()
        signs = (*SPECIAL, "▁", *string.ascii_letters)
        tokenizer = Tokenizer(models.BPE({sign: number for number, sign in enumerate(signs)}, []))
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        tokenizer.add_special_tokens(list(SPECIAL))
        tokenizer.post_processor = processors.TemplateProcessing("$A <eos>", special_tokens=[("<eos>", 1)])
        tokenizer.save(str(folder / "tokenizer.json"))
        write(folder, "tokenizer_config.json", GEMMA | {"model_max_length": LIMIT} | config)
        return folder

    return make


def images(folder, **options):
    return load_backbone("clip", 1, weights=str(folder), compute=CPU, **options)


def texts(folder):
    return load_text_backbone("clip-text", weights=str(folder), compute=CPU)


@pytest.mark.parametrize(
    ("processor", "preset", "citation"),
    [(SIGLIP, "siglip", "Zhai et al."), (SIGLIP2, "siglip2", "Tschannen et al.")],
)
def test_a_siglip_sees_the_pixels_of_pillows_filter_that_its_processor_names(
    made, processor, preset, citation
):
    folder = made("siglip", processor)
    backbone = images(folder)
    expected = Image.fromarray(FRAME).resize((224, 224), processor["resample"])
    assert np.array_equal(backbone.prepare(FRAME), np.asarray(expected))
    record = backbone.provenance["preset"]
    assert record["name"] == preset
    assert record["resize"].endswith({3: "pillow-bicubic", 2: "pillow-bilinear"}[processor["resample"]])
    assert backbone.provenance["citation"].startswith(citation)
    scale, shift = (np.array(record["constants"][key])[:, None, None] for key in ("scale", "shift"))
    theirs = SiglipImageProcessorPil.from_pretrained(folder)([FRAME], return_tensors="np")["pixel_values"][0]
    assert np.abs(backbone.prepare(FRAME).transpose(2, 0, 1) * scale + shift - theirs).max() < 1e-6


@pytest.mark.parametrize("kind", ["SiglipImageProcessorFast", "SiglipImageProcessorPil", None])
def test_the_same_processor_is_read_by_any_of_its_names_and_from_the_newer_file(made, kind):
    folder = made(
        "siglip", {"image_processor": SIGLIP2 | {"image_processor_type": kind}}, "processor_config.json"
    )
    assert images(folder).provenance["preset"]["name"] == "siglip2"
    write(folder, "preprocessor_config.json", SIGLIP)  # transformers reads the newer one first, too
    assert images(folder).provenance["preset"]["name"] == "siglip2"


def test_a_processor_of_2021_with_numbers_for_sizes_is_clips(made):
    folder = made("clip", CLIP)
    assert images(folder).provenance["preset"]["name"] == "clip"
    assert load_network("clip", str(folder)).preset.name == "clip"


def test_the_size_is_that_of_the_network(tmp_path):
    write(tmp_path, "preprocessor_config.json", SIGLIP2 | {"size": {"height": 384, "width": 384}})
    weights = Weights(files=(tmp_path / "model.safetensors",), folder=tmp_path)
    assert preset_of_processor(weights, ("siglip", "siglip2"), size=384) == "siglip2"
    with pytest.raises(BackboneError, match=r"size is .*384.*, expected .*224"):
        preset_of_processor(weights, ("siglip", "siglip2"), size=224)


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_without_a_processor_the_usual_preset_is_taken(family, tmp_path):
    folder = tiny_text_checkpoint(family, tmp_path / "net")
    write(folder, "processor_config.json", {"processor_class": "any"})  # older ones say nothing of pictures
    assert images(folder).provenance["preset"]["name"] == family


def test_without_a_processor_gemmas_tokenizer_tells_a_siglip_2(second):
    folder = second()
    (folder / "preprocessor_config.json").unlink()
    assert images(folder).provenance["preset"]["name"] == "siglip2"


OTHERS = [
    ("siglip", SIGLIP, {"resample": 1}, "resample", "lanczos", "bicubic"),
    ("siglip", SIGLIP, {"size": {"height": 256, "width": 256}}, "size", "256", "224"),
    ("siglip", SIGLIP2, {"size": {"shortest_edge": 224}}, "size", "shortest_edge", "'height': 224"),
    ("siglip", SIGLIP2, {"do_rescale": False}, "do_rescale", "False", "True"),
    ("siglip", SIGLIP2, {"rescale_factor": 1 / 127.5}, "rescale_factor", "0.0078431373", "0.0039215686"),
    ("siglip", SIGLIP, {"image_processor_type": "Siglip2ImageProcessor"}, "type", "Siglip2", "SiglipImage"),
    ("clip", CLIP, {"resample": 2}, "resample", "bilinear", "bicubic"),
    ("clip", CLIP, {"image_mean": [0.5] * 3}, "image_mean", "[0.5, 0.5, 0.5]", "[0.48145466, "),
    ("clip", CLIP, {"image_std": [1, 1, 1]}, "image_std", "[1, 1, 1]", "[0.26862954, "),
    ("clip", CLIP, {"do_center_crop": False}, "do_center_crop", "False", "True"),
    ("clip", CLIP, {"crop_size": {"height": 224, "width": 225}}, "crop_size", "225", "'width': 224"),
    ("clip", CLIP, {"size": 256}, "size", "256", "224"),
    ("clip", CLIP, {"do_normalize": False}, "do_normalize", "False", "True"),
    ("clip", CLIP, {"do_resize": False}, "do_resize", "False", "True"),
    ("clip", CLIP, {"image_processor_type": "BitImageProcessor"}, "type", "Bit", "CLIPImageProcessor"),
]


@pytest.mark.parametrize(("family", "processor", "change", "field", "found", "expected"), OTHERS)
def test_a_processor_of_no_preset_is_refused_by_field_unless_a_preset_is_named(
    made, family, processor, change, field, found, expected
):
    folder = made(family, processor | change)
    with pytest.raises(BackboneError) as refused:
        images(folder)
    message = str(refused.value)
    assert "\n" not in message
    assert str(folder) in message
    said = message[message.index(field) :]
    assert 0 < said.index(found) < said.index(expected)
    assert images(folder, preset=family).provenance["preset"]["name"] == family
    if family == "clip":
        with pytest.raises(BackboneError, match=field):
            load_network("clip", str(folder))


@pytest.mark.parametrize("broken", [{"size": {"edge": 1}}, {"resample": 77}, {"crop_size": "x"}])
def test_a_processor_that_cannot_be_read_is_refused(made, broken):
    with pytest.raises(BackboneError, match="cannot be read"):
        images(made("clip", CLIP | broken))


def test_a_processor_that_is_no_json_is_refused(made):
    folder = made("clip", CLIP)
    (folder / "preprocessor_config.json").write_text("{")
    with pytest.raises(BackboneError, match=r"preprocessor_config.json: not readable as JSON"):
        images(folder)


@pytest.mark.parametrize("config", [{"do_lower_case": True}, {}, {"tokenizer_class": "GemmaTokenizerFast"}])
def test_siglip_2_reads_capitals_as_small_letters(second, config):
    folder = second(**config)
    backbone = texts(folder)
    capitals, small = backbone.tokenize(["A Woman", "a woman"])
    assert capitals == small
    theirs = Siglip2Tokenizer.from_pretrained(folder)
    assert list(small.ids) == theirs("A Woman", padding="max_length")["input_ids"]
    vectors = backbone.encode(np.array([capitals.ids, small.ids]))
    assert np.array_equal(vectors[0], vectors[1])
    assert backbone.provenance["tokenizer"]["lower_case"] is True
    assert backbone.provenance["citation"].startswith("Tschannen et al.")
    assert backbone.provenance["space"] == images(folder).provenance["space"]


def test_a_tokenizer_that_asks_for_case_keeps_it(second):
    backbone = texts(second(do_lower_case=False))
    capitals, small = backbone.tokenize(["A Woman", "a woman"])
    assert capitals.ids != small.ids
    assert backbone.provenance["tokenizer"]["lower_case"] is False


@pytest.mark.parametrize(("family", "processor"), [("clip", CLIP), ("siglip", SIGLIP)])
def test_a_tokenizer_that_lowers_case_itself_is_left_to_it(made, family, processor):
    backbone = texts(made(family, processor))
    capitals, small = backbone.tokenize(["A Man", "a man"])
    assert capitals == small
    assert backbone.provenance["tokenizer"]["lower_case"] is False  # as in the stores that there are


def test_fetch_brings_the_processor_of_the_same_commit(second, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    repository = tmp_path / "models--lab--net"
    folder = second()
    shutil.copytree(folder, repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    shown = json.loads(CliRunner().invoke(fetch, ["lab/net", "--json"], catch_exceptions=False).stdout)
    assert "preprocessor_config.json" in shown["beside"]
    fetched = load_backbone("clip", 1, weights="lab/net", compute=CPU).provenance
    assert fetched["preset"]["name"] == "siglip2"
    assert fetched["weights_sha256"] == shown["sha256"] == images(folder).provenance["weights_sha256"]
