"""What is said of a Ray cluster that is at fault: one line that names the node. No cluster runs here."""

from types import SimpleNamespace

import pytest

from obygaze_features.errors import ExtractError

pytest.importorskip("ray")

from obygaze_features.extraction import ray_cluster, ray_driver, ray_nodes


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


def test_gpus_that_the_leading_process_cannot_use_are_said(resources):
    resources({"CPU": 2.0, "GPU": 3.0})
    assert ray_driver.choose_pools(order("xclip", 99, on_gpu=True))[:2] == (2, 3)
    _, _, notes = ray_driver.choose_pools(order("xclip"))
    assert notes[0] == "the 3 GPUs of the cluster are not used: run this command on a node that has one"


@pytest.mark.parametrize(("whole", "on_gpu", "words"), [({}, False, None), ({"CPU": 2.0}, True, "--device")])
def test_a_cluster_without_what_is_needed_is_refused(resources, whole, on_gpu, words):
    resources(whole)
    with pytest.raises(ExtractError, match=words):
        ray_driver.choose_pools(order("xclip", on_gpu=on_gpu))


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
