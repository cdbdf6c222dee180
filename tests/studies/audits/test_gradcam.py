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


def network_of_two_outputs():
    """Make a network whose outputs are the means of the two channels of a convolution."""
    return nn.Sequential(nn.Conv2d(3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def hooks_on(layer):
    """List the functions that torch would call with the output of a layer."""
    return list(layer._forward_hooks.values())


def mapped_network(network, layer):
    """Describe a network to be mapped by the output of one of its layers."""
    return activation.MappedNetwork(network, layer, None, PRESETS["clip"], {"layer": "a layer"})


@pytest.fixture(scope="module")
def oracle(shared_data):
    return json.loads((shared_data / "audits" / "oracle.json").read_text(encoding="utf-8"))["gradcam"]


def double(values):
    return torch.tensor(values, dtype=torch.float64)


def score_and_map_of_oracles_input(oracle, network, score):
    """Map the oracle's activations by the similarity of a network's output to the oracle's text."""
    target = activation.similarity(double(oracle["text"]), score)
    return activation.grad_cam_map(
        mapped_network(network, network.last), double(oracle["acts"])[None], target
    )


@pytest.mark.parametrize(("name", "score"), [("dot_unnormalised_text", "dot"), ("cosine", "cosine")])
def test_score_and_map_of_a_network_that_pools_by_the_mean_are_the_oracles(oracle, name, score):
    """The network averages its activations over the picture and maps them linearly by the oracle's weights.

    The score is the cosine, or the dot product, of its output and a text. The oracle computed score and map
    from the same activations, weights and text in double precision.
    """
    expected = oracle["cases"][name]
    network = small.Pooled(double(oracle["W"]))

    similarity, cam = score_and_map_of_oracles_input(oracle, network, score)

    assert similarity == pytest.approx(expected["score"], rel=1e-9)
    np.testing.assert_allclose(cam, expected["cam"], **TOLERANCE_OF_DOUBLES)


def test_a_map_is_enlarged_bicubically_and_its_negative_values_are_cut(oracle):
    """A map of 4 x 4 places is enlarged to 8 x 8 pixels.

    The oracle enlarged the same map. Between places, bicubic curves may fall below 0, which a map must not.
    """
    case = oracle["cases"]["cosine"]
    map_of_places = np.array(case["cam"])

    enlarged = activation.enlarged(map_of_places, 8)

    expected = np.maximum(case["cam_bicubic_8x8"], 0)
    np.testing.assert_allclose(enlarged, expected, rtol=1e-6, atol=1e-6)


def test_score_and_map_of_a_network_that_pools_by_attention_are_the_oracles(oracle):
    """The network pools its activations by attention, as CLIP's ResNets do, with the oracle's weights.

    The oracle computed the score, a dot product with a text, and the map from the same activations, weights
    and text in double precision.
    """
    expected = oracle["cases"]["attention_pool_dot"]
    weights = {name: double(values) for name, values in expected["params"].items()}
    network = small.AttentionPooled(
        positions=weights["pos"],
        queries=weights["q"],
        keys=weights["k"],
        values=weights["v"],
        output=weights["c"],
        n_heads=expected["heads"],
    )

    similarity, cam = score_and_map_of_oracles_input(oracle, network, score="dot")

    assert similarity == pytest.approx(expected["score"], rel=1e-9)
    np.testing.assert_allclose(cam, expected["cam"], **TOLERANCE_OF_DOUBLES)


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory):
    """A tiny CLIP whose tokenizer knows letters."""
    return tiny_text_checkpoint("clip", tmp_path_factory.mktemp("clip"))


class PlainMap(NamedTuple):
    """Grad-CAM by transformers and autograd alone: the score, and the map before its negative part is cut."""

    score: float
    product_of_lengths: float
    """Of image and text, by which a cosine is divided."""
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
        product_of_lengths=float(image.detach().norm() * text.norm()),
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
    """A tiny CLIP maps a random picture; `plain_grad_cam` does so by transformers and autograd alone.

    They are equal but for rounding, which grows with the numbers that are added up: for a cosine these are at
    most 1, for a dot product at most the product of the two lengths.
    """
    network, text = clip_and_text
    picture = np.random.default_rng(0).integers(0, 256, (250, 300, 3), np.uint8)
    pixels = network.pixels(picture)

    similarity, cam = activation.grad_cam_map(network, pixels, activation.similarity(text, score))

    expected = plain_grad_cam(clip_folder, pixels, text, score)
    largest_score = expected.product_of_lengths if score == "dot" else 1.0
    assert similarity == pytest.approx(expected.score, abs=ROUNDING * largest_score)
    negative_cut = np.maximum(expected.uncut, 0)
    largest_of_map = np.abs(expected.uncut).max()
    np.testing.assert_allclose(cam, negative_cut, atol=ROUNDING * largest_of_map)


def test_the_embedding_of_a_text_is_that_of_transformers(clip_folder, clip_and_text):
    """The fixture holds the embedding of "a cat" by a tiny CLIP; transformers embeds the same words."""
    _, embedding = clip_and_text

    with quiet():
        model = CLIPModel.from_pretrained(clip_folder).eval()
    token_ids = AutoTokenizer.from_pretrained(clip_folder)("a cat", return_tensors="pt")["input_ids"]
    expected = model.get_text_features(token_ids).pooler_output[0].detach()
    assert_close(embedding, expected, ROUNDING)


def test_maps_of_a_clip_network_name_the_layer_they_are_made_at_and_its_space_of_embeddings(clip_and_text):
    """A tiny CLIP network has two blocks of layers, called 0 and 1.

    Grad-CAM maps are made of what enters the last block, which begins with the norm `layer_norm1`. Their
    record also has the network's space of embeddings, by which a text is known to fit it.
    """
    network, _ = clip_and_text

    assert network.about["layer"] == "vision_model.encoder.layers.1.layer_norm1"
    assert network.about["space"].startswith("clip sha256:")


def test_a_text_whose_embedding_has_no_length_has_no_cosine_to_map():
    """A cosine is divided by the length of the text's embedding, and the one of zeros has length 0."""
    network = network_of_two_outputs()
    to_map = mapped_network(network, layer=network[0])
    picture = torch.ones(1, 3, 4, 4)
    embedding_of_zeros = torch.zeros(2)
    cosine = activation.similarity(embedding_of_zeros, "cosine")

    with pytest.raises(BackboneError):
        activation.grad_cam_map(to_map, picture, cosine)


@pytest.mark.parametrize("number", [0, 9], ids=["mapped", "failed, as there is no such output"])
def test_no_hook_of_a_map_stays_on_the_network(number):
    """To read what a layer gives, a map hooks a function onto it, which it must take off afterwards.

    The network has the outputs 0 and 1: a map of output 0 is made, and one of output 9 fails.
    """
    network = network_of_two_outputs()
    first_layer = network[0]
    picture = torch.ones(1, 3, 4, 4)

    with suppress(IndexError):
        activation.grad_cam_map(mapped_network(network, first_layer), picture, output_number(number))

    assert hooks_on(first_layer) == []


def test_a_text_of_more_tokens_than_clip_takes_is_not_mapped(clip_folder):
    """The tokenizer makes 18 tokens, of 16 letters, a begin and an end. This CLIP takes 16."""
    _, embed = activation.clip_to_map(str(clip_folder), cpu())

    sixteen_letters = "cat cat cat cat cat s"
    with pytest.raises(BackboneError, match="18 tokens"):
        embed(sixteen_letters)


def test_a_clip_without_its_tokenizer_cannot_be_mapped(tmp_path):
    """A map is of an image and a text, which the tokenizer would cut into tokens."""
    clip_without_tokenizer = tiny_checkpoint("clip", tmp_path / "bare")

    with pytest.raises(BackboneError, match="tokenizer"):
        activation.clip_to_map(str(clip_without_tokenizer), cpu())


def test_a_network_that_is_no_clip_cannot_be_mapped(tmp_path):
    """SigLIP embeds images and texts too, but has other layers."""
    siglip = tiny_checkpoint("siglip", tmp_path / "siglip")

    with pytest.raises(BackboneError, match="siglip"):
        activation.clip_to_map(str(siglip), cpu())


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
    """The image `warm` has a red disc in its upper left corner, `cold` a blue one in its lower right one.

    Output 0 of the network is how red an image is, output 1 how blue. Each image is mapped by its own colour,
    and `warm` by blue besides, which is nowhere in it.
    """
    table = "image_id,text,group\nwarm,red,own\ncold,blue,own\nwarm,blue,other\n"
    (lab / "pairs.csv").write_text(table, encoding="utf-8")
    images = read_manifest(lab / "stills.csv")
    pairs = read_pairs(lab / "pairs.csv", images)
    network = small.Detectors()
    targets = {"red": output_number(0), "blue": output_number(1)}

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
    ("read", "table", "message"),
    [
        (read_pairs, "image_id,text\ngone,a man\n", "gone"),
        (read_pairs, "image_id,text\nwarm,a man\nwarm,a man\n", "warm"),
        (read_pairs, "image_id,text\n", ""),
        (every_pair, "\n", ""),
        (every_pair, "text_id,text\n1,man\n2,man\n", "man"),
    ],
    ids=["an image that is not there", "a pair twice", "no pair", "no text", "a text twice"],
)
def test_a_bad_list_of_pairs_or_texts_is_refused_with_its_name_and_place(lab, read, table, message):
    """There are the images `warm` and `cold`.

    `read_pairs` reads a table of images and texts to map, `every_pair` one of texts for each image.
    """
    images = read_manifest(lab / "stills.csv")
    (lab / "given.csv").write_text(table, encoding="utf-8")

    with pytest.raises(ObygazeError, match=rf"given\.csv.*{message}"):
        read(lab / "given.csv", images)


@pytest.fixture
def map_images(clip_folder, capsys, obygaze):
    """Map the images of a manifest, in the folder of `lab`, into m.zarr: the exit code, output and errors."""

    def map_images(manifest, *options):
        capsys.readouterr()
        words = ["--prompts", "p.txt", "--weights", str(clip_folder), "--out", "m.zarr"]
        code = obygaze("gradcam", manifest, *words, *options)
        return (code, *capsys.readouterr())

    return map_images


def test_the_command_gradcam_writes_maps_of_the_pairs_that_it_prints(lab, map_images):
    """It maps the images of stills.csv, each by each of some words, into the file m.zarr.

    A pair is an image and a text, with its score, the cosine of their embeddings.
    """
    code, printed, _ = map_images("stills.csv", "--json")

    assert code == 0
    maps = read_maps(lab / "m.zarr")
    assert json.loads(printed)["pairs"] == [dict(pair) for pair in maps.pairs]
    assert maps.about["score"] == "cosine"


def name_films_in_place_of_images(images, films):
    """Copy a manifest of images with the names of films."""
    text = images.read_text(encoding="utf-8")
    films.write_text(text.replace(".png", ".mp4"), encoding="utf-8")


def cut_in_half(path):
    """Damage a file: leave its first half."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def test_a_manifest_of_films_is_refused_and_maps_that_were_made_before_are_kept(lab, map_images):
    """The command has mapped the images `warm` and `cold` into m.zarr, and is to replace these maps.

    Its manifest names films now, `cold` the first of them.
    """
    map_images("stills.csv")
    maps_before = read_maps(lab / "m.zarr")
    name_films_in_place_of_images(lab / "stills.csv", lab / "films.csv")

    exit_code, _, errors = map_images("films.csv", "--force")

    assert exit_code == 1
    assert "cold" in errors
    assert read_maps(lab / "m.zarr").pairs == maps_before.pairs


def test_a_damaged_image_is_named_and_maps_that_were_made_before_are_kept(lab, map_images):
    """The command has mapped the images `warm` and `cold` into m.zarr, and is to replace these maps.

    Meanwhile the file of `warm` was cut in half.
    """
    map_images("stills.csv")
    maps_before = read_maps(lab / "m.zarr")
    cut_in_half(lab / "stills" / "warm.png")

    exit_code, _, errors = map_images("stills.csv", "--force")

    assert exit_code == 1
    assert "warm.png" in errors
    assert read_maps(lab / "m.zarr").pairs == maps_before.pairs
