"""Extraction on the pretended card: look-ahead, mixed cards in one stage, and no silent CPU."""

from itertools import chain

import numpy as np
import pytest

from obygaze_features.backbones import Backbone, load_backbone
from obygaze_features.backbones.presets import IMAGENET, Affine
from obygaze_features.extraction import Job
from obygaze_features.extraction.decode_clips import DecodedClip, Prepared
from obygaze_features.extraction.encode import encode_batch, encode_batches
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import Stage, open_store, seal, verify
from tests.later import later, needs

from ..backbones.test_runner_on_card import OUTPUTS, F, Network, clips, out_of_memory

pytestmark = needs("torch")

torch = later("torch")
Card = later("tests.backbones.pretended_card", "Card")
running = later("obygaze_features.backbones.runner")
Compute = later("obygaze_features.backbones.compute", "Compute")
Runner = later("obygaze_features.backbones.runner", "Runner")

N = 10
IDS = [f"tt1-{i}" for i in range(N)]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(running, "PAUSE_S", 0.0)


@pytest.fixture
def card(monkeypatch):
    card = Card()
    card.install(monkeypatch)
    return card


def backbone(card=None, *, name="net", **settings):
    """Make a backbone of a small network, on the card or on the CPU; it takes frames as they are."""
    compute = Compute(device="cuda" if card else "cpu", **settings)
    mean, deviation = IMAGENET
    normalise = Affine.of(mean, deviation)
    encode = Runner(name, Network(card), normalise, OUTPUTS, n_frames=F, size=4, compute=compute)
    kind_of_attention = "sdpa"
    provenance = load_backbone("descriptors", F).provenance | {"compute": compute.record(kind_of_attention)}
    unchanged = np.array
    return Backbone(name, F, unchanged, encode, OUTPUTS, provenance)


def ten_decoded_clips(names=("net",)):
    """Ten decoded clips with frames for each backbone, of which the fourth has failed."""
    times = np.arange(F, dtype=np.int64)
    decoded_clips = []
    for clip_id, pixels in zip(IDS, clips(N), strict=True):
        frames = {name: Prepared(pixels.copy(), times, times / 24) for name in names}
        decoded_clips.append(DecodedClip(clip_id, "ok", frames=frames))
    decoded_clips[3] = DecodedClip(IDS[3], "failed", "cut off")
    return decoded_clips


def in_shared_memory(batches):
    """Yield batches whose frames are gone when the next one is asked for, as in memory that is used again."""
    for batch in batches:
        yield batch
        for clip in batch:
            for prepared in clip.frames.values():
                prepared.images[:] = 0


TWO_NETWORKS = ("net", "other")


def test_batches_on_a_card_give_the_features_of_a_cpu_and_the_card_is_never_idle(card, monkeypatch):
    """Two networks encode ten clips in batches of 4, 4 and 2, in memory that is used again.

    Both get two batches before the first result is waited for, so that the card works while a result is
    fetched. The fourth clip was cut off.
    """
    backbones = [backbone(card, name=name, clips_at_once=4) for name in TWO_NETWORKS]
    decoded_clips = ten_decoded_clips(TWO_NETWORKS)
    batches = [decoded_clips[first : first + 4] for first in range(0, N, 4)]

    results_of_batches = list(encode_batches(backbones, in_shared_memory(batches)))

    assert [len(results) for results in results_of_batches] == [4, 4, 2]
    calls = [call for call in card.calls if call in ("upload", "synchronize")]
    assert calls[:6] == ["upload"] * 4 + ["synchronize"] * 2

    on_card = list(chain.from_iterable(results_of_batches))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_cpu = encode_batch([backbone(name=name) for name in TWO_NETWORKS], ten_decoded_clips(TWO_NETWORKS))
    assert [result.clip_id for result in on_card] == IDS
    for result, expected in zip(on_card, on_cpu, strict=True):
        for name, features in expected.groups.items():
            for array, values in features.arrays.items():
                assert np.array_equal(result.groups[name].arrays[array], values)

    first, _, _, fourth, *_ = on_card
    assert first.source == {"device": "NVIDIA Pretended"}
    assert (fourth.status, fourth.reason) == ("failed", "cut off")


def write_features(folder, card, batch):
    """Encode clips on the card, and write them into the stage in a folder, which is made or resumed."""
    net = backbone(card)
    manifest = Manifest(tuple(Clip(clip_id, "tt1", f"{clip_id}.mp4") for clip_id in IDS), folder)
    job = Job(manifest, "films", (net,))
    stage = Stage.open(folder / "s.staging", job.planned_clips(), job.groups(), job.corpus_record())
    with stage.writer() as writer:
        writer.commit(encode_batch([net], batch))


def lack_memory_once(card):
    """Have the next call of the network run out of memory."""
    shortages = []

    def fails(call, _number):
        if call == "forward" and not shortages:
            shortages.append(call)
            return out_of_memory("cublas")
        return None

    card.fails = fails


def test_a_store_counts_the_clips_of_each_card_and_number_of_clips_at_once(card, monkeypatch, tmp_path):
    """Seven clips are of an H200, of which one failed, and three of an A100.

    For the last clip the A100 lacks memory, and takes fewer clips at once.
    """
    decoded_clips = ten_decoded_clips()
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device=None: "NVIDIA H200")
    write_features(tmp_path, card, decoded_clips[:7])
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device=None: "NVIDIA A100")
    write_features(tmp_path, card, decoded_clips[7:9])
    lack_memory_once(card)
    write_features(tmp_path, card, decoded_clips[9:])

    store = open_store(seal(tmp_path / "s.staging", tmp_path / "s", licence="CC0-1.0"))

    assert store.attributes["devices"] == {
        "NVIDIA A100": 2,
        "NVIDIA A100 (net: 4 at once)": 1,
        "NVIDIA H200": 6,
    }
    card_of_store = (store.path / "README.md").read_text(encoding="utf-8")
    assert "- 6 clips computed on NVIDIA H200" in card_of_store
    assert store["net"].provenance["compute"]["device"] == "cuda"
    assert verify(store.path, "full").ok
