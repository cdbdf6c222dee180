"""FLOP, kernels, bytes and memory of the full-size networks on a card, counted on shapes alone.

The real call of `Runner` runs on fake tensors "on cuda": nothing is computed and no card is needed. Every
operation that is more than a view counts as one kernel that reads its inputs and writes its outputs once,
which is what torch does without a compiler. Attention counts as one kernel (flash or memory-efficient).

    python benchmarks/gpu_counts.py [--at-once 8]
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any
from unittest import mock

import torch
from measure import arguments, show
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry
from transformers import (
    CLIPVisionConfig,
    CLIPVisionModelWithProjection,
    VivitConfig,
    VivitModel,
    XCLIPConfig,
    XCLIPModel,
)

from obygaze_features.backbones import Output
from obygaze_features.backbones.compute import Compute, Precision
from obygaze_features.backbones.network import FrameByFrame, fuse_activations
from obygaze_features.backbones.presets import IMAGENET
from obygaze_features.backbones.runner import Runner
from obygaze_features.backbones.vivit import VivitTokens
from obygaze_features.backbones.xclip import XClipTokens
from obygaze_features.backbones.xclip_lsmdc import XClipLsmdc, XClipLsmdcTokens
from obygaze_features.backbones.xclip_lsmdc_checkpoint import LsmdcFormat

NAMES = ("xclip", "vivit", "xclip-lsmdc", "clip")
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "bfloat16-weights")
NO_KERNEL = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "detach",
    "lift_fresh",
    "_unsafe_view",
    "alias",
    "device",
    "dropout",
}
PRODUCTS = {"linear", "mm", "addmm", "bmm", "baddbmm", "conv2d", "conv3d", "convolution", "attention"}
CUDA = torch.device("cuda", 0)


@dataclass(frozen=True, slots=True)
class Counts:
    """What one call of a network costs; of a clip but for kernels and weights.

    Parameters
    ----------
    flop
        Floating-point operations of products and attention, two for each multiplication.
    traffic, elementwise
        Bytes read and written by all kernels, and by those that are neither products nor attention.
    kernels
        In one call.
    weights
        Bytes of parameters and buffers.
    activations
        The most bytes alive at one time beside the weights.
    up, down
        Bytes from the host and to it.
    """

    flop: float
    traffic: float
    elementwise: float
    kernels: int
    weights: int
    activations: float
    up: float
    down: float


def network(name: str) -> tuple[nn.Module, int, dict[str, tuple[int, ...]]]:
    """Build a full-size network without loaded weights; give its frames and the shapes of its outputs too."""
    how = {"attn_implementation": "sdpa"}
    if name == "xclip":
        config = XCLIPConfig(vision_config={"patch_size": 16, "num_frames": 32})
        model: Any = XCLIPModel._from_config(config, **how)
        return XClipTokens(model), 32, {"frames": (32, 512), "pooled": (512,)}
    if name == "vivit":
        model = VivitModel._from_config(VivitConfig(), add_pooling_layer=False, **how)
        return VivitTokens(model, 16), 32, {"frames": (16, 768), "pooled": (768,), "tokens": (3137, 768)}
    if name == "xclip-lsmdc":
        shapes = {"frames": (12, 512), "pooled": (512,), "tokens": (12, 512)}
        return XClipLsmdcTokens(XClipLsmdc(LsmdcFormat())), 12, shapes
    model = CLIPVisionModelWithProjection._from_config(CLIPVisionConfig(patch_size=16), **how)
    return FrameByFrame(model, "image_embeds"), 32, {"frames": (32, 512), "pooled": (512,)}


def count(name: str, precision: Precision, at_once: int = 8) -> Counts:
    """Count one call of a network."""
    with FakeTensorMode(allow_non_fake_inputs=True), _pretending():
        module, n_frames, shapes = network(name)
        fuse_activations(module)
        module = module.eval().requires_grad_(requires_grad=False)
        _to_card(module, torch.bfloat16 if precision == "bfloat16-weights" else torch.float32)
        compute = Compute(device="cuda", precision=precision)
        half = "float32" if precision == "float32" else "float16"
        dtypes: dict[str, Any] = {"pooled": "float32", "frames": half, "tokens": "float16"}
        outputs = tuple(Output(array, shape, dtypes[array]) for array, shape in shapes.items())
        runner = Runner(name, module, IMAGENET, outputs, n_frames=n_frames, size=224, compute=compute)
        runner._scale = runner._shift = torch.empty(1, 1, 3, 1, 1, device=CUDA)
        pixels = torch.empty(at_once, n_frames, 224, 224, 3, dtype=torch.uint8, device=CUDA)
        counter = _Counter()
        with mock.patch("torch.nn.functional.scaled_dot_product_attention", counter.attention), counter:
            results = runner._forward(pixels)
        weights = sum(_bytes(value) for value in (*module.parameters(), *module.buffers()))
        return Counts(
            flop=counter.flop / at_once,
            traffic=counter.traffic / at_once,
            elementwise=counter.elementwise / at_once,
            kernels=counter.kernels,
            weights=weights,
            activations=counter.peak / at_once,
            up=_bytes(pixels) / at_once,
            down=sum(_bytes(value) for value in results.values()) / at_once,
        )


class _Counter(TorchDispatchMode):
    """Sees every operation below autocast."""

    def __init__(self) -> None:
        super().__init__()
        self.flop = self.traffic = self.elementwise = self.kernels = 0
        self.alive = self.peak = 0
        self._storages: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func._schema.name.split("::")[1]
        read = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        written = [value for value in tree_leaves(out) if isinstance(value, torch.Tensor)]
        for value in written:
            self._hold(value)
        inputs = {value.untyped_storage()._cdata for value in read}
        views = bool(written) and all(value.untyped_storage()._cdata in inputs for value in written)
        if name in NO_KERNEL or (views and not name.endswith("_")):
            return out
        flop = 0
        if name == "linear":
            flop = 2 * written[0].numel() * read[0].shape[-1]
        elif name in {"conv2d", "conv3d"}:
            flop = 2 * written[0].numel() * read[1][0].numel()
        elif func.overloadpacket in flop_registry:
            flop = flop_registry[func.overloadpacket](*args, **kwargs, out_val=out)
        self._add(name, flop, [*{id(value): value for value in read}.values(), *written])
        return out

    def attention(self, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> Any:
        """Stand in for scaled dot-product attention, which fake tensors would take apart."""
        if torch.is_autocast_enabled("cuda"):
            query, key, value = (each.to(torch.get_autocast_dtype("cuda")) for each in (query, key, value))
        batch, heads, length, width = query.shape
        out = torch.empty(batch, length, heads, width, dtype=query.dtype, device=query.device).transpose(1, 2)
        flop = 4 * batch * heads * length * key.shape[-2] * width
        self._add("attention", flop, [query, key, value, out])
        return out

    def _add(self, name: str, flop: int, tensors: list[torch.Tensor]) -> None:
        moved = sum(map(_bytes, tensors))
        self.kernels += 1
        self.flop += flop
        self.traffic += moved
        if name not in PRODUCTS:
            self.elementwise += moved

    def _hold(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._storages:
            return
        self._storages.add(key)
        self.alive += size
        self.peak = max(self.peak, self.alive)

        def gone() -> None:
            self._storages.discard(key)
            self.alive -= size

        weakref.finalize(storage, gone)


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _to_card(module: nn.Module, dtype: torch.dtype) -> None:
    for part in module.modules():
        for name, parameter in list(part._parameters.items()):
            if parameter is not None:
                there = torch.empty(parameter.shape, dtype=dtype, device=CUDA)
                part._parameters[name] = nn.Parameter(there, requires_grad=False)
        for name, buffer in list(part._buffers.items()):
            if buffer is not None:
                part._buffers[name] = torch.empty(buffer.shape, dtype=buffer.dtype, device=CUDA)


@contextmanager
def _pretending() -> Iterator[None]:
    """Let a build of torch without CUDA make fake tensors "on cuda" and autocast them."""
    if not torch.cuda.is_available():
        torch._C._ensureCUDADeviceGuardSet()
    real = torch.Tensor.__getitem__
    patches = {
        "torch.cuda.is_available": lambda: True,
        "torch.cuda._lazy_init": lambda: None,
        "torch.cuda.device_count": lambda: 1,
        "torch.cuda.get_device_name": lambda _device=None: "pretended",
        "torch.cuda.get_device_capability": lambda _device=None: (9, 0),
        "torch.cuda.get_arch_list": list,
        "torch.cuda.is_bf16_supported": lambda *_, **__: True,
        "torch.cuda.amp.common.amp_definitely_not_available": lambda: False,
        "torch.Tensor.__getitem__": lambda tensor, index: _getitem(real, tensor, index),
    }
    started = [mock.patch(name, value) for name, value in patches.items()]
    try:
        for patch in started:
            patch.start()
        yield
    finally:
        mock.patch.stopall()


def _getitem(real: Any, tensor: Any, index: Any) -> Any:
    """Index by integers, slices, None and `...`: torch's own code asks for a real card."""
    places = index if isinstance(index, tuple) else (index,)
    if tensor.device.type != "cuda" or any(isinstance(place, torch.Tensor) for place in places):
        return real(tensor, index)
    if Ellipsis in places:
        at = places.index(Ellipsis)
        given = sum(place is not None and place is not Ellipsis for place in places)
        places = (*places[:at], *[slice(None)] * (tensor.dim() - given), *places[at + 1 :])
    axis = 0
    for place in places:
        if place is None:
            tensor = tensor.unsqueeze(axis)
        elif isinstance(place, slice):
            if place != slice(None):
                start, stop, step = place.indices(tensor.shape[axis])
                tensor = torch.ops.aten.slice.Tensor(tensor, axis, start, stop, step)
        else:
            tensor = torch.select(tensor, axis, place)
            continue
        axis += 1
    return tensor


def main() -> None:
    """Print a table of all networks and precisions."""
    at_once = arguments(__doc__, at_once=8).at_once
    rows = []
    for name, precision in product(NAMES, PRECISIONS):
        each = count(name, precision, at_once)
        rows.append(
            {
                "network": name,
                "precision": precision,
                "GFLOP": f"{each.flop / 1e9:.1f}",
                "GB moved (elementwise)": f"{each.traffic / 1e9:.1f} ({each.elementwise / 1e9:.1f})",
                "kernels a call": each.kernels,
                "weights MB": f"{each.weights / 1e6:.0f}",
                "activations MB": f"{each.activations / 1e6:.0f}",
                "up / down MB": f"{each.up / 1e6:.2f} / {each.down / 1e6:.2f}",
            }
        )
    show(rows, title=f"per clip, {at_once} at once")


if __name__ == "__main__":
    main()
