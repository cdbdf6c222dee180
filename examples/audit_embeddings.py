"""Audit an embedding space: test whether images of one group are closer to some texts than another group's.

The embedding association test (Wolfe et al., FAccT 2023; docs/audits) on planted vectors. With real ones,
extract images with `clip` and texts with `clip-text`, of the same weights.
Run it with: python examples/audit_embeddings.py
"""

import tempfile
from pathlib import Path

import numpy as np

from obygaze_features.store.testing import seal_arrays
from obygaze_models.report import plain, write_report
from obygaze_studies.audit_common.embeddings import read_embeddings
from obygaze_studies.eat import audit_eat
from obygaze_studies.eat_stimuli import EatTest

SPACE = "planted-clip sha256:0123"
SAD, NEUTRAL = ("a sad person", "an unhappy person"), ("a person", "a photo of a person")


def main(folder: Path) -> None:
    """Plant images of group x near the texts of sadness, and find them there."""
    rng = np.random.default_rng(0)

    def near(centre: float, n: int) -> np.ndarray:
        return rng.normal(size=(n, 6)) * 0.5 + centre * np.eye(6)[0]

    groups = {f"{group}{number}": group for group in "xy" for number in range(6)}
    images = np.vstack([near(1, 6), near(-1, 6)]).astype(np.float32)
    seal_arrays(folder / "images", dict.fromkeys(groups, "-"), {"clip": {"pooled": images}}, space=SPACE)
    texts = {f"{number:06}": text for number, text in enumerate((*SAD, *NEUTRAL))}
    vectors = np.vstack([near(1, 2), near(-1, 2)]).astype(np.float32)
    seal_arrays(
        folder / "texts",
        dict.fromkeys(texts, "-"),
        {"clip-text": {"pooled": vectors}},
        texts=texts,
        space=SPACE,
    )
    attributes = read_embeddings(folder / "texts")
    report = audit_eat(
        read_embeddings(folder / "images"),
        attributes,
        items={name: {"item_id": name, "group": group} for name, group in groups.items()},
        text_ids=attributes.text_ids(),
        tests=[EatTest("sad_by_group", {"group": "x"}, {"group": "y"}, SAD, NEUTRAL)],
    )
    print(plain(report))
    (folder / "report").mkdir()
    try:
        print("written:", *write_report(report, folder / "report"))
    except ImportError:
        print("tables written; figures need obygaze[figures]")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
