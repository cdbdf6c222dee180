"""Explain a decision by concepts, and ask what would change it.

Run it with: python examples/explain_a_clip.py
"""

import tempfile
from pathlib import Path

from toy_films import write_toy_films

import obygaze_features as of
import obygaze_models as om


def main(folder: Path) -> None:
    """Fit a concept bottleneck, take one clip's logit apart, and intervene on a concept."""
    manifest_path, store_path = write_toy_films(folder)
    data = om.load_dataset(of.open_store(store_path), of.read_manifest(manifest_path))

    # Concepts that occur, with names from the data frame's columns; -1 marks clips outside of the task.
    present = data.present[["Body", "Clothing"]]
    y = om.find_target("hn_s", data.codebook).of(data.labels)
    model = om.ConceptBottleneck().fit(data.X, y, groups=data.movies, present=present)

    row = int(model.decision_function(data.X).argmax())
    clip = data.X[row : row + 1]
    found = model.explain(clip)
    print(f"{data.clip_ids[row]}: logit {found.score:+.2f}, threshold {found.threshold:+.2f}")
    print(f"  mean training clip {found.base:+.2f}")
    for one in found.contributions:
        print(f"  {one.concept:10} {one.contribution:+.2f}  (percentile {one.percentile:.0f})")

    for quantile in (0.05, 0.95):
        logit = model.intervene(clip, {"Body": quantile})[0]
        print(f"with Body at the {quantile:.0%} quantile: logit {logit:+.2f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
