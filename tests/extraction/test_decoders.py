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
GIVES_NOTHING = "def decode(tasks):\n    return iter(())\n"


def code_blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture
def decoder_of_the_page(install):
    """Install the decoder `arrays` of the page's example: its last Python code, and its entry point."""
    source = code_blocks(PAGE, "python")[-1]
    section, entry_point = code_blocks(PAGE, "toml")[0].strip().splitlines()
    assert section == '[project.entry-points."obygaze.decoders"]'
    without_quotes = entry_point.replace('"', "")  # as an installed package states it
    install("labdecoder", source, without_quotes)


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


@pytest.mark.long
@pytest.mark.usefixtures("decoder_of_the_page")
def test_the_decoder_of_the_page_decodes_arrays_and_is_named_in_the_provenance(clips, tmp_path):
    """A film of 20 pictures, of which 4 are taken, and one that is not there."""
    assert decoder_names() == ("pyav", "cuda", "arrays")
    store = extract(clips, tmp_path / "s", n_frames=4, decoder="arrays", workers=1, licence="CC0-1.0")
    assert [(clip.clip_id, clip.status) for clip in store.clips] == [("tt1-0", "ok"), ("tt1-1", "failed")]
    group = store["descriptors"]
    assert group.frame_index[0].tolist() == [0, 5, 10, 15]
    assert group.provenance["decoder"]["name"] == "arrays"
    assert group.provenance["decoder"]["package"] == "labdecoder 1.0"


@pytest.mark.long
def test_a_decoder_that_gives_nothing_fails_its_clips_and_nothing_else(install, clips, tmp_path):
    install("silent", GIVES_NOTHING, "silent = silent:decode")
    with pytest.warns(UserWarning, match="licence"):
        store = extract(clips, tmp_path / "s", n_frames=4, decoder="silent", workers=1)
    assert {clip.reason for clip in store.clips} == {"the decoder 'silent' gave nothing for this clip"}


def test_networks_that_are_asked_for_one_preset_share_their_frames():
    """X-CLIP and ViViT have presets of their own, and both know the preset obygaze12."""
    from obygaze_features.backbones.presets import SQUASH, choose_preset

    presets_of_xclip, presets_of_vivit = ("xclip", "obygaze12"), ("vivit-hub", "obygaze12")
    preset_of_xclip = choose_preset("obygaze12", presets_of_xclip).geometry
    preset_of_vivit = choose_preset("obygaze12", presets_of_vivit).geometry
    assert preset_of_xclip == preset_of_vivit == SQUASH
    requests = {
        "xclip": Request(uniform(32), preset_of_xclip),
        "vivit": Request(uniform(32), preset_of_vivit),
    }
    frame_requests = DecodeTask("clip", None, None, None, requests).frame_requests()
    assert len(frame_requests) == 1
