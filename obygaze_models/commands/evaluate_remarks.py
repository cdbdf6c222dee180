"""Write the remarks that readers of an evaluation's tables need; every function returns lines."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from obygaze_features.text import counted, visible
from obygaze_models.persistence.evidence import evidence_line

if TYPE_CHECKING:
    from obygaze_features.same_pictures import Shared
    from obygaze_features.store import Store
    from obygaze_models.dataset.dataset import Modality
    from obygaze_models.persistence.card import Card

NO_SIGNATURES_REMARK = (
    "no store here has a signature: models know films again by equal features, and no copies that were "
    "encoded again (for the next store: --backbone signature beside the others of 'obygaze extract')"
)

Differing = Sequence[tuple[str, Any, Any]]
"""For each clip that differs between store and manifest: its id, its value in the store, in the manifest."""


class FilmProblems(NamedTuple):
    """Signs that films have wrong names or times, or are in the data twice.

    Attributes
    ----------
    similar_films
        Pairs of films whose pictures are similar, each with the store that has them.
    equal_films
        Pairs of films with equal features, each with the share of clips in which they are equal.
    other_films, other_times
        Clips whose film or times differ between store and manifest.
    """

    similar_films: Sequence[tuple["Shared", "Store"]]
    equal_films: Sequence[tuple[str, str, float]]
    other_films: Differing
    other_times: Differing


def remarks(
    *,
    policy_notes: Sequence[str],
    modalities: Iterable["Modality"],
    without_frames: Collection[str],
    noise: Mapping[str, Mapping[str, float]],
    other_notes: Sequence[str],
    excluded: Iterable[tuple[str, int]],
    film_problems: FilmProblems,
    models: Iterable[tuple[str, Path, "Card"]],
    n_movies: int,
    loadable: Collection[str],
    has_signatures: bool,
    out: Path | None,
) -> list[str]:
    """Write the remarks on an evaluation, one per line: on labels, features, films, models, and the folder.

    Parameters
    ----------
    policy_notes
        Notes on the label policy.
    modalities
        The modalities of the dataset.
    without_frames
        Names of the modalities that have no frames, if a model reads frames.
    noise
        Annotator -> name of a rate -> estimated rate of correct labels; empty if it was not estimated.
    other_notes
        Notes on names of films and annotators, variables and answers.
    excluded
        Pairs of a reason and the number of clips that are excluded for it.
    film_problems
        What may be wrong with films.
    models
        Name, file and card of each saved model.
    n_movies
        Number of films in the dataset.
    loadable
        Names of the models that can be loaded from a file without the user's own code.
    has_signatures
        Whether a store has picture signatures.
    out
        Folder of the run; None if it is not saved.
    """
    models = list(models)
    lines = [*policy_notes, *_modality_remarks(modalities, without_frames)]
    lines += [_noise_remark(annotator, rates) for annotator, rates in noise.items()]
    lines += other_notes
    lines += [f"{count} excluded: {reason}" for reason, count in excluded]
    lines += _film_warnings(film_problems)
    lines += [f"{name} of all {counted(n_movies, 'movie')} kept in {file}" for name, file, _card in models]
    for name, _file, card in models:
        lines += _model_remarks(name, card, loadable)
    if models and not has_signatures:
        lines.append(NO_SIGNATURES_REMARK)
    if out:
        lines.append(f"run kept in {out}; all tables: report.md")
    else:
        lines.append("run not kept: give --out FOLDER")
    # Names in remarks are from files: characters that would act on a terminal are shown as escapes.
    return [visible(line, lines=False) for line in lines if line]


def _modality_remarks(modalities: Iterable["Modality"], without_frames: Collection[str]) -> list[str]:
    """Write for each modality how many clips lack it, and whether its one vector is used as a frame.

    `without_frames` are the names of the modalities that have no frames, if a model reads frames.
    """
    lines = []
    for modality in modalities:
        if modality.missing:
            lines.append(f"{modality.name}: {counted(modality.missing, 'clip lacks', 'clips lack')} it")
        if modality.name in without_frames:
            lines.append(f"{modality.name} keeps no frames: its vector stands for one")
    return lines


def _noise_remark(annotator: str, rates: Mapping[str, float]) -> str:
    """Write how often an annotator labels positive and negative clips correctly, by the estimated rates.

    `rates` maps names of rates to shares of clips: "positive" and "negative" as estimated from labels and
    features together, and both with the prefix "dawid_skene_" as estimated from the labels alone, by the
    method of Dawid and Skene.
    """
    return (
        f"{annotator} calls {rates['positive']:.2f} of positive and {rates['negative']:.2f} of negative "
        f"clips right, as estimated with the features (without: {rates['dawid_skene_positive']:.2f} and "
        f"{rates['dawid_skene_negative']:.2f})"
    )


def _film_warnings(problems: FilmProblems) -> list[str]:
    """Warn of films that may have wrong names or times, or be in the data twice."""
    lines = [_similar_films_warning(shared, store) for shared, store in problems.similar_films]
    lines += [_equal_films_warning(movie, other, share) for movie, other, share in problems.equal_films]
    lines += _differing_films_warning(problems.other_films)
    lines += _differing_times_warning(problems.other_times)
    return lines


def _similar_films_warning(shared: "Shared", store: "Store") -> str:
    """Warn of two films whose pictures look alike."""
    return (
        f"warning: {shared.movie_a} and {shared.movie_b} look alike in "
        f"{counted(shared.clips, 'clip')} in a row: if "
        f"they share pictures, leave one out (obygaze store duplicates {store.where})"
    )


def _equal_films_warning(movie: str, other: str, share: float) -> str:
    """Warn of two films that have equal features in a share of their clips."""
    return (
        f"warning: {movie} and {other} have equal features in {share:.0%} of their clips: one film under two "
        "names is trained on and tested; leave one out"
    )


def _differing_films_warning(differing: Differing) -> list[str]:
    """Warn of clips that store and manifest assign to different films."""
    if not differing:
        return []
    clip_id, film_in_store, film_in_manifest = differing[0]  # for example
    warning = (
        f"warning: {counted(len(differing), 'clip is', 'clips are')} of other films in the "
        "manifest than in the store "
        f"({clip_id}: {film_in_manifest}, there {film_in_store}): "
        "one film under two names is trained on and tested"
    )
    return [warning]


def _differing_times_warning(differing: Differing) -> list[str]:
    """Warn of clips that have different times in store and manifest."""
    if not differing:
        return []
    clip_id, span_in_store, span_in_manifest = differing[0]  # for example
    in_manifest = _format_span(span_in_manifest)
    in_store = _format_span(span_in_store)
    warning = (
        f"warning: {counted(len(differing), 'clip has', 'clips have')} other times in the manifest than in "
        f"the store ({clip_id}: {in_manifest} s, there {in_store} s): unless their "
        "videos were cut out of the film, their features are of something else"
    )
    return [warning]


def _format_span(times: Sequence[float | None]) -> str:
    """Format a span of seconds, as "12.0 to 14.5"."""
    return " to ".join(map(str, times))


def _model_remarks(name: str, card: "Card", loadable: Collection[str]) -> list[str]:
    """Write how well a saved model did on films left out, or that it has no calibration.

    If the model is not among the `loadable` ones, add how it can be loaded. The model "bank" holds directions
    of concepts and does not decide, so that nothing is said of its decisions.
    """
    lines = []
    decides = name != "bank"
    if decides and not card.calibration:
        lines.append(f"{name} has no calibration, as it keeps no out-of-fold scores: it gives logits alone")
    if decides and card.calibration:
        lines.append(f"{name}: {evidence_line(card.evidence, card.levels_left_out or ())}")
    # The estimator of another package is stored as its arrays, and read by that package.
    is_of_other_package = card.kind == "arrays"
    if is_of_other_package and name not in loadable:
        lines.append(
            f"{name} is read back in Python alone (load_model(FILE, offered=...)), until an installed "
            "package offers it: docs/models.md"
        )
    return lines
