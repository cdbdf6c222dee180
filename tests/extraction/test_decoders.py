"""A lab's own decoder plugs in by an entry point, and is named in the provenance."""

import re
from pathlib import Path

import numpy as np
import pytest

from obygaze_features import extract
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.decode_clips import DecodeTask, Request
from obygaze_features.extraction.decoders import decoder_names
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.video import uniform
from tests import lab_package

PAGE = Path(__file__).parents[2] / "docs" / "decoding.md"


def code_blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture
def decoder_of_the_page(install_decoder):
    """Install the decoder `arrays` of the page's example: its last Python code, and its entry point."""
    source = code_blocks(PAGE, "python")[-1]
    section, entry_point = code_blocks(PAGE, "toml")[0].strip().splitlines()
    assert section == '[project.entry-points."obygaze.decoders"]'
    without_quotes = entry_point.replace('"', "")  # as an installed package states it
    install_decoder("labdecoder", source, without_quotes)


@pytest.fixture
def install_decoder(tmp_path, monkeypatch):
    """Install a module of a lab's package with entry points of decoders."""

    def installed(module, source, entry_points):
        lab_package.install(tmp_path, monkeypatch, module, source, f"[obygaze.decoders]\n{entry_points}\n")

    return installed


@pytest.fixture
def array_and_clip_without_file(tmp_path) -> Manifest:
    """A manifest of two clips: `array`, an array of 20 pictures, and `no-file`, whose file is absent."""
    folder = tmp_path / "films"
    folder.mkdir()
    np.save(folder / "a.npy", np.full((20, 48, 64, 3), 90, np.uint8))
    return Manifest((Clip("array", "tt1", "a.npy"), Clip("no-file", "tt1", "b.npy")), folder)


@pytest.mark.long
@pytest.mark.usefixtures("decoder_of_the_page")
def test_the_decoder_of_the_page_decodes_arrays_and_is_named_in_the_provenance(
    array_and_clip_without_file, tmp_path
):
    """The manual's page on decoding shows a decoder of numpy arrays, `arrays`, in a package `labdecoder`.

    One clip is an array of 20 pictures, of which 4 are taken, every fifth; the file of the other is absent.
    """
    assert decoder_names() == ("pyav", "cuda", "arrays")

    store = extract(
        array_and_clip_without_file,
        tmp_path / "s",
        n_frames=4,
        decoder="arrays",
        workers=1,
        licence="CC0-1.0",
    )

    status_of = [(clip.clip_id, clip.status) for clip in store.clips]
    assert status_of == [("array", "ok"), ("no-file", "failed")]
    group = store["descriptors"]
    assert group.frame_index[0].tolist() == [0, 5, 10, 15]
    assert group.provenance["decoder"]["name"] == "arrays"
    assert group.provenance["decoder"]["package"] == "labdecoder 1.0"


@pytest.mark.long
def test_every_clip_of_a_decoder_that_gives_nothing_fails_with_that_reason(
    install_decoder, array_and_clip_without_file, tmp_path
):
    """A lab's decoder, installed as `silent`, returns no result for any of two clips."""
    install_decoder("silent", "def decode(tasks):\n    return iter(())\n", "silent = silent:decode")

    with pytest.warns(UserWarning, match="licence"):
        store = extract(array_and_clip_without_file, tmp_path / "s", n_frames=4, decoder="silent", workers=1)

    assert {clip.reason for clip in store.clips} == {"the decoder 'silent' gave nothing for this clip"}


def test_networks_that_are_asked_for_one_preset_share_their_frames():
    """A preset says how a network's frames are prepared. X-CLIP and ViViT each have one, and share obygaze12.

    If both are asked for this one, which squashes pictures to a square, a clip's 32 frames are decoded and
    prepared once for both networks.
    """
    from obygaze_features.backbones.presets import SQUASH, choose_preset

    presets_of_xclip = ("xclip", "obygaze12")
    presets_of_vivit = ("vivit-hub", "obygaze12")
    preparation_for_xclip = choose_preset("obygaze12", presets_of_xclip).geometry
    preparation_for_vivit = choose_preset("obygaze12", presets_of_vivit).geometry
    assert preparation_for_xclip == preparation_for_vivit == SQUASH

    task = DecodeTask(
        "clip",
        path=None,
        start_s=None,
        end_s=None,
        requests={
            "xclip": Request(uniform(32), preparation_for_xclip),
            "vivit": Request(uniform(32), preparation_for_vivit),
        },
    )

    assert len(task.frame_requests()) == 1


def test_a_decoder_that_cannot_be_imported_is_refused_before_anything_is_made(
    install_decoder, array_and_clip_without_file, tmp_path
):
    """The package names a function that its module does not have. Else every clip would fail by it."""
    install_decoder("broken", "", "broken = broken:decode")

    with pytest.raises(ExtractError, match="broken:decode"):
        extract(array_and_clip_without_file, tmp_path / "s", decoder="broken", workers=1, licence="CC0-1.0")

    assert not list(tmp_path.glob("s*"))
