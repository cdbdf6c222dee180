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
def said(oracle):
    return json.loads((oracle.folder / "data_order.json").read_text())


def global_batch(samples_by_process):
    """The samples of a step as one batch: the first of each process, then the second of each, and so on."""
    return [sample for of_each_process in zip(*samples_by_process, strict=True) for sample in of_each_process]


def test_full_batches_are_the_originals_whatever_the_number_of_processes(said):
    for case in said["order"]:
        order = samples.epoch_order(case["samples"], case["epoch"])
        size = case["processes"] * case["batch_per_process"]
        n_full = samples.steps_of_an_epoch(case["samples"], size)
        ours = [order[size * step : size * (step + 1)] for step in range(n_full)]
        assert ours == [global_batch(by_process) for by_process in case["batches"][:n_full]]


def test_a_batch_that_the_original_fills_up_with_repeated_samples_is_left_out_here(said):
    """Where processes share samples unevenly, the original has a batch more, which begins with those left."""
    n_filled_up = 0
    for case in said["order"]:
        order = samples.epoch_order(case["samples"], case["epoch"])
        size = case["processes"] * case["batch_per_process"]
        n_full = samples.steps_of_an_epoch(case["samples"], size)
        left = order[size * n_full :]
        assert len(left) < size
        if case["steps"] > n_full:
            (filled_up,) = case["batches"][n_full:]
            assert global_batch(filled_up)[: len(left)] == left
            n_filled_up += 1
    assert n_filled_up == 6


def test_frames_kept_are_the_originals(said):
    for sampled, expected in said["frames_of_n"].items():
        assert kept_frames(int(sampled), 12).tolist() == expected


def test_captions_are_mended_before_they_are_cut_into_tokens():
    assert tokenizers.clean_caption("  A man &amp;amp; a\twoman ") == "a man & a woman"
    assert tokenizers.clean_caption("cafÃ© “quoted”") == 'café "quoted"'


def test_start_end_filling_and_cut(clip):
    tokenizer = tokenizers.CaptionTokenizer(find_weights(clip), vocabulary=len(VOCABULARY), max_words=6)
    words = {word: number for number, word in enumerate(VOCABULARY)}
    start = len(VOCABULARY) - 2
    end = len(VOCABULARY) - 1
    ids = tokenizer.ids(["The red disc", "SOMEONE shows the red disc ."])
    assert ids[0].tolist() == [start, words["the"], words["red"], words["disc"], end, 0]
    assert ids[1].tolist() == [start, *(words[w] for w in ("someone", "shows", "the", "red")), end]
    assert tokenizer.ids([]).shape == (0, 6)


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


def test_tokens_are_the_originals(said, real_tokenizer):
    captions = said["tokens"]
    assert len(captions) == 12
    ids = real_tokenizer.ids([caption["text"] for caption in captions])
    assert np.array_equal(ids, [caption["ids"] for caption in captions])
