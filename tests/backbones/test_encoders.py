"""Networks by their `model_type`: each gives what its own class gives on its own processor's pixels."""

import functools
import json
import shutil

import numpy as np
import pytest
from PIL import Image

from obygaze_features.backbones import load_backbone, load_text_backbone
from obygaze_features.errors import BackboneError
from tests.later import cpu, later, without_gradients
from tests.rounding import assert_close, network_rounding, rounding
from tests.tiny_checkpoints import tiny_text_checkpoint

torch = later("torch")
Card = later("tests.backbones.pretended_card", "Card")
transformers = later("transformers")
interpolate = later("torch.nn.functional", "interpolate")
FlopCounterMode = later("torch.utils.flop_counter", "FlopCounterMode")
AutoConfig = later("transformers", "AutoConfig")
Compute = later("obygaze_features.backbones", "Compute")
clip_fields = later("obygaze_features.backbones.class_calls", "clip_fields")
quiet = later("obygaze_features.backbones.checkpoint", "quiet")
untrained = later("obygaze_features.backbones.checkpoint", "untrained")
IMAGES = later("obygaze_features.backbones.encoder_specs", "IMAGES")
TEXTS = later("obygaze_features.backbones.encoder_specs", "TEXTS")
VIDEOS = later("obygaze_features.backbones.encoder_specs", "VIDEOS")

BODY = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
SMALL = BODY | {"patch_size": 16, "image_size": 32}
TEXT = BODY | {"vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 98, "pad_token_id": 0}
BOTH = {"vision_config": SMALL, "text_config": TEXT, "projection_dim": 24}
PRISM = BODY | {"image_size": 36, "num_frames": 4, "num_spatial_layers": 1, "num_temporal_layers": 1}
SQUARE, EDGE = {"height": 32, "width": 32}, {"size": {"shortest_edge": 36}, "crop_size": 32}
CONFIGS = {
    "clip": BOTH,
    "clip_vision_model": SMALL | {"projection_dim": 24},
    "metaclip_2": BOTH,
    "siglip": BOTH,
    "siglip_vision_model": SMALL,
    "dinov2": SMALL | {"mlp_ratio": 2, "image_size": 64},
    "dinov2_with_registers": SMALL | {"mlp_ratio": 2, "image_size": 64, "num_register_tokens": 3},
    "dinov3_vit": SMALL | {"num_register_tokens": 3},
    "aimv2": BOTH,
    "aimv2_vision_model": SMALL,
    "vit": SMALL,
    "hiera": {"embed_dim": 8, "image_size": [32, 32], "depths": [1, 1], "num_heads": [1, 2],
              "masked_unit_size": [2, 2], "query_stride": [2, 2], "num_query_pool": 1,
              "patch_size": [7, 7], "patch_stride": [4, 4], "patch_padding": [3, 3]},
    "videomae": SMALL | {"num_frames": 4, "tubelet_size": 2},
    "vjepa2": BODY | {"patch_size": 16, "crop_size": 32, "frames_per_clip": 4, "mlp_ratio": 2,
                      "pred_hidden_size": 12, "pred_num_attention_heads": 2, "pred_num_hidden_layers": 1},
    "videoprism_vision_model": PRISM,
    "videoprism": {"vision_config": PRISM | {"num_auxiliary_layers": 1},
                   "text_config": TEXT | {"pad_token_id": 57}},
    "timesformer": SMALL | {"num_frames": 4},
    "vivit": SMALL | {"num_frames": 4, "tubelet_size": [2, 16, 16]},
    "xclip": {"vision_config": SMALL | {"num_frames": 4, "mit_hidden_size": 24, "mit_num_attention_heads": 2,
                                        "mit_num_hidden_layers": 1},
              "text_config": TEXT, "projection_dim": 24},
}  # fmt: skip
PROCESSORS = {
    "clip": {"image_processor_type": "CLIPImageProcessor", **EDGE},
    "metaclip_2": {"image_processor_type": "CLIPImageProcessor", **EDGE, "image_mean": [0.4, 0.5, 0.6]},
    "siglip": {"image_processor_type": "SiglipImageProcessorFast", "size": SQUARE},
    "dinov2": {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 70}, "crop_size": 48},
    "dinov3_vit": {"image_processor_type": "DINOv3ViTImageProcessorFast", "size": SQUARE},
    "aimv2": {"image_processor_type": "CLIPImageProcessor", **EDGE},
    "vit": {"feature_extractor_type": "ViTFeatureExtractor", "size": 32},
    "hiera": {"image_processor_type": "BitImageProcessor", **EDGE, "image_std": [0.2, 0.3, 0.4]},
    "videomae": {"feature_extractor_type": "VideoMAEFeatureExtractor", "size": 36, "crop_size": 32},
    "vjepa2": {"video_processor_type": "VJEPA2VideoProcessor", **EDGE},
    "videoprism": {"video_processor_type": "LlavaOnevisionVideoProcessor", "do_normalize": False,
                   "size": {"height": 36, "width": 36}},
    "timesformer": {"image_processor_type": "VideoMAEImageProcessor", **EDGE, "image_std": [0.225] * 3},
    "vivit": {"image_processor_type": "VivitImageProcessor", **EDGE},
    "xclip": {"feature_extractor_type": "VideoMAEFeatureExtractor", **EDGE},
}  # fmt: skip
PROCESSORS |= {kind: PROCESSORS[kind.partition("_")[0]] for kind in CONFIGS if kind not in PROCESSORS}
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
READ = ["aimv2", "clip", "metaclip_2", "siglip", "videoprism", "xclip"]
SAME = network_rounding(3 * 2 * 16 * 16)  # of two frames, where a token is of two
HALF = rounding("float16", 1)
PIXEL = rounding("float32", 3, condition=7)
"""Scaled by 255, less a mean, over a deviation of .22: terms of up to 1.5 / .22."""
FRAMES = np.random.default_rng(3).integers(0, 256, (5, 4, 53, 87, 3), dtype=np.uint8)
"""Five clips of four frames, of no size that is easy."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Write a tiny checkpoint of every type, by transformers itself, with its processor beside it."""
    made = {}
    for kind, changes in CONFIGS.items():
        config = AutoConfig.for_model(kind, **changes)
        known = (IMAGES | VIDEOS)[kind]
        names = {"metaclip_2": "MetaClip2Model", "clip": "CLIPModel", "siglip": "SiglipModel"}
        cls = getattr(transformers, names.get(kind, known.network))
        network = untrained(lambda cls=cls, config=config: cls(config), 0)
        for name, parameter in network.named_parameters():
            if not parameter.any() or (parameter == 1).all():  # such as a query, which starts as zeros
                torch.manual_seed(len(name))
                parameter.data += 0.1 * torch.randn(parameter.shape)
        folder = tmp_path_factory.mktemp(kind)
        with quiet():
            network.save_pretrained(folder)
        where = (
            "video_preprocessor_config.json"
            if kind in {"vjepa2", "videoprism"}
            else "preprocessor_config.json"
        )
        (folder / where).write_text(json.dumps(PROCESSORS[kind]))
        made[kind] = folder
    return made


def theirs(kind, frame):
    """Prepare a frame as the processor does, [3, h, w]; torchvision's resize is torch's interpolate."""
    written = PROCESSORS[kind]
    (name,) = [value for field, value in written.items() if field.endswith("_type")]
    name = name.replace("FeatureExtractor", "ImageProcessor").removesuffix("Fast")
    pil = getattr(transformers, f"{name}Pil", None)
    if pil is not None:
        pixels = np.asarray(pil.from_dict(written)(frame, return_tensors="np")["pixel_values"])
        return pixels.reshape(3, *pixels.shape[-2:])
    pixels = torch.from_numpy(frame).permute(2, 0, 1)[None]
    if name == "VivitImageProcessor":
        picture = Image.fromarray(frame)
        picture = picture.resize((36 * picture.width // picture.height, 36), Image.Resampling.BILINEAR)
        left = (picture.width - 32) // 2
        pixels = np.asarray(picture.crop((left, 2, left + 32, 34))).transpose(2, 0, 1)
        return (pixels / 127.5 - 1 - 0.5) / 0.5
    sides = {"DINOv3ViTImageProcessor": (32, 32), "LlavaOnevisionVideoProcessor": (36, 36)}
    edge = 32 * 256 // 224  # of V-JEPA 2, whatever its size says
    size = sides.get(name, (edge, edge * frame.shape[1] // frame.shape[0]))
    mode = "bicubic" if name.startswith("Llava") else "bilinear"
    pixels = interpolate(pixels, size=size, mode=mode, antialias=True)[0].numpy()
    if name == "LlavaOnevisionVideoProcessor":
        return pixels / 255
    top, left = (size[0] - 32) // 2, (size[1] - 32) // 2
    pixels = pixels[:, top : top + 32, left : left + 32] / 255
    mean, std = (np.array(values)[:, None, None] for values in IMAGENET)
    return (pixels - mean) / std


@functools.cache
def backbone_of(kind, folder, **options):
    return load_backbone(
        "image" if kind in IMAGES else "video", 4, weights=str(folder), compute=cpu(), **options
    )


@pytest.mark.parametrize("kind", CONFIGS)
def test_pixels_are_those_of_the_processor_beside_the_weights(folders, kind):
    backbone = backbone_of(kind, folders[kind])
    scale, shift = (
        np.array(backbone.provenance["preset"]["constants"][name])[:, None, None]
        for name in ("scale", "shift")
    )
    for frame in (FRAMES[0, 0], FRAMES[0, 1, :40], FRAMES[0, 2, :30, :31]):
        ours = backbone.prepare(frame).transpose(2, 0, 1) * scale + shift
        expected = theirs(kind, frame)
        assert ours.shape == expected.shape
        # Bit for bit in uint8: one level is .0039 and more.
        assert np.abs(ours - expected).max() <= PIXEL


def whole(kind, folder):
    """Load the network as its users do, of both halves where it has two."""
    names = {"metaclip_2": "MetaClip2Model", "clip": "CLIPModel", "siglip": "SiglipModel"}
    with quiet():
        cls = getattr(transformers, names.get(kind, (IMAGES | VIDEOS)[kind].network))
        return cls.from_pretrained(folder).eval()


def of_pictures(kind, model, pixels):
    """Return the tokens of patches, None where they are not looked at, and vectors, of `[N, 3, h, w]`."""
    if kind in {"clip", "metaclip_2", "siglip", "aimv2"}:
        return None, model.get_image_features(pixel_values=pixels).pooler_output
    seen = model(pixels)
    if kind == "clip_vision_model":
        return None, seen.image_embeds
    prefix = {"dinov2": 1, "dinov2_with_registers": 4, "dinov3_vit": 4, "vit": 1}.get(kind, 0)
    vectors = seen.last_hidden_state[:, 0] if kind == "vit" else seen.pooler_output
    return seen.last_hidden_state[:, prefix:], vectors


def of_videos(kind, model, pixels):
    """Return tokens, time first, and vectors, of `[B, T, 3, h, w]`."""
    if kind in {"videoprism", "xclip"}:
        return None, model.get_video_features(pixels).pooler_output.reshape(len(pixels), -1)
    hidden = model(pixels, **({"skip_predictor": True} if kind == "vjepa2" else {})).last_hidden_state
    if kind == "timesformer":
        by_time = hidden[:, 1:].view(len(pixels), -1, 4, hidden.shape[-1]).transpose(1, 2)
        return torch.cat([hidden[:, :1], by_time.flatten(1, 2)], dim=1), hidden[:, 0]
    return hidden, hidden.amax(dim=1) if kind == "vivit" else hidden.mean(dim=1)


@without_gradients
@pytest.mark.parametrize("kind", CONFIGS)
def test_vectors_are_those_of_the_class_one_by_one_and_five_at_once_on_a_card(folders, kind):
    tokens = {"aimv2": "none", "xclip": "none"}.get(kind, "patches" if kind in IMAGES else "all")
    backbone = backbone_of(kind, folders[kind], tokens=tokens)
    batch = np.array([[backbone.prepare(frame) for frame in clip] for clip in FRAMES])
    result = backbone.encode(batch)
    constants = backbone.provenance["preset"]["constants"]
    pixels = batch * np.array(constants["scale"]) + np.array(constants["shift"])
    pixels = torch.from_numpy(pixels.transpose(0, 1, 4, 2, 3)).float()
    model = whole(kind, folders[kind])
    hidden, vectors = (
        of_pictures(kind, model, pixels.flatten(0, 1)) if kind in IMAGES else of_videos(kind, model, pixels)
    )
    if kind in IMAGES:
        assert_close(result["frames"].reshape(20, -1), vectors, SAME)
        assert_close(result["pooled"], vectors.view(5, 4, -1).mean(dim=1), SAME)
    else:
        assert_close(result["pooled"], vectors, SAME)
    if kind in VIDEOS and hidden is not None:
        patches = hidden[:, hidden.shape[1] % 2 :]  # a class token is one more
        steps = result["frames"].shape[1]
        assert_close(result["frames"], patches.reshape(5, steps, -1, hidden.shape[-1]).mean(dim=2), SAME)
    if hidden is not None and tokens != "none":
        assert_close(result["tokens"], hidden.reshape(5, -1, hidden.shape[-1]), HALF)
    assert {o.name: o.shape for o in backbone.outputs} == {name: a.shape[1:] for name, a in result.items()}
    alone = backbone.encode(batch[2:3])
    for name, array in alone.items():
        assert np.array_equal(array[0], result[name][2])
    with pytest.MonkeyPatch.context() as patch:
        Card().install(patch)
        way = Compute(device="cuda", clips_at_once=5)
        card = load_backbone(backbone.name, 4, weights=str(folders[kind]), tokens=tokens, compute=way)
        together = card.encode.start(list(batch)).result().arrays
    for name, array in together.items():
        assert_close(array, result[name], HALF if name == "tokens" else SAME)


def changed(folder, tmp_path, **fields):
    """Copy a checkpoint, with other fields of its processor's configuration."""
    copy = tmp_path / "changed"
    shutil.copytree(folder, copy)
    (path,) = copy.glob("*preprocessor_config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return copy


CHANGES = [
    ("dinov2", {"resample": 2}),
    ("dinov2", {"size": {"shortest_edge": 64}}),
    ("dinov2", {"crop_size": {"height": 32, "width": 32}}),
    ("metaclip_2", {"image_mean": [0.1, 0.2, 0.3]}),
    ("hiera", {"image_std": 0.5}),
    ("vit", {"rescale_factor": 1 / 127.5}),
    ("siglip", {"do_normalize": False}),
]


@pytest.mark.parametrize(("kind", "change"), CHANGES)
def test_a_configuration_changed_in_one_number_is_followed(folders, tmp_path, monkeypatch, kind, change):
    folder = changed(folders[kind], tmp_path, **change)
    monkeypatch.setitem(PROCESSORS, kind, PROCESSORS[kind] | change)
    before, after = backbone_of(kind, folders[kind]), backbone_of(kind, folder)
    assert before.provenance["preset"] != after.provenance["preset"]
    scale, shift = (
        np.array(after.provenance["preset"]["constants"][name])[:, None, None] for name in ("scale", "shift")
    )
    ours = after.prepare(FRAMES[0, 0]).transpose(2, 0, 1) * scale + shift
    assert np.abs(ours - theirs(kind, FRAMES[0, 0])).max() <= PIXEL


NOT_DONE = [
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


@pytest.mark.parametrize(("kind", "change"), NOT_DONE)
def test_what_no_preset_can_do_is_refused_by_its_field(folders, tmp_path, kind, change):
    with pytest.raises(BackboneError) as refused:
        backbone_of(kind, changed(folders[kind], tmp_path, **change))
    (field,) = change
    assert field.removeprefix("do_center_").removesuffix("_size") in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_a_network_of_pictures_that_are_not_square_is_refused(tmp_path):
    config = AutoConfig.for_model("vit", **(SMALL | {"image_size": [32, 48]}))
    network = untrained(lambda: transformers.ViTModel(config, add_pooling_layer=False), 0)
    network.save_pretrained(tmp_path)
    with pytest.raises(BackboneError, match="image_size"):
        load_backbone("image", weights=str(tmp_path), compute=cpu())


def test_a_half_whose_configuration_holds_a_half_is_refused(folders, tmp_path):
    folder = changed(folders["clip"], tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "clip_vision_model"}))
    with pytest.raises(BackboneError, match="vision_config"):
        load_backbone("clip", weights=str(folder), compute=cpu())


def test_a_processor_of_a_class_that_is_not_understood_is_refused(folders, tmp_path):
    folder = changed(folders["dinov2"], tmp_path, image_processor_type="NoisyImageProcessor")
    with pytest.raises(BackboneError, match="NoisyImageProcessor"):
        backbone_of("dinov2", folder)


def test_a_network_that_sees_no_pictures_alone_is_refused_by_its_type(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    for kind in ("bert", "vilt", "never_published"):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
        for name in ("image", "video"):
            with pytest.raises(BackboneError, match=kind):
                load_backbone(name, weights=str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "n_frames"), [("videomae", 8), ("vjepa2", 3), ("timesformer", 2), ("vivit", 1), ("xclip", 5)]
)
def test_a_number_of_frames_that_a_network_was_not_made_for_is_refused(folders, kind, n_frames):
    with pytest.raises(BackboneError, match=str(n_frames)):
        load_backbone("video", n_frames, weights=str(folders[kind]), compute=cpu())


def test_v_jepa_2_takes_any_number_of_whole_steps(folders):
    backbone = load_backbone("video", 10, weights=str(folders["vjepa2"]), compute=cpu())
    assert {output.name: output.shape for output in backbone.outputs} == {"frames": (5, 32), "pooled": (32,)}
    batch = np.zeros((1, 10, 32, 32, 3), np.uint8)
    assert backbone.encode(batch)["frames"].shape == (1, 5, 32)


def test_attention_is_what_the_class_supports(folders):
    made = {kind: backbone_of(kind, folders[kind]).provenance["compute"]["attention"] for kind in CONFIGS}
    eager = {"hiera", "timesformer", "videoprism", "videoprism_vision_model"}
    assert made == {kind: "eager" if kind in eager else "sdpa" for kind in CONFIGS}


@pytest.mark.long
@without_gradients
@pytest.mark.parametrize("kind", ["clip", "dinov2", "siglip", "vivit", "xclip"])
def test_nothing_breaks_the_graph_of_a_network_that_is_compiled(folders, kind):
    runner = backbone_of(kind, folders[kind]).encode
    frames, side, *_ = runner.shape
    result = torch._dynamo.explain(runner.network)(torch.zeros(1, frames, 3, side, side))
    assert result.graph_break_count == 0, result.break_reasons


SEEN = {
    "images": ("dinov2", "patches", (4 * 9, 32)),
    "registers": ("dinov3_vit", "patches", (4 * 4, 32)),
    "videos": ("videomae", "all", (2 * 4, 32)),
    "class token": ("vivit", "all", (1 + 2 * 4, 32)),
    "X-CLIP": ("xclip", "patches", (4 * 4, 32)),
}


@pytest.mark.parametrize(("kind", "tokens", "shape"), SEEN.values(), ids=SEEN)
def test_tokens_are_those_of_the_patches_with_their_meaning(folders, kind, tokens, shape):
    backbone = backbone_of(kind, folders[kind], tokens=tokens)
    (output,) = [output for output in backbone.outputs if output.name == "tokens"]
    assert (output.shape, output.dtype) == (shape, "float16")
    assert "last hidden state" in backbone.provenance["arrays"]["tokens"]
    with pytest.raises(BackboneError, match="'some'"):
        backbone_of(kind, folders[kind], tokens="some")


@pytest.fixture(scope="module")
def texts(folders, tmp_path_factory):
    """The checkpoints of both halves, with a tokenizer beside."""
    tokenizer = tiny_text_checkpoint("clip", tmp_path_factory.mktemp("tokenizer") / "clip")
    made = {}
    for kind in ("clip", "metaclip_2", "aimv2", "videoprism", "xclip"):
        made[kind] = shutil.copytree(folders[kind], tmp_path_factory.mktemp("text") / kind)
        for path in tokenizer.glob("*"):
            if path.name not in {"config.json", "model.safetensors"}:
                shutil.copy(path, made[kind])
    path = made["videoprism"] / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pad_token": "<|unused0|>"}))
    return made


@without_gradients
@pytest.mark.parametrize("kind", ["clip", "metaclip_2", "aimv2", "videoprism", "xclip"])
def test_texts_are_those_of_the_class_in_the_space_of_the_other_half(texts, kind):
    backbone = load_text_backbone("text", weights=str(texts[kind]), compute=cpu())
    tokenizer = transformers.AutoTokenizer.from_pretrained(texts[kind])
    model = whole(kind, texts[kind])
    filled = {"padding": "max_length", "max_length": 16} if kind == "videoprism" else {}
    for words in ("a", "a photo of a man", "a sad man of a sad man of a sad man"):
        (tokens,) = backbone.tokenize([words])
        result = backbone.encode(np.array([tokens.ids]))
        given = tokenizer([words], return_tensors="pt", truncation=True, **({"max_length": 16} | filled))
        assert_close(result, model.get_text_features(**given).pooler_output, SAME)
    assert backbone.width == result.shape[1]
    seen = backbone_of(kind, texts[kind]).provenance
    assert seen.get("space", backbone.provenance["space"]) == backbone.provenance["space"]
    assert seen["weights_sha256"] == backbone.provenance["weights_sha256"]


def test_a_tokenizer_that_fills_up_with_another_token_than_the_network_masks_is_refused(texts, tmp_path):
    folder = shutil.copytree(texts["videoprism"], tmp_path / "net")
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pad_token": "<|unused1|>"}))
    with pytest.raises(BackboneError, match="pad_token_id is 57"):
        load_text_backbone("text", weights=str(folder), compute=cpu())


@pytest.fixture
def small(monkeypatch):
    """Make the configurations of untrained networks tiny."""
    for_model = AutoConfig.for_model
    tiny = {kind: CONFIGS[kind] for kind in CONFIGS}
    monkeypatch.setattr(AutoConfig, "for_model", lambda kind: for_model(kind, **tiny[kind]))


@pytest.mark.long
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", CONFIGS)
def test_random_weights_work_for_every_network_that_sees(kind):
    name = "image" if kind in IMAGES else "video"
    made = [load_backbone(name, weights=f"random:{seed}:{kind}", compute=cpu()) for seed in (7, 7, 8)]
    frame = made[0].prepare(FRAMES[0, 0])
    batch = np.array([[frame] * made[0].n_frames])
    one, again, other = (backbone.encode(batch)["pooled"] for backbone in made)
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert made[0].provenance["untrained"] is True
    assert made[0].provenance["weights"] == f"random:7:{kind}"


def test_every_network_that_reads_texts_is_tried():
    assert sorted(TEXTS.keys() & CONFIGS.keys()) == READ


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", READ)
def test_random_weights_work_for_every_network_that_reads_texts(kind):
    backbone = load_text_backbone("text", weights=f"random:7:{kind}", compute=cpu())
    one, other, long = backbone.tokenize(["a woman", "a man", "a woman and a man at a window"])
    vectors = [backbone.encode(np.array([tokens.ids])) for tokens in (one, other, long)]
    assert not np.array_equal(vectors[0], vectors[1])
    assert np.isfinite(vectors).all()
    assert (one.is_cut, long.is_cut) == (False, True)
    record = backbone.provenance
    assert record["untrained"] is True
    if TEXTS[kind].vision.family:
        name = "image" if kind in IMAGES else "video"
        seen = load_backbone(name, weights=f"random:7:{kind}", compute=cpu()).provenance
        assert seen["space"] == record["space"]


def test_random_weights_of_no_network_ask_for_its_type():
    for name in ("image", "video"):
        with pytest.raises(BackboneError, match="random:0:TYPE"):
            load_backbone(name, weights="random:0")
    with pytest.raises(BackboneError, match="'bert'"):
        load_backbone("image", weights="random:0:bert")


GFLOP = {
    "vjepa2": 11_571,
    "videoprism_vision_model": 973,
    "videomae": 361,
    "siglip": 35.4,
    "dinov3_vit": 35.9,
}
"""Of a clip or picture by the class's own configuration; DINOv3's is that of ViT-B."""


@pytest.mark.long
@pytest.mark.parametrize("kind", GFLOP)
def test_the_work_of_a_clip_is_that_of_the_published_network(kind):
    own = {"dinov3_vit": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
                          "num_attention_heads": 12, "num_register_tokens": 4}}  # fmt: skip
    config = AutoConfig.for_model(kind, **own.get(kind, {}))
    known = (IMAGES | VIDEOS)[kind]
    seeing = getattr(config, "vision_config", config)
    with torch.device("meta"):
        network = getattr(transformers, known.network)(seeing, **known.load_arguments).eval()
    side = getattr(seeing, known.size_field or "image_size")
    frames = (getattr(seeing, clip_fields(seeing).frames_field),) if known.of_clips else ()
    pixels = torch.empty(1, *frames, 3, side, side, device="meta")
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        known.reader()(network, pixels)
    assert counter.get_total_flops() / 1e9 == pytest.approx(GFLOP[kind], rel=0.01)
