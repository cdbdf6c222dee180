"""Networks of OpenCLIP give the vectors and layers of its own package, and maps as autograd gives them."""

import json
import shutil
from copy import deepcopy
from typing import NamedTuple

import numpy as np
import pytest

from obygaze_features.backbones import Layers, load_backbone, load_text_backbone, weights
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.weights import OPENCLIP
from obygaze_features.errors import BackboneError
from obygaze_studies.eat_stimuli import EFFECTS
from tests.lazy_import import cpu, lazy_import
from tests.rounding import network_rounding
from tests.tiny_checkpoints import tiny_openclip

torch = lazy_import("torch")
normalize = lazy_import("torch.nn.functional", "normalize")
openclip = lazy_import("obygaze_features.backbones.openclip")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
grad_cam_map = lazy_import("obygaze_studies.saliency.class_activation", "grad_cam_map")
openclip_to_map = lazy_import("obygaze_studies.saliency.class_activation", "openclip_to_map")
similarity = lazy_import("obygaze_studies.saliency.class_activation", "similarity")
pytestmark = pytest.mark.usefixtures("open_clip")
NETWORK_ROUNDING = network_rounding(3 * 16 * 16)
TEXT_OF_27_WORDS = "a sad man " * 9
"""Each word is a token; the networks read 16 tokens, with one of the beginning and one of the end."""
KINDS_OF_NETWORKS = ("resnet", "vit")


@pytest.fixture(scope="module")
def checkpoint_folders(open_clip, tmp_path_factory):
    """Tiny untrained networks in the files of OpenCLIP: kind, resnet or vit -> folder."""
    assert open_clip
    folder = tmp_path_factory.mktemp("openclip")
    return {kind: tiny_openclip(kind, folder / kind) for kind in KINDS_OF_NETWORKS}


@pytest.fixture(scope="module")
def openclip_networks(open_clip, checkpoint_folders):
    """The same networks, loaded by the package open_clip: kind -> network."""
    return {
        kind: open_clip.create_model(f"local-dir:{folder}").eval()
        for kind, folder in checkpoint_folders.items()
    }


@pytest.fixture(scope="module")
def two_clips():
    """Two clips of three frames of noise, [2, 3, 64, 64, 3]."""
    return np.random.default_rng(0).integers(0, 256, (2, 3, 64, 64, 3), dtype=np.uint8)


def normalised_frames(frames):
    """Normalise frames `[..., h, w, 3]` as the preset clip does: a tensor `[..., 3, h, w]`."""
    affine = choose_preset("clip", ("clip",)).affine
    scale, shift = (torch.tensor(value)[:, None, None] for value in (affine.scale, affine.shift))
    return torch.tensor(frames).movedim(-1, -3) * scale + shift


@pytest.mark.parametrize("kind", KINDS_OF_NETWORKS)
def test_vectors_of_pictures_are_those_of_the_package_open_clip(
    checkpoint_folders, openclip_networks, two_clips, kind
):
    """Each frame gets the vector of open_clip for the same pixels, and the clip the mean of its frames.

    Two clips of three frames of noise are encoded by a tiny network, a ResNet or a vision transformer, which
    open_clip has loaded from the same folder.
    """
    backbone = load_backbone("openclip", n_frames=3, weights=str(checkpoint_folders[kind]), compute=cpu())

    arrays = backbone.encode(two_clips)

    six_frames = normalised_frames(two_clips).flatten(0, 1)
    with torch.inference_mode():
        vectors_of_frames = openclip_networks[kind].encode_image(six_frames)
    expected = vectors_of_frames.view(2, 3, -1).numpy()  # [clip, frame, number of a vector]
    vectors_of_clips = expected.mean(axis=1)
    assert np.abs(expected).max() > 0.1  # far more than rounding
    np.testing.assert_allclose(arrays["frames"], expected, atol=NETWORK_ROUNDING)
    np.testing.assert_allclose(arrays["pooled"], vectors_of_clips, atol=NETWORK_ROUNDING)


@pytest.mark.parametrize(("kind", "head"), [("resnet", "attention pooling"), ("vit", "visual projection")])
def test_the_provenance_names_the_part_of_the_network_that_gives_the_vectors(checkpoint_folders, kind, head):
    """A tiny network whose part for pictures is a ResNet, or a vision transformer, is loaded."""
    backbone = load_backbone("openclip", n_frames=3, weights=str(checkpoint_folders[kind]), compute=cpu())

    assert backbone.provenance["head"] == head


def collect_outputs(modules):
    """Return a list to which each module adds what it gives when it is called."""
    outputs = []
    for module in modules:
        module.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
    return outputs


def blocks_of(kind, visual):
    """List the blocks of OpenCLIP's network whose outputs are layers."""
    if kind == "vit":
        return list(visual.transformer.resblocks)
    return [block for stage in range(1, 5) for block in getattr(visual, f"layer{stage}")]


def outputs_of_blocks(kind, network, clips):
    """Run open_clip's network on the frames of clips, and return what each of its blocks gave."""
    visual = deepcopy(network.visual)
    outputs = collect_outputs(blocks_of(kind, visual))
    with torch.inference_mode():
        visual(normalised_frames(clips).flatten(0, 1))
    return outputs


def mean_of_places(kind, output):
    """Average what a block gave of each frame: patches behind a class token, or a map [.., height, width]."""
    if kind == "vit":
        patches = output[:, 1:]
        return patches.mean(dim=1)
    return output.mean(dim=(2, 3))


@pytest.mark.parametrize("kind", KINDS_OF_NETWORKS)
def test_a_layer_is_the_mean_of_the_patches_or_map_of_a_block(
    checkpoint_folders, openclip_networks, two_clips, kind
):
    """A tiny network, a vision transformer or a ResNet, encodes two clips of three frames.

    Each of its blocks is a layer, numbered from 1: for each frame the mean of the patches of a transformer,
    or of the map of a ResNet, as open_clip computes them, and for a clip the mean of its frames.
    """
    backbone = load_backbone(
        "openclip",
        n_frames=3,
        weights=str(checkpoint_folders[kind]),
        layers=Layers(frames=True),
        compute=cpu(),
    )

    arrays = backbone.encode(two_clips)

    blocks = outputs_of_blocks(kind, openclip_networks[kind], two_clips)
    names_of_layers = [layer.name for layer in backbone.side_groups]
    assert names_of_layers == [str(number) for number in range(1, len(blocks) + 1)]
    for name, block in zip(names_of_layers, blocks, strict=True):
        expected = mean_of_places(kind, block).view(2, 3, -1).numpy()  # [clip, frame, number of a vector]
        vectors_of_clips = expected.mean(axis=1)
        atol = NETWORK_ROUNDING * np.abs(expected).max()
        np.testing.assert_allclose(arrays[f"{name}/frames"], expected, atol=atol)
        np.testing.assert_allclose(arrays[f"{name}/pooled"], vectors_of_clips, atol=atol)


@pytest.mark.parametrize("kind", KINDS_OF_NETWORKS)
def test_other_arrays_are_the_same_with_layers_as_without(checkpoint_folders, two_clips, kind):
    """Layers are groups of their own beside the vectors. Two clips of three frames of noise are encoded."""
    options = {"weights": str(checkpoint_folders[kind]), "compute": cpu()}
    without_layers = load_backbone("openclip", n_frames=3, **options)
    with_layers = load_backbone("openclip", n_frames=3, layers=Layers(frames=True), **options)

    arrays = without_layers.encode(two_clips)
    arrays_beside_layers = with_layers.encode(two_clips)

    for name, array in arrays.items():
        assert np.array_equal(array, arrays_beside_layers[name])
    assert without_layers.provenance == with_layers.provenance


def test_layers_of_a_resnet_double_in_width_from_stage_to_stage(checkpoint_folders):
    """A ResNet has four stages, each twice as wide as the one before: 1, 2, 4 and 8 times the first."""
    backbone = load_backbone(
        "openclip", n_frames=3, weights=str(checkpoint_folders["resnet"]), layers=Layers(), compute=cpu()
    )

    widths = [layer.outputs[0].shape[0] for layer in backbone.side_groups]

    assert widths == sorted(widths)
    assert widths[-1] == 8 * widths[0]


def test_the_normalisation_of_layers_of_a_vision_transformer_is_ln_post(checkpoint_folders):
    """That is open_clip's name of the normalisation behind the last block."""
    normalised_layer = Layers((1,), norm=True)
    weights = str(checkpoint_folders["vit"])

    backbone = load_backbone("openclip", n_frames=3, weights=weights, layers=normalised_layer, compute=cpu())

    assert backbone.side_groups[0].provenance["norm"] == "ln_post"


def test_a_normalisation_of_layers_of_a_resnet_is_refused(checkpoint_folders):
    """A ResNet has no normalisation behind its last block."""
    normalised_layer = Layers((1,), norm=True)

    with pytest.raises(BackboneError):
        load_backbone(
            "openclip",
            n_frames=3,
            weights=str(checkpoint_folders["resnet"]),
            layers=normalised_layer,
            compute=cpu(),
        )


@pytest.mark.parametrize("kind", KINDS_OF_NETWORKS)
def test_vectors_of_texts_are_those_of_the_package_open_clip(
    open_clip, checkpoint_folders, openclip_networks, kind
):
    """A tiny network, a vision transformer or a ResNet, is loaded by us and by open_clip from one folder.

    Both get three short texts, and one of 27 words, which is cut: the network reads 16 tokens.
    """
    texts = ["a man", "a photo of a happy person", "an angry woman's face", TEXT_OF_27_WORDS]
    backbone = load_text_backbone("openclip-text", weights=str(checkpoint_folders[kind]), compute=cpu())

    ids = np.array([tokens.ids for tokens in backbone.tokenize(texts)])
    vectors = backbone.encode(ids)

    expected_ids = open_clip.get_tokenizer(f"local-dir:{checkpoint_folders[kind]}")(texts)
    assert np.array_equal(ids, expected_ids)
    with torch.inference_mode():
        expected = openclip_networks[kind].encode_text(expected_ids)
    np.testing.assert_allclose(vectors, expected, atol=NETWORK_ROUNDING)


def test_a_long_text_is_cut_and_its_length_is_kept(checkpoint_folders):
    """The text has 27 words, each a token, and a token of the beginning and of the end. 16 are read."""
    backbone = load_text_backbone("openclip-text", weights=str(checkpoint_folders["vit"]), compute=cpu())

    (tokens,) = backbone.tokenize([TEXT_OF_27_WORDS])

    assert tokens.is_cut
    assert tokens.n_tokens == 27 + 2
    assert tokens.limit == 16


def test_no_texts_have_no_tokens(checkpoint_folders):
    """A list of texts may be empty, and the result is an empty list."""
    backbone = load_text_backbone("openclip-text", weights=str(checkpoint_folders["vit"]), compute=cpu())

    assert backbone.tokenize([]) == []


def test_texts_and_pictures_share_a_space_of_openclip(checkpoint_folders):
    """Both encoders are in one file, so their vectors can be compared."""
    texts = load_text_backbone("openclip-text", weights=str(checkpoint_folders["vit"]), compute=cpu())
    pictures = load_backbone("openclip", n_frames=1, weights=str(checkpoint_folders["vit"]), compute=cpu())

    assert texts.provenance["space"] == pictures.provenance["space"]
    assert pictures.provenance["space"].startswith("openclip sha256:")


def test_the_provenance_of_texts_has_the_digest_of_the_vocabulary(checkpoint_folders):
    """open_clip keeps the vocabulary of its tokenizer in one file."""
    texts = load_text_backbone("openclip-text", weights=str(checkpoint_folders["vit"]), compute=cpu())

    assert texts.provenance["tokenizer"]["sha256"].keys() == {"bpe_simple_vocab_16e6.txt.gz"}


def test_models_have_the_names_of_the_table_of_published_effects():
    """A paper's effects of nine OpenCLIP models are tested again on the same models."""
    assert OPENCLIP.keys() == EFFECTS.keys()


@pytest.mark.parametrize("name", OPENCLIP)
def test_models_have_the_repository_and_architecture_of_open_clip(open_clip, name):
    """Our table of models is written by hand, and that of open_clip is the truth.

    All of them have the activation QuickGELU and CLIP's tokenizer of 49408 tokens.
    """
    model = OPENCLIP[name]
    training_set = "laion400m_e32" if name.startswith("OpenCLIP") else "openai"

    published_weights = open_clip.get_pretrained_cfg(model.architecture, training_set)
    network = open_clip.get_model_config(model.architecture)

    assert published_weights["hf_hub"].rstrip("/") == model.repository
    assert published_weights["quick_gelu"]
    assert network["quick_gelu"]
    assert network["text_cfg"]["vocab_size"] == 49408


@pytest.fixture
def commit_of_tiny_model(open_clip, checkpoint_folders, tmp_path, save_as_hub_snapshot, monkeypatch):
    """The folder of lab/net in the hub's cache, named after its commit, with the weights of the model `tiny`.

    `tiny` is a name of a model to us, and to open_clip that of its network, whose activation is QuickGELU.
    """
    config = json.loads((checkpoint_folders["vit"] / "open_clip_config.json").read_text())["model_cfg"]
    (tmp_path / "tiny-quickgelu.json").write_text(json.dumps(config))
    open_clip.add_model_config(tmp_path / "tiny-quickgelu.json")
    for module in (openclip, weights):
        monkeypatch.setattr(module, "OPENCLIP", {"tiny": weights.OpenClip("lab/net", "tiny-quickgelu")})
    return save_as_hub_snapshot(checkpoint_folders["vit"])


def assert_tiny_model_is_built_with_quick_gelu(commit):
    """Load the model by its name and by its repository, and look at the recorded activation."""
    for source in ("tiny", f"lab/net@{commit}"):
        backbone = load_backbone("openclip", weights=source, compute=cpu())
        assert backbone.provenance["hub"] == {"repository": "lab/net", "revision": commit}
        assert backbone.provenance["architecture"]["quick_gelu"]


def test_a_named_model_has_quick_gelu_though_its_repository_omits_it(commit_of_tiny_model):
    """open_clip says that the model has QuickGELU; the configuration beside its weights does not.

    Weights trained with QuickGELU give wrong vectors with another activation.
    """
    file = commit_of_tiny_model / "open_clip_config.json"
    config = json.loads(file.read_text())
    del config["model_cfg"]["quick_gelu"]
    file.write_text(json.dumps(config))

    assert_tiny_model_is_built_with_quick_gelu(commit=commit_of_tiny_model.name)


def test_a_named_model_without_a_configuration_is_that_of_open_clip(commit_of_tiny_model):
    """The model `tiny` is in our table of named models, and open_clip has its configuration, with QuickGELU.

    The repository, a folder in the hub's cache that is named after its commit, has weights alone.
    """
    (commit_of_tiny_model / "open_clip_config.json").unlink()

    assert_tiny_model_is_built_with_quick_gelu(commit=commit_of_tiny_model.name)


@pytest.mark.parametrize(
    ("part", "changed_field", "message"),
    [
        ("vision_cfg", {"timm_model_name": "x"}, r"vision_cfg\.timm_model_name"),
        ("vision_cfg", {"layers": 1}, "no place for: visual"),
        ("text_cfg", {"context_length": 10**5}, "open_clip_config.json"),
        ("text_cfg", {"layers": 10**9}, "layers"),
        ("whole network", {"custom_text": True}, "custom_text"),
        ("whole network", {"new": 1}, "'new'"),
        ("whole network", {"embed_dim": 16}, "another shape: .*proj"),
        ("whole network", {"embed_dim": 10**9}, "open_clip_config.json"),
    ],
)
def test_a_configuration_that_does_not_fit_the_weights_is_refused(
    copy_reconfigured, part, changed_field, message
):
    """The file open_clip_config.json beside the weights describes the network; one of its fields is changed.

    It is of the whole network, or of its part for pictures (`vision_cfg`) or texts (`text_cfg`). A field that
    cannot be right is named before a network is made, which could need any amount of memory.
    """

    def change(config):
        network = config["model_cfg"]
        changed_part = network if part == "whole network" else network[part]
        changed_part.update(changed_field)

    weights = copy_reconfigured(change)

    with pytest.raises(BackboneError, match=message):
        load_backbone("openclip", weights=weights, compute=cpu())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda config: config.pop("model_cfg"), "model_cfg", id="no network"),
        pytest.param(
            lambda config: config["preprocess_cfg"].update(mean=[0, 0, 0]),
            "--preset",
            id="another mean than CLIP's",
        ),
    ],
)
def test_a_configuration_that_does_not_describe_a_clip_is_refused(copy_reconfigured, change, message):
    """`change` takes the network out of the configuration, or changes how pixels are normalised."""
    weights = copy_reconfigured(change)

    with pytest.raises(BackboneError, match=message):
        load_backbone("openclip", weights=weights, compute=cpu())


@pytest.fixture
def copy_reconfigured(checkpoint_folders, tmp_path):
    """Copy the transformer, and change its configuration by a function; the path of the copy."""

    def make(change):
        folder = shutil.copytree(checkpoint_folders["vit"], tmp_path / "vit")
        config = json.loads((folder / "open_clip_config.json").read_text())
        change(config)
        (folder / "open_clip_config.json").write_text(json.dumps(config))
        return str(folder)

    return make


@pytest.mark.usefixtures("grad_cam")
@pytest.mark.parametrize("score", ["cosine", "dot"])
def test_the_map_of_a_resnet_is_that_of_autograd(checkpoint_folders, openclip_networks, two_clips, score):
    """Grad-CAM shows which places of a picture raise its score, the similarity to a text, and is 0 elsewhere.

    The expected map is computed from what the network's last stage, `layer4`, gives, by torch's own gradients
    and in double precision. A map of the opposite of the text's vector shows what lowers the score.
    """
    mapped, embed_text = openclip_to_map(str(checkpoint_folders["resnet"]), cpu())
    assert mapped.about["layer"] == "visual.layer4"
    mapped.network.double()
    picture = mapped.pixels(two_clips[0, 0])
    text = embed_text("a photo of a happy person").double()
    visual = deepcopy(openclip_networks["resnet"].visual).double()
    activations = output_of_layer4(visual, picture)
    assert activations.shape == (1, 256, 2, 2)  # [pictures, channels, height, width]

    sum_of_maps = 0.0
    for vector in (text, -text):
        score_of_ours, map_of_ours = grad_cam_map(mapped, picture, similarity(vector, score))

        expected = grad_cam_by_autograd(visual.attnpool, activations, vector, score)
        expected_map = np.maximum(expected.signed_map, 0)
        rounding = 1e-9 * np.abs(expected.signed_map).max()
        assert score_of_ours == pytest.approx(expected.score, rel=1e-9)
        np.testing.assert_allclose(map_of_ours, expected_map, atol=rounding)
        sum_of_maps += map_of_ours.sum()
    assert sum_of_maps > 0  # not both are empty


def output_of_layer4(visual, picture):
    """Return what the last of a ResNet's four stages gives of a picture, ready for gradients."""
    after_layer3 = visual.layer3(visual.layer2(visual.layer1(visual.stem(picture))))
    return visual.layer4(after_layer3).detach().requires_grad_()


class GradCam(NamedTuple):
    """A score, and by place of the picture `[height, width]` what raises it (above 0) or lowers it."""

    score: float
    signed_map: np.ndarray


def grad_cam_by_autograd(pool, activations, vector, score):
    """Weight the last layer's activations `[1, channels, h, w]` by the mean gradient of the score."""
    image = pool(activations)[0]
    similarity_to_text = image @ vector
    if score == "cosine":
        similarity_to_text = similarity_to_text / (image.norm() * vector.norm())
    (gradient,) = torch.autograd.grad(similarity_to_text, activations)
    weights_of_channels = gradient.mean(dim=(2, 3), keepdim=True)
    weighted_sum = (weights_of_channels * activations).sum(dim=1)[0]
    return GradCam(similarity_to_text.item(), weighted_sum.detach().numpy())


def grad_cam_of_transformer(visual, frame, text):
    """Weight the patches of a frame by the mean gradient of the cosine with a text, channel by channel.

    They are taken from the first normalisation of the last block of open_clip's network. A map is [4, 4].
    """
    layer = visual.transformer.resblocks[-1].ln_1
    outputs = []
    handle = layer.register_forward_hook(lambda _layer, _inputs, output: outputs.append(output))
    picture = normalised_frames(frame[None]).requires_grad_()
    (image,) = normalize(visual(picture), dim=-1)
    handle.remove()
    cosine = image @ normalize(text, dim=0)
    (output,) = outputs  # [1, class token and 16 patches, width]
    (gradient,) = torch.autograd.grad(cosine, output)
    patches = output[0, 1:]  # [16, width]
    weights_of_channels = gradient[0, 1:].mean(dim=0)  # [width]
    return (patches @ weights_of_channels).relu().reshape(4, 4).detach().numpy()


@pytest.mark.usefixtures("grad_cam")
def test_the_map_of_a_vision_transformer_is_that_of_autograd(
    checkpoint_folders, openclip_networks, two_clips
):
    """Grad-CAM shows which of the 4 x 4 patches of a picture raise its cosine with the text "a man".

    The expected map is computed anew from open_clip's network, by torch's own gradients. The maps differ by
    rounding alone.
    """
    mapped, embed_text = openclip_to_map(str(checkpoint_folders["vit"]), cpu())
    frame = two_clips[0, 0]
    text = embed_text("a man")

    _score, map_of_ours = grad_cam_map(mapped, mapped.pixels(frame), similarity(text, "cosine"))

    expected_map = grad_cam_of_transformer(openclip_networks["vit"].visual, frame, text)
    tolerance = NETWORK_ROUNDING * np.abs(expected_map).max() + 1e-9
    np.testing.assert_allclose(map_of_ours, expected_map, atol=tolerance)
