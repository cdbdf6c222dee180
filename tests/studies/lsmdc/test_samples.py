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
from tests.later import later

from .corpus import VOCABULARY

tokenizers = later("obygaze_features.backbones.tokenizer")
samples = later("obygaze_studies.lsmdc.samples")


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
    """The original's last batch begins with the samples that are left; the others of it are repeated."""
    cases_with_repeated_samples = 0
    for case in original["order"]:
        batches, rest = batches_and_rest(case)
        if case["steps"] > len(batches):
            (last_batch_by_process,) = case["batches"][len(batches) :]
            assert global_batch(last_batch_by_process)[: len(rest)] == rest
            cases_with_repeated_samples += 1

    assert cases_with_repeated_samples == 6


def test_frames_kept_are_the_originals(original):
    for sampled, expected in original["frames_of_n"].items():
        assert kept_frames(int(sampled), 12).tolist() == expected


def test_captions_are_mended_before_they_are_cut_into_tokens():
    assert tokenizers.clean_caption("  A man &amp;amp; a\twoman ") == "a man & a woman"
    assert tokenizers.clean_caption("cafÃ© “quoted”") == 'café "quoted"'


@pytest.fixture
def tokenizer_of_six(clip):
    """A tokenizer of six tokens a caption, the first and last of its words included."""
    return tokenizers.CaptionTokenizer(find_weights(clip), vocabulary=len(VOCABULARY), max_words=6)


NUMBER_OF = {word: number for number, word in enumerate(VOCABULARY)}
START, END = len(VOCABULARY) - 2, len(VOCABULARY) - 1


def test_a_short_caption_is_followed_by_zeros(tokenizer_of_six):
    (ids,) = tokenizer_of_six.ids(["The red disc"])
    assert ids.tolist() == [START, NUMBER_OF["the"], NUMBER_OF["red"], NUMBER_OF["disc"], END, 0]


def test_a_long_caption_is_cut_before_the_end_token(tokenizer_of_six):
    (ids,) = tokenizer_of_six.ids(["SOMEONE shows the red disc ."])
    first_four = [NUMBER_OF[word] for word in ("someone", "shows", "the", "red")]
    assert ids.tolist() == [START, *first_four, END]


def test_no_captions_have_no_tokens(tokenizer_of_six):
    assert tokenizer_of_six.ids([]).shape == (0, 6)


def test_a_tokenizer_of_another_network_is_refused(clip):
    with pytest.raises(BackboneError, match="49408"):
        tokenizers.CaptionTokenizer(find_weights(clip), vocabulary=49408, max_words=32)


@pytest.fixture(scope="module")
def real_tokenizer(tmp_path_factory):
    """CLIP's own vocabulary, of which the package open_clip carries a copy."""
    package = find_spec("open_clip")
    if package is None or package.origin is None:
        pytest.skip("no open_clip, which carries CLIP's vocabulary")
    path = Path(package.origin).parent / "bpe_simple_vocab_16e6.txt.gz"
    merges = gzip.decompress(path.read_bytes()).decode().split("\n")[1 : 49152 - 256 - 2 + 1]
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = [chr(byte) for byte in shown] + [chr(256 + place) for place in range(len(hidden))]
    pieces = [*letters, *(f"{letter}</w>" for letter in letters), *("".join(pair.split()) for pair in merges)]
    pieces += ["<|startoftext|>", "<|endoftext|>"]
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    (folder / "config.json").write_text('{"model_type": "clip"}')
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "CLIPTokenizer"}')
    return tokenizers.CaptionTokenizer(Weights(folder=folder), vocabulary=49408, max_words=32)


@pytest.mark.long
def test_tokens_are_the_originals(original, real_tokenizer):
    captions = original["tokens"]
    assert len(captions) == 12
    ids = real_tokenizer.ids([caption["text"] for caption in captions])
    assert np.array_equal(ids, [caption["ids"] for caption in captions])
