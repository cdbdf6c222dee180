"""Files as they are found in the wild: other codecs, rotated, out of order, corrupt."""

import json

import pytest

from tests.files import rows_of

COMMAND = ("extract", "videos.csv", "videos", "--licence", "CC0-1.0", "--workers", "1", "--batch-size", "1")


@pytest.fixture(scope="module")
def folder_with_manifest(shared_data, tmp_path_factory, obygaze):
    """A folder with videos.csv, the manifest of the eight real files."""
    folder = tmp_path_factory.mktemp("videos")
    result = obygaze(folder, "manifest", "import", "folder", shared_data / "videos", "--out", "videos.csv")
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def store_of_real_files(folder_with_manifest, obygaze):
    """The folder of the store that `obygaze extract` makes of the eight real files."""
    result = obygaze(folder_with_manifest, *COMMAND, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    return folder_with_manifest / document["store"]


@pytest.mark.long  # decodes every real file
def test_whole_files_are_ok_and_the_damaged_one_is_partial_with_the_reason(store_of_real_files):
    """Eight real files were extracted: seven are whole, and `corrupted` has damaged pictures."""
    rows = rows_of(store_of_real_files / "data" / "clips.csv")

    ok_clips = {row["clip"] for row in rows if row["status"] == "ok"}
    assert ok_clips == {
        "arm_wrestling",
        "flipping_a_pancake",
        "nasa_13013",
        "rotated_90",
        "test",
        "unordered",
        "v_GGSY1Qvo990",
    }

    (corrupted,) = [row for row in rows if row["clip"] == "corrupted"]
    assert corrupted["status"] == "partial"
    assert "damaged" in corrupted["reason"]


@pytest.mark.long
def test_strict_fails_a_damaged_file(folder_with_manifest, obygaze):
    """The limit of two takes, of eight files, a whole one and `corrupted`; six are left."""
    command = ["extract", "videos.csv", "strict", "--strict", "--limit", "2", "--json"]

    result = obygaze(folder_with_manifest, *command)

    exit_code_if_clips_failed = 3
    assert result.returncode == exit_code_if_clips_failed
    document = json.loads(result.stdout)
    assert document["clips"] == {"ok": 1, "partial": 0, "failed": 1, "left": 6}
    assert [clip["clip_id"] for clip in document["not_ok"]] == ["corrupted"]
