"""Layers in fewer kernels give the values of those in several."""

import copy
from importlib.metadata import version

import pytest
from packaging.version import Version

from tests.later import later, without_gradients
from tests.rounding import network_rounding

torch = later("torch")
CLIPVisionConfig = later("transformers", "CLIPVisionConfig")
CLIPVisionModel = later("transformers", "CLIPVisionModel")
VivitConfig = later("transformers", "VivitConfig")
VivitModel = later("transformers", "VivitModel")
fuse_layers = later("obygaze_features.backbones.network", "fuse_layers")

NETWORK_ROUNDING = network_rounding(3 * 2 * 16 * 16, layers=3, width=256)
SMALL = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 2}


def vivit():
    config = VivitConfig(**SMALL, image_size=32, num_frames=4)
    return VivitModel(config, add_pooling_layer=False), torch.rand(2, 4, 3, 32, 32)


def clip():
    return CLIPVisionModel(CLIPVisionConfig(**SMALL, image_size=32, patch_size=8)), torch.rand(4, 3, 32, 32)


@pytest.mark.parametrize(
    ("make", "done"),
    [
        (
            vivit,
            {
                "activations": {"gelu_fast": "gelu_pytorch_tanh"},
                "convolutions": {"conv3d": "product over patches"},
            },
        ),
        (clip, {"activations": {"quick_gelu": "silu, with its factor in the weights"}}),
    ],
)
@without_gradients
def test_the_values_are_as_near_to_float64_as_before(make, done):
    torch.manual_seed(0)
    network, pixels = make()
    network = network.eval()
    for weight in network.parameters():
        weight.mul_(2)  # activations beyond the straight parts of the curves
    exact = copy.deepcopy(network).double()(pixel_values=pixels.double()).last_hidden_state
    before = network(pixel_values=pixels).last_hidden_state
    assert fuse_layers(network) == done
    after = network(pixel_values=pixels).last_hidden_state
    scale = exact.abs().max()
    assert (before - exact).abs().max() <= NETWORK_ROUNDING * scale
    assert (after - exact).abs().max() <= NETWORK_ROUNDING * scale
    assert (after - before).abs().max() <= NETWORK_ROUNDING * scale
    assert fuse_layers(network) == {}  # nothing is folded twice


@pytest.mark.parametrize(
    ("how", "replaced"),
    [
        ({"stride": (2, 8, 6)}, True),
        ({"stride": (2, 8, 6), "bias": False}, True),
        ({"stride": (1, 8, 6)}, False),  # patches overlap
        ({"stride": (2, 8, 6), "padding": 1}, False),
        ({"stride": (2, 8, 6), "groups": 3}, False),
    ],
)
@without_gradients
def test_patches_side_by_side_are_one_product(how, replaced):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv3d(3, 6, (2, 8, 6), **how))
    pixels = torch.rand(2, 3, 5, 17, 24)  # a frame and a line more than patches
    before = network(pixels)
    assert bool(fuse_layers(network)) == replaced
    torch.testing.assert_close(network(pixels), before, rtol=0, atol=float(1e-6 * before.abs().max()))


@pytest.mark.long
@pytest.mark.parametrize("make", [vivit, clip])
@without_gradients
def test_a_compiled_network_s_attention_has_no_mask(make):
    """Of transformers 5.17 it had one of all pairs, which only the slowest kernels take."""
    if Version(version("torch")) < Version("2.12"):
        pytest.skip("torch before 2.12 takes compilation for export, for which transformers makes masks")
    network, pixels = make()
    masks = []

    def look(graph, _inputs):
        attention = [node for node in graph.graph.nodes if "scaled_dot_product" in str(node.target)]
        masks.extend(node.kwargs.get("attn_mask") for node in attention)
        return graph.forward

    torch.compile(network.eval(), dynamic=False, backend=look)(pixel_values=pixels)
    assert masks == [None] * SMALL["num_hidden_layers"]
