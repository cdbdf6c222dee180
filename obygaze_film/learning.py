"""Learn from judgements of scored films: a model of the corpus and of what people judged, tested strictly.

A judged span becomes a clip with the features of the film's windows in it. Judgements made in sight of the
score are trained on and never tested; a film that is tested is left out whole, with its judgements.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

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
    find_film,
    judgements_of,
    write_manifest,
)
from obygaze_features.screen import Progress
from obygaze_features.store import Group, Store, open_store, same_numerics
from obygaze_film.claims import FilmClaim, document, sentences
from obygaze_film.claims.of_groups import learnt_change
from obygaze_film.coverage import SLACK_S
from obygaze_film.errors import FilmError
from obygaze_film.film_stores import stores_near, windows_store
from obygaze_film.judged_windows import JudgementFilter, drop_judges_without_concepts
from obygaze_film.notes import counted_message, message
from obygaze_film.positive import positive_of
from obygaze_film.rows import overlaps, windows_of
from obygaze_film.schema import FORMER, ModelRecord, Spans
from obygaze_film.score import FilmFacts, score_film
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES, folders_of, write_films
from obygaze_film.timeline import Timeline
from obygaze_film.workspace.decisions import copy_decisions
from obygaze_film.workspace.definitions import Meanings
from obygaze_film.workspace.judged_tables import JudgedTables, read_judged
from obygaze_models.dataset import Dataset, find_group, read_features
from obygaze_models.evaluation import Interval, Run, auc, t_interval
from obygaze_models.models import find_model
from obygaze_models.prediction import Model
from obygaze_models.protocol import labels_of
from obygaze_models.report import Column, Report, block, new_folder, number, write_report

Floats = NDArray[np.float64]

RULES = "judgements made in sight of the score are trained on, never tested; a film tested is left out whole"
"""Note of every report: how the test is strict."""

ONLY_JUDGED_FILM = (
    "the only judged film is left out where it is tested, with all judgements: its AUC before and after is "
    "of models of the corpus alone, and no change can be told of judged films until another is judged"
)
"""Note of a report where one film alone was judged."""


ONE_CLASS_JUDGED = (
    "no change can be told of judged films: in none of them were both positive and negative windows judged "
    "blindly, so that no AUC is defined; judge more windows of them"
)
"""Note of a report where several films were judged, and none has an AUC."""


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
        """Claims on how the AUC changed (`learnt_claims`)."""
        return learnt_claims(self.model, self.films)

    def write(self, folder: Path, films: Sequence[Timeline], windows: Sequence[Store], licence: str) -> str:
        """Write manifest.csv, the runs `before` and `after`, the model, and the films as it scores them.

        The films are scored by the new model, and written into the folder `scored` with the shots and the
        scores that they had (`beside_former`).

        Parameters
        ----------
        folder : Path
        films : sequence of Timeline
            As the former model scored them.
        windows : sequence of Store
            The stores that they were scored from.
        licence : str
            Of the model.

        Returns
        -------
        str
            Name of the model's file.
        """
        write_manifest(self.manifest, folder / "manifest.csv")
        om.write_run(self.before, folder / "before")
        om.write_run(self.after, folder / "after")
        model_files = om.save_models(self.after, self.data, [self.model], folder, licence=licence)
        model_file = model_files[self.model]

        scored_anew = []
        for film in films:
            facts = FilmFacts(film.record.title, film.record.year, film.record.source_sha256)
            store = windows_store(film, windows)
            scored = score_film(store, [model_file], movie=film.movie, shots=film.shots, facts=facts)
            scored_anew.append(beside_former(scored, film))
        write_films(scored_anew, folder / "scored")
        return model_file.name


def beside_former(scored: Timeline, film: Timeline) -> Timeline:
    """Add to a film scored by a new model the scores of the former one, and the film's other tables.

    The scores are added only if both models have rows at the same times, and the new one all columns of the
    former: otherwise the two curves cannot be compared.

    Parameters
    ----------
    scored : Timeline
        By the new model.
    film : Timeline
        By the former one.
    """
    result = replace(scored, subtitles=film.subtitles, variables=film.variables)
    former = film.model()
    former_rows = film.rows(former.key)
    former_key = f"{scored.model().key}{FORMER}"  # the new model's key with "-before" behind it

    # Can the two curves be compared?
    has_same_rows = np.array_equal(scored.rows()["start_s"].to_numpy(), former_rows["start_s"].to_numpy())
    has_all_columns = set(former_rows) <= set(scored.table)
    are_comparable = has_same_rows and has_all_columns
    is_key_taken = former_key in scored.keys
    if is_key_taken or not are_comparable:
        return result

    # Columns that the former model lacks are empty in its rows.
    table = scored.table
    added_rows = former_rows.assign(model=former_key).reindex(columns=table.columns).astype(table.dtypes)
    models = [*scored.record.models, structs.replace(former, key=former_key)]
    return replace(
        result,
        record=structs.replace(scored.record, models=models),
        table=pd.concat([table, added_rows], ignore_index=True),
    )


def change_of(films: pd.DataFrame, *, judged: bool = False) -> Interval:
    """Average over films (`Learnt.films`) the AUC with the judgements minus the AUC without them.

    The films are those of the corpus, or with `judged` the judged ones. Each film was tested by models that
    were trained without it.

    The interval says how the change would vary if both models were trained anew on other films. It is wider
    than the differences by film suggest: models trained on nearly the same films err alike.
    """
    has_judgements = films["judged"] > 0
    films_of_kind = films[has_judgements] if judged else films[~has_judgements]
    changes = films_of_kind["after"] - films_of_kind["before"]
    return t_interval(changes, covers="method", possible=(-1.0, 1.0))


def learnt_claims(model: str, films: pd.DataFrame) -> list[FilmClaim]:
    """Make claims on how the AUC changed: on the films of the corpus, and on judged films.

    There is no claim on judged films if only one was judged: the model that tests it must not have learnt
    from it, and so has learnt from no judgement at all. `films` is as `Learnt.films`.
    """
    claims: list[FilmClaim] = [learnt_change(model, change_of(films), is_of_judged=False)]
    of_judged = change_of(films, judged=True)
    if of_judged.n_movies and _n_judged_films(films) > 1:
        claims.append(learnt_change(model, of_judged, is_of_judged=True))
    return claims


def _n_judged_films(films: pd.DataFrame) -> int:
    """Count the films (`Learnt.films`) that have judged clips."""
    return int((films["judged"] > 0).sum())


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

    The model is evaluated twice, on the corpus alone and on the corpus with the judged spans, so that the
    result tells what the judgements changed.

    Model, backbone, task and tests are those that scored the films. The features of a judged span are a mean
    over the film's windows that lie in it by more than half; if there is no such window, over all windows
    that overlap it.

    Parameters
    ----------
    films : sequence of Timeline
    judgements : Manifest
        As `import_spans` reads them; those of other films are left out and counted.
    windows : sequence of Store
        The stores that the films were scored from.
    manifest, store : Manifest, Store
        Labels and features of the corpus that the model was trained on.
    key : str, optional
        Model, as the films' tables name it; by default the first that decides.
    policy : str
        Label policy of `manifest`, for the record.
    same_meaning : collection of str
        Definitions of judgements that mean the same as those of the corpus's codebook.
    progress : callable or bool, optional
        Called with the number of models trained and the number of all models, of one evaluation before the
        judgements are learnt from and of one after; or whether to show a progress bar.

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
    # The model that scored the films, and the corpus that it was trained on
    scored = films[0].model(key)
    spec = find_model(scored.model)
    if spec.reads != "pooled":  # it reads frames: judged spans have means of windows alone
        raise FilmError(message("learn_pooled", model=spec.name, reads=spec.reads))
    _refuse_unusable_films(films, key, manifest)
    corpus = om.load_dataset(store, manifest, backbone=scored.backbone)

    # Judgements with the corpus's names of levels and concepts, under definitions that mean the same
    movies = [film.movie for film in films]
    judgements_like_corpus = _in_terms_of_corpus(judgements, movies, manifest.codebook, same_meaning)

    # Those that can be learnt from. Each step leaves some out of `usable`, which notes how many, and why.
    # `usable.clips` are those that are left.
    usable = JudgementFilter(judgements_like_corpus, _note_left_out)
    reads_concepts = "present" in spec.requests()  # whether the model learns from which concepts are present
    _keep_usable(usable, movies, manifest.codebook, reads_concepts=reads_concepts)
    drop_judges_without_concepts(usable, positive_of(scored), judgements)

    # Their features; a judgement of a span without any window has none.
    judged = _judged_features(films, usable.clips, windows, corpus)
    if not judged.clips:
        n = counted_message("n_judgements", len(judgements))
        raise FilmError(message("learn_none", judgements=n, movies=", ".join(movies)))
    ids_with_features = {clip.clip_id for clip in judged.clips}
    usable.keep(lambda clip: clip.clip_id in ids_with_features, "without features")

    # Evaluate the model on the corpus alone, and on the corpus with the judged clips after it.
    joined_manifest = _joined(manifest, judged.clips)
    joined_corpus = _joined_data(corpus, joined_manifest, judged)
    before = _evaluate(scored, corpus, manifest, policy, progress)
    after = _evaluate(scored, joined_corpus, joined_manifest, policy, progress)
    return Learnt(
        model=spec.name,
        manifest=joined_manifest,
        data=joined_corpus,
        before=before,
        after=after,
        films=_by_film(spec.name, corpus, joined_corpus, before, after),
        notes=(*usable.notices, *_notes_on_other_levels(judged.clips, after)),
    )


def _notes_on_other_levels(judged: Sequence[Clip], after: Run) -> list[str]:
    """Note how many judgements have a level that the model does not learn, such as EN for HN vs S.

    They are tested, if the test has their level, and change no model.

    Parameters
    ----------
    judged : sequence of Clip
        The judged clips that the model was trained anew with.
    after : Run
        The evaluation with them, whose record has the classes that the model learns.
    """
    target = after.record["train"]
    if target["kind"] != "levels":  # of a concept, each clip with or without it is learnt
        return []
    learnt_levels = {level for levels in target["classes"] for level in levels}
    others = sorted(clip.level for clip in judged if clip.level and clip.level not in learnt_levels)
    if not others:
        return []
    shown = ", ".join(dict.fromkeys(others))
    n_of_all = f"{len(others)} of {counted(len(judged), 'judgement')}"
    return [f"{n_of_all} not learnt from: no level that {target['title']} is trained on ({shown})"]


def _evaluate(
    scored: ModelRecord,
    dataset: Dataset,
    clips: Manifest,
    policy: str,
    progress: Progress | bool | None,
) -> Run:
    """Train and test a model anew, with the task and the targets of its first evaluation.

    Parameters
    ----------
    scored : ModelRecord
        The model, as the record of a scored film describes it.
    dataset : Dataset
        Features and labels.
    clips : Manifest
        The clips of the dataset; the run records its digest.
    policy : str
        Label policy of the clips, for the record.
    progress : callable or bool, optional
        Called with the number of models trained and the number of all models; or whether to show a progress
        bar.
    """
    origin = {"manifest_sha256": clips.digest(), "label_policy": policy}
    targets = _test_targets(scored)
    name = find_model(scored.model).name
    return om.evaluate(dataset, [name], scored.task, targets, origin=origin, progress=progress)


def _in_terms_of_corpus(
    judgements: Manifest, movies: Sequence[str], book: Codebook, same_meaning: Collection[str]
) -> Manifest:
    """Spell the films of judgements as `movies`, and write the corpus's definition into the judgements.

    Parameters
    ----------
    judgements : Manifest
    movies : sequence of str
        Names of the films as the corpus's stores have them.
    book : Codebook
        The corpus's codebook.
    same_meaning : collection of str
        Definitions that mean the same as the corpus's.

    Raises
    ------
    FilmError
        Judgements were made under definitions of another meaning.
    """
    judgements = judgements.spelled_as(movies)
    _refuse_other_definitions(judgements, book, same_meaning)
    return _with_definition(judgements, book.definition())


def _keep_usable(
    filtered: JudgementFilter, movies: Sequence[str], book: Codebook, *, reads_concepts: bool
) -> None:
    """Keep the judgements that a model can learn from; the filter notes how many others there are, and why.

    Left out are judgements of other films, and those of a level that counts as no label, such as "not sure".
    A model that learns from concepts also leaves out judgements by which somebody only agreed with a passage
    and named no concepts: that does not mean that there are none.

    Parameters
    ----------
    filtered : JudgementFilter
        The judgements; those that can't be learnt from are taken out of it.
    movies : sequence of str
        The films that are scored.
    book : Codebook
        Of the corpus.
    reads_concepts : bool
        Whether the model learns from concepts.
    """

    def says_which_concepts(clip: Clip) -> bool:
        """Whether a judgement names concepts, or is none by which somebody only agreed with a passage."""
        only_agrees = clip.extras.get("judgement") == "agree"
        return bool(clip.concepts) or not only_agrees

    filtered.keep(lambda clip: clip.movie in movies, "of other films")
    filtered.keep(lambda clip: clip.level in book.labels, "of a level that does not count")
    if reads_concepts:
        filtered.keep(says_which_concepts, "that agree and name no concept")


def _note_left_out(n: int, why: str) -> str:
    """Write the note that n judgements are left out, and why."""
    return f"{counted(n, 'judgement')} left out: {why}"


class _JudgedFeatures(NamedTuple):
    """The N judged clips that have features.

    Attributes
    ----------
    clips : list of Clip
    X : ndarray of float32, shape [N, D]
        Their features.
    """

    clips: list[Clip]
    X: NDArray[np.float32]


def _judged_features(
    films: Sequence[Timeline], judgements: Sequence[Clip], windows: Sequence[Store], data: Dataset
) -> _JudgedFeatures:
    """Average the features of films' windows over their judged clips; clips without features are left out.

    Parameters
    ----------
    films : sequence of Timeline
    judgements : sequence of Clip
    windows : sequence of Store
        The stores that the films were scored from.
    data : Dataset
        The corpus.
    """
    clips: list[Clip] = []
    X = [np.empty((0, data.X.shape[1]), dtype=np.float32)]  # so that it has a shape without any clip too
    for film in films:
        clips_of_film = [clip for clip in judgements if clip.movie == film.movie]
        if not clips_of_film:
            continue
        features = _features(clips_of_film, windows_store(film, windows), data)
        has_features = ~np.isnan(features[:, 0])
        clips += [clips_of_film[index] for index in np.flatnonzero(has_features).tolist()]
        X.append(features[has_features].astype(np.float32))
    return _JudgedFeatures(clips, np.vstack(X))


def _joined_data(data: Dataset, joined: Manifest, judged: _JudgedFeatures) -> Dataset:
    """Make a dataset of the corpus with the judged clips after its clips.

    Parameters
    ----------
    data : Dataset
        The corpus: the clips of its manifest that have features.
    joined : Manifest
        All clips of the corpus and the judged ones, with their labels.
    judged : _JudgedFeatures
        The judged clips, with their features.
    """
    clip_ids = [*data.clip_ids.tolist(), *(clip.clip_id for clip in judged.clips)]
    index_of = {clip.clip_id: index for index, clip in enumerate(joined)}
    indices = np.array([index_of[clip_id] for clip_id in clip_ids], dtype=np.intp)
    return replace(
        data,
        X=np.vstack([data.X, judged.X]),
        labels=labels_of(joined).take(indices),
        counts={**data.counts, "manifest": len(joined), "with_features": len(clip_ids)},
        seconds=_joined_lengths(data, judged.clips),
    )


def _test_targets(scored: ModelRecord) -> list[str]:
    """List the targets that a model was tested on, such as `en_s`, each once.

    They are read from its metrics, whose `task` is `TRAINED>TESTED`, such as `hn_s>en_s`.
    """
    targets: list[str] = []
    for row in scored.metrics:
        _, _, tested = str(row.get("task")).partition(">")
        if tested and tested not in targets:
            targets.append(tested)
    return targets


class _ModelSettings(NamedTuple):
    """What films must have in common with each other, and with the corpus, to learn from them."""

    model: str
    backbone: str
    task: str
    codebook: str


def _refuse_unusable_films(films: Sequence[Timeline], key: str | None, corpus: Manifest) -> None:
    """Raise an error if a film cannot be learnt from together with the others and with the corpus.

    Parameters
    ----------
    films : sequence of Timeline
    key : str or None
        Model, as the films' tables name it; None for the first that decides.
    corpus : Manifest
        The clips that the model was trained on.

    Raises
    ------
    FilmError
        Films were scored by different models, or by one of another codebook than the corpus's; or a film is
        in the corpus, whose name it may spell otherwise, and its clips would count twice.
    """
    scored = films[0].model(key)
    expected = _ModelSettings(scored.model, scored.backbone, scored.task, corpus.codebook.name)
    positive = positive_of(scored)
    labelled_movies = {clip.movie for clip in corpus if positive.is_labelled(clip)}

    for film in films:
        model = film.model(key)
        settings = _ModelSettings(model.model, model.backbone, model.task, model.codebook)
        if settings != expected:
            found, wanted = ", ".join(settings), ", ".join(expected)
            raise FilmError(message("learn_model", movie=film.movie, found=found, expected=wanted))
        is_in_corpus = find_film(film.movie, labelled_movies) is not None  # however either spells it
        if is_in_corpus:
            raise FilmError(message("learn_twice", movie=film.movie))


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
    """Learn from what was judged in films' folders, and write the results into the folder `out`.

    The results are a report, the new model, its evaluations, and the films as it scores them, with the
    decisions that people made about them.

    Parameters
    ----------
    films : mapping of Path to Timeline
        By their folders.
    corpus : (Manifest, sequence of Store)
        Clips of the corpus, and its one store.
    out : Path
    windows : sequence of Path
        Stores of films' windows that are not near the films' folders.
    judged : sequence of Path
        Judgements in files elsewhere.
    notes : sequence of str
        For the report.
    licence : str
        Of the model.
    key : str, optional
        Model of the films; by default the first that decides.
    policy : str
        Label policy of the corpus, for the record.
    progress : callable or bool, optional
        Called with the number of models trained and the number of all models; or whether to show a progress
        bar.
    same_meaning : bool
        The person declares that judgements under other definitions than the corpus's mean the same, which is
        kept in the report's record.
    force : bool
        Whether an earlier folder is replaced.

    Returns
    -------
    report : Report
    model : str
        Name of the model's file.
    """
    manifest, stores_of_corpus = corpus
    (store_of_corpus,) = stores_of_corpus
    timelines = [*films.values()]

    # Read the judgements. What people agreed on counts in place of what they judged differently (`settled`).
    table_names = (JUDGEMENTS, PASSAGES)
    tables = read_judged(films, manifest.codebook, table_names, judged, settled=True, root=manifest.root)

    # The definitions under which judgements mean the same as the corpus's labels: the corpus's own, and, if
    # the person declares it, all under which people judged.
    definition_of_corpus = manifest.codebook.definition()
    accepted_definitions = _accepted_definitions(tables, definition_of_corpus, accepts_all=same_meaning)

    # Find the stores of the films' windows, whose features are learnt from: those that are named, and those
    # that lie beside the films' folders.
    stores_of_windows = [open_store(path) for path in windows]
    for folder, film in films.items():
        stores_of_windows += stores_near(folder, film)

    # The folder gets its name when all is written: an error leaves no half of the results.
    with new_folder(out, force=force) as folder:
        learnt = learn_from_judgements(
            timelines,
            tables.manifest,
            stores_of_windows,
            manifest,
            store_of_corpus,
            key=key,
            policy=policy,
            same_meaning=accepted_definitions,
            progress=progress,
        )
        learnt = replace(learnt, notes=(*tables.notices, *notes, *learnt.notes))

        report = learning_report(learnt)
        other_definitions = [
            definition for definition in accepted_definitions if definition != definition_of_corpus
        ]
        report = replace(report, record={**report.record, "same_meaning": other_definitions})
        write_report(report, folder)

        model = learnt.write(folder, timelines, stores_of_windows, licence)
        new_folder_of = folders_of([film.movie for film in timelines], folder / "scored")
        for former_folder, film in films.items():
            copy_decisions(former_folder, new_folder_of[film.movie])
        return report, model


def _accepted_definitions(tables: JudgedTables, definition_of_corpus: str, *, accepts_all: bool) -> list[str]:
    """List the definitions of the judgements that mean the same as the corpus's definition.

    Parameters
    ----------
    tables : JudgedTables
        The judgements, and which definitions people declared to mean the same.
    definition_of_corpus : str
        Digest of the definition.
    accepts_all : bool
        Whether a person has declared that all definitions of the judgements mean the same as the corpus's.
    """
    used_definitions = [*judgements_of(tables.manifest).definitions]
    if accepts_all:
        return used_definitions
    meaning_of_corpus = tables.meanings.representative(definition_of_corpus)
    return [name for name in used_definitions if tables.meanings.representative(name) == meaning_of_corpus]


def _refuse_other_definitions(judged: Manifest, book: Codebook, same_meaning: Collection[str]) -> None:
    """Raise FilmError if judgements were made under definitions of another meaning than the corpus's.

    A definition is the digest of the texts on levels and concepts that a judge read. One that differs from
    the corpus's is accepted if somebody declared that it means the same (`same_meaning`).

    Parameters
    ----------
    judged : Manifest
    book : Codebook
        Of the corpus.
    same_meaning : collection of str
        Definitions that mean the same as the corpus's.
    """
    definition_of_corpus = book.definition()
    accepted = {definition_of_corpus, *same_meaning}
    n_by_definition = judgements_of(judged).definitions  # definition -> number of judgements
    n_by_other_definition = {
        definition: n for definition, n in n_by_definition.items() if definition not in accepted
    }
    if not n_by_other_definition:
        return

    # The message names the definitions of codebooks that are known: built-in ones, and the corpus's.
    n = counted_message("n_judgements", sum(n_by_other_definition.values()))
    meanings = Meanings((), [book])
    names = "; ".join(meanings.name(definition) for definition in n_by_other_definition)
    corpus = meanings.name(definition_of_corpus)
    raise FilmError(message("learn_definition", n=n, names=names, corpus=corpus))


def _with_definition(judged: Manifest, definition: str) -> Manifest:
    """Write one definition (its digest) into all judgements that name any; others stay without."""
    clips = []
    for clip in judged:
        extras = dict(clip.extras)
        if extras.get(DEFINITION):
            extras[DEFINITION] = definition
        clips.append(replace(clip, extras=extras))
    return judged.with_clips(clips)


def _joined_lengths(data: Dataset, judged: Sequence[Clip]) -> Floats | None:
    """Return the lengths in seconds of the corpus's and the judged clips [N]; None if the corpus has none."""
    if data.seconds is None:
        return None
    lengths = [clip.duration_s or np.nan for clip in judged]
    return np.concatenate([data.seconds, lengths])


def _features(clips: Sequence[Clip], store: Store, data: Dataset) -> Floats:
    """Average the features of a film's windows over each judged clip [N, D]; NaN where none has features.

    See `learn_from_judgements` for the windows of a clip.

    Parameters
    ----------
    clips : sequence of Clip
        Judged spans of one film.
    store : Store
        The film's windows.
    data : Dataset
        The corpus, whose features the windows must have.

    Raises
    ------
    FilmError
        The windows' features were made otherwise than the corpus's.
    """
    group = find_group(store, data.backbone)
    _refuse_other_features(store, group, data)
    usable = _usable_windows(store, group, movie=clips[0].movie)
    if not len(usable.rows):
        return np.full((len(clips), data.X.shape[1]), np.nan)

    # Features of the windows. `read_features` needs a pool, and ignores it for vectors that are stored
    # pooled.
    pool: Any = "mean" if data.features == "pooled" else data.pool
    features = read_features(group, data.features, pool, usable.rows).astype(np.float64)  # [windows, D]

    # The mean of the windows of each clip, weighted by the seconds that they have in common with it.
    seconds = _seconds_of_windows(clips, usable.spans)  # [clips, windows]
    sums = csr_array(seconds) @ features  # sparse, as most of `seconds` is 0
    with np.errstate(invalid="ignore"):  # a clip without windows has 0 / 0
        means: Floats = sums / seconds.sum(axis=1, keepdims=True)
    return means


class _UsableWindows(NamedTuple):
    """The windows of a film whose features could be extracted.

    Attributes
    ----------
    rows : ndarray of int, shape [windows]
        Their rows in a store's group.
    spans : ndarray, shape [windows, 2]
    """

    rows: NDArray[np.intp]
    spans: Spans


def _usable_windows(store: Store, group: Group, movie: str) -> _UsableWindows:
    """List the windows of a film whose features could be extracted, with their rows in a store's group."""
    windows = windows_of(store)[movie]
    row_of_clip = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
    rows = np.array([row_of_clip[clip_id] for clip_id in windows.clip_ids], dtype=np.intp)
    is_usable = group.usable[rows]
    return _UsableWindows(rows[is_usable], windows.spans[is_usable])


def _refuse_other_features(store: Store, group: Group, data: Dataset) -> None:
    """Refuse features of films' windows that were made otherwise than the corpus's features.

    Parameters
    ----------
    store, group
        The windows' store, and the group of their features in it.
    data : Dataset
        The corpus.

    Raises
    ------
    FilmError
        The features differ in how they were computed (such as in weights or sampling), or the group lacks
        the array that the corpus uses. The message names up to three differences.
    """
    provenance_of_corpus = data.group.provenance if data.group else {}
    # None if they are the same; arrays that the corpus does not use do not count.
    differing_fields = same_numerics(provenance_of_corpus, group.provenance, array=data.features)
    if differing_fields or data.features not in group.arrays:
        difference = ", ".join(differing_fields[:3]) or f"no {data.features}"
        raise FilmError(message("learn_features", store=store.name, group=group.name, fields=difference))


def _seconds_of_windows(clips: Sequence[Clip], spans: Spans) -> Floats:
    """Compute the seconds of overlap with which each window counts in each clip, [clips, windows].

    A window counts if more than half of it lies in the clip. If there is no such window, all windows that
    overlap the clip count.

    Parameters
    ----------
    clips : sequence of Clip
    spans : ndarray, shape [windows, 2]
    """
    spans_of_clips = np.array([[clip.start_s, clip.end_s] for clip in clips])
    seconds: Floats = overlaps(spans_of_clips, spans).toarray()
    half_of_window_s = (spans[:, 1] - spans[:, 0]) / 2
    is_mostly_inside = seconds > half_of_window_s + SLACK_S  # more than half, but for rounding
    has_such_windows = is_mostly_inside.any(axis=1, keepdims=True)  # [clips, 1]
    return np.where(has_such_windows & ~is_mostly_inside, 0.0, seconds)


def _joined(manifest: Manifest, judged: Sequence[Clip]) -> Manifest:
    """Make a manifest of the corpus's clips with the judged clips after them.

    Every clip has the extra columns of both, which are empty if they are the other's. The column `seen_score`
    says whether the clip's judge saw a model's score. Paths of videos are left out: other machines have other
    paths, and the features are in the stores.
    """
    all_clips = [*manifest, *judged]
    default_of_column = dict.fromkeys([*all_clips[0].extras, *judged[0].extras], "")  # the cell without one
    default_of_column[SEEN_SCORE] = "0"  # nobody saw a score of the corpus's clips
    clips = []
    for clip in all_clips:
        extras = {name: clip.extras.get(name, default) for name, default in default_of_column.items()}
        clips.append(replace(clip, video="", extras=extras))
    return manifest.with_clips(clips)


def _by_film(model: str, data: Dataset, joined_data: Dataset, before: Run, after: Run) -> pd.DataFrame:
    """Compute the AUC of each film by models without and with the judgements: a row for each film.

    A film is tested by models that were not trained on it. The films are those of the corpus, and those in
    which people judged clips. The columns are (as in `Learnt.films`):

    - `movie`;
    - `judged`: clips that people judged; 0 for a film of the corpus;
    - `in_sight`: how many of these were judged with the model's score in sight, and so are not tested;
    - `tested`: how many of the judged clips were tested;
    - `before`: AUC by models of the corpus alone;
    - `after`: AUC by models of the corpus and the judgements.

    Parameters
    ----------
    model : str
        Name in the zoo.
    data, joined_data : Dataset
        The corpus, and the corpus with the judged clips after it.
    before, after : Run
        Evaluations of the model on them.
    """
    scores_before = _scores_of_films_left_out(before, model)
    scores_after = _scores_of_films_left_out(after, model)
    is_of_judged_film = ~scores_after["movie"].isin(data.movies)  # not of the corpus
    tested_judged_clips = scores_after[is_of_judged_film]
    if len(tested_judged_clips):
        # The evaluation before has clips of the corpus alone. Its model of the whole corpus, which has seen
        # no judged film, scores the others.
        judged_before = _with_scores_of_corpus_model(model, before, data, joined_data, tested_judged_clips)
        scores_before = pd.concat([scores_before, judged_before])

    # Each column is indexed by movie; pandas aligns them.
    judged_clips_by_movie = _judged_clips(data, joined_data).groupby("movie")
    films = pd.DataFrame(
        {
            "judged": judged_clips_by_movie.size(),
            "in_sight": judged_clips_by_movie["in_sight"].sum(),
            "tested": tested_judged_clips.groupby("movie").size(),
            "before": _auc_by_movie(scores_before),
            "after": _auc_by_movie(scores_after),
        }
    )
    # A film that was not judged, or not tested, has no row in these counts: it counts 0 there.
    films = films.fillna({"judged": 0, "in_sight": 0, "tested": 0})
    films = films.astype({"judged": "int64", "in_sight": "int64", "tested": "int64"})
    return films.rename_axis("movie").reset_index()


def _with_scores_of_corpus_model(
    model: str, before: Run, data: Dataset, joined_data: Dataset, clips: pd.DataFrame
) -> pd.DataFrame:
    """Score clips of judged films by a model of the whole corpus, which has not seen these films.

    Parameters
    ----------
    model : str
        Name in the zoo.
    before : Run
        The model's evaluation on the corpus.
    data, joined_data : Dataset
        The corpus, and the corpus with the judged clips after it.
    clips : DataFrame
        A row for each clip; it is returned with these scores (logits) in the column `score`.
    """
    rows = joined_data.rows(clips["clip_id"].tolist())
    logits = _model_of_corpus(before, data, model).logits(joined_data.X[rows])
    return clips.assign(score=logits)


def _judged_clips(data: Dataset, joined_data: Dataset) -> pd.DataFrame:
    """List the judged clips: their `movie`, and whether the judge saw a model's score (`in_sight`).

    They are the clips of `joined_data` (the corpus with the judged clips) after those of `data` (the corpus).
    """
    judged_rows = np.arange(len(data), len(joined_data))  # they come after the clips of the corpus
    labels = joined_data.labels.take(judged_rows)
    return pd.DataFrame({"movie": labels.movies, "in_sight": labels.seen_score})


def _scores_of_films_left_out(run: Run, model: str) -> pd.DataFrame:
    """Return a table of the clips that a run tested; each has a score by a model not trained on its film.

    `model` is the model's name in the run.
    """
    task = run.predictions.table["task"].iloc[0]  # a run of one task has it in all rows
    results = om.side(om.saved(run), model, task)  # of one model, as one side of a comparison
    return results.predictions.table


def _model_of_corpus(run: Run, data: Dataset, model: str) -> Model:
    """Train a model on the whole corpus, in the same way as a run that evaluated it.

    The function that trains it also saves it: here to a folder that is removed once the model is loaded.
    """
    with TemporaryDirectory() as folder:
        files = om.save_models(run, data, [model], folder)
        return om.load_model(files[model])


def _auc_by_movie(table: pd.DataFrame) -> "pd.Series[float]":
    """Compute the AUC of each movie from the columns `label` and `score` of its clips."""
    auc_of = {}
    for movie, rows in table.groupby("movie")[["label", "score"]]:
        labels, scores = rows.to_numpy().T
        auc_of[movie] = auc(labels, scores)
    return pd.Series(auc_of)


def learning_report(learnt: Learnt) -> Report:
    """Report what a model learnt from judgements: how its AUC changed in each film, and in all together.

    Films of the corpus and films that people judged have a sentence each. If no change can be told of the
    judged films, a note says why: only one was judged, or none has judgements of both classes.
    """
    # Heading, column of the table, and the function that writes a cell.
    columns: list[Column] = [
        ("movie", "movie", str),
        ("judged", "judged", str),
        ("in sight", "in_sight", str),
        ("tested", "tested", str),
        ("AUC before", "before", number),
        ("AUC after", "after", number),
    ]
    claims = learnt.claims
    notes = [RULES]
    n_judged_films = _n_judged_films(learnt.films)
    n_judged_films_with_auc = change_of(learnt.films, judged=True).n_movies
    if n_judged_films == 1:
        notes.append(ONLY_JUDGED_FILM)
    elif n_judged_films_with_auc == 0:
        notes.append(ONE_CLASS_JUDGED)
    n_judgements = int(learnt.films["judged"].sum())
    return Report(
        name="learn",
        title=f"{learnt.model} before and after {counted(n_judgements, 'judgement')}",
        notes=(*notes, *learnt.notes),
        blocks=(block("Films", columns, learnt.films.to_dict("records")),),
        data=learnt.films,
        record={
            "model": learnt.model,
            "manifest_sha256": learnt.manifest.digest(),
            "claims": [document(claim) for claim in claims],
        },
        answers=tuple(sentences(claims)),
    )
