"""Define a clip, a labelled span of a video."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from obygaze_features.errors import ManifestError
from obygaze_features.text import unsuitable

FIELDS: tuple[str, ...] = (
    "clip_id",
    "movie",
    "video",
    "start_s",
    "end_s",
    "level",
    "concepts",
    "annotator",
)
"""The columns that every manifest has, in order; extras follow."""

CODEBOOK_COLUMN = "codebook"
"""The column after FIELDS that names the codebook, where it is not the default one."""


@dataclass(frozen=True, slots=True)
class Clip:
    """A span of a video with its annotations.

    Parameters
    ----------
    clip_id
        Unique in its manifest; no slash, backslash or leading dot, since it names things on disk.
    movie
        The film the clip is from, an IMDb id where there is one: the unit of grouped splits.
    video
        Path of the video, relative to the manifest's folder, or absolute; "" where no file is known.
    start_s, end_s
        Span in seconds of presentation time, end exclusive; both None for the whole file.
    level
        A level of the manifest's codebook; None where the clip is not annotated.
    concepts
        Concepts of the manifest's codebook, each once; the manifest puts them in its codebook's order.
    annotator
        Who said so; "" for a merged or unknown annotation.
    extras
        Any further column, kept verbatim; texts of several lines are allowed.

    Raises
    ------
    ManifestError
        Naming the clip and the column, if a value is not allowed.

    Examples
    --------
    >>> from obygaze_features import Clip
    >>> clip = Clip("film0-c000", "film0", start_s=0, end_s=4, level="S", concepts=("Body",))
    >>> clip.duration_s
    4.0
    """

    clip_id: str
    movie: str
    video: str = ""
    start_s: float | None = None
    end_s: float | None = None
    level: str | None = None
    concepts: tuple[str, ...] = ()
    annotator: str = ""
    extras: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        self._check_texts()
        self._check_span()
        object.__setattr__(self, "concepts", tuple(dict.fromkeys(self.concepts)))
        object.__setattr__(self, "extras", dict(self.extras))

    @property
    def duration_s(self) -> float | None:
        """Length of the span in seconds, None for a whole file."""
        return None if self.start_s is None or self.end_s is None else self.end_s - self.start_s

    def _check_texts(self) -> None:
        for column in ("clip_id", "movie"):
            self._check(bool(getattr(self, column)), column, "is empty")
        for column in ("clip_id", "movie", "video", "annotator"):
            text: str = getattr(self, column)
            self._check_signs(column, text)
            self._check(text == text.strip(), column, f"{text!r} begins or ends with a space")
        self._check(
            not any(sign in self.clip_id for sign in "/\\") and not self.clip_id.startswith("."),
            "clip_id",
            "holds a slash or a backslash, or begins with a dot",
        )
        for column, text in self.extras.items():
            self._check(
                bool(column) and column not in (*FIELDS, CODEBOOK_COLUMN),
                column,
                "is no name for an extra column",
            )
            self._check_signs("extra column", column)
            self._check_signs(column, text, lines=True)

    def _check_signs(self, column: str, text: str, *, lines: bool = False) -> None:
        what = unsuitable(text, lines=lines)
        self._check(what is None, column, f"{text!r} {what}")

    def _check_span(self) -> None:
        start, end = self.start_s, self.end_s
        if start is None or end is None:
            self._check(
                start is None and end is None,
                "start_s" if start is None else "end_s",
                "is empty: give both ends of the span, or neither for the whole file",
            )
            return
        for column, seconds in (("start_s", start), ("end_s", end)):
            self._check(math.isfinite(seconds), column, f"{seconds} is not a finite number of seconds")
            self._check(seconds >= 0, column, f"{seconds} is negative")
            object.__setattr__(self, column, float(seconds) + 0.0)  # + 0.0: minus zero is zero
        self._check(start < end, "end_s", f"{end} is not after start_s {start}")

    def _check(self, holds: bool, column: str, what: str) -> None:
        if not holds:
            raise ManifestError(f"clip {self.clip_id!r}: {column} {what}", column)
