"""Extraction on the pretended GPU: look-ahead, mixed GPUs in one stage, and no silent CPU."""

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
from tests.lazy_import import lazy_import, needs

from ..backbones.test_runner_on_gpu import OUTPUTS, F, Network, clips, out_of_memory

pytestmark = needs("torch")

torch = lazy_import("torch")
Gpu = lazy_import("tests.backbones.pretended_card", "Card")
running = lazy_import("obygaze_features.backbones.runner")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
Runner = lazy_import("obygaze_features.backbones.runner", "Runner")

CLIP_IDS = [f"tt1-{number}" for number in range(10)]


@pytest.fixture(autouse=True)
def no_pause_before_trying_again(monkeypatch):
    monkeypatch.setattr(running, "PAUSE_S", 0.0)


@pytest.fixture
def gpu(monkeypatch):
    """A pretended GPU, which computes on the CPU and notes its calls."""
    gpu = Gpu()
    gpu.install(monkeypatch)
    return gpu


def backbone(gpu=None, *, name="net", **settings):
    """Make a backbone of a small network, on the GPU or on the CPU; it takes frames as they are."""
    compute = Compute(device="cuda" if gpu else "cpu", **settings)
    mean, deviation = IMAGENET
    normalise = Affine.of(mean, deviation)
    encode = Runner(name, Network(gpu), normalise, OUTPUTS, n_frames=F, size=4, compute=compute)
    kind_of_attention = "sdpa"
    provenance = load_backbone("descriptors", F).provenance | {"compute": compute.record(kind_of_attention)}
    unchanged = np.array
    return Backbone(name, F, unchanged, encode, OUTPUTS, provenance)


def ten_decoded_clips(names=("net",)):
    """Ten decoded clips with frames for each backbone, of which the fourth has failed."""
    times = np.arange(F, dtype=np.int64)
    decoded_clips = []
    for clip_id, pixels in zip(CLIP_IDS, clips(10), strict=True):
        frames = {name: Prepared(pixels.copy(), times, times / 24) for name in names}
        decoded_clips.append(DecodedClip(clip_id, "ok", frames=frames))
    decoded_clips[3] = DecodedClip(CLIP_IDS[3], "failed", "cut off")
    return decoded_clips


def in_shared_memory(batches):
    """Yield batches whose frames are gone when the next one is asked for, as in memory that is used again."""
    for batch in batches:
        yield batch
        for clip in batch:
            for prepared in clip.frames.values():
                prepared.images[:] = 0


TWO_NETWORKS = ("net", "other")


def encode_ten_clips_in_batches_of_four(gpu):
    """Let two networks encode ten clips on a GPU; return the results of the batches of 4, 4 and 2 clips."""
    backbones = [backbone(gpu, name=name, clips_at_once=4) for name in TWO_NETWORKS]
    decoded_clips = ten_decoded_clips(TWO_NETWORKS)
    batches = [decoded_clips[0:4], decoded_clips[4:8], decoded_clips[8:10]]
    return list(encode_batches(backbones, in_shared_memory(batches)))


def test_batches_on_a_gpu_give_the_features_of_a_cpu(gpu, monkeypatch):
    """Two networks encode ten clips on a pretended GPU, in batches of 4, 4 and 2, and then all on the CPU.

    The frames of a batch are overwritten when the next one is asked for, as in memory that is used again: the
    features must be the same.
    """
    results_of_batches = encode_ten_clips_in_batches_of_four(gpu)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    two_networks_on_cpu = [backbone(name=name) for name in TWO_NETWORKS]
    results_on_cpu = encode_batch(two_networks_on_cpu, ten_decoded_clips(TWO_NETWORKS))

    assert [len(results) for results in results_of_batches] == [4, 4, 2]
    results_on_gpu = list(chain.from_iterable(results_of_batches))
    assert [result.clip_id for result in results_on_gpu] == CLIP_IDS
    for result, expected in zip(results_on_gpu, results_on_cpu, strict=True):
        for network, features in expected.groups.items():
            for array, values in features.arrays.items():
                assert np.array_equal(result.groups[network].arrays[array], values)


def test_a_gpu_works_on_the_next_batch_while_a_result_is_fetched(gpu):
    """Two networks get two batches each (4 uploads) before the first results are waited for (synchronize)."""
    encode_ten_clips_in_batches_of_four(gpu)

    calls = [call for call in gpu.calls if call in ("upload", "synchronize")]
    assert calls[:6] == ["upload", "upload", "upload", "upload", "synchronize", "synchronize"]


def test_results_name_their_gpu_and_keep_the_failure_of_a_clip(gpu):
    """Of ten decoded clips, the fourth has failed, for its file is cut off."""
    results = list(chain.from_iterable(encode_ten_clips_in_batches_of_four(gpu)))

    first = results[0]
    fourth = results[3]
    assert first.source == {"device": "NVIDIA Pretended"}
    assert fourth.status == "failed"
    assert fourth.reason == "cut off"


def write_features(folder, gpu, batch):
    """Encode clips on the GPU, and write them into the stage in a folder, which is made or resumed."""
    net = backbone(gpu)
    manifest = Manifest(tuple(Clip(clip_id, "tt1", f"{clip_id}.mp4") for clip_id in CLIP_IDS), folder)
    job = Job(manifest, "films", (net,))
    stage = Stage.open(folder / "s.staging", job.planned_clips(), job.groups(), job.corpus_record())
    with stage.writer() as writer:
        writer.commit(encode_batch([net], batch))


def lack_memory_once(gpu):
    """Have the next call of the network run out of memory."""
    shortages = []

    def fails(call, _number):
        if call == "forward" and not shortages:
            shortages.append(call)
            return out_of_memory("cublas")
        return None

    gpu.fails = fails


def name_gpu(monkeypatch, name):
    """Let the GPU have this name."""
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device=None: name)


def test_a_store_counts_the_clips_of_each_gpu_and_number_of_clips_at_once(gpu, monkeypatch, tmp_path):
    """Ten clips are encoded by pretended GPUs: seven, of which one failed, by an H200, and three by an A100.

    For the last clip the A100 lacks memory, and takes 4 clips at once in place of the usual number.
    """
    decoded_clips = ten_decoded_clips()
    name_gpu(monkeypatch, "NVIDIA H200")
    write_features(tmp_path, gpu, decoded_clips[:7])
    name_gpu(monkeypatch, "NVIDIA A100")
    write_features(tmp_path, gpu, decoded_clips[7:9])
    lack_memory_once(gpu)
    write_features(tmp_path, gpu, decoded_clips[9:])

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
