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
TO_THE_END: Final = np.iinfo(np.int64).max
"""Stop of a slice that goes to the end of its axis."""

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
    """Read a graph model of TensorFlow.js.

    Parameters
    ----------
    document
        Content of `model.json`.
    weights
        Content of its files of weights, joined in order.

    Raises
    ------
    BackboneError
        A part is missing, or has an unknown form.
    """
    try:
        constants = _constants(document["weightsManifest"], weights)
        nodes = [_read_node(entry) for entry in document["modelTopology"]["node"]]
        signature = document["signature"]
        # `name:0` is the first output of the node `name`, which is called `name` here.
        outputs = tuple(output["name"].removesuffix(":0") for output in signature["outputs"].values())
    except (KeyError, TypeError, ValueError) as error:
        raise BackboneError(f"no graph model of TensorFlow.js: {type(error).__name__}: {error}") from None
    inputs = tuple(node.name for node in nodes if node.operation == "Placeholder")
    computed_nodes = [node for node in nodes if node.operation not in {"Const", "Placeholder"}]
    names_before = {*constants, *inputs}  # of values that are there before any node is computed
    return GraphModel(_in_order(computed_nodes, names_before), constants, inputs, outputs)


def _constants(manifest: Sequence[Mapping[str, Any]], weights: bytes) -> dict[str, NDArray[Any]]:
    """Cut the bytes of a model's weights into arrays: name -> array, float32, or int64 for any other type.

    Parameters
    ----------
    manifest
        The model's list of arrays, in groups: name, type and shape of each, in the order of the bytes.
    weights
        The bytes.

    Raises
    ------
    ValueError
        The list asks for more or fewer bytes.
    """
    constants = {}
    start = 0
    for group in manifest:
        for entry in group["weights"]:
            stored_type = _stored_type(entry)
            shape = tuple(entry["shape"])
            n_numbers = int(np.prod(shape, dtype=np.int64))
            end = start + n_numbers * stored_type.itemsize
            values = np.frombuffer(weights[start:end], stored_type).reshape(shape)
            start = end
            computed_type = np.float32 if entry["dtype"] == "float32" else np.int64
            constants[str(entry["name"])] = values.astype(computed_type)
    if start != len(weights):
        raise ValueError(f"{len(weights):,} bytes of weights, and {start:,} were expected")
    return constants


def _stored_type(entry: Mapping[str, Any]) -> np.dtype[Any]:
    """Return the type in which the numbers of a model's constant are stored in its file of weights.

    An entry with `quantization` is stored in another type than the network computes in, such as float16.

    Parameters
    ----------
    entry
        What the model's list of arrays says of the constant.

    Raises
    ------
    ValueError
        The numbers are rounded to integers.
    """
    stored_as = entry.get("quantization", entry)  # both have the key `dtype`
    stored_type: np.dtype[Any] = np.dtype(stored_as["dtype"]).newbyteorder("<")
    is_rounded = "scale" in stored_as  # to integers that stand for scale * integer + min
    if is_rounded:
        raise ValueError(
            f"{entry['name']}: weights are rounded to {stored_type.name}; read are those of float32 "
            "and float16: convert the network without this quantization"
        )
    return stored_type


def _read_node(entry: Mapping[str, Any]) -> Node:
    """Read a node of a graph model from its JSON entry.

    Inputs that begin with `^` only say which node runs before this one, and are left out. `NAME:0` is the
    first output of the node NAME, which is called NAME here.
    """
    attributes = {}
    for name, value in (entry.get("attr") or {}).items():
        attributes[name] = _attribute(value)
    data_inputs = [name for name in entry.get("input", ()) if not name.startswith("^")]
    inputs = [name.removesuffix(":0") for name in data_inputs]
    return Node(str(entry["name"]), str(entry["op"]), tuple(inputs), attributes)


def _attribute(value: Mapping[str, Any]) -> Any:
    """Read the value of a node's attribute: a JSON object of one entry, whose key says its kind.

    The kinds are `i` (a whole number), `s` (text in base64), `list`, and others that are kept as they are.
    """
    ((kind, content),) = value.items()
    if kind == "list":
        if not content:
            return []
        ((member_kind, members),) = content.items()
        return [_attribute({member_kind: member}) for member in members]
    if kind == "i":
        return int(content)
    if kind == "s":
        return b64decode(content).decode()
    return content


def _in_order(nodes: Sequence[Node], known: set[str]) -> list[Node]:
    """Sort nodes topologically: each comes after the nodes whose outputs are its inputs.

    Parameters
    ----------
    nodes
        The nodes.
    known
        Names of the model's inputs and constants.

    Raises
    ------
    BackboneError
        An input of a node does not exist, or nodes depend on each other.
    """
    sorted_nodes: list[Node] = []
    names_before = set(known)  # of all values that come before the next node
    remaining_nodes = list(nodes)
    while remaining_nodes:
        ready_nodes = []
        waiting_nodes = []
        for node in remaining_nodes:
            # An input is called NODE, or NODE:1 for the second output of a node.
            has_all_inputs = all(name.split(":")[0] in names_before for name in node.inputs)
            if has_all_inputs:
                ready_nodes.append(node)
            else:
                waiting_nodes.append(node)
        if not ready_nodes:  # an input does not exist, or nodes wait for each other
            raise BackboneError(f"node {waiting_nodes[0].name}: nothing gives one of its inputs")
        sorted_nodes += ready_nodes
        names_before |= {node.name for node in ready_nodes}
        remaining_nodes = waiting_nodes
    return sorted_nodes


# --- writing
# ---------------------------------------------------------------------------


class Converter:
    """Convert the nodes of a graph model to those of ONNX, one by one.

    Attributes
    ----------
    nodes
        The ONNX nodes written so far.
    constants
        Name -> array, of the constants that the written nodes take.
    """

    def __init__(self, model: GraphModel) -> None:
        """Begin to convert a model: nothing is written yet."""
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self._model = model

    def convert(self, node: Node) -> None:
        """Convert a TensorFlow node to one or more ONNX nodes, which are appended to `nodes`.

        Raises
        ------
        BackboneError
            Its operation is none of those that can be converted.
        """
        if node.operation in SAME_IN_ONNX:  # ONNX has an operator with the same inputs
            self.add(SAME_IN_ONNX[node.operation], node.inputs, [node.name])
        elif node.operation in OPERATIONS:  # a function of this module converts it
            convert_operation = OPERATIONS[node.operation]
            convert_operation(self, node)
        else:
            raise BackboneError(f"node {node.name}: the operation {node.operation} is not known here")

    def add(self, operation: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> str:
        """Append an ONNX node to `nodes`, and the model's constants among its inputs to `constants`.

        Returns the name of the node's first output, for the node that takes it.

        Parameters
        ----------
        operation, inputs, outputs
            ONNX operator, and names of its inputs and outputs.
        attributes
            Attributes of the operator.
        """
        from onnx import helper  # noqa: PLC0415 - an extra

        for name in inputs:
            if name in self._model.constants:
                self.constants[name] = self._model.constants[name]
        self.nodes.append(helper.make_node(operation, inputs, outputs, **attributes))
        return outputs[0]

    def constant(self, name: str, values: Any) -> str:
        """Add a constant to the ONNX file under a name, and return the name."""
        self.constants[name] = np.asarray(values)
        return name

    def constant_of(self, name: str) -> NDArray[Any]:
        """Return the values of a constant of the model by its name.

        Raises
        ------
        BackboneError
            The name is that of a computed value.
        """
        if name not in self._model.constants:
            raise BackboneError(f"{name}: a constant was expected")
        return self._model.constants[name]

    def with_axes(self, operation: str, name: str, axes: Any, output: str) -> str:
        """Append an ONNX node whose second input is a list of axes; return the name of its output.

        Parameters
        ----------
        operation
            ONNX operator, such as Squeeze.
        name
            Name of its first input.
        axes
            One axis, or several.
        output
            Name of its output.
        """
        axes_constant = self.constant(f"{output}|axes", np.array(axes, np.int64).reshape(-1))
        return self.add(operation, [name, axes_constant], [output])

    def channels_first(self, node: Node, name: str) -> str:
        """Append a transposition of a TensorFlow node's input from NHWC to NCHW; return the result's name.

        Parameters
        ----------
        node
            The TensorFlow node that is converted.
        name
            The picture that it takes.
        """
        return self.add("Transpose", [name], [f"{node.name}|first"], perm=TO_CHANNELS_FIRST)

    def channels_last(self, node: Node, name: str) -> None:
        """Append a transposition of an array from NCHW to NHWC, whose result is the output of `node`.

        Parameters
        ----------
        node
            The TensorFlow node that is converted.
        name
            The array, which the ONNX operator gave.
        """
        self.add("Transpose", [name], [node.name], perm=TO_CHANNELS_LAST)


def to_onnx(model: GraphModel, input_type: str = "UINT8") -> bytes:
    """Convert a graph model to an ONNX file; return the bytes of the file.

    Its one input is a picture [1, height, width, 3] of any size.

    Parameters
    ----------
    model
        The model, which has one input.
    input_type
        Type of the input's pixels, by its name in ONNX.

    Raises
    ------
    BackboneError
        An operation is not known.
    ModuleNotFoundError
        The package onnx is not installed.
    """
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - an extra

    converter = Converter(model)
    (input_name,) = model.inputs
    pixels_name = f"{input_name}|pixels"  # the input of the ONNX file, which becomes the model's by a cast
    converter.add("Cast", [pixels_name], [input_name], to=TensorProto.INT64)
    for node in model.nodes:
        converter.convert(node)

    pixels_type = getattr(TensorProto, input_type)
    graph = helper.make_graph(
        converter.nodes,
        "network",
        [helper.make_tensor_value_info(pixels_name, pixels_type, [1, "height", "width", 3])],
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
    """Convert a TensorFlow convolution to ONNX, with the bias and the activation that are fused with it.

    TensorFlow has the channels of pictures last, ONNX first: the picture is transposed before and after.
    """
    picture, kernel_name, *bias = node.inputs
    kernel = converter.constant_of(kernel_name)  # [height, width, channels in, channels out]
    n_groups = 1
    if "Depthwise" in node.operation:
        # Each channel in has kernels of its own: [height, width, channels in, kernels of a channel]. In ONNX
        # that is a group for each channel, and one channel in for each kernel.
        height, width, n_channels_in, _ = kernel.shape
        n_groups = n_channels_in
        kernel = kernel.reshape(height, width, 1, -1)
    onnx_kernel = np.ascontiguousarray(kernel.transpose(3, 2, 0, 1))  # [channels out, channels in, ...]

    picture_first = converter.channels_first(node, picture)
    kernel_constant = converter.constant(f"{node.name}|kernel", onnx_kernel)
    result = converter.add(
        "Conv",
        [picture_first, kernel_constant, *bias],
        [f"{node.name}|convolved"],
        auto_pad=_padding(node),
        dilations=node.attributes["dilations"][1:3],  # of height and width: axes 1 and 2
        group=n_groups,
        strides=node.attributes["strides"][1:3],
    )
    for name in node.attributes.get("fused_ops", []):
        if name != "BiasAdd":  # ONNX's Conv takes the bias as an input
            result = _activation(converter, node, name, result)
    converter.channels_last(node, result)


def _activation(converter: Converter, node: Node, name: str, values: str) -> str:
    """Append an activation to the ONNX nodes; return the name of its output.

    Parameters
    ----------
    converter
        The nodes so far.
    node
        The TensorFlow node with which the activation is fused.
    name
        `Relu`, or `Relu6`, which cuts values at 0 and 6.
    values
        Name of its input.

    Raises
    ------
    BackboneError
        It is another activation.
    """
    output = f"{node.name}|{name}"
    if name == "Relu":
        return converter.add("Relu", [values], [output])
    if name == "Relu6":
        lowest = converter.constant(f"{node.name}|0.0", np.float32(0.0))
        highest = converter.constant(f"{node.name}|6.0", np.float32(6.0))
        return converter.add("Clip", [values, lowest, highest], [output])
    raise BackboneError(f"node {node.name}: {name} is not known here")


def _padding(node: Node) -> str:
    """Return ONNX's `auto_pad` for the padding of a TensorFlow node, SAME or VALID.

    With SAME, TensorFlow puts an odd pixel of padding at the end, which ONNX calls SAME_UPPER.
    """
    return "SAME_UPPER" if node.attributes["padding"] == "SAME" else "VALID"


def _max_pool(converter: Converter, node: Node) -> None:
    """Convert a maximum over a window of pixels (MaxPool).

    TensorFlow has the channels of pictures last, ONNX first: the picture is transposed before and after.
    """
    picture_first = converter.channels_first(node, node.inputs[0])
    largest = converter.add(
        "MaxPool",
        [picture_first],
        [f"{node.name}|largest"],
        auto_pad=_padding(node),
        kernel_shape=node.attributes["ksize"][1:3],  # of height and width: axes 1 and 2
        strides=node.attributes["strides"][1:3],
    )
    converter.channels_last(node, largest)


def _resize(converter: Converter, node: Node) -> None:
    """Convert a bilinear resize to a height and width that are computed in the graph.

    Raises
    ------
    BackboneError
        Pixels do not have their centres at halves: only that way of resizing is converted.
    """
    if node.attributes["align_corners"] or not node.attributes["half_pixel_centers"]:
        raise BackboneError(f"node {node.name}: pictures are resized in a way that is not known here")
    picture, height_and_width = node.inputs
    picture_first = converter.channels_first(node, picture)
    # ONNX wants all four sizes of the result. N and C, the first two, are those of the picture.
    n_and_c = converter.add("Shape", [picture_first], [f"{node.name}|shape"], end=2)
    sizes = converter.add("Concat", [n_and_c, height_and_width], [f"{node.name}|sizes"], axis=0)
    no_region, no_scales = "", ""  # optional inputs that `sizes` replaces
    resized = converter.add(
        "Resize",
        [picture_first, no_region, no_scales, sizes],
        [f"{node.name}|resized"],
        mode="linear",
        coordinate_transformation_mode="half_pixel",
    )
    converter.channels_last(node, resized)


def _cast(converter: Converter, node: Node) -> None:
    """Convert a change of type (Cast).

    Whole numbers become 64 bits wide, as all are in the ONNX graph: ONNX wants such ones for shapes and
    positions.
    """
    from onnx import TensorProto  # noqa: PLC0415 - an extra

    onnx_types = {"DT_FLOAT": TensorProto.FLOAT, "DT_INT32": TensorProto.INT64, "DT_BOOL": TensorProto.BOOL}
    tensorflow_type = node.attributes["DstT"]
    converter.add("Cast", node.inputs, [node.name], to=onnx_types[tensorflow_type])


def _whole_quotient(converter: Converter, node: Node) -> None:
    """Convert FloorDiv to Div, which is the same for whole numbers that are not negative."""
    if node.attributes["T"] != "DT_INT32":
        raise BackboneError(f"node {node.name}: whole quotients of {node.attributes['T']} are not known here")
    converter.add("Div", node.inputs, [node.name])


def _squared_difference(converter: Converter, node: Node) -> None:
    """Convert (a - b)^2 to a subtraction and a product."""
    difference = converter.add("Sub", node.inputs, [f"{node.name}|difference"])
    converter.add("Mul", [difference, difference], [node.name])


def _pack(converter: Converter, node: Node) -> None:
    """Convert Pack, which stacks arrays along a new axis: unsqueeze each, then concatenate."""
    axis = node.attributes["axis"]
    parts = [
        converter.with_axes("Unsqueeze", name, axis, f"{node.name}|part{number}")
        for number, name in enumerate(node.inputs)
    ]
    converter.add("Concat", parts, [node.name], axis=axis)


def _outputs(node: Node, n_outputs: int) -> list[str]:
    """Return the names of the outputs of a TensorFlow node that has several: `name`, `name:1` and so on."""
    further_names = [f"{node.name}:{index}" for index in range(1, n_outputs)]
    return [node.name, *further_names]


def _unpack(converter: Converter, node: Node) -> None:
    """Convert Unpack, which takes an array apart along an axis: split it, then squeeze each part."""
    n_parts = node.attributes["num"]
    axis = node.attributes["axis"]
    names = _outputs(node, n_parts)
    parts = [f"{name}|part" for name in names]
    converter.add("Split", node.inputs, parts, axis=axis, num_outputs=n_parts)
    for part, name in zip(parts, names, strict=True):
        converter.with_axes("Squeeze", part, axis, name)


def _split(converter: Converter, node: Node) -> None:
    """Convert Split, which cuts an array into equal parts along a constant axis."""
    axis_name, array_name = node.inputs
    n_parts = node.attributes["num_split"]
    axis = int(converter.constant_of(axis_name))
    converter.add("Split", [array_name], _outputs(node, n_parts), axis=axis, num_outputs=n_parts)


class _Indexing:
    """What numpy's `array[begin:stop:step, index, newaxis]` does, in the three steps that ONNX has for it.

    TensorFlow has one operation for such an indexing, StridedSlice; ONNX has Slice, Squeeze and Unsqueeze.
    For example, `array[2, newaxis, :3]` slices axis 0 by 2:3 and axis 1 by :3 (Slice); then it removes axis
    0, which has length 1 (Squeeze), and inserts a new axis at the beginning (Unsqueeze). The methods are
    called for the entries of the brackets, from left to right.

    Attributes
    ----------
    ranges
        Input of ONNX's Slice -> its value for each sliced axis.
    removed_axes
        Axes of the sliced array that are removed, which have length 1.
    new_axes
        Axes of the result that are inserted.
    """

    def __init__(self) -> None:
        """Begin at the first axis of the array and of the result, with nothing indexed yet."""
        self.ranges: dict[str, list[int]] = {"starts": [], "stops": [], "axes": [], "steps": []}
        self.removed_axes: list[int] = []
        self.new_axes: list[int] = []
        self._next_axis = 0  # axis of the array that the next entry of the brackets is about
        self._next_result_axis = 0  # axis of the result that the next entry makes, if it makes one

    def add_new_axis(self) -> None:
        """Note that the result gets a new axis here."""
        self.new_axes.append(self._next_result_axis)
        self._next_result_axis += 1

    def add_index(self, index: int, step: int) -> None:
        """Note that one element is taken of the array's next axis, so that the result lacks the axis.

        A single index, as in `array[2]`, becomes a slice of length 1, 2:3, whose axis is removed afterwards.
        """
        self.removed_axes.append(self._next_axis)
        # The last element is -1:END, as -1:0 would be empty.
        stop = TO_THE_END if index == -1 else index + 1
        self._add_slice(index, stop, step)

    def add_range(self, begin: int, stop: int, step: int) -> None:
        """Note that a range, such as 1:3, is taken of the array's next axis; the result keeps this axis.

        So the next entry of the brackets is about the axis after it, in the array and in the result.
        """
        self._add_slice(begin, stop, step)
        self._next_result_axis += 1

    def _add_slice(self, begin: int, stop: int, step: int) -> None:
        """Note the slice of the array's next axis, and go on to the axis after it.

        `ranges` has an entry for each sliced axis in every input of ONNX's Slice.
        """
        self.ranges["starts"].append(begin)
        self.ranges["stops"].append(stop)
        self.ranges["axes"].append(self._next_axis)
        self.ranges["steps"].append(step)
        self._next_axis += 1


def _strided_slice(converter: Converter, node: Node) -> None:
    """Convert StridedSlice, which is numpy's indexing of an array by ranges, indices and new axes.

    ONNX has an operator for each: Slice for ranges, Squeeze for axes of which one element is taken, and
    Unsqueeze for new axes.
    """
    array_name, begins_name, stops_name, steps_name = node.inputs
    indexing = _read_indexing(
        node,
        begins=converter.constant_of(begins_name).tolist(),
        stops=converter.constant_of(stops_name).tolist(),
        steps=converter.constant_of(steps_name).tolist(),
    )
    # Each step takes the result of the step before.
    result = array_name
    if indexing.ranges["axes"]:
        constants = []
        for key, values in indexing.ranges.items():
            constants.append(converter.constant(f"{node.name}|{key}", np.array(values, np.int64)))
        result = converter.add("Slice", [result, *constants], [f"{node.name}|sliced"])
    if indexing.removed_axes:
        result = converter.with_axes("Squeeze", result, indexing.removed_axes, f"{node.name}|taken")
    if indexing.new_axes:
        result = converter.with_axes("Unsqueeze", result, indexing.new_axes, f"{node.name}|new")
    converter.add("Identity", [result], [node.name])


def _read_indexing(
    node: Node, begins: Sequence[int], stops: Sequence[int], steps: Sequence[int]
) -> _Indexing:
    """Read the entries of a StridedSlice: what stands between the brackets of numpy's indexing.

    Entry i is the range `begins[i]:stops[i]:steps[i]`, unless a mask among the node's attributes says
    something else. A mask has a bit for each entry, which means if it is 1:

    - in `new_axis_mask`: the entry is a new axis;
    - in `shrink_axis_mask`: the entry is an index;
    - in `begin_mask`: the entry is a range that starts at the beginning of its axis;
    - in `end_mask`: the entry is a range that goes to the end of its axis.

    Entries without a bit in the first two masks are ranges.

    Raises
    ------
    BackboneError
        The indexing has an ellipsis.
    """
    masks = node.attributes
    if masks["ellipsis_mask"]:
        raise BackboneError(f"node {node.name}: slices with an ellipsis are not known here")
    indexing = _Indexing()
    for position, step in enumerate(steps):
        bit = 1 << position
        if masks["new_axis_mask"] & bit:
            indexing.add_new_axis()
        elif masks["shrink_axis_mask"] & bit:
            indexing.add_index(begins[position], step)
        else:
            begin = 0 if masks["begin_mask"] & bit else begins[position]
            stop = TO_THE_END if masks["end_mask"] & bit else stops[position]
            indexing.add_range(begin, stop, step)
    return indexing


def _squeeze(converter: Converter, node: Node) -> None:
    """Convert Squeeze, which removes axes of length 1; an attribute of the node lists them."""
    converter.with_axes("Squeeze", node.inputs[0], node.attributes["squeeze_dims"], node.name)


def _new_axis(converter: Converter, node: Node) -> None:
    """Convert ExpandDims, which inserts an axis of length 1 at a constant position."""
    name, axis = node.inputs
    converter.with_axes("Unsqueeze", name, converter.constant_of(axis), node.name)


def _fill(converter: Converter, node: Node) -> None:
    """Convert Fill, which makes an array of a computed shape from one value."""
    shape, value = node.inputs
    converter.add("Expand", [value, shape], [node.name])


def _largest_k(converter: Converter, node: Node) -> None:
    """Convert TopKV2, which gives the k largest values along the last axis, and their positions, to TopK."""
    array_name, k_name = node.inputs
    k = converter.constant_of(k_name).reshape(1)  # ONNX wants an array of one number
    onnx_k_name = converter.constant(f"{node.name}|k", k)
    converter.add("TopK", [array_name, onnx_k_name], _outputs(node, n_outputs=2))


def _reduce(converter: Converter, node: Node) -> None:
    """Convert Max or Sum over constant axes to ReduceMax or ReduceSum."""
    array_name, axes_name = node.inputs
    axes = converter.constant_of(axes_name).reshape(-1)
    onnx_axes_name = converter.constant(f"{node.name}|axes", axes)
    keeps_axes = int(node.attributes["keep_dims"])
    converter.add(f"Reduce{node.operation}", [array_name, onnx_axes_name], [node.name], keepdims=keeps_axes)


def _arg_max(converter: Converter, node: Node) -> None:
    """Convert ArgMax along a constant axis."""
    name, axis = node.inputs
    converter.add("ArgMax", [name], [node.name], axis=int(converter.constant_of(axis)), keepdims=0)


def _concat(converter: Converter, node: Node) -> None:
    """Convert a concatenation of arrays along a constant axis."""
    *names, axis = node.inputs
    converter.add("Concat", names, [node.name], axis=int(converter.constant_of(axis)))


OPERATIONS: Final[Mapping[str, Callable[[Converter, Node], None]]] = {
    "_FusedConv2D": _convolution,
    "ArgMax": _arg_max,
    "Cast": _cast,
    "ConcatV2": _concat,
    "DepthwiseConv2dNative": _convolution,
    "ExpandDims": _new_axis,
    "Fill": _fill,
    "FloorDiv": _whole_quotient,
    "FusedDepthwiseConv2dNative": _convolution,
    "Max": _reduce,
    "MaxPool": _max_pool,
    "Pack": _pack,
    "ResizeBilinear": _resize,
    "Split": _split,
    "SquaredDifference": _squared_difference,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Sum": _reduce,
    "TopKV2": _largest_k,
    "Unpack": _unpack,
}
"""Operation of TensorFlow -> what writes it."""
