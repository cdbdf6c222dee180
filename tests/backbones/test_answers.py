"""A network under its classifier: its vectors are the same, and its answers those of the whole class."""

import json
import shutil
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from PIL import Image

import obygaze_features as of
from obygaze.cli import root_command
from obygaze_features.answer_search import near_classes
from obygaze_features.backbones import Layers, class_names, load_backbone, load_text_backbone
from obygaze_features.backbones.class_names import unique_names
from obygaze_features.errors import BackboneError
from obygaze_features.manifest import perceived
from obygaze_features.store import classes_of
from tests.backbones.test_encoders import BODY, CONFIGS, FRAMES, PROCESSORS, TEXT
from tests.later import cpu, later, without_gradients
from tests.rounding import assert_close, network_rounding
from tests.tiny_checkpoints import tiny_sound_checkpoint, tiny_text_checkpoint

torch = later("torch")
transformers = later("transformers")
AutoConfig = later("transformers", "AutoConfig")
quiet = later("obygaze_features.backbones.checkpoint", "quiet")
untrained = later("obygaze_features.backbones.checkpoint", "untrained")
IMAGES = later("obygaze_features.backbones.encoder_specs", "IMAGES")
VIDEOS = later("obygaze_features.backbones.encoder_specs", "VIDEOS")
HEARING = later("obygaze_features.backbones.waveform", "SOUNDS")

SAME = network_rounding(3 * 2 * 16 * 16)
NAMES = ("a kiss", "a barbell", "a stove")
ROWS = (
    *("clip", "metaclip_2", "siglip", "vit", "dinov2", "dinov2_with_registers", "hiera"),
    *("videomae", "vjepa2", "videoprism_vision_model", "timesformer", "vivit"),
)
"""Types with a row in networks.toml that transformers has under a classifier."""
SQUARE = {"height": 32, "width": 32}
TINY = BODY | {"image_size": 32, "patch_size": 16}
WITHOUT_A_ROW = {
    "convnext": {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1], "image_size": 64},
    "swin": {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4, "image_size": 32},
    "deit": TINY | {"architectures": ["DeiTForImageClassification"]},
    "beit": TINY,  # its class pools where it is in a classifier, and can leave that out where it is alone
    "resnet": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
    "siglip2": {"vision_config": BODY | {"patch_size": 16, "num_patches": 64}, "text_config": TEXT},
}
OWN_PROCESSORS = {
    "convnext": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 64}},
    "swin": {"image_processor_type": "ViTImageProcessor", "size": SQUARE},
    "deit": {"image_processor_type": "DeiTImageProcessor", "size": SQUARE, "do_center_crop": False},
    "beit": {"image_processor_type": "BeitImageProcessor", "size": SQUARE, "do_center_crop": False},
    "resnet": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 64}},
    "siglip2": {"image_processor_type": "Siglip2ImageProcessor", "max_num_patches": 40, "patch_size": 16},
}


def auto_class(kind):
    """Return transformers' own way to the classifier of a type."""
    videos = transformers.models.auto.modeling_auto.MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING_NAMES
    if kind in videos:
        return transformers.AutoModelForVideoClassification
    return transformers.AutoModelForImageClassification


def save_classifier(kind, folder, fields, processor, **config):
    """Write a tiny classifier of three named classes in the hub's format, with its processor beside it."""
    own = fields | {"id2label": dict(enumerate(NAMES))} | config
    of_network = AutoConfig.for_model(kind, **own)
    network = untrained(lambda: auto_class(kind).from_config(of_network), 0)
    for name, parameter in network.named_parameters():
        torch.manual_seed(len(name))
        if not parameter.any():  # such as a query, which starts as zeros
            parameter.data += 0.1 * torch.randn(parameter.shape)
        if "classifier" in name:  # so that probabilities differ
            parameter.data = torch.randn(parameter.shape)
    with quiet():
        network.save_pretrained(folder)
    of_video = "video_processor_type" in processor
    file = "video_preprocessor_config.json" if of_video else "preprocessor_config.json"
    (folder / file).write_text(json.dumps(processor))
    return network


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep passes of the check in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny classifiers of types with a row."""
    made = {}
    for kind in ROWS:
        made[kind] = tmp_path_factory.mktemp(kind)
        save_classifier(kind, made[kind], CONFIGS[kind], PROCESSORS[kind])
    return made


def load(kind, folder, **options):
    name = "image" if kind in IMAGES else "video"
    return load_backbone(name, 4, weights=str(folder), compute=cpu(), **options)


@without_gradients
@pytest.mark.parametrize("kind", ROWS)
def test_answers_are_those_of_the_class_and_vectors_those_of_the_network(folders, kind):
    plain = load(kind, folders[kind])
    with_answers = load(kind, folders[kind], answers=True, layers=Layers((1,)))
    batch = prepared(plain, FRAMES[:2])

    arrays = with_answers.encode(batch)

    expected = probabilities_of_class(kind, folders[kind], plain, batch).numpy()
    assert np.abs(arrays["answers/pooled"] - expected).max() <= 1e-6
    for name, array in plain.encode(batch).items():
        assert np.array_equal(arrays[name], array)


@pytest.mark.parametrize("kind", ROWS)
def test_answers_are_a_side_group_whose_provenance_names_the_classes(folders, kind):
    plain = load(kind, folders[kind])
    with_answers = load(kind, folders[kind], answers=True, layers=Layers((1,)))
    assert with_answers.provenance == plain.provenance
    assert with_answers.group_names() == (plain.name, f"{plain.name}.answers", f"{plain.name}.1")
    (answers,) = [side for side in with_answers.side_groups if side.name == "answers"]
    assert answers.provenance["architecture"]["features"] == list(NAMES)
    assert answers.provenance["head"] == "classifier"


def prepared(backbone, clips):
    """Prepare every frame of some clips for a backbone, [B, F, h, w, 3]."""
    frames = [backbone.prepare(frame) for clip in clips for frame in clip]
    return np.stack(frames).reshape(len(clips), -1, *frames[0].shape)


def probabilities_of_class(kind, folder, backbone, batch):
    """Return the probabilities of each clip, [B, Q], by the classifier of transformers itself."""
    row = (IMAGES | VIDEOS)[kind]
    constants = backbone.provenance["preset"]["constants"]
    pixels = batch * np.array(constants["scale"]) + np.array(constants["shift"])
    pixels = torch.from_numpy(pixels.transpose(0, 1, 4, 2, 3)).float()
    if kind in IMAGES:
        pixels = pixels.flatten(0, 1)
    with quiet():
        classifier = auto_class(kind).from_pretrained(folder).eval()
    probabilities = classifier(**{row.pixels_argument(): pixels}).logits.softmax(dim=-1)
    return probabilities.view(len(batch), -1, len(NAMES)).mean(dim=1)


def frames_by_hand(folder, frames):
    """Prepare frames as transformers' documentation does, with the processor beside the weights."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    return dict(processor(images=list(frames), return_tensors="pt"))


@without_gradients
@pytest.mark.parametrize("kind", WITHOUT_A_ROW)
def test_types_without_a_row_have_the_answers_of_transformers(tmp_path, kind):
    save_classifier(kind, tmp_path, WITHOUT_A_ROW[kind], OWN_PROCESSORS[kind])
    plain = load_backbone("image", 4, weights=str(tmp_path), compute=cpu())
    with_answers = load_backbone("image", 4, weights=str(tmp_path), answers=True, compute=cpu())
    batch = prepared(plain, FRAMES[:2])

    arrays = with_answers.encode(batch)

    classifier = auto_class(kind).from_pretrained(tmp_path).eval()
    expected = []
    for clip in FRAMES[:2]:
        logits = classifier(**frames_by_hand(tmp_path, clip)).logits
        expected.append(logits.softmax(dim=-1).mean(dim=0).numpy())
    assert np.abs(arrays["answers/pooled"] - np.array(expected)).max() <= 1e-6
    for name, array in plain.encode(batch).items():
        assert np.array_equal(arrays[name], array)
    assert with_answers.provenance == plain.provenance
    (answers,) = with_answers.side_groups
    assert answers.provenance["architecture"] == {"type": kind, "features": list(NAMES)}
    assert perceived(answers.provenance) == ("visual",)


@without_gradients
def test_a_pooling_layer_that_the_class_can_leave_out_is_left_out_in_a_classifier_too(tmp_path):
    network = save_classifier("beit", tmp_path, WITHOUT_A_ROW["beit"], OWN_PROCESSORS["beit"])
    backbone = load_backbone("image", 4, weights=str(tmp_path), answers=True, compute=cpu())
    frames = backbone.encode(prepared(backbone, FRAMES[:1]))["frames"][0]
    hidden = network.beit(frames_by_hand(tmp_path, FRAMES[0])["pixel_values"]).last_hidden_state
    assert_close(frames, hidden.mean(dim=1), SAME)


@without_gradients
@pytest.mark.parametrize("kind", ["vit", "convnext"])  # with a row, and without
def test_classes_that_may_be_seen_at_once_have_each_a_probability_of_its_own(tmp_path, kind):
    fields = CONFIGS["vit"] if kind == "vit" else WITHOUT_A_ROW[kind]
    processor = PROCESSORS["vit"] if kind == "vit" else OWN_PROCESSORS[kind]
    problem = "multi_label_classification"
    classifier = save_classifier(kind, tmp_path, fields, processor, problem_type=problem)
    backbone = load_backbone("image", 4, weights=str(tmp_path), answers=True, compute=cpu())
    logits = classifier(**frames_by_hand(tmp_path, FRAMES[0])).logits
    given = backbone.encode(prepared(backbone, FRAMES[:1]))["answers/pooled"][0]
    assert np.abs(given - logits.sigmoid().mean(dim=0).numpy()).max() <= 1e-6


@without_gradients
@pytest.mark.parametrize("kind", ["clip", "metaclip_2"])
def test_a_clip_in_a_classifier_has_its_class_token_and_no_space_with_texts(folders, kind):
    backbone = load(kind, folders[kind])
    classifier = auto_class(kind).from_pretrained(folders[kind]).eval()
    frames = backbone.encode(prepared(backbone, FRAMES[:1]))["frames"][0]
    pixels = frames_by_hand(folders[kind], FRAMES[0])["pixel_values"]
    assert_close(frames, classifier.vision_model(pixels).pooler_output, SAME)
    assert "space" not in backbone.provenance
    assert backbone.provenance["head"] is None


def test_a_network_without_a_classifier_is_refused(tmp_path):
    with pytest.raises(BackboneError, match="no classifier"):
        load_backbone("image", 1, weights="random:0:dinov3_vit", answers=True, compute=cpu())
    config = AutoConfig.for_model("vit", **CONFIGS["vit"])
    with quiet():
        untrained(lambda: transformers.ViTModel(config), 0).save_pretrained(tmp_path / "vit")
    with pytest.raises(BackboneError, match=r"classifier\.weight.*without --answers"):
        load_backbone("image", 1, weights=str(tmp_path / "vit"), answers=True, compute=cpu())
    config = AutoConfig.for_model("convnext", **WITHOUT_A_ROW["convnext"])
    with quiet():
        untrained(lambda: transformers.ConvNextModel(config), 0).save_pretrained(tmp_path / "convnext")
    (tmp_path / "convnext" / "preprocessor_config.json").write_text(json.dumps(OWN_PROCESSORS["convnext"]))
    with pytest.raises(BackboneError, match=r"classifier\.weight.*without --answers"):
        load_backbone("image", 1, weights=str(tmp_path / "convnext"), answers=True, compute=cpu())


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("imagegpt", "takes no pictures alone"),
        ("pp_lcnet", "no network of type 'pp_lcnet' that gives vectors alone"),
        ("hgnet_v2", "HGNetV2ForImageClassification has 0 networks inside"),
    ],
)
def test_types_whose_classifier_holds_no_network_are_refused_by_name(kind, why):
    with pytest.raises(BackboneError, match=why) as refused:
        load_backbone("image", 1, weights=f"random:0:{kind}", answers=True, compute=cpu())
    assert str(refused.value).startswith(f"random:0:{kind}: ")


def test_a_network_that_needs_another_library_names_it():
    if find_spec("natten") is not None:
        pytest.skip("natten is installed")
    with pytest.raises(BackboneError, match="requires the natten library"):
        load_backbone("image", 1, weights="random:0:dinat", answers=True, compute=cpu())


def relabelled(folder, tmp_path, names, **fields):
    """Copy a classifier, with other names of its classes."""
    copy = tmp_path / "relabelled"
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text())
    config["id2label"] = {str(number): name for number, name in enumerate(names)}
    (copy / "config.json").write_text(json.dumps(config | fields))
    return copy


def test_names_stay_apart_where_a_number_is_taken_and_where_all_are_one():
    assert unique_names(["crane", "crane (2)", "crane"]) == ("crane", "crane (2)", "crane (3)")
    assert len(set(unique_names(["crane"] * 50_000))) == 50_000  # in a moment: not each compared with all


@pytest.mark.parametrize("n_names", [999, 1000])
def test_names_of_imagenet_are_read_from_a_file_that_lists_all(tmp_path, monkeypatch, n_names):
    names = [f"class {number}" for number in range(n_names)]
    package = tmp_path / "of_names"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / class_names.FILE).write_text(f"{class_names.VARIABLE} = {names}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(class_names, "PACKAGE", "of_names")
    assert class_names.imagenet_classes() == (tuple(names) if n_names == 1000 else None)


def test_the_second_class_of_one_name_gets_a_number(folders, tmp_path):
    folder = relabelled(folders["vit"], tmp_path, ("crane", "stove", "crane"))
    (answers,) = load("vit", folder, answers=True).side_groups
    assert answers.provenance["architecture"]["features"] == ["crane", "stove", "crane (2)"]


@pytest.mark.parametrize("kind", ["vit", "convnext"])  # with a row, and without
def test_classes_without_names_are_refused(folders, tmp_path, kind):
    if kind == "convnext":
        (tmp_path / "saved").mkdir()
        save_classifier(kind, tmp_path / "saved", WITHOUT_A_ROW[kind], OWN_PROCESSORS[kind])
    source = folders["vit"] if kind == "vit" else tmp_path / "saved"
    folder = relabelled(source, tmp_path, ("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(BackboneError, match="id2label"):
        load_backbone("image", 4, weights=str(folder), answers=True, compute=cpu())


def test_a_head_that_measures_is_no_classifier(folders, tmp_path):
    folder = relabelled(folders["vit"], tmp_path, NAMES, problem_type="regression")
    with pytest.raises(BackboneError, match="a measure"):
        load("vit", folder, answers=True)


SOUNDS = ("wav2vec2", "hubert", "wavlm", "whisper", "audio-spectrogram-transformer")


def sound_classifier(kind, folder, **config):
    """Write a tiny network that hears, under a classifier of three named classes."""
    tiny_sound_checkpoint(kind, folder)
    of_network = AutoConfig.from_pretrained(folder, id2label=dict(enumerate(NAMES)), **config)
    cls = getattr(transformers, HEARING[kind].classifier)
    with quiet():
        untrained(lambda: cls(of_network), 0).save_pretrained(folder)
    return cls.from_pretrained(folder).eval()


@without_gradients
@pytest.mark.parametrize("kind", SOUNDS)
def test_answers_of_sound_are_those_of_the_class_window_by_window(tmp_path, kind):
    classifier = sound_classifier(kind, tmp_path)
    options = {"weights": str(tmp_path), "compute": cpu()}
    both = load_backbone("waveform", 2, answers=True, layers=Layers((1,)), **options)
    heard = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
    parts = heard.reshape(2, -1)
    result = both.encode([parts])
    extractor = transformers.AutoFeatureExtractor.from_pretrained(tmp_path)
    inputs = extractor(heard, sampling_rate=16_000, return_tensors="pt")
    expected = classifier(**inputs).logits.softmax(dim=-1)
    assert_close(result["answers/pooled"], expected, SAME)
    if kind != "whisper":  # whose file has no decoder, without which it is none of the networks read plainly
        plain = load_backbone("waveform", 2, layers=Layers((1,)), **options)
        for name, array in plain.encode([parts]).items():
            assert_close(result[name], array, SAME)
        assert both.provenance == plain.provenance
    answers = next(side for side in both.side_groups if side.name == "answers")
    assert answers.provenance["architecture"]["features"] == list(NAMES)
    assert [output.name for output in answers.outputs] == ["pooled"]
    assert perceived(answers.provenance) == ("heard",)


@without_gradients
def test_classes_that_may_be_heard_at_once_have_each_a_probability_of_its_own(tmp_path):
    problem = "multi_label_classification"
    classifier = sound_classifier("audio-spectrogram-transformer", tmp_path, problem_type=problem)
    backbone = load_backbone("waveform", 1, weights=str(tmp_path), answers=True, compute=cpu())
    heard = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
    extractor = transformers.AutoFeatureExtractor.from_pretrained(tmp_path)
    logits = classifier(**extractor(heard, sampling_rate=16_000, return_tensors="pt")).logits
    assert_close(backbone.encode([heard[None]])["answers/pooled"], logits.sigmoid(), SAME)


@pytest.mark.parametrize("kind", ["clap", "hubert"])  # which has none; whose file has none
def test_sound_without_a_classifier_has_no_answers(tmp_path, kind):
    folder = tiny_sound_checkpoint(kind, tmp_path)
    with pytest.raises(BackboneError):
        load_backbone("waveform", 1, weights=str(folder), answers=True, compute=cpu())


def run(line):
    """Run a command."""
    CliRunner().invoke(root_command(), line.split(), catch_exceptions=False, standalone_mode=False)


@pytest.mark.long
def test_answers_of_a_type_without_a_row_are_read_as_any_others(tmp_path):
    save_classifier("convnext", tmp_path / "net", WITHOUT_A_ROW["convnext"], OWN_PROCESSORS["convnext"])
    stills = tmp_path / "stills"
    stills.mkdir()
    for number, frame in enumerate(FRAMES[0]):
        Image.fromarray(frame).save(stills / f"{number}.png")
    run(f"manifest import images {stills} --out {tmp_path}/stills.csv")
    run(
        f"extract {tmp_path}/stills.csv {tmp_path}/s --backbone image --weights {tmp_path}/net --answers"
        " --licence CC0-1.0 --workers 1"
    )
    store = of.open_store(tmp_path / "s")
    assert store.names == ("image", "image.answers")
    assert classes_of(store["image.answers"]) == NAMES

    run(f"audit objects --images {tmp_path}/s --out {tmp_path}/objects.csv --least 0")
    assert set(pd.read_csv(tmp_path / "objects.csv")["object"]) <= set(NAMES)
    run(f"store verify {tmp_path}/s")
    query = load_text_backbone("sentence", weights=str(tiny_text_checkpoint("sentence", tmp_path / "text")))
    assert near_classes(classes_of(store["image.answers"]), "a stove", query).names[0] == "a stove"
