"""A detector of faces is any network that gives boxes; a face is counted once, and its height is kept."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from obygaze_features.backbones.faces import FaceDetector
from obygaze_features.backbones.onnx_files import read_network
from obygaze_features.errors import BackboneError
from tests.process import execute

TOLD = """layout = "NCHW"
type = "float32"
channels = "RGB"
resize = "opencv-bilinear"
size = 24
fit = "squash"
mean = [0, 0, 0]
std = [0.00392156862745098, 0.00392156862745098, 0.00392156862745098]
"""
BOXES = [
    [0.1, 0.1, 0.3, 0.5, 0.9],
    [0.12, 0.1, 0.3, 0.52, 0.8],  # the same face
    [0.6, 0.2, 0.8, 0.45, 0.75],
    [0.0, 0.0, 1.0, 1.0, 0.6],  # not sure
    [-1, -1, -1, -1, -1],  # no box
]

NO_BOXES = [
    [10, 20, 60, 90, 0.9],  # pixels
    [0.3, 0.5, 0.1, 0.1, 0.9],  # from right to left
    [0.5, 0.5, 0.2, 0.3, 0.9],  # centre, width and height
    [np.nan, 0.1, 0.3, 0.5, 0.9],
    [0.1, 0.1, 0.3, 0.5, 90],
    [0.1, 0.1, 0.3, 0.5, np.nan],
    [0, 0, 0, 0, 1],
    [1.2, 0.2, 1.4, 0.5, 0.9],  # outside
    [-0.5, 0.2, -0.1, 0.5, 0.9],
]


def written(folder, boxes=BOXES, told=TOLD):
    """A network whose scores are multiplied by whether its picture is bright."""
    values = {
        "boxes": np.array(boxes, np.float32)[None],
        "floor": np.float32(50), "axes": np.array([1, 2, 3]), "one": np.float32(1),
    }  # fmt: skip
    nodes = [
        helper.make_node("ReduceMean", ["in", "axes"], ["mean"], keepdims=0),
        helper.make_node("Greater", ["mean", "floor"], ["bright"]),
        helper.make_node("Cast", ["bright"], ["on"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["boxes", "on"], ["out"]),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("in", TensorProto.FLOAT, [1, 3, 24, 24])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, len(boxes), len(boxes[0])])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / "net.onnx")
    (folder / "net.toml").write_text(told, encoding="utf-8")
    return f"onnx:{folder / 'net.onnx'}"


def test_faces_are_counted_once_and_the_largest_is_measured(tmp_path):
    detector = FaceDetector(written(tmp_path))
    bright, dark = (detector.prepare(np.full((48, 64, 3), level, np.uint8)) for level in (200, 0))
    assert detector([bright, dark]) == {"faces": 1.0, "face": pytest.approx(0.4)}
    assert detector([dark, dark]) == {"faces": 0.0}


@pytest.mark.parametrize(
    ("boxes", "told", "said"),
    [
        ([[0.1, 0.2, 0.3, 0.4]], TOLD, r"boxes were expected, \[N, 5\]"),
        (
            BOXES,
            TOLD.replace('"squash"', '"crop"\nshortest = 24').replace("opencv-bilinear", "pillow-bilinear"),
            "squash",
        ),
        *(([box], TOLD, "boxes were expected") for box in NO_BOXES),
    ],
)
def test_what_is_no_detector_of_whole_pictures_is_refused(tmp_path, boxes, told, said):
    with pytest.raises(BackboneError, match=said):
        FaceDetector(written(tmp_path, boxes, told))([np.full((24, 24, 3), 200, np.uint8)])


@pytest.mark.parametrize(("height", "width"), [(64, 96), (96, 64)])
def test_the_example_makes_boxes_of_what_centerface_gives(tmp_path, height, width):
    """One face, in the cell of row 5 and column 7: 32 pixels high, 16 wide, its centre moved in the cell."""
    h, w = height // 4, width // 4
    scores, sizes, centres = (np.zeros((1, n, h, w), np.float32) for n in (1, 2, 2))
    scores[0, 0, 5, 7], sizes[0, :, 5, 7], centres[0, :, 5, 7] = 0.9, np.log([8, 4]), [0.25, -0.5]
    outputs = {"537": scores, "538": sizes, "539": centres}
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["input"], ["mean"], keepdims=1),
            helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
            *(helper.make_node("Add", [f"{name}_of", "nothing"], [name]) for name in outputs),
        ],
        "net",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, [10, 3, 32, 32])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [10, 1, 8, 8]) for name in outputs],
        [
            numpy_helper.from_array(np.float32(0), "zero"),
            *(numpy_helper.from_array(each, f"{name}_of") for name, each in outputs.items()),
        ],
    )
    opset = [helper.make_opsetid("", 9)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=4), tmp_path / "c.onnx")
    script, made = Path(__file__).parents[2] / "examples" / "face_detector.py", tmp_path / "faces.onnx"
    sides = "--size", str(height), str(width)
    execute(sys.executable, str(script), str(tmp_path / "c.onnx"), str(made), *sides)
    network = read_network(str(made))
    prepare = network.told.geometry
    boxes = network.run(prepare(np.zeros((30, 40, 3), np.uint8))[None])
    assert boxes.shape == (1, h * w, 5)
    x, y = (7 + 0.5 - 0.5) / w, (5 + 0.5 + 0.25) / h
    expected = [x - 2 / w, y - 4 / h, x + 2 / w, y + 4 / h, 0.9]
    np.testing.assert_allclose(boxes[0][boxes[0, :, 4] > 0.5], [expected], rtol=1e-6)
    found = FaceDetector(f"onnx:{made}")([prepare(np.zeros((30, 40, 3), np.uint8))])
    assert found == {"faces": 1.0, "face": pytest.approx(8 / h)}
