"""Convert graph models of TensorFlow.js to ONNX: a JSON document of nodes, and a file of weights.

Those operations are known that the networks in `converted.py` have. Whole numbers of 32 bits become ones of
64, as ONNX wants them for shapes and places. Pictures lie as in TensorFlow (NHWC); around convolutions they
are turned, and onnxruntime takes out what turns there and back.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import BackboneError

OPSET: Final = 18
IR_VERSION: Final = 9
LAST: Final = np.iinfo(np.int64).max
"""End of a slice that goes to the end."""

TO_CHANNELS_FIRST, TO_CHANNELS_LAST = [0, 3, 1, 2], [0, 2, 3, 1]

SAME_IN_ONNX: Final[Mapping[str, str]] = {
    "Abs": "Abs",
    "AddN": "Sum",
    "AddV2": "Add",
    "Equal": "Equal",
    "Exp": "Exp",
    "GatherNd": "GatherND",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
    "Identity": "Identity",
    "Less": "Less",
    "LogicalAnd": "And",
    "Maximum": "Max",
    "Minimum": "Min",
    "Mul": "Mul",
    "Range": "Range",
    "RealDiv": "Div",
    "Reciprocal": "Reciprocal",
    "Reshape": "Reshape",
    "Select": "Where",
    "Shape": "Shape",
    "Sigmoid": "Sigmoid",
    "Size": "Size",
    "Sub": "Sub",
    "Tile": "Tile",
}
"""Operation of TensorFlow -> that of ONNX with the same inputs in the same order."""


class Node(NamedTuple):
    """A node of a graph model.

    Attributes
    ----------
    attributes
        Name -> value: numbers, lists of numbers, texts, or types such as `DT_FLOAT`.
    """

    name: str
    operation: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Any]


class GraphModel(NamedTuple):
    """A graph model: its nodes in an order in which inputs come first, and its constants by name."""

    nodes: Sequence[Node]
    constants: Mapping[str, NDArray[Any]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


# --- reading
# ---------------------------------------------------------------------------


def read_graph_model(document: Mapping[str, Any], weights: bytes) -> GraphModel:
    """Read a graph model.

    Parameters
    ----------
    document
        Of `model.json`.
    weights
        The content of its files of weights, one behind the other.

    Raises
    ------
    BackboneError
        Something is missing, or in a form that is not known.
    """
    try:
        constants = _constants(document["weightsManifest"], weights)
        nodes = [_node(each) for each in document["modelTopology"]["node"]]
        signature = document["signature"]
        outputs = tuple(each["name"].removesuffix(":0") for each in signature["outputs"].values())
    except (KeyError, TypeError, ValueError) as error:
        raise BackboneError(f"no graph model of TensorFlow.js: {type(error).__name__}: {error}") from None
    inputs = tuple(node.name for node in nodes if node.operation == "Placeholder")
    computed = [node for node in nodes if node.operation not in {"Const", "Placeholder"}]
    return GraphModel(_in_order(computed, {*constants, *inputs}), constants, inputs, outputs)


def _constants(manifest: Sequence[Mapping[str, Any]], weights: bytes) -> dict[str, NDArray[Any]]:
    """Cut weights into arrays: real numbers of 32 bits, whole ones of 64."""
    constants = {}
    start = 0
    for group in manifest:
        for entry in group["weights"]:
            stored = np.dtype(entry.get("quantization", entry)["dtype"])
            shape = tuple(entry["shape"])
            n_bytes = int(np.prod(shape, dtype=np.int64)) * stored.itemsize
            values = np.frombuffer(weights[start : start + n_bytes], stored.newbyteorder("<")).reshape(shape)
            start += n_bytes
            kind = np.float32 if entry["dtype"] == "float32" else np.int64
            constants[str(entry["name"])] = values.astype(kind)
    if start != len(weights):
        raise ValueError(f"{len(weights):,} bytes of weights, and {start:,} were expected")
    return constants


def _node(entry: Mapping[str, Any]) -> Node:
    attributes = {name: _attribute(value) for name, value in (entry.get("attr") or {}).items()}
    inputs = tuple(name.removesuffix(":0") for name in entry.get("input", ()) if not name.startswith("^"))
    return Node(str(entry["name"]), str(entry["op"]), inputs, attributes)


def _attribute(value: Mapping[str, Any]) -> Any:
    """Read an attribute: a dict of one entry, named after its kind."""
    ((kind, content),) = value.items()
    if kind == "list":
        ((of, members),) = content.items() if content else (("i", []),)
        return [_attribute({of: member}) for member in members]
    if kind == "i":
        return int(content)
    if kind == "s":
        return b64decode(content).decode()
    return content


def _in_order(nodes: Sequence[Node], known: set[str]) -> list[Node]:
    """Sort nodes so that each stands behind those whose outputs it takes."""
    ordered: list[Node] = []
    left = list(nodes)
    while left:
        ready = [node for node in left if all(name.split(":")[0] in known for name in node.inputs)]
        if not ready:
            raise BackboneError(f"node {left[0].name}: nothing gives one of its inputs")
        ordered += ready
        known |= {node.name for node in ready}
        left = [node for node in left if node.name not in known]
    return ordered


# --- writing
# ---------------------------------------------------------------------------


class Converter:
    """Writes the nodes of a graph model as those of ONNX, one by one.

    Attributes
    ----------
    nodes
        What is written so far, of `onnx`.
    constants
        Name -> array, of those that the written nodes take.
    """

    def __init__(self, model: GraphModel) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self._model = model

    def write(self, node: Node) -> None:
        """Write a node.

        Raises
        ------
        BackboneError
            Its operation is not known.
        """
        if node.operation in SAME_IN_ONNX:
            self.add(SAME_IN_ONNX[node.operation], node.inputs, [node.name])
        elif node.operation in OPERATIONS:
            OPERATIONS[node.operation](self, node)
        else:
            raise BackboneError(f"node {node.name}: the operation {node.operation} is not known here")

    def add(self, operation: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> str:
        """Add a node of ONNX; return its first output."""
        from onnx import helper  # noqa: PLC0415 - an extra

        for name in inputs:
            if name in self._model.constants:
                self.constants[name] = self._model.constants[name]
        self.nodes.append(helper.make_node(operation, inputs, outputs, **attributes))
        return outputs[0]

    def constant(self, name: str, values: Any) -> str:
        """Add a constant; return its name."""
        self.constants[name] = np.asarray(values)
        return name

    def known(self, name: str) -> NDArray[Any]:
        """Return a constant of the model.

        Raises
        ------
        BackboneError
            It is computed.
        """
        if name not in self._model.constants:
            raise BackboneError(f"{name}: a constant was expected")
        return self._model.constants[name]

    def with_axes(self, operation: str, name: str, axes: Any, output: str) -> str:
        """Add a node whose second input is a list of axes; return its output."""
        constant = self.constant(f"{output}|axes", np.array(axes, np.int64).reshape(-1))
        return self.add(operation, [name, constant], [output])

    def channels_first(self, node: Node, name: str) -> str:
        """Turn a picture for a node."""
        return self.add("Transpose", [name], [f"{node.name}|first"], perm=TO_CHANNELS_FIRST)

    def channels_last(self, node: Node, name: str) -> None:
        """Turn a picture back, as the output of a node."""
        self.add("Transpose", [name], [node.name], perm=TO_CHANNELS_LAST)


def to_onnx(model: GraphModel, input_kind: str = "UINT8") -> bytes:
    """Write a graph model of one input, a picture [1, height, width, 3] of any size, as an ONNX file.

    Parameters
    ----------
    input_kind
        Type of the input's pixels, as ONNX calls it.

    Raises
    ------
    BackboneError
        An operation is not known.
    ModuleNotFoundError
        The package onnx is not installed.
    """
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - an extra

    converter = Converter(model)
    (name,) = model.inputs
    picture = f"{name}|pixels"
    converter.add("Cast", [picture], [name], to=TensorProto.INT64)
    for node in model.nodes:
        converter.write(node)
    kind = getattr(TensorProto, input_kind)
    graph = helper.make_graph(
        converter.nodes,
        "network",
        [helper.make_tensor_value_info(picture, kind, [1, "height", "width", 3])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None) for output in model.outputs],
        [numpy_helper.from_array(values, key) for key, values in converter.constants.items()],
    )
    opset = [helper.make_opsetid("", OPSET)]
    onnx_model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
    content: bytes = onnx_model.SerializeToString(deterministic=True)
    return content


# --- operations whose inputs or attributes differ
# ---------------------------------------------------------------------------


def _convolution(converter: Converter, node: Node) -> None:
    """Convolve, with a bias and what cuts the result off where they are fused with it."""
    picture, kernel_name, *bias = node.inputs
    kernel = converter.known(kernel_name)  # height, width, channels in, channels out
    group = 1
    if "Depthwise" in node.operation:
        group = kernel.shape[2]
        kernel = kernel.reshape(*kernel.shape[:2], 1, -1)
    turned = converter.constant(f"{node.name}|kernel", np.ascontiguousarray(kernel.transpose(3, 2, 0, 1)))
    fused = [name for name in node.attributes.get("fused_ops", []) if name != "BiasAdd"]
    result = converter.add(
        "Conv",
        [converter.channels_first(node, picture), turned, *bias],
        [f"{node.name}|convolved"],
        auto_pad=_padding(node),
        dilations=node.attributes["dilations"][1:3],
        group=group,
        strides=node.attributes["strides"][1:3],
    )
    for name in fused:
        if name == "Relu":
            result = converter.add("Relu", [result], [f"{node.name}|{name}"])
        elif name == "Relu6":
            bounds = [converter.constant(f"{node.name}|{bound}", np.float32(bound)) for bound in (0.0, 6.0)]
            result = converter.add("Clip", [result, *bounds], [f"{node.name}|{name}"])
        else:
            raise BackboneError(f"node {node.name}: {name} is not known here")
    converter.channels_last(node, result)


def _padding(node: Node) -> str:
    return "SAME_UPPER" if node.attributes["padding"] == "SAME" else "VALID"


def _largest_around(converter: Converter, node: Node) -> None:
    largest = converter.add(
        "MaxPool",
        [converter.channels_first(node, node.inputs[0])],
        [f"{node.name}|largest"],
        auto_pad=_padding(node),
        kernel_shape=node.attributes["ksize"][1:3],
        strides=node.attributes["strides"][1:3],
    )
    converter.channels_last(node, largest)


def _resize(converter: Converter, node: Node) -> None:
    """Resize pictures to a computed height and width."""
    if node.attributes["align_corners"] or not node.attributes["half_pixel_centers"]:
        raise BackboneError(f"node {node.name}: pictures are resized in a way that is not known here")
    picture, size = node.inputs
    first = converter.channels_first(node, picture)
    shape = converter.add("Shape", [first], [f"{node.name}|shape"], end=2)
    sizes = converter.add("Concat", [shape, size], [f"{node.name}|sizes"], axis=0)
    resized = converter.add(
        "Resize",
        [first, "", "", sizes],
        [f"{node.name}|resized"],
        mode="linear",
        coordinate_transformation_mode="half_pixel",
    )
    converter.channels_last(node, resized)


def _cast(converter: Converter, node: Node) -> None:
    from onnx import TensorProto  # noqa: PLC0415 - an extra

    kinds = {"DT_FLOAT": TensorProto.FLOAT, "DT_INT32": TensorProto.INT64, "DT_BOOL": TensorProto.BOOL}
    converter.add("Cast", node.inputs, [node.name], to=kinds[node.attributes["DstT"]])


def _whole_quotient(converter: Converter, node: Node) -> None:
    """Divide whole numbers that are not negative."""
    if node.attributes["T"] != "DT_INT32":
        raise BackboneError(f"node {node.name}: whole quotients of {node.attributes['T']} are not known here")
    converter.add("Div", node.inputs, [node.name])


def _squared_difference(converter: Converter, node: Node) -> None:
    difference = converter.add("Sub", node.inputs, [f"{node.name}|difference"])
    converter.add("Mul", [difference, difference], [node.name])


def _pack(converter: Converter, node: Node) -> None:
    axis = node.attributes["axis"]
    parts = [
        converter.with_axes("Unsqueeze", name, axis, f"{node.name}|part{number}")
        for number, name in enumerate(node.inputs)
    ]
    converter.add("Concat", parts, [node.name], axis=axis)


def _outputs(node: Node, number: int) -> list[str]:
    """Name the outputs of a node: `name`, `name:1` and so on."""
    return [node.name, *(f"{node.name}:{index}" for index in range(1, number))]


def _unpack(converter: Converter, node: Node) -> None:
    number, axis = node.attributes["num"], node.attributes["axis"]
    names = _outputs(node, number)
    parts = [f"{name}|part" for name in names]
    converter.add("Split", node.inputs, parts, axis=axis, num_outputs=number)
    for part, name in zip(parts, names, strict=True):
        converter.with_axes("Squeeze", part, axis, name)


def _split(converter: Converter, node: Node) -> None:
    axis, name = node.inputs
    number = node.attributes["num_split"]
    outputs = _outputs(node, number)
    converter.add("Split", [name], outputs, axis=int(converter.known(axis)), num_outputs=number)


def _slice(converter: Converter, node: Node) -> None:
    """Take what lies between two ends, places, and new axes, by the bits of masks."""
    name, *ends = node.inputs
    begins, stops, steps = (converter.known(each).tolist() for each in ends)
    masks = node.attributes
    if masks["ellipsis_mask"]:
        raise BackboneError(f"node {node.name}: slices with an ellipsis are not known here")
    sliced: dict[str, list[int]] = {"starts": [], "stops": [], "axes": [], "steps": []}
    taken: list[int] = []  # axes of the input that go
    new: list[int] = []  # axes of the result
    axis = 0
    for position, step in enumerate(steps):
        bit = 1 << position
        begin, stop = begins[position], stops[position]
        if masks["new_axis_mask"] & bit:
            new.append(axis - len(taken) + len(new))
            continue
        if masks["shrink_axis_mask"] & bit:
            taken.append(axis)
            stop = begin + 1 or LAST
        else:
            begin = 0 if masks["begin_mask"] & bit else begin
            stop = LAST if masks["end_mask"] & bit else stop
        for key, value in zip(sliced, (begin, stop, axis, step), strict=True):
            sliced[key].append(value)
        axis += 1
    if sliced["axes"]:
        constants = [
            converter.constant(f"{node.name}|{key}", np.array(values, np.int64))
            for key, values in sliced.items()
        ]
        name = converter.add("Slice", [name, *constants], [f"{node.name}|sliced"])
    if taken:
        name = converter.with_axes("Squeeze", name, taken, f"{node.name}|taken")
    if new:
        name = converter.with_axes("Unsqueeze", name, new, f"{node.name}|new")
    converter.add("Identity", [name], [node.name])


def _squeeze(converter: Converter, node: Node) -> None:
    converter.with_axes("Squeeze", node.inputs[0], node.attributes["squeeze_dims"], node.name)


def _new_axis(converter: Converter, node: Node) -> None:
    name, axis = node.inputs
    converter.with_axes("Unsqueeze", name, converter.known(axis), node.name)


def _fill(converter: Converter, node: Node) -> None:
    shape, value = node.inputs
    converter.add("Expand", [value, shape], [node.name])


def _largest_k(converter: Converter, node: Node) -> None:
    name, number = node.inputs
    k = converter.constant(f"{node.name}|k", converter.known(number).reshape(1))
    converter.add("TopK", [name, k], _outputs(node, 2))


def _reduce(converter: Converter, node: Node) -> None:
    name, axes = node.inputs
    constant = converter.constant(f"{node.name}|axes", converter.known(axes).reshape(-1))
    keeps = int(node.attributes["keep_dims"])
    converter.add(f"Reduce{node.operation}", [name, constant], [node.name], keepdims=keeps)


def _place_of_largest(converter: Converter, node: Node) -> None:
    name, axis = node.inputs
    converter.add("ArgMax", [name], [node.name], axis=int(converter.known(axis)), keepdims=0)


def _concat(converter: Converter, node: Node) -> None:
    *names, axis = node.inputs
    converter.add("Concat", names, [node.name], axis=int(converter.known(axis)))


OPERATIONS: Final[Mapping[str, Callable[[Converter, Node], None]]] = {
    "_FusedConv2D": _convolution,
    "ArgMax": _place_of_largest,
    "Cast": _cast,
    "ConcatV2": _concat,
    "DepthwiseConv2dNative": _convolution,
    "ExpandDims": _new_axis,
    "Fill": _fill,
    "FloorDiv": _whole_quotient,
    "FusedDepthwiseConv2dNative": _convolution,
    "Max": _reduce,
    "MaxPool": _largest_around,
    "Pack": _pack,
    "ResizeBilinear": _resize,
    "Split": _split,
    "SquaredDifference": _squared_difference,
    "Squeeze": _squeeze,
    "StridedSlice": _slice,
    "Sum": _reduce,
    "TopKV2": _largest_k,
    "Unpack": _unpack,
}
"""Operation of TensorFlow -> what writes it."""
