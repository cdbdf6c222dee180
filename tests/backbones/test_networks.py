"""The networks give what plain calls of transformers give on the processors' pixels, clip by clip."""

import numpy as np
import pytest
from PIL import Image

from obygaze_features.backbones import load_backbone
from obygaze_features.errors import BackboneError
from obygaze_features.video import read_frames, uniform
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


def pixels(backbone, batch):
    constants = backbone.provenance["preset"]["constants"]
    values = batch * np.array(constants["scale"]) + np.array(constants["shift"])
    return torch.from_numpy(values.transpose(0, 1, 4, 2, 3)).float()


def plain(cls, folder, **settings):
    with quiet():
        return cls.from_pretrained(folder, **settings).eval()


def close(result, expected, bound=NETWORK_ROUNDING):
    assert_close(result, expected, bound)


@without_gradients
def test_the_mean_of_xclips_frames_is_its_published_video_vector(checkpoints, clips):
    backbone = load_backbone("xclip", weights=str(checkpoints["xclip"]))
    result = backbone.encode(clips)
    expected = plain(XCLIPModel, checkpoints["xclip"]).get_video_features(pixels(backbone, clips))
    close(result["pooled"], expected.pooler_output)
    close(result["frames"].mean(axis=1), expected.pooler_output)


@without_gradients
def test_xclips_tokens_are_the_frames_before_mit_or_the_patches(checkpoints, clips):
    backbone = load_backbone("xclip", weights=str(checkpoints["xclip"]), tokens="frames")
    model = plain(XCLIPModel, checkpoints["xclip"])
    before = backbone.encode(clips[:1])["tokens"]
    vision = model.vision_model(pixel_values=pixels(backbone, clips[:1])[0])
    close(before[0], model.visual_projection(vision.pooler_output), FLOAT16_ROUNDING)
    patched = load_backbone("xclip", weights=str(checkpoints["xclip"]), tokens="patches")
    patches = patched.encode(clips[:1])["tokens"]
    assert patches.shape == (1, 32 * 16, 32)
    assert patches.dtype == np.float16
    close(patches.reshape(32, 16, 32), vision.last_hidden_state[:, 1:], FLOAT16_ROUNDING)


@without_gradients
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_clip_sees_a_real_picture_as_its_own_processor_does(checkpoints, shared_data, tmp_path, mode):
    frame = read_frames(shared_data / "videos" / "arm_wrestling.mp4", uniform(1)).images[0]
    Image.fromarray(frame).convert(mode).save(tmp_path / "frame.jpg")
    backbone = load_backbone("clip", 1, weights=str(checkpoints["clip"]))
    (seen,) = read_frames(tmp_path / "frame.jpg", uniform(1)).images
    result = backbone.encode(backbone.prepare(seen)[None, None])["pooled"]
    processor = CLIPImageProcessorPil()
    batch = processor(images=[Image.open(tmp_path / "frame.jpg").convert("RGB")], return_tensors="pt")
    expected = plain(CLIPModel, checkpoints["clip"]).get_image_features(**batch).pooler_output
    close(result, expected)


@pytest.mark.parametrize("name", ["xclip", "vivit", "xclip-lsmdc"])
def test_a_clip_gets_the_same_in_any_batch(checkpoints, clips, name):
    backbone = load_backbone(name, weights=str(checkpoints[name]))
    clips = clips[:, : backbone.n_frames]
    two = load_backbone(name, weights=str(checkpoints[name]), compute=Compute(device="cpu", clips_at_once=2))
    together, twice, filled_up = (two.encode(some) for some in (clips, clips[[1, 1]], clips[1:2]))
    apart = backbone.encode(clips)
    alone = backbone.encode(clips[1:2])
    for output in backbone.outputs:
        tolerance = NETWORK_ROUNDING if output.dtype == "float32" else FLOAT16_ROUNDING
        assert np.array_equal(alone[output.name][0], apart[output.name][1])  # one at a time: the same bytes
        assert np.array_equal(twice[output.name][1], together[output.name][1])  # nor on its neighbours
        assert np.array_equal(twice[output.name][0], filled_up[output.name][0])
        # at another place in a call a CPU's products may sum in another order
        close(together[output.name].astype(np.float32), apart[output.name].astype(np.float32), tolerance)
        close(filled_up[output.name].astype(np.float32), apart[output.name][1:].astype(np.float32), tolerance)


@pytest.mark.parametrize("name", ["xclip", "vivit", "xclip-lsmdc", "clip"])
def test_what_is_announced_is_what_is_given(checkpoints, clips, name):
    backbone = load_backbone(name, weights=str(checkpoints[name]))
    result = backbone.encode(clips[:1, : backbone.n_frames])
    assert {o.name: ((1, *o.shape), o.dtype) for o in backbone.outputs} == {
        key: (value.shape, value.dtype.name) for key, value in result.items()
    }
    assert backbone.prepare(np.zeros((40, 90, 3), np.uint8)).shape == (224, 224, 3)
    assert set(backbone.provenance["arrays"]) == set(result)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vivit", {"preset": "clip"}),
        ("xclip", {"tokens": "all"}),
        ("vivit", {"tokens": "frames"}),
        ("xclip-lsmdc", {"tokens": "patches"}),
    ],
)
def test_an_option_that_a_backbone_does_not_know_is_refused(checkpoints, name, options):
    with pytest.raises(BackboneError, match=f"'{next(iter(options.values()))}'"):
        load_backbone(name, weights=str(checkpoints[name]), **options)


def test_an_untrained_network_depends_on_its_seed_alone():
    state = torch.random.get_rng_state()
    first, again, other = (untrained(lambda: torch.nn.Linear(3, 3), seed).weight for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
