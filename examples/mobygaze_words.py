"""Films cut into windows of what is said, and what words alone tell of MObyGaze's labels, in films left out.

Experts drew their segments, so a segment's length tells its level: windows have no such borders. The words of
a window are those of the *other* expert's segments, spread evenly over each, so that no border of the expert
who is to be predicted leaks in by where a subtitle begins.

Every figure is the mean over films of the AUC within the film left out, so a film's own share of positives
can't help. Beside each stands what needs no understanding: how much is said, how long a segment lasts, where
in the film it is; and how well the other expert does.

Made for words_of_mobygaze.py, which prints the tables, and models_of_words.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest
from obygaze_models.blas import one_blas_thread
from obygaze_models.evaluation import auc, t_interval

TARGETS = ("S", "Speech", "Body")
"""What is predicted of a window: S against EN, and whether a concept is there, one heard and one seen."""
MIN_MARKED, MIN_FREE = 0.2, 0.95
"""Share of a window that is marked where it is positive, and that is EN where it is negative to S."""
N_COLUMNS, C = 4096, 3.0
"""Columns that words are hashed into, and the inverse strength of logistic regression's penalty."""
MIN_FILMS = 12
"""Films in which a word is said that the list of the strongest may name: no name of one film's people."""

MANY = "number of words"

Embed = Callable[[Sequence[str]], NDArray[Any]]
"""Makes vectors [N, D] of texts."""


def expert_windows(
    segments: Manifest, subtitles: Mapping[str, str], marks: Sequence[str], *, seconds: float = 30.0
) -> pd.DataFrame:
    """Cut each film of two annotators' segments into windows, a row an annotator.

    Parameters
    ----------
    segments : Manifest
        Segments with times and annotators.
    subtitles : mapping of str to str
        What is said in a segment, by its id.
    marks : sequence of str
        Levels and concepts to measure.
    seconds : float
        Length of a window; what is left at a film's end is no window.

    Returns
    -------
    DataFrame
        `movie`, `expert`, `place` (of the window's start in the film, 0 to 1), `words` (text); for each mark
        `MARK`, the share of the window's time that this expert marked so, and `other MARK`, the other's.

    Raises
    ------
    ManifestError
        There are not two annotators, or a segment has no times.
    """
    experts = sorted({clip.annotator for clip in segments})
    if len(experts) != 2:
        raise ManifestError(f"segments of two annotators are needed, not of {len(experts)}", "annotator")
    of_film: dict[str, dict[str, list[tuple[Clip, float, float]]]] = {}
    for clip in segments:
        if clip.start_s is None or clip.end_s is None:
            raise ManifestError(f"segment {clip.clip_id} has no times", "start_s")
        own = of_film.setdefault(clip.movie, {expert: [] for expert in experts})[clip.annotator]
        own.append((clip, clip.start_s, clip.end_s))
    tables = []
    for movie, film in of_film.items():
        n = int(max(end for own in film.values() for _, _, end in own) // seconds)
        shares = {expert: _shares(own, marks, n, seconds) for expert, own in film.items()}
        words = {expert: _words(own, subtitles, n, seconds) for expert, own in film.items()}
        for expert, other in (experts, experts[::-1]):
            table = pd.DataFrame({"movie": movie, "expert": expert, "place": np.arange(n) / max(n, 1)})
            table["words"] = words[other]
            table[list(marks)] = shares[expert]
            table[[f"other {mark}" for mark in marks]] = shares[other]
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _shares(
    own: Sequence[tuple[Clip, float, float]], marks: Sequence[str], n: int, seconds: float
) -> NDArray[np.float64]:
    """Measure the share of each window's time [N, M] that is marked with each mark."""
    edges = seconds * np.arange(n + 1)
    covered = np.zeros((n, len(marks)))
    for clip, start, end in own:
        inside = np.clip(np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1]), 0, None)
        covered += inside[:, None] * [mark == clip.level or mark in clip.concepts for mark in marks]
    return covered / seconds


def _words(
    own: Sequence[tuple[Clip, float, float]], subtitles: Mapping[str, str], n: int, seconds: float
) -> list[str]:
    """Spread the words of each segment evenly over it, and gather them by window."""
    found: list[list[str]] = [[] for _ in range(n)]
    for clip, start, end in own:
        words = subtitles.get(clip.clip_id, "").split()
        for number, word in enumerate(words):
            window = int((start + (number + 0.5) / len(words) * (end - start)) // seconds)
            if window < n:
                found[window].append(word)
    return [" ".join(words) for words in found]


def segment_rows(segments: Manifest, subtitles: Mapping[str, str]) -> pd.DataFrame:
    """List segments S and EN in which something is said: `movie`, `expert`, `seconds`, `words`, `y`."""
    rows = [
        (
            clip.movie,
            clip.annotator,
            (clip.end_s or 0.0) - (clip.start_s or 0.0),
            words,
            int(clip.level == "S"),
        )
        for clip in segments
        if clip.level in ("S", "EN") and (words := subtitles.get(clip.clip_id, ""))
    ]
    return pd.DataFrame(rows, columns=["movie", "expert", "seconds", "words", "y"])


def window_rows(windows: pd.DataFrame, target: str) -> pd.DataFrame:
    """Choose the windows that have the target or lack it, and add `y`, 1 or 0."""
    positive = windows[target] >= MIN_MARKED
    negative = windows["EN"] >= MIN_FREE if target == "S" else windows[target] == 0
    return windows.assign(y=positive.astype(int))[positive | negative].reset_index(drop=True)


def by_film(rows: pd.DataFrame, scores_without: Callable[[str], NDArray[np.float64]]) -> pd.DataFrame:
    """Compute the AUC within each film [films, experts] of the scores that a model gives without the film."""
    found = {}
    for movie in sorted(set(rows["movie"])):
        scores, here = scores_without(movie), (rows["movie"] == movie).to_numpy()
        own = {expert: here & (rows["expert"] == expert).to_numpy() for expert in sorted(set(rows["expert"]))}
        found[movie] = {expert: auc(rows["y"].to_numpy()[mask], scores[mask]) for expert, mask in own.items()}
    return pd.DataFrame(found).T


def learnt(rows: pd.DataFrame, X: Any, experts: Sequence[str]) -> pd.DataFrame:
    """Compute `by_film` of logistic regression on features X [N, D] and these experts' labels."""
    y, theirs = rows["y"].to_numpy(), rows["expert"].isin(experts).to_numpy()

    def scores_without(movie: str) -> NDArray[np.float64]:
        train = theirs & (rows["movie"] != movie).to_numpy()
        model = LogisticRegression(C=C, class_weight="balanced", max_iter=2000).fit(X[train], y[train])
        scores: NDArray[np.float64] = model.decision_function(X)
        return scores

    with one_blas_thread():
        return by_film(rows, scores_without)


def hashed(texts: "pd.Series[str]") -> Any:
    """Count words in `N_COLUMNS` columns, whose names nobody needs to know; rows have length 1."""
    return HashingVectorizer(n_features=N_COLUMNS).fit_transform(texts)


def amount(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Compute the logarithm of the number of words and, of segments, that of the seconds [N, 1 or 2]."""
    columns = [np.log1p([len(words.split()) for words in rows["words"]])]
    if "seconds" in rows:
        columns.append(np.log(rows["seconds"].to_numpy()))
    return np.column_stack(columns)


def shuffled(rows: pd.DataFrame, seed: int = 0) -> "pd.Series[str]":
    """Deal the words of each film to other windows of it, each of which keeps its number of words."""
    rng, texts = np.random.default_rng(seed), rows["words"].copy()
    for own in rows.groupby(["movie", "expert"]).indices.values():
        words = [text.split() for text in texts.iloc[own]]
        dealt = rng.permutation(np.array([word for part in words for word in part], dtype=object))
        ends = np.cumsum([len(part) for part in words])
        texts.iloc[own] = [" ".join(part) for part in np.split(dealt, ends[:-1])]
    return texts


def study_segments(segments: Manifest, subtitles: Mapping[str, str]) -> pd.DataFrame:
    """Tell segments S from EN by their words, and by how long they are; columns as of `study_windows`."""
    rows = segment_rows(segments, subtitles)
    features = {"words": hashed(rows["words"]), "number of words and seconds": amount(rows)}
    experts = sorted(set(rows["expert"]))
    found = [
        _estimates("S", model, trained, learnt(rows, X, trained))
        for model, X in features.items()
        for trained in ([experts[0]], [experts[1]], experts)
    ]
    return pd.concat(found, ignore_index=True)


def study_windows(windows: pd.DataFrame, target: str, embed: Embed | None = None) -> pd.DataFrame:
    """Find a target in windows by their words, and by what needs no understanding.

    Parameters
    ----------
    windows : DataFrame
        Of `expert_windows`.
    target : str
        One of `TARGETS`.
    embed : callable, optional
        A sentence encoder, to be tried beside counted words.

    Returns
    -------
    DataFrame
        A row a model, expert learnt from and expert tested on: `target`, `model`, `trained`, `tested`,
        `value`, `low`, `high`, `n_films`. A value is the mean AUC of the films left out, or, where the model
        is called "A less B", the mean difference of two models' AUC; intervals are the method's, 95 %.
    """
    rows = window_rows(windows, target)
    many, words = amount(rows), hashed(rows["words"])
    features = {
        MANY: many,
        "position in the film": rows[["place"]].to_numpy(),
        "place in the film": np.abs(rows[["place"]].to_numpy() - [[0.0, 0.5, 1.0]]),
        "words": words,
        "words, shuffled within films": hashed(shuffled(rows)),
        f"words and {MANY}": sparse.hstack([words, sparse.csr_matrix(many)]).tocsr(),
    }
    if embed is not None:
        vectors = normalize(embed(rows["words"].tolist()))
        features |= {"sentences": vectors, f"sentences and {MANY}": np.hstack([vectors, many])}
    found = []
    for expert in sorted(set(rows["expert"])):
        tables = {model: learnt(rows, X, [expert]) for model, X in features.items()}
        found += [_estimates(target, model, [expert], table) for model, table in tables.items()]
        found += [
            _estimates(target, f"{model} less {MANY}", [expert], table - tables[MANY])
            for model, table in tables.items()
            if model.endswith(f" and {MANY}")
        ]
    share = rows[f"other {target}"].to_numpy()
    other = {"share of time": share, "call": (share >= MIN_MARKED).astype(np.float64)}
    for name, scores in other.items():
        same = dict.fromkeys(rows["movie"], scores)
        found.append(_estimates(target, f"the other expert's {name}", [], by_film(rows, same.__getitem__)))
    return pd.concat(found, ignore_index=True)


def _estimates(target: str, model: str, trained: Sequence[str], films: pd.DataFrame) -> pd.DataFrame:
    """Average values of films [films, experts], one row an expert."""
    bounds = None if " less " in model else (0.0, 1.0)
    rows = []
    for tested in films:
        interval = t_interval(films[tested], covers="method" if trained else "models", bounds=bounds)
        which = (target, model, " and ".join(trained), tested)
        rows.append((*which, interval.mean, interval.low, interval.high, interval.n_movies))
    return pd.DataFrame(
        rows, columns=["target", "model", "trained", "tested", "value", "low", "high", "n_films"]
    )


def strongest_words(windows: pd.DataFrame, target: str, n: int = 12) -> dict[str, list[str]]:
    """Name the words that weigh most for a target and against it, of those said in `MIN_FILMS` films.

    A window has a word or not; one model of all films and both experts, so these are no test.
    """
    rows = window_rows(windows, target)
    counter = CountVectorizer(binary=True, token_pattern=r"(?u)\b[a-z']{2,}\b")  # noqa: S106
    X = counter.fit_transform(rows["words"])
    said_in = [np.unique(X[own].indices) for own in rows.groupby("movie").indices.values()]
    common = np.bincount(np.concatenate(said_in), minlength=X.shape[1]) >= MIN_FILMS
    model = LogisticRegression(C=0.1, class_weight="balanced", max_iter=2000).fit(X[:, common], rows["y"])
    names = counter.get_feature_names_out()[common][np.argsort(-model.coef_[0], kind="stable")]
    return {"for": names[:n].tolist(), "against": names[::-1][:n].tolist()}
