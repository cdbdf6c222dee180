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


def test_a_copy_is_recognised_by_its_pictures_if_one_of_several_stores_has_their_signatures(
    model, films, tmp_path
):
    """A model of several modalities reads several stores of the same films, here "seen" and "heard".

    The film "copy" has the pictures of training film c, and features by which nobody knows it. One store has
    signatures of its pictures: that is enough, and no reason is given why pictures were not compared.
    """
    copy = {"copy": encoded_again(films["c"])}
    store_with_signatures = make_sealed_store(tmp_path, "seen", copy, with_pictures=True)
    store_without = make_sealed_store(tmp_path, "heard", copy, with_pictures=False)

    recognition = recognise(model.card, model.training, [store_with_signatures, store_without])

    assert recognition.films["copy"].trained_as == "c"
    assert recognition.why_no_pictures == ""


def test_of_signatures_in_a_store_on_a_server_it_is_said_that_they_must_be_pulled(model, films, tmp_path):
    """A store at an address has signatures of pictures, which are not read from there, as that takes long.

    The reason that is given must say to pull the store. To say that it has no signature would be untrue, and
    would send the person to extract them once more.
    """
    pytest.importorskip("obstore")
    make_sealed_store(tmp_path, "copy", {"copy": encoded_again(films["c"])}, with_pictures=True)

    with serving(tmp_path) as server:
        result = om.predict(model, of.open_store(f"{server.url}/copy-1.0.0"))

    reason = result.recognition.why_no_pictures
    assert "pull copy" in reason
    assert "no signature" not in reason
