"""What is said of a Ray cluster that is at fault: one line that names the node. No cluster runs here."""

from types import SimpleNamespace

import pytest

from obygaze_features.backbones import load_backbone
from obygaze_features.extraction import ExtractError, Recipe

pytest.importorskip("ray")

from obygaze_features.extraction import cluster, distributed, nodes


@pytest.fixture
def resources(monkeypatch):
    """Pretend what a cluster of two nodes has."""

    def pretend(whole: dict[str, float], free: dict[str, float] | None = None) -> None:
        pretended = {
            "cluster_resources": lambda: whole,
            "available_resources": lambda: free or {},
            "nodes": lambda: [{"Alive": True}, {"Alive": True}, {"Alive": False}],
        }
        monkeypatch.setattr(distributed, "ray", SimpleNamespace(**pretended))

    return pretend


def job(name: str, device: str = "cpu") -> SimpleNamespace:
    own = load_backbone("descriptors", 2)
    there = SimpleNamespace(provenance={**own.provenance, "compute": {"device": device}})
    return SimpleNamespace(backbones=[there], recipes=[Recipe(name)])


def test_decoders_take_the_cores_and_encoders_the_nodes_or_the_gpus(resources):
    said: list[str] = []
    resources({"CPU": 6.0, "GPU": 3.0})
    assert distributed._pools(None, job("descriptors"), said.append) == distributed.Pools(6, 2, on_gpu=False)
    assert distributed._pools(99, job("xclip", "H200"), said.append) == distributed.Pools(6, 3, on_gpu=True)
    assert said == [
        "Ray: 2 nodes with 6 cores, 6 decoders, 2 encoders",
        "Ray: 2 nodes with 6 cores, 6 decoders, 3 encoders",
    ]


def test_gpus_that_the_leading_process_cannot_use_are_said(resources):
    said: list[str] = []
    resources({"CPU": 2.0, "GPU": 3.0})
    distributed._pools(None, job("xclip"), said.append)
    assert said[0] == "the 3 GPUs of the cluster are not used: run this command on a node that has one"


@pytest.mark.parametrize(
    ("whole", "device", "words"), [({}, "cpu", "no CPU to decode on"), ({"CPU": 2.0}, "H200", "--device cpu")]
)
def test_a_cluster_without_what_is_needed_is_refused(resources, whole, device, words):
    resources(whole)
    with pytest.raises(ExtractError, match=words):
        distributed._pools(None, job("xclip", device), print)


def test_what_is_waited_for(resources):
    resources({"CPU": 4.0, "GPU": 1.0}, {"GPU": 1.0})
    assert distributed._what_it_waits_for().endswith("0 of 4 CPUs, 1 of 1 GPUs")


def test_an_error_on_a_node_is_one_line_that_names_it():
    text = "ray::MapWorker() (pid=7, ip=10.0.0.7)\n  File x\nModuleNotFoundError: No module named 'nap'\n"
    error = distributed._explained(cluster.ray.exceptions.RaySystemError(text))
    assert isinstance(error, ExtractError)
    assert str(error).startswith(
        "node 10.0.0.7 of the Ray cluster failed: ModuleNotFoundError: No module named 'nap'; "
    )
    bug = KeyError("ours")
    assert distributed._explained(bug) is bug


def test_a_node_that_would_give_other_numbers_is_named_with_both_values(monkeypatch):
    monkeypatch.setattr(nodes, "_node", lambda: "n3 (10.0.0.3)")
    assert nodes._refusal({"av": "18.1.0"}, {"av": "18.1.0"}, "decoder") is None
    refusal = nodes._refusal({"av": "18.0.0"}, {"av": "18.1.0"}, "decoder")
    assert "node n3 (10.0.0.3) has another decoder than" in refusal.reason
    assert 'av is "18.0.0" there and "18.1.0" here' in refusal.reason


def test_a_video_that_a_node_does_not_find_is_looked_for_once_more(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    path = tmp_path / "clip.mp4"
    refusal = nodes.Refusal("node n3 does not find clip.mp4", path)
    assert "is not any more: node n3" in str(refusal.error())
    path.touch()
    assert "and n1, which leads the run, does: mount it on every node" in str(refusal.error())


def test_other_versions_and_a_wrong_token_are_told_apart():
    link = cluster.Link("10.0.0.1:6379", {"address": "10.0.0.1:6379"})
    versions = link._refusal(RuntimeError("Version mismatch:\n  cluster: Ray 2.59\n  here: Ray 2.60"))
    assert versions.endswith(
        "runs other versions than this process: Version mismatch: cluster: Ray 2.59 here: Ray 2.60"
    )
    assert "RAY_AUTH_TOKEN" in link._refusal(ConnectionError("no"))
    assert "RAY_AUTH_TOKEN" not in cluster.Link("here", {"address": "local"})._refusal(OSError("no"))


def test_addresses_that_are_none_of_a_cluster_are_refused():
    with pytest.raises(ExtractError, match="for clients outside of the cluster"):
        cluster._reach("ray://10.0.0.1:10001")
    with pytest.raises(ExtractError, match="nobody answers there"):
        cluster._reach("127.0.0.1:9")
    cluster._reach("auto")
