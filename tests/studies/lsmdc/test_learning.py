"""What a training learns: a planted corpus, and nothing where captions are dealt anew (checks 10 and 11).

Long: hundreds of steps. They alone show that the steps, each of which has the original's numbers, learn.
"""

import math

import numpy as np
import pytest

from obygaze_features.backbones.weights import find_weights
from tests.lazy_import import lazy_import

from .corpus import PATTERNS, VOCABULARY, caption, picture
from .three_steps import learn, network_of

torch = lazy_import("torch")
CaptionTokenizer = lazy_import("obygaze_features.backbones.tokenizer", "CaptionTokenizer")
LsmdcFormat = lazy_import("obygaze_features.backbones.xclip_lsmdc_network", "LsmdcFormat")
Processes = lazy_import("obygaze_studies.lsmdc.execution", "Processes")
plan = lazy_import("obygaze_studies.lsmdc.plan")
evaluate = lazy_import("obygaze_studies.lsmdc.retrieval", "evaluate")
Pairs = lazy_import("obygaze_studies.lsmdc.samples", "Pairs")
Batch = lazy_import("obygaze_studies.lsmdc.step", "Batch")

pytestmark = pytest.mark.long

SEEDS = [0, pytest.param(1, marks=pytest.mark.nightly)]  # training takes seconds: the second one by night

FRAMES = 2
WORDS = 8


class DrawnClips:
    """Clips that are drawn, in place of a cache of decoded videos: one of each of 16 patterns."""

    def __init__(self, rng):
        self.clips = {str(n): np.stack([picture(n, rng) for _ in range(FRAMES)]) for n in range(PATTERNS)}

    def read(self, clip_id):
        return self.clips[clip_id]


class Lesson:
    """A network at step 0, with 16 clips to learn and 16 others to find, each with a caption.

    Attributes
    ----------
    network
        A tiny CLIP with a temporal transformer, which `learn` trains.
    seen, unseen
        The clips that it learns, and clips of the same 16 patterns and captions, but drawn anew.
    """

    def __init__(self, clip, seed=0):
        weights = find_weights(clip)
        tensors = plan.initial_tensors(
            "clip", plan.load_clip(weights), temporal_layers=1, max_frames=FRAMES, max_words=WORDS
        )
        self.size = LsmdcFormat.of("clip", tensors)
        self.start = tensors
        self.network = network_of(self.size, tensors)
        self.rng = np.random.default_rng(seed)
        tokenizer = CaptionTokenizer(weights, vocabulary=len(VOCABULARY), max_words=WORDS)
        ids = tokenizer.ids([caption(number) for number in range(PATTERNS)])
        names = tuple(map(str, range(PATTERNS)))
        self.seen = Pairs(names, ids, DrawnClips(self.rng), FRAMES)
        self.unseen = Pairs(names, ids, DrawnClips(self.rng), FRAMES)

    def learn(self, steps, *, captions_are_exchanged):
        """Train for so many steps on the 16 clips at once, and return the losses of the steps.

        If captions are exchanged, each step gives the clips each other's captions in a new random order.
        """
        batch = self.seen.batch(range(PATTERNS))
        batches = [batch] * steps
        if captions_are_exchanged:
            orders = [torch.from_numpy(self.rng.permutation(PATTERNS)) for _ in batches]
            batches = [Batch(batch.frames, batch.mask, batch.ids[order]) for order in orders]
        rates = {"rate": 3e-4, "scale": 1.0, "total": steps}  # CLIP's tensors learn as fast as others
        losses, *_ = learn(self.network, self.size, batches, PATTERNS, **rates)
        return losses

    def per_cent_found(self, pairs):
        """Return in per cent how often a caption finds its clip first, and a clip its caption."""
        run = evaluate(
            self.network,
            pairs,
            torch.device("cpu"),
            processes=Processes(),
            arithmetic="float32",
            progress=lambda _, __: None,
        )
        return [run["tie_safe"][direction]["mean"]["R@1"] for direction in run["tie_safe"]]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_network_that_has_learnt_16_captioned_clips_finds_new_clips_of_the_same_kind(clip, seed):
    """Each of 16 clips shows a pattern, which its caption names. 100 steps are trained on them.

    Then a caption is to find its clip first among 16 other clips, of the same patterns but drawn anew, and a
    clip its caption. By chance 1 in 16 is found, some 6 %: before the training 25 % at most, after it all.
    """
    lesson = Lesson(clip, seed)
    assert max(lesson.per_cent_found(lesson.unseen)) <= 25

    losses = lesson.learn(100, captions_are_exchanged=False)

    assert losses[-1] < 0.1
    caption_to_clip, clip_to_caption = lesson.per_cent_found(lesson.unseen)
    assert caption_to_clip == 100
    assert clip_to_caption == 100


@pytest.mark.parametrize("seed", SEEDS)
def test_a_network_learns_nothing_from_captions_that_are_exchanged_in_every_step(clip, seed):
    """16 clips get each other's captions in a new order in each of 30 steps: there is nothing to learn.

    The loss stays that of guessing one of 16, log 16. Of 16 clips that were not trained on, a caption finds
    its own first in 25 % of the cases at most; by chance it is 1 in 16, some 6 %.
    """
    lesson = Lesson(clip, seed)

    losses = lesson.learn(30, captions_are_exchanged=True)

    loss_of_guessing = math.log(16)
    assert losses[-1] == pytest.approx(loss_of_guessing, abs=0.1)
    assert max(lesson.per_cent_found(lesson.unseen)) <= 25
