"""Evaluate a model on a store: one movie left out at a time, with baselines.

Run it with: python examples/first_evaluation.py
"""

import tempfile
from pathlib import Path

from toy_films import write_toy_films

import obygaze_features as of
import obygaze_models as om
from obygaze_models.report import plain


def main(folder: Path) -> None:
    """Evaluate the linear probe on the toy corpus and print the tables."""
    manifest_path, store_path = write_toy_films(folder)
    data = om.load_dataset(of.open_store(store_path), of.read_manifest(manifest_path))
    print(f"{len(data)} clips of {len(set(data.movies))} movies; left out:")
    for clip in data.excluded:
        print(f"  {clip.clip_id}: {clip.reason}")

    # Trained on HN vs S, tested on (EN or HN) vs S: the movie tested is never trained on.
    run = om.evaluate(data, {"linear": om.linear_probe()}, task="hn_s", test="enhn_s")
    print(plain(om.run_report(run)))

    # Is it better than knowing each movie's share of S? Compare movie by movie.
    kept = om.saved(run)
    found = om.compare(om.side(kept, "linear"), om.side(kept, "movie_prior"))
    print(plain(om.comparison_report(found)))

    # Everything printed, and every prediction behind it, as files.
    om.write_run(run, folder / "runs" / "linear")
    print("written:", ", ".join(sorted(path.name for path in (folder / "runs" / "linear").iterdir())))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
