"""The order of the samples, and the tokens of the captions (check 8)."""

import gzip
import json
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

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


class Epoch(NamedTuple):
    """An epoch as our code divides it: full batches, and the samples at its end that fill no batch."""

    full_batches: list[list[int]]
    left_out: list[int]


def our_epoch(case):
    """Divide an epoch into batches as our code does, for a number of samples, processes and batch size."""
    order = samples.epoch_order(case["samples"], case["epoch"])
    size = case["processes"] * case["batch_per_process"]
    n_full = samples.steps_of_an_epoch(case["samples"], size)
    full_batches = [order[size * step : size * (step + 1)] for step in range(n_full)]
    return Epoch(full_batches, left_out=order[size * n_full :])


def test_full_batches_are_those_of_the_original_code_whatever_the_number_of_processes(original):
    """The original code was run with several numbers of samples, processes and clips a batch.

    Recorded is the order of the samples of each process in an epoch. Our batches, which don't depend on the
    number of processes, must be those of all processes together, in the same order.
    """
    for case in original["order"]:
        full_batches = our_epoch(case).full_batches

        batches_of_original = [global_batch(samples_by_process) for samples_by_process in case["batches"]]
        assert full_batches == batches_of_original[: len(full_batches)]


def test_samples_that_fill_no_batch_are_left_out_where_the_original_code_repeats_others(original):
    """The original code makes a last batch of them, filled up with samples of the epoch's beginning.

    So it sees these twice. We have a step less, and the samples that we leave out are those with which the
    original's last batch begins. In 6 of the recorded cases there is such a batch; in the others, the
    original has as many steps as we have.
    """
    n_cases_with_such_a_batch = 0
    for case in original["order"]:
        full_batches, left_out = our_epoch(case)
        has_same_steps = case["steps"] == len(full_batches)
        if has_same_steps:
            continue
        n_cases_with_such_a_batch += 1
        assert case["steps"] == len(case["batches"]) == len(full_batches) + 1
        last_batch_of_original = global_batch(case["batches"][-1])
        assert last_batch_of_original[: len(left_out)] == left_out

    assert n_cases_with_such_a_batch == 6


def test_the_frames_that_are_kept_of_a_clip_are_those_of_the_original_code(original):
    """Of a clip of n sampled frames, 12 at most are kept. Recorded is which ones, for several n."""
    for n_sampled, expected in original["frames_of_n"].items():
        assert kept_frames(int(n_sampled), max_frames=12).tolist() == expected


def test_captions_are_mended_before_they_are_cut_into_tokens():
    """Captions from the web have doubly escaped characters, spaces, and UTF-8 that was read as Latin-1."""
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
def test_captions_are_cut_into_the_tokens_of_the_original_code(original, real_tokenizer):
    """The published training code cut 12 captions into tokens of CLIP, whose numbers were recorded."""
    recorded = original["tokens"]
    assert len(recorded) == 12

    ids = real_tokenizer.ids([caption["text"] for caption in recorded])

    assert np.array_equal(ids, [caption["ids"] for caption in recorded])
