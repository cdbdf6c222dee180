"""The networks give what plain calls of transformers give on the processors' pixels, clip by clip."""

import numpy as np
import pytest
from PIL import Image

from obygaze_features.backbones import load_backbone
from obygaze_features.errors import BackboneError
from obygaze_features.video import read_frames, uniform
from tests.backbones.test_encoders import normalised_pixels
from tests.lazy_import import lazy_import, without_gradients
from tests.rounding import assert_close, network_rounding, rounding

torch = lazy_import("torch")
CLIPImageProcessorPil = lazy_import("transformers", "CLIPImageProcessorPil")
CLIPModel = lazy_import("transformers", "CLIPModel")
XCLIPModel = lazy_import("transformers", "XCLIPModel")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")
untrained = lazy_import("obygaze_features.backbones.checkpoint", "untrained")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
NETWORK_ROUNDING, FLOAT16_ROUNDING = network_rounding(3 * 2 * 56 * 56), rounding("float16", 1)


def load_with_transformers(cls, folder):
    with quiet():
        return cls.from_pretrained(folder).eval()


@without_gradients
def test_the_mean_of_xclips_frames_is_its_published_video_vector(tiny_checkpoints, two_clips_of_32_frames):
    """The video vector is what X-CLIP's class in transformers calls the features of a video."""
    folder = tiny_checkpoints["xclip"]
    backbone = load_backbone("xclip", weights=str(folder))

    arrays = backbone.encode(two_clips_of_32_frames)

    model = load_with_transformers(XCLIPModel, folder)
    video_vector = model.get_video_features(normalised_pixels(backbone, two_clips_of_32_frames)).pooler_output
    assert_close(arrays["pooled"], video_vector, NETWORK_ROUNDING)
    assert_close(arrays["frames"].mean(axis=1), video_vector, NETWORK_ROUNDING)


def run_vision_model_of_xclip(folder, backbone, clip):
    """Load X-CLIP, and run its vision model, the part before its transformer over frames, on one clip."""
    model = load_with_transformers(XCLIPModel, folder)
    return model, model.vision_model(pixel_values=normalised_pixels(backbone, clip[None])[0])


@without_gradients
def test_tokens_frames_of_xclip_are_vectors_of_single_frames(tiny_checkpoints, two_clips_of_32_frames):
    """With tokens="frames", each frame has the vector it has before X-CLIP's transformer relates frames."""
    backbone = load_backbone("xclip", weights=str(tiny_checkpoints["xclip"]), tokens="frames")

    tokens = backbone.encode(two_clips_of_32_frames[:1])["tokens"][0]

    model, output = run_vision_model_of_xclip(tiny_checkpoints["xclip"], backbone, two_clips_of_32_frames[0])
    expected = model.visual_projection(output.pooler_output)
    assert_close(tokens, expected, FLOAT16_ROUNDING)


@without_gradients
def test_tokens_patches_of_xclip_are_all_patches_in_half_precision(tiny_checkpoints, two_clips_of_32_frames):
    """X-CLIP gives for each frame a class token and a vector for each patch of the picture.

    With tokens="patches", the patches of all frames are stored, one frame after the other, as float16. The
    expected ones are those of transformers.
    """
    backbone = load_backbone("xclip", weights=str(tiny_checkpoints["xclip"]), tokens="patches")
    one_clip = two_clips_of_32_frames[:1]

    tokens = backbone.encode(one_clip)["tokens"][0]

    assert tokens.dtype == np.float16
    _model, output = run_vision_model_of_xclip(tiny_checkpoints["xclip"], backbone, two_clips_of_32_frames[0])
    patches = output.last_hidden_state[:, 1:]  # behind the class token: [frames, patches, width]
    assert_close(tokens, patches.flatten(0, 1), FLOAT16_ROUNDING)


@without_gradients
@pytest.mark.parametrize("mode", ["RGB", "L"], ids=["colour", "grey"])
def test_clip_gives_the_vector_of_transformers_for_a_jpeg_file(tiny_checkpoints, shared_data, tmp_path, mode):
    """A frame of a video is saved as a JPEG file, in colour or in grey ("L").

    We read, prepare and encode the file as a clip of one frame. transformers does the same with Pillow, its
    own classes, and the same tiny CLIP.
    """
    (frame,) = read_frames(shared_data / "videos" / "arm_wrestling.mp4", uniform(1)).images
    jpeg = tmp_path / "frame.jpg"
    Image.fromarray(frame).convert(mode).save(jpeg)
    backbone = load_backbone("clip", n_frames=1, weights=str(tiny_checkpoints["clip"]))

    (picture,) = read_frames(jpeg, uniform(1)).images
    clip_of_one_frame = backbone.prepare(picture)[None, None]
    vector = backbone.encode(clip_of_one_frame)["pooled"]

    pixels = CLIPImageProcessorPil()(images=[Image.open(jpeg).convert("RGB")], return_tensors="pt")
    clip_of_transformers = load_with_transformers(CLIPModel, tiny_checkpoints["clip"])
    expected = clip_of_transformers.get_image_features(**pixels).pooler_output
    assert_close(vector, expected, NETWORK_ROUNDING)


@pytest.mark.parametrize("name", ["xclip", "vivit", "xclip-lsmdc"])
@pytest.mark.parametrize("clips_at_once", [1, 2])
def test_the_bytes_of_a_clip_do_not_depend_on_its_neighbour(
    tiny_checkpoints, two_clips_of_32_frames, name, clips_at_once
):
    """The network takes one clip, or two, in a call; a call of fewer is filled up.

    The second clip is encoded behind the first, beside itself, and alone.
    """
    compute = Compute(device="cpu", clips_at_once=clips_at_once)
    backbone = load_backbone(name, weights=str(tiny_checkpoints[name]), compute=compute)
    first, second = two_clips_of_32_frames[:, : backbone.n_frames]

    behind_the_first = backbone.encode(np.stack([first, second]))
    beside_itself = backbone.encode(np.stack([second, second]))
    alone = backbone.encode(second[None])

    for array, values in beside_itself.items():
        assert np.array_equal(values[1], behind_the_first[array][1])
        assert np.array_equal(values[0], alone[array][0])


@pytest.mark.parametrize("name", ["xclip", "vivit", "xclip-lsmdc", "clip"])
def test_arrays_have_the_stated_shapes_and_types_and_a_description(
    tiny_checkpoints, two_clips_of_32_frames, name
):
    """A backbone states the shape of one clip's array, without the dimension of clips."""
    backbone = load_backbone(name, weights=str(tiny_checkpoints[name]), compute=Compute(device="cpu"))
    one_clip = two_clips_of_32_frames[:1, : backbone.n_frames]

    arrays = backbone.encode(one_clip)

    assert {output.name for output in backbone.outputs} == set(arrays)
    for output in backbone.outputs:
        array = arrays[output.name]
        assert array.shape == (1, *output.shape)
        assert array.dtype.name == output.dtype
    assert set(backbone.provenance["arrays"]) == set(arrays)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("vivit", "preset", "clip"),
        ("xclip", "tokens", "all"),
        ("vivit", "tokens", "frames"),
        ("xclip-lsmdc", "tokens", "patches"),
    ],
)
def test_an_option_value_of_another_backbone_is_refused(tiny_checkpoints, name, option, value):
    """Each of these presets and kinds of tokens is one of another network, such as "clip" of CLIP."""
    with pytest.raises(BackboneError, match=f"'{value}'"):
        load_backbone(name, weights=str(tiny_checkpoints[name]), **{option: value})


def weights_of_untrained_layer(seed):
    return untrained(lambda: torch.nn.Linear(3, 3), seed).weight


def test_an_untrained_network_depends_on_its_seed_alone():
    """Two layers of one seed have the same random weights, also if a third is made between them."""
    seed_1 = weights_of_untrained_layer(seed=1)
    seed_2 = weights_of_untrained_layer(seed=2)
    seed_1_again = weights_of_untrained_layer(seed=1)

    assert torch.equal(seed_1, seed_1_again)
    assert not torch.equal(seed_1, seed_2)


def test_making_an_untrained_network_leaves_the_users_random_numbers_alone():
    """The state of torch's random numbers is the same before and after."""
    state_before = torch.random.get_rng_state()

    weights_of_untrained_layer(seed=1)

    assert torch.equal(torch.random.get_rng_state(), state_before)
