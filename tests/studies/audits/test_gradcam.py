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
from tests.later import cpu, later
from tests.rounding import assert_close, network_rounding
from tests.tiny_checkpoints import tiny_checkpoint, tiny_text_checkpoint

torch = later("torch")
small = later("tests.studies.audits.small_networks")
nn = later("torch.nn")
AutoTokenizer = later("transformers", "AutoTokenizer")
CLIPModel = later("transformers", "CLIPModel")
quiet = later("obygaze_features.backbones.checkpoint", "quiet")
Compute = later("obygaze_features.backbones.compute", "Compute")
activation = later("obygaze_studies.saliency.class_activation")
every_pair = later("obygaze_studies.saliency.class_activation", "every_pair")
read_pairs = later("obygaze_studies.saliency.class_activation", "read_pairs")

pytestmark = pytest.mark.usefixtures("grad_cam")

SAME = network_rounding(3 * 56 * 56)
TIGHT = {"rtol": 1e-9, "atol": 1e-12}


def scores_of(number):
    return lambda outputs: outputs[number]


def mapped(network, layer, places=None):
    return activation.MappedNetwork(network, layer, places, PRESETS["clip"], {"layer": "it"})


@pytest.fixture(scope="module")
def oracle(shared_data):
    return json.loads((shared_data / "audits" / "oracle.json").read_text(encoding="utf-8"))["gradcam"]


@pytest.mark.parametrize(("name", "score"), [("dot_unnormalised_text", "dot"), ("cosine", "cosine")])
def test_average_pooling_gives_the_expected_maps(oracle, name, score):
    acts = torch.tensor(oracle["acts"], dtype=torch.float64)
    text = torch.tensor(oracle["text"], dtype=torch.float64)
    weight = torch.tensor(oracle["W"], dtype=torch.float64)
    network = small.Pooled(weight)
    case = oracle["cases"][name]
    taken, cam = activation.grad_cam_map(
        mapped(network, network.last), acts[None], activation.similarity(text, score)
    )
    assert taken == pytest.approx(case["score"], rel=1e-9)
    np.testing.assert_allclose(cam, case["cam"], **TIGHT)
    expected = np.maximum(case["cam_bicubic_8x8"], 0)
    np.testing.assert_allclose(activation.enlarged(cam, 8), expected, rtol=1e-6, atol=1e-6)


def test_attention_pooling_gives_the_expected_map(oracle):
    case = oracle["cases"]["attention_pool_dot"]
    arrays = [torch.tensor(case["params"][key], dtype=torch.float64) for key in ("pos", "q", "k", "v", "c")]
    network = small.AttentionPooled(*arrays, case["heads"])
    acts = torch.tensor(oracle["acts"], dtype=torch.float64)
    text = torch.tensor(oracle["text"], dtype=torch.float64)
    taken, cam = activation.grad_cam_map(
        mapped(network, network.last), acts[None], activation.similarity(text, "dot")
    )
    assert taken == pytest.approx(case["score"], rel=1e-9)
    np.testing.assert_allclose(cam, case["cam"], **TIGHT)


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
    """Map a picture of 4 x 4 patches from the input of the last block of a CLIP, as the rule is written."""
    with quiet():
        model = CLIPModel.from_pretrained(folder).eval()
    inputs = []
    last = model.vision_model.encoder.layers[-1].layer_norm1
    last.register_forward_hook(lambda _module, _arguments, output: inputs.append(output))
    image = model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)[0]
    value = image @ text
    if score == "cosine":
        value = torch.nn.functional.cosine_similarity(image, text, dim=0)
    (gradient,) = torch.autograd.grad(value, inputs[0])
    patches = inputs[0][0, 1:].detach().double().numpy()  # the first place is the class token's
    weights = gradient[0, 1:].detach().double().numpy().mean(axis=0)
    length = float(image.detach().norm() * text.norm())
    return PlainMap(float(value.detach()), length, (patches @ weights).reshape(4, 4))


@pytest.fixture(scope="module")
def clip_and_text(clip_folder):
    """A CLIP to map, and the embedding of a text."""
    whole, embed = activation.clip_to_map(str(clip_folder), cpu())
    return whole, embed("a cat")


@pytest.mark.parametrize("score", ["cosine", "dot"])
def test_a_clip_is_mapped_as_autograd_does_from_its_last_block(clip_folder, clip_and_text, score):
    whole, text = clip_and_text
    frame = np.random.default_rng(0).integers(0, 256, (250, 300, 3), np.uint8)
    pixels = whole.pixels(frame)
    taken, cam = activation.grad_cam_map(whole, pixels, activation.similarity(text, score))
    plain = plain_grad_cam(clip_folder, pixels, text, score)
    scale = plain.length if score == "dot" else 1.0
    assert taken == pytest.approx(plain.score, abs=SAME * scale)
    np.testing.assert_allclose(cam, np.maximum(plain.uncut, 0), atol=SAME * np.abs(plain.uncut).max())


def test_a_text_is_embedded_as_transformers_does(clip_folder, clip_and_text):
    _, text = clip_and_text
    with quiet():
        model = CLIPModel.from_pretrained(clip_folder).eval()
    ids = AutoTokenizer.from_pretrained(clip_folder)("a cat", return_tensors="pt")["input_ids"]
    assert_close(text, model.get_text_features(ids).pooler_output[0].detach(), SAME)


def test_a_map_says_from_which_layer_and_in_which_space_it_is(clip_and_text):
    whole, _ = clip_and_text
    assert whole.about["layer"] == "vision_model.encoder.layers.1.layer_norm1"
    assert whole.about["space"].startswith("clip sha256:")


def test_a_target_that_is_not_finite_is_refused():
    network = nn.Sequential(nn.Conv2d(3, 2, (4, 3)), nn.Flatten())
    with pytest.raises(BackboneError):
        activation.grad_cam_map(
            mapped(network, network[0]),
            torch.ones(1, 3, 4, 3),
            activation.similarity(torch.zeros(2), "cosine"),
        )


def test_no_hook_stays_behind():
    network = nn.Sequential(nn.Conv2d(3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    for target in (scores_of(0), scores_of(9)):
        with suppress(IndexError):
            activation.grad_cam_map(mapped(network, network[0]), torch.ones(1, 3, 4, 4), target)
        assert not network[0]._forward_hooks


def test_a_text_too_long_or_a_folder_without_tokenizer_is_refused(clip_folder, tmp_path):
    _, embed = activation.clip_to_map(str(clip_folder), cpu())
    with pytest.raises(BackboneError, match="18 tokens"):
        embed("cat " * 5 + "s")
    bare = tiny_checkpoint("clip", tmp_path / "bare")
    with pytest.raises(BackboneError, match="tokenizer"):
        activation.clip_to_map(str(bare), cpu())
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


def test_a_planted_detector_lights_up_where_its_colour_is(lab):
    (lab / "pairs.csv").write_text("image_id,text,group\nwarm,0,own\ncold,1,own\nwarm,1,other\n", "utf-8")
    images = read_manifest(lab / "stills.csv")
    network = small.Detectors()
    targets = {"0": scores_of(0), "1": scores_of(1)}
    result = activation.map_pairs(
        images, read_pairs(lab / "pairs.csv", images), mapped(network, network.last), targets, {}
    )
    warm, cold, other = result.raw
    assert warm[:80, :80].sum() > 0.95 * warm.sum()
    assert cold[144:, 144:].sum() > 0.95 * cold.sum()
    assert not other.any()
    assert [pair["peak"] > 0 for pair in result.pairs] == [True, True, False]
    assert list(result.by_group()) == ["own", "other"]


@pytest.mark.parametrize(
    ("read", "text", "place"),
    [
        (read_pairs, "image_id,text\ngone,0\n", "gone"),
        (read_pairs, "image_id,text\nwarm,0\nwarm,0\n", "warm"),
        (read_pairs, "image_id,text\n", ""),
        (every_pair, "\n", ""),
        (every_pair, "text_id,text\n1,man\n2,man\n", "man"),
    ],
)
def test_bad_lists_of_pairs_are_named(lab, read, text, place):
    (lab / "given.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ObygazeError, match=rf"given\.csv.*{place}"):
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


def test_a_manifest_of_films_is_refused(lab, map_images):
    stills = (lab / "stills.csv").read_text(encoding="utf-8")
    (lab / "films.csv").write_text(stills.replace(".png", ".mp4"), encoding="utf-8")
    code, _, err = map_images("films.csv")
    assert code == 1
    assert "cold" in err


def test_a_damaged_image_is_named_and_the_maps_that_are_there_are_kept(lab, map_images):
    map_images("stills.csv")
    maps = read_maps(lab / "m.zarr")
    image = lab / "stills" / "warm.png"
    data = image.read_bytes()
    image.write_bytes(data[: len(data) // 2])
    code, _, err = map_images("stills.csv", "--force")
    assert code == 1
    assert "warm.png" in err
    assert read_maps(lab / "m.zarr").pairs == maps.pairs
