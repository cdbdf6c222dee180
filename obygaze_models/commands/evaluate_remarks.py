"""Write the remarks that readers of an evaluation's tables need; every function returns lines."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from obygaze_features.text import counted, percentage, visible
from obygaze_models.persistence.evidence import evidence_line

if TYPE_CHECKING:
    from obygaze_features.same_pictures import Shared
    from obygaze_features.store import Store
    from obygaze_models.dataset.dataset import Dataset
    from obygaze_models.evaluation import Run
    from obygaze_models.models import ModelSpec
    from obygaze_models.persistence.card import Card

MAX_EQUAL_FILMS = 5
"""How many pairs of films that have equal clips are named; the others are counted."""

NO_SIGNATURES_REMARK = (
    "no store here has a signature: models know films again by equal features, and no copies that were "
    "encoded again (for the next store: --backbone signature beside the others of 'obygaze extract')"
)


class Difference(NamedTuple):
    """A clip whose film, or whose span (start and end in seconds), differs between store and manifest."""

    clip_id: str
    in_store: Any
    in_manifest: Any


class FilmProblems(NamedTuple):
    """Signs that films have wrong names or times, or are in the data twice.

    Attributes
    ----------
    similar_films
        Pairs of films whose pictures are similar, each with the store that has them.
    equal_films
        Pairs of films with equal features, each with the share of clips in which they are equal, the largest
        share first.
    other_films, other_times
        Clips whose film or times differ between store and manifest.
    near_films
        Other pairs of films, with features that are equal but for their last bits in more than half of the
        clips, each with that share.
    """

    similar_films: Sequence[tuple["Shared", "Store"]]
    equal_films: Sequence[tuple[str, str, float]]
    other_films: Sequence[Difference]
    other_times: Sequence[Difference]
    near_films: Sequence[tuple[str, str, float]] = ()


class SavedModel(NamedTuple):
    """A model that an evaluation saved: its name, its file, and the card in the file."""

    name: str
    file: Path
    card: "Card"


def remarks(
    run: "Run",
    data: "Dataset",
    specs: "Sequence[ModelSpec]",
    *,
    policy_notes: Sequence[str],
    other_notes: Sequence[str],
    film_problems: FilmProblems,
    saved_models: Sequence[SavedModel],
    out: Path | None,
) -> list[str]:
    """Write the remarks on an evaluation, one per line: on labels, features, films, models, and the folder.

    Parameters
    ----------
    run, data, specs
        The run, and the dataset and models that were evaluated.
    policy_notes
        Notes on the label policy.
    other_notes
        Notes on names of films and annotators, variables and answers.
    film_problems
        What may be wrong with films.
    saved_models
        The saved models.
    out
        Folder of the run; None if it is not saved.
    """
    lines = [*policy_notes, *_modality_remarks(data, specs)]
    # Annotator -> estimated rates of correct labels, with --experts noisy.
    for annotator, rates in run.record.get("noise", {}).items():
        lines.append(_noise_remark(annotator, rates))
    if run.record.get("noise_untold"):
        lines.append(
            "warning: annotators agree no more often than by chance, so that their labels do not tell who of "
            "them is right: the estimates above may follow from where they began; models trained on each "
            "annotator's labels (--experts each) show whose the features can tell"
        )
    lines += other_notes
    lines += _exclusion_remarks(run)
    lines += _seen_scores_remark(run)
    lines += _film_warnings(film_problems)
    lines += _saved_model_remarks(saved_models, data)
    if out:
        lines.append(f"run kept in {out}; all tables: report.md")
    else:
        lines.append("run not kept: give --out FOLDER")
    # Names in remarks are from files: characters that would act on a terminal are shown as escapes, also tabs
    # and line feeds.
    return [visible(line, line_breaks=False) for line in lines if line]


def _modality_remarks(data: "Dataset", specs: "Sequence[ModelSpec]") -> list[str]:
    """Write for each modality how many clips lack it, and whether its vector is used in place of frames.

    Models that read frames take the one vector of a clip for its only frame, if the store of the modality has
    no frames. A dataset of one modality gives no remark.
    """
    reads_frames = any(spec.reads == "frames" for spec in specs)
    lines = []
    for modality, part in zip(data.modalities, data.parts, strict=True):
        n_missing = modality.missing
        if n_missing:
            lines.append(f"{modality.name}: {counted(n_missing, 'clip lacks', 'clips lack')} it")
        has_frames = "frames" in part.stored
        if reads_frames and not has_frames:
            lines.append(f"{modality.name} keeps no frames: its vector stands for one")
    return lines


def _exclusion_remarks(run: "Run") -> list[str]:
    """Write for each reason how many clips with labels have no features, the most frequent reason first."""
    n_clips_of_reason = Counter(clip["reason"] for clip in run.record["excluded"])
    return [f"{n_clips} excluded: {reason}" for reason, n_clips in n_clips_of_reason.most_common()]


def _seen_scores_remark(run: "Run") -> list[str]:
    """Write how many clips are not tested because they were judged in sight of a model's score, if any."""
    from obygaze_models.report.run_notes import seen_scores_note

    return [f"{note} (--test-seen-scores tests on them too)" for note in seen_scores_note(run.record)]


def _noise_remark(annotator: str, rates: Mapping[str, float]) -> str:
    """Write how often an annotator labels positive and negative clips correctly, as estimated in two ways.

    `rates` maps names of rates to shares of clips. "positive" and "negative" are estimated from labels and
    features together; the same names with the prefix "dawid_skene_" are estimated from the labels alone, by
    the method of Dawid and Skene.
    """
    return (
        f"{annotator} calls {rates['positive']:.2f} of positive and {rates['negative']:.2f} of negative "
        f"clips right, as estimated with the features (without: {rates['dawid_skene_positive']:.2f} and "
        f"{rates['dawid_skene_negative']:.2f})"
    )


def _film_warnings(problems: FilmProblems) -> list[str]:
    """Warn of films that may have wrong names or times, or be in the data twice."""
    lines = [_similar_films_warning(shared, store) for shared, store in problems.similar_films]
    lines += _equal_films_warnings(problems.equal_films)
    lines += _near_films_warnings(problems.near_films)
    lines += _differing_films_warning(problems.other_films)
    lines += _differing_times_warning(problems.other_times)
    return lines


def _similar_films_warning(shared: "Shared", store: "Store") -> str:
    """Warn of two films whose pictures look alike in a number of consecutive clips."""
    clips = counted(shared.clips, "clip")
    return (
        f"warning: {shared.movie_a} and {shared.movie_b} look alike in {clips} in a row: if they share "
        f"pictures, leave one out (obygaze store duplicates {store.where})"
    )


def _equal_films_warnings(pairs: Sequence[tuple[str, str, float]]) -> list[str]:
    """Warn of films that have equal features in a share of their clips, the largest share first.

    `pairs` has the two films and the share. From half of the clips on (`SAME_FILM_SHARE`), the two are taken
    for one film under two names, otherwise for films that share an excerpt. At most `MAX_EQUAL_FILMS` pairs
    are named; the others are counted.
    """
    from obygaze_models.prediction.training_films import SAME_FILM_SHARE

    lines = []
    for movie, other, share in pairs[:MAX_EQUAL_FILMS]:
        equal = f"warning: {movie} and {other} have equal features in {percentage(share)}% of their clips"
        if share > SAME_FILM_SHARE:
            lines.append(f"{equal}: one film under two names is trained on and tested; leave one out")
        else:
            lines.append(
                f"{equal}, which are trained on and tested, so that results are too good: leave the recap, "
                "trailer or excerpt out of one film"
            )
    n_more = len(pairs) - MAX_EQUAL_FILMS
    if n_more > 0:
        lines.append(f"warning: {counted(n_more, 'more pair')} of films have equal clips")
    return lines


def _near_films_warnings(pairs: Sequence[tuple[str, str, float]]) -> list[str]:
    """Warn of films that are one under two names, with features that differ in their last bits.

    `pairs` has the two films and the share of clips, the largest share first. At most `MAX_EQUAL_FILMS`
    pairs are named; the others are counted.
    """
    lines = []
    for movie, other, share in pairs[:MAX_EQUAL_FILMS]:
        lines.append(
            f"warning: {movie} and {other} have nearly equal features in {percentage(share)}% of their "
            "clips, as of another codec or card: one film under two names is trained on and tested; leave "
            "one out"
        )
    n_more = len(pairs) - MAX_EQUAL_FILMS
    if n_more > 0:
        lines.append(f"warning: {counted(n_more, 'more pair')} of films have nearly equal clips")
    return lines


def _differing_films_warning(differing: Sequence[Difference]) -> list[str]:
    """Warn of clips that are of one film by the manifest, and of another by the store; nothing if none is.

    Folds go by the manifest. So if the store is right, a film may have clips under both names, some of which
    are trained on while others are tested. One clip is named as an example.
    """
    if not differing:
        return []
    example = differing[0]
    warning = (
        f"warning: {counted(len(differing), 'clip is', 'clips are')} of other films in the manifest than in "
        f"the store ({example.clip_id}: {example.in_manifest}, there {example.in_store}): one film under two "
        "names is trained on and tested"
    )
    return [warning]


def _differing_times_warning(differing: Sequence[Difference]) -> list[str]:
    """Warn of clips that have different times in store and manifest."""
    if not differing:
        return []
    example = differing[0]
    in_manifest = _format_span(example.in_manifest)
    in_store = _format_span(example.in_store)
    warning = (
        f"warning: {counted(len(differing), 'clip has', 'clips have')} other times in the manifest than in "
        f"the store ({example.clip_id}: {in_manifest} s, there {in_store} s): unless their videos were cut "
        "out of the film, their features are of something else"
    )
    return [warning]


def _format_span(times: Sequence[float | None]) -> str:
    """Format a span of seconds, its start and end, as "12.0 to 14.5"; an unknown time is "None"."""
    return " to ".join(map(str, times))


def _saved_model_remarks(models: Sequence[SavedModel], data: "Dataset") -> list[str]:
    """Write where models are saved, how well they did, and how they are loaded."""
    from obygaze_models.models.names import model_names

    if not models:
        return []
    lines = []
    for model in models:
        # Those that have clips in the task: a model is trained on no others.
        movies = counted(len(model.card.movies), "movie")
        lines.append(f"{model.name} of all {movies} kept in {model.file}")
    loadable = model_names()
    for model in models:
        lines.append(_quality_remark(model))
        lines.append(_loading_remark(model, loadable))
    # Without signatures of pictures, a model cannot recognise the films that it was trained on if they are
    # encoded anew. A dataset of several modalities has a part for each; any other is its only part.
    parts = data.parts or (data,)
    if all(part.signatures is None for part in parts):
        lines.append(NO_SIGNATURES_REMARK)
    return lines


def _quality_remark(model: SavedModel) -> str:
    """Write how well a saved model did on films left out, or that it has no calibration.

    The text is empty for the model "bank", which holds directions of concepts and does not decide.
    """
    if model.name == "bank":
        return ""
    card = model.card
    if not card.calibration:
        return f"{model.name} has no calibration, as it keeps no out-of-fold scores: it gives logits alone"
    return f"{model.name}: {evidence_line(card.evidence, card.levels_left_out or ())}"


def _loading_remark(model: SavedModel, loadable: Collection[str]) -> str:
    """Write that a saved model is loaded in Python alone, with code of the user; empty if commands load it.

    Commands load models of this package, and those of other packages whose names are in `loadable`: installed
    packages offer their estimators by these names.
    """
    from obygaze_models.persistence.model_file import offered_name

    # The file of such a model holds its arrays alone, which only the code of its package can read.
    is_of_other_package = model.card.kind == "arrays"
    if not is_of_other_package:
        return ""
    is_offered_by_a_package = offered_name(model.name, loadable) in loadable
    if is_offered_by_a_package:
        return ""
    return (
        f"{model.name} is read back in Python alone (load_model(FILE, offered=...)), until an installed "
        "package offers it: docs/models.md"
    )
