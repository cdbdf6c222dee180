"""Learn from judgements of scored films: a model of the corpus and of what people judged, tested strictly.

A judged span becomes a clip with the features of the film's windows in it. Judgements made in sight of the
score are trained on and never tested; a film that is tested is left out whole, with its judgements.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs
from numpy.typing import NDArray
from scipy.sparse import csr_array

import obygaze_models as om
from obygaze_features.arguments import checked
from obygaze_features.io import NO_LICENCE
from obygaze_features.manifest import (
    DEFINITION,
    SEEN_SCORE,
    Clip,
    Codebook,
    Manifest,
    counted,
    judgements_of,
    write_manifest,
)
from obygaze_features.screen import Progress
from obygaze_features.store import Store, open_store, same_numerics
from obygaze_film.claims import FilmClaim, document, sentences
from obygaze_film.claims.of_groups import learnt_change
from obygaze_film.coverage import SLACK_S
from obygaze_film.errors import FilmError
from obygaze_film.film_stores import stores_near, windows_store
from obygaze_film.notes import said, said_counted
from obygaze_film.rows import overlaps, windows_of
from obygaze_film.schema import FORMER
from obygaze_film.score import FilmFacts, score_film
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES, folders_of, write_films
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.decisions import copy_decisions
from obygaze_film.workspace.judged_tables import read_judged
from obygaze_models.dataset import Dataset, find_group, read_features
from obygaze_models.evaluation import Interval, Run, auc, t_interval
from obygaze_models.models import find_model
from obygaze_models.protocol import labels_of
from obygaze_models.report import Column, Report, block, new_folder, number, write_report

Floats = NDArray[np.float64]

RULES = "judgements made in sight of the score are trained on, never tested; a film tested is left out whole"
ALONE = (
    "nothing was learnt of the only judged film where it is left out: it has no AUC until another is judged"
)


@dataclass(frozen=True, eq=False, slots=True)
class Learnt:
    """A model that learnt from judgements, and what they changed.

    Attributes
    ----------
    model : str
        Name in the zoo.
    manifest : Manifest
        The corpus and the judged clips, without videos; the column `seen_score` is 1 for those made in
        sight of the score.
    data : Dataset
        The clips of it that have features.
    before, after : Run
        Strict evaluations on the corpus alone, and with the judgements.
    films : DataFrame
        A row for each film of the corpus (`judged` 0) and each judged film: `movie`, clips `judged`, and of
        them made in sight of the score (`in_sight`) and `tested`; AUC `before` and `after`. Undefined without
        tested clips of both classes, and for a film that is the only one judged: its own judgements are left
        out where it is tested, so that nothing was learnt.
    notes : tuple of str
    """

    model: str
    manifest: Manifest
    data: Dataset
    before: Run
    after: Run
    films: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def claims(self) -> list[FilmClaim]:
        """How the AUC changed, by films of the corpus and, if any was tested, by judged ones."""
        return learnt_claims(self.model, self.films)

    def write(self, folder: Path, films: Sequence[Timeline], windows: Sequence[Store], licence: str) -> str:
        """Write manifest.csv, the runs `before` and `after`, the model, and the films as it scores them.

        Returns the name of the model's file. The folder `scored` has the films, with the shots that they had
        and what the former model said of them.
        """
        write_manifest(self.manifest, folder / "manifest.csv")
        om.write_run(self.before, folder / "before")
        om.write_run(self.after, folder / "after")
        model = om.save_models(self.after, self.data, [self.model], folder, licence=licence)[self.model]
        again = []
        for film in films:
            facts = FilmFacts(film.record.title, film.record.year, film.record.source_sha256)
            store = windows_store(film, windows)
            scored = score_film(store, [model], movie=film.movie, shots=film.shots, facts=facts)
            again.append(beside_former(scored, film))
        write_films(again, folder / "scored")
        return model.name


def beside_former(scored: Timeline, film: Timeline) -> Timeline:
    """Keep what a former model said of a film, and what is said in it, beside its rows by a new model."""
    scored = replace(scored, subtitles=film.subtitles, variables=film.variables)
    former = film.model()
    key = f"{scored.model().key}{FORMER}"
    rows = film.rows(former.key)
    has_same_rows = np.array_equal(scored.rows()["start_s"].to_numpy(), rows["start_s"].to_numpy())
    has_same_columns = set(rows) <= set(scored.table)
    if not has_same_rows or not has_same_columns or key in scored.keys:
        return scored  # curves of other rows or concepts cannot be compared
    windows = rows.assign(model=key).reindex(columns=scored.table.columns).astype(scored.table.dtypes)
    models = [*scored.record.models, structs.replace(former, key=key)]
    record = structs.replace(scored.record, models=models)
    return replace(scored, record=record, table=pd.concat([scored.table, windows], ignore_index=True))


def change_of(films: pd.DataFrame, *, judged: bool = False) -> Interval:
    """Average over films (`Learnt.films`) how much higher the AUC is with the judgements than without.

    Two trained models are compared film by film, each left out whole. The interval is of this way of
    learning, with both models trained anew: models of nearly the same films differ together, which their
    differences by film do not show.
    """
    films_of_kind = films[(films["judged"] > 0) == judged]
    return t_interval(films_of_kind["after"] - films_of_kind["before"], covers="method", possible=(-1.0, 1.0))


def learnt_claims(model: str, films: pd.DataFrame) -> list[FilmClaim]:
    """Claim how the AUC changed (`Learnt.films`) on the films of the corpus, and on judged ones.

    Each judged film was left out; where none was tested there is no claim on them.
    """
    claims: list[FilmClaim] = [learnt_change(model, change_of(films), is_of_judged=False)]
    of_judged = change_of(films, judged=True)
    if of_judged.n_movies:
        claims.append(learnt_change(model, of_judged, is_of_judged=True))
    return claims


@checked
def learn_from_judgements(
    films: Sequence[Timeline],
    judgements: Manifest,
    windows: Sequence[Store],
    manifest: Manifest,
    store: Store,
    *,
    key: str | None = None,
    policy: str = "raw",
    same_meaning: Collection[str] = (),
    progress: Progress | bool | None = None,
) -> Learnt:
    """Train a model of scored films anew, on its corpus and on what people judged in the films.

    Model, backbone, task and tests are those that scored the films. A judged span gets the mean of the film's
    windows that lie in it by more than half (of all that overlap, where there is none), weighted by overlap.
    Models that read concepts do not learn from judgements that agree and name none.

    Parameters
    ----------
    films : sequence of Timeline
    judgements : Manifest
        As `import_spans` reads them; those of other films are left out and counted.
    windows : sequence of Store
        The stores that the films were scored from.
    manifest, store : Manifest, Store
        The corpus.
    key : str, optional
        Model, as the films' tables name it; by default the first that decides.
    policy : str
        Label policy of `manifest`, for the record.
    same_meaning : collection of str
        Definitions of judgements that mean the same as those of the corpus's codebook.
    progress : callable or bool, optional
        As in `om.evaluate`, once before and once after.

    Raises
    ------
    FilmError
        There is no judgement of these films; a film is in the corpus, or was scored by another model, or one
        of another codebook; judgements were made under other definitions than the corpus's; a store is
        missing, or its features were made otherwise; or the model does not read pooled features.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from pathlib import Path
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> windows = of.open_store("stores/more")
    >>> films = obygaze_film.score_films(windows, ["kept/linear.model"])
    >>> seen = [replace(clip, extras={"seen_score": "0"}) for clip in of.read_manifest("more.csv")]
    >>> judged = of.Manifest(tuple(seen), Path())
    >>> corpus = of.read_manifest("films.csv"), of.open_store("stores/films")
    >>> learnt = obygaze_film.learn_from_judgements(films, judged, [windows], *corpus)
    >>> len(learnt.films), int(learnt.films["judged"].sum())
    (12, 95)
    """
    scored = films[0].model(key)
    spec = find_model(scored.model)
    if spec.reads != "pooled":
        raise FilmError(said("learn_pooled", model=spec.name, reads=spec.reads))
    expected = (scored.model, scored.backbone, scored.task, manifest.codebook.name)
    labelled = {clip.movie for clip in manifest if clip.level}
    for film in films:
        _refuse_another_model(film, key, expected)
        if film.movie in labelled:
            raise FilmError(said("learn_twice", movie=film.movie))
    data = om.load_dataset(store, manifest, backbone=scored.backbone)
    named = judgements.spelled_as(film.movie for film in films)
    named = _as_the_corpus_defines(named, manifest.codebook, same_meaning)
    counting = [clip for clip in named if clip.level in manifest.codebook.labels]
    if "present" in spec.requests():  # who agrees by a key names no concepts
        counting = [clip for clip in counting if clip.concepts or clip.extras.get("judgement") != "agree"]
    judged: list[Clip] = []
    X = [data.X]
    for film in films:
        of_film = [clip for clip in counting if clip.movie == film.movie]
        if of_film:
            rows = _features(of_film, windows_store(film, windows), data)
            has_features = ~np.isnan(rows[:, 0])
            judged += [of_film[index] for index in np.flatnonzero(has_features).tolist()]
            X.append(rows[has_features].astype(np.float32))
    if not judged:
        movies = ", ".join(film.movie for film in films)
        n = said_counted("n_judgements", len(judgements))
        raise FilmError(said("learn_none", judgements=n, movies=movies))
    joined = _joined(manifest, judged)
    row_of = {clip.clip_id: row for row, clip in enumerate(joined)}
    names = [*data.clip_ids.tolist(), *(clip.clip_id for clip in judged)]
    labels = labels_of(joined).take(np.array([row_of[name] for name in names], dtype=np.intp))
    counts = {**data.counts, "manifest": len(joined), "with_features": len(names)}
    joined_data = replace(
        data, X=np.vstack(X), labels=labels, counts=counts, seconds=_joined_lengths(data, judged)
    )
    # The card's metrics name the tests by which the model was calibrated.
    tests = dict.fromkeys(str(row.get("task")).partition(">")[2] for row in scored.metrics)

    def evaluated(dataset: Dataset, clips: Manifest) -> Run:
        origin = {"manifest_sha256": clips.digest(), "label_policy": policy}
        targets = [*filter(None, tests)]
        return om.evaluate(dataset, [spec.name], scored.task, targets, origin=origin, progress=progress)

    before = evaluated(data, manifest)
    after = evaluated(joined_data, joined)
    notes = []
    n_left_out = len(judgements) - len(judged)
    if n_left_out > 0:
        notes.append(
            f"{counted(n_left_out, 'judgement')} left out: of other films, levels that do not count, no "
            "features, concepts not asked for"
        )
    by_film = _by_film(spec.name, data, joined_data, before, after)
    return Learnt(spec.name, joined, joined_data, before, after, by_film, tuple(notes))


def _refuse_another_model(film: Timeline, key: str | None, expected: tuple[str, ...]) -> None:
    """Refuse a film that was scored by another model, or one of other features, task or codebook."""
    model = film.model(key)
    settings = (model.model, model.backbone, model.task, model.codebook)
    if settings != expected:
        difference = {"found": ", ".join(settings), "expected": ", ".join(expected)}
        raise FilmError(said("learn_model", movie=film.movie, **difference))


def learn_films(
    films: Mapping[Path, Timeline],
    corpus: tuple[Manifest, Sequence[Store]],
    out: Path,
    *,
    windows: Sequence[Path] = (),
    judged: Sequence[Path] = (),
    notes: Sequence[str] = (),
    licence: str = NO_LICENCE,
    key: str | None = None,
    policy: str = "raw",
    same_meaning: bool = False,
    progress: Progress | bool | None = None,
    force: bool = False,
) -> tuple[Report, str]:
    """Learn from what was judged in films' folders, into a folder; return the report and the model's file.

    Given too are files `judged` elsewhere, stores of `windows` that are not near the folders, and `notes` for
    the report; `key`, `policy` and `progress` as in `learn_from_judgements`. With `same_meaning` the person
    declares that judgements under other definitions than the corpus's mean the same, which is kept in the
    report's record. The films as the new model scores them keep what was decided of them.
    """
    clips, (store,) = corpus
    names = (JUDGEMENTS, PASSAGES)
    tables = read_judged(films, clips.codebook, names, judged, settled=True, root=clips.root)
    definitions = judgements_of(tables.manifest).definitions
    of_corpus = tables.meanings.of(clips.codebook.definition())
    alike = [name for name in definitions if same_meaning or tables.meanings.of(name) == of_corpus]
    stores = [open_store(path) for path in windows]
    for folder, film in films.items():
        stores += stores_near(folder, film)
    with new_folder(out, force=force) as folder:
        learnt = learn_from_judgements(
            [*films.values()],
            tables.manifest,
            stores,
            clips,
            store,
            key=key,
            policy=policy,
            same_meaning=alike,
            progress=progress,
        )
        report = learning_report(replace(learnt, notes=(*tables.notices, *notes, *learnt.notes)))
        report = replace(report, record={**report.record, "same_meaning": alike})
        write_report(report, folder)
        model = learnt.write(folder, [*films.values()], stores, licence)
        places = folders_of([film.movie for film in films.values()], folder / "scored")
        for place, film in films.items():
            copy_decisions(place, places[film.movie])
        return report, model


def _as_the_corpus_defines(judged: Manifest, book: Codebook, same_meaning: Collection[str]) -> Manifest:
    """Return judgements under the corpus's definitions; refuse those under others.

    Raises
    ------
    FilmError
        Says how many were made under others.
    """
    corpus = book.definition()
    other_definitions = {
        name: n
        for name, n in judgements_of(judged).definitions.items()
        if name != corpus and name not in same_meaning
    }
    if other_definitions:
        n = said_counted("n_judgements", sum(other_definitions.values()))
        digests = ", ".join(name[:12] for name in other_definitions)
        raise FilmError(said("learn_definition", n=n, digests=digests, corpus=corpus[:12]))
    clips = []
    for clip in judged:
        is_known = bool(clip.extras.get(DEFINITION, ""))
        clips.append(replace(clip, extras={**clip.extras, DEFINITION: corpus}) if is_known else clip)
    return judged.with_clips(clips)


def _joined_lengths(data: Dataset, judged: Sequence[Clip]) -> Floats | None:
    """Return the lengths of a corpus's clips and of judged ones [N]; None where the corpus has none."""
    if data.seconds is None:
        return None
    lengths = [clip.duration_s or np.nan for clip in judged]
    return np.concatenate([data.seconds, lengths])


def _features(clips: Sequence[Clip], store: Store, data: Dataset) -> Floats:
    """Average the windows of a film over judged clips [N, D]; NaN where none has features.

    Raises
    ------
    FilmError
        The windows' features were made otherwise than the corpus's.
    """
    group = find_group(store, data.backbone)
    fields = same_numerics(data.group.provenance if data.group else {}, group.provenance)
    if fields or data.features not in group.arrays:
        difference = ", ".join(fields[:3]) or f"no {data.features}"
        raise FilmError(said("learn_features", store=store.name, group=group.name, fields=difference))
    windows = windows_of(store)[clips[0].movie]
    row_of = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
    rows = np.array([row_of[clip_id] for clip_id in windows.clip_ids], dtype=np.intp)
    spans = windows.spans[group.usable[rows]]
    rows = rows[group.usable[rows]]
    if not len(rows):
        return np.full((len(clips), data.X.shape[1]), np.nan)
    seconds = overlaps(np.array([[clip.start_s, clip.end_s] for clip in clips]), spans).toarray()
    inside = seconds > (spans[:, 1] - spans[:, 0]) / 2 + SLACK_S
    seconds = np.where(inside.any(axis=1, keepdims=True) & ~inside, 0.0, seconds)
    pool: Any = "mean" if data.features == "pooled" else data.pool  # vectors as stored are not pooled
    sums = csr_array(seconds) @ read_features(group, data.features, pool, rows).astype(np.float64)
    with np.errstate(invalid="ignore"):
        means: Floats = sums / seconds.sum(axis=1, keepdims=True)
    return means


def _joined(manifest: Manifest, judged: Sequence[Clip]) -> Manifest:
    """Add judged clips to the corpus; every clip says whether it was judged in sight of a score.

    Videos are left out: their paths would be of this machine, and the features are in the stores.
    """
    clips = [*manifest, *judged]
    columns = dict.fromkeys((*clips[0].extras, *judged[0].extras), "") | {SEEN_SCORE: "0"}

    def with_columns(clip: Clip) -> Clip:
        extras = {name: clip.extras.get(name, usual) for name, usual in columns.items()}
        return replace(clip, video="", extras=extras)

    return manifest.with_clips(map(with_columns, clips))


def _by_film(model: str, data: Dataset, joined_data: Dataset, before: Run, after: Run) -> pd.DataFrame:
    """Compute the AUC of each film before and after; see `Learnt.films`."""
    task = after.predictions.table["task"].iloc[0]
    earlier = om.side(om.saved(before), model, task).predictions.table
    later = om.side(om.saved(after), model, task).predictions.table
    new = later[~later["movie"].isin(data.movies)]
    added = joined_data.labels.take(np.arange(len(data), len(joined_data)))
    if len(set(added.movies)) > 1 and len(new):
        with TemporaryDirectory() as folder:  # of the corpus alone, to score films that it does not have
            corpus_model = om.load_model(om.save_models(before, data, [model], folder)[model])
        scores = corpus_model.logits(joined_data.X[joined_data.rows(new["clip_id"].tolist())])
        earlier = pd.concat([earlier, new.assign(score=scores)])
    else:
        later = later.drop(new.index)
    clips = pd.DataFrame({"movie": added.movies, "in_sight": added.seen_score})
    films = pd.DataFrame(
        {
            "judged": clips.groupby("movie").size(),
            "in_sight": clips.groupby("movie")["in_sight"].sum(),
            "tested": new.groupby("movie").size(),
            "before": _auc_by_movie(earlier),
            "after": _auc_by_movie(later),
        }
    )
    counts = dict.fromkeys(("judged", "in_sight", "tested"), "int64")
    return films.rename_axis("movie").reset_index().fillna(dict.fromkeys(counts, 0)).astype(counts)


def _auc_by_movie(table: pd.DataFrame) -> "pd.Series[float]":
    groups = table.groupby("movie")[["label", "score"]]
    return pd.Series({movie: auc(*rows.to_numpy().T) for movie, rows in groups})


def learning_report(learnt: Learnt) -> Report:
    """Lay out what judgements changed: a sentence for each kind of films, and the AUC of each film."""
    columns: list[Column] = [(name.replace("_", " "), name, str) for name in learnt.films.columns[:4]]
    columns += [(f"AUC {name}", name, number) for name in ("before", "after")]
    claims = learnt.claims
    alone = [ALONE] if sum(learnt.films["judged"] > 0) == 1 else []
    return Report(
        name="learn",
        title=f"{learnt.model} before and after {counted(int(learnt.films['judged'].sum()), 'judgement')}",
        notes=(RULES, *alone, *learnt.notes),
        blocks=(block("Films", columns, learnt.films.to_dict("records")),),
        data=learnt.films,
        record={
            "model": learnt.model,
            "manifest_sha256": learnt.manifest.digest(),
            "claims": [document(claim) for claim in claims],
        },
        answers=tuple(sentences(claims)),
    )
