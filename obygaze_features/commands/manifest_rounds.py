"""`obygaze manifest assign`: who annotates what."""

from collections import Counter
from pathlib import Path

from obygaze_features import manifest as manifests
from obygaze_features.options import Answer, Output, declared
from obygaze_features.templates import filled
from obygaze_features.text import composed


@declared(__package__, "manifest assign")
def assign(
    manifest: Path, annotators: tuple[str, ...], each: int, calibration: int, seed: int, output: Output
) -> Answer:
    """Assign the films of MANIFEST to annotators.

    Films, their lengths, and pairs of annotators are spread evenly; everybody's order is drawn at random,
    with the films for calibration evenly between the others. The file has a row for each annotator of each
    clip, without a level, with the columns calibration and order. The same seed gives the same rows.

    \b
    Examples:
      obygaze manifest assign clips.csv --annotator AB --annotator CD \\
          --annotator EF --annotator GH --each 2 --calibration 2 --out round.csv
    """
    output.refuse_existing()
    read = manifests.read_manifest(manifest)
    made = manifests.assign(read, annotators, each, calibration=calibration, seed=seed)
    written = manifests.write_manifest(made, output.path)
    names = map(composed, annotators)
    films = {name: list(dict.fromkeys(c.movie for c in written if c.annotator == name)) for name in names}
    clips = Counter(clip.annotator for clip in written)
    document = {"manifest": str(output.path), "films": films}
    return Answer(document, filled(__package__, "assign.txt.jinja", {**document, "clips": clips}).rstrip())
