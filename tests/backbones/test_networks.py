"""The networks give what plain calls of transformers give on the processors' pixels, clip by clip."""

import numpy as np
import pytest
from PIL import Image

from obygaze_features.backbones import load_backbone
from obygaze_features.errors import BackboneError
from obygaze_features.video import read_frames, uniform
from tests.backbones.test_encoders import pixels_of
from tests.later import later, without_gradients
from tests.rounding import assert_close, network_rounding, rounding

torch = later("torch")
CLIPImageProcessorPil = later("transformers", "CLIPImageProcessorPil")
CLIPModel = later("transformers", "CLIPModel")
XCLIPModel = later("transformers", "XCLIPModel")
quiet = later("obygaze_features.backbones.checkpoint", "quiet")
untrained = later("obygaze_features.backbones.checkpoint", "untrained")
Compute = later("obygaze_features.backbones.compute", "Compute")
NETWORK_ROUNDING, FLOAT16_ROUNDING = network_rounding(3 * 2 * 56 * 56), rounding("float16", 1)


def load_with_transformers(cls, folder):
    with quiet():
        return cls.from_pretrained(folder).eval()


@without_gradients
def test_the_mean_of_xclips_frames_is_its_published_video_vector(checkpoints, clips):
    backbone = load_backbone("xclip", weights=str(checkpoints["xclip"]))
    result = backbone.encode(clips)
    expected = load_with_transformers(XCLIPModel, checkpoints["xclip"]).get_video_features(
        pixels_of(backbone, clips)
    )

    assert_close(result["pooled"], expected.pooler_output, NETWORK_ROUNDING)
    assert_close(result["frames"].mean(axis=1), expected.pooler_output, NETWORK_ROUNDING)


def run_vision_model_of_xclip(folder, backbone, clip):
    """Run the vision model of X-CLIP, which is the part before its transformer over frames, on one clip."""
    model = load_with_transformers(XCLIPModel, folder)
    return model, model.vision_model(pixel_values=pixels_of(backbone, clip[None])[0])


@without_gradients
def test_tokens_frames_of_xclip_are_vectors_of_single_frames(checkpoints, clips):
    """With tokens="frames", each frame has the vector it has before X-CLIP's transformer relates frames."""
    backbone = load_backbone("xclip", weights=str(checkpoints["xclip"]), tokens="frames")
    model, vision = run_vision_model_of_xclip(checkpoints["xclip"], backbone, clips[0])
    expected = model.visual_projection(vision.pooler_output)
    assert_close(backbone.encode(clips[:1])["tokens"][0], expected, FLOAT16_ROUNDING)


@without_gradients
def test_tokens_patches_of_xclip_are_all_patches_in_half_precision(checkpoints, clips):
    """With tokens="patches", the patches of all frames are stored one frame after the other, as float16."""
    backbone = load_backbone("xclip", weights=str(checkpoints["xclip"]), tokens="patches")
    tokens = backbone.encode(clips[:1])["tokens"][0]
    assert tokens.dtype == np.float16
    _, vision = run_vision_model_of_xclip(checkpoints["xclip"], backbone, clips[0])
    patches = vision.last_hidden_state[:, 1:]  # behind the class token: [frames, patches, width]
    assert_close(tokens, patches.flatten(0, 1), FLOAT16_ROUNDING)


@without_gradients
@pytest.mark.parametrize("mode", ["RGB", "L"], ids=["colour", "grey"])
def test_clip_gives_the_vector_of_transformers_for_a_jpeg_file(checkpoints, shared_data, tmp_path, mode):
    frame = read_frames(shared_data / "videos" / "arm_wrestling.mp4", uniform(1)).images[0]
    Image.fromarray(frame).convert(mode).save(tmp_path / "frame.jpg")
    backbone = load_backbone("clip", 1, weights=str(checkpoints["clip"]))
    (decoded,) = read_frames(tmp_path / "frame.jpg", uniform(1)).images
    result = backbone.encode(backbone.prepare(decoded)[None, None])["pooled"]
    processor = CLIPImageProcessorPil()
    batch = processor(images=[Image.open(tmp_path / "frame.jpg").convert("RGB")], return_tensors="pt")
    expected = (
        load_with_transformers(CLIPModel, checkpoints["clip"]).get_image_features(**batch).pooler_output
    )

    assert_close(result, expected, NETWORK_ROUNDING)


VIDEO_NETWORKS = ["xclip", "vivit", "xclip-lsmdc"]


def load_for(name, checkpoints, clips, *, clips_at_once=1):
    """Load a backbone, and cut the clips to as many frames as it takes."""
    compute = Compute(device="cpu", clips_at_once=clips_at_once)
    backbone = load_backbone(name, weights=str(checkpoints[name]), compute=compute)
    return backbone, clips[:, : backbone.n_frames]


@pytest.mark.parametrize("name", VIDEO_NETWORKS)
@pytest.mark.parametrize("clips_at_once", [1, 2])
def test_the_bytes_of_a_clip_do_not_depend_on_its_neighbour(checkpoints, clips, name, clips_at_once):
    backbone, clips = load_for(name, checkpoints, clips, clips_at_once=clips_at_once)
    with_other = backbone.encode(clips)  # the second clip behind the first
    with_itself = backbone.encode(clips[[1, 1]])
    alone = backbone.encode(clips[1:2])  # a call of one clip is filled up

    for array, values in with_itself.items():
        assert np.array_equal(values[1], with_other[array][1])
        assert np.array_equal(values[0], alone[array][0])


@pytest.mark.parametrize("name", ["xclip", "vivit", "xclip-lsmdc", "clip"])
def test_arrays_have_the_stated_shapes_and_types_and_a_description(checkpoints, clips, name):
    backbone, clips = load_for(name, checkpoints, clips)
    result = backbone.encode(clips[:1])
    assert {output.name: ((1, *output.shape), output.dtype) for output in backbone.outputs} == {
        name: (array.shape, array.dtype.name) for name, array in result.items()
    }
    assert set(backbone.provenance["arrays"]) == set(result)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("vivit", "preset", "clip"),
        ("xclip", "tokens", "all"),
        ("vivit", "tokens", "frames"),
        ("xclip-lsmdc", "tokens", "patches"),
    ],
)
def test_an_option_value_of_another_backbone_is_refused(checkpoints, name, option, value):
    with pytest.raises(BackboneError, match=f"'{value}'"):
        load_backbone(name, weights=str(checkpoints[name]), **{option: value})


def untrained_weight(seed):
    return untrained(lambda: torch.nn.Linear(3, 3), seed).weight


def test_an_untrained_network_depends_on_its_seed_alone():
    """Two networks of one seed have the same weights, also if a third is made between them."""
    first = untrained_weight(seed=1)
    other = untrained_weight(seed=2)
    again = untrained_weight(seed=1)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_making_an_untrained_network_leaves_the_users_random_numbers_alone():
    state = torch.random.get_rng_state()
    untrained_weight(seed=1)
    assert torch.equal(torch.random.get_rng_state(), state)
