"""A network in an ONNX file: what onnxruntime gives of the pictures that the TOML describes, or a refusal."""

import hashlib
import pickle
import re
import sys
from math import inf, nan
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from scipy.special import softmax

from obygaze.demo_corpus import write_video
from obygaze_features import Clip, Manifest, extract, load_backbone
from obygaze_features.backbones import onnx_files
from obygaze_features.backbones.registry import backbone_call
from obygaze_features.errors import BackboneError
from obygaze_features.extraction.decode_clips import _reason
from obygaze_features.store import classes_of
from tests.command import obygaze

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
TOML_FIELDS = {
    "layout": "NCHW",
    "type": "float32",
    "channels": "RGB",
    "resize": "pillow-bicubic",
    "size": 24,
    "fit": "crop",
    "shortest": 28,
    "mean": [0.5, 0.25, 0.75],
    "std": [0.5, 0.25, 1.0],
}
"""What the TOML beside a network says of its pictures."""
FRAMES = np.random.default_rng(0).integers(0, 256, (4, 30, 50, 3), dtype=np.uint8)


def write_network(folder, fields=TOML_FIELDS, *, shape=("n", 3, 24, 24), kind="FLOAT", name="net"):
    """Write a network that gives the doubled mean of each channel, and its TOML; return its path."""
    node = onnx.helper.make_node
    value = onnx.helper.make_tensor_value_info
    floats = onnx.TensorProto.FLOAT
    has_channels_last = shape and shape[-1] == 3
    axes_of_positions = [1, 2] if has_channels_last else [2, 3]
    nodes = []
    picture = "x"
    if kind != "FLOAT":
        picture = "real"
        nodes.append(node("Cast", ["x"], [picture], to=floats))
    # Besides "out" there is "map", the means themselves, and "inside", the picture without negative numbers.
    nodes.append(node("Relu", [picture], ["inside"]))
    nodes.append(node("ReduceMean", [picture], ["map"], axes=axes_of_positions, keepdims=0))
    nodes.append(node("Add", ["map", "map"], ["out"]))
    network_input = value("x", getattr(onnx.TensorProto, kind), shape and list(shape))
    network_output = value("out", floats, ["n", 3])
    graph = onnx.helper.make_graph(nodes, "net", [network_input], [network_output])
    opset = onnx.helper.make_opsetid("", 13)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    path.with_suffix(".toml").write_text(toml_of(fields), encoding="utf-8")
    return path


def toml_of(fields):
    """Format fields as TOML, whose values are texts, numbers, lists and true."""
    lines = []
    for key, value in fields.items():
        text = "true" if value is True else repr(value).replace("'", '"')
        lines.append(f"{key} = {text}")
    return "\n".join(lines)


def run_onnxruntime(path, pixels, output="out"):
    """Run a network on values that are prepared already."""
    session = runtime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    return session.run([output], {"x": pixels})[0]


def four_prepared_frames(backbone):
    """Prepare the four frames for a backbone: an array [4, height, width, 3] of pixels."""
    return np.stack([backbone.prepare(frame) for frame in FRAMES])


def normalised(clip):
    """Normalise pixels `[4, h, w, 3]` by the mean and std of TOML_FIELDS."""
    mean = np.array(TOML_FIELDS["mean"])
    std = np.array(TOML_FIELDS["std"])
    scale = (1 / (255 * std)).astype(np.float32)
    shift = (-mean / std).astype(np.float32)
    return clip.astype(np.float32) * scale + shift


def channels_first(frames):
    """Reorder frames [n, height, width, 3] to [n, 3, height, width], as the usual network takes them."""
    return np.ascontiguousarray(frames.transpose(0, 3, 1, 2))


def test_vectors_are_those_of_onnxruntime_on_prepared_frames(tmp_path):
    """Each frame gets the vector that onnxruntime gives, and the clip the mean of its frames.

    The TOML beside the network states 24 x 24 pixels; the network's one output is called "out". Two clips of
    four frames are encoded, of which the second is the first one backwards.
    """
    path = write_network(tmp_path)
    backbone = load_backbone(f"onnx:{path}", n_frames=4)
    clip = four_prepared_frames(backbone)
    assert clip.shape == (4, 24, 24, 3)
    clip_backwards = clip[::-1]

    arrays = backbone.encode(np.stack([clip, clip_backwards]))

    expected = run_onnxruntime(path, channels_first(normalised(clip)))
    vectors, vectors_backwards = arrays["frames"]
    assert np.array_equal(vectors, expected)
    assert np.array_equal(vectors_backwards, expected[::-1])
    assert np.array_equal(arrays["pooled"][0], vectors.mean(axis=0))
    assert backbone.provenance["layer"] == "out"


def test_a_network_of_bgr_pictures_gets_blue_as_the_first_channel(tmp_path):
    """The network gives the doubled mean of each channel, in the order in which they go in.

    So its vectors are those of the same network for RGB, backwards.
    """
    fields = TOML_FIELDS | {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
    path_of_bgr = write_network(tmp_path, fields | {"channels": "BGR"}, name="bgr")
    path_of_rgb = write_network(tmp_path, fields | {"channels": "RGB"}, name="rgb")
    bgr = load_backbone(f"onnx:{path_of_bgr}", n_frames=4)
    rgb = load_backbone(f"onnx:{path_of_rgb}", n_frames=4)
    clip = four_prepared_frames(bgr)[None]

    vectors_of_bgr = bgr.encode(clip)["frames"]
    vectors_of_rgb = rgb.encode(clip)["frames"]

    assert np.array_equal(vectors_of_bgr, vectors_of_rgb[..., ::-1])


@pytest.fixture
def network_of_uint8(tmp_path):
    """A network that takes one picture of uint8 at a time, channels last."""
    fields = {key: value for key, value in TOML_FIELDS.items() if key not in ("mean", "std")}
    fields |= {"layout": "NHWC", "type": "uint8"}
    return write_network(tmp_path, fields, shape=(1, 24, 24, 3), kind="UINT8")


def test_a_network_of_uint8_gets_the_pixels_as_they_are(network_of_uint8):
    """Nothing is normalised, so scale is 1 and shift 0, and the axes stay height, width, channels (NHWC)."""
    backbone = load_backbone(f"onnx:{network_of_uint8}", n_frames=4)
    clip = four_prepared_frames(backbone)

    vectors = backbone.encode(clip[None])["frames"][0]

    expected = [run_onnxruntime(network_of_uint8, frame[None]) for frame in clip]
    assert np.array_equal(vectors, np.concatenate(expected))
    preset = backbone.provenance["preset"]
    assert preset["constants"] == {"scale": [1.0, 1.0, 1.0], "shift": [0.0, 0.0, 0.0]}
    assert preset["order"].endswith("RGB, NHWC, uint8")


def test_a_layer_of_integers_is_refused(network_of_uint8):
    """The chosen layer is the input itself, which is uint8. Vectors are floats."""
    the_input = "x"
    with pytest.raises(BackboneError, match="vectors were expected"):
        load_backbone(f"onnx:{network_of_uint8}:{the_input}", n_frames=4)


def without(fields, *names):
    """Return fields of a TOML without some of them."""
    return {key: value for key, value in fields.items() if key not in names}


def resized_by_pillow(frame, height, width):
    return np.asarray(Image.fromarray(frame).resize((width, height), Image.Resampling.BICUBIC))


def resized_by_opencv(frame, height, width):
    return cv2.resize(frame, (width, height))


@pytest.mark.parametrize(
    ("resize", "resized_by_library"),
    [("pillow-bicubic", resized_by_pillow), ("opencv-bilinear", resized_by_opencv)],
)
def test_frames_are_squashed_to_the_height_and_width_that_the_toml_states(
    tmp_path, resize, resized_by_library
):
    """The TOML beside the network states 16 rows of 28 pixels, and by which library frames are resized.

    To squash is to resize without keeping the proportions; the frames have 30 rows of 50 pixels.
    """
    fields = without(TOML_FIELDS, "shortest") | {"fit": "squash", "size": [16, 28], "resize": resize}
    path = write_network(tmp_path, fields, shape=("n", 3, 16, 28))
    backbone = load_backbone(f"onnx:{path}", n_frames=4)

    clip = four_prepared_frames(backbone)
    vectors = backbone.encode(clip[None])["frames"][0]

    assert np.array_equal(clip[0], resized_by_library(FRAMES[0], height=16, width=28))
    expected = run_onnxruntime(path, channels_first(normalised(clip)))
    assert np.array_equal(vectors, expected)
    assert "squash to 16x28" in backbone.provenance["preset"]["resize"]


def test_a_network_of_a_fixed_batch_size_gets_that_many_frames_per_call(tmp_path):
    """The network takes exactly two pictures at once. A clip of four frames is given in two calls.

    Its vectors are those of the same network that takes any number.
    """
    path_of_two_at_once = write_network(tmp_path, shape=(2, 3, 24, 24), name="two")
    path_of_any_number = write_network(tmp_path, shape=None, name="any")
    two_at_once = load_backbone(f"onnx:{path_of_two_at_once}", n_frames=4)
    any_number = load_backbone(f"onnx:{path_of_any_number}", n_frames=4)
    clip = four_prepared_frames(two_at_once)[None]

    vectors = two_at_once.encode(clip)["frames"]

    assert np.array_equal(vectors, any_number.encode(clip)["frames"])


def test_frames_that_do_not_fill_a_fixed_batch_size_are_refused(tmp_path):
    """The network takes two pictures at once, and a clip has three frames."""
    path = write_network(tmp_path, shape=(2, 3, 24, 24))

    with pytest.raises(BackboneError, match="3 frames"):
        load_backbone(f"onnx:{path}", n_frames=3)


@pytest.fixture
def network_of_two_outputs(tmp_path):
    """The usual network, with its layer `inside` as a second output."""
    path = write_network(tmp_path, name="two_outputs")
    model = onnx.load(path)
    model.graph.output.append(onnx.ValueInfoProto(name="inside"))
    path.write_bytes(model.SerializeToString())
    return path


def test_a_layer_gives_the_mean_over_positions(tmp_path, network_of_two_outputs):
    """The layer "inside" of a network has, of each frame, 24 x 24 positions for each of three channels.

    The backbone onnx:FILE:inside gives their means. The expected ones are of a copy of the network of which
    the layer is an output, so that onnxruntime gives all its numbers.
    """
    path = write_network(tmp_path)
    backbone = load_backbone(f"onnx:{path}:inside", n_frames=4)
    clip = four_prepared_frames(backbone)

    vectors = backbone.encode(clip[None])["frames"][0]

    pixels = channels_first(normalised(clip))
    layer = run_onnxruntime(network_of_two_outputs, pixels, output="inside")  # [4 frames, 3, 24, 24]
    channels_last = layer.transpose(0, 2, 3, 1)
    expected = channels_last.reshape(4, 24 * 24, 3).mean(axis=1)
    assert np.array_equal(vectors, expected)


def test_one_of_two_outputs_is_chosen_by_its_name(tmp_path, network_of_two_outputs):
    """FILE:NAME chooses an output. The vectors are those of the network that has this output alone."""
    of_one_output = load_backbone(f"onnx:{write_network(tmp_path)}", n_frames=4)
    of_two_outputs = load_backbone(f"onnx:{network_of_two_outputs}:out", n_frames=4)
    clip = four_prepared_frames(of_one_output)[None]

    vectors = of_two_outputs.encode(clip)["frames"]

    assert np.array_equal(vectors, of_one_output.encode(clip)["frames"])


@pytest.mark.parametrize(
    ("layer", "message"),
    [("", "choose one of its outputs"), (":absent", "absent")],
    ids=["no choice of two outputs", "a layer that it does not have"],
)
def test_a_network_of_two_outputs_without_a_choice_of_one_is_refused(network_of_two_outputs, layer, message):
    """A backbone is named onnx:FILE or onnx:FILE:LAYER. The network has the outputs `out` and `inside`."""
    with pytest.raises(BackboneError, match=message):
        load_backbone(f"onnx:{network_of_two_outputs}{layer}", n_frames=4)


def write_network_with_transposed_layer(folder, layout, height, width):
    """Write a network of pictures in a layout; its layer "transposed" is the picture in the other one."""
    size_and_layout = {"fit": "squash", "size": [height, width], "layout": layout}
    if layout == "NCHW":
        shape, axes_of_other_layout = ("n", 3, height, width), [0, 2, 3, 1]
    else:
        shape, axes_of_other_layout = ("n", height, width, 3), [0, 3, 1, 2]
    path = write_network(folder, without(TOML_FIELDS, "shortest") | size_and_layout, shape=shape)
    model = onnx.load(path)
    transpose = onnx.helper.make_node("Transpose", ["x"], ["transposed"], perm=axes_of_other_layout)
    model.graph.node.append(transpose)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("height", "width"), [(24, 24), (16, 28)], ids=["square", "wide"])
def test_a_layer_may_have_its_channels_at_another_axis(tmp_path, layout, height, width):
    """The network's input is NCHW (channels before height and width) or NHWC (behind them).

    Its layer "transposed" is the picture in the other layout. The network's output is the doubled mean of
    each channel, so the layer's means are half of it.
    """
    path = write_network_with_transposed_layer(tmp_path, layout, height, width)
    layer = load_backbone(f"onnx:{path}:transposed", n_frames=4)
    output = load_backbone(f"onnx:{path}:out", n_frames=4)
    clip = four_prepared_frames(output)[None]

    vectors_of_layer = layer.encode(clip)["frames"]
    vectors_of_output = output.encode(clip)["frames"]

    np.testing.assert_allclose(vectors_of_layer, vectors_of_output / 2, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["FLOAT", "UINT8"])
def test_a_network_that_gives_other_vectors_each_time_is_refused(tmp_path, kind):
    """The last node of a network is a dropout that is left on, which sets some numbers to 0 by chance.

    A network is run twice on a picture to find this. The picture must not be black: a network of uint8 pixels
    would give vectors of 0 for it, with and without the dropout.
    """
    fields = TOML_FIELDS
    if kind == "UINT8":
        fields = without(TOML_FIELDS, "mean", "std") | {"type": "uint8"}
    path = write_network(tmp_path, fields, kind=kind)
    model = onnx.load(path)
    usual_ratio = ""  # ONNX's way to leave out an input
    dropout = onnx.helper.make_node("Dropout", ["map", usual_ratio, "is_training"], ["out"])
    node_of_output = model.graph.node[-1]
    node_of_output.CopyFrom(dropout)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "is_training"))
    path.write_bytes(model.SerializeToString())

    with pytest.raises(BackboneError, match="each time"):
        load_backbone(f"onnx:{path}", n_frames=32)


@pytest.mark.parametrize("field", ["layout", "type", "channels", "resize", "size", "fit", "mean", "shortest"])
def test_a_field_that_the_toml_lacks_is_named(tmp_path, field):
    """The TOML beside a network says how its pictures are prepared, and all of these fields are needed."""
    path = write_network(tmp_path, without(TOML_FIELDS, field))

    with pytest.raises(BackboneError, match=rf"net\.toml.*{field}"):
        load_backbone(f"onnx:{path}", n_frames=4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layout": "NHWC"}, "NHWC"),
        ({"layout": "NFCHW"}, "one of NCHW, NHWC"),
        ({"size": 20}, "20 x 20"),
        ({"type": "float16"}, "float16"),
        ({"type": "uint8"}, "for uint8"),  # normalised pixels are no integers from 0 to 255
        ({"scale": [1.0] * 3, "shift": [0.0] * 3}, "scale.*unknown"),
        ({"std": None}, "mean and std"),
        ({"fit": "squash"}, "shortest"),  # which the good TOML has: a squashed picture has no shortest edge
        ({"shortest": 20}, "shortest that is no less"),  # than 24, the size of the crop
        ({"size": [24, 24]}, "square"),
        ({"size": [24, 24, 3]}, "pixels or height and width"),
        ({"resize": "opencv-bilinear"}, "opencv"),
        ({"resize": "nearest"}, "resize"),
        ({"colour": "sRGB"}, "colour"),
        ({"mean": [0.5, 0.5]}, "mean"),
        # Mean and deviation of pixels from 0 to 1; 123.675 and 58.395 are those of pixels from 0 to 255.
        *(({"mean": [value] * 3}, "from 0") for value in (123.675, -1.0, nan, inf)),
        *(({"std": [value] * 3}, "from 0") for value in (58.395, 0.0, nan, inf)),
        ({"name": "camera"}, "another backbone"),
        ({"citation": "A. Author\u202e, 2026"}, "citation"),
        ({"citation": "two\nlines"}, "citation"),
    ],
)
def test_a_toml_that_contradicts_the_network_or_itself_is_refused(tmp_path, changes, message):
    """A TOML says how pictures are prepared for its network, here of float32 [n, 3, 24, 24] with a crop.

    One field of a good TOML is changed, added, or removed (None). Pixels prepared in another way than in
    training would give wrong vectors without any error. The message names what is wrong; for fields that do
    not go together it says what does.
    """
    fields = {key: value for key, value in (TOML_FIELDS | changes).items() if value is not None}
    type_of_input = "UINT8" if fields["type"] == "uint8" else "FLOAT"
    path = write_network(tmp_path, fields, kind=type_of_input)

    with pytest.raises(BackboneError, match=message):
        load_backbone(f"onnx:{path}", n_frames=4)


def test_the_toml_in_docs_backbones_is_complete(tmp_path):
    """It names the backbone lab-net, its licence and a file of classes, and states 224 x 224 pixels.

    Beside a network of three classes that takes such pictures, it is all that is needed to load it.
    """
    page = Path(__file__).parents[2].joinpath("docs", "backbones.md").read_text(encoding="utf-8")
    toml_in_page = re.search(r"```toml\n(layout.*?)```", page, re.DOTALL)[1]
    path = write_network(tmp_path, shape=("n", 3, 224, 224))
    path.with_suffix(".toml").write_text(toml_in_page, encoding="utf-8")
    write_labels(tmp_path)

    backbone = load_backbone(f"onnx:{path}", n_frames=4)

    assert backbone.name == "lab-net"
    assert backbone.provenance["licence"] == "MIT"
    assert backbone.group_names() == ("lab-net", "lab-net.answers")


GIT_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda whole: whole[: len(whole) // 2], "damaged"),
        (lambda _: GIT_LFS_POINTER, "git-lfs"),
        (lambda _: b"", "cannot load|empty"),
    ],
    ids=["half of it", "a pointer of Git LFS", "nothing"],
)
def test_a_file_that_holds_no_network_is_refused_by_what_it_is(tmp_path, damage, words):
    """A broken download, a pointer in place of the file, and an empty file are common mistakes."""
    path = write_network(tmp_path)
    path.write_bytes(damage(path.read_bytes()))

    with pytest.raises(BackboneError, match=words):
        load_backbone(f"onnx:{path}", n_frames=4)


def test_a_network_whose_toml_alone_is_there_is_named(tmp_path):
    """The network net.onnx was moved, and net.toml, which describes it, was not."""
    path = write_network(tmp_path)
    path.rename(tmp_path / "moved.onnx")

    with pytest.raises(FileNotFoundError, match=r"net\.onnx"):
        load_backbone(f"onnx:{path}", n_frames=4)


def test_a_toml_in_the_place_of_the_network_is_named(tmp_path):
    """The user gave onnx:net.toml, the description of the network, where onnx:net.onnx was meant."""
    path = write_network(tmp_path)
    toml = path.with_suffix(".toml")

    with pytest.raises(BackboneError, match=r"net\.toml"):
        load_backbone(f"onnx:{toml}", n_frames=4)


def test_an_operator_that_onnx_does_not_have_is_named(tmp_path):
    """A lab's own operator ("lab:Add") can't be run by onnxruntime."""
    path = write_network(tmp_path)
    model = onnx.load(path)
    last_node = model.graph.node[-1]  # an addition
    last_node.domain = "lab"
    model.opset_import.append(onnx.helper.make_opsetid("lab", 1))
    path.write_bytes(model.SerializeToString())

    with pytest.raises(BackboneError, match="lab:Add"):
        load_backbone(f"onnx:{path}", n_frames=4)


def test_a_network_without_a_toml_is_refused_with_the_needed_fields(tmp_path):
    """Beside net.onnx there must be net.toml, which says how pictures are prepared for the network."""
    path = write_network(tmp_path)
    (tmp_path / "net.toml").unlink()

    with pytest.raises(BackboneError, match=r"no such file.*layout.*type.*channels.*resize.*size.*fit"):
        load_backbone(f"onnx:{path}", n_frames=4)


def test_a_folder_in_the_place_of_the_toml_is_named(tmp_path):
    """Beside net.onnx there must be a file net.toml, which describes the network."""
    path = write_network(tmp_path)
    (tmp_path / "net.toml").unlink()
    (tmp_path / "net.toml").mkdir()

    with pytest.raises(OSError, match=r"net\.toml"):
        load_backbone(f"onnx:{path}", n_frames=4)


def write_network_with_external_weights(folder, file):
    """Write a network whose last layer is a product with weights in another file."""
    path = write_network(folder)
    model = onnx.load(path)
    weights = onnx.numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")
    content = weights.raw_data
    model.graph.initializer.append(weights)
    model.graph.node[-1].CopyFrom(onnx.helper.make_node("MatMul", ["map", "w"], ["out"]))
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], file)
    model.graph.initializer[0].ClearField("raw_data")
    path.write_bytes(model.SerializeToString())
    return path, content


@pytest.mark.parametrize("file", ["w.data", "./w.data", "../here/w.data", "net.onnx"])
@pytest.mark.parametrize("current", [".", "here"], ids=["run above the folder", "run in the folder"])
def test_a_network_with_weights_in_another_file_is_refused(tmp_path, monkeypatch, file, current):
    """The digest of the network would not cover weights elsewhere, and their path could lead anywhere.

    The weights are there, so that onnxruntime would read them; paths may be relative to either folder.
    """
    (tmp_path / "here").mkdir()
    path, weights = write_network_with_external_weights(tmp_path / "here", file)
    (tmp_path / "w.data").write_bytes(weights)
    (tmp_path / "here" / "w.data").write_bytes(weights)
    monkeypatch.chdir(tmp_path / current)

    with pytest.raises(BackboneError, match="other files"):
        load_backbone(f"onnx:{path}", n_frames=4)


def write_network_that_fails_on_bright_clips(folder, operator):
    """Write a network whose vectors of bright clips can't be made (Expand) or are longer (Tile)."""
    path = write_network(folder)
    node = onnx.helper.make_node
    model = onnx.load(path)
    del model.graph.node[-1]  # that of the output
    for name, values in (("ones", [1, 1]), ("second_axis", [0, 1])):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(values), name))
    model.graph.node.extend(
        [
            node("ReduceMax", ["x"], ["brightest_pixel"], keepdims=0),
            # Black is negative, as the mean is subtracted, and becomes 0.
            node("Relu", ["brightest_pixel"], ["brightness"]),
            node("Cast", ["brightness"], ["n"], to=onnx.TensorProto.INT64),
            # The sizes are 1 and 1 + n.
            node("Mul", ["second_axis", "n"], ["longer_by"]),
            node("Add", ["ones", "longer_by"], ["sizes"]),
            node(operator, ["map", "sizes"], ["out"]),
        ]
    )
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    "operator", ["Expand", "Tile"], ids=["it fails on bright clips", "its vectors of bright clips are longer"]
)
def test_a_network_that_fails_on_some_clips_is_named_with_the_reason(tmp_path, operator):
    """A network may work when it is tried, on black, and fail on clips that come later.

    The error is what a store keeps as the reason of the failed clip.
    """
    path = write_network_that_fails_on_bright_clips(tmp_path, operator)
    encode = load_backbone(f"onnx:{path}", n_frames=4).encode
    black_clip = np.zeros((1, 4, 24, 24, 3), np.uint8)
    white_clip = np.full_like(black_clip, 255)
    encode(black_clip)

    with pytest.raises(BackboneError, match=r"^net\.onnx: it") as refused:
        encode(white_clip)

    reason_in_store = _reason(refused.value)
    assert reason_in_store == str(refused.value)


def test_without_onnxruntime_extract_says_which_extra_to_install(tmp_path, monkeypatch, capsys):
    """A user who installed `obygaze[onnx]` would have onnxruntime, which runs networks in ONNX files."""
    not_installed = None  # what makes an import fail
    monkeypatch.setitem(sys.modules, "onnxruntime", not_installed)
    (tmp_path / "videos").mkdir()
    write_video(tmp_path / "videos" / "a.mp4", FRAMES, rate=4)
    monkeypatch.chdir(tmp_path)
    assert obygaze("manifest", "import", "folder", "videos", "--out", "clips.csv") == 0
    path = write_network(tmp_path)

    exit_code = obygaze("extract", "clips.csv", "store", "--backbone", f"onnx:{path}")

    assert exit_code == 1
    assert "obygaze[onnx]" in capsys.readouterr().err


def test_a_file_changed_before_a_worker_opens_it_is_refused(tmp_path):
    """A worker, another process, gets the backbone as a pickle and opens the network by itself.

    The file's digest must still be the one that is recorded, also if other bytes mean the same network.
    """
    path = write_network(tmp_path)
    pickled = pickle.dumps(load_backbone(f"onnx:{path}", n_frames=4).encode)
    empty_field_of_protobuf = b"\x32\x00"
    path.write_bytes(path.read_bytes() + empty_field_of_protobuf)
    onnx_files._session.cache_clear()  # another process has opened nothing yet
    encode_in_worker = pickle.loads(pickled)  # noqa: S301 - our own bytes
    clip = np.zeros((1, 4, 24, 24, 3), np.uint8)

    with pytest.raises(BackboneError, match="changed"):
        encode_in_worker(clip)


@pytest.mark.long
def test_two_networks_are_extracted_into_one_store(tmp_path, monkeypatch):
    """Of the network "lab-net" its output is stored, with the licence that its TOML states.

    Of the one in other.onnx the layer "inside" is stored. Both give three numbers of each of the four frames,
    and their means.
    """
    path = write_network(tmp_path, TOML_FIELDS | {"name": "lab-net", "licence": "MIT"})
    write_network(tmp_path, TOML_FIELDS | {"channels": "BGR"}, name="other")
    monkeypatch.chdir(tmp_path)
    write_video(tmp_path / "a.mp4", FRAMES, rate=4)
    manifest = Manifest((Clip("a", "a", "a.mp4"),), tmp_path)
    networks = ["onnx:net.onnx", "onnx:other.onnx:inside"]

    store = extract(manifest, tmp_path / "store", networks, n_frames=4, licence="CC0-1.0", progress=False)

    assert set(store.names) == {"lab-net", "other"}
    assert set(store["lab-net"].arrays) == {"frames", "pooled"}
    assert set(store["other"].arrays) == {"frames", "pooled"}
    provenance = store["lab-net"].provenance
    assert provenance["weights_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert provenance["licence"] == "MIT"
    assert store["lab-net"].pooled().shape == (1, 3)


@pytest.fixture
def lab_net(tmp_path):
    """The path of a network of the name `lab-net`, and the provenance of its vectors in a store."""
    path = write_network(tmp_path, TOML_FIELDS | {"name": "lab-net"})
    backbone = load_backbone(f"onnx:{path}", n_frames=4)
    return path, {"name": backbone.name, "sampling": {"n": 4}, **backbone.provenance}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (None, "--weights lab-net=FILE"),
        ("other.onnx", "other"),
        ("lab-net=other.toml", "other"),
    ],
    ids=["no file", "another network", "the TOML of another network"],
)
def test_a_store_of_an_onnx_network_takes_no_vectors_of_another_network_or_of_none(
    lab_net, monkeypatch, weights, message
):
    """A store has vectors of the network net.onnx, and its provenance the digest of that file.

    To compare a new video with them, its vectors must be of the same network. The file was moved, so that the
    user must name it. Here nothing is named, or `other.onnx`, which is another network: both are refused. The
    message shows the option that names a file, or the file that is at fault.
    """
    path, provenance = lab_net
    folder = path.parent
    write_network(folder, TOML_FIELDS | {"channels": "BGR"}, name="other")
    path.rename(folder / "moved.onnx")
    monkeypatch.chdir(folder)

    with pytest.raises(BackboneError, match=message):
        backbone_call(provenance, weights)


def test_a_store_of_an_onnx_network_takes_no_vectors_of_this_network_with_another_toml(lab_net):
    """A store has vectors of the network net.onnx; net.toml beside it says how its pictures are prepared.

    To compare a new video with them, the network must be loaded again, as `backbone_call` says how. Since the
    store was made, the TOML was changed to another order of colours, BGR in place of RGB. New vectors could
    not be compared with those of the store, so that the same ONNX file is refused.
    """
    path, provenance = lab_net
    path.with_suffix(".toml").write_text(toml_of(TOML_FIELDS | {"channels": "BGR"}))

    with pytest.raises(BackboneError, match="with its TOML"):
        backbone_call(provenance, weights=str(path))


@pytest.mark.long
@pytest.mark.parametrize("weights", ["nets/net.onnx", "lab-net=onnx:nets/net.onnx"])
def test_a_store_is_searched_with_the_onnx_file_in_another_folder(tmp_path, monkeypatch, weights):
    """The network and its TOML are moved to the folder `nets` after a store was made with them."""
    path = write_network(tmp_path, TOML_FIELDS | {"name": "lab-net"})
    monkeypatch.chdir(tmp_path)
    write_video(tmp_path / "a.mp4", FRAMES, rate=4)
    manifest = Manifest((Clip("a", "a", "a.mp4"),), tmp_path)
    extract(manifest, tmp_path / "store", [f"onnx:{path}"], n_frames=4, licence="CC0-1.0", progress=False)
    (store_folder,) = tmp_path.glob("store-*")
    (tmp_path / "nets").mkdir()
    (tmp_path / "net.onnx").rename(tmp_path / "nets" / "net.onnx")
    (tmp_path / "net.toml").rename(tmp_path / "nets" / "net.toml")

    query = ["--like", "a.mp4", "--backbone", "lab-net", "--weights", weights]
    exit_code = obygaze("search", store_folder, *query)

    assert exit_code == 0


CLASSES = ("a red thing", "a green thing", "a blue thing")
WITH_CLASSES = TOML_FIELDS | {"classes": "labels.txt", "gives": "logits"}


def write_labels(folder, names=CLASSES):
    """Write names of classes beside a network, in the order of its numbers."""
    (folder / "labels.txt").write_text("\n".join(names) + "\n", encoding="utf-8")


def test_a_network_of_named_classes_has_their_probabilities_as_answers(tmp_path):
    """The TOML says that the network gives logits of three named classes.

    The probabilities are their softmax, averaged over the frames.
    """
    write_labels(tmp_path, ("a red thing", "a green thing", "a blue thing"))
    path = write_network(tmp_path, TOML_FIELDS | {"classes": "labels.txt", "gives": "logits"})
    backbone = load_backbone(f"onnx:{path}", n_frames=4)
    clip = four_prepared_frames(backbone)[None]

    arrays = backbone.encode(clip)

    logits_of_frames = arrays["frames"][0].astype(np.float64)
    expected = softmax(logits_of_frames, axis=1).mean(axis=0)
    assert arrays["answers/pooled"][0] == pytest.approx(expected, abs=1e-6)
    (answers,) = backbone.side_groups
    names = answers.provenance["architecture"]["features"]
    assert names == ["a red thing", "a green thing", "a blue thing"]


def test_vectors_are_the_same_whether_classes_are_named_or_not(tmp_path):
    """The same network is written twice. Its TOML names a file of classes, labels.txt, or does not."""
    write_labels(tmp_path)
    fields_with_classes = TOML_FIELDS | {"classes": "labels.txt", "gives": "logits"}
    path_with_classes = write_network(tmp_path, fields_with_classes, name="with_classes")
    path_without_classes = write_network(tmp_path, TOML_FIELDS, name="without_classes")
    with_classes = load_backbone(f"onnx:{path_with_classes}", n_frames=4)
    without_classes = load_backbone(f"onnx:{path_without_classes}", n_frames=4)
    clip = four_prepared_frames(with_classes)[None]

    vectors = without_classes.encode(clip)["frames"]

    assert np.array_equal(with_classes.encode(clip)["frames"], vectors)
    assert without_classes.side_groups == ()


@pytest.mark.long
def test_answers_in_a_store_have_their_classes_and_the_call_that_made_them(tmp_path):
    """Answers are a group of their own, of the network net.onnx, which classifies frames into three things.

    The group names the classes. Its provenance says by which call the network is loaded again.
    """
    write_labels(tmp_path, ("a red thing", "a green thing", "a blue thing"))
    path = write_network(tmp_path, TOML_FIELDS | {"classes": "labels.txt", "gives": "logits"})
    write_video(tmp_path / "a.mp4", FRAMES, rate=4)
    manifest = Manifest((Clip("a", "a", "a.mp4"),), tmp_path)

    store = extract(manifest, tmp_path / "s", [f"onnx:{path}"], n_frames=4, licence="CC0-1.0", progress=False)

    answers = store["net.answers"]
    assert classes_of(answers) == ("a red thing", "a green thing", "a blue thing")
    call = backbone_call(answers.provenance, weights=str(path))
    assert call.name == f"onnx:{path}:out"


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        pytest.param(TOML_FIELDS | {"classes": "labels.txt"}, CLASSES, id="classes without gives"),
        pytest.param(TOML_FIELDS | {"gives": "logits"}, CLASSES, id="gives without classes"),
        pytest.param(WITH_CLASSES | {"classes": "../labels.txt"}, CLASSES, id="names in another folder"),
        pytest.param(WITH_CLASSES, CLASSES[:2], id="two names of three classes"),
        pytest.param(WITH_CLASSES, (*CLASSES[:2], CLASSES[0]), id="one name twice"),
        pytest.param(WITH_CLASSES | {"gives": "probabilities"}, CLASSES, id="probabilities below 0"),
    ],
)
def test_classes_that_do_not_fit_the_network_are_refused(tmp_path, fields, names):
    """The network gives three numbers, so it needs three different names, and a word on what it gives."""
    write_labels(tmp_path, names)
    path = write_network(tmp_path, fields)

    with pytest.raises(BackboneError):
        load_backbone(f"onnx:{path}", n_frames=4)
