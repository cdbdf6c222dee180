"""Layers that are replaced by faster ones (`fuse_layers`) give the same values."""

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
TINY_TRANSFORMER = {
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
}


def vivit():
    config = VivitConfig(**TINY_TRANSFORMER, image_size=32, num_frames=4)
    return VivitModel(config, add_pooling_layer=False), torch.rand(2, 4, 3, 32, 32)


def clip():
    """Make a tiny vision model of CLIP with random weights, and four random pictures for it."""
    config = CLIPVisionConfig(**TINY_TRANSFORMER, image_size=32, patch_size=8)
    return CLIPVisionModel(config), torch.rand(4, 3, 32, 32)


@pytest.mark.parametrize(
    ("make", "replaced"),
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
def test_fused_layers_are_as_near_to_float64_as_the_network_before(make, replaced):
    """The same network in float64 is exact; before and after fusing it is missed by rounding alone."""
    torch.manual_seed(0)
    network, pixels = make()
    network = network.eval()
    for weight in network.parameters():
        weight.mul_(2)  # so that activations are bent: near 0 they are almost straight, and alike
    exact = copy.deepcopy(network).double()(pixel_values=pixels.double()).last_hidden_state
    before = network(pixel_values=pixels).last_hidden_state
    assert fuse_layers(network) == replaced
    after = network(pixel_values=pixels).last_hidden_state
    scale = exact.abs().max()

    assert (before - exact).abs().max() <= NETWORK_ROUNDING * scale
    assert (after - exact).abs().max() <= NETWORK_ROUNDING * scale
    assert (after - before).abs().max() <= NETWORK_ROUNDING * scale
    assert fuse_layers(network) == {}  # a second time there is nothing to replace


@pytest.mark.parametrize(
    ("options", "replaced"),
    [
        ({"stride": (2, 8, 6)}, True),
        ({"stride": (2, 8, 6), "bias": False}, True),
        ({"stride": (1, 8, 6)}, False),  # patches overlap
        ({"stride": (2, 8, 6), "padding": 1}, False),
        ({"stride": (2, 8, 6), "groups": 3}, False),
    ],
)
@without_gradients
def test_a_convolution_of_patches_becomes_one_matrix_product(options, replaced):
    """Where the stride is the size of the kernel, (2, 8, 6), each pixel is in one patch."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv3d(3, 6, (2, 8, 6), **options))
    pixels = torch.rand(2, 3, 5, 17, 24)  # a frame and a line more than patches
    before = network(pixels)
    assert bool(fuse_layers(network)) == replaced
    torch.testing.assert_close(network(pixels), before, rtol=0, atol=float(1e-6 * before.abs().max()))


@pytest.mark.long
@pytest.mark.parametrize("make", [vivit, clip])
@without_gradients
def test_the_attention_of_a_compiled_network_has_no_mask(make):
    """Transformers 5.17 gave it a mask that allows all pairs, with which torch takes its slowest kernels."""
    if Version(version("torch")) < Version("2.12"):
        pytest.skip(
            "transformers makes masks when it is exported, for which torch before 2.12 takes compiling"
        )
    network, pixels = make()
    masks = []

    def note_masks(graph, _inputs):
        attention = [node for node in graph.graph.nodes if "scaled_dot_product" in str(node.target)]
        masks.extend(node.kwargs.get("attn_mask") for node in attention)
        return graph.forward

    torch.compile(network.eval(), dynamic=False, backend=note_masks)(pixel_values=pixels)

    assert masks == [None] * TINY_TRANSFORMER["num_hidden_layers"]
