"""Maps of a network are measured, drawn and laid over their pictures."""

import csv
import json
import sys

import pytest
from PIL import Image, ImageDraw
from safetensors.torch import save_file

from obygaze_studies.saliency.maps_file import SIDE, read_maps

pytestmark = pytest.mark.usefixtures("grad_cam")

# A network whose only class is red: red over blue in patches of 32 x 32.
RED = """
import torch
from torch import nn


def red():
    stem = nn.Conv2d(3, 1, 32, stride=32, bias=False)
    with torch.no_grad():
        stem.weight.zero_()
        stem.weight[0, 0], stem.weight[0, 2] = 1 / 1024, -1 / 1024
    pool, head = nn.AdaptiveAvgPool2d(1), nn.Linear(1, 1)
    nn.init.ones_(head.weight)
    nn.init.zeros_(head.bias)
    return nn.Sequential(stem, nn.ReLU(), pool, nn.Flatten(), head)
"""


@pytest.fixture
def mapped(tmp_path, monkeypatch, obygaze):
    """Live maps of three drawings: red at the top left, red at the bottom right, and no red at all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "rednets.py").write_text(RED, encoding="utf-8")
    sys.modules.pop("rednets", None)
    import rednets

    save_file(rednets.red().state_dict(), tmp_path / "red.safetensors")
    folder = tmp_path / "stills" / "shapes"
    folder.mkdir(parents=True)
    corner, low = (120, 4, 190, 80), (280, 150, 330, 220)  # networks see the square from 112 to 336
    drawings = {"top": ("red", corner), "low": ("red", low), "blue": ("blue", corner)}
    for name, (colour, place) in drawings.items():
        image = Image.new("RGB", (448, 224), (60, 60, 60))
        ImageDraw.Draw(image).rectangle(place, fill=colour)
        image.save(folder / f"{name}.png")
    (tmp_path / "p.csv").write_text(
        "image_id,text,group\n" + "".join(f"shapes-{name},0,red\n" for name in drawings), encoding="utf-8"
    )
    half = SIDE // 2
    (tmp_path / "roi.csv").write_text(
        "image_id,roi,y0,x0,y1,x1\n"
        + "".join(f"shapes-{name},corner,0,0,{half},{half}\n" for name in drawings),
        encoding="utf-8",
    )
    assert obygaze("manifest", "import", "images", "stills", "--out", "stills.csv") == 0
    network = ["--network", "rednets:red", "--layer", "1", "--weights", "red.safetensors"]
    assert obygaze("gradcam", "stills.csv", "--pairs", "p.csv", *network, "--out", "maps.zarr") == 0
    return tmp_path


def test_live_maps_are_measured_drawn_and_laid_over_their_pictures(mapped, capsys, obygaze):
    asked = ["audit", "saliency", "--maps", "maps.zarr", "--roi", "roi.csv", "--out", "found.csv"]
    assert obygaze(*asked, "--figure", "f.svg", "--overlays", "laid", "--pictures", "stills.csv") == 0
    with (mapped / "found.csv").open(encoding="utf-8", newline="") as file:
        top, low, blue = csv.DictReader(file)
    assert (top["image_id"], top["hit"], low["hit"]) == ("shapes-top", "true", "false")
    assert float(top["share"]) > 0.95
    assert float(low["share"]) < 0.05
    assert (blue["empty"], blue["share"], blue["hit"]) == ("true", "", "")
    document = json.loads((mapped / "found.json").read_text(encoding="utf-8"))
    (group,) = document["record"]["summary"]["groups"]
    assert (group["group"], group["n_maps"], group["n_empty"], group["share_of_hits"]) == ("red", 3, 1, 0.5)
    assert dict(read_maps(mapped / "maps.zarr").about).items() <= document["record"].items()
    assert document["record"]["layer"] == "1"
    assert len(list((mapped / "laid").iterdir())) == 3
    assert (mapped / "f.svg").stat().st_size
    assert document["record"]["summary"]["n_images_with_regions_only"] == 0
    assert "results kept in found.csv" in capsys.readouterr().err


def test_regions_and_maps_of_different_images_are_said(mapped, capsys, obygaze):
    asked = ["audit", "saliency", "--maps", "maps.zarr", "--out", "found.csv", "--roi"]
    boxes = (mapped / "roi.csv").read_text(encoding="utf-8")
    (mapped / "more.csv").write_text(f"{boxes}other,face,0,0,9,9\nother,chest,9,9,20,20\n", encoding="utf-8")
    assert obygaze(*asked, "more.csv") == 0
    assert "regions of 1 images that have no map were not used" in capsys.readouterr().out
    document = json.loads((mapped / "found.json").read_text(encoding="utf-8"))
    assert document["record"]["summary"]["n_images_with_regions_only"] == 1
    (mapped / "fewer.csv").write_text(boxes.replace("shapes-low", "shapes-high"), encoding="utf-8")
    assert obygaze(*asked, "fewer.csv", "--force") == 1
    assert "image shapes-low has no region of interest" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "place"),
    [
        (["--out", "x.csv"], 2, "--maps"),
        (["--maps", "maps.zarr", "--out", "x.zarr"], 2, "x.zarr"),
        (["--maps", "stills", "--out", "x.csv"], 1, "stills"),
        (
            ["--maps", "maps.zarr", "--out", "x.csv", "--overlays", "l", "--pictures", "stills"],
            1,
            "shapes-top",
        ),
    ],
)
def test_a_wrong_use_is_said(mapped, capsys, arguments, code, place, obygaze):
    assert obygaze("audit", "saliency", *arguments) == code
    assert place in capsys.readouterr().err
    assert not (mapped / "x.csv").exists()
