"""Keep a record of the sums that a lab gave out, and refuse others that give clips' features by subtraction.

Sums are linear in clips. Two deliveries of a film whose clips, labels or concepts differ in a few clips
differ by the features of these clips, whoever subtracts them; of one clip, by its features themselves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct

from obygaze_features.door import read_text
from obygaze_features.io import write_whole
from obygaze_features.locks import locked
from obygaze_features.manifest import counted
from obygaze_models.dataset import Dataset
from obygaze_models.errors import ModelError
from obygaze_models.joint.sums import Sums, asked_clips

RECORD: Final = "sums-given.jsonl"
"""End of the record's name, after that of the store, beside which it is; it stays in the lab."""


class SumsGiven(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A film in sums that were given out.

    Attributes
    ----------
    movie : str
    features : str
        What they were made by: digest of the provenance, array and pooling.
    task : str
    clips : list of str
        The film's clips in the sums.
    columns : dict of str to list of str
        The clips with the positive label (``""``), and with each concept.
    """

    movie: str
    features: str
    task: str
    clips: list[str]
    columns: dict[str, list[str]]

    def apart(self, other: "SumsGiven") -> Iterator[int]:
        """Count in how many clips this film's clips, labels and concepts differ from another delivery's."""
        yield len({*self.clips} ^ {*other.clips})
        for name in self.columns.keys() & other.columns.keys():
            yield len({*self.columns[name]} ^ {*other.columns[name]})


@contextmanager
def recorded(data: Dataset, sums: Sums, path: Path) -> Iterator[None]:
    """Record that sums are given out, in a file beside their store, and hold it while they are written.

    Raises
    ------
    ModelError
        A film's clips differ from those of earlier sums, in fewer than `least`; or the record is damaged.
    """
    with locked(path.parent, wait=True):
        lines = read_text(path).splitlines() if path.is_file() else []
        earlier: dict[str, list[SumsGiven]] = {}
        for number, line in enumerate(lines, 1):
            try:
                given = msgspec.json.decode(line, type=SumsGiven)
            except msgspec.MsgspecError as error:
                raise ModelError(
                    f"{path}: line {number}: {error}: mend it, as it guards your clips"
                ) from None
            earlier.setdefault(given.movie, []).append(given)
        for film in _films(data, sums):
            known = [given for given in earlier.get(film.movie, ()) if given.features == film.features]
            for given in known:
                if few := [n for n in film.apart(given) if 0 < n < sums.about.least]:
                    raise ModelError(
                        f"film {film.movie} differs in {counted(min(few), 'clip')} from the sums for "
                        f"{given.task} that {path} records: subtracting them gives these clips' features. "
                        "Give the same clips and labels again, or take the film from the manifest"
                    )
            if not any(given.columns == film.columns and given.clips == film.clips for given in known):
                lines.append(msgspec.json.encode(film).decode())
        write_whole(path, "".join(f"{line}\n" for line in lines))
        yield


def _films(data: Dataset, sums: Sums) -> Iterator[SumsGiven]:
    about = sums.about
    rows, labels = asked_clips(data, about.target["name"])
    names, present = data.clip_ids[rows], data.labels.present[rows]
    columns = {"": labels, **dict(zip(about.concepts, present.T, strict=True))}
    for movie in about.movies:
        own = data.movies[rows] == movie
        yield SumsGiven(
            movie=movie,
            features=f"{about.provenance_sha256} {about.features} {about.pool}",
            task=about.target["name"],
            clips=np.sort(names[own]).tolist(),
            columns={
                name: np.sort(names[own & (np.asarray(column) == 1)]).tolist()
                for name, column in columns.items()
            },
        )
