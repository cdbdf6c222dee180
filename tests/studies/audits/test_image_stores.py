"""A folder of images becomes a store in a recorded space, which the audits of embeddings read."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from obygaze_features.backbones import load_backbone
from obygaze_features.errors import ExtractError
from obygaze_features.extraction import Job
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import open_store
from obygaze_studies.commands.audit_commands import read_objects
from obygaze_studies.gender_score.belief_revision import objects_by_image
from tests.tiny_checkpoints import tiny_text_checkpoint

SHAPES = ("disc", "box", "line")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return tiny_text_checkpoint("clip", tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder with three drawings, of different sizes and formats."""
    folder = tmp_path_factory.mktemp("drawn") / "shapes"
    folder.mkdir()
    for number, (shape, suffix) in enumerate(zip(SHAPES, ("png", "jpg", "webp"), strict=True)):
        image = Image.new("RGB", (240 + 40 * number, 260), (240, 240, 230))
        draw = ImageDraw.Draw(image)
        {"disc": draw.ellipse, "box": draw.rectangle, "line": draw.line}[shape](
            (30, 40, 200, 180), fill="navy"
        )
        image.save(folder / f"{shape}.{suffix}")
    return folder


@pytest.fixture(scope="module")
def store(drawn, weights, obygaze):
    """The drawings in a store, extracted by two commands."""
    place = drawn.parent
    assert obygaze("manifest", "import", "images", drawn, "--out", place / "shapes.csv") == 0
    result = obygaze(
        *("extract", place / "shapes.csv", place / "stores" / "shapes", "--backbone", "clip"),
        *("--weights", weights, "--workers", 1, "--hash-sources"),
    )
    assert result == 0
    return place / "stores" / "shapes-1.0.0"


@pytest.mark.long
def test_the_embedding_is_that_of_the_pixels_in_the_file(store, drawn, weights):
    """The store has drawings, such as `disc`, that commands extracted with a tiny CLIP.

    An image is a clip of one frame, so that its one frame has the vector of the image.
    """
    backbone = load_backbone("clip", n_frames=1, weights=str(weights))
    with Image.open(drawn / "disc.png") as image:
        pixels = backbone.prepare(np.array(image))
    clips_of_frames = pixels[np.newaxis, np.newaxis]
    (expected,) = backbone.encode(clips_of_frames)["pooled"]

    group = open_store(store)["clip"]

    np.testing.assert_array_equal(group.read("disc", "pooled"), expected)
    (only_frame,) = group.read("disc", "frames")
    np.testing.assert_array_equal(only_frame, expected)
    assert group.provenance["sampling"] == {"policy": "uniform", "n": 1}


def test_an_extraction_of_images_and_videos_into_one_store_is_refused_by_a_name_of_each(tmp_path):
    """An image has one frame and a video has many, so that a store would hold vectors of two kinds."""
    clips = (Clip("a", "m", "a.png"), Clip("b", "m", "b.mp4"))
    backbone = load_backbone("descriptors", n_frames=1)

    with pytest.raises(ExtractError, match=r"a\.png.*b\.mp4"):
        Job(Manifest(clips, tmp_path), "mixed", (backbone,))


def probabilities_by_transformers(weights, store):
    """The probability of each shape in each drawing, by transformers: drawing -> shape -> probability."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    network = transformers.CLIPModel.from_pretrained(weights)
    tokenizer = transformers.CLIPTokenizer.from_pretrained(weights)
    tokens = tokenizer([f"a photo of a {shape}" for shape in SHAPES], padding=True, return_tensors="pt")
    with torch.no_grad():
        texts = network.get_text_features(**tokens)
        texts = getattr(texts, "pooler_output", texts)  # what versions of transformers return differs
        scale = network.logit_scale.exp()
    group = open_store(store)["clip"]
    probabilities = {}
    for drawing, features in zip(group.clip_ids, group.pooled(), strict=True):
        image = torch.from_numpy(features)[None]
        cosines = torch.nn.functional.cosine_similarity(image, texts)
        by_shape = torch.softmax(scale * cosines, 0).tolist()
        probabilities[drawing] = dict(zip(SHAPES, by_shape, strict=True))
    return probabilities, float(scale)


@pytest.fixture
def classify_by_commands(store, weights, obygaze, tmp_path, monkeypatch):
    """Return a function that finds the shapes in the drawings by three commands, and reads the result."""

    def classify(scale):
        monkeypatch.chdir(tmp_path)
        Path("shapes.txt").write_text("\n".join([*SHAPES, ""]), encoding="utf-8")
        audit = ("audit", "objects", "--objects-list", "shapes.txt")
        assert obygaze(*audit, "--list-texts", "prompts.csv") == 0
        extract = ("extract", "prompts.csv", "texts", "--backbone", "clip-text", "--weights", weights)
        assert obygaze(*extract) == 0
        of_stores = ("--images", store, "--texts", "texts-1.0.0", "--scale", scale)
        assert obygaze(*audit, *of_stores, "--out", "objects.csv") == 0
        return objects_by_image(read_objects([Path("objects.csv")]))

    return classify


def test_objects_that_clip_finds_in_images_have_the_probabilities_that_transformers_gives(
    store, weights, classify_by_commands
):
    """The three drawings are of a disc, a box and a line, and each of these is looked for in each drawing.

    The probability of an object is a softmax over the three of the cosines of image and texts, times the
    scale of the CLIP. Three commands compute it, and so does transformers alone.
    """
    probabilities_of_drawing, scale = probabilities_by_transformers(weights, store)

    objects_of_drawing = classify_by_commands(scale)

    assert objects_of_drawing.keys() == {"disc", "box", "line"}
    for drawing, objects in objects_of_drawing.items():
        probability_of_object = {detected.label: detected.confidence for detected in objects}
        assert probability_of_object == pytest.approx(probabilities_of_drawing[drawing], abs=1e-5)
        in_order_of_list = list(probability_of_object.values())
        assert in_order_of_list == sorted(in_order_of_list, reverse=True)
