"""Layers: what a block of a network gives, averaged over the patches, in the pass that gives its vectors."""

import json

import numpy as np
import pytest

from obygaze_features.backbones import Layers, load_backbone
from obygaze_features.errors import BackboneError
from tests.backbones.test_encoders import CONFIGS, FRAMES, PROCESSORS, backbone_of, folders, whole  # noqa: F401
from tests.later import cpu, later, without_gradients
from tests.tiny_checkpoints import tiny_sound_checkpoint

torch = later("torch")
transformers = later("transformers")
AutoConfig = later("transformers", "AutoConfig")
quiet = later("obygaze_features.backbones.checkpoint", "quiet")
untrained = later("obygaze_features.backbones.checkpoint", "untrained")
IMAGES = later("obygaze_features.backbones.encoder_specs", "IMAGES")
VIDEOS = later("obygaze_features.backbones.encoder_specs", "VIDEOS")
KINDS = later("obygaze_features.backbones.waveform", "SOUNDS")

EXACT = 1e-6
"""Of the largest value: what float32 rounds."""
REGISTERS = {"dinov2_with_registers": 3, "dinov3_vit": 3}
WITHOUT_CLASS = {
    *("siglip", "siglip_vision_model", "aimv2", "aimv2_vision_model", "hiera", "videomae", "vjepa2"),
}
"""Families whose blocks have tokens of patches alone."""
NORMS = {
    "clip": lambda model: model.vision_model.post_layernorm,
    "aimv2_vision_model": lambda model: model.rms_norm,
    "dinov3_vit": lambda model: model.norm,
    "vivit": lambda model: model.layernorm,
    "vjepa2": lambda model: model.encoder.layernorm,
}
"""Family -> the normalisation after its last block."""
N_FRAMES = 4
"""Frames of a clip in `FRAMES`."""
N_STEPS = 2
"""Steps of a clip in networks whose tokens are of two frames each."""
SAMPLES_A_SECOND = 16_000
SOUND = np.random.default_rng(0).normal(0, 0.1, SAMPLES_A_SECOND).astype(np.float32)
"""A second of noise."""
ONE_STACK = [kind for kind in CONFIGS if not kind.startswith("videoprism")]


def assert_exact(result, expected):
    expected = np.asarray(expected)
    assert result.shape == expected.shape
    assert np.abs(result - expected).max() <= EXACT * np.abs(expected).max()


def prepared(backbone, n_clips=2):
    return np.array([[backbone.prepare(frame) for frame in clip] for clip in FRAMES[:n_clips]])


def pixels_of(backbone, batch):
    constants = backbone.provenance["preset"]["constants"]
    pixels = batch * np.array(constants["scale"]) + np.array(constants["shift"])
    return torch.from_numpy(pixels.transpose(0, 1, 4, 2, 3)).float()


def hidden_states(kind, model, pixels):
    """Return transformers' own hidden states after each block, of the patches alone.

    The network is made one of double precision, so that what rounds is ours alone: on some processors
    transformers' sums in single precision are off by more than `EXACT`.
    """
    model = model.double()
    pixels = pixels.double()
    has_halves = kind in {"clip", "metaclip_2", "siglip", "aimv2", "xclip"}
    network = model.vision_model if has_halves else model
    sees_frames = kind in IMAGES or kind == "xclip"
    inputs = {(IMAGES | VIDEOS)[kind].pixels_argument(): pixels.flatten(0, 1) if sees_frames else pixels}
    if kind == "vjepa2":
        inputs["skip_predictor"] = True
    states = network(**inputs, output_hidden_states=True).hidden_states
    n_other_tokens = REGISTERS.get(kind, 0)
    if kind not in WITHOUT_CLASS:
        n_other_tokens += 1
    after_blocks = states[1:]  # the first is the input of the first block
    return [state[:, n_other_tokens:] for state in after_blocks]


def of_moments(kind, state, n_clips):
    """Average states over the patches of each frame, or step of two frames: [B, S, D]."""
    if kind in IMAGES or kind == "xclip":
        return state.mean(dim=1).view(n_clips, N_FRAMES, -1)
    if kind == "timesformer":  # all frames of a patch follow each other
        return state.view(n_clips, -1, N_FRAMES, state.shape[-1]).mean(dim=1)
    return state.view(n_clips, N_STEPS, -1, state.shape[-1]).mean(dim=2)


def of_steps(kind, states, n_samples):
    """Take the states `[S, D]` that are of steps of the sound, without other tokens and padding."""
    if kind == "whisper":  # a step is 20 ms
        n_steps = n_samples * 50 // SAMPLES_A_SECOND
        return states[:n_steps]
    if kind == "pe_audio_encoder":
        return states[1:]  # behind the class token
    if kind == "audio-spectrogram-transformer":
        # Two tokens of the whole, then patches in 2 bands of frequency at 12 times, which are 100 ms apart.
        n_steps = n_samples * 10 // SAMPLES_A_SECOND
        return states[2:].reshape(2, 12, -1).mean(dim=0)[:n_steps]
    return states


@without_gradients
@pytest.mark.parametrize("kind", ONE_STACK)
def test_a_layer_is_the_mean_over_the_patches_of_transformers_own_hidden_state(folders, kind):  # noqa: F811
    backbone = backbone_of(kind, folders[kind], layers=Layers(frames=True))
    batch = prepared(backbone)
    result = backbone.encode(batch)
    states = hidden_states(kind, whole(kind, folders[kind]), pixels_of(backbone, batch))
    assert [side.name for side in backbone.side_groups] == ["1", "2"]
    for number in (1, 2):
        expected = of_moments(kind, states[number - 1], len(batch)).numpy()
        assert_exact(result[f"{number}/frames"], expected)
        assert_exact(result[f"{number}/pooled"], expected.mean(axis=1))


@without_gradients
@pytest.mark.parametrize("kind", NORMS)
def test_a_layer_may_go_through_the_networks_own_final_normalisation(folders, kind):  # noqa: F811
    backbone = backbone_of(kind, folders[kind], layers=Layers((1,), norm=True, frames=True))
    batch = prepared(backbone)
    model = whole(kind, folders[kind])
    state = hidden_states(kind, model, pixels_of(backbone, batch))[0]
    assert_exact(backbone.encode(batch)["1/frames"], of_moments(kind, NORMS[kind](model)(state), len(batch)))
    (side,) = backbone.side_groups
    assert side.provenance["norm"]
    assert side.provenance["layer"] == "1"


@without_gradients
def test_layers_of_videoprism_are_those_that_see_frames_and_then_those_that_see_places(tmp_path):
    config = AutoConfig.for_model(
        "videoprism_vision_model",
        **CONFIGS["videoprism_vision_model"] | {"num_spatial_layers": 2, "num_temporal_layers": 2},
    )
    network = untrained(lambda: transformers.VideoPrismVisionModel(config), 0)
    with quiet():
        network.save_pretrained(tmp_path)
    beside = json.dumps(PROCESSORS["videoprism"])
    (tmp_path / "video_preprocessor_config.json").write_text(beside)
    options = {"weights": str(tmp_path), "compute": cpu()}
    backbone = load_backbone("video", 4, layers=Layers(frames=True), **options)
    normed = load_backbone("video", 4, layers=Layers((2, 4), norm=True, frames=True), **options)
    batch = prepared(backbone)
    output = network(pixels_of(backbone, batch), output_hidden_states=True)
    result, after_norm = backbone.encode(batch), normed.encode(batch)

    n_clips, n_patches, width = 2, 4, 32

    def of_spatial(states):
        """Average `[clips x frames, patches, width]` over patches."""
        return states.view(n_clips, N_FRAMES, n_patches, width).mean(dim=2)

    def of_temporal(states):
        """Average `[clips x patches, frames, width]` over patches."""
        return states.view(n_clips, n_patches, N_FRAMES, width).mean(dim=1)

    last_spatial, last_temporal = output.last_spatial_hidden_state, output.last_temporal_hidden_state
    assert_exact(result["1/frames"], of_spatial(output.hidden_states[1]))
    assert_exact(result["2/frames"], of_spatial(last_spatial))
    assert_exact(result["3/frames"], of_temporal(output.hidden_states[3]))
    assert_exact(result["4/frames"], of_temporal(last_temporal))
    assert_exact(after_norm["2/frames"], of_spatial(network.layernorm1(last_spatial)))
    assert_exact(after_norm["4/frames"], of_temporal(network.layernorm2(last_temporal)))


@without_gradients
def test_layers_of_the_lsmdc_x_clip_are_those_of_its_clip(checkpoints, clips):
    given = clips[:1, :12]
    weights = str(checkpoints["xclip-lsmdc"])
    backbone = load_backbone("xclip-lsmdc", weights=weights, layers=Layers((1,), frames=True), compute=cpu())
    result = backbone.encode(given)
    vision = backbone.encode.network.network.network.vision
    states = vision(pixel_values=pixels_of(backbone, given)[0], output_hidden_states=True).hidden_states
    patches = states[1][:, 1:]  # after the first block, behind the class token
    assert_exact(result["1/frames"][0], patches.mean(dim=1))
    assert_exact(result["1/pooled"][0], patches.mean(dim=(0, 1)))


@without_gradients
@pytest.mark.parametrize(
    "kind", ["wav2vec2", "hubert", "wavlm", "whisper", "audio-spectrogram-transformer", "pe_audio_encoder"]
)
def test_a_layer_of_a_network_that_hears_is_the_mean_over_the_steps_of_the_sound(tmp_path, kind):
    folder = tiny_sound_checkpoint(kind, tmp_path)
    backbone = load_backbone(
        "waveform", 1, weights=str(folder), layers=Layers((1,), frames=True), compute=cpu()
    )
    result = backbone.encode([SOUND[None]])
    with quiet():
        extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
        network = transformers.AutoModel.from_pretrained(folder).eval()
    inputs = extractor(SOUND, sampling_rate=SAMPLES_A_SECOND, return_tensors="pt")
    network = network.encoder if kind == "whisper" else network
    states = network(**inputs, output_hidden_states=True).hidden_states[1][0]
    expected = of_steps(kind, states, len(SOUND)).mean(dim=0)
    assert_exact(result["1/pooled"][0], expected)
    assert_exact(result["1/frames"][0, 0], expected)


@pytest.mark.parametrize("kind", ["xclip", "vivit", "dinov3_vit"])
def test_what_a_backbone_gives_does_not_change_by_its_layers(folders, kind):  # noqa: F811
    plain = backbone_of(kind, folders[kind])
    layered = backbone_of(kind, folders[kind], layers=Layers((2,)))
    batch = prepared(plain)
    result, beside = plain.encode(batch), layered.encode(batch)
    assert beside.keys() == {*result, "2/pooled"}
    for name, array in result.items():
        assert np.array_equal(array, beside[name])
    assert layered.provenance == plain.provenance
    assert layered.outputs == plain.outputs


def test_a_layer_says_which_it_is_and_has_no_space_that_texts_share(folders):  # noqa: F811
    backbone = backbone_of("clip", folders["clip"], layers=Layers((2,)))
    assert backbone.provenance["space"]
    (side,) = backbone.side_groups
    record = side.provenance
    assert backbone.group_names() == ("image", "image.2")
    assert (record["layer"], record["norm"], record["head"]) == ("2", None, None)
    assert record["beside"] == "image"
    assert "space" not in record
    assert record["arrays"].keys() == {"pooled"}
    assert record["weights_sha256"] == backbone.provenance["weights_sha256"]


def test_stages_of_unlike_width_have_each_their_own(folders):  # noqa: F811
    backbone = backbone_of("hiera", folders["hiera"], layers=Layers())
    assert [side.outputs[0].shape for side in backbone.side_groups] == [(8,), (16,)]


@pytest.mark.parametrize(
    ("kind", "layers"),
    [
        ("vit", Layers((1, 3))),  # of two
        ("hiera", Layers(norm=True)),  # whose final normalisation is of the last stage's mean
        ("videomae", Layers((1,), norm=True)),  # which has none where tokens are averaged
    ],
)
def test_layers_that_a_network_does_not_have_are_refused(folders, kind, layers):  # noqa: F811
    with pytest.raises(BackboneError):
        backbone_of(kind, folders[kind], layers=layers)


@pytest.fixture(scope="module")
def clap(tmp_path_factory):
    """Weights of a tiny CLAP, whose audio network has four stages."""
    return tiny_sound_checkpoint("clap", tmp_path_factory.mktemp("clap"))


@without_gradients
def test_layers_of_clap_are_its_stages_over_each_window_of_sound(clap):
    backbone = load_backbone("waveform", 1, weights=str(clap), layers=Layers(frames=True), compute=cpu())
    result = backbone.encode([SOUND[None]])
    with quiet():
        extractor = transformers.AutoFeatureExtractor.from_pretrained(clap)
        network = transformers.ClapModel.from_pretrained(clap).eval()
    inputs = extractor(SOUND, sampling_rate=SAMPLES_A_SECOND, return_tensors="pt")
    states = network.audio_model(**inputs, output_hidden_states=True).hidden_states
    assert [side.outputs[-1].shape for side in backbone.side_groups] == [(32,), (64,), (128,), (128,)]
    for number, state in enumerate(states[1:], start=1):
        expected = state.mean(dim=(2, 3))[0]  # over the map's height and width
        assert_exact(result[f"{number}/pooled"][0], expected)
        assert_exact(result[f"{number}/frames"][0, 0], expected)


@without_gradients
def test_what_clap_gives_does_not_change_by_its_layers(clap):
    plain = load_backbone("waveform", 1, weights=str(clap), compute=cpu())
    layered = load_backbone("waveform", 1, weights=str(clap), layers=Layers(frames=True), compute=cpu())
    assert np.array_equal(plain.encode([SOUND[None]])["pooled"], layered.encode([SOUND[None]])["pooled"])


def test_layers_of_clap_have_no_final_normalisation(clap):
    with pytest.raises(BackboneError):
        load_backbone("waveform", 1, weights=str(clap), layers=Layers(norm=True), compute=cpu())


@pytest.mark.parametrize("typed", ["", "0", "1,1", "4-8", "last", "-1", "1,,2"])
def test_what_is_no_list_of_layers_is_refused(typed):
    with pytest.raises(BackboneError):
        Layers.parse(typed)


def test_layers_may_be_given_as_they_are_typed_and_are_nothing_else(folders):  # noqa: F811
    backbone = load_backbone("image", 1, weights=str(folders["vit"]), layers="2", compute=cpu())
    assert [side.name for side in backbone.side_groups] == ["2"]
    with pytest.raises(BackboneError):
        load_backbone("image", 1, weights=str(folders["vit"]), layers=2, compute=cpu())


def test_every_family_says_where_its_layers_are():
    assert all(kind.stacks for kind in {**IMAGES, **VIDEOS}.values())
    assert all(kind.stacks for kind in KINDS.values())


@pytest.mark.long
@without_gradients
@pytest.mark.parametrize("kind", ["clip", "vivit", "xclip"])
def test_layers_break_no_graph_of_a_network_that_is_compiled(folders, kind):  # noqa: F811
    runner = backbone_of(kind, folders[kind], layers=Layers(frames=True)).encode
    frames, side, *_ = runner.shape
    result = torch._dynamo.explain(runner.network)(torch.zeros(1, frames, 3, side, side))
    assert result.graph_break_count == 0, result.break_reasons
