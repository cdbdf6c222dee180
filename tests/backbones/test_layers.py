"""Layers: what a block of a network gives, averaged over the patches, in the pass that gives its vectors."""

import json

import numpy as np
import pytest

from obygaze_features.backbones import Layers, load_backbone
from obygaze_features.errors import BackboneError
from tests.backbones.test_encoders import (
    CONFIGS,
    PROCESSORS,
    load_encoder,
    normalised_pixels,
    prepared_clips,
    transformers_network,
)
from tests.lazy_import import cpu, lazy_import, without_gradients
from tests.tiny_checkpoints import tiny_sound_checkpoint

torch = lazy_import("torch")
transformers = lazy_import("transformers")
AutoConfig = lazy_import("transformers", "AutoConfig")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")
untrained = lazy_import("obygaze_features.backbones.checkpoint", "untrained")
IMAGES = lazy_import("obygaze_features.backbones.encoder_specs", "IMAGES")
VIDEOS = lazy_import("obygaze_features.backbones.encoder_specs", "VIDEOS")
SOUNDS = lazy_import("obygaze_features.backbones.waveform", "SOUNDS")
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
TYPES_WITH_ONE_STACK_OF_BLOCKS = [
    model_type for model_type in CONFIGS if not model_type.startswith("videoprism")
]


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
@pytest.mark.parametrize("model_type", TYPES_WITH_ONE_STACK_OF_BLOCKS)
def test_a_stored_layer_is_the_mean_over_patches_of_what_transformers_gives_behind_a_block(
    folder_of_tiny_checkpoint, model_type
):
    """A tiny network of each type has two blocks, whose outputs are stored as the layers 1 and 2.

    Transformers gives the same outputs as `hidden_states`, a vector for each token. The layer of a frame is
    their mean over the patches of the frame; in networks that take two frames together, over the patches of
    this step. The layer of a clip is the mean over its frames or steps.
    """
    folder = folder_of_tiny_checkpoint[model_type]
    backbone = load_encoder(model_type, folder, layers=Layers(frames=True))
    clips = prepared_clips(backbone, n_clips=2)
    network = transformers_network(model_type, folder)
    after_block_1, after_block_2 = hidden_states(model_type, network, normalised_pixels(backbone, clips))

    arrays = backbone.encode(clips)

    assert [side.name for side in backbone.side_groups] == ["1", "2"]
    expected_1 = mean_of_each_frame_or_step(model_type, after_block_1, n_clips=2).numpy()
    assert_exact(arrays["1/frames"], expected_1)
    assert_exact(arrays["1/pooled"], expected_1.mean(axis=1))
    expected_2 = mean_of_each_frame_or_step(model_type, after_block_2, n_clips=2).numpy()
    assert_exact(arrays["2/frames"], expected_2)
    assert_exact(arrays["2/pooled"], expected_2.mean(axis=1))


@without_gradients
@pytest.mark.parametrize("model_type", FINAL_NORM)
def test_a_layer_may_pass_the_final_normalisation_of_the_network(folder_of_tiny_checkpoint, model_type):
    """A network normalises what its last block gives; a layer is what an earlier block gives.

    With `norm=True`, each patch of layer 1, of a tiny network of two blocks, passes the same normalisation
    before patches are averaged.
    """
    folder = folder_of_tiny_checkpoint[model_type]
    backbone = load_encoder(model_type, folder, layers=Layers((1,), norm=True, frames=True))
    clips = prepared_clips(backbone, n_clips=2)
    network = transformers_network(model_type, folder)
    normalise = FINAL_NORM[model_type](network)

    arrays = backbone.encode(clips)

    after_block_1, _after_block_2 = hidden_states(model_type, network, normalised_pixels(backbone, clips))
    expected = mean_of_each_frame_or_step(model_type, normalise(after_block_1), n_clips=2)
    assert_exact(arrays["1/frames"], expected)


@pytest.mark.parametrize("model_type", FINAL_NORM)
def test_the_provenance_of_a_layer_names_its_number_its_normalisation_and_the_weights(
    folder_of_tiny_checkpoint, model_type
):
    """Of a tiny network of the type, layer 1 is stored beside the vectors, normalised as the last one is.

    A layer has no head, such as a projection behind the last block.
    """
    layers = Layers((1,), norm=True, frames=True)

    backbone = load_encoder(model_type, folder_of_tiny_checkpoint[model_type], layers=layers)

    (layer_1,) = backbone.side_groups
    assert layer_1.provenance["norm"]
    assert layer_1.provenance["layer"] == "1"
    assert layer_1.provenance["head"] is None
    assert layer_1.provenance["weights_sha256"] == backbone.provenance["weights_sha256"]


@without_gradients
def test_layers_of_videoprism_number_spatial_blocks_then_temporal_ones(tmp_path):
    """A tiny VideoPrism has two spatial blocks, which see single frames, and two temporal ones behind them.

    Layers 1 and 2 are what the spatial blocks give, 3 and 4 what the temporal ones give, each averaged over
    the patches of a frame. The expected states are transformers' own.
    """
    network = save_videoprism(tmp_path)
    layers = Layers(frames=True)
    backbone = load_backbone("video", n_frames=4, weights=str(tmp_path), layers=layers, compute=cpu())
    clips = prepared_clips(backbone, n_clips=2)

    arrays = backbone.encode(clips)

    output = network(normalised_pixels(backbone, clips), output_hidden_states=True)
    _input, after_block_1, _after_block_2, after_block_3, *_ = output.hidden_states
    assert_exact(arrays["1/frames"], mean_of_patches_of_spatial(after_block_1))
    assert_exact(arrays["2/frames"], mean_of_patches_of_spatial(output.last_spatial_hidden_state))
    assert_exact(arrays["3/frames"], mean_of_patches_of_temporal(after_block_3))
    assert_exact(arrays["4/frames"], mean_of_patches_of_temporal(output.last_temporal_hidden_state))


@without_gradients
def test_layers_of_videoprism_pass_the_normalisation_of_their_own_kind_of_blocks(tmp_path):
    """A tiny VideoPrism has two spatial blocks, then a normalisation, two temporal blocks, and another one.

    With `norm=True`, layer 2, of the last spatial block, passes the first normalisation, and layer 4, of the
    last temporal block, the second.
    """
    network = save_videoprism(tmp_path)
    layers = Layers((2, 4), norm=True, frames=True)
    backbone = load_backbone("video", n_frames=4, weights=str(tmp_path), layers=layers, compute=cpu())
    clips = prepared_clips(backbone, n_clips=2)

    arrays = backbone.encode(clips)

    output = network(normalised_pixels(backbone, clips), output_hidden_states=True)
    after_norm_of_spatial = network.layernorm1(output.last_spatial_hidden_state)
    after_norm_of_temporal = network.layernorm2(output.last_temporal_hidden_state)
    assert_exact(arrays["2/frames"], mean_of_patches_of_spatial(after_norm_of_spatial))
    assert_exact(arrays["4/frames"], mean_of_patches_of_temporal(after_norm_of_temporal))


def mean_of_patches_of_spatial(states):
    """Average the states of 2 clips of 4 frames of 4 patches, [clips x frames, patches, 32], by frame."""
    return states.view(2, 4, 4, 32).mean(dim=2)


def mean_of_patches_of_temporal(states):
    """Average the states of 2 clips of 4 patches in 4 frames, [clips x patches, frames, 32], by frame."""
    return states.view(2, 4, 4, 32).mean(dim=1)


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
def test_layers_of_the_lsmdc_x_clip_are_those_of_the_clip_inside(tiny_checkpoints, two_clips_of_32_frames):
    """The X-CLIP of LSMDC has a CLIP that sees the 12 frames of a clip one by one, and relates them then.

    Its layer 1 is what the first block of that CLIP gives, averaged over the patches of a frame.
    """
    one_clip = two_clips_of_32_frames[:1, :12]
    weights = str(tiny_checkpoints["xclip-lsmdc"])
    backbone = load_backbone("xclip-lsmdc", weights=weights, layers=Layers((1,), frames=True), compute=cpu())

    arrays = backbone.encode(one_clip)

    network_with_layers = backbone.encode.network.network
    clip_network = network_with_layers.network
    pixels_of_frames = normalised_pixels(backbone, one_clip)[0]
    output = clip_network.vision(pixel_values=pixels_of_frames, output_hidden_states=True)
    _input, after_block_1, *_ = output.hidden_states
    patches = after_block_1[:, 1:]  # behind the class token
    assert_exact(arrays["1/frames"][0], patches.mean(dim=1))
    assert_exact(arrays["1/pooled"][0], patches.mean(dim=(0, 1)))


@without_gradients
@pytest.mark.parametrize(
    "model_type",
    ["wav2vec2", "hubert", "wavlm", "whisper", "audio-spectrogram-transformer", "pe_audio_encoder"],
)
def test_a_stored_layer_of_a_network_of_sound_is_the_mean_over_the_steps_of_the_sound(tmp_path, model_type):
    """A block of a network gives a vector for each step in time of a sound, here of a second of noise.

    Some networks pad the sound to a window of fixed length, or have tokens of the whole: these do not count
    (`steps_of_sound`). The clip has one frame, to which all its sound belongs, so that the array of frames
    and that of clips have the same vector.
    """
    folder = tiny_sound_checkpoint(model_type, tmp_path)
    layers = Layers((1,), frames=True)
    backbone = load_backbone("waveform", n_frames=1, weights=str(folder), layers=layers, compute=cpu())
    clip_of_one_frame = SOUND[None]

    arrays = backbone.encode([clip_of_one_frame])

    with quiet():
        extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
        network = transformers.AutoModel.from_pretrained(folder).eval()
    if model_type == "whisper":  # whose decoder writes text
        network = network.encoder
    inputs = extractor(SOUND, sampling_rate=16_000, return_tensors="pt")
    _input, after_block_1, *_ = network(**inputs, output_hidden_states=True).hidden_states
    steps = steps_of_sound(model_type, after_block_1[0], n_samples=16_000)
    expected = steps.mean(dim=0)
    assert_exact(arrays["1/pooled"][0], expected)
    assert_exact(arrays["1/frames"][0, 0], expected)


def test_layers_of_different_width_have_different_shapes(folder_of_tiny_checkpoint):
    """A tiny Hiera, all of whose layers are stored, doubles its width from stage to stage: from 8 to 16."""
    backbone = load_encoder("hiera", folder_of_tiny_checkpoint["hiera"], layers=Layers())

    shapes = [layer.outputs[0].shape for layer in backbone.side_groups]

    assert shapes == [(8,), (16,)]


def test_a_layer_beyond_the_last_one_is_refused(folder_of_tiny_checkpoint):
    """The tiny ViT has two layers, and the third is asked for."""
    with pytest.raises(BackboneError):
        load_encoder("vit", folder_of_tiny_checkpoint["vit"], layers=Layers((1, 3)))


@pytest.mark.parametrize("model_type", ["hiera", "videomae"])
def test_a_normalisation_that_takes_no_tokens_is_refused_for_layers(folder_of_tiny_checkpoint, model_type):
    """Hiera normalises the mean over tokens alone; VideoMAE has no normalisation where it averages tokens."""
    with pytest.raises(BackboneError):
        load_encoder(model_type, folder_of_tiny_checkpoint[model_type], layers=Layers((1,), norm=True))


@pytest.fixture(scope="module")
def clap(tmp_path_factory):
    """Weights of a tiny CLAP, whose audio network has four stages."""
    return tiny_sound_checkpoint("clap", tmp_path_factory.mktemp("clap"))


@without_gradients
def test_layers_of_clap_are_the_means_of_its_four_maps(clap):
    """Each of the four stages of CLAP gives a map of frequencies and times; a layer is the mean over both.

    The clip has a second of noise and one frame, to which all of it belongs, so that frame and clip have the
    same vector.
    """
    backbone = load_backbone(
        "waveform", n_frames=1, weights=str(clap), layers=Layers(frames=True), compute=cpu()
    )

    arrays = backbone.encode([SOUND[None]])

    widths = [layer.outputs[-1].shape for layer in backbone.side_groups]
    assert widths == [(32,), (64,), (128,), (128,)]
    with quiet():
        extractor = transformers.AutoFeatureExtractor.from_pretrained(clap)
        network = transformers.ClapModel.from_pretrained(clap).eval()
    inputs = extractor(SOUND, sampling_rate=16_000, return_tensors="pt")
    _input, *maps = network.audio_model(**inputs, output_hidden_states=True).hidden_states
    assert len(maps) == 4
    for number, map_of_stage in enumerate(maps, start=1):
        expected = map_of_stage.mean(dim=(2, 3))[0]  # over frequencies and times
        assert_exact(arrays[f"{number}/pooled"][0], expected)
        assert_exact(arrays[f"{number}/frames"][0, 0], expected)


@without_gradients
def test_the_vector_of_clap_is_the_same_with_layers_as_without(clap):
    """`clap` is the folder of a tiny CLAP, a network of sound. The clip is a second of noise."""
    with_layers = load_backbone(
        "waveform", n_frames=1, weights=str(clap), layers=Layers(frames=True), compute=cpu()
    )
    without_layers = load_backbone("waveform", n_frames=1, weights=str(clap), compute=cpu())

    vector = with_layers.encode([SOUND[None]])["pooled"]

    assert np.array_equal(without_layers.encode([SOUND[None]])["pooled"], vector)


def test_a_final_normalisation_of_layers_of_clap_is_refused(clap):
    """CLAP has none after its stages."""
    with pytest.raises(BackboneError):
        load_backbone("waveform", n_frames=1, weights=str(clap), layers=Layers(norm=True), compute=cpu())


@pytest.mark.parametrize("typed", ["", "0", "1,1", "4-8", "last", "-1", "1,,2"])
def test_text_that_is_no_list_of_layers_is_refused(typed):
    """Layers are numbered from 1, and named once, by single numbers separated by commas."""
    with pytest.raises(BackboneError):
        Layers.parse(typed)


def test_layers_may_be_a_string_as_on_the_command_line(folder_of_tiny_checkpoint):
    """A tiny ViT has two layers, of which the second is asked for; `Layers((2,))` would mean the same."""
    backbone = load_backbone(
        "image", n_frames=1, layers="2", weights=str(folder_of_tiny_checkpoint["vit"]), compute=cpu()
    )

    assert [layer.name for layer in backbone.side_groups] == ["2"]


def test_layers_that_are_a_number_are_refused(folder_of_tiny_checkpoint):
    """A single layer is written `Layers((2,))` in Python, or "2" as on the command line."""
    with pytest.raises(BackboneError):
        load_backbone(
            "image", n_frames=1, layers=2, weights=str(folder_of_tiny_checkpoint["vit"]), compute=cpu()
        )


def test_every_type_of_network_says_where_its_blocks_are():
    """Blocks are found by the names of the lists they are in ("stacks"). A type without any has no layers."""
    types = [*IMAGES.items(), *VIDEOS.items(), *SOUNDS.items()]

    without_stacks = [name for name, model_type in types if not model_type.stacks]

    assert without_stacks == []
