"""What else fuzz.py feeds: videos, stills, tables and documents, read as the commands read them."""

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import h5py
import numpy as np
import torch
from PIL import Image
from safetensors.torch import save

from obygaze_features import sandbox
from obygaze_features.backbones.checkpoint import load_state_dict
from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import ObygazeError
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.import_files import torch_files
from obygaze_features.exchange.import_items import ImportItem
from obygaze_features.exchange.import_tables import table_items
from obygaze_features.exchange.row_ids import read_ids
from obygaze_features.manifest import import_spans, load_codebook, refi_qda_archive
from obygaze_features.manifest.importers import spans
from obygaze_features.manifest.importers.film_windows import read_parts
from obygaze_features.video import (
    SoundTrack,
    find_shots,
    played,
    read_frames,
    read_subtitle_track,
    read_windows,
    uniform,
)
from obygaze_models.evaluation.predictions import Predictions
from obygaze_studies.alpha import read_ratings
from obygaze_studies.caption_words import read_captions
from obygaze_studies.eat_stimuli import read_tests
from obygaze_studies.saliency.maps_file import read_regions

Target = Callable[[bytes], None]
SIZE = (48, 64)

LOST: Counter[str] = Counter()
"""How the processes that read HDF5 ended, other than well."""


class GivenUpError(Exception):
    """A process that reads spans took more than its limits, or crashed."""


def count_lost(error: ObygazeError) -> None:
    """Count the ends of a process that reads HDF5; let other ends, and a flood of memory, be findings."""
    if "needs more memory" in str(error):
        raise MemoryError(str(error))
    if sandbox.WHAT_TO_DO in str(error):
        raise GivenUpError(str(error))
    LOST.update(re.findall(r"crashed .*\(signal \d+\)|took more than \d+ s|was killed", str(error)))


def file_target(path: Path, read: Callable[[], object], undo: Callable[[], object] = lambda: None) -> Target:
    """Write the bytes to a file, read it, put everything back."""
    good = path.read_bytes()

    def run(data: bytes) -> None:
        path.write_bytes(data)
        try:
            read()
        except ObygazeError as error:
            count_lost(error)
        finally:
            path.write_bytes(good)
            undo()

    return run


LEVELS = (
    'name = "violence"\nversion = "1"\n[[levels]]\nname = "calm"\n[[levels]]\nname = "violent"\n'
    '[[concepts]]\nname = "Gun"\nvisual = true\nsynonyms = ["gun", "pistol"]\n'
    '[tasks.calm_violent]\nnegative = ["calm"]\npositive = ["violent"]\n'
)
PREDICTIONS = "model,task,fold,seed,clip_id,movie,label,score,threshold,store\n" + "".join(
    f"linear,a > b,{fold},0,c{fold},m{fold},{fold % 2},0.{fold}5,0.5,{'f' * 64}\n" for fold in range(4)
)
EAT = '[{"name": "t", "X": {"level": "S"}, "Y": ["b", "c"], "A": ["a man", "a boy"], "B": "women"}]'


def video(codec: str, container: str, sound: str = "") -> bytes:
    """Encode two dozen frames that change at once in the middle, with noise of a codec to be heard."""
    rng = np.random.default_rng(0)
    data = io.BytesIO()
    with av.open(data, "w", format=container) as output:
        stream = output.add_stream(codec, rate=12)
        stream.width = SIZE[1]
        stream.height = SIZE[0]
        stream.pix_fmt = "yuv420p"
        stream.codec_context.gop_size = 8
        track = output.add_stream(sound, rate=44_100, layout="mono") if sound else None
        scenes = [rng.integers(0, 255, (*SIZE, 3), np.uint8) // 8 * 8 for _ in range(2)]
        for number in range(24):
            picture = np.roll(scenes[number // 12], number, axis=1)
            output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            if track is not None:
                noise = rng.normal(0, 0.1, (1, 44_100 // 12)).astype(np.float32)
                heard = av.AudioFrame.from_ndarray(noise, format="fltp", layout="mono")
                heard.sample_rate = 44_100
                heard.pts = number * noise.shape[1]
                output.mux(track.encode(heard))
        output.mux(stream.encode(None))
        if track is not None:
            output.mux(track.encode(None))
    return data.getvalue()


def still(kind: str) -> bytes:
    """Write a picture."""
    data = io.BytesIO()
    Image.fromarray(np.arange(48 * 64 * 3, dtype=np.uint8).reshape(*SIZE, 3)).save(data, kind)
    return data.getvalue()


def watch(path: Path) -> None:
    """Read a video as an extraction does: whole, a span, windows, sound; look for shots and subtitles."""
    read_frames(path, uniform(4))
    for read in (
        lambda: read_frames(path, uniform(3), start_s=0.5, end_s=1.5, strict=True),
        lambda: list(read_windows(path, [(0.0, 1.0), (0.5, 1.5)], [(uniform(2), np.shape)])),
        lambda: find_shots(path),
        lambda: SoundTrack(path).parts(0.0, 1.0, [], rate=8000),
        lambda: read_subtitle_track(path),
        lambda: list(played(path)),
    ):
        try:
            read()
        except ObygazeError:
            continue


def read_table(path: Path) -> None:
    """Read a table of features whole."""
    with table_items(path, ids=None) as (items, _):
        load_all(items)


def load_all(items: Mapping[str, ImportItem]) -> None:
    """Load the arrays of every clip."""
    for item in items.values():
        item.load()


def media() -> dict[str, tuple[str, bytes, Callable[[Path], object]]]:
    """Give name -> (suffix, a good file, what reads it) of videos and stills."""
    videos = {
        "mp4": video("libx264", "mp4"),
        "mkv": video("libx264", "matroska"),
        "webm": video("libvpx-vp9", "webm"),
        "avi": video("mpeg4", "avi"),
        "ts": video("mpeg2video", "mpegts"),
        "m2ts": video("libx264", "mpegts", "ac3"),
        "vob": video("mpeg2video", "vob", "ac3"),
        "flv": video("libx264", "flv", "aac"),
        "mov": video("libx264", "mov", "aac"),
    }
    stills = {"png": still("PNG"), "jpg": still("JPEG"), "webp": still("WEBP")}
    return {
        **{name: (name, data, watch) for name, data in videos.items()},
        **{name: (name, data, lambda path: read_frames(path, uniform(1))) for name, data in stills.items()},
    }


class KeptReader:
    """A process that reads spans for all inputs: to fork this large one for each takes most of the time."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._child: sandbox.Child | None = None

    @contextmanager
    def reader(self) -> Iterator[sandbox.Child]:
        """Give the process, and start it first where there is none."""
        if self._child is None:
            self._child = self._open.enter_context(sandbox.reader_process())
        yield self._child

    def end(self) -> None:
        """End the process."""
        self._child = None
        self._open.close()


SPAN_READER = KeptReader()


def foreign_spans() -> dict[str, tuple[str, bytes, Callable[[Path], object]]]:
    """Give a file of each kind that `import_spans` reads, told by its content and read as that kind."""
    from obygaze_features.manifest.spans.span_file import KINDS
    from tests.manifest.spans.files import EXAMPLES, sheet

    spans.reader_process = SPAN_READER.reader

    def read(kind: str, path: Path) -> None:
        for kind_given in (kind, ""):
            try:
                imported = import_spans(
                    [path], path.parent, kind_given, movie="m", annotator="a", rate=Fraction(25)
                )
                (account,) = imported.accounts
                assert account.seen == account.used + account.n_left_out
            except ObygazeError as error:
                count_lost(error)

    contents = {kind: facts["sample"] for kind, facts in KINDS.items()}
    contents |= {kind: example.content for kind, example in EXAMPLES.items()}
    contents["refi-qda.qdpx"] = refi_qda_archive(str(contents["refi-qda"]))
    contents["table.xlsx"] = sheet([["movie", "start_s", "end_s"], ["m", 1.0, ("time", 0.01)]])
    return {
        f"spans {kind}": (
            kind.rpartition(".")[2],
            content.encode() if isinstance(content, str) else content,
            partial(read, kind.partition(".")[0]),
        )
        for kind, content in contents.items()
    }


def documents() -> dict[str, tuple[str, bytes, Callable[[Path], object]]]:
    """Give name -> (suffix, a good file, what reads it) of tables and documents."""

    def read_state(path: Path) -> None:
        load_state_dict(find_weights(path))

    arrays = io.BytesIO()
    state = io.BytesIO()
    matrix = io.BytesIO()
    annotated = io.BytesIO()
    with h5py.File(matrix, "w") as file:
        file["ids"] = ["a", "b", "c"]
        file["features"] = np.ones((3, 4), np.float32)
    with h5py.File(annotated, "w") as file:
        file["X"] = np.ones((3, 4), np.float32)
        file["obs/clip/categories"] = ["a", "b", "c"]
        file["obs/clip/codes"] = np.array([2, 0, 1], np.int8)
        file["obs/status"] = ["ok", "ok", "partial"]
        file["uns/provenance"] = "{}"
        file["obs"].attrs["_index"] = "clip"
    torch.save({"a": torch.ones(2), "b": torch.ones(2, 2)}, state)
    np.savez(arrays, clip_id=np.array(["a", "b", "c"]), features=np.ones((3, 4), np.float32))
    texts: dict[str, tuple[str, str, Callable[[Path], object]]] = {
        "codebook": ("toml", LEVELS, load_codebook),
        "parts": ("csv", "movie,start_s,end_s,flags\nm,0,1.5,\nm,1.5,00:00:03.5,\n", read_parts),
        "predictions": ("csv", PREDICTIONS, Predictions.read),
        "list of ids": ("csv", "clip_id,note\na,x\nb,\n", read_ids),
        "table": ("csv", "clip_id,f0,f1\na,0.5,1\nb,2,1e-3\n", read_table),
        "captions": ("csv", 'image_id,caption\na,"a man, a plan"\nb,a woman\n', read_captions),
        "ratings": ("csv", "item_id,ann,bob\na,1,2\nb,,3\n", read_ratings),
        "regions": ("csv", "image_id,roi,y0,x0,y1,x1\na,face,0,0,20,30\n", read_regions),
        "association tests": ("json", EAT, read_tests),
    }
    return {
        **foreign_spans(),
        **{name: (suffix, text.encode(), read) for name, (suffix, text, read) in texts.items()},
        "hdf5 table": ("h5", matrix.getvalue(), read_table),
        "anndata": ("h5ad", annotated.getvalue(), read_table),
        "npz": ("npz", arrays.getvalue(), read_table),
        "pth": ("pth", state.getvalue(), lambda path: load_all(torch_files(path, ArrayChoice()))),
        "checkpoint": ("bin", state.getvalue(), read_state),
        "safetensors": ("safetensors", save({"a": torch.ones(2)}), read_state),
    }


SPANS = "spans "
"""How names of targets of spans begin, which need nothing else that is made here."""


def reader_targets(folder: Path, only: str = "") -> dict[str, tuple[Path, Target]]:
    """Give name -> (a good file, what reads it when it has other bytes).

    If `only` is the name of a target of spans, or how these begin, only targets of spans are made.
    """
    files = foreign_spans() if only.startswith(SPANS) else {**media(), **documents()}
    targets = {}
    for name, (suffix, data, read) in files.items():
        path = folder / f"{name}.{suffix}"
        path.write_bytes(data)
        targets[name] = path, file_target(path, partial(read, path))
    return targets
