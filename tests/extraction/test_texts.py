"""`obygaze extract` of texts: staged, journalled, killed, resumed and sealed as clips are."""

import json
import signal
import time

import numpy as np
import pytest

from obygaze_features.backbones import load_text_backbone
from obygaze_features.backbones.backbone import TextBackbone, Tokens
from obygaze_features.extraction.texts import TextJob, estimate_texts, run_texts
from obygaze_features.manifest import TextList
from obygaze_features.store import open_store, read_stage, verify
from tests.lazy_import import lazy_import
from tests.store.toy_stores import seal_stage_of
from tests.tiny_checkpoints import LIMIT, tiny_text_checkpoint

from .conftest import begin_stage, last_report

torch = lazy_import("torch")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")

WORDS = ("man", "hat", "sad", "of", "a", "cat")
LONG = "a sad man of a sad man of a sad man of a sad man"
"""A text of more tokens than the tiny networks take."""


@pytest.fixture(scope="module")
def weights_of(tmp_path_factory):
    """Name of a text backbone -> the folder of a tiny network for it."""
    folder = tmp_path_factory.mktemp("texts")
    return {name: tiny_text_checkpoint(name, folder / name) for name in ("clip", "sentence")}


@pytest.fixture(scope="module")
def sentence(weights_of):
    """The text backbone `sentence` with the tiny network."""
    return load_text_backbone("sentence", weights=str(weights_of["sentence"]), compute=Compute(device="cpu"))


def make_texts_with_a_long_one(count):
    """Make texts of one to three words in a mixed order, and before them one that is too long."""
    rng = np.random.default_rng(0)
    rows = [("long", LONG)]
    for number in range(count - 1):
        n_words = 1 + number % 3
        rows.append((f"t{number:03}", " ".join(rng.choice(WORDS, n_words))))
    return TextList(tuple(rows))


def extract(text_list, backbones, store, batch_size):
    """Extract texts into the stage of a store; gives the last report."""
    job = TextJob(text_list, "texts", backbones)
    stage = begin_stage(job, store)
    return last_report(run_texts(job, stage, stage.missing(), batch_size=batch_size))


def extract_and_seal(text_list, backbones, store, batch_size=64):
    """Extract texts into a store, and open it."""
    extract(text_list, backbones, store, batch_size)
    return open_store(seal_stage_of(store, licence="CC0-1.0"))


def test_texts_that_are_too_long_are_reported_as_partial(sentence, tmp_path):
    """The first of 40 texts has more tokens than the network takes, and is cut."""
    forty_texts = make_texts_with_a_long_one(40)

    report = extract(forty_texts, (sentence,), tmp_path / "texts", batch_size=64)

    assert report.ok == 39
    assert report.partial == 1
    assert report.failed == 0


@pytest.mark.long
def test_the_vector_of_a_text_is_that_of_the_text_alone_whatever_the_batches_and_their_order(
    sentence, tmp_path
):
    """Forty texts are extracted in batches of 64, 1 and 7, and backwards in batches of 5.

    Stores with one fingerprint have the same bytes.
    """
    text_list = make_texts_with_a_long_one(40)
    reversed_list = TextList(text_list.rows[::-1])

    store = extract_and_seal(text_list, (sentence,), tmp_path / "64", batch_size=64)
    one_by_one = extract_and_seal(text_list, (sentence,), tmp_path / "1", batch_size=1)
    seven_at_once = extract_and_seal(text_list, (sentence,), tmp_path / "7", batch_size=7)
    backwards = extract_and_seal(reversed_list, (sentence,), tmp_path / "backwards", batch_size=5)

    assert one_by_one.fingerprint == store.fingerprint
    assert seven_at_once.fingerprint == store.fingerprint
    for name, text in text_list.rows:
        (tokens,) = sentence.tokenize([text])
        (vector_of_text_alone,) = sentence.encode(np.array([tokens.ids]))
        assert np.array_equal(store["sentence"].read(name, "pooled"), vector_of_text_alone)
        assert np.array_equal(backwards["sentence"].read(name, "pooled"), vector_of_text_alone)


def test_two_text_backbones_share_a_store_and_each_says_where_it_cut_a_text(weights_of, sentence, tmp_path):
    """A network divides a text into tokens, parts of words, each network in its own way, and takes so many.

    One of five texts is too long for both networks: its remark says at which token each has cut it.
    """
    clip = load_text_backbone("clip-text", weights=str(weights_of["clip"]), compute=Compute(device="cpu"))

    store = extract_and_seal(make_texts_with_a_long_one(5), (clip, sentence), tmp_path / "both")

    assert store.names == ("clip-text", "sentence")
    assert store["clip-text"].text == store["sentence"].text
    (tokens_of_clip,) = clip.tokenize([LONG])
    (tokens_of_sentence,) = sentence.tokenize([LONG])
    (long_text,) = [text for text in store.clips if text.clip_id == "long"]
    assert long_text.reason == (
        f"clip-text: cut at {LIMIT} of {tokens_of_clip.n_tokens} tokens; "
        f"sentence: cut at {LIMIT} of {tokens_of_sentence.n_tokens} tokens"
    )
    assert verify(store.path, "full").ok


@pytest.fixture
def odd_backbone():
    """A text backbone of letters that has no token for "?", and whose vector of "bad" is not a number."""
    longest = 9

    def tokenize(texts):
        tokens_of_texts = []
        for text in texts:
            letters = () if text == "?" else tuple(ord(letter) for letter in text)
            tokens_of_texts.append(Tokens(letters, len(text), longest))
        return tokens_of_texts

    def encode(batch):
        vectors = np.ones((len(batch), 2), np.float32)
        bad = [ord(letter) for letter in "bad"]
        is_bad = (batch[:, :3] == bad).all(axis=1)
        vectors[is_bad] = np.nan
        return vectors

    provenance = {
        "head": None,
        "layer": None,
        "hub": None,
        "weights_sha256": None,
        "architecture": {},
        "compute": {"dtype": "float32", "autocast": None, "attention": None, "tf32": False, "device": "cpu"},
        "licence": "CC0-1.0",
        "citation": "",
    }
    return TextBackbone("odd", width=2, tokenize=tokenize, encode=encode, provenance=provenance)


def test_a_text_without_tokens_or_with_a_broken_vector_has_failed(odd_backbone, tmp_path):
    """The backbone has no token for "?", and its vector of "bad" is not a number."""
    text_list = TextList((("a", "good"), ("b", "?"), ("c", "bad")))

    store = extract_and_seal(text_list, (odd_backbone,), tmp_path / "odd")

    assert [(clip.status, clip.reason) for clip in store.clips] == [
        ("ok", ""),
        ("failed", "odd has no token for this text"),
        ("failed", "odd gave values that are not finite in 'pooled'"),
    ]
    assert store["odd"].text == ("good", "?", "bad")


@pytest.fixture
def sentence_command(weights_of, tmp_path, monkeypatch):
    """Make the words that extract 300 texts, one of them too long, into a store by batches of a size."""
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)  # a kill is not a power cut
    lines = [f"{name},{text}\n" for name, text in make_texts_with_a_long_one(300).rows]
    (tmp_path / "prompts.csv").write_text("".join(["text_id,text\n", *lines]), encoding="utf-8")

    def command(store, batch_size):
        words = ["extract", "prompts.csv", store, "--batch-size", batch_size, "--backbone", "sentence"]
        return [*words, "--weights", weights_of["sentence"], "--device", "cpu", "--licence", "CC0-1.0"]

    return command


@pytest.mark.long
@pytest.mark.nightly
def test_a_killed_extraction_of_texts_resumes_to_the_same_store(
    sentence_command, obygaze, stop_by, file_digests, tmp_path
):
    """Of 300 texts one is too long, and cut: it is partial. The run is killed when at most 280 are done.

    A second run does the rest. Its store is that of a run which nobody killed, although the three runs take
    2, 7 and 64 texts at once.
    """
    stop_by(signal.SIGKILL, tmp_path, 280, *sentence_command("killed", batch_size=2))
    n_done_before = len(read_stage(tmp_path / "killed.staging").status())
    assert 0 < n_done_before <= 280

    resumed = obygaze(tmp_path, *sentence_command("killed", batch_size=7), "--json")
    assert resumed.returncode == 0, resumed.stderr
    result = json.loads(resumed.stdout)
    assert result["clips"] == {"ok": 299, "partial": 1, "failed": 0, "left": 0}
    assert result["run"]["clips"] == 300 - n_done_before

    whole = obygaze(tmp_path, *sentence_command("whole", batch_size=64))
    assert whole.returncode == 0
    assert file_digests(tmp_path / "killed-1.0.0") == file_digests(tmp_path / "whole-1.0.0")


@pytest.mark.long
def test_stores_of_texts_do_not_depend_on_the_number_of_threads(
    sentence_command, obygaze, file_digests, tmp_path
):
    """The texts are extracted twice, the second time with one thread of PyTorch more."""
    n_threads = torch.get_num_threads()
    assert obygaze(tmp_path, *sentence_command("as-it-is", 64)).returncode == 0

    torch.set_num_threads(n_threads + 1)
    try:
        assert obygaze(tmp_path, *sentence_command("one-more", 64)).returncode == 0
    finally:
        torch.set_num_threads(n_threads)

    assert file_digests(tmp_path / "as-it-is-1.0.0") == file_digests(tmp_path / "one-more-1.0.0")


def test_two_shards_of_texts_make_one_store(weights_of, obygaze, tmp_path):
    """20 texts are divided into a piece of 16, which is shard 0 of 2, and one of 4, which is shard 1.

    Before anything is done, a dry run of shard 0 counts its 16 texts. Then shard 1 is extracted: of all texts
    16 are left, but a dry run of shard 1 says that it has nothing to do. Then shard 0 is extracted, which
    leaves none, and the store has all texts.
    """
    captions = ["a man", "a woman", "a sad man", *["a hat"] * 17]
    (tmp_path / "captions.txt").write_text("\n".join([*captions, ""]), encoding="utf-8")
    command = (
        "extract",
        "captions.txt",
        "captions",
        "--backbone",
        "clip-text",
        "--weights",
        weights_of["clip"],
    )

    dry_run = obygaze(tmp_path, *command, "--shard", "0/2", "--dry-run", "--json")
    assert json.loads(dry_run.stdout)["texts"] == 16

    second_shard = obygaze(tmp_path, *command, "--shard", "1/2", "--json")
    assert json.loads(second_shard.stdout)["clips"]["left"] == 16, second_shard.stderr
    done = obygaze(tmp_path, *command, "--shard", "1/2", "--dry-run").stdout
    assert done == "nothing to do: every text of shard 1/2 is done\n"
    first_shard = obygaze(tmp_path, *command, "--shard", "0/2", "--json")
    assert json.loads(first_shard.stdout)["clips"]["left"] == 0, first_shard.stderr

    seal_stage_of(tmp_path / "captions", licence="CC0-1.0")
    assert open_store(tmp_path / "captions")["clip-text"].text == tuple(captions)


def let_all_trials_take(seconds, monkeypatch):
    """Let the clock be asked twice, before and after all trials, with so many seconds between."""
    clock = iter((0.0, seconds))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))


@pytest.mark.parametrize(("n_texts", "n_tried"), [(0, 0), (1, 1), (16, 16), (40, 16)])
def test_an_estimate_expects_for_each_text_the_time_that_a_tried_one_has_taken(
    sentence, monkeypatch, n_texts, n_tried
):
    """For an estimate up to 16 texts are tried, which by a pretended clock take half a second each.

    So all `n_texts` are expected to take half a second each; without any text no time is stated. The first
    text is too long for the network and would be cut, which is counted too. The features of a text take
    `sentence.width` numbers of four bytes.
    """
    texts = make_texts_with_a_long_one(40)
    text_ids = [text_id for text_id, _text in texts.rows][:n_texts]
    let_all_trials_take(0.5 * n_tried, monkeypatch)

    estimate = estimate_texts(TextJob(texts, "texts", (sentence,)), text_ids)

    assert estimate.texts == n_texts
    assert estimate.tried == n_tried
    assert estimate.cut == min(n_texts, 1)
    assert estimate.feature_bytes == 4 * sentence.width * n_texts
    if n_texts == 0:
        assert estimate.seconds is None
    else:
        assert estimate.seconds == 0.5 * n_texts
