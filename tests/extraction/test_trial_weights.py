"""A run can be sized before its weights are fetched: a network costs the same whatever they are."""

import pytest

from obygaze_features.backbones import load_text_backbone, weights
from obygaze_features.extraction import trial_weights
from obygaze_features.extraction.job import Recipe
from obygaze_features.extraction.trial_weights import with_untrained_networks


@pytest.fixture
def weights_of_clip_are_cached(monkeypatch):
    """Of the weights that networks have by default, only those of `clip` are on this machine."""
    monkeypatch.setattr(trial_weights, "is_cached", lambda name: name == weights.HUB["clip"])


@pytest.mark.usefixtures("weights_of_clip_are_cached")
def test_a_trial_of_a_network_without_its_weights_uses_random_ones_and_notes_it():
    """Of three backbones, `clip` has its weights on this machine, `xclip` lacks them, `descriptors` has none.

    Other options of `xclip` stay.
    """
    notes: list[str] = []
    xclip = Recipe("xclip", n_frames=32, options={"tokens": "none"})
    clip = Recipe("clip")
    descriptors = Recipe("descriptors")

    recipes_of_trial = with_untrained_networks((xclip, clip, descriptors), notes.append)

    untrained_xclip = Recipe("xclip", n_frames=32, options={"tokens": "none", "weights": "random:0"})
    assert recipes_of_trial == (untrained_xclip, clip, descriptors)
    (note,) = notes
    assert "xclip" in note
    assert "random" in note


BACKBONES_WITHOUT_WEIGHTS = sorted(name for name, hub in weights.HUB.items() if hub != weights.HUB["clip"])
"""Networks by default weights that are not on the machine of `weights_of_clip_are_cached`."""


@pytest.mark.usefixtures("weights_of_clip_are_cached")
@pytest.mark.parametrize("name", BACKBONES_WITHOUT_WEIGHTS)
def test_every_network_whose_default_weights_are_not_here_is_tried_with_random_ones(name):
    """For an estimate of time, networks are tried, and nothing may be downloaded for that.

    On the machine (which is pretended) only the weights of `clip` are cached. `name` is any backbone that has
    other weights by default.
    """

    def ignore_note(_note):
        pass

    [recipe] = with_untrained_networks([Recipe(name)], ignore_note)

    assert recipe.options == {"weights": "random:0"}


@pytest.mark.long
def test_a_sentence_encoder_of_random_weights_is_as_large_as_the_usual_one():
    """The usual one, all-MiniLM-L6-v2, has vectors of 384 numbers and takes up to 256 tokens."""
    encoder = load_text_backbone("sentence", weights="random:0")

    [two_words, two_thousand_words] = encoder.tokenize(["a dog", "word " * 2000])

    assert encoder.width == 384
    assert len(two_thousand_words.ids) == 256
    assert two_thousand_words.is_cut
    assert len(two_words.ids) == 3  # one for each word, and one for the end


@pytest.mark.usefixtures("weights_of_clip_are_cached")
@pytest.mark.parametrize("named_weights", ["lab/other", "/nowhere", "random:3"])
def test_weights_that_were_named_are_never_replaced(named_weights):
    """Whoever names weights wants these; only weights by default are replaced for a trial, with a note."""
    recipe = Recipe("xclip", n_frames=None, options={"weights": named_weights})
    fail_at_a_note = pytest.fail

    recipes_of_trial = with_untrained_networks([recipe], fail_at_a_note)

    assert recipes_of_trial == (recipe,)
