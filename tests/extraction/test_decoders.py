"""A lab's own decoder plugs in by an entry point, and is named in the provenance."""

import re
from pathlib import Path

import numpy as np
import pytest

from obygaze_features import extract
from obygaze_features.extraction.decode_clips import DecodeTask, Request
from obygaze_features.extraction.decoders import decoder_names
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.video import uniform
from tests import lab_package

PAGE = Path(__file__).parents[2] / "docs" / "decoding.md"
SILENT = "def decode(tasks):\n    return iter(())\n"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a module with entry points of decoders."""

    def installed(module, source, entry_points):
        lab_package.install(tmp_path, monkeypatch, module, source, f"[obygaze.decoders]\n{entry_points}\n")

    return installed


@pytest.fixture
def clips(tmp_path) -> Manifest:
    folder = tmp_path / "films"
    folder.mkdir()
    np.save(folder / "a.npy", np.full((20, 48, 64, 3), 90, np.uint8))
    return Manifest((Clip("tt1-0", "tt1", "a.npy"), Clip("tt1-1", "tt1", "b.npy")), folder)


def test_the_worked_example_of_the_page_works(install, clips, tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    source, header = (
        re.findall(rf"```{kind}\n(.*?)```", text, flags=re.DOTALL) for kind in ("python", "toml")
    )
    section, line = header[0].strip().splitlines()
    assert section == '[project.entry-points."obygaze.decoders"]'
    install("labdecoder", source[-1], line.replace('"', ""))
    assert decoder_names() == ("pyav", "cuda", "arrays")
    store = extract(clips, tmp_path / "s", n_frames=4, decoder="arrays", workers=1, licence="CC0-1.0")
    assert [(clip.clip_id, clip.status) for clip in store.clips] == [("tt1-0", "ok"), ("tt1-1", "failed")]
    group = store["descriptors"]
    assert group.frame_index[0].tolist() == [0, 5, 10, 15]
    assert group.provenance["decoder"]["name"] == "arrays"
    assert group.provenance["decoder"]["package"] == "labdecoder 1.0"


def test_a_decoder_that_gives_nothing_fails_its_clips_and_nothing_else(install, clips, tmp_path):
    install("silent", SILENT, "silent = silent:decode")
    with pytest.warns(UserWarning, match="licence"):
        store = extract(clips, tmp_path / "s", n_frames=4, decoder="silent", workers=1)
    assert {clip.reason for clip in store.clips} == {"the decoder 'silent' gave nothing for this clip"}


def test_xclip_and_vivit_share_the_frames_of_one_preset():
    from obygaze_features.backbones.presets import SQUASH, choose_preset

    assert choose_preset("obygaze12", ("xclip", "obygaze12")).geometry == SQUASH
    assert choose_preset("obygaze12", ("vivit-hub", "obygaze12")).geometry == SQUASH
    requests = {
        name: Request(uniform(32), choose_preset("obygaze12", (own, "obygaze12")).geometry)
        for name, own in (("xclip", "xclip"), ("vivit", "vivit-hub"))
    }
    assert len(DecodeTask("clip", None, None, None, requests).frame_requests()) == 1
