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
    folder = tmp_path_factory.mktemp("texts")
    return {name: tiny_text_checkpoint(name, folder / name) for name in ("clip", "sentence")}


@pytest.fixture(scope="module")
def sentence(folders):
    return load_text_backbone("sentence", weights=str(folders["sentence"]), compute=Compute(device="cpu"))


def texts(count):
    """Texts of few lengths in a mixed order, one of them too long."""
    rng = np.random.default_rng(0)
    rows = [(f"t{i:03}", " ".join(rng.choice(WORDS, 1 + i % 3))) for i in range(count - 1)]
    return TextList(((("long", LONG)), *rows))


def write(path, text_list):
    lines = "".join(f"{name},{text}\n" for name, text in text_list.rows)
    path.write_text(f"text_id,text\n{lines}", encoding="utf-8")


def extract(job, store, batch_size, **options):
    stage = begin_stage(job, store)
    return last_report(run_texts(job, stage, stage.missing(), batch_size=batch_size, **options))


def test_vectors_of_texts_depend_on_neither_batch_nor_order(sentence, tmp_path):
    text_list = texts(40)
    fingerprints = set()
    for batch_size in (1, 7, 64):
        job = TextJob(text_list, "texts", (sentence,))
        report = extract(job, tmp_path / str(batch_size), batch_size)
        assert (report.ok, report.partial, report.failed) == (39, 1, 0)
        fingerprints.add(open_store(seal(None, tmp_path / str(batch_size), licence="CC0-1.0")).fingerprint)
    turned = TextJob(TextList(text_list.rows[::-1]), "texts", (sentence,))
    extract(turned, tmp_path / "turned", 5)
    store = open_store(seal(None, tmp_path / "turned", licence="CC0-1.0"))
    assert len(fingerprints) == 1
    original = open_store(tmp_path / "1")
    assert np.array_equal(original["sentence"].pooled(), store["sentence"].pooled())
    for name, text in text_list.rows:
        (one,) = sentence.tokenize([text])
        alone = sentence.encode(np.array([one.ids]))[0]
        assert np.array_equal(store["sentence"].read(name, "pooled"), alone)


def test_two_readers_of_texts_share_a_store_and_a_cut_names_its_reader(folders, sentence, tmp_path):
    clip = load_text_backbone("clip-text", weights=str(folders["clip"]), compute=Compute(device="cpu"))
    extract(TextJob(texts(5), "texts", (clip, sentence)), tmp_path / "both", 64)
    store = open_store(seal(None, tmp_path / "both", licence="CC0-1.0"))
    assert store.names == ("clip-text", "sentence")
    assert store["clip-text"].text == store["sentence"].text
    (clip_cut,), (sentence_cut,) = clip.tokenize([LONG]), sentence.tokenize([LONG])
    assert store.clips[0].reason == (
        f"clip-text: cut at {LIMIT} of {clip_cut.n_tokens} tokens; "
        f"sentence: cut at {LIMIT} of {sentence_cut.n_tokens} tokens"
    )
    assert verify(store.path, "full").ok


def test_a_text_without_tokens_or_with_a_broken_vector_has_failed(tmp_path):
    def tokenize(some):
        return [Tokens(tuple(range(len(text))) if text != "?" else (), len(text), 9) for text in some]

    def encode(ids):
        return np.where(ids.shape[1] == 3, np.nan, np.ones((len(ids), 2))).astype(np.float32)

    provenance = load_text_backbone_provenance()
    odd = TextBackbone("odd", 2, tokenize, encode, provenance)
    text_list = TextList((("a", "good"), ("b", "?"), ("c", "bad")))
    report = extract(TextJob(text_list, "texts", (odd,)), tmp_path / "odd", 64)
    assert (report.ok, report.failed) == (1, 2)
    store = open_store(seal(None, tmp_path / "odd", licence="CC0-1.0"))
    assert [clip.reason for clip in store.clips] == [
        "",
        "odd has no token for this text",
        "odd gave values that are not finite in 'pooled'",
    ]
    assert store["odd"].text == ("good", "?", "bad")


def load_text_backbone_provenance():
    compute = {"dtype": "float32", "autocast": None, "attention": None, "tf32": False, "device": "cpu"}
    nothing = dict.fromkeys(("head", "layer", "hub", "weights_sha256"))
    return {**nothing, "architecture": {}, "compute": compute, "licence": "CC0-1.0", "citation": ""}


@pytest.mark.long
def test_a_killed_extraction_of_texts_resumes_to_the_same_store(
    folders, obygaze, stop_by, tree, tmp_path, monkeypatch
):
    """Only here are texts killed in the middle, and taken up with another batch and number of threads."""
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)  # a kill is not a power cut
    write(tmp_path / "prompts.csv", texts(300))
    how = ("--backbone", "sentence", "--weights", folders["sentence"], "--device", "cpu")
    how = (*how, "--licence", "CC0-1.0", "--batch-size")
    stop_by(signal.SIGKILL, tmp_path, 280, "extract", "prompts.csv", "killed", *how, 2)
    n_done = len(read_stage(tmp_path / "killed.staging").status())
    assert 0 < n_done <= 280
    resumed = obygaze(tmp_path, "extract", "prompts.csv", "killed", *how, 7, "--json")
    assert resumed.returncode == 0, resumed.stderr
    last_report = json.loads(resumed.stdout)
    assert last_report["clips"] == {"ok": 299, "partial": 1, "failed": 0, "left": 0}
    assert last_report["run"]["clips"] == 300 - n_done
    assert last_report["not_ok"][0]["reason"].startswith(f"cut at {LIMIT} of ")
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        assert obygaze(tmp_path, "extract", "prompts.csv", "whole", *how, 64).returncode == 0
    finally:
        torch.set_num_threads(threads)
    assert tree(tmp_path / "killed-1.0.0") == tree(tmp_path / "whole-1.0.0")


def test_a_list_of_texts_is_extracted_in_shards_as_clips_are(folders, obygaze, tmp_path):
    captions = ["a man", "a woman", "a sad man", *["a hat"] * 17]  # a piece of 16, and one of 4
    (tmp_path / "captions.txt").write_text("\n".join([*captions, ""]), encoding="utf-8")
    how = ("extract", "captions.txt", "captions", "--backbone", "clip-text", "--weights", folders["clip"])
    dry = obygaze(tmp_path, *how, "--shard", "0/2", "--dry-run", "--json")
    assert json.loads(dry.stdout)["texts"] == 16
    for shard, left in (("1/2", 16), ("0/2", 0)):
        result = obygaze(tmp_path, *how, "--shard", shard, "--json")
        assert json.loads(result.stdout)["clips"]["left"] == left, result.stderr
    seal(None, tmp_path / "captions", licence="CC0-1.0")
    assert open_store(tmp_path / "captions")["clip-text"].text == tuple(captions)
