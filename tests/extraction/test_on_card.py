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
    """A backbone of a small network, on the card or on the CPU."""
    compute = Compute(device="cuda" if card else "cpu", **settings)
    affine = Affine.of(*IMAGENET)
    encode = Runner(name, Network(card), affine, OUTPUTS, n_frames=F, size=4, compute=compute)
    provenance = {**load_backbone("descriptors", F).provenance, "compute": compute.record("sdpa")}
    return Backbone(name, F, np.array, encode, OUTPUTS, provenance)


def decoded(names=("net",)):
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


BOTH = ("net", "other")


@pytest.fixture
def results_of_batches(card):
    """Results of two backbones on the card, of batches of four clips in memory that is used again."""
    backbones = [backbone(card, name=name, clips_at_once=4) for name in BOTH]
    clips_of_both = decoded(BOTH)
    batches = [clips_of_both[first : first + 4] for first in range(0, N, 4)]
    return list(encode_batches(backbones, in_shared_memory(batches)))


def test_networks_and_batches_overlap_on_a_card(results_of_batches, card):
    assert [len(results) for results in results_of_batches] == [4, 4, 2]
    order = [call for call in card.calls if call in ("upload", "synchronize")]
    # Both networks get two batches before the host waits for the first.
    assert order[:6] == ["upload"] * 4 + ["synchronize"] * 2


def test_batches_on_a_card_give_what_a_cpu_gives_one_by_one(results_of_batches, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_cpu = encode_batch([backbone(name=name) for name in BOTH], decoded(BOTH))

    on_card = list(chain.from_iterable(results_of_batches))
    assert [result.clip_id for result in on_card] == IDS
    assert (on_card[3].status, on_card[3].reason) == ("failed", "cut off")
    for result, expected in zip(on_card, on_cpu, strict=True):
        for name, features in expected.groups.items():
            for array, values in features.arrays.items():
                assert np.array_equal(result.groups[name].arrays[array], values)
    assert on_card[0].source == {"device": "NVIDIA Pretended"}
    assert on_cpu[0].source == {}


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


def test_another_card_finishes_a_stage_and_the_store_counts_the_cards(card, monkeypatch, tmp_path):
    clips_to_do = decoded()
    for name, batch in (("NVIDIA H200", clips_to_do[:7]), ("NVIDIA A100", clips_to_do[7:9])):
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device=None, name=name: name)
        write_features(tmp_path, card, batch)
    lack_memory_once(card)
    write_features(tmp_path, card, clips_to_do[9:])

    sealed = seal(tmp_path / "s.staging", tmp_path / "s", licence="CC0-1.0")
    assert open_store(sealed).attributes["devices"] == {
        "NVIDIA A100": 2,
        "NVIDIA A100 (net: 4 at once)": 1,
        "NVIDIA H200": 6,
    }
    assert verify(sealed, "full").ok
    assert "- 6 clips computed on NVIDIA H200" in (sealed / "README.md").read_text(encoding="utf-8")
    assert open_store(sealed)["net"].provenance["compute"]["device"] == "cuda"
