"""OpenCLIP's networks give here what they give there, images and texts, and RN50's maps are autograd's."""

import json
import shutil
from copy import deepcopy

import numpy as np
import pytest

from obygaze_features.backbones import Layers, load_backbone, load_text_backbone, weights
from obygaze_features.backbones.presets import choose_preset
from obygaze_features.backbones.weights import OPENCLIP
from obygaze_features.errors import BackboneError
from obygaze_studies.eat_stimuli import EFFECTS
from tests.later import cpu, later
from tests.rounding import network_rounding
from tests.tiny_checkpoints import tiny_openclip

torch = later("torch")
normalize = later("torch.nn.functional", "normalize")
openclip = later("obygaze_features.backbones.openclip")
Compute = later("obygaze_features.backbones.compute", "Compute")
grad_cam_map = later("obygaze_studies.saliency.class_activation", "grad_cam_map")
openclip_to_map = later("obygaze_studies.saliency.class_activation", "openclip_to_map")
similarity = later("obygaze_studies.saliency.class_activation", "similarity")

pytestmark = pytest.mark.usefixtures("open_clip")

NETWORK_ROUNDING = network_rounding(3 * 16 * 16)
TEXTS = ["a man", "a photo of a happy person", "an angry woman's face"]
LONG = "a sad man " * 9
"""27 words, each a token; with those of beginning and end 29, which is more than the networks read."""
MOST_TOKENS = 16
"""That these networks read of a text."""
KINDS = ("resnet", "vit")


@pytest.fixture(scope="module")
def folders(open_clip, tmp_path_factory):
    assert open_clip
    folder = tmp_path_factory.mktemp("openclip")
    return {kind: tiny_openclip(kind, folder / kind) for kind in KINDS}


@pytest.fixture(scope="module")
def originals(open_clip, folders):
    """The same networks, loaded by OpenCLIP itself."""
    return {kind: open_clip.create_model(f"local-dir:{folder}").eval() for kind, folder in folders.items()}


@pytest.fixture(scope="module")
def frames():
    return np.random.default_rng(0).integers(0, 256, (2, 3, 64, 64, 3), dtype=np.uint8)


def pixels(frames):
    affine = choose_preset("clip", ("clip",)).affine
    scale, shift = (torch.tensor(value)[:, None, None] for value in (affine.scale, affine.shift))
    return torch.tensor(frames).movedim(-1, -3) * scale + shift


@pytest.mark.parametrize("kind", KINDS)
def test_images_are_openclips_own(folders, originals, frames, kind):
    backbone = load_backbone("openclip", 3, weights=str(folders[kind]), compute=cpu())
    result = backbone.encode(frames)
    with torch.inference_mode():
        expected = originals[kind].encode_image(pixels(frames).flatten(0, 1)).view(2, 3, -1).numpy()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(result["frames"], expected, atol=NETWORK_ROUNDING)
    np.testing.assert_allclose(result["pooled"], expected.mean(axis=1), atol=NETWORK_ROUNDING)
    assert backbone.provenance["head"] == {"resnet": "attention pooling", "vit": "visual projection"}[kind]


def kept_outputs(modules):
    """Keep what each module gives when it is called, in a list that grows."""
    outputs = []
    for module in modules:
        module.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
    return outputs


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_the_mean_over_what_a_block_of_openclips_network_gives(folders, originals, frames, kind):
    plain = load_backbone("openclip", 3, weights=str(folders[kind]), compute=cpu())
    options = {"layers": Layers(frames=True), "compute": cpu()}
    layered = load_backbone("openclip", 3, weights=str(folders[kind]), **options)
    result = layered.encode(frames)
    visual = deepcopy(originals[kind].visual)
    if kind == "vit":
        blocks = list(visual.transformer.resblocks)
    else:
        blocks = [block for stage in range(1, 5) for block in getattr(visual, f"layer{stage}")]
    outputs = kept_outputs(blocks)
    with torch.inference_mode():
        visual(pixels(frames).flatten(0, 1))
    assert [side.name for side in layered.side_groups] == [str(n) for n in range(1, len(blocks) + 1)]
    for number, output in enumerate(outputs, start=1):
        places = output[:, 1:].mean(dim=1) if kind == "vit" else output.mean(dim=(2, 3))
        expected = places.view(2, 3, -1).numpy()
        np.testing.assert_allclose(
            result[f"{number}/frames"], expected, atol=NETWORK_ROUNDING * np.abs(expected).max()
        )
        of_clips = expected.mean(axis=1)
        np.testing.assert_allclose(
            result[f"{number}/pooled"], of_clips, atol=NETWORK_ROUNDING * np.abs(expected).max()
        )
    for name, array in plain.encode(frames).items():
        assert np.array_equal(array, result[name])
    assert plain.provenance == layered.provenance


def test_a_resnets_layers_have_their_own_widths_and_no_final_normalisation(folders):
    options = {"weights": str(folders["resnet"]), "compute": cpu()}
    backbone = load_backbone("openclip", 3, layers=Layers(), **options)
    widths = [side.outputs[0].shape[0] for side in backbone.side_groups]
    assert widths == sorted(widths)
    assert widths[-1] == 8 * widths[0]  # each of the three later stages is twice as wide as the one before
    with pytest.raises(BackboneError):
        load_backbone("openclip", 3, layers=Layers(norm=True), **options)
    normed = load_backbone(
        "openclip", 3, weights=str(folders["vit"]), layers=Layers((1,), norm=True), compute=cpu()
    )
    assert normed.side_groups[0].provenance["norm"] == "ln_post"


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_openclips_own(open_clip, folders, originals, kind):
    backbone = load_text_backbone("openclip-text", weights=str(folders[kind]), compute=cpu())
    ids = np.array([one.ids for one in backbone.tokenize([*TEXTS, LONG])])
    expected = open_clip.get_tokenizer(f"local-dir:{folders[kind]}")([*TEXTS, LONG])
    assert np.array_equal(ids, expected)
    with torch.inference_mode():
        np.testing.assert_allclose(
            backbone.encode(ids), originals[kind].encode_text(expected), atol=NETWORK_ROUNDING
        )


def test_a_text_longer_than_the_network_reads_is_cut_which_is_told(folders):
    backbone = load_text_backbone("openclip-text", weights=str(folders["vit"]), compute=cpu())
    (cut,) = backbone.tokenize([LONG])
    assert cut.is_cut
    assert cut.n_tokens == 29
    assert cut.limit == MOST_TOKENS


def test_no_texts_have_no_tokens(folders):
    backbone = load_text_backbone("openclip-text", weights=str(folders["vit"]), compute=cpu())
    assert backbone.tokenize([]) == []


def test_the_two_halves_have_one_space_which_is_not_transformers(folders):
    texts = load_text_backbone("openclip-text", weights=str(folders["vit"]), compute=cpu())
    images = load_backbone("openclip", 1, weights=str(folders["vit"]), compute=cpu())
    assert texts.provenance["space"] == images.provenance["space"]
    assert images.provenance["space"].startswith("openclip sha256:")
    assert texts.provenance["tokenizer"]["sha256"].keys() == {"bpe_simple_vocab_16e6.txt.gz"}


def test_the_nine_models_of_the_tables_are_those_that_openclip_has_under_these_tags(open_clip):
    assert OPENCLIP.keys() == EFFECTS.keys()
    for name, one in OPENCLIP.items():
        tag = "laion400m_e32" if name.startswith("OpenCLIP") else "openai"
        of_weights = open_clip.get_pretrained_cfg(one.architecture, tag)
        assert of_weights["hf_hub"].rstrip("/") == one.repository
        assert of_weights["quick_gelu"]
        of_network = open_clip.get_model_config(one.architecture)
        assert of_network["quick_gelu"]
        assert of_network["text_cfg"]["vocab_size"] == 49408  # of CLIP's tokenizer


@pytest.mark.parametrize("stated", [True, False])
def test_a_named_model_is_built_as_openclip_says_whatever_its_repository_states(
    open_clip, folders, tmp_path, in_hub, monkeypatch, stated
):
    """Configurations of the same weights may leave out the approximation of GELU, or be missing.

    The table of names has one here, `tiny`, for the repository lab/net.
    """
    config = json.loads((folders["vit"] / "open_clip_config.json").read_text())["model_cfg"]
    (tmp_path / "tiny-quickgelu.json").write_text(json.dumps(config))
    open_clip.add_model_config(tmp_path / "tiny-quickgelu.json")
    for module in (openclip, weights):
        monkeypatch.setattr(module, "OPENCLIP", {"tiny": weights.OpenClip("lab/net", "tiny-quickgelu")})
    snapshot = in_hub(folders["vit"])
    if stated:
        del config["quick_gelu"]
        (snapshot / "open_clip_config.json").write_text(json.dumps({"model_cfg": config}))
    else:
        (snapshot / "open_clip_config.json").unlink()
    for source in ("tiny", f"lab/net@{snapshot.name}"):
        backbone = load_backbone("openclip", weights=source, compute=cpu())
        assert backbone.provenance["hub"] == {"repository": "lab/net", "revision": snapshot.name}
        assert backbone.provenance["architecture"]["quick_gelu"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda c: c.pop("model_cfg"), "model_cfg"),
        (lambda c: c["model_cfg"]["vision_cfg"].update(timm_model_name="x"), r"vision_cfg\.timm_model_name"),
        (lambda c: c["model_cfg"].update(custom_text=True), "custom_text"),
        (lambda c: c["model_cfg"].update(new=1), "'new'"),
        (lambda c: c["model_cfg"].update(embed_dim=16), "another shape: .*proj"),
        (lambda c: c["model_cfg"].update(embed_dim=10**9), "open_clip_config.json"),
        (lambda c: c["model_cfg"]["text_cfg"].update(context_length=10**5), "open_clip_config.json"),
        (lambda c: c["model_cfg"]["text_cfg"].update(layers=10**9), "layers"),
        (lambda c: c["model_cfg"]["vision_cfg"].update(layers=1), "no place for: visual"),
        (lambda c: c["preprocess_cfg"].update(mean=[0, 0, 0]), "--preset"),
    ],
)
def test_a_configuration_that_cannot_be_built_as_it_says_is_refused(reconfigured, change, place):
    with pytest.raises(BackboneError, match=place):
        load_backbone("openclip", weights=reconfigured(change), compute=cpu())


@pytest.fixture
def reconfigured(folders, tmp_path):
    """Copy the transformer with another configuration."""

    def make(change):
        folder = shutil.copytree(folders["vit"], tmp_path / "vit")
        config = json.loads((folder / "open_clip_config.json").read_text())
        change(config)
        (folder / "open_clip_config.json").write_text(json.dumps(config))
        return str(folder)

    return make


@pytest.mark.usefixtures("grad_cam")
@pytest.mark.parametrize("score", ["cosine", "dot"])
def test_the_map_of_a_resnet_is_autograds_through_its_attention_pooling(folders, originals, frames, score):
    mapped, embed = openclip_to_map(str(folders["resnet"]), cpu())
    assert mapped.about["layer"] == "visual.layer4"
    mapped.network.double()
    visual = deepcopy(originals["resnet"].visual).double()
    picture = mapped.pixels(frames[0, 0])
    acts = visual.layer3(visual.layer2(visual.layer1(visual.stem(picture))))
    acts = visual.layer4(acts).detach().requires_grad_()
    assert acts.shape[1:] == (256, 2, 2)
    sum_of_maps = 0.0
    # A map shows what raises the score, which may be nothing; of a text and its opposite one shows something.
    for sign in (1, -1):
        text = sign * embed(TEXTS[1]).double()
        scored, cam = grad_cam_map(mapped, picture, similarity(text, score))
        image = visual.attnpool(acts)[0]
        value = image @ text
        value = value / (image.norm() * text.norm()) if score == "cosine" else value
        (gradient,) = torch.autograd.grad(value, acts)
        summed = (gradient.mean(dim=(2, 3), keepdim=True) * acts).sum(dim=1)[0].detach().numpy()
        assert scored == pytest.approx(value.item(), rel=1e-9)
        np.testing.assert_allclose(cam, np.maximum(summed, 0), atol=1e-9 * np.abs(summed).max())
        sum_of_maps += cam.sum()
    assert sum_of_maps > 0


@pytest.mark.usefixtures("grad_cam")
def test_the_map_of_a_vision_transformer_is_autograds(folders, originals, frames):
    mapped, embed = openclip_to_map(str(folders["vit"]), cpu())
    text = embed(TEXTS[0])
    _, live = grad_cam_map(mapped, mapped.pixels(frames[0, 0]), similarity(text, "cosine"))

    outputs = []  # of the last block's first norm
    visual = originals["vit"].visual
    layer = visual.transformer.resblocks[-1].ln_1
    handle = layer.register_forward_hook(lambda _layer, _inputs, output: outputs.append(output))
    picture = pixels(frames[0, :1]).requires_grad_()
    cosine = normalize(visual(picture), dim=-1)[0] @ normalize(text, dim=0)
    handle.remove()
    (output,) = outputs
    (gradient,) = torch.autograd.grad(cosine, output)
    patches = output[0, 1:]  # after the class token
    weights = gradient[0, 1:].mean(dim=0)
    expected = (patches @ weights).relu().reshape(4, 4).detach().numpy()
    np.testing.assert_allclose(live, expected, atol=NETWORK_ROUNDING * np.abs(expected).max() + 1e-9)
