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


class Rendered:
    """In place of a cache of decoded clips: every pattern drawn once."""

    def __init__(self, rng):
        self.clips = {str(n): np.stack([picture(n, rng) for _ in range(FRAMES)]) for n in range(PATTERNS)}

    def read(self, clip_id):
        return self.clips[clip_id]


class Lesson:
    """A network at step 0, with a corpus of 16 clips to learn and other renderings of them to find."""

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
        self.seen, self.unseen = (Pairs(names, ids, Rendered(self.rng), FRAMES) for _ in range(2))

    def learn(self, steps, *, rate, scale, deal=False):
        """Take steps and return their losses; `deal` gives the clips other captions in each step."""
        batch = self.seen.batch(range(PATTERNS))
        batches = [batch] * steps
        if deal:
            orders = [torch.from_numpy(self.rng.permutation(PATTERNS)) for _ in batches]
            batches = [Batch(batch.frames, batch.mask, batch.ids[order]) for order in orders]
        rates = {"rate": rate, "scale": scale, "total": steps}
        return learn(self.network, self.size, batches, PATTERNS, **rates)[0]

    def recall(self, pairs):
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
def test_a_planted_corpus_is_learnt_and_found_in_new_renderings(clip, seed):
    """Each of 16 clips shows a pattern, which its caption names; the patterns are drawn anew for the test.

    In both directions, from caption to clip and back, 25 % at most are found before training, and all after.
    """
    lesson = Lesson(clip, seed)
    assert max(lesson.recall(lesson.unseen)) <= 25

    losses = lesson.learn(100, rate=3e-4, scale=1.0)

    assert losses[-1] < 0.1
    assert lesson.recall(lesson.unseen) == [100, 100]


@pytest.mark.parametrize("seed", SEEDS)
def test_captions_dealt_anew_in_every_step_teach_nothing(clip, seed):
    """Each of 16 clips gets another clip's caption in each of 30 steps, so that there is nothing to learn.

    Who guesses one of 16 has the loss log 16. Of clips not trained on, captions find 25 % at most.
    """
    lesson = Lesson(clip, seed)

    losses = lesson.learn(30, rate=3e-4, scale=1.0, deal=True)

    loss_of_guessing = math.log(16)
    assert losses[-1] == pytest.approx(loss_of_guessing, abs=0.1)
    per_cent_found = lesson.recall(lesson.unseen)
    assert max(per_cent_found) <= 25
