"""The processor's and the tokenizer's configuration beside a CLIP or SigLIP decide what it is given."""

import json
import string
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from obygaze_features.backbones import load_backbone, load_network, load_text_backbone
from obygaze_features.commands.weights_commands import fetch
from obygaze_features.errors import BackboneError
from tests.lazy_import import cpu, lazy_import
from tests.rounding import rounding
from tests.tiny_checkpoints import LIMIT, tiny_text_checkpoint

Tokenizer = lazy_import("tokenizers", "Tokenizer")
models = lazy_import("tokenizers", "models")
normalizers = lazy_import("tokenizers", "normalizers")
pre_tokenizers = lazy_import("tokenizers", "pre_tokenizers")
processors = lazy_import("tokenizers", "processors")
Siglip2Tokenizer = lazy_import("transformers", "Siglip2Tokenizer")
SiglipImageProcessorPil = lazy_import("transformers", "SiglipImageProcessorPil")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
PIXEL_ROUNDING = rounding("float32", 3, condition=7)
"""Scaled by 255, less a mean, over a deviation of .22: terms of up to 1.5 / .22."""
FRAME = np.random.default_rng(0).integers(0, 256, (272, 638, 3), dtype=np.uint8)
SPECIAL = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")


def processor_of(name):
    return json.loads(Path(__file__).with_name("processors").joinpath(f"{name}.json").read_text("utf-8"))


# As the repositories of Google have them: 3 is Pillow's bicubic filter, 2 the bilinear one of SigLIP 2.
SIGLIP = processor_of("siglip")
SIGLIP2 = SIGLIP | {"resample": 2}
# As OpenAI's repository had it in 2021.
CLIP = processor_of("clip")
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


OLDER_FILE = "preprocessor_config.json"
NEWER_FILE = "processor_config.json"
"""Newer releases of transformers write the processor's configuration into this file."""
ANY_CLASS_NAME = pytest.mark.parametrize(
    "class_name", ["SiglipImageProcessorFast", "SiglipImageProcessorPil", None]
)
"""Names that releases of transformers gave to one processor; None: the file says no name."""


def newer_content(processor, class_name):
    """Return what the newer file holds of a processor, under a name of its class."""
    return {"image_processor": processor | {"image_processor_type": class_name}}


@pytest.fixture
def tiny_with_processor(tmp_path):
    """Make a tiny checkpoint with the processor's configuration beside it, in a file of this name."""

    def make(family, processor, name=OLDER_FILE):
        folder = tiny_text_checkpoint(family, tmp_path / "net")
        write(folder, name, processor)
        return folder

    return make


@pytest.fixture
def tiny_siglip2(tiny_with_processor):
    """Make a tiny SigLIP 2 with a tokenizer of Gemma's class: tokens are letters, and ▁ for a blank."""

    def make(**config):
        folder = tiny_with_processor("siglip", SIGLIP2)
        (folder / "vocab.txt").unlink()
        tokens = (*SPECIAL, "▁", *string.ascii_letters)
        ids = {token: number for number, token in enumerate(tokens)}
        no_merges = []  # so that each letter stays a token
        tokenizer = Tokenizer(models.BPE(ids, no_merges))
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
        tokenizer.add_special_tokens(list(SPECIAL))
        text_and_end = "$A <eos>"
        tokenizer.post_processor = processors.TemplateProcessing(text_and_end, special_tokens=[("<eos>", 1)])
        tokenizer.save(str(folder / "tokenizer.json"))
        write(folder, "tokenizer_config.json", GEMMA | {"model_max_length": LIMIT} | config)
        return folder

    return make


def load_for_pictures(folder, **options):
    return load_backbone("clip", n_frames=1, weights=str(folder), compute=cpu(), **options)


def load_for_texts(folder):
    return load_text_backbone("clip-text", weights=str(folder), compute=cpu())


@pytest.mark.parametrize(
    ("number_of_filter", "preset", "resize", "citation"),
    [
        (3, "siglip", "pillow-bicubic", "Zhai et al."),
        (2, "siglip2", "pillow-bilinear", "Tschannen et al."),
    ],
    ids=["siglip", "siglip2"],
)
def test_a_siglip_resizes_with_the_filter_that_its_processor_names(
    tiny_with_processor, number_of_filter, preset, resize, citation
):
    """A file beside the weights says by Pillow's number with which filter pictures are resized.

    By this number alone a SigLIP, bicubic, is told from a SigLIP 2, bilinear, and cited.
    """
    folder = tiny_with_processor("siglip", SIGLIP | {"resample": number_of_filter})
    backbone = load_for_pictures(folder)

    prepared = backbone.prepare(FRAME)

    expected = Image.fromarray(FRAME).resize((224, 224), number_of_filter)
    assert np.array_equal(prepared, np.asarray(expected))
    record = backbone.provenance["preset"]
    assert record["name"] == preset
    assert record["resize"].endswith(resize)
    assert backbone.provenance["citation"].startswith(citation)


@pytest.mark.parametrize("processor", [SIGLIP, SIGLIP2], ids=["siglip", "siglip2"])
def test_the_recorded_constants_give_the_pixels_of_a_siglip_in_transformers(tiny_with_processor, processor):
    """A store records a scale and a shift, by which a prepared picture becomes what the network gets."""
    folder = tiny_with_processor("siglip", processor)
    backbone = load_for_pictures(folder)
    constants = backbone.provenance["preset"]["constants"]

    pixels = backbone.prepare(FRAME) * np.array(constants["scale"]) + np.array(constants["shift"])

    processor_of_transformers = SiglipImageProcessorPil.from_pretrained(folder)
    expected = processor_of_transformers([FRAME], return_tensors="np")["pixel_values"][0]
    assert np.abs(pixels.transpose(2, 0, 1) - expected).max() <= PIXEL_ROUNDING


@ANY_CLASS_NAME
def test_the_processor_of_siglip_2_is_read_from_the_newer_file_by_any_name_of_its_class(
    tiny_with_processor, class_name
):
    """Newer releases of transformers write processor_config.json, and call the class by other names.

    Here the file has the processor of a SigLIP 2. Such networks have the type "siglip", like the first ones;
    only the processor's bilinear filter tells them, so that pictures are prepared by the preset siglip2.
    """
    folder = tiny_with_processor("siglip", newer_content(SIGLIP2, class_name), NEWER_FILE)

    assert load_for_pictures(folder).provenance["preset"]["name"] == "siglip2"


@ANY_CLASS_NAME
def test_of_two_files_of_processors_the_newer_one_counts(tiny_with_processor, class_name):
    """Beside the weights, processor_config.json (the newer format) has the processor of a SigLIP 2.

    preprocessor_config.json (the older one) has that of a SigLIP. The newer one counts, as in transformers,
    by whatever name it calls the processor's class.
    """
    folder = tiny_with_processor("siglip", newer_content(SIGLIP2, class_name), NEWER_FILE)
    write(folder, OLDER_FILE, SIGLIP)

    backbone = load_for_pictures(folder)

    assert backbone.provenance["preset"]["name"] == "siglip2"


def test_the_processor_of_clip_in_its_format_of_2021_gives_the_preset_clip(tiny_with_processor):
    """It is the file that OpenAI's repository had in 2021."""
    folder = tiny_with_processor("clip", CLIP)

    assert load_for_pictures(folder).provenance["preset"]["name"] == "clip"
    assert load_network("clip", str(folder)).preset.name == "clip"


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_without_a_processor_the_usual_preset_is_taken(family, tmp_path):
    """Nothing beside the weights says how pictures are resized and normalised.

    There is a processor_config.json, but one of an older release of transformers, which names a class and has
    no settings for pictures. So they are prepared as for all CLIPs, by the preset `clip`, or as for all
    SigLIPs, by `siglip`.
    """
    folder = tiny_text_checkpoint(family, tmp_path / "net")
    file_without_settings_for_pictures = {"processor_class": "any"}
    write(folder, "processor_config.json", file_without_settings_for_pictures)

    backbone = load_for_pictures(folder)

    assert backbone.provenance["preset"]["name"] == family


def test_a_siglip_with_gemmas_tokenizer_is_taken_for_a_siglip_2(tiny_siglip2):
    """SigLIP 2 has the tokenizer of Gemma, and SigLIP has not. There is no file of a processor."""
    folder = tiny_siglip2()
    (folder / "preprocessor_config.json").unlink()

    assert load_for_pictures(folder).provenance["preset"]["name"] == "siglip2"


CLIPS_THAT_NO_PRESET_SERVES = [
    # Fields that are not CLIP's, and the one that the refusal names.
    ("clip", CLIP | {"do_flip_channel_order": True}, "do_flip_channel_order"),
    ("clip", CLIP | {"crop_size": {"height": 224, "width": 225}}, "crop_size"),
    ("clip", CLIP | {"size": 225, "crop_size": 225}, "size"),
]
NO_PRESET_SERVES = [
    *CLIPS_THAT_NO_PRESET_SERVES,
    ("siglip", SIGLIP2 | {"size": {"shortest_edge": 224}}, "size"),
    ("siglip", SIGLIP | {"do_center_crop": True, "crop_size": 200}, "crop_size"),
    ("siglip", SIGLIP | {"image_processor_type": "Siglip2ImageProcessor"}, "type"),
]


@pytest.mark.parametrize(("family", "processor", "field"), NO_PRESET_SERVES)
def test_a_processor_that_no_preset_serves_is_refused_by_its_field(
    tiny_with_processor, family, processor, field
):
    """One field of the processor's file is not as in any CLIP or SigLIP that is known."""
    folder = tiny_with_processor(family, processor)

    with pytest.raises(BackboneError, match=field) as refused:
        load_for_pictures(folder)

    assert "\n" not in str(refused.value)
    assert str(folder) in str(refused.value)


@pytest.mark.parametrize(
    ("family", "processor"), [(family, processor) for family, processor, _field in NO_PRESET_SERVES]
)
def test_where_the_user_names_a_preset_the_processor_beside_the_weights_is_not_read(
    tiny_with_processor, family, processor
):
    """Each of these processors asks for something that no preset does, such as another order of channels.

    Without a named preset, the weights would be refused for it. By the preset of its family the network can
    be used.
    """
    folder = tiny_with_processor(family, processor)

    backbone = load_for_pictures(folder, preset=family)

    assert backbone.provenance["preset"]["name"] == family


@pytest.mark.long
@pytest.mark.parametrize(("family", "processor", "field"), CLIPS_THAT_NO_PRESET_SERVES)
def test_load_network_refuses_a_processor_that_no_preset_serves_too(
    tiny_with_processor, family, processor, field
):
    """`load_network` gives studies the network of a backbone; the processor beside it is read as well."""
    folder = tiny_with_processor(family, processor)

    with pytest.raises(BackboneError, match=field):
        load_network(family, str(folder))


@pytest.mark.parametrize(
    ("family", "processor", "change", "class_name"),
    [
        ("siglip", SIGLIP2, {"rescale_factor": 1 / 127.5}, "SiglipImageProcessor"),
        ("clip", CLIP, {"image_mean": [0.5] * 3}, "CLIPImageProcessor"),
        ("clip", CLIP, {"image_std": [1, 1, 1]}, "CLIPImageProcessor"),
        ("clip", CLIP, {"size": 256}, "CLIPImageProcessor"),
    ],
)
def test_a_processor_whose_numbers_are_no_presets_is_recorded_by_the_name_of_its_class(
    tiny_with_processor, family, processor, change, class_name
):
    """The processor beside the weights is that of a CLIP or a SigLIP 2, but for one number (`change`).

    It can be followed, since its steps are those of a preset: resize, crop, scale, normalise. But it gives
    other pixels than any preset. So a store records the class of the processor in place of a preset's name.
    """
    folder = tiny_with_processor(family, processor | change)

    backbone = load_for_pictures(folder)

    assert backbone.provenance["preset"]["name"] == class_name


def test_a_processor_that_cannot_be_read_is_refused(tiny_with_processor):
    """A tiny CLIP has a processor's file beside its weights, of which only the first character is left."""
    folder = tiny_with_processor("clip", CLIP)
    (folder / "preprocessor_config.json").write_text("{")  # which is no JSON

    with pytest.raises(BackboneError, match="preprocessor_config"):
        load_for_pictures(folder)


WHERE_CAPITALS_DO_NOT_COUNT = pytest.mark.parametrize(
    "config", [{"do_lower_case": True}, {}, {"tokenizer_class": "GemmaTokenizerFast"}], ids=str
)


@WHERE_CAPITALS_DO_NOT_COUNT
def test_siglip_2_reads_capitals_as_small_letters(tiny_siglip2, config):
    """SigLIP 2 was trained on texts in small letters. The tokens are those of transformers' own tokenizer."""
    folder = tiny_siglip2(**config)
    backbone = load_for_texts(folder)

    capitals, small = backbone.tokenize(["A Woman", "a woman"])
    vector_of_capitals, vector_of_small = backbone.encode(np.array([capitals.ids, small.ids]))

    assert capitals == small
    expected_ids = Siglip2Tokenizer.from_pretrained(folder)("A Woman", padding="max_length")["input_ids"]
    assert list(small.ids) == expected_ids
    assert np.array_equal(vector_of_capitals, vector_of_small)


@WHERE_CAPITALS_DO_NOT_COUNT
def test_the_provenance_of_texts_of_siglip_2_says_that_capitals_do_not_count(tiny_siglip2, config):
    """SigLIP 2 reads texts in small letters, as its provenance must say: other texts give other vectors.

    The tokenizer's configuration (`config`) says so itself, or says nothing, as the published ones do.
    """
    folder = tiny_siglip2(**config)

    provenance = load_for_texts(folder).provenance

    assert provenance["tokenizer"]["lower_case"] is True


@pytest.mark.parametrize("network", ["texts", "pictures"])
def test_both_halves_of_a_siglip_2_cite_its_paper(tiny_siglip2, network):
    """The weights have the type of a SigLIP, whose paper is another one (Zhai et al.)."""
    folder = tiny_siglip2()
    load = {"texts": load_for_texts, "pictures": load_for_pictures}[network]

    assert load(folder).provenance["citation"].startswith("Tschannen et al.")


def test_texts_and_pictures_of_a_siglip_2_share_a_space(tiny_siglip2):
    """Vectors of one space can be compared: the provenance of both halves of the network names it."""
    folder = tiny_siglip2()

    space_of_texts = load_for_texts(folder).provenance["space"]
    space_of_pictures = load_for_pictures(folder).provenance["space"]

    assert space_of_texts == space_of_pictures


def test_a_tokenizer_that_asks_for_case_keeps_it(tiny_siglip2):
    """`do_lower_case: false` in the tokenizer's configuration overrides SigLIP 2's default."""
    folder = tiny_siglip2(do_lower_case=False)
    backbone = load_for_texts(folder)

    capitals, small = backbone.tokenize(["A Woman", "a woman"])

    assert capitals.ids != small.ids
    assert backbone.provenance["tokenizer"]["lower_case"] is False


def test_weights_fetch_brings_the_processor_beside_the_weights_too(tiny_siglip2, save_as_hub_snapshot):
    """The repository lab/net, in the cache of Hugging Face's hub, is a copy of a tiny SigLIP 2 in a folder.

    `weights fetch lab/net` names the processor's configuration among the files beside the weights, and the
    backbone then prepares pictures by it (preset siglip2). The weights are those of the folder.
    """
    folder = tiny_siglip2()
    save_as_hub_snapshot(folder)

    result = CliRunner().invoke(fetch, ["lab/net", "--json"], catch_exceptions=False)
    of_repository = load_backbone("clip", n_frames=1, weights="lab/net", compute=cpu()).provenance

    output = json.loads(result.stdout)
    assert "preprocessor_config.json" in output["beside"]
    assert of_repository["preset"]["name"] == "siglip2"
    assert of_repository["weights_sha256"] == output["sha256"]
    assert of_repository["weights_sha256"] == load_for_pictures(folder).provenance["weights_sha256"]
