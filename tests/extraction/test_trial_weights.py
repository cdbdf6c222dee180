"""A run can be sized before its weights are fetched: a network costs the same whatever they are."""

import pytest

from obygaze_features.backbones import load_text_backbone, weights
from obygaze_features.extraction import trial_weights
from obygaze_features.extraction.job import Recipe
from obygaze_features.extraction.trial_weights import with_untrained_networks


@pytest.fixture
def cache(monkeypatch):
    """A cache that has the usual weights of `clip` alone."""
    monkeypatch.setattr(trial_weights, "is_cached", lambda name: name == weights.HUB["clip"])


@pytest.mark.usefixtures("cache")
def test_a_trial_takes_random_weights_where_the_usual_ones_are_absent_with_a_note():
    notes: list[str] = []
    asked = (Recipe("xclip", 32, {"tokens": "none"}), Recipe("clip"), Recipe("descriptors"))
    tried = with_untrained_networks(asked, notes.append)
    assert tried == (Recipe("xclip", 32, {"tokens": "none", "weights": "random:0"}), *asked[1:])
    assert [note for note in notes if "xclip" in note and "random" in note] == notes != []


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", sorted(set(weights.HUB) - {"clip"}))
def test_a_trial_of_every_backbone_needs_no_usual_weights(name):
    [tried] = with_untrained_networks([Recipe(name)], lambda _: None)
    assert tried.options == ({} if weights.HUB[name] == weights.HUB["clip"] else {"weights": "random:0"})


def test_a_sentence_encoder_of_chance_is_as_large_as_the_usual_one():
    encoder = load_text_backbone("sentence", weights="random:0")
    [short, long] = encoder.tokenize(["a dog", "word " * 2000])
    assert encoder.width == 384
    assert (len(short.ids), len(long.ids), long.is_cut) == (3, 256, True)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("named", ["lab/other", "/nowhere", "random:3"])
def test_weights_that_were_named_are_never_replaced(named):
    recipe = Recipe("xclip", None, {"weights": named})
    assert with_untrained_networks([recipe], pytest.fail) == (recipe,)
