"""Layers that are replaced by faster ones (`fuse_layers`) give the same values."""

import copy
from importlib.metadata import version

import pytest
from packaging.version import Version

from tests.lazy_import import lazy_import, without_gradients
from tests.rounding import network_rounding

torch = lazy_import("torch")
CLIPVisionConfig = lazy_import("transformers", "CLIPVisionConfig")
CLIPVisionModel = lazy_import("transformers", "CLIPVisionModel")
VivitConfig = lazy_import("transformers", "VivitConfig")
VivitModel = lazy_import("transformers", "VivitModel")
fuse_layers = lazy_import("obygaze_features.backbones.network", "fuse_layers")
NETWORK_ROUNDING = network_rounding(3 * 2 * 16 * 16, layers=3, width=256)
TINY_TRANSFORMER = {
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
}


def vivit_and_pixels():
    """Make a tiny ViViT of three blocks with random weights, and two random clips for it."""
    config = VivitConfig(**TINY_TRANSFORMER, image_size=32, num_frames=4)
    return VivitModel(config, add_pooling_layer=False), torch.rand(2, 4, 3, 32, 32)


def clip_and_pixels():
    """Make a tiny vision model of CLIP of three blocks with random weights, and four random pictures."""
    config = CLIPVisionConfig(**TINY_TRANSFORMER, image_size=32, patch_size=8)
    return CLIPVisionModel(config), torch.rand(4, 3, 32, 32)


@pytest.mark.parametrize(
    ("make_network_and_pixels", "replaced"),
    [
        (
            vivit_and_pixels,
            {
                "activations": {"gelu_fast": "gelu_pytorch_tanh"},
                "convolutions": {"conv3d": "product over patches"},
            },
        ),
        (clip_and_pixels, {"activations": {"quick_gelu": "silu, with its factor in the weights"}}),
    ],
    ids=["vivit", "clip"],
)
@without_gradients
def test_fused_layers_are_as_near_to_float64_as_the_network_before(make_network_and_pixels, replaced):
    """`fuse_layers` replaces layers of a network by faster ones that compute the same, and returns which.

    The network's result in float64 counts as exact. In float32 the network differs from it by rounding, both
    before layers are replaced and after it. A second call finds nothing to replace.
    """
    torch.manual_seed(0)
    network, pixels = make_network_and_pixels()
    network = network.eval()
    for weight in network.parameters():
        weight.mul_(2)  # near 0 activation functions are alike: larger numbers tell them apart
    exact = copy.deepcopy(network).double()(pixel_values=pixels.double()).last_hidden_state
    before = network(pixel_values=pixels).last_hidden_state

    replaced_at_first = fuse_layers(network)
    after = network(pixel_values=pixels).last_hidden_state
    replaced_again = fuse_layers(network)

    assert replaced_at_first == replaced
    assert replaced_again == {}
    largest_by_rounding = NETWORK_ROUNDING * exact.abs().max()
    assert (before - exact).abs().max() <= largest_by_rounding
    assert (after - exact).abs().max() <= largest_by_rounding
    assert (after - before).abs().max() <= largest_by_rounding


@pytest.mark.parametrize(
    ("options", "is_replaced"),
    [
        ({"stride": (2, 8, 6)}, True),
        ({"stride": (2, 8, 6), "bias": False}, True),
        ({"stride": (1, 8, 6)}, False),  # patches overlap
        ({"stride": (2, 8, 6), "padding": 1}, False),
        ({"stride": (2, 8, 6), "groups": 3}, False),
    ],
)
@without_gradients
def test_a_convolution_of_patches_becomes_one_matrix_product(options, is_replaced):
    """A convolution weighs patches of 2 frames by 8 x 6 pixels; with strides of that size they don't overlap.

    It is then one product of a matrix with all patches, which is faster. Other convolutions stay, and in
    either case the output is the same but for rounding.
    """
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv3d(3, 6, kernel_size=(2, 8, 6), **options))
    pixels = torch.rand(2, 3, 5, 17, 24)  # [clips, colours, frames, height, width], a bit more than patches
    before = network(pixels)

    replaced_layers = fuse_layers(network)
    after = network(pixels)

    assert bool(replaced_layers) == is_replaced
    torch.testing.assert_close(after, before, rtol=0, atol=float(1e-6 * before.abs().max()))


@pytest.mark.long
@pytest.mark.parametrize(
    "make_network_and_pixels", [vivit_and_pixels, clip_and_pixels], ids=["vivit", "clip"]
)
@without_gradients
def test_the_attention_of_a_compiled_network_has_no_mask(make_network_and_pixels):
    """Attention relates each patch to all others; a mask that allows all pairs only makes torch slower.

    Transformers 5.17 gave such a mask. The network has three blocks with one attention each. When torch
    compiles it, it hands the graph of all operations to a backend, here one that only notes the masks of the
    attentions: all are None.

    Transformers makes masks on purpose when a network is exported. Before 2.12, torch says of a network that
    is being compiled that it is exported, so that the test is skipped there.
    """
    if Version(version("torch")) < Version("2.12"):
        pytest.skip(
            "transformers makes masks when it is exported, for which torch before 2.12 takes compiling"
        )
    network, pixels = make_network_and_pixels()
    masks = []

    def note_masks(graph, _inputs):
        attentions = [node for node in graph.graph.nodes if "scaled_dot_product" in str(node.target)]
        masks.extend(node.kwargs.get("attn_mask") for node in attentions)
        return graph.forward  # run it as it is

    torch.compile(network.eval(), dynamic=False, backend=note_masks)(pixel_values=pixels)

    assert masks == [None, None, None]
