"""The order of the samples, and the tokens of the captions (check 8)."""

import gzip
import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.backbones.weights import Weights, find_weights
from obygaze_features.errors import BackboneError
from obygaze_studies.lsmdc.frame_cache import kept_frames
from tests.lazy_import import lazy_import

from .corpus import VOCABULARY

tokenizers = lazy_import("obygaze_features.backbones.tokenizer")
samples = lazy_import("obygaze_studies.lsmdc.samples")


@pytest.fixture(scope="module")
def original(oracle):
    """What the original code gave: orders of samples, frames kept, and tokens of captions."""
    return json.loads((oracle.folder / "data_order.json").read_text())


def global_batch(samples_by_process):
    """The samples of a step as one batch: the first of each process, then the second of each, and so on."""
    return [sample for of_each_process in zip(*samples_by_process, strict=True) for sample in of_each_process]


def batches_and_rest(case):
    """Cut the order of an epoch into full batches, and the samples that are left and fill no batch."""
    order = samples.epoch_order(case["samples"], case["epoch"])
    size = case["processes"] * case["batch_per_process"]
    n_full = samples.steps_of_an_epoch(case["samples"], size)
    return [order[size * step : size * (step + 1)] for step in range(n_full)], order[size * n_full :]


def test_full_batches_are_the_originals_whatever_the_number_of_processes(original):
    for case in original["order"]:
        batches, _ = batches_and_rest(case)
        batches_of_original = [global_batch(by_process) for by_process in case["batches"][: len(batches)]]
        assert batches == batches_of_original


def test_samples_that_fill_no_batch_are_left_out(original):
    """The samples at the end of an epoch that fill no batch are not trained on.

    The original trains on them: its last batch begins with them, and is filled with samples of the epoch's
    beginning, which it so sees twice. In 6 of the recorded cases there is such a batch.
    """
    n_cases_with_such_a_batch = 0
    for case in original["order"]:
        batches, rest = batches_and_rest(case)
        if case["steps"] == len(batches):
            continue
        n_cases_with_such_a_batch += 1
        assert case["steps"] == len(case["batches"]) == len(batches) + 1
        last_batch = global_batch(case["batches"][-1])
        assert last_batch[: len(rest)] == rest

    assert n_cases_with_such_a_batch == 6


def test_frames_kept_are_the_originals(original):
    for sampled, expected in original["frames_of_n"].items():
        assert kept_frames(int(sampled), max_frames=12).tolist() == expected


def test_captions_are_mended_before_they_are_cut_into_tokens():
    assert tokenizers.clean_caption("  A man &amp;amp; a\twoman ") == "a man & a woman"
    assert tokenizers.clean_caption("cafÃ© “quoted”") == 'café "quoted"'


NUMBER_OF = {word: number for number, word in enumerate(VOCABULARY)}
START, END = len(VOCABULARY) - 2, len(VOCABULARY) - 1


def test_a_short_caption_is_followed_by_zeros_and_a_long_one_cut_before_the_end_token(clip):
    """A tokenizer of six tokens a caption, the first and last of its words included."""
    weights = find_weights(clip)
    tokenizer = tokenizers.CaptionTokenizer(weights, vocabulary=len(VOCABULARY), max_words=6)
    short, long = tokenizer.ids(["The red disc", "SOMEONE shows the red disc ."]).tolist()
    assert short == [START, NUMBER_OF["the"], NUMBER_OF["red"], NUMBER_OF["disc"], END, 0]
    first_four = [NUMBER_OF[word] for word in ("someone", "shows", "the", "red")]
    assert long == [START, *first_four, END]
    assert tokenizer.ids([]).shape == (0, 6)
    with pytest.raises(BackboneError, match="49408"):  # the vocabulary of another network
        tokenizers.CaptionTokenizer(weights, vocabulary=49408, max_words=32)


def characters_of_bytes():
    """The character by which CLIP's vocabulary writes each of the 256 bytes, in the order of their tokens.

    A byte that Latin-1 prints is written as itself; the 68 others (blanks, controls and the soft hyphen) are
    written as the characters from number 256 on. The printed ones come first.
    """
    printed = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    n_others = 256 - len(printed)
    return [chr(number) for number in [*printed, *range(256, 256 + n_others)]]


CLIP_TOKENS = 49_408
N_MERGES = CLIP_TOKENS - 2 * 256 - 2
"""CLIP's tokens are each byte inside a word and at its end, each merge of two tokens, and two marks."""


@pytest.fixture(scope="module")
def real_tokenizer(tmp_path_factory):
    """CLIP's own tokenizer, made of the list of merges that the package open_clip carries."""
    package = find_spec("open_clip")
    if package is None or package.origin is None:
        pytest.skip("no open_clip, which carries CLIP's vocabulary")
    path = Path(package.origin).parent / "bpe_simple_vocab_16e6.txt.gz"
    _heading, *lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    merges = lines[:N_MERGES]

    inside_a_word = characters_of_bytes()
    at_the_end_of_a_word = [f"{character}</w>" for character in inside_a_word]
    merged = [merge.replace(" ", "") for merge in merges]  # "t h" makes "th"
    tokens = [*inside_a_word, *at_the_end_of_a_word, *merged, "<|startoftext|>", "<|endoftext|>"]

    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    (folder / "config.json").write_text('{"model_type": "clip"}')
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "CLIPTokenizer"}')
    return tokenizers.CaptionTokenizer(Weights(folder=folder), vocabulary=CLIP_TOKENS, max_words=32)


@pytest.mark.long
def test_tokens_are_the_originals(original, real_tokenizer):
    captions = original["tokens"]
    assert len(captions) == 12
    ids = real_tokenizer.ids([caption["text"] for caption in captions])
    assert np.array_equal(ids, [caption["ids"] for caption in captions])
