"""Live Grad-CAM: the numbers of autograd and of the published rules, and light where it was planted."""

import json
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image, ImageDraw

from obygaze_features.backbones.presets import PRESETS
from obygaze_features.errors import BackboneError, ObygazeError
from obygaze_features.manifest import read_manifest
from obygaze_studies.saliency.maps_file import read_maps
from tests.lazy_import import cpu, lazy_import
from tests.rounding import assert_close, network_rounding
from tests.tiny_checkpoints import tiny_checkpoint, tiny_text_checkpoint

torch = lazy_import("torch")
small = lazy_import("tests.studies.audits.small_networks")
nn = lazy_import("torch.nn")
AutoTokenizer = lazy_import("transformers", "AutoTokenizer")
CLIPModel = lazy_import("transformers", "CLIPModel")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
activation = lazy_import("obygaze_studies.saliency.class_activation")
every_pair = lazy_import("obygaze_studies.saliency.class_activation", "every_pair")
read_pairs = lazy_import("obygaze_studies.saliency.class_activation", "read_pairs")

pytestmark = pytest.mark.usefixtures("grad_cam")

ROUNDING = network_rounding(3 * 56 * 56)
TOLERANCE_OF_DOUBLES = {"rtol": 1e-9, "atol": 1e-12}


def output_number(number):
    """Return the target of a map: the output of this number."""
    return lambda outputs: outputs[number]


def mapped_network(network, layer):
    """Describe a network to be mapped by the output of one of its layers."""
    return activation.MappedNetwork(network, layer, None, PRESETS["clip"], {"layer": "a layer"})


@pytest.fixture(scope="module")
def oracle(shared_data):
    return json.loads((shared_data / "audits" / "oracle.json").read_text(encoding="utf-8"))["gradcam"]


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def score_and_map(oracle, network, score):
    """Map the oracle's activations by the similarity of a network's output to the oracle's text."""
    target = activation.similarity(double(oracle["text"]), score)
    return activation.grad_cam_map(
        mapped_network(network, network.last), double(oracle["acts"])[None], target
    )


@pytest.mark.parametrize(("name", "score"), [("dot_unnormalised_text", "dot"), ("cosine", "cosine")])
def test_score_and_map_of_a_network_that_pools_by_the_mean_are_the_oracles(oracle, name, score):
    case = oracle["cases"][name]
    similarity, cam = score_and_map(oracle, small.Pooled(double(oracle["W"])), score)
    assert similarity == pytest.approx(case["score"], rel=1e-9)
    np.testing.assert_allclose(cam, case["cam"], **TOLERANCE_OF_DOUBLES)


def test_a_map_is_enlarged_bicubically_and_its_negative_values_are_cut(oracle):
    case = oracle["cases"]["cosine"]
    enlarged = activation.enlarged(np.array(case["cam"]), 8)
    np.testing.assert_allclose(enlarged, np.maximum(case["cam_bicubic_8x8"], 0), rtol=1e-6, atol=1e-6)


def test_score_and_map_of_a_network_that_pools_by_attention_are_the_oracles(oracle):
    case = oracle["cases"]["attention_pool_dot"]
    positions, queries, keys, values, output = (
        double(case["params"][name]) for name in ("pos", "q", "k", "v", "c")
    )
    network = small.AttentionPooled(positions, queries, keys, values, output, case["heads"])
    similarity, cam = score_and_map(oracle, network, "dot")
    assert similarity == pytest.approx(case["score"], rel=1e-9)
    np.testing.assert_allclose(cam, case["cam"], **TOLERANCE_OF_DOUBLES)


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory):
    """A tiny CLIP whose tokenizer knows letters."""
    return tiny_text_checkpoint("clip", tmp_path_factory.mktemp("clip"))


class PlainMap(NamedTuple):
    """Grad-CAM by transformers and autograd alone: the score, and the map before its negative part is cut."""

    score: float
    length: float
    """Product of the lengths of image and text, by which a cosine is divided."""
    uncut: np.ndarray


def plain_grad_cam(folder, pixels, text, score):
    """Map a picture of 4 x 4 patches from the input of the last block of a CLIP, as Grad-CAM's paper says.

    A channel weighs as much as the mean over places of the score's gradient by it (equation 1). The map is
    the weighted sum of channels at each place (equation 2, whose cut of negative values is left to the test).
    """
    with quiet():
        model = CLIPModel.from_pretrained(folder).eval()
    outputs = []
    layer = model.vision_model.encoder.layers[-1].layer_norm1
    layer.register_forward_hook(lambda _module, _arguments, output: outputs.append(output))
    image = model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)[0]
    (acts,) = outputs
    cosine = torch.nn.functional.cosine_similarity(image, text, dim=0)
    value = cosine if score == "cosine" else image @ text
    (gradient,) = torch.autograd.grad(value, acts)

    is_patch = slice(1, None)  # the first token is the class token, which has no place in the picture
    weight_of_channel = gradient[0, is_patch].detach().double().mean(dim=0)
    uncut = acts[0, is_patch].detach().double() @ weight_of_channel
    return PlainMap(
        score=float(value.detach()),
        length=float(image.detach().norm() * text.norm()),
        uncut=uncut.numpy().reshape(4, 4),
    )


@pytest.fixture(scope="module")
def clip_and_text(clip_folder):
    """A CLIP to map, and the embedding of a text."""
    network, embed = activation.clip_to_map(str(clip_folder), cpu())
    return network, embed("a cat")


@pytest.mark.parametrize("score", ["cosine", "dot"])
def test_the_map_of_a_clip_is_that_of_transformers_and_autograd_on_its_last_block(
    clip_folder, clip_and_text, score
):
    """Score and map are equal but for rounding, which grows with the numbers that are added up.

    For a cosine these are at most 1, for a dot product at most the product of the two lengths.
    """
    network, text = clip_and_text
    frame = np.random.default_rng(0).integers(0, 256, (250, 300, 3), np.uint8)
    pixels = network.pixels(frame)
    similarity, cam = activation.grad_cam_map(network, pixels, activation.similarity(text, score))
    expected = plain_grad_cam(clip_folder, pixels, text, score)

    largest_score = expected.length if score == "dot" else 1.0
    assert similarity == pytest.approx(expected.score, abs=ROUNDING * largest_score)
    largest_of_map = np.abs(expected.uncut).max()
    np.testing.assert_allclose(cam, np.maximum(expected.uncut, 0), atol=ROUNDING * largest_of_map)


def test_the_embedding_of_a_text_is_that_of_transformers(clip_folder, clip_and_text):
    network, text = clip_and_text
    with quiet():
        model = CLIPModel.from_pretrained(clip_folder).eval()
    ids = AutoTokenizer.from_pretrained(clip_folder)("a cat", return_tensors="pt")["input_ids"]
    assert_close(text, model.get_text_features(ids).pooler_output[0].detach(), ROUNDING)
    assert network.about["layer"] == "vision_model.encoder.layers.1.layer_norm1"
    assert network.about["space"].startswith("clip sha256:")


def test_a_text_whose_embedding_has_no_length_has_no_cosine_to_map():
    network = nn.Sequential(nn.Conv2d(3, 2, (4, 3)), nn.Flatten())
    text_without_length = torch.zeros(2)
    target = activation.similarity(text_without_length, "cosine")
    with pytest.raises(BackboneError):
        activation.grad_cam_map(mapped_network(network, network[0]), torch.ones(1, 3, 4, 3), target)


@pytest.mark.parametrize("number", [0, 9], ids=["mapped", "failed, as there is no such output"])
def test_no_hook_of_a_map_stays_on_the_network(number):
    network = nn.Sequential(nn.Conv2d(3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with suppress(IndexError):
        activation.grad_cam_map(
            mapped_network(network, network[0]), torch.ones(1, 3, 4, 4), output_number(number)
        )
    assert not network[0]._forward_hooks


def test_texts_and_networks_that_cannot_be_mapped_are_refused(clip_folder, tmp_path):
    _, embed = activation.clip_to_map(str(clip_folder), cpu())
    sixteen_letters = "cat " * 5 + "s"  # each is a token, with a first and a last one besides
    with pytest.raises(BackboneError, match="18 tokens"):
        embed(sixteen_letters)
    with pytest.raises(BackboneError, match="tokenizer"):
        activation.clip_to_map(str(tiny_checkpoint("clip", tmp_path / "bare")), cpu())
    with pytest.raises(BackboneError, match="siglip"):
        activation.clip_to_map(str(tiny_checkpoint("siglip", tmp_path / "siglip")), cpu())


# The command


@pytest.fixture
def lab(tmp_path, monkeypatch, obygaze):
    """A folder with two drawings and their manifest."""
    (tmp_path / "stills").mkdir()
    for name, colour, place in (("warm", "red", (0, 0, 60, 60)), ("cold", "blue", (160, 160, 223, 223))):
        image = Image.new("RGB", (224, 224), (128, 128, 128))
        ImageDraw.Draw(image).ellipse(place, fill=colour)
        image.save(tmp_path / "stills" / f"{name}.png")
    (tmp_path / "p.txt").write_text("a cat\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert obygaze("manifest", "import", "images", "stills", "--out", "stills.csv") == 0
    return tmp_path


def test_the_map_of_a_detector_of_a_colour_is_light_where_this_colour_is_and_empty_elsewhere(lab):
    """Outputs 0 and 1 of the network detect red and blue, and `warm` shows a red disc, `cold` a blue one."""
    (lab / "pairs.csv").write_text("image_id,text,group\nwarm,0,own\ncold,1,own\nwarm,1,other\n", "utf-8")
    images = read_manifest(lab / "stills.csv")
    network = small.Detectors()
    targets = {"0": output_number(0), "1": output_number(1)}
    pairs = read_pairs(lab / "pairs.csv", images)

    maps = activation.map_pairs(images, pairs, mapped_network(network, network.last), targets, {})

    red_in_red, blue_in_blue, blue_in_red = maps.raw
    top_left = red_in_red[:80, :80]  # around the red disc, of 224 x 224 pixels
    bottom_right = blue_in_blue[144:, 144:]  # around the blue disc
    assert top_left.sum() > 0.95 * red_in_red.sum()
    assert bottom_right.sum() > 0.95 * blue_in_blue.sum()
    assert not blue_in_red.any()
    assert [pair["peak"] > 0 for pair in maps.pairs] == [True, True, False]
    assert list(maps.by_group()) == ["own", "other"]


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_pairs, "image_id,text\ngone,0\n", "gone"),
        (read_pairs, "image_id,text\nwarm,0\nwarm,0\n", "warm"),
        (read_pairs, "image_id,text\n", ""),
        (every_pair, "\n", ""),
        (every_pair, "text_id,text\n1,man\n2,man\n", "man"),
    ],
)
def test_bad_lists_of_pairs_are_named(lab, read, text, message):
    (lab / "given.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ObygazeError, match=rf"given\.csv.*{message}"):
        read(lab / "given.csv", read_manifest(lab / "stills.csv"))


@pytest.fixture
def map_images(clip_folder, capsys, obygaze):
    """Map the images of a manifest, in the folder of `lab`, into m.zarr: the exit code, output and errors."""

    def map_images(manifest, *options):
        capsys.readouterr()
        words = ["--prompts", "p.txt", "--weights", str(clip_folder), "--out", "m.zarr"]
        code = obygaze("gradcam", manifest, *words, *options)
        return (code, *capsys.readouterr())

    return map_images


def test_the_command_keeps_the_maps_that_it_shows(lab, map_images):
    code, out, _ = map_images("stills.csv", "--json")
    assert code == 0
    maps = read_maps(lab / "m.zarr")
    assert json.loads(out)["pairs"] == [dict(pair) for pair in maps.pairs]
    assert maps.about["score"] == "cosine"


def test_a_film_or_a_damaged_image_is_named_and_the_maps_that_are_there_are_kept(lab, map_images):
    map_images("stills.csv")
    maps = read_maps(lab / "m.zarr")

    stills = (lab / "stills.csv").read_text(encoding="utf-8")
    (lab / "films.csv").write_text(stills.replace(".png", ".mp4"), encoding="utf-8")
    code, _, err = map_images("films.csv", "--force")
    assert code == 1
    assert "cold" in err

    image = lab / "stills" / "warm.png"
    data = image.read_bytes()
    image.write_bytes(data[: len(data) // 2])
    code, _, err = map_images("stills.csv", "--force")
    assert code == 1
    assert "warm.png" in err
    assert read_maps(lab / "m.zarr").pairs == maps.pairs
