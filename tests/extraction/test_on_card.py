"""Extraction on the pretended card: look-ahead, mixed cards in one stage, and no silent CPU."""

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


def backbone(card=None, *, network=None, name="net", **compute):
    way = Compute(device="cuda" if card else "cpu", **compute)
    net = network or Network(card)
    encode = Runner(name, net, Affine.of(*IMAGENET), OUTPUTS, n_frames=F, size=4, compute=way)
    about = load_backbone("descriptors", F).provenance
    return Backbone(name, F, np.array, encode, OUTPUTS, {**about, "compute": way.record("sdpa")})


def decoded(names=("net",)):
    times = np.arange(F, dtype=np.int64)
    pixels = clips(N)
    found = [
        DecodedClip(
            clip_id, "ok", frames={name: Prepared(pixels[i].copy(), times, times / 24) for name in names}
        )
        for i, clip_id in enumerate(IDS)
    ]
    found[3] = DecodedClip(IDS[3], "failed", "cut off")
    return found


def encode_all(backbones, batches, *, spoil=False):
    def given():
        for batch in batches:
            yield batch
            for clip in batch if spoil else ():
                for taken in clip.frames.values():
                    taken.images[:] = 0  # as a slot of shared memory that is used again

    return list(encode_batches(backbones, given()))


def batches_of(size, names=("net",)):
    found = decoded(names)
    return [found[first : first + size] for first in range(0, N, size)]


def test_networks_and_batches_overlap_and_give_what_one_by_one_gives_on_a_cpu(card):
    names = ("net", "other")
    both = [backbone(card, name=name, clips_at_once=4) for name in names]
    found = encode_all(both, batches_of(4, names), spoil=True)
    assert [len(each) for each in found] == [4, 4, 2]
    order = [call for call in card.calls if call in ("upload", "synchronize")]
    assert order[:6] == ["upload"] * 4 + ["synchronize"] * 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        expected = encode_batch([backbone(name=name) for name in names], decoded(names))
    flat = [result for each in found for result in each]
    assert [result.clip_id for result in flat] == IDS
    assert (flat[3].status, flat[3].reason) == ("failed", "cut off")
    for here, there in zip(flat, expected, strict=True):
        for name, features in there.groups.items():
            for array, values in features.arrays.items():
                assert np.array_equal(here.groups[name].arrays[array], values)
    assert flat[0].source == {"device": "NVIDIA Pretended"}
    assert expected[0].source == {}


def stage_of(tmp_path, some):
    job = Job(Manifest(tuple(Clip(i, "tt1", f"{i}.mp4") for i in IDS), tmp_path), "films", (some,))
    return Stage.open(tmp_path / "s.staging", job.planned_clips(), job.groups(), job.corpus_record())


def commit(stage, some, batch):
    with stage.writer() as writer:
        writer.commit(encode_batch([some], batch))


def test_another_card_finishes_a_stage_and_the_store_counts_the_cards(card, monkeypatch, tmp_path):
    batch = decoded()
    for name, part in (("NVIDIA H200", batch[:7]), ("NVIDIA A100", batch[7:9])):
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device=None, name=name: name)
        some = backbone(card)
        commit(stage_of(tmp_path, some), some, part)
    shortage = []

    def fails(what, _number):
        if what == "forward" and not shortage:
            shortage.append(what)
            return out_of_memory("cublas")
        return None

    card.fails = fails
    some = backbone(card)
    commit(stage_of(tmp_path, some), some, batch[9:])
    sealed = seal(tmp_path / "s.staging", tmp_path / "s", licence="CC0-1.0")
    assert open_store(sealed).attributes["devices"] == {
        "NVIDIA A100": 2,
        "NVIDIA A100 (net: 4 at once)": 1,
        "NVIDIA H200": 6,
    }
    assert verify(sealed, "full").ok
    assert "- 6 clips computed on NVIDIA H200" in (sealed / "README.md").read_text(encoding="utf-8")
    assert open_store(sealed)["net"].provenance["compute"]["device"] == "cuda"
