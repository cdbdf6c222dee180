"""`obygaze extract` of texts: staged, journalled, killed, resumed and sealed as clips are."""

import json
import signal

import numpy as np
import pytest

from obygaze_features.backbones import load_text_backbone
from obygaze_features.backbones.backbone import TextBackbone, Tokens
from obygaze_features.extraction.texts import TextJob, run_texts
from obygaze_features.manifest import TextList
from obygaze_features.store import open_store, read_stage, seal, verify
from tests.later import later
from tests.tiny_checkpoints import LIMIT, tiny_text_checkpoint

from .conftest import begin_stage, last_report

torch = later("torch")
Compute = later("obygaze_features.backbones.compute", "Compute")

WORDS = ("man", "hat", "sad", "of", "a", "cat")
LONG = "a sad man of a sad man of a sad man of a sad man"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Name of a text backbone -> the folder of a tiny network for it."""
    folder = tmp_path_factory.mktemp("texts")
    return {name: tiny_text_checkpoint(name, folder / name) for name in ("clip", "sentence")}


@pytest.fixture(scope="module")
def sentence(folders):
    """The text backbone `sentence` with the tiny network."""
    return load_text_backbone("sentence", weights=str(folders["sentence"]), compute=Compute(device="cpu"))


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
    return open_store(seal(None, store, licence="CC0-1.0"))


def test_texts_that_are_too_long_are_reported_as_partial(sentence, tmp_path):
    """The first of 40 texts has more tokens than the network takes, and is cut."""
    report = extract(make_texts_with_a_long_one(40), (sentence,), tmp_path / "texts", batch_size=64)
    assert (report.ok, report.partial, report.failed) == (39, 1, 0)


@pytest.mark.long
def test_the_vector_of_a_text_is_that_of_the_text_alone_whatever_the_batches_and_their_order(
    sentence, tmp_path
):
    text_list = make_texts_with_a_long_one(40)
    store = extract_and_seal(text_list, (sentence,), tmp_path / "64", batch_size=64)
    for size in (1, 7):
        in_batches = extract_and_seal(text_list, (sentence,), tmp_path / str(size), size)
        assert in_batches.fingerprint == store.fingerprint

    reversed_list = TextList(text_list.rows[::-1])
    backwards = extract_and_seal(reversed_list, (sentence,), tmp_path / "backwards", batch_size=5)
    for name, text in text_list.rows:
        (tokens,) = sentence.tokenize([text])
        (vector,) = sentence.encode(np.array([tokens.ids]))
        assert np.array_equal(store["sentence"].read(name, "pooled"), vector)
        assert np.array_equal(backwards["sentence"].read(name, "pooled"), vector)


def test_two_text_backbones_share_a_store_and_each_says_where_it_cut_a_text(folders, sentence, tmp_path):
    clip = load_text_backbone("clip-text", weights=str(folders["clip"]), compute=Compute(device="cpu"))
    store = extract_and_seal(make_texts_with_a_long_one(5), (clip, sentence), tmp_path / "both")
    assert store.names == ("clip-text", "sentence")
    assert store["clip-text"].text == store["sentence"].text

    (tokens_of_clip,), (tokens_of_sentence,) = clip.tokenize([LONG]), sentence.tokenize([LONG])

    (long_text,) = [clip for clip in store.clips if clip.clip_id == "long"]
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
    return TextBackbone("odd", 2, tokenize, encode, provenance)


def test_a_text_without_tokens_or_with_a_broken_vector_has_failed(odd_backbone, tmp_path):
    text_list = TextList((("a", "good"), ("b", "?"), ("c", "bad")))
    store = extract_and_seal(text_list, (odd_backbone,), tmp_path / "odd")

    assert [(clip.status, clip.reason) for clip in store.clips] == [
        ("ok", ""),
        ("failed", "odd has no token for this text"),
        ("failed", "odd gave values that are not finite in 'pooled'"),
    ]
    assert store["odd"].text == ("good", "?", "bad")


N_TEXTS = 300


@pytest.fixture
def sentence_command(folders, tmp_path, monkeypatch):
    """Make the words that extract 300 texts, one of them too long, into a store by batches of a size."""
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)  # a kill is not a power cut
    lines = [f"{name},{text}\n" for name, text in make_texts_with_a_long_one(N_TEXTS).rows]
    (tmp_path / "prompts.csv").write_text("".join(["text_id,text\n", *lines]), encoding="utf-8")

    def command(store, batch_size):
        words = ["extract", "prompts.csv", store, "--batch-size", batch_size, "--backbone", "sentence"]
        return [*words, "--weights", folders["sentence"], "--device", "cpu", "--licence", "CC0-1.0"]

    return command


@pytest.mark.long
@pytest.mark.nightly
def test_a_killed_extraction_of_texts_resumes_to_the_same_store(
    sentence_command, obygaze, stop_by, file_digests, tmp_path
):
    """The batches of the killed run have 2 texts, those of the resumed one 7 and those of a whole one 64."""
    n_texts_before_kill = 280
    stop_by(signal.SIGKILL, tmp_path, n_texts_before_kill, *sentence_command("killed", 2))
    n_done_before = len(read_stage(tmp_path / "killed.staging").status())
    assert 0 < n_done_before <= n_texts_before_kill

    resumed = obygaze(tmp_path, *sentence_command("killed", 7), "--json")
    assert resumed.returncode == 0, resumed.stderr
    result = json.loads(resumed.stdout)
    assert result["clips"] == {"ok": N_TEXTS - 1, "partial": 1, "failed": 0, "left": 0}
    assert result["run"]["clips"] == N_TEXTS - n_done_before

    assert obygaze(tmp_path, *sentence_command("whole", 64)).returncode == 0
    assert file_digests(tmp_path / "killed-1.0.0") == file_digests(tmp_path / "whole-1.0.0")


@pytest.mark.long
def test_stores_of_texts_do_not_depend_on_the_number_of_threads(
    sentence_command, obygaze, file_digests, tmp_path
):
    assert obygaze(tmp_path, *sentence_command("as-it-is", 64)).returncode == 0
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        assert obygaze(tmp_path, *sentence_command("one-more", 64)).returncode == 0
    finally:
        torch.set_num_threads(threads)
    assert file_digests(tmp_path / "as-it-is-1.0.0") == file_digests(tmp_path / "one-more-1.0.0")


def test_two_shards_of_texts_make_one_store(folders, obygaze, tmp_path):
    """20 texts are a piece of 16, which is shard 0 of 2, and one of 4, which is shard 1."""
    captions = ["a man", "a woman", "a sad man", *["a hat"] * 17]
    (tmp_path / "captions.txt").write_text("\n".join([*captions, ""]), encoding="utf-8")
    command = ("extract", "captions.txt", "captions", "--backbone", "clip-text", "--weights", folders["clip"])

    dry = obygaze(tmp_path, *command, "--shard", "0/2", "--dry-run", "--json")
    assert json.loads(dry.stdout)["texts"] == 16

    for shard, n_left in (("1/2", 16), ("0/2", 0)):
        result = obygaze(tmp_path, *command, "--shard", shard, "--json")
        assert json.loads(result.stdout)["clips"]["left"] == n_left, result.stderr
    seal(None, tmp_path / "captions", licence="CC0-1.0")
    assert open_store(tmp_path / "captions")["clip-text"].text == tuple(captions)
