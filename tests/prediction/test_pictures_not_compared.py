"""Films whose pictures are not compared with those trained on are never passed over in silence."""

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from benchmarks.planted.known_films import Drawn, look, make_sealed_store, trained
from benchmarks.planted.known_films import film as drawn_film
from obygaze_models.prediction.training_films import recognise
from tests.store.serving import serving


@pytest.fixture(scope="module")
def films():
    """Pictures and features of the films a, b, c and d, six clips each."""
    rng = np.random.default_rng(0)
    return {movie: drawn_film(rng, look(rng)) for movie in ("a", "b", "c", "d")}


@pytest.fixture(scope="module")
def model(films, tmp_path_factory):
    """A model that was trained on the four films and keeps what their pictures look like."""
    return trained(tmp_path_factory.mktemp("kept"), films, with_pictures=True)


@pytest.fixture(scope="module")
def new_film():
    """A film of its own."""
    rng = np.random.default_rng(9)
    return drawn_film(rng, look(rng))


def encoded_again(drawn):
    """Return a film of the same pictures, and of features as another encoding would give them."""
    features = np.random.default_rng(1).normal(size=drawn.features.shape)
    return Drawn(drawn.pictures, features.astype(np.float32))


def test_a_store_without_signatures_beside_one_with_them_is_named(model, films, new_film, tmp_path):
    """A copy of film c that was encoded again is scored together with a new film, which has a signature."""
    copy = make_sealed_store(tmp_path, "copy", {"copy": encoded_again(films["c"])}, with_pictures=False)
    new = make_sealed_store(tmp_path, "new", {"new": new_film}, with_pictures=True)

    result = om.predict(model, [copy, new])

    assert not result.has("trained_on").any()
    assert "no signature is in copy" in result.recognition.why_no_pictures


def test_a_film_whose_signature_is_in_another_store_needs_none(model, films, tmp_path):
    """Models of several modalities read stores of the same films, of which one has the signatures."""
    copy = {"copy": encoded_again(films["c"])}
    seen = make_sealed_store(tmp_path, "seen", copy, with_pictures=True)
    heard = make_sealed_store(tmp_path, "heard", copy, with_pictures=False)

    recognition = recognise(model.card, model.training, [seen, heard])

    assert recognition.films["copy"].trained_as == "c"
    assert recognition.why_no_pictures == ""


def test_signatures_on_a_server_are_said_to_be_there(model, films, tmp_path):
    """They are not read, as that takes long; another extraction, which was advised, would not help."""
    pytest.importorskip("obstore")
    make_sealed_store(tmp_path, "copy", {"copy": encoded_again(films["c"])}, with_pictures=True)

    with serving(tmp_path) as server:
        result = om.predict(model, of.open_store(f"{server.url}/copy-1.0.0"))

    reason = result.recognition.why_no_pictures
    assert "pull copy" in reason
    assert "no signature" not in reason
