"""Train the models behind the papers' tables and figures, under the `paper` or the `strict` protocol.

Under `paper`, models and settings are those of the original code, because the papers print no settings of the
concept models. Its folds are in `obygaze_studies.obygaze12.paper_folds`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from obygaze_features.manifest import Manifest
from obygaze_models.concepts import ConceptBottleneck, Hyperplanes, head_scores, svm_hyperplanes
from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import Predictions, Run, evaluate, f1_pos, seed_of, varying
from obygaze_models.models import ABOVE_ZERO, BUILTIN_MODELS, MLPProbe, fit, fit_many
from obygaze_models.protocol import Fold, Target, concept_target, find_target
from obygaze_studies.obygaze12 import paper_folds
from obygaze_studies.obygaze12.corpus import TASKS, VISUAL_CONCEPTS, PaperCorpus
from obygaze_studies.obygaze12.printed_values import CELLS, MOVIE_PAIR_CELL, PUBLISHED, Cell
from obygaze_studies.unfinished import load_or_compute

Progress = Callable[[int, int], None]

TEST_TASKS_OF: dict[str, list[str]] = {}
for _train, _test in CELLS:
    TEST_TASKS_OF.setdefault(_train, []).append(_test)
"""Task that is trained on -> the tasks that are tested, in Table 2."""


# --- concept models of the paper protocol
# ---------------------------------------------------------------------------
CAV_C: Mapping[str, float] = PUBLISHED["code"]["cav_c"]
"""Concept -> C of its SVM; class weights are balanced."""

SEED_OF_HEADS = 42
"""Random state of the heads in the original code."""

NEGATIVES = (paper_folds.Negatives.EN, paper_folds.Negatives.ALL)
"""Negatives of Figure 3's solid and hatched bars."""

ConceptTask = tuple[str, paper_folds.Negatives]
"""A concept and its choice of negatives."""

CONCEPT_TASKS: tuple[ConceptTask, ...] = tuple(
    (concept, negatives) for negatives in NEGATIVES for concept in VISUAL_CONCEPTS
)


TREES: Mapping[str, dict[str, int]] = PUBLISHED["code"]["trees"]
"""Limits of PCBM-DT by the task trained on."""

LOGISTICS: Mapping[str, dict[str, float]] = PUBLISHED["code"]["logistics"]
"""Penalty of PCBM-LR by the task trained on."""


@dataclass(frozen=True, eq=False)
class PaperConcepts:
    """The CAVs of one source.

    Attributes
    ----------
    predictions : Predictions
        Predictions of all CAVs. The task is ``concept|negatives``; fold k is the one validated on fold k; the
        score is the signed distance from the CAV's hyperplane.
    elected : dict of ConceptTask to int
        The fold whose CAV has the highest f1_pos on its validation side.
    hyperplanes : dict of Negatives to Hyperplanes
        The hyperplanes of the elected CAVs, in the order of the concepts.
    """

    predictions: Predictions
    elected: Mapping[ConceptTask, int]
    hyperplanes: Mapping[paper_folds.Negatives, Hyperplanes]


class _ConceptProblem(NamedTuple):
    """What the CAVs of a concept are trained on.

    Attributes
    ----------
    folds
        The nine folds.
    labels : ndarray of int, shape [N]
        1 for a positive, 0 for all other clips of the source.
    """

    folds: tuple[Fold, ...]
    labels: NDArray[np.int64]


def fit_concepts(manifest: Manifest, data: Dataset) -> PaperConcepts:
    """Fit the nine CAVs of each concept against each choice of negatives, and elect one of the nine.

    A CAV is the hyperplane of a linear SVM, fitted on one fold. The one with the highest F1 on the validation
    clips of its fold is elected, as in the original code. All SVMs are solved in one call, which shares their
    work. Below, a task is a pair of a concept and a choice of negatives: the EN clips, or all clips without
    the concept.

    Raises
    ------
    FoldsError
        Too few clips of a fold have features.
    """
    problems = {task: _concept_problem(manifest, data, task) for task in CONCEPT_TASKS}

    # What each CAV is trained on: its training rows, whether each of them is positive, and C of its SVM.
    trainings: list[tuple[NDArray[np.intp], NDArray[np.bool_], float]] = []
    # Task and number of the fold of a CAV -> its index in `trainings`, and so among the hyperplanes.
    index_of_cav: dict[tuple[ConceptTask, int], int] = {}
    for task, problem in problems.items():
        concept, _ = task
        for k, fold in enumerate(problem.folds):
            index_of_cav[task, k] = len(trainings)
            rows = data.rows(fold.train)
            is_positive = problem.labels[rows] == 1
            C_of_concept = CAV_C[concept]  # of the original code
            trainings.append((rows, is_positive, C_of_concept))
    hyperplanes = svm_hyperplanes(data.X, trainings)

    # Test the CAVs of each task, and elect one of them by its validation clips.
    predictions = []
    elected = {}
    for task, problem in problems.items():
        hyperplanes_of_task = [hyperplanes.one(index_of_cav[task, k]) for k in range(len(problem.folds))]
        predictions += _predict_tests(data, task, problem, hyperplanes_of_task)
        elected[task] = _elected_fold(data, problem, hyperplanes_of_task)

    elected_hyperplanes = {}
    for negatives in NEGATIVES:
        tasks = [(concept, negatives) for concept in VISUAL_CONCEPTS]
        indices = np.array([index_of_cav[task, elected[task]] for task in tasks])
        elected_hyperplanes[negatives] = Hyperplanes(
            hyperplanes.weights[indices], hyperplanes.intercepts[indices]
        )
    return PaperConcepts(paper_folds.stack_predictions(predictions), elected, elected_hyperplanes)


def _predict_tests(
    data: Dataset, task: ConceptTask, problem: _ConceptProblem, hyperplanes: Sequence[Hyperplanes]
) -> list[paper_folds.Rows]:
    """Make the rows of predictions of a concept's CAVs, one per fold, each on the test clips of its fold.

    Parameters
    ----------
    data
        The features.
    task
        The concept and the choice of its negatives.
    problem
        The folds and labels of the concept.
    hyperplanes
        The CAV of each fold.
    """
    rows_of_folds = []
    for k, (fold, hyperplane) in enumerate(zip(problem.folds, hyperplanes, strict=True)):
        test_rows = data.rows(fold.test)
        rows_of_fold = paper_folds.prediction_rows(
            data,
            test_rows,
            score=_distances(hyperplane, data, test_rows),
            model="cav_svm",
            task="|".join(task),
            fold=k,
            label=problem.labels[test_rows],
        )
        rows_of_folds.append(rows_of_fold)
    return rows_of_folds


def _distances(hyperplane: Hyperplanes, data: Dataset, rows: NDArray[np.intp]) -> NDArray[np.floating[Any]]:
    """Return the signed distances of some rows of the data from a single hyperplane, [n]."""
    distances: NDArray[np.floating[Any]] = hyperplane.distances(data.X[rows])  # [n, 1]
    return distances[:, 0]


def _elected_fold(data: Dataset, problem: _ConceptProblem, hyperplanes: Sequence[Hyperplanes]) -> int:
    """Return the number of the fold whose CAV has the highest F1 on the fold's validation clips.

    Of equal folds it is the first. An undefined F1 counts as 0.
    """
    validation_f1 = []
    for fold, hyperplane in zip(problem.folds, hyperplanes, strict=True):
        validation_rows = data.rows(fold.validation)
        # ABOVE_ZERO is the smallest number above 0: a distance of 0 is called negative.
        is_called = _distances(hyperplane, data, validation_rows) >= ABOVE_ZERO
        f1 = f1_pos(problem.labels[validation_rows], is_called)
        validation_f1.append(float(np.nan_to_num(f1)))
    return int(np.argmax(validation_f1))


def _concept_problem(manifest: Manifest, data: Dataset, task: ConceptTask) -> _ConceptProblem:
    """Collect the folds of a concept, and the label of each clip of the data: 1 if positive, else 0.

    Clips that are neither positive nor negative are 0 too; they are on no side of a fold. `task` is the
    concept and the choice of its negatives.

    Raises
    ------
    FoldsError
        Too few clips of a fold have features.
    """
    concept, negatives = task
    folds = paper_folds.concept_folds(manifest, concept, negatives)
    label_of_clip = paper_folds.concept_labels(manifest, concept, negatives)
    for fold in folds:
        paper_folds.check_sides(data, fold, label_of_clip, f"{concept} against {negatives}")
    labels = np.array([label_of_clip.get(clip_id, 0) for clip_id in data.clip_ids.tolist()])
    return _ConceptProblem(folds, labels)


def make_head(name: str, task: str) -> DecisionTreeClassifier | LogisticRegression:
    """Make the unfitted head of a bottleneck, with the settings of the original code for a training task.

    `name` is "pcbm_dt", whose head is a decision tree, or "pcbm_lr", whose head is logistic regression.
    """
    if name == "pcbm_dt":
        limits = TREES[task]  # depth, and clips of a leaf
        return DecisionTreeClassifier(**limits, random_state=SEED_OF_HEADS)
    penalty = LOGISTICS[task]
    return LogisticRegression(**penalty, solver="liblinear", random_state=SEED_OF_HEADS)


@dataclass(frozen=True, eq=False)
class PaperHeads:
    """The heads of the bottlenecks on the elected CAVs.

    Attributes
    ----------
    predictions
        Predictions of all heads.
    trees
        Training task and negatives -> the fitted tree of PCBM-DT.
    """

    predictions: Predictions
    trees: Mapping[tuple[str, paper_folds.Negatives], object]


def paper_heads(manifest: Manifest, data: Dataset, concepts: PaperConcepts) -> PaperHeads:
    """Fit the bottlenecks' heads on values of the elected CAVs, and test them on fold 9.

    A CAV is elected if it does best in its own folds, among those of its concept. The inputs of a head are
    raw decision values (distances times the length of the weights), as in the original code. There is a head
    for each choice of negatives of the CAVs, each kind of head (a tree or a logistic regression) and each
    training task. Predictions name their model by kind and negatives, such as `pcbm_dt|en`; the trees are
    kept too, as Figure 5 draws one.
    """
    y = paper_folds.s_labels(data)
    predictions = []
    trees = {}
    for negatives in NEGATIVES:
        decisions = concepts.hyperplanes[negatives].decisions(data.X)  # [N, concepts], float64 as there
        for name, train in product(("pcbm_dt", "pcbm_lr"), TEST_TASKS_OF):
            training_rows = _training_rows_of_head(manifest, data, train)
            head = make_head(name, train).fit(decisions[training_rows], y[training_rows])
            if name == "pcbm_dt":
                trees[train, negatives] = head

            # The same head is tested on each task that Table 2 has for its training task.
            for test in TEST_TASKS_OF[train]:
                test_rows = _test_rows_of_head(manifest, data, train, test)
                rows_of_test = paper_folds.prediction_rows(
                    data,
                    test_rows,
                    score=head_scores(head, decisions[test_rows]),
                    model=f"{name}|{negatives}",
                    task=f"{train}>{test}",
                )
                predictions.append(rows_of_test)
    return PaperHeads(paper_folds.stack_predictions(predictions), trees)


def _training_rows_of_head(manifest: Manifest, data: Dataset, train: str) -> NDArray[np.intp]:
    """Return the rows of the data that the heads of bottlenecks are trained on, for a training task.

    The training clips are the same whatever the heads are tested on, so that any test task gives them.

    Raises
    ------
    FoldsError
        Too few of these clips have features, or those that have are of one class.
    """
    fold = paper_folds.head_fold(manifest, train=TASKS[train], test=TASKS[train])
    labels = paper_folds.s_label_of_clip(data)  # clip -> 1 if its level is S, else 0
    paper_folds.check_sides(data, fold, labels, f"the bottlenecks of {train}")
    return data.rows(fold.train)


def _test_rows_of_head(manifest: Manifest, data: Dataset, train: str, test: str) -> NDArray[np.intp]:
    """Return the rows of the data on which bottlenecks' heads are tested, for a training and a test task.

    Raises
    ------
    FoldsError
        Too few of these clips have features, or those that have are of one class.
    """
    fold = paper_folds.head_fold(manifest, train=TASKS[train], test=TASKS[test])
    labels = paper_folds.s_label_of_clip(data)  # clip -> 1 if its level is S, else 0
    paper_folds.check_sides(data, fold, labels, f"the bottlenecks of {train}>{test}")
    return data.rows(fold.test)


# --- the two protocols
# ---------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Results:
    """The results of one source under a protocol; each is computed once, when it is first used.

    Attributes
    ----------
    corpus
        The clips.
    source
        The features of one backbone.
    seed
        Random seed of the models.
    progress
        Called with the number of trained models and the number of all models.
    results_folder : path, optional
        Folder in which trained results are kept, and from which those that exist are read.
    """

    corpus: PaperCorpus
    source: Dataset
    seed: int = 0
    progress: Progress | None = None
    results_folder: Path | None = None


class Job(NamedTuple):
    """A perceptron to train and test.

    Attributes
    ----------
    task
        Task in the table of predictions.
    number
        Number of the fold in the task.
    fold
        The clips.
    """

    task: str
    number: int
    fold: Fold


class PaperResults(Results):
    """The results of one source under the `paper` protocol."""

    @cached_property
    def classifiers(self) -> Predictions:
        """The perceptron in the four cells of Table 2, on eight folds each."""
        jobs = []
        for (train, test), folds in cell_folds(self.corpus.manifest).items():
            for k, fold in enumerate(folds):
                jobs.append(Job(task=f"{train}>{test}", number=k, fold=fold))
        return self._train_or_load("classifiers", jobs)

    @cached_property
    def movie_pairs(self) -> Predictions:
        """The predictions of the perceptron on the film pairs of Table 4; fold i is the i-th pair.

        A pair is a film that is tested and one that is validated on; all others are trained on.
        """
        train, test = MOVIE_PAIR_CELL  # the training task and the test task of Table 4
        task = f"movies:{train}>{test}"  # Table 2 has a task of the same name, without "movies:"
        folds = pair_folds(self.corpus.manifest)
        jobs = [Job(task=task, number=k, fold=fold) for k, fold in enumerate(folds)]
        return self._train_or_load("movie_pairs", jobs)

    def _train_or_load(self, name: str, jobs: Sequence[Job]) -> Predictions:
        """Train perceptrons on folds and return their predictions; or read those of an earlier call.

        Predictions are kept in a file of the results folder, if there is one. `name` is part of the file's
        name.
        """
        compute = partial(train_perceptrons, self.source, jobs, self.seed, self.progress)
        return load_or_compute(self.results_folder, f"paper-{self.source.label}-{name}", compute)

    @cached_property
    def concepts(self) -> PaperConcepts:
        """The CAVs of Figure 3."""
        return fit_concepts(self.corpus.manifest, self.source)

    @cached_property
    def heads(self) -> PaperHeads:
        """The PCBM heads of Table 2."""
        return paper_heads(self.corpus.manifest, self.source, self.concepts)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The predictions computed so far: name of the file without ending -> table."""
        # Cached properties that were read have their values here; reading others would train their models.
        computed = self.__dict__
        # The first two are predictions themselves, the others have predictions.
        parts = [computed[name].table for name in ("classifiers", "movie_pairs") if name in computed]
        parts += [computed[name].predictions.table for name in ("heads", "concepts") if name in computed]
        if not parts:
            return {}
        return {"predictions": pd.concat(parts, ignore_index=True)}


def cell_folds(manifest: Manifest) -> dict[Cell, tuple[Fold, ...]]:
    """Make the eight folds of each cell of Table 2: (training task, test task) -> folds."""
    folds = {}
    for train, test in CELLS:
        folds[train, test] = paper_folds.classifier_folds(manifest, TASKS[train], TASKS[test])
    return folds


def pair_folds(manifest: Manifest) -> tuple[Fold, ...]:
    """Make the film pairs of Table 4, for the tasks that its models are trained and tested on."""
    train, test = MOVIE_PAIR_CELL  # names of tasks
    return paper_folds.movie_folds(manifest, TASKS[train], TASKS[test])


def train_perceptrons(
    data: Dataset, jobs: Sequence[Job], seed: int, progress: Progress | None = None
) -> Predictions:
    """Train a perceptron for each fold, and return its predictions on the test clips of the fold.

    Parameters
    ----------
    data
        The features.
    jobs
        The folds.
    seed
        Seed from which the seeds of the models are derived.
    progress
        Called with the number of trained models and the number of all models.
    """
    # Too few clips are refused before anything is trained.
    labels = paper_folds.s_label_of_clip(data)
    for job in jobs:
        paper_folds.check_sides(data, job.fold, labels, job.task)

    probes = _probes_of(jobs, seed)
    fit_many(
        list(probes.values()),
        data.X,
        paper_folds.s_labels(data),
        [data.rows(train) for train, _ in probes],
        validation=[data.rows(validation) for _, validation in probes],
        progress=progress,
    )

    predictions = []
    for job in jobs:
        probe = probes[job.fold.train, job.fold.validation]
        test_rows = data.rows(job.fold.test)
        rows_of_job = paper_folds.prediction_rows(
            data,
            test_rows,
            score=probe.decision_function(data.X[test_rows]),
            model="mlp",
            task=job.task,
            fold=job.number,
            seed=seed,
            threshold=probe.threshold_,
        )
        predictions.append(rows_of_job)
    return paper_folds.stack_predictions(predictions)


ClipIds = tuple[str, ...]


def _probes_of(jobs: Sequence[Job], seed: int) -> dict[tuple[ClipIds, ClipIds], MLPProbe]:
    """Make the unfitted perceptrons that jobs need: (training clips, validation clips) -> perceptron.

    Jobs with the same training and validation clips share one model. Jobs with the same training clips, but
    other validation clips, get models of the same seed: their training takes the same steps, and stops at
    another time. `fit_many` can then share the steps. Such jobs are two film pairs in which the tested and
    the validated film are exchanged.
    """
    first_job_of: dict[ClipIds, int] = {}  # training clips -> the first job with them
    probes: dict[tuple[ClipIds, ClipIds], MLPProbe] = {}
    for index, job in enumerate(jobs):
        first_job = first_job_of.setdefault(job.fold.train, index)
        sides = (job.fold.train, job.fold.validation)
        if sides not in probes:
            probes[sides] = MLPProbe(variant="paper", random_state=seed_of(seed, first_job))
    return probes


class StrictResults(Results):
    """The results of one source under the `strict` protocol."""

    @cached_property
    def runs(self) -> Mapping[str, Run]:
        """The zoo's models: task that they are trained on -> their run on all test tasks of Table 2."""
        runs = {}
        # Each cell of Table 2 has a training task and a test task; cells with the same training task are run
        # together.
        for train, tests in TEST_TASKS_OF.items():
            runs[train] = self._evaluate_or_load(train, models=None, task=train, tests=tests)
        return runs

    @cached_property
    def concepts(self) -> Mapping[ConceptTask, Run]:
        """The run of the CAV of each concept and choice of negatives that can be learnt."""
        targets = self.concept_targets

        # The CAVs against all clips are trained on the clips of Table 2's bottlenecks. They come first, while
        # the matrix decompositions of these clips are still cached.
        all_first = sorted(targets, key=lambda task: task[1] is not paper_folds.Negatives.ALL)
        runs = {}
        for task in all_first:
            runs[task] = self._evaluate_or_load("-".join(task), models=["cav"], task=targets[task])

        # Returned in the order of the targets.
        return {task: runs[task] for task in targets}

    def _evaluate_or_load(
        self,
        name: str,
        *,
        models: Sequence[str] | None,
        task: str | Target,
        tests: Sequence[str] | None = None,
    ) -> Run:
        """Evaluate models on the source and return the run; or read the run from the results folder.

        Parameters
        ----------
        name
            Name of the run in the file's name.
        models, task, tests
            As `evaluate` takes them: names of models, None for all; the task that they are trained on; and
            the tasks that they are tested on, by default the same.
        """
        corpus = self.corpus
        origin = {"manifest_sha256": corpus.digest, "label_policy": str(corpus.policy)}
        compute = partial(
            evaluate,
            self.source,
            models,
            task,
            tests,
            seed=self.seed,
            origin=origin,
            progress=self.progress,
        )
        return load_or_compute(self.results_folder, f"strict-{self.source.label}-{name}", compute)

    @cached_property
    def tree(self) -> ConceptBottleneck:
        """PCBM-DT for EN vs S, trained on all movies; its depth is chosen by inner folds of movies."""
        data = self.source
        target = find_target("en_s", self.source.codebook)
        all_rows = np.arange(len(data))
        concepts = varying(data, all_rows)  # those that some clips have and some do not

        # The seed of a fold is derived from the name of the movie that is left out; here none is.
        model_seed = seed_of(self.seed, "")
        fitted = fit(
            BUILTIN_MODELS["pcbm_dt"],
            model_seed,
            data.X,
            target.of(data.labels),
            movies=data.movies,
            present=data.present[concepts],
        )
        model: ConceptBottleneck = fitted.estimator
        return model

    @property
    def concept_targets(self) -> Mapping[ConceptTask, Target]:
        """The target of each concept and choice of negatives that can be learnt (`is_learnable`).

        A concept cannot be learnt if too few movies have clips with it, or clips without it.
        """
        targets = {}
        for concept, negatives in CONCEPT_TASKS:
            target = concept_target(concept, self.source.codebook, paper_folds.NEGATIVE_LEVELS[negatives])
            if is_learnable(target, self.source):
                targets[concept, negatives] = target
        return targets

    def pair_rows(self) -> pd.DataFrame:
        """Return the perceptron's predictions for the training and test task of Table 4.

        Table 4 compares films. Its models are trained on one task and tested on another (`MOVIE_PAIR_CELL`),
        as in one of the cells of Table 2, so that nothing more is trained for it.

        Returns
        -------
        DataFrame
            Rows of `Predictions.table`, one for each tested clip, with the column `called`: the class that
            the clip is called.
        """
        training_task, test_task = MOVIE_PAIR_CELL
        run = self.runs[training_task]
        table = run.predictions.table.assign(called=run.predictions.called)
        # A run has all models and test tasks; in its table the two tasks are joined by ">".
        is_of_perceptron = table["model"] == "mlp"
        is_of_cell = table["task"] == f"{training_task}>{test_task}"
        return table[is_of_perceptron & is_of_cell]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables computed so far: name of the file without ending -> table."""
        # Cached properties that were read have their values here; reading others would train their models.
        computed = self.__dict__
        runs = [*computed.get("runs", {}).values(), *computed.get("concepts", {}).values()]
        if not runs:
            return {}

        parts_of_table = {
            "predictions": [run.predictions.table for run in runs],
            "selection": [run.selection for run in runs],
            "curves": [run.curves for run in runs],
        }

        tables = {}
        for name, parts in parts_of_table.items():
            parts_with_rows = [part for part in parts if len(part)]
            if parts_with_rows:
                tables[name] = pd.concat(parts_with_rows, ignore_index=True)
        return tables


def is_learnable(target: Target, data: Dataset) -> bool:
    """Return whether a concept can be learnt and tested whichever movie is left out.

    Both classes must remain when any two movies are taken away, because the CAV's penalty is chosen by
    leaving out a second movie. The worst case for a class is that its two largest movies are taken. And two
    movies must have clips of both classes, for the permutation test.
    """
    codes = target.of(data.labels)  # 1 with the concept, 0 without, -1 for clips that are not used
    names, movie_of_clip = np.unique(data.movies, return_inverse=True)
    negatives_of_movies = np.bincount(movie_of_clip[codes == 0], minlength=names.size)
    positives_of_movies = np.bincount(movie_of_clip[codes == 1], minlength=names.size)
    counts = np.stack([negatives_of_movies, positives_of_movies])  # clips of each class, [2, movies]

    clips_in_two_largest = np.sort(counts, axis=1)[:, -2:].sum(axis=1)
    n_remaining = counts.sum(axis=1) - clips_in_two_largest
    has_enough_movies = bool((n_remaining > 0).all())

    n_movies_of_both = int((counts > 0).all(axis=0).sum())
    return has_enough_movies and n_movies_of_both >= 2
