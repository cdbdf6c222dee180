"""Tiny networks with the inputs and outputs of the detectors of people, which find what is planted.

A picture with a planted person is bright; in a dark one nothing is found.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FACES_TOML = """layout = "NCHW"
type = "float32"
channels = "RGB"
resize = "pillow-bilinear"
size = 24
fit = "squash"
mean = [0, 0, 0]
std = [0.00392156862745098, 0.00392156862745098, 0.00392156862745098]
gives = "faces"
score = 0.7
"""
JOINTS_TOML = """layout = "NHWC"
type = "uint8"
channels = "RGB"
resize = "pillow-bilinear"
size = 384
fit = "pad"
step = 32
gives = "joints"
score = 0.25
"""
BRIGHT = 50


def saved(folder, rows, toml, *, name="net", shape=(1, 3, 24, 24), kind=TensorProto.FLOAT):
    """Write a network that gives the same rows [N, D] for each bright picture, and zeros for a dark one."""
    rows = np.asarray(rows, np.float32)
    values = {
        "rows": rows[None],
        "floor": np.float32(BRIGHT),
        "axes": np.array([1, 2, 3]),
        "half": np.float32(1.0),
    }
    nodes = [
        helper.make_node("Cast", ["in"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["real", "axes"], ["top"], keepdims=0),
        helper.make_node("Greater", ["top", "floor"], ["is_bright"]),
        helper.make_node("Cast", ["is_bright"], ["on"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["rows", "on"], ["out"]),
    ]
    graph = helper.make_graph(
        nodes,
        "planted",
        [helper.make_tensor_value_info("in", kind, shape)],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, *rows.shape])],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / f"{name}.onnx")
    (folder / f"{name}.toml").write_text(toml, encoding="utf-8")
    return f"onnx:{folder / f'{name}.onnx'}"


def person(left, top, right, bottom, *, score=0.9, head=None, torso=0.3, sure=0.8, ankles=0.1):
    """Write a row of `gives = "joints"`, in shares of the input.

    Parameters
    ----------
    head
        Where nose and eyes are, across and down; by default a tenth below the top, in the middle.
    torso
        From the shoulders, a fifth below the top, to the hips, in heights of the person.
    sure
        Score of shoulders and hips; .8 of all others but the ankles.
    ankles
        Score of these.
    """
    across, height = (left + right) / 2, bottom - top
    joints = np.full((17, 3), 0.8, np.float32)
    joints[:, :2] = bottom, across
    joints[:5, :2] = (top + 0.1 * height, across) if head is None else head[::-1]
    joints[5:11, 0] = top + 0.2 * height
    joints[11:13, 0] = top + (0.2 + torso) * height
    joints[[5, 6, 11, 12], 2] = sure
    joints[15:, 2] = ankles
    return [*joints.ravel(), top, left, bottom, right, score]


def centerface_like(path, *, height=0.5, nose=0.5, side=0.0):
    """Write a network that has CenterFace's input and outputs, and finds one face in every bright picture.

    The face is as wide as high, `height` of a picture of 16 to 9, and its middle is in the cell of row 34 and
    column 60. `nose` is where the nose lies between the eyes, `side` how far the right eye is lower than the
    left, in heights of the face.
    """
    cells = height * 270 / 4
    points = np.zeros(10, np.float32)
    points[[0, 2, 4]] = 0.3 - side / 2, 0.3 + side / 2, 0.6  # down, of both eyes and of the nose
    points[[1, 3, 5]] = 0.25, 0.75, 0.25 + 0.5 * nose  # across
    of_face = {
        "537": [1.0],
        "538": [np.log(cells), np.log(cells)],
        "539": [0.0, 0.0],
        "540": points,
    }
    nodes = [
        helper.make_node("MaxPool", ["input.1"], ["cells"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("ReduceMax", ["cells"], ["top"], axes=[1], keepdims=1),
        helper.make_node("Greater", ["top", "floor"], ["is_bright"]),
        helper.make_node("Cast", ["is_bright"], ["on"], to=TensorProto.FLOAT),
    ]
    nodes += [helper.make_node("Mul", ["on", f"{name}_of"], [name]) for name in of_face]
    values = {f"{name}_of": np.asarray(each, np.float32)[:, None, None] for name, each in of_face.items()}
    values["floor"] = np.float32(BRIGHT)
    graph = helper.make_graph(
        nodes,
        "planted",
        [helper.make_tensor_value_info("input.1", TensorProto.FLOAT, [10, 3, 32, 32])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [10, len(each), 8, 8])
            for name, each in of_face.items()
        ],
        [numpy_helper.from_array(value, key) for key, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)
    onnx.save(model, path)
    return path


def with_a_bright_cell(height=180, width=320):
    """Draw a dark frame of 16 to 9, bright where the face of `centerface_like` has its middle."""
    frame = np.zeros((height, width, 3), np.uint8)
    scale = width / 480
    first = [round(cell * 4 * scale) for cell in (34, 60)]
    last = [round((cell + 1) * 4 * scale) for cell in (34, 60)]
    frame[first[0] : last[0], first[1] : last[1]] = 255
    return frame
