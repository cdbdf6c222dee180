"""Files as they are found in the wild: other codecs, rotated, out of order, corrupt."""

import json

import pytest

from tests.files import rows_of

COMMAND = ("extract", "videos.csv", "videos", "--licence", "CC0-1.0", "--workers", "1", "--batch-size", "1")


@pytest.fixture(scope="module")
def videos(shared_data, tmp_path_factory, obygaze):
    folder = tmp_path_factory.mktemp("videos")
    result = obygaze(folder, "manifest", "import", "folder", shared_data / "videos", "--out", "videos.csv")
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def sealed(videos, obygaze):
    result = obygaze(videos, *COMMAND, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    return videos / document["store"]


@pytest.mark.long  # decodes every real file
def test_every_clip_ends_ok_or_with_a_reason_that_a_person_understands(sealed):
    """Seven files are whole, and one is damaged."""
    rows = {row["clip"]: row for row in rows_of(sealed / "data" / "clips.csv")}
    assert {clip for clip, row in rows.items() if row["status"] == "ok"} == {
        "arm_wrestling",
        "flipping_a_pancake",
        "nasa_13013",
        "rotated_90",
        "test",
        "unordered",
        "v_GGSY1Qvo990",
    }
    assert rows["corrupted"]["status"] == "partial"
    assert "damaged" in rows["corrupted"]["reason"]


@pytest.mark.long
def test_strict_fails_what_is_damaged(videos, obygaze):
    """Of eight files, two are done: a whole one, and the damaged one, which fails. Six are left."""
    result = obygaze(videos, "extract", "videos.csv", "strict", "--strict", "--limit", "2", "--json")
    assert result.returncode == 3

    document = json.loads(result.stdout)
    assert document["clips"] == {"ok": 1, "partial": 0, "failed": 1, "left": 6}
    assert [clip["clip_id"] for clip in document["not_ok"]] == ["corrupted"]
