"""What is said of a Ray cluster that is at fault: one line that names the node. No cluster runs here."""

import os
import socket
import threading
from types import SimpleNamespace

import pytest

from obygaze_features.errors import ExtractError
from obygaze_features.workers import Event

pytest.importorskip("ray")

from obygaze_features.extraction import ray_cluster, ray_driver, ray_leader, ray_nodes
from obygaze_features.extraction.ray_leader import Head


@pytest.fixture
def resources(monkeypatch):
    """Pretend what a cluster of two nodes has."""

    def pretend(whole: dict[str, float], free: dict[str, float] | None = None) -> None:
        pretended = {
            "cluster_resources": lambda: whole,
            "available_resources": lambda: free or {},
            "nodes": lambda: [{"Alive": True}, {"Alive": True}, {"Alive": False}],
        }
        monkeypatch.setattr(ray_driver, "ray", SimpleNamespace(**pretended))

    return pretend


def order(name: str, workers: int | None = None, *, on_gpu: bool = False) -> SimpleNamespace:
    return SimpleNamespace(backbones=[name], workers=workers, on_gpu=on_gpu)


def test_decoders_take_the_cores_and_encoders_the_nodes_or_the_gpus(resources):
    resources({"CPU": 6.0, "GPU": 3.0})
    assert ray_driver.choose_pools(order("descriptors")) == (
        6,
        2,
        ["Ray: 2 nodes with 6 cores, 6 decoders, 2 encoders"],
    )
    assert ray_driver.choose_pools(order("xclip", 99, on_gpu=True)) == (
        6,
        3,
        ["Ray: 2 nodes with 6 cores, 6 decoders, 3 encoders"],
    )


def test_gpus_that_the_leading_process_cannot_use_are_said(resources):
    resources({"CPU": 2.0, "GPU": 3.0})
    _, _, notes = ray_driver.choose_pools(order("xclip"))
    assert notes[0] == "the 3 GPUs of the cluster are not used: run this command on a node that has one"


@pytest.mark.parametrize(("whole", "on_gpu", "words"), [({}, False, None), ({"CPU": 2.0}, True, "--device")])
def test_a_cluster_without_what_is_needed_is_refused(resources, whole, on_gpu, words):
    resources(whole)
    with pytest.raises(ExtractError, match=words):
        ray_driver.choose_pools(order("xclip", on_gpu=on_gpu))


def test_what_is_waited_for(resources):
    resources({"CPU": 4.0, "GPU": 1.0}, {"GPU": 1.0})
    assert ray_driver._what_it_waits_for().endswith("0 of 4 CPUs, 1 of 1 GPUs")


def test_an_error_on_a_node_is_one_line_that_names_it():
    text = "ray::MapWorker() (pid=7, ip=10.0.0.7)\n  File x\nModuleNotFoundError: No module named 'nap'\n"
    error = ray_driver.explained(ray_cluster.ray.exceptions.RaySystemError(text))
    assert isinstance(error, ExtractError)
    assert str(error).startswith(
        "node 10.0.0.7 of the Ray cluster failed: ModuleNotFoundError: No module named 'nap'; "
    )
    bug = KeyError("ours")
    assert ray_driver.explained(bug) is bug


def test_a_node_that_would_give_other_numbers_is_named_with_both_values(monkeypatch):
    monkeypatch.setattr(ray_nodes, "_node", lambda: "n3 (10.0.0.3)")
    monkeypatch.setattr(ray_nodes, "decoder_record", lambda _: {"av": "18.0.0"})
    (refusal,) = ray_nodes.decode_pass([], 600.0, "pyav", {"av": "18.1.0"})
    assert "n3 (10.0.0.3)" in refusal.reason
    assert 'av is "18.0.0" there and "18.1.0" here' in refusal.reason


def test_a_node_that_does_not_see_the_stage_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(ray_nodes, "_node", lambda: "n3 (10.0.0.3)")
    encoder = ray_nodes.RayEncoder(SimpleNamespace(begin=lambda: None), tmp_path / "mark", None)
    refusal = encoder.begin()
    assert "n3 (10.0.0.3)" in refusal.reason
    assert str(tmp_path) in refusal.reason
    (tmp_path / "mark").touch()
    assert encoder.begin() is None


def test_a_video_that_a_node_does_not_find_is_looked_for_once_more(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    path = tmp_path / "clip.mp4"
    refusal = ray_nodes.NodeError("node n3 does not find clip.mp4", path)
    assert "is not any more: node n3" in str(refusal.error())
    path.touch()
    assert "and n1, which leads the run, does: mount it on every node" in str(refusal.error())


def test_other_versions_and_a_wrong_token_are_told_apart():
    there = "10.0.0.1:6379"
    versions = ray_cluster.refusal(
        there, RuntimeError("Version mismatch:\n  cluster: Ray 2.59\n  here: Ray 2.60")
    )
    assert versions.endswith(
        "runs other versions than this process: Version mismatch: cluster: Ray 2.59 here: Ray 2.60"
    )
    assert "RAY_AUTH_TOKEN" in ray_cluster.refusal(there, ConnectionError("no"))
    assert "RAY_AUTH_TOKEN" not in ray_cluster.refusal(None, OSError("no"))


def test_addresses_that_are_none_of_a_cluster_are_refused():
    with pytest.raises(ExtractError):
        ray_leader.reach("ray://10.0.0.1:10001")
    with pytest.raises(ExtractError):
        ray_leader.reach("127.0.0.1:9")
    ray_leader.reach("auto")


def driving(task, parent):
    """Send what a test asks for, as the process that drives a cluster, and end as Ray ends it."""
    order, printed = task
    for message in order.messages:
        parent.send(message)
    if order.error is not None:
        raise order.error
    if order.messages[-1] != "end":
        threading.Event().wait()
    printed.write_text("a warning\nlost the raylet\n\n", encoding="utf-8")
    os._exit(1)


@pytest.fixture
def lead(monkeypatch):
    """Lead a child that sends some messages and then ends, waits, or raises an error."""
    monkeypatch.setattr(ray_leader, "_drive", driving)

    def lead(*messages, address=None, error=None, notes=None):
        order = SimpleNamespace(address=address, messages=messages, error=error)
        stage = SimpleNamespace(missing=lambda: ["a", "b"])
        return ray_leader.RayCluster(order, stage, ([] if notes is None else notes).append)

    return lead


def events(cluster):
    while True:
        if (event := cluster.get(0.1)) is not None:
            yield event


def test_events_of_shares_are_passed_on_and_remarks_are_noted(lead):
    notes, event = [], Event(0, "done")
    with lead("two nodes", 2, event, notes=notes) as cluster:
        assert cluster.join(lambda: False)
        assert cluster.workers == 2
        assert notes == ["two nodes"]
        assert next(events(cluster)) == event


def test_a_wait_for_the_cluster_can_be_stopped(lead):
    with lead(Head("")) as cluster:
        assert not cluster.join(lambda: True)


def test_a_child_that_ends_without_a_word_is_said(lead):
    with (
        lead(1, "end") as cluster,
        pytest.raises(ExtractError, match="exit code 1"),
    ):
        next(events(cluster))


def test_whatever_the_child_says_of_a_head_that_is_gone_the_cluster_was_lost(lead):
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{head.getsockname()[1]}"
        fault = {"address": address, "error": RuntimeError("RPC failed")}
        with (
            lead(Head(address), **fault) as cluster,
            pytest.raises(ExtractError, match=f"{address}"),
        ):
            next(events(cluster))
        head.listen()  # it answers: the error is another one
        with lead(Head(address), **fault) as cluster, pytest.raises(RuntimeError, match="RPC failed"):
            next(events(cluster))


@pytest.mark.parametrize(
    ("n_late", "address", "starts"), [(2, None, 3), (9, None, 5), (9, "10.0.0.1:6379", 1)]
)
def test_a_cluster_that_is_not_up_within_rays_half_minute_is_started_again(
    monkeypatch, n_late, address, starts
):
    begun = []

    def init(**settings):
        begun.append(settings)
        if len(begun) <= n_late:
            raise Exception("The current node timed out during startup. This could happen because")  # noqa: TRY002

    here = SimpleNamespace(gcs_address="10.0.0.2:6379")
    pretended = {"init": init, "shutdown": lambda: None, "get_runtime_context": lambda: here}
    monkeypatch.setattr(ray_cluster, "ray", SimpleNamespace(**pretended))
    monkeypatch.setattr(ray_cluster.signal, "signal", lambda *_: None)
    if n_late == 2:
        assert ray_cluster.join(address, 1, "folder") == "10.0.0.2:6379"
    else:
        with pytest.raises(ExtractError):
            ray_cluster.join(address, 1, "folder")
    assert len(begun) == starts
