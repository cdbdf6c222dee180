"""Read the annotations of LSMDC16 (a sentence per clip), and find the clips' videos."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from obygaze_studies.errors import TrainError

FILES: Mapping[str, str] = {
    "training": "LSMDC16_annos_training.csv",
    "validation": "LSMDC16_annos_val.csv",
    "test": "LSMDC16_challenge_1000_publictect.csv",  # the published spelling
}
"""Split -> its file."""

FIELDS = "clip id, start and end aligned, start and end extracted, sentence"
N_FIELDS = 6
SIDE_FILES = frozenset(
    {".csv", ".txt", ".json", ".srt", ".vtt", ".jpg", ".jpeg", ".png", ".wav", ".md5", ".md"}
)
"""What may lie beside a video under the same name."""


@dataclass(frozen=True, slots=True)
class Caption:
    """One sentence of one clip, with its line in the file; a clip may have several, and each is a sample."""

    clip_id: str
    sentence: str
    line: int


def read_annotations(folder: Path) -> dict[str, tuple[Caption, ...]]:
    """Read the three files of LSMDC16, split by split.

    Raises
    ------
    TrainError
        If a file is missing or a line is malformed.
    """
    return {split: read_captions(folder / name) for split, name in FILES.items()}


def read_captions(path: Path) -> tuple[Caption, ...]:
    """Read one file of LSMDC16: no header, six fields separated by TABs, UTF-8.

    Raises
    ------
    TrainError
        If there is no such file, or a line does not have six fields; the message names it.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        wanted = ", ".join(FILES.values())
        raise TrainError(
            f"{path}: there is no such file; --annotations names the folder with {wanted}"
        ) from None
    captions = []
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if not raw and number > data.count(b"\n"):  # after the last line's end
            break
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            raise TrainError(
                f"{path} line {number}: not UTF-8; convert the file, e.g. with iconv -t UTF-8"
            ) from None
        values = line.strip().split("\t")
        if len(values) == N_FIELDS - 1 and line.rstrip(" \r\n").endswith("\t"):
            raise TrainError(f"{path} line {number}: the sentence is empty; remove the line")
        if len(values) != N_FIELDS:
            raise TrainError(
                f"{path} line {number}: expected {N_FIELDS} fields separated by TABs ({FIELDS}), "
                f"found {len(values)}"
            )
        if not values[0] or "/" in values[0] or values[0].startswith("."):
            raise TrainError(f"{path} line {number}: {values[0]!r} is not a clip id")
        captions.append(Caption(values[0], values[-1], number))
    if not captions:
        raise TrainError(f"{path}: the file is empty")
    return tuple(captions)


def find_videos(folder: Path, clip_ids: Iterable[str]) -> dict[str, Path]:
    """Find the videos of clips below a folder: a file's name without its last extension is the clip id.

    Returns
    -------
    Clip id -> file, for the clips found.

    Raises
    ------
    TrainError
        If there is no such folder, it has no video of any clip, or two files have the same clip id.
    """
    if not folder.is_dir():
        raise TrainError(f"{folder}: there is no such folder; --videos names the folder of the clips")
    wanted = set(clip_ids)
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        clip_id = path.stem
        if clip_id not in wanted or path.suffix.lower() in SIDE_FILES or not path.is_file():
            continue
        if clip_id in found:
            raise TrainError(f"{found[clip_id]} and {path}: two files of one clip id; keep one of them")
        found[clip_id] = path
    if wanted and not found:
        raise TrainError(
            f"{folder}: there is no video of any of the {len(wanted)} clips, such as {min(wanted)}.avi; "
            "--videos names the folder of the clips, whose files are named by their ids"
        )
    return found
