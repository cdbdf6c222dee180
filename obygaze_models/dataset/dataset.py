"""Hold features, labels and movies of the same clips."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import made_by
from obygaze_features.manifest import Codebook
from obygaze_features.store import Group
from obygaze_features.text import counted
from obygaze_models.dataset.features import Features, StoredClips, read_array
from obygaze_models.errors import DatasetError, ProtocolError
from obygaze_models.protocol.targets import NOT_ASKED, Labels
from obygaze_models.reduction import ReducedTokens

if TYPE_CHECKING:
    import pandas as pd

Reads = Literal[Features, "seconds", "variables", "present", "answers"]
"""What a model reads: features, a clip's length, variables, its annotated concepts, a machine's answers."""

MAX_EQUAL_BY_CHANCE = 1e-3
"""Most features that may be expected to equal a label by chance, for features to be checked against it."""

MAX_UNEXPLAINED = 1e-9
"""A feature counts as equal to a label if 1 - r^2 is at most this, r being their correlation."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An annotated clip that is excluded, with the reason."""

    clip_id: str
    level: str
    reason: str


@dataclass(frozen=True, slots=True)
class Modality:
    """One of several backbones whose features a dataset has side by side.

    Attributes
    ----------
    name : str
        Name of the backbone, with the store's name before it if two stores have the same backbone.
    store, backbone, features, pool : str
        As in a `Dataset`.
    start, stop : int
        Its features are the columns `start` to `stop` - 1 of X.
    missing : int
        Number of clips that lack the modality; these columns of theirs are NaN.
    provenance : mapping
        Provenance of the store's group.
    """

    name: str
    store: str
    backbone: str
    features: Features
    pool: str
    start: int
    stop: int
    missing: int
    provenance: Mapping[str, Any] = field(default_factory=dict)


@made_by("load_dataset(STORE, MANIFEST)")
@dataclass(frozen=True, eq=False)
class Dataset:
    """The annotated clips of a manifest that have features, in the manifest's order.

    Attributes
    ----------
    X : ndarray of float32, shape [N, D]
        One vector per clip.
    labels : Labels
        Labels of the same N clips.
    codebook : Codebook
    backbone, features, pool : str
        The store's group and array, and how each clip's rows became one vector ("as stored" for pooled).
    store : str
        The store's fingerprint.
    label : str
        Name of the backbone, with the store's name before it if two stores have the same backbone.
    untrained : bool
        Whether the backbone's weights are random.
    excluded : tuple of Exclusion
        Annotated clips without usable features; no model gets them.
    counts : dict of str to int
        Numbers of clips. ``manifest``: in the manifest; ``unlabelled``: of these, without a level;
        ``in_no_task``: of these, with a level that no task uses; ``with_features``: in the dataset;
        ``partial``: of these, with a part of the video that could not be read; ``in_store_only``: in the
        store, or in one of several, but not in the manifest.
    partial : frozenset of str
        Ids of the clips of which a part of the video could not be read, in any store.
    group : Group, optional
        Group of the store from which frames and tokens are read.
    reduction : ReducedTokens, optional
        Reduced tokens, which models that read frames or tokens get in place of these.
    modalities : tuple of Modality
        The modalities whose features X has side by side; empty for a single backbone.
    parts : tuple of Dataset
        The datasets of the modalities, from which their frames are read.
    seconds : ndarray of float64, shape [N], optional
        The clips' lengths; None if a store lacks the length of some clip.
    variables : ndarray of float64, shape [N, V], optional
        Numbers of a table (`with_variables`); NaN where a clip has none.
    variable_names : tuple of str
    answers : ndarray of float64, shape [N, 1], optional
        Probability of the positive class by a machine's answers (`with_answers`).
    signatures : Group, optional
        Signatures in the store, by which films are recognised by their pictures.
    bags : ndarray of float32, shape [N, F, D], optional
        Windows of each clip, which models of frames read (`load_bags`); NaN where a clip has fewer than F.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> data.X.shape
    (95, 8)
    >>> data.movies[:2]
    array(['film0', 'film0'], dtype='<U5')
    >>> data.take(data.rows(["film0-c003"])).clip_ids
    array(['film0-c003'], dtype='<U10')
    """

    X: NDArray[np.float32]
    labels: Labels
    codebook: Codebook
    backbone: str
    features: Features
    pool: str
    store: str
    label: str = ""
    untrained: bool = False
    excluded: tuple[Exclusion, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    partial: frozenset[str] = frozenset()
    group: Group | None = None
    reduction: ReducedTokens | None = None
    modalities: tuple[Modality, ...] = ()
    seconds: NDArray[np.float64] | None = None
    bags: NDArray[np.float32] | None = None
    variables: NDArray[np.float64] | None = None
    variable_names: tuple[str, ...] = ()
    answers: NDArray[np.float64] | None = None
    parts: tuple["Dataset", ...] = ()
    signatures: Group | None = None

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        """Describe the dataset in one line: its clips, movies and features, without the numbers."""
        n_movies = len(np.unique(self.movies))
        clips_and_movies = f"{counted(len(self), 'clip')} of {counted(n_movies, 'movie')}"
        summary = f"{clips_and_movies}, {self.features} of {self.backbone}"
        return f"Dataset({summary}, X {list(self.X.shape)})"

    def _repr_html_(self) -> str:
        """Show the number of clips of each level as a table in a notebook."""
        import pandas as pd  # noqa: PLC0415 - loading needs no pandas

        levels = pd.Series(self.levels, name="clips").value_counts(sort=False).to_frame()
        return f"<div><strong>{escape(repr(self))}</strong>{levels.to_html()}</div>"

    @property
    def clip_ids(self) -> NDArray[np.str_]:
        """The id of each clip [N]."""
        return self.labels.clip_ids

    @property
    def movies(self) -> NDArray[np.str_]:
        """The movie of each clip [N]: the groups of every split."""
        return self.labels.movies

    @property
    def levels(self) -> NDArray[np.str_]:
        """The level of each clip [N]."""
        return self.labels.levels

    @cached_property
    def present(self) -> "pd.DataFrame":
        """Presence of each visual concept in each clip [N, K], 1 or 0; the columns name the concepts."""
        import pandas as pd  # noqa: PLC0415 - loading needs no pandas

        return pd.DataFrame(self.labels.present.astype(np.float64), columns=list(self.labels.concepts))

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """The row of each clip that has features, by its id."""
        return {clip_id: row for row, clip_id in enumerate(self.clip_ids.tolist())}

    @property
    def title(self) -> str:
        """The features' name in tables: the label, or the backbone if there is no label.

        "(untrained)" is added for a backbone with random weights.
        """
        name = self.label or self.backbone
        return f"{name} (untrained)" if self.untrained else name

    def rows(self, clip_ids: Sequence[str]) -> NDArray[np.intp]:
        """Find the rows of clips; clips without features are skipped."""
        rows = [self.row_of[clip_id] for clip_id in clip_ids if clip_id in self.row_of]
        return np.array(rows, dtype=np.intp)

    def named(self, names: Sequence[str]) -> "Dataset":
        """Return a copy of the dataset with new names of its modalities; "" keeps the present name."""
        modalities = []
        for modality, name in zip(self.modalities, names, strict=True):
            modalities.append(replace(modality, name=name) if name else modality)
        return replace(self, modalities=tuple(modalities))

    def median_s(self, rows: NDArray[np.intp]) -> float | None:
        """Return the median length of some clips in seconds; None without clips or known lengths."""
        if self.seconds is None or not len(rows):
            return None
        return round(float(np.median(self.seconds[rows])), 3)

    def take(self, rows: NDArray[np.intp]) -> "Dataset":
        """Return the dataset of the clips in these rows, in this order."""
        selected = {}
        # These fields have a row per clip; `group`, `reduction` and `parts` find clips by their ids.
        for name in ("X", "seconds", "bags", "variables", "answers"):
            array = getattr(self, name)
            if array is not None:
                selected[name] = array[rows]
        return replace(self, labels=self.labels.take(rows), **selected)

    def read(self, what: Reads, *, stream: bool = False) -> Any:
        """Return what a model reads of each clip: vectors [N, D], frames [N, F, D] or tokens [N, T, D].

        The lengths of clips, ``seconds``, are returned as logarithms, [N, 1]. Frames and tokens are, in this
        order of preference:

        1. tokens that were reduced to fewer vectors (`reduction`), if the dataset has such;
        2. for frames, the vectors of a clip's windows, if the dataset was loaded by `load_bags`: a clip is
           then a bag of the windows of the film that lie in it;
        3. for frames, those of all modalities side by side, if the dataset has several: absent frames are
           NaN, and a modality without frames has its vector as the only frame;
        4. those of the store.

        Parameters
        ----------
        what : str
            One of `Reads`.
        stream : bool
            Whether stored frames or tokens are returned as `StoredClips`, which read them when needed.

        Raises
        ------
        DatasetError
            The store has no such array.
        """
        if what not in ("frames", "tokens"):
            return self._read_vectors(what)

        # In the order of preference.
        if self.reduction is not None:
            rows_of_clips = self._stored_rows(self.reduction.group)
            return self.reduction.read(rows_of_clips)
        if what == "frames" and self.bags is not None:
            return self.bags
        if what == "frames" and any("frames" in part.stored for part in self.parts):
            return self._join_frames()
        return self._read_stored(what, stream=stream)

    def _read_stored(self, array: str, *, stream: bool) -> Any:
        """Read the frames or tokens of each clip from the store, as `read` does."""
        if self.group is None or array not in self.stored:
            stored = ", ".join(self.stored) or f"{self.features} alone"
            raise DatasetError(f"backbone {self.backbone} has no {array} in this store: it has {stored}")
        rows = self._stored_rows(self.group)
        if stream:
            return StoredClips(self.group, array, rows)
        return read_array(self.group, array, rows)

    @property
    def stored(self) -> tuple[str, ...]:
        """Names of the arrays in the store's group; empty if there is no store, or several."""
        if self.group is None:
            return ()
        return tuple(self.group.arrays)

    def _read_vectors(self, what: Reads) -> Any:
        """Return what a model reads of each clip [N, ...], for inputs other than frames and tokens.

        Variables and answers are None if the dataset has none.
        """
        if what == "present":
            return self.labels.present.astype(np.float32)
        if what == "variables":
            return self.variables
        if what == "answers":
            return self.answers
        if what == "seconds":
            if self.seconds is None:
                raise DatasetError("the store does not tell how long its clips are")
            return np.log(self.seconds)[:, None]
        return self.X  # "pooled"

    def _join_frames(self) -> NDArray[np.float32]:
        """Join the frames of all modalities side by side: [N, F, D], NaN where absent."""
        # A modality without frames has its vector as the only frame.
        frames = [part.read("frames") if "frames" in part.stored else part.X[:, None] for part in self.parts]

        max_frames = max(frames_of_part.shape[1] for frames_of_part in frames)
        joined = np.full((len(self), max_frames, self.X.shape[1]), np.nan, np.float32)
        for modality, part, frames_of_part in zip(self.modalities, self.parts, frames, strict=True):
            # A modality may lack clips of this dataset, and may have others.
            common_clips = [clip_id for clip_id in self.clip_ids.tolist() if clip_id in part.row_of]
            n_frames = frames_of_part.shape[1]
            columns = slice(modality.start, modality.stop)
            joined[self.rows(common_clips), :n_frames, columns] = frames_of_part[part.rows(common_clips)]
        return joined

    def _stored_rows(self, group: Group) -> NDArray[np.intp]:
        """Find the row of each clip [N] in a group of its store."""
        row_of = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
        return np.array([row_of[clip_id] for clip_id in self.clip_ids.tolist()], dtype=np.intp)


def refuse_labels(data: Dataset, labels: Mapping[str, NDArray[np.int64]]) -> None:
    """Raise if an imported feature or a variable equals the label of every clip, up to a shift and a factor.

    Features that were extracted from films are not checked: they can't contain labels.

    Parameters
    ----------
    data : Dataset
    labels : mapping of str to ndarray of int, shape [N]
        Name of a target -> the class of each clip, or `NOT_ASKED` for clips that are not in the target.
    """
    for name, classes in labels.items():
        _refuse_label_among_features(data, name, classes)
        _refuse_label_among_variables(data, name, classes)


def _refuse_label_among_features(data: Dataset, name: str, classes: NDArray[np.int64]) -> None:
    """Raise if an imported feature equals the classes [N] of the target `name`."""
    is_leaking = _imported_features(data) & _equal_label(data.X, classes)  # [D]
    if not is_leaking.any():
        return
    first = np.flatnonzero(is_leaking)[0]
    n_clips = int((classes != NOT_ASKED).sum())
    raise ProtocolError(
        f"{data.backbone}: feature {first} (of 0 to {len(is_leaking) - 1}) equals the label {name} of all "
        f"{counted(n_clips, 'clip')}: a label was imported as a feature; import the features without it "
        "(store import --columns)"
    )


def _refuse_label_among_variables(data: Dataset, name: str, classes: NDArray[np.int64]) -> None:
    """Raise if a variable equals the classes [N] of the target `name`, in all clips that have a value.

    The label would be among what models learn it from.
    """
    if data.variables is None:
        return
    for column, values in zip(data.variable_names, data.variables.T, strict=True):
        # Clips without a value are taken for clips without a class, which are not compared.
        classes_with_value = np.where(np.isnan(values), NOT_ASKED, classes)
        one_column = values[:, None]
        if _equal_label(one_column, classes_with_value).any():
            raise ProtocolError(
                f"variable {column} equals the label {name} of all clips that have one: leave its column out"
            )


def _imported_features(data: Dataset) -> NDArray[np.bool_]:
    """Mark the features [D] of a dataset that were imported from a file, and not extracted from films.

    Only these may hold labels.
    """
    is_imported = np.zeros(data.X.shape[1], bool)
    for modality in data.modalities:
        is_imported[modality.start : modality.stop] = _is_imported(modality.provenance)
    if not data.modalities:
        provenance = {} if data.group is None else data.group.provenance
        is_imported[:] = _is_imported(provenance)
    return is_imported


def _is_imported(provenance: Mapping[str, Any]) -> bool:
    """Tell whether features were imported, or their origin is unknown (an empty provenance)."""
    return not provenance or provenance.get("imported") is True


def _equal_label(X: NDArray[Any], classes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the features of X [N, D] that equal the classes [N] of all clips, up to a shift and a factor.

    Such a feature has the squared correlation 1 with the class, but for rounding. Nothing is marked if there
    are so few clips that a feature may do so by chance.
    """
    has_class = classes != NOT_ASKED
    if _may_be_equal_by_chance(n_clips=int(has_class.sum()), n_features=X.shape[1]):
        return np.zeros(X.shape[1], bool)

    y = classes[has_class] - classes[has_class].mean()
    values = X[has_class] - X[has_class].mean(axis=0, dtype=np.float64)
    # squared correlation = squared covariance / product of the variances. Sums over clips take the place of
    # means, as their number cancels out.
    squared_covariance = (y @ values) ** 2
    product_of_variances = np.sum(values**2, axis=0) * np.sum(y**2)

    # The comparison is without a division, as the product is 0 for a constant feature.
    varies = product_of_variances > 0
    smallest_squared_correlation = 1 - MAX_UNEXPLAINED
    is_correlated = squared_covariance >= smallest_squared_correlation * product_of_variances
    is_equal: NDArray[np.bool_] = varies & is_correlated
    return is_equal


def _may_be_equal_by_chance(n_clips: int, n_features: int) -> bool:
    """Tell whether so many features may well include one that equals the classes of so few clips by chance.

    A feature of two values that are drawn like coins equals the class of each of n clips with probability
    2^-n, and its opposite with the same: together 2^(1 - n). With 20 clips and 1,000 features, .002 such
    features are expected.
    """
    n_expected = n_features * 2.0 ** (1 - n_clips)
    return n_expected > MAX_EQUAL_BY_CHANCE
