"""The effect sizes printed in Tables 1 and 2 of Wolfe et al., FAccT 2023."""

from collections.abc import Mapping
from dataclasses import dataclass

from obygaze_models.audits.eat_tests import SELECTIONS

_PRINTED = {
    "CLIP ViT-B32": "1.09* 1.12* 0.95* 1.42* 0.22 0.19 0.60* 0.37 1.03*",
    "CLIP ViT-B16": "1.26* 1.09* 0.51* 0.69* 0.68* 0.44 0.11 0.79* 0.76*",
    "CLIP ViT-L14": "0.26 0.20 0.33 0.20 -1.08* -0.43 -0.07 1.11* 0.68*",
    "CLIP RN101": "1.11* 0.78* 0.96* 0.68* -0.29 -0.14 0.65* 0.99* 1.20*",
    "CLIP RN50": "0.70* 0.49 0.44 0.52* -0.24 -0.19 0.49 0.18 1.20*",
    "CLIP RN50x4": "0.29 0.14 -0.06 -0.13 0.05 -0.04 0.48 0.88* 1.13*",
    "CLIP RN50x16": "1.26* 0.84* 0.39 0.29 0.23 0.06 0.14 1.02* 0.80*",
    "CLIP RN50x64": "1.06* 0.82* 0.63* 0.29 -0.13 0.32 -0.06 0.66* 0.32",
    "OpenCLIP ViT-B32": "1.37* 1.24* 1.61* 1.50* 1.26* 0.82* 0.62* 0.86* 0.89*",
}


@dataclass(frozen=True)
class Printed:
    """A printed effect size, rounded to two decimals, and whether it has a star; 20 + 20 images."""

    d: float
    star: bool


def _table() -> dict[str, dict[str, Printed]]:
    names = [test.name for table in ("table1", "table2") for test in SELECTIONS[table]]
    return {
        model: {
            name: Printed(float(cell.rstrip("*")), cell.endswith("*"))
            for name, cell in zip(names, cells.split(), strict=True)
        }
        for model, cells in _PRINTED.items()
    }


PUBLISHED: Mapping[str, Mapping[str, Printed]] = _table()
"""Model -> test -> what is printed."""
