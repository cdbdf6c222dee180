"""Give mteb the vectors of a sealed store as a model, so that a task of MVEB runs without a video.

    python obygaze_mteb.py STORE[:BACKBONE] TASK [--id-column NAME] [--out FOLDER]

The vectors were extracted once, by any backbone and with its provenance; mteb asks for them row by row. A row
of a task is found in the store by its id, in a column of the task's table that holds the store's clip ids;
without one by the SHA-256 of its video, which `obygaze extract --hash-sources` keeps. A row that the store
lacks is an error: no vector is made up, and none is left out. The store's fingerprint is the model's
revision, and stands in every result.

mteb hands a model the columns that a task's kind names, and most kinds drop ids. `put_ids` therefore writes
each row's id in place of its video before the task is run: nothing else reads the videos.
"""

import argparse
import hashlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mteb
import numpy as np
from datasets import Dataset, Video
from mteb.abstasks import AbsTask
from mteb.models import ModelMeta
from mteb.models.abs_encoder import AbsEncoder
from numpy.typing import NDArray

import obygaze_features as of

ID_COLUMNS = ("clip_id", "video_id", "id")
"""Columns of ids that are looked for, in this order, unless one is named."""
SHOWN = 5
"""Ids that a message names."""


class MissingClipsError(LookupError):
    """A task has rows that a store has no vectors of."""


class StoreModel(AbsEncoder):
    """A model of mteb whose vectors are those of a store.

    Parameters
    ----------
    store
        Folder of a sealed store.
    backbone
        Its group; of a store of one backbone it may be left out.
    """

    def __init__(self, store: str | Path, backbone: str | None = None) -> None:
        self.store = of.open_store(store)
        self.backbone = backbone or only_backbone(self.store)
        self.group = self.store[self.backbone]
        self.usable = {}
        self.clip_of_digest = {}
        for clip in self.store.clips:
            if clip.status in ("ok", "partial"):
                self.usable[clip.clip_id] = clip
        digests = Counter(digest_of(clip) for clip in self.usable.values())
        for clip_id, clip in self.usable.items():
            if digests[digest_of(clip)] == 1:  # several clips of one film have one digest, which names none
                self.clip_of_digest[digest_of(clip)] = clip_id
        self.mteb_model_meta = meta_of(self)

    def encode(self, inputs: Any, *, task_metadata: Any, hf_split: str, **_: object) -> NDArray[np.float32]:
        """Return the vectors of a split's rows, float32 `[N, D]`, in the order of the rows.

        Raises
        ------
        MissingClipsError
            Naming rows that the store lacks.
        """
        where = f"{task_metadata.name}, {hf_split}"
        clip_ids = self._clip_ids(inputs.dataset, where)
        missing = [clip_id for clip_id in clip_ids if clip_id not in self.usable]
        if missing:
            shown = ", ".join(missing[:SHOWN])
            raise MissingClipsError(
                f"{where}: {len(missing)} of {len(clip_ids)} rows have no vector in {self.store.name}: "
                f"{shown}; extract these clips too: a result without them is none of this task"
            )
        return np.stack([self.group.read(clip_id, "pooled") for clip_id in clip_ids])

    def _clip_ids(self, table: Dataset, where: str) -> list[str]:
        """Find the clip id of each row: by a column of ids, or the digests of the videos."""
        name = id_column_of(table)
        if name:
            return [str(clip_id) for clip_id in table[name]]
        if "video" not in table.column_names:
            raise MissingClipsError(f"{where}: its table has no column of ids, and no video")
        videos = undecoded(table)["video"]
        if all(isinstance(video, str) for video in videos):  # `put_ids` wrote them
            return list(videos)
        if set(self.clip_of_digest) <= {""}:
            raise MissingClipsError(
                f"{where}: its table has no column of ids, and {self.store.name} keeps no digests of videos: "
                "extract with --hash-sources"
            )
        digests = [digest_of_video(video) for video in videos]
        return [self.clip_of_digest.get(digest, f"video {digest[:12]}") for digest in digests]


def id_column_of(table: Dataset) -> str:
    """Return the column of a table that holds ids; empty without."""
    return next((name for name in ID_COLUMNS if name in table.column_names), "")


def put_ids(task: AbsTask, id_column: str = "") -> None:
    """Load a task's data, and put the id of each row in place of its video where its tables have ids.

    Parameters
    ----------
    id_column
        The column; without one `ID_COLUMNS` are looked for.

    Raises
    ------
    MissingClipsError
        If a table has no column of that name.
    """
    task.load_data()
    for split, table in task.dataset.items():
        name = id_column or id_column_of(table)
        if id_column and id_column not in table.column_names:
            raise MissingClipsError(f"{task.metadata.name}, {split}: its table has no column {id_column}")
        if name and "video" in table.column_names:
            ids = [str(clip_id) for clip_id in table[name]]
            task.dataset[split] = table.remove_columns("video").add_column("video", ids)


def only_backbone(store: of.Store) -> str:
    """Return the one backbone of a store."""
    if len(store.backbones) != 1:
        raise SystemExit(f"{store.name} has {', '.join(store.backbones)}: write STORE:BACKBONE")
    return store.backbones[0]


def digest_of(clip: Any) -> str:
    """Return the SHA-256 of a stored clip's file; empty where it was not kept."""
    return str((clip.source or {}).get("sha256") or "")


def undecoded(table: Dataset) -> Dataset:
    """Return a table whose videos are files or bytes: hashing needs no frame."""
    is_decoded = isinstance(table.features["video"], Video)
    return table.cast_column("video", Video(decode=False)) if is_decoded else table


def digest_of_video(video: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a video, by its bytes or by the file that it names."""
    octets = video.get("bytes")
    if octets is None:
        with Path(video["path"]).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(octets).hexdigest()


def meta_of(model: StoreModel) -> ModelMeta:
    """Describe the model for mteb's results: backbone, the store's fingerprint, and the weights."""
    provenance = model.group.provenance
    hub = provenance.get("hub") or {}
    return ModelMeta.create_empty(
        overwrites={
            "name": f"obygaze/{model.store.name}-{model.backbone}".replace(":", "-"),
            "revision": model.store.fingerprint,
            "modalities": ["video"],
            "reference": f"https://huggingface.co/{hub['repository']}" if hub else None,
            "experiment_kwargs": {
                "store": model.store.fingerprint,
                "weights": provenance.get("weights_sha256"),
            },
        }
    )


def main() -> None:
    """Run a task of mteb on a store's vectors, and print its main score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", help="STORE or STORE:BACKBONE")
    parser.add_argument("task", help="name of a task of mteb")
    parser.add_argument("--id-column", default="", help="column of the task's tables with clip ids")
    parser.add_argument("--out", default="results")
    options = parser.parse_args()
    store, _, backbone = options.store.partition(":")
    model = StoreModel(store, backbone or None)
    tasks = mteb.get_tasks(tasks=[options.task])
    for task in tasks:
        put_ids(task, options.id_column)
    results = mteb.evaluate(model, tasks, cache=mteb.ResultCache(options.out))
    for result in results.task_results:
        print(result.task_name, result.get_score(), model.mteb_model_meta.revision)


if __name__ == "__main__":
    main()
