"""A network under its classifier: its vectors are the same, and its answers those of the whole class."""

import json

import numpy as np
import pytest

from obygaze_features.backbones import Layers, load_backbone
from obygaze_features.errors import BackboneError
from obygaze_features.manifest import perceived
from tests.backbones.test_encoders import CONFIGS, FRAMES, PROCESSORS
from tests.later import cpu, later, without_gradients
from tests.rounding import assert_close, network_rounding
from tests.tiny_checkpoints import tiny_sound_checkpoint

torch = later("torch")
transformers = later("transformers")
AutoConfig = later("transformers", "AutoConfig")
quiet = later("obygaze_features.backbones.checkpoint", "quiet")
untrained = later("obygaze_features.backbones.checkpoint", "untrained")
IMAGES = later("obygaze_features.backbones.encoder_kinds", "IMAGES")
VIDEOS = later("obygaze_features.backbones.encoder_kinds", "VIDEOS")
HEARING = later("obygaze_features.backbones.waveform", "KINDS")

SAME = network_rounding(3 * 2 * 16 * 16)
KINDS = ("vit", "dinov2", "dinov2_with_registers", "hiera", "videomae", "vjepa2", "timesformer", "vivit")
NAMES = ("a kiss", "a barbell", "a stove")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny classifiers of three named classes."""
    made = {}
    for kind in KINDS:
        config = AutoConfig.for_model(kind, **CONFIGS[kind], id2label=dict(enumerate(NAMES)))
        cls = getattr(transformers, (IMAGES | VIDEOS)[kind].classifier)
        network = untrained(lambda cls=cls, config=config: cls(config), 0)
        made[kind] = tmp_path_factory.mktemp(kind)
        with quiet():
            network.save_pretrained(made[kind])
        file = "video_preprocessor_config.json" if kind == "vjepa2" else "preprocessor_config.json"
        (made[kind] / file).write_text(json.dumps(PROCESSORS[kind]))
    return made


def load(kind, folder, **options):
    name = "image" if kind in IMAGES else "video"
    return load_backbone(name, 4, weights=str(folder), compute=cpu(), **options)


@without_gradients
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_the_class_and_vectors_those_of_the_network(folders, kind):
    plain = load(kind, folders[kind])
    with_answers = load(kind, folders[kind], answers=True, layers=Layers((1,)))
    batch = prepared(plain, FRAMES[:2])

    arrays = with_answers.encode(batch)

    assert_close(arrays["answers/pooled"], probabilities_of_class(kind, folders[kind], plain, batch), SAME)
    for name, array in plain.encode(batch).items():
        assert_close(arrays[name], array, SAME)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_a_side_group_whose_provenance_names_the_classes(folders, kind):
    plain = load(kind, folders[kind])
    with_answers = load(kind, folders[kind], answers=True, layers=Layers((1,)))
    assert with_answers.provenance == plain.provenance
    assert with_answers.group_names() == (plain.name, f"{plain.name}.answers", f"{plain.name}.1")
    (answers,) = [side for side in with_answers.beside if side.name == "answers"]
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
        classifier = getattr(transformers, row.classifier).from_pretrained(folder).eval()
    probabilities = classifier(**{row.pixels(): pixels}).logits.softmax(dim=-1)
    return probabilities.view(len(batch), -1, len(NAMES)).mean(dim=1)


def test_a_network_without_a_classifier_is_refused(tmp_path):
    with pytest.raises(BackboneError):
        load_backbone("image", 1, weights="random:0:clip", answers=True, compute=cpu())
    config = AutoConfig.for_model("vit", **CONFIGS["vit"])
    with quiet():
        untrained(lambda: transformers.ViTModel(config), 0).save_pretrained(tmp_path)
    with pytest.raises(BackboneError):
        load_backbone("image", 1, weights=str(tmp_path), answers=True, compute=cpu())


def test_classes_of_one_name_are_refused(folders):
    path = folders["vit"] / "config.json"
    written = path.read_text()
    path.write_text(json.dumps(json.loads(written) | {"id2label": {"0": "a", "1": "a", "2": "b"}}))
    with pytest.raises(BackboneError):
        load("vit", folders["vit"], answers=True)
    path.write_text(written)


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
    found = both.encode([parts])
    extractor = transformers.AutoFeatureExtractor.from_pretrained(tmp_path)
    inputs = extractor(heard, sampling_rate=16_000, return_tensors="pt")
    expected = classifier(**inputs).logits.softmax(dim=-1)
    assert_close(found["answers/pooled"], expected, SAME)
    if kind != "whisper":  # whose file has no decoder, without which it is none of the networks read plainly
        plain = load_backbone("waveform", 2, layers=Layers((1,)), **options)
        for name, array in plain.encode([parts]).items():
            assert_close(found[name], array, SAME)
        assert both.provenance == plain.provenance
    answers = next(side for side in both.beside if side.name == "answers")
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
