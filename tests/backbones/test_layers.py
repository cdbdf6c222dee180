"""Layers: what a block of a network gives, averaged over the patches, in the pass that gives its vectors."""

import json

import numpy as np
import pytest

from obygaze_features.backbones import Layers, load_backbone
from obygaze_features.errors import BackboneError
from tests.backbones.test_encoders import (
    CONFIGS,
    PROCESSORS,
    backbone_of,
    pixels_of,
    prepared,
    transformers_network,
)
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
FINAL_NORM = {
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
# A VideoPrism has two stacks of blocks, and a test of its own.
TYPES_WITH_ONE_STACK = [model_type for model_type in CONFIGS if not model_type.startswith("videoprism")]


def assert_exact(result, expected):
    """Compare arrays to within the rounding of float32."""
    expected = np.asarray(expected)
    assert result.shape == expected.shape
    assert np.abs(result - expected).max() <= EXACT * np.abs(expected).max()


WITH_A_VISION_MODEL = {"clip", "metaclip_2", "siglip", "aimv2", "xclip"}
"""Types whose network is one for texts and one for pictures."""


def sees_frames(model_type):
    """Whether a network takes frames `[B * F, 3, h, w]`; the others take clips `[B, F, 3, h, w]`."""
    return model_type in IMAGES or model_type == "xclip"


def hidden_states(model_type, model, pixels):
    """Return transformers' own hidden states after each block, of the patches alone."""
    # On some processors, sums in single precision are off by more than `EXACT`.
    model = model.double()
    pixels = pixels.double()
    network = model.vision_model if model_type in WITH_A_VISION_MODEL else model
    if sees_frames(model_type):
        pixels = pixels.flatten(0, 1)
    name_of_pixels = (IMAGES | VIDEOS)[model_type].pixels_argument()
    options = {"skip_predictor": True} if model_type == "vjepa2" else {}
    states = network(**{name_of_pixels: pixels}, **options, output_hidden_states=True).hidden_states

    after_blocks = states[1:]  # the first is the input of the first block
    n_other_tokens = REGISTERS.get(model_type, 0)
    if model_type not in WITHOUT_CLASS:
        n_other_tokens += 1
    return [state[:, n_other_tokens:] for state in after_blocks]


def mean_of_each_frame_or_step(model_type, state, n_clips):
    """Average states over the patches of each frame, or step of two frames: [B, S, D]."""
    if sees_frames(model_type):
        return state.mean(dim=1).view(n_clips, N_FRAMES, -1)
    if model_type == "timesformer":  # all frames of a patch follow each other
        return state.view(n_clips, -1, N_FRAMES, state.shape[-1]).mean(dim=1)
    return state.view(n_clips, N_STEPS, -1, state.shape[-1]).mean(dim=2)


def steps_of_sound(model_type, states, n_samples):
    """Take the states `[S, D]` that are of steps of the sound, without other tokens and padding."""
    if model_type == "whisper":  # a step is 20 ms
        n_steps = n_samples * 50 // SAMPLES_A_SECOND
        return states[:n_steps]
    if model_type == "pe_audio_encoder":
        return states[1:]  # behind the class token
    if model_type == "audio-spectrogram-transformer":
        # Two tokens of the whole, then patches in 2 bands of frequency at 12 times, which are 100 ms apart.
        n_steps = n_samples * 10 // SAMPLES_A_SECOND
        return states[2:].reshape(2, 12, -1).mean(dim=0)[:n_steps]
    return states


@pytest.mark.long
@without_gradients
@pytest.mark.parametrize("model_type", TYPES_WITH_ONE_STACK)
def test_a_layer_is_the_mean_of_the_hidden_states_of_its_patches(folders, model_type):
    """The hidden states are transformers' own; the tiny networks have two blocks."""
    backbone = backbone_of(model_type, folders[model_type], layers=Layers(frames=True))
    batch = prepared(backbone, n_clips=2)
    result = backbone.encode(batch)
    states = hidden_states(
        model_type, transformers_network(model_type, folders[model_type]), pixels_of(backbone, batch)
    )
    assert [side.name for side in backbone.side_groups] == ["1", "2"]
    for number in (1, 2):
        expected = mean_of_each_frame_or_step(model_type, states[number - 1], len(batch)).numpy()
        assert_exact(result[f"{number}/frames"], expected)
        assert_exact(result[f"{number}/pooled"], expected.mean(axis=1))


@without_gradients
@pytest.mark.parametrize("model_type", FINAL_NORM)
def test_a_layer_may_pass_the_final_normalisation_of_the_network(folders, model_type):
    """With `norm=True` each patch is normalised as after the last block, before patches are averaged."""
    backbone = backbone_of(model_type, folders[model_type], layers=Layers((1,), norm=True, frames=True))
    batch = prepared(backbone, n_clips=2)
    model = transformers_network(model_type, folders[model_type])
    after_block_1 = hidden_states(model_type, model, pixels_of(backbone, batch))[0]
    norm = FINAL_NORM[model_type](model)

    assert_exact(
        backbone.encode(batch)["1/frames"],
        mean_of_each_frame_or_step(model_type, norm(after_block_1), len(batch)),
    )
    (side,) = backbone.side_groups
    assert side.provenance["norm"]
    assert side.provenance["layer"] == "1"
    assert side.provenance["head"] is None
    assert side.provenance["weights_sha256"] == backbone.provenance["weights_sha256"]


@without_gradients
def test_layers_of_videoprism_number_spatial_blocks_then_temporal_ones(tmp_path):
    """It has two blocks of each kind. Layers 1 and 2 are spatial, 3 and 4 temporal."""
    network = save_videoprism(tmp_path)
    options = {"weights": str(tmp_path), "compute": cpu()}
    backbone = load_backbone("video", 4, layers=Layers(frames=True), **options)
    normed = load_backbone("video", 4, layers=Layers((2, 4), norm=True, frames=True), **options)
    batch = prepared(backbone, n_clips=2)
    result = backbone.encode(batch)
    after_norm = normed.encode(batch)

    n_clips, n_patches, width = 2, 4, 32

    def frames_of_spatial(states):
        """Average `[clips x frames, patches, width]` over patches."""
        return states.view(n_clips, N_FRAMES, n_patches, width).mean(dim=2)

    def frames_of_temporal(states):
        """Average `[clips x patches, frames, width]` over patches."""
        return states.view(n_clips, n_patches, N_FRAMES, width).mean(dim=1)

    output = network(pixels_of(backbone, batch), output_hidden_states=True)
    _, after_block_1, _, after_block_3, *_ = output.hidden_states  # the first is the input
    after_block_2 = output.last_spatial_hidden_state

    after_block_4 = output.last_temporal_hidden_state
    assert_exact(result["1/frames"], frames_of_spatial(after_block_1))
    assert_exact(result["2/frames"], frames_of_spatial(after_block_2))
    assert_exact(result["3/frames"], frames_of_temporal(after_block_3))
    assert_exact(result["4/frames"], frames_of_temporal(after_block_4))
    assert_exact(after_norm["2/frames"], frames_of_spatial(network.layernorm1(after_block_2)))
    assert_exact(after_norm["4/frames"], frames_of_temporal(network.layernorm2(after_block_4)))


def save_videoprism(folder):
    """Save a tiny VideoPrism of two spatial and two temporal blocks with its processor, and return it."""
    fields = CONFIGS["videoprism_vision_model"] | {"num_spatial_layers": 2, "num_temporal_layers": 2}
    config = AutoConfig.for_model("videoprism_vision_model", **fields)
    network = untrained(lambda: transformers.VideoPrismVisionModel(config), 0)
    with quiet():
        network.save_pretrained(folder)
    processor = json.dumps(PROCESSORS["videoprism"])
    (folder / "video_preprocessor_config.json").write_text(processor)
    return network


@without_gradients
def test_layers_of_the_lsmdc_x_clip_are_those_of_the_clip_inside(checkpoints, clips):
    """It has a CLIP that sees single frames, and a transformer over frames behind it."""
    one_clip = clips[:1, :12]  # it takes 12 frames
    weights = str(checkpoints["xclip-lsmdc"])
    backbone = load_backbone("xclip-lsmdc", weights=weights, layers=Layers((1,), frames=True), compute=cpu())
    result = backbone.encode(one_clip)
    runner = backbone.encode.network
    clip_network = runner.network.network  # within the part that takes layers
    output = clip_network.vision(pixel_values=pixels_of(backbone, one_clip)[0], output_hidden_states=True)
    _, after_block_1, *_ = output.hidden_states  # the first is the input

    patches = after_block_1[:, 1:]  # behind the class token
    assert_exact(result["1/frames"][0], patches.mean(dim=1))
    assert_exact(result["1/pooled"][0], patches.mean(dim=(0, 1)))


@without_gradients
@pytest.mark.parametrize(
    "model_type",
    ["wav2vec2", "hubert", "wavlm", "whisper", "audio-spectrogram-transformer", "pe_audio_encoder"],
)
def test_a_layer_of_a_network_of_sound_is_the_mean_over_its_steps(tmp_path, model_type):
    """Steps that only pad the sound to the network's window do not count."""
    folder = tiny_sound_checkpoint(model_type, tmp_path)
    backbone = load_backbone(
        "waveform", 1, weights=str(folder), layers=Layers((1,), frames=True), compute=cpu()
    )
    result = backbone.encode([SOUND[None]])
    with quiet():
        extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
        network = transformers.AutoModel.from_pretrained(folder).eval()
    inputs = extractor(SOUND, sampling_rate=SAMPLES_A_SECOND, return_tensors="pt")
    network = network.encoder if model_type == "whisper" else network
    states = network(**inputs, output_hidden_states=True).hidden_states[1][0]
    expected = steps_of_sound(model_type, states, len(SOUND)).mean(dim=0)

    assert_exact(result["1/pooled"][0], expected)
    assert_exact(result["1/frames"][0, 0], expected)  # the clip has one frame, to which all its sound belongs


def test_layers_of_different_width_have_different_shapes(folders):
    """Hiera doubles its width from stage to stage, here from 8 to 16."""
    backbone = backbone_of("hiera", folders["hiera"], layers=Layers())
    assert [side.outputs[0].shape for side in backbone.side_groups] == [(8,), (16,)]


def test_a_layer_beyond_the_last_one_is_refused(folders):
    with pytest.raises(BackboneError):
        backbone_of("vit", folders["vit"], layers=Layers((1, 3)))  # it has two


@pytest.mark.parametrize("model_type", ["hiera", "videomae"])
def test_a_normalisation_that_takes_no_tokens_is_refused_for_layers(folders, model_type):
    """Hiera normalises the mean over tokens alone; VideoMAE has no normalisation where it averages tokens."""
    with pytest.raises(BackboneError):
        backbone_of(model_type, folders[model_type], layers=Layers((1,), norm=True))


@pytest.fixture(scope="module")
def clap(tmp_path_factory):
    """Weights of a tiny CLAP, whose audio network has four stages."""
    return tiny_sound_checkpoint("clap", tmp_path_factory.mktemp("clap"))


@without_gradients
def test_layers_of_clap_are_the_means_of_its_four_maps(clap):
    """Each stage of CLAP gives a map of frequencies and times; a layer is the mean over both."""
    options = {"weights": str(clap), "compute": cpu()}
    backbone = load_backbone("waveform", 1, layers=Layers(frames=True), **options)

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
    plain = load_backbone("waveform", 1, **options).encode([SOUND[None]])

    assert np.array_equal(plain["pooled"], result["pooled"])


def test_layers_of_clap_have_no_final_normalisation(clap):
    with pytest.raises(BackboneError):
        load_backbone("waveform", 1, weights=str(clap), layers=Layers(norm=True), compute=cpu())


@pytest.mark.parametrize("typed", ["", "0", "1,1", "4-8", "last", "-1", "1,,2"])
def test_text_that_is_no_list_of_layers_is_refused(typed):
    """Layers are numbered from 1, and named once, by single numbers separated by commas."""
    with pytest.raises(BackboneError):
        Layers.parse(typed)


def test_layers_may_be_a_string_as_on_the_command_line_and_no_number(folders):
    """A single layer is written `Layers((2,))` in Python, or "2" as on the command line."""
    options = {"weights": str(folders["vit"]), "compute": cpu()}
    backbone = load_backbone("image", 1, layers="2", **options)
    assert [side.name for side in backbone.side_groups] == ["2"]
    with pytest.raises(BackboneError):
        load_backbone("image", 1, layers=2, **options)


def test_every_type_of_network_says_where_its_blocks_are():
    """Blocks are found by the names of the lists they are in ("stacks"). A type without any has no layers."""
    types = [*IMAGES.items(), *VIDEOS.items(), *KINDS.items()]
    assert [name for name, model_type in types if not model_type.stacks] == []
