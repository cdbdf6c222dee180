"""Networks by their `model_type`: each gives what its own class gives on its own processor's pixels."""

import functools
import json
import shutil
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from obygaze_features.backbones import Backbone, Layers, load_backbone, load_text_backbone
from obygaze_features.errors import BackboneError
from obygaze_features.store.provenance import embedding_space
from tests.lazy_import import cpu, lazy_import, without_gradients
from tests.rounding import assert_close, network_rounding, rounding
from tests.tiny_checkpoints import tiny_text_checkpoint

torch = lazy_import("torch")
PretendedGpu = lazy_import("tests.backbones.pretended_card", "Card")
transformers = lazy_import("transformers")
interpolate = lazy_import("torch.nn.functional", "interpolate")
FlopCounterMode = lazy_import("torch.utils.flop_counter", "FlopCounterMode")
AutoConfig = lazy_import("transformers", "AutoConfig")
Compute = lazy_import("obygaze_features.backbones", "Compute")
clip_fields = lazy_import("obygaze_features.backbones.class_calls", "clip_fields")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")
untrained = lazy_import("obygaze_features.backbones.checkpoint", "untrained")
IMAGES = lazy_import("obygaze_features.backbones.encoder_specs", "IMAGES")
TEXTS = lazy_import("obygaze_features.backbones.encoder_specs", "TEXTS")
VIDEOS = lazy_import("obygaze_features.backbones.encoder_specs", "VIDEOS")
TINY_TRANSFORMER = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
TINY_VISION = TINY_TRANSFORMER | {"patch_size": 16, "image_size": 32}
TINY_TEXT = TINY_TRANSFORMER | {
    "vocab_size": 99,
    "max_position_embeddings": 16,
    "eos_token_id": 98,
    "pad_token_id": 0,
}
TINY_VISION_AND_TEXT = {"vision_config": TINY_VISION, "text_config": TINY_TEXT, "projection_dim": 24}
TINY_VIDEOPRISM = TINY_TRANSFORMER | {
    "image_size": 36,
    "num_frames": 4,
    "num_spatial_layers": 1,
    "num_temporal_layers": 1,
}
SQUARE_32, EDGE_36_CROP_32 = {"height": 32, "width": 32}, {"size": {"shortest_edge": 36}, "crop_size": 32}
CONFIGS = {
    "clip": TINY_VISION_AND_TEXT,
    "clip_vision_model": TINY_VISION | {"projection_dim": 24},
    "metaclip_2": TINY_VISION_AND_TEXT,
    "siglip": TINY_VISION_AND_TEXT,
    "siglip_vision_model": TINY_VISION,
    "dinov2": TINY_VISION | {"mlp_ratio": 2, "image_size": 64},
    "dinov2_with_registers": TINY_VISION | {"mlp_ratio": 2, "image_size": 64, "num_register_tokens": 3},
    "dinov3_vit": TINY_VISION | {"num_register_tokens": 3},
    "aimv2": TINY_VISION_AND_TEXT,
    "aimv2_vision_model": TINY_VISION,
    "vit": TINY_VISION,
    "hiera": {"embed_dim": 8, "image_size": [32, 32], "depths": [1, 1], "num_heads": [1, 2],
              "masked_unit_size": [2, 2], "query_stride": [2, 2], "num_query_pool": 1,
              "patch_size": [7, 7], "patch_stride": [4, 4], "patch_padding": [3, 3]},
    "videomae": TINY_VISION | {"num_frames": 4, "tubelet_size": 2},
    "vjepa2": TINY_TRANSFORMER | {"patch_size": 16, "crop_size": 32, "frames_per_clip": 4, "mlp_ratio": 2,
                      "pred_hidden_size": 12, "pred_num_attention_heads": 2, "pred_num_hidden_layers": 1},
    "videoprism_vision_model": TINY_VIDEOPRISM,
    "videoprism": {"vision_config": TINY_VIDEOPRISM | {"num_auxiliary_layers": 1},
                   "text_config": TINY_TEXT | {"pad_token_id": 57}},
    "timesformer": TINY_VISION | {"num_frames": 4},
    "vivit": TINY_VISION | {"num_frames": 4, "tubelet_size": [2, 16, 16]},
    "xclip": {"vision_config": TINY_VISION | {"num_frames": 4, "mit_hidden_size": 24,
                                              "mit_num_attention_heads": 2, "mit_num_hidden_layers": 1},
              "text_config": TINY_TEXT, "projection_dim": 24},
}  # fmt: skip
PROCESSORS = {
    "clip": {"image_processor_type": "CLIPImageProcessor", **EDGE_36_CROP_32},
    "metaclip_2": {"image_processor_type": "CLIPImageProcessor", **EDGE_36_CROP_32,
                   "image_mean": [0.4, 0.5, 0.6]},
    "siglip": {"image_processor_type": "SiglipImageProcessorFast", "size": SQUARE_32},
    "dinov2": {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 70}, "crop_size": 48},
    "dinov3_vit": {"image_processor_type": "DINOv3ViTImageProcessorFast", "size": SQUARE_32},
    "aimv2": {"image_processor_type": "CLIPImageProcessor", **EDGE_36_CROP_32},
    "vit": {"feature_extractor_type": "ViTFeatureExtractor", "size": 32},
    "hiera": {"image_processor_type": "BitImageProcessor", **EDGE_36_CROP_32, "image_std": [0.2, 0.3, 0.4]},
    "videomae": {"feature_extractor_type": "VideoMAEFeatureExtractor", "size": 36, "crop_size": 32},
    "vjepa2": {"video_processor_type": "VJEPA2VideoProcessor", **EDGE_36_CROP_32},
    "videoprism": {"video_processor_type": "LlavaOnevisionVideoProcessor", "do_normalize": False,
                   "size": {"height": 36, "width": 36}},
    "timesformer": {"image_processor_type": "VideoMAEImageProcessor", **EDGE_36_CROP_32,
                    "image_std": [0.225] * 3},
    "vivit": {"image_processor_type": "VivitImageProcessor", **EDGE_36_CROP_32},
    "xclip": {"feature_extractor_type": "VideoMAEFeatureExtractor", **EDGE_36_CROP_32},
}  # fmt: skip
PROCESSORS |= {
    model_type: PROCESSORS[model_type.partition("_")[0]]
    for model_type in CONFIGS
    if model_type not in PROCESSORS
}
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
TEXT_TYPES = ["aimv2", "clip", "metaclip_2", "siglip", "videoprism", "xclip"]
NETWORK_ROUNDING = network_rounding(3 * 2 * 16 * 16)  # of two frames, where a token is of two
FLOAT16_ROUNDING = rounding("float16", 1)
PIXEL_ROUNDING = rounding("float32", 3, condition=7)
"""Scaled by 255, less a mean, over a deviation of .22: terms of up to 1.5 / .22."""
FRAMES = np.random.default_rng(3).integers(0, 256, (5, 4, 53, 87, 3), dtype=np.uint8)
"""Five clips of four frames, of no size that is easy."""


def transformers_class(model_type):
    """Return the class that users of transformers load, which has the text encoder where there is one."""
    with_texts = {"metaclip_2": "MetaClip2Model", "clip": "CLIPModel", "siglip": "SiglipModel"}
    if model_type in with_texts:
        name = with_texts[model_type]
    elif model_type in VIDEOS:
        name = VIDEOS[model_type].network
    else:
        name = IMAGES[model_type].network
    return getattr(transformers, name)


def save_encoders(tmp_path_factory):
    """Write a tiny checkpoint of every type, by transformers itself, with its processor beside it."""
    made = {}
    for model_type, fields in CONFIGS.items():
        config = AutoConfig.for_model(model_type, **fields)
        cls = transformers_class(model_type)
        network = untrained(lambda cls=cls, config=config: cls(config), 0)
        for name, parameter in network.named_parameters():
            # Queries start as zeros and norms as ones: with such numbers a wrong one of them would not show.
            if not parameter.any() or (parameter == 1).all():
                torch.manual_seed(len(name))
                parameter.data += 0.1 * torch.randn(parameter.shape)
        folder = tmp_path_factory.mktemp(model_type)
        with quiet():
            network.save_pretrained(folder)
        where = (
            "video_preprocessor_config.json"
            if model_type in {"vjepa2", "videoprism"}
            else "preprocessor_config.json"
        )
        (folder / where).write_text(json.dumps(PROCESSORS[model_type]))
        made[model_type] = folder
    return made


def pixels_by_processor(model_type, frame):
    """Prepare a frame as the processor of transformers does, or the steps of its class: float `[3, h, w]`."""
    configuration = PROCESSORS[model_type]
    (name,) = [value for field, value in configuration.items() if field.endswith("_type")]
    name = name.replace("FeatureExtractor", "ImageProcessor").removesuffix("Fast")
    class_on_pillow = getattr(transformers, f"{name}Pil", None)
    if class_on_pillow is None:
        return PIXELS_BY_STEPS[name](frame)
    processor = class_on_pillow.from_dict(configuration)
    pixels = np.asarray(processor(frame, return_tensors="np")["pixel_values"])
    return pixels.reshape(3, *pixels.shape[-2:])  # without the dimensions of clips and frames


def resized_by_torch(frame, height, width, mode):
    """Resize a frame `[h, w, 3]` as torchvision does: uint8 `[3, height, width]`."""
    pixels = torch.from_numpy(frame).permute(2, 0, 1)[None]
    return interpolate(pixels, size=(height, width), mode=mode, antialias=True)[0].numpy()


def centre_32(pixels):
    """Crop the 32 x 32 pixels in the middle of `[3, h, w]`."""
    height, width = pixels.shape[1:]
    top = (height - 32) // 2
    left = (width - 32) // 2
    return pixels[:, top : top + 32, left : left + 32]


def normalised_by_imagenet(pixels):
    mean, std = (np.array(values)[:, None, None] for values in IMAGENET)
    return (pixels / 255 - mean) / std


def pixels_of_vivit(frame):
    """Resize the shorter edge, the height here, to 36, crop 32 x 32, and scale to -1 to 1 and again."""
    picture = Image.fromarray(frame)
    width = 36 * picture.width // picture.height
    picture = picture.resize((width, 36), Image.Resampling.BILINEAR)
    pixels = centre_32(np.asarray(picture).transpose(2, 0, 1))
    return (pixels / 127.5 - 1 - 0.5) / 0.5


def pixels_of_dinov3(frame):
    return normalised_by_imagenet(resized_by_torch(frame, height=32, width=32, mode="bilinear"))


def pixels_of_videoprism(frame):
    return resized_by_torch(frame, height=36, width=36, mode="bicubic") / 255


def pixels_of_vjepa2(frame):
    """Resize the shorter edge, the height here, to 256 / 224 of the crop, whatever its configuration says."""
    height = 32 * 256 // 224
    width = height * frame.shape[1] // frame.shape[0]
    return normalised_by_imagenet(centre_32(resized_by_torch(frame, height, width, "bilinear")))


PIXELS_BY_STEPS = {
    "VivitImageProcessor": pixels_of_vivit,
    "DINOv3ViTImageProcessor": pixels_of_dinov3,
    "LlavaOnevisionVideoProcessor": pixels_of_videoprism,
    "VJEPA2VideoProcessor": pixels_of_vjepa2,
}
"""Classes of transformers that need torchvision, and the functions that do what they do."""


@functools.cache
def load_encoder(model_type, folder, **options):
    """Load a network of pictures or of videos from a folder, as a backbone of four frames."""
    return load_backbone(
        "image" if model_type in IMAGES else "video",
        n_frames=4,
        weights=str(folder),
        compute=cpu(),
        **options,
    )


def normalised(backbone, prepared):
    """Normalise prepared pixels `[..., h, w, 3]` by the constants that the backbone records."""
    constants = backbone.provenance["preset"]["constants"]
    return prepared * np.array(constants["scale"]) + np.array(constants["shift"])


def prepared_clips(backbone, n_clips=5):
    """Prepare the first clips of `FRAMES`, [B, F, h, w, 3]."""
    return np.array([[backbone.prepare(frame) for frame in clip] for clip in FRAMES[:n_clips]])


def normalised_pixels(backbone, batch):
    """Normalise prepared clips as transformers takes them: a tensor `[B, F, 3, h, w]`."""
    return torch.from_numpy(normalised(backbone, batch).transpose(0, 1, 4, 2, 3)).float()


@pytest.mark.parametrize("model_type", CONFIGS)
def test_pixels_are_those_of_the_processor_beside_the_weights(folder_of_tiny_checkpoint, model_type):
    """A file beside the weights says how transformers resizes, crops and normalises pictures.

    Three frames are so prepared by us and by transformers. A difference of one of the 256 levels of a pixel
    would be .0039 or more, far above rounding.
    """
    backbone = load_encoder(model_type, folder_of_tiny_checkpoint[model_type])
    frame_of_53_x_87 = FRAMES[0, 0]
    frame_of_40_x_87 = FRAMES[0, 1, :40]
    frame_of_30_x_31 = FRAMES[0, 2, :30, :31]

    for frame in (frame_of_53_x_87, frame_of_40_x_87, frame_of_30_x_31):
        pixels = normalised(backbone, backbone.prepare(frame)).transpose(2, 0, 1)

        expected = pixels_by_processor(model_type, frame)
        assert pixels.shape == expected.shape
        assert np.abs(pixels - expected).max() <= PIXEL_ROUNDING


def transformers_network(model_type, folder):
    """Load the network by transformers alone."""
    with quiet():
        return transformers_class(model_type).from_pretrained(folder).eval()


def arrays_of_pictures(model_type, network, pixels):
    """Return what a network of pictures gives of the frames of clips, pixels `[B, F, 3, h, w]`, by array."""
    n_clips, n_frames = pixels.shape[:2]
    pictures = pixels.flatten(0, 1)
    tokens = None
    if model_type in {"clip", "metaclip_2", "siglip", "aimv2"}:
        vectors = network.get_image_features(pixel_values=pictures).pooler_output
    elif model_type == "clip_vision_model":
        vectors = network(pictures).image_embeds
    else:
        output = network(pictures)
        tokens = output.last_hidden_state  # [B x F, class token, registers and patches, width]
        if model_type == "vit":
            class_token = 0
            vectors = tokens[:, class_token]
        else:
            vectors = output.pooler_output
    frames = vectors.view(n_clips, n_frames, -1)
    arrays = {"frames": frames, "pooled": frames.mean(dim=1)}
    if tokens is not None:
        first_patch = N_TOKENS_BEFORE_PATCHES.get(model_type, 0)
        patches = tokens[:, first_patch:]
        arrays["tokens"] = patches.reshape(n_clips, -1, patches.shape[-1])
    return arrays


N_TOKENS_BEFORE_PATCHES = {"dinov2": 1, "dinov2_with_registers": 1 + 3, "dinov3_vit": 1 + 3, "vit": 1}
"""Class token and registers."""


def arrays_of_videos(model_type, network, pixels):
    """Return what a network of videos gives of clips, pixels `[B, F, 3, h, w]`, by array."""
    if model_type in {"videoprism", "xclip"}:
        vectors = network.get_video_features(pixels).pooler_output
        return {"pooled": vectors.reshape(len(pixels), -1)}
    if model_type == "timesformer":
        return arrays_of_timesformer(network, pixels)
    if model_type == "vivit":
        return arrays_of_vivit(network, pixels)

    # The others have no class token, and the mean of all tokens is the vector of the clip.
    options = {"skip_predictor": True} if model_type == "vjepa2" else {}
    tokens = network(pixels, **options).last_hidden_state  # [B, patches, width]
    n_frames = pixels.shape[1]
    has_a_step_per_frame = model_type == "videoprism_vision_model"
    n_steps = n_frames if has_a_step_per_frame else n_frames // 2  # the others join two frames
    return {"frames": mean_of_each_step(tokens, n_steps), "pooled": tokens.mean(dim=1), "tokens": tokens}


def arrays_of_timesformer(network, pixels):
    """Return the arrays of a TimeSformer, whose patches are sorted by place and then frame; ours by frame."""
    n_clips, n_frames = pixels.shape[:2]
    tokens = network(pixels).last_hidden_state  # [B, class token and patches, width]
    class_token, patches = tokens[:, :1], tokens[:, 1:]
    by_place = patches.view(n_clips, -1, n_frames, tokens.shape[-1])  # [B, places, F, width]
    by_frame = by_place.transpose(1, 2).flatten(1, 2)
    return {
        "frames": mean_of_each_step(by_frame, n_frames),
        "pooled": class_token[:, 0],
        "tokens": torch.cat([class_token, by_frame], dim=1),
    }


def arrays_of_vivit(network, pixels):
    """Return the arrays of a ViViT: a class token, steps of two frames, a vector of the largest numbers."""
    n_frames = pixels.shape[1]
    tokens = network(pixels).last_hidden_state  # [B, class token and patches, width]
    patches = tokens[:, 1:]
    return {
        "frames": mean_of_each_step(patches, n_frames // 2),
        "pooled": tokens.amax(dim=1),
        "tokens": tokens,
    }


def mean_of_each_step(patches, n_steps):
    """Average patches `[B, steps times places, width]` over the places: `[B, steps, width]`."""
    n_clips, _, width = patches.shape
    return patches.reshape(n_clips, n_steps, -1, width).mean(dim=2)


def tokens_option(model_type):
    """Return the value of the option `tokens` with which all tokens are stored, where a type offers them."""
    if model_type in {"aimv2", "xclip"}:
        return "none"
    return "patches" if model_type in IMAGES else "all"


class Encoded(NamedTuple):
    """A backbone, the clips of `FRAMES` prepared for it, and the arrays that it gives of them on the CPU."""

    backbone: Backbone
    clips: np.ndarray
    arrays: dict[str, np.ndarray]


@functools.cache
def encoded_clips(model_type, folder):
    backbone = load_encoder(model_type, folder, tokens=tokens_option(model_type))
    clips = prepared_clips(backbone)
    return Encoded(backbone, clips, backbone.encode(clips))


def bound_of(array):
    """Return how far an array may be off by rounding: tokens are stored in half precision."""
    return FLOAT16_ROUNDING if array == "tokens" else NETWORK_ROUNDING


@without_gradients
@pytest.mark.parametrize("model_type", CONFIGS)
def test_vectors_and_tokens_are_those_of_the_class_of_transformers(folder_of_tiny_checkpoint, model_type):
    """Five clips of four frames are encoded by us and, from the same pixels, by transformers alone.

    The network is a tiny one of a type of pictures, which sees single frames, or of videos.
    """
    encoded = encoded_clips(model_type, folder_of_tiny_checkpoint[model_type])
    pixels = normalised_pixels(encoded.backbone, encoded.clips)
    network = transformers_network(model_type, folder_of_tiny_checkpoint[model_type])
    if model_type in IMAGES:
        expected_arrays = arrays_of_pictures(model_type, network, pixels)
    else:
        expected_arrays = arrays_of_videos(model_type, network, pixels)

    for name, expected in expected_arrays.items():
        assert_close(encoded.arrays[name], expected, bound_of(name))


@pytest.mark.parametrize("model_type", CONFIGS)
def test_the_arrays_of_a_clip_have_the_shapes_that_the_backbone_states(folder_of_tiny_checkpoint, model_type):
    """A store reserves the stated shapes, of one clip. A tiny network of the type encoded five clips."""
    encoded = encoded_clips(model_type, folder_of_tiny_checkpoint[model_type])

    stated_shapes = {output.name: output.shape for output in encoded.backbone.outputs}

    shapes_of_a_clip = {name: array.shape[1:] for name, array in encoded.arrays.items()}
    assert shapes_of_a_clip == stated_shapes


@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_clip_encoded_alone_has_the_same_bytes_as_among_five(folder_of_tiny_checkpoint, model_type):
    """A tiny network of the type encoded five clips, of which the third is encoded again."""
    five = encoded_clips(model_type, folder_of_tiny_checkpoint[model_type])
    third_clip = five.clips[2:3]

    arrays_alone = five.backbone.encode(third_clip)

    for name, array in five.arrays.items():
        assert np.array_equal(arrays_alone[name][0], array[2])


@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_cuda_card_gives_the_vectors_of_the_cpu(folder_of_tiny_checkpoint, model_type, monkeypatch):
    """Five clips of four frames are encoded by the same tiny network on a pretended card, and on the CPU.

    The card takes five clips in one call, the CPU one, so that sums may differ by rounding.
    """
    on_cpu = encoded_clips(model_type, folder_of_tiny_checkpoint[model_type])
    PretendedGpu().install(monkeypatch)
    backbone_on_card = load_backbone(
        on_cpu.backbone.name,
        n_frames=4,
        weights=str(folder_of_tiny_checkpoint[model_type]),
        tokens=tokens_option(model_type),
        compute=Compute(device="cuda", clips_at_once=5),
    )

    five_clips = list(on_cpu.clips)
    arrays_on_card = backbone_on_card.encode.start(five_clips).result().arrays

    for name, expected in on_cpu.arrays.items():
        assert_close(arrays_on_card[name], expected, bound_of(name))


def copy_with_processor_fields(folder, tmp_path, **fields):
    """Copy a checkpoint, with other fields of its processor's configuration."""
    copy = tmp_path / "changed"
    shutil.copytree(folder, copy)
    (path,) = copy.glob("*preprocessor_config.json")
    configuration = json.loads(path.read_text())
    path.write_text(json.dumps(configuration | fields))
    return copy


CHANGED_NUMBERS = [
    ("dinov2", {"resample": 2}),
    ("dinov2", {"size": {"shortest_edge": 64}}),
    ("dinov2", {"crop_size": {"height": 32, "width": 32}}),
    ("metaclip_2", {"image_mean": [0.1, 0.2, 0.3]}),
    ("hiera", {"image_std": 0.5}),
    ("vit", {"rescale_factor": 1 / 127.5}),
    ("siglip", {"do_normalize": False}),
]


@pytest.mark.parametrize(("model_type", "change"), CHANGED_NUMBERS)
def test_a_processor_changed_in_one_number_is_followed(
    folder_of_tiny_checkpoint, tmp_path, monkeypatch, model_type, change
):
    """A file beside the weights says how pictures are prepared; one number in it is changed, such as a size.

    The pixels are those of transformers' processor with the same change, and the preset that a store records
    is another one.
    """
    folder_with_change = copy_with_processor_fields(folder_of_tiny_checkpoint[model_type], tmp_path, **change)
    monkeypatch.setitem(PROCESSORS, model_type, PROCESSORS[model_type] | change)
    unchanged = load_encoder(model_type, folder_of_tiny_checkpoint[model_type])
    changed = load_encoder(model_type, folder_with_change)
    frame = FRAMES[0, 0]

    pixels = normalised(changed, changed.prepare(frame)).transpose(2, 0, 1)

    pixels_of_transformers = pixels_by_processor(model_type, frame)
    assert np.abs(pixels - pixels_of_transformers).max() <= PIXEL_ROUNDING
    assert changed.provenance["preset"] != unchanged.provenance["preset"]


UNSUPPORTED_FIELDS = [
    ("vit", {"resample": 1}),
    ("vit", {"do_resize": False}),
    ("vit", {"do_resize": "no"}),
    ("vit", {"do_rescale": False}),
    ("vit", {"size": {"height": 32, "width": 48}}),
    ("vit", {"size": {"longest_edge": 32}}),
    ("vit", {"image_mean": [0.5, 0.5]}),
    ("vit", {"image_std": [0.5, 0.0, 0.5]}),
    ("vit", {"image_std": "large"}),
    ("vit", {"rescale_factor": 2}),
    ("vit", {"size": 48}),  # and the network takes 32
    ("dinov2", {"crop_size": "x"}),
    ("dinov2", {"crop_size": 40}),  # no multiple of a patch
    ("dinov2", {"crop_size": 96}),  # more than the shortest edge
    ("dinov2", {"do_center_crop": False}),
    ("videomae", {"do_pad": True}),
]


@pytest.mark.parametrize(("model_type", "change"), UNSUPPORTED_FIELDS)
def test_a_processor_field_that_is_not_supported_is_refused_by_name(
    folder_of_tiny_checkpoint, tmp_path, model_type, change
):
    """Pixels would be wrong if a field were ignored. The error names the field and the file.

    Of a crop, it may name `crop_size` or `do_center_crop`.
    """
    folder = copy_with_processor_fields(folder_of_tiny_checkpoint[model_type], tmp_path, **change)
    (field,) = change.keys()
    name_in_message = "crop" if field in {"crop_size", "do_center_crop"} else field

    with pytest.raises(BackboneError) as refused:
        load_encoder(model_type, folder)

    assert name_in_message in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_a_network_of_pictures_that_are_not_square_is_refused(tmp_path):
    """The network takes 32 x 48 pixels; only squares are implemented."""
    config = AutoConfig.for_model("vit", **(TINY_VISION | {"image_size": [32, 48]}))
    network = untrained(lambda: transformers.ViTModel(config, add_pooling_layer=False), 0)
    network.save_pretrained(tmp_path)

    with pytest.raises(BackboneError, match="image_size"):
        load_backbone("image", weights=str(tmp_path), compute=cpu())


def test_a_vision_network_with_a_vision_config_is_refused(folder_of_tiny_checkpoint, tmp_path):
    """Its fields belong at the top; those of a `vision_config` inside could contradict them.

    The configuration is that of a whole CLIP, which says that it is of a vision network alone.
    """
    folder = shutil.copytree(folder_of_tiny_checkpoint["clip"], tmp_path / "clip")
    config = json.loads((folder / "config.json").read_text())
    config["model_type"] = "clip_vision_model"
    (folder / "config.json").write_text(json.dumps(config))

    with pytest.raises(BackboneError, match="vision_config"):
        load_backbone("clip", weights=str(folder), compute=cpu())


def test_a_processor_of_a_class_that_is_not_understood_is_refused(folder_of_tiny_checkpoint, tmp_path):
    """The file beside the weights names a class of transformers that does not exist."""
    unknown_class = "NoisyImageProcessor"
    folder = copy_with_processor_fields(
        folder_of_tiny_checkpoint["dinov2"], tmp_path, image_processor_type=unknown_class
    )

    with pytest.raises(BackboneError, match="NoisyImageProcessor"):
        load_encoder("dinov2", folder)


@pytest.mark.parametrize("backbone", ["image", "video"])
@pytest.mark.parametrize(
    "model_type",
    ["bert", "vilt", "never_published"],
    ids=["texts alone", "pictures with texts alone", "unknown to transformers"],
)
def test_a_network_that_does_not_take_pictures_alone_is_refused_by_its_type(tmp_path, backbone, model_type):
    """The file of weights is empty: the network is refused before it is read."""
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))

    with pytest.raises(BackboneError, match=model_type):
        load_backbone(backbone, weights=str(tmp_path))


@pytest.mark.parametrize(
    ("model_type", "n_frames"),
    [
        ("vjepa2", 3),  # no multiple of the 2 frames of a step
        ("videomae", 8),  # the others have position embeddings for 4 frames
        ("timesformer", 2),
        ("vivit", 1),
        ("xclip", 5),
    ],
)
def test_a_number_of_frames_that_does_not_fit_the_network_is_refused(
    folder_of_tiny_checkpoint, model_type, n_frames
):
    """The tiny networks take clips of four frames, but V-JEPA 2 any even number."""
    with pytest.raises(BackboneError, match=str(n_frames)):
        load_backbone("video", n_frames, weights=str(folder_of_tiny_checkpoint[model_type]), compute=cpu())


def test_v_jepa_2_gives_a_vector_for_every_two_frames(folder_of_tiny_checkpoint):
    """V-JEPA 2 takes any even number of frames and joins two into a step: 10 frames give 5 vectors.

    The tiny network's vectors have 32 numbers.
    """
    backbone = load_backbone(
        "video", n_frames=10, weights=str(folder_of_tiny_checkpoint["vjepa2"]), compute=cpu()
    )
    clip = np.zeros((1, 10, 32, 32, 3), np.uint8)

    frames = backbone.encode(clip)["frames"]

    assert frames.shape == (1, 5, 32)
    stated_shapes = {output.name: output.shape for output in backbone.outputs}
    assert stated_shapes == {"frames": (5, 32), "pooled": (32,)}


@pytest.mark.parametrize("model_type", CONFIGS)
def test_attention_is_sdpa_where_transformers_offers_it(folder_of_tiny_checkpoint, model_type):
    """The faster implementation, sdpa, is used and recorded. Four types have the plain one (eager) alone."""
    types_with_eager_alone = {"hiera", "timesformer", "videoprism", "videoprism_vision_model"}
    expected = "eager" if model_type in types_with_eager_alone else "sdpa"

    backbone = load_encoder(model_type, folder_of_tiny_checkpoint[model_type])

    assert backbone.provenance["compute"]["attention"] == expected


@pytest.mark.long
@without_gradients
@pytest.mark.parametrize("layers", [None, Layers(frames=True)], ids=["vectors", "layers"])
@pytest.mark.parametrize("model_type", ["clip", "dinov2", "siglip", "vivit", "xclip"])
def test_a_network_is_compiled_as_one_graph(folder_of_tiny_checkpoint, model_type, layers):
    """A break in the graph would make torch.compile slower."""
    options = {} if layers is None else {"layers": layers}
    runner = load_encoder(model_type, folder_of_tiny_checkpoint[model_type], **options).encode
    n_frames, height, width, _channels = runner.shape
    clip = torch.zeros(1, n_frames, 3, height, width)

    explanation = torch._dynamo.explain(runner.network)(clip)

    assert explanation.graph_break_count == 0, explanation.break_reasons


@pytest.mark.parametrize(
    ("model_type", "tokens", "shape"),
    [
        ("dinov2", "patches", (4 * 9, 32)),
        ("dinov3_vit", "patches", (4 * 4, 32)),
        ("videomae", "all", (2 * 4, 32)),
        ("vivit", "all", (1 + 2 * 4, 32)),
        ("xclip", "patches", (4 * 4, 32)),
    ],
    ids=[
        "4 frames of 3 x 3 patches",
        "4 frames of 2 x 2 patches, without registers",
        "2 steps of 2 x 2 patches",
        "a class token and 2 steps of 2 x 2 patches",
        "4 frames of 2 x 2 patches",
    ],
)
def test_tokens_are_float16_and_their_provenance_names_the_layer(
    folder_of_tiny_checkpoint, model_type, tokens, shape
):
    """The shape is of a clip of 4 frames: the number of tokens and the width, 32."""
    backbone = load_encoder(model_type, folder_of_tiny_checkpoint[model_type], tokens=tokens)

    (output,) = [output for output in backbone.outputs if output.name == "tokens"]

    assert output.shape == shape
    assert output.dtype == "float16"
    assert "last hidden state" in backbone.provenance["arrays"]["tokens"]


@pytest.fixture(scope="module")
def folder_with_texts_of(folder_of_tiny_checkpoint, tmp_path_factory):
    """Checkpoints with a vision and a text encoder, each with a tokenizer: type -> folder."""
    tokenizer = tiny_text_checkpoint("clip", tmp_path_factory.mktemp("tokenizer") / "clip")
    made = {}
    for model_type in ("clip", "metaclip_2", "aimv2", "videoprism", "xclip"):
        made[model_type] = shutil.copytree(
            folder_of_tiny_checkpoint[model_type], tmp_path_factory.mktemp("text") / model_type
        )
        for path in tokenizer.glob("*"):
            if path.name not in {"config.json", "model.safetensors"}:
                shutil.copy(path, made[model_type])
    path = made["videoprism"] / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pad_token": "<|unused0|>"}))
    return made


@without_gradients
@pytest.mark.parametrize("model_type", ["clip", "metaclip_2", "aimv2", "videoprism", "xclip"])
def test_vectors_of_texts_are_those_of_the_class_of_transformers(folder_with_texts_of, model_type):
    """Three texts are encoded by us and by transformers, with the same tiny network.

    It takes 16 tokens: the longest text is cut to so many, and for VideoPrism shorter ones are padded to so
    many.
    """
    folder = folder_with_texts_of[model_type]
    backbone = load_text_backbone("text", weights=str(folder), compute=cpu())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers_network(model_type, folder)
    padding = "max_length" if model_type == "videoprism" else False

    for text in ("a", "a photo of a man", "a sad man of a sad man of a sad man"):
        (tokens,) = backbone.tokenize([text])
        vector = backbone.encode(np.array([tokens.ids]))

        inputs = tokenizer([text], return_tensors="pt", truncation=True, max_length=16, padding=padding)
        expected = model.get_text_features(**inputs).pooler_output
        assert_close(vector, expected, NETWORK_ROUNDING)
        assert vector.shape[1] == backbone.width


@pytest.mark.parametrize("model_type", ["clip", "metaclip_2", "aimv2", "xclip"])
def test_texts_and_pictures_of_one_checkpoint_share_a_space(folder_with_texts_of, model_type):
    """Vectors of one space may be compared, such as a text with pictures."""
    folder = folder_with_texts_of[model_type]

    of_texts = load_text_backbone("text", weights=str(folder), compute=cpu()).provenance
    of_pictures = load_encoder(model_type, folder).provenance

    assert of_texts["space"] == of_pictures["space"]
    assert of_texts["weights_sha256"] == of_pictures["weights_sha256"]


@pytest.mark.parametrize("model_type", ["dinov2", "videomae"])
def test_a_network_of_pictures_alone_names_no_space(folder_of_tiny_checkpoint, model_type):
    """Its vectors can be compared with no text."""
    backbone = load_encoder(model_type, folder_of_tiny_checkpoint[model_type])

    assert "space" not in backbone.provenance


def test_the_space_of_xclip_is_named_by_its_backbone_and_weights(folder_of_tiny_checkpoint):
    """The backbone `xclip` does not record a space, so that its stores of all versions are alike."""
    provenance = load_backbone(
        "xclip", weights=str(folder_of_tiny_checkpoint["xclip"]), compute=cpu()
    ).provenance
    assert "space" not in provenance

    space = embedding_space({"name": "xclip", **provenance})

    assert space == f"xclip sha256:{provenance['weights_sha256']}"


def test_a_padding_token_that_the_network_does_not_mask_is_refused(folder_with_texts_of, tmp_path):
    """The network ignores token 57; padding with token 58, <|unused1|>, would be read as words."""
    folder = shutil.copytree(folder_with_texts_of["videoprism"], tmp_path / "net")
    path = folder / "tokenizer_config.json"
    tokenizer_config = json.loads(path.read_text()) | {"pad_token": "<|unused1|>"}
    path.write_text(json.dumps(tokenizer_config))

    with pytest.raises(BackboneError, match="pad_token_id is 57"):
        load_text_backbone("text", weights=str(folder), compute=cpu())


@pytest.fixture
def tiny_random_networks(monkeypatch):
    """Let networks of random weights have the tiny configurations of CONFIGS."""
    for_model = AutoConfig.for_model
    monkeypatch.setattr(AutoConfig, "for_model", lambda kind: for_model(kind, **CONFIGS[kind]))


@pytest.mark.long
@pytest.mark.usefixtures("tiny_random_networks")
@pytest.mark.parametrize("model_type", CONFIGS)
def test_random_weights_of_every_vision_network_follow_from_the_seed(model_type):
    """`random:7:vit` means a ViT with random weights from seed 7. The networks are tiny here."""
    name = "image" if model_type in IMAGES else "video"
    seed_7 = load_backbone(name, weights=f"random:7:{model_type}", compute=cpu())
    seed_7_again = load_backbone(name, weights=f"random:7:{model_type}", compute=cpu())
    seed_8 = load_backbone(name, weights=f"random:8:{model_type}", compute=cpu())
    one_frame = seed_7.prepare(FRAMES[0, 0])
    clip = np.array([[one_frame] * seed_7.n_frames])

    vector = seed_7.encode(clip)["pooled"]

    assert np.array_equal(seed_7_again.encode(clip)["pooled"], vector)
    assert not np.array_equal(seed_8.encode(clip)["pooled"], vector)
    assert seed_7.provenance["untrained"] is True
    assert seed_7.provenance["weights"] == f"random:7:{model_type}"


def test_every_network_that_reads_texts_is_tried():
    """Of the types that have a tiny configuration here, those with a text encoder are in TEXT_TYPES."""
    types_that_read_texts = sorted(TEXTS.keys() & CONFIGS.keys())

    assert types_that_read_texts == TEXT_TYPES


@pytest.mark.usefixtures("tiny_random_networks")
@pytest.mark.parametrize("model_type", TEXT_TYPES)
def test_random_weights_work_for_every_network_that_reads_texts(model_type):
    """Untrained encoders tell texts apart, and cut a long text."""
    backbone = load_text_backbone("text", weights=f"random:7:{model_type}", compute=cpu())

    woman, man, long_text = backbone.tokenize(["a woman", "a man", "a woman and a man at a window"])
    vector_of_woman = backbone.encode(np.array([woman.ids]))
    vector_of_man = backbone.encode(np.array([man.ids]))
    vector_of_long_text = backbone.encode(np.array([long_text.ids]))

    assert not np.array_equal(vector_of_woman, vector_of_man)
    assert np.isfinite([vector_of_woman, vector_of_man, vector_of_long_text]).all()
    assert not woman.is_cut
    assert long_text.is_cut
    assert backbone.provenance["untrained"] is True


@pytest.mark.usefixtures("tiny_random_networks")
@pytest.mark.parametrize("model_type", sorted({*TEXT_TYPES} - {"videoprism"}))
def test_untrained_encoders_of_texts_and_of_pictures_with_one_seed_record_the_same_space(model_type):
    """Weights named `random:7:TYPE` are the untrained network of a type, with the random seed 7.

    Both of its halves are loaded, that for texts and that for pictures (or videos). Vectors of one space can
    be compared, so that trials with untrained networks can search by texts. VideoPrism is left out, since its
    provenance names no space.
    """
    weights = f"random:7:{model_type}"
    name = "image" if model_type in IMAGES else "video"

    of_texts = load_text_backbone("text", weights=weights, compute=cpu())
    of_pictures = load_backbone(name, weights=weights, compute=cpu())

    assert of_pictures.provenance["space"] == of_texts.provenance["space"]


@pytest.mark.parametrize(
    ("name", "weights", "message"),
    [
        ("image", "random:0", "random:0:TYPE"),
        ("video", "random:0", "random:0:TYPE"),
        ("image", "random:0:bert", "'bert'"),
    ],
    ids=["pictures of no type", "videos of no type", "a network of texts"],
)
def test_random_weights_of_no_type_or_of_one_that_sees_nothing_are_refused(name, weights, message):
    """An untrained network of pictures or of videos is `random:SEED:TYPE`, such as random:0:vit."""
    with pytest.raises(BackboneError, match=message):
        load_backbone(name, weights=weights)


PUBLISHED_GFLOP = {
    "vjepa2": 11_571,
    "videoprism_vision_model": 973,
    "videomae": 361,
    "siglip": 35.4,
    "dinov3_vit": 35.9,
}
"""Billions of operations for a clip or picture, at the default sizes of the class (DINOv3: ViT-B)."""
VIT_B = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_register_tokens": 4,
}
"""The sizes of DINOv3's ViT-B, where the default of its class is a smaller network."""


def network_and_pixels_without_memory(model_type):
    """Make a network of the published size, and one picture or clip for it, on PyTorch's meta device.

    Tensors there have a shape and no numbers, so that nothing is computed and operations can be counted.
    """
    entry = VIDEOS[model_type] if model_type in VIDEOS else IMAGES[model_type]  # how it is made and called
    fields = VIT_B if model_type == "dinov3_vit" else {}
    config = AutoConfig.for_model(model_type, **fields)
    config = getattr(config, "vision_config", config)  # without that of texts
    with torch.device("meta"):
        network = getattr(transformers, entry.network)(config, **entry.load_arguments).eval()
    side = getattr(config, entry.size_field or "image_size")
    shape = [1, 3, side, side]
    if entry.of_clips:
        n_frames = getattr(config, clip_fields(config).frames_field)
        shape = [1, n_frames, 3, side, side]
    return network, torch.empty(*shape, device="meta")


@pytest.mark.long
@pytest.mark.parametrize(("model_type", "published_billions"), PUBLISHED_GFLOP.items())
def test_a_forward_pass_takes_the_published_number_of_operations(model_type, published_billions):
    """The papers state how many billions of operations one picture or clip takes.

    PyTorch counts ours, of one picture or clip of the published size, without computing them.
    """
    network, pixels = network_and_pixels_without_memory(model_type)
    forward = (VIDEOS | IMAGES)[model_type].reader()  # which calls the network as its type is called

    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        forward(network, pixels)

    billions_of_operations = counter.get_total_flops() / 1e9
    assert billions_of_operations == pytest.approx(published_billions, rel=0.01)
