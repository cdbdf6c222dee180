"""Write the remarks that readers of a model's predictions need; every function returns lines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from obygaze_features.manifest import counted
from obygaze_features.text import percentage, visible
from obygaze_models.prediction.out_of_distribution import OUT_OF_DISTRIBUTION
from obygaze_models.prediction.predict import PARTIAL, TRAINED_ON, labels_line
from obygaze_models.prediction.reading import WITHOUT

if TYPE_CHECKING:
    from obygaze_features.manifest import Manifest
    from obygaze_features.store import Store
    from obygaze_models.prediction.predict import Predicted
    from obygaze_models.prediction.saved_model import Model


def remarks(predicted: "Predicted", model: "Model", stores: Sequence["Store"] = ()) -> list[str]:
    """Write all remarks on a model's predictions, one sentence per line.

    Parameters
    ----------
    predicted, model
        The predictions, and the model that made them.
    stores
        The stores of the clips, which hold how much of each clip's video could be read.
    """
    lines = [
        predicted.evidence,  # one line, on how well the model did on films left out
        _calls_remark(predicted, model),
        *_artificial_labels_remark(model),
        *_known_clips_remark(predicted),
        *_recognised_films_remarks(predicted),
        *_modality_remarks(predicted, model),
        *_partial_clips_remark(predicted, stores),
        *_unlike_clip_remarks(predicted),
        *_calibration_remark(model),
        *_excluded_remarks(predicted.excluded),
    ]
    # Names are from files: characters that would act on a terminal are shown as escapes.
    return [visible(line, line_breaks=False) for line in lines]


def manifest_remarks(predicted: "Predicted", stores: Sequence["Store"], manifest: "Manifest") -> list[str]:
    """Write how many predicted clips have no video in a manifest, and warn if it seems to be another store's.

    Videos are looked up in the manifest by the clips' ids. A manifest of other clips may have none of these
    ids, or the same ids for clips of other films or times.
    """
    from obygaze_models.commands.evaluate_commands import differing_clips

    clip_ids = set(predicted.table["clip_id"])
    n_without_video = int((predicted.table["video"] == "").sum())
    differing = differing_clips(stores, manifest, clip_ids)
    lines = []
    if n_without_video:
        clips = counted(n_without_video, "clip has", "clips have")
        lines.append(f"{clips} no video in the manifest, of {len(clip_ids)} predicted")
    for what, differences in (("another film", differing.films), ("other times", differing.times)):
        if differences:
            example = differences[0].clip_id
            clips = counted(len(differences), "clip has", "clips have")
            lines.append(
                f"warning: {clips} {what} in the manifest than in the store, such as {example}: is it "
                "the manifest of this store? The column video may name other films"
            )
    return [visible(line, line_breaks=False) for line in lines]


def written_remark(predicted: "Predicted", model: "Model", path: str) -> str:
    """Write how many clips a file has and, if the model decides, how many of them have a probability."""
    n_clips = len(predicted.table)
    written = f"{counted(n_clips, 'clip')} in {path}"
    if not model.decides:
        return written
    n_with_probability = int(predicted.table["p"].notna().sum())
    how_many = str(n_with_probability)
    if n_with_probability == 0:
        how_many = "none"
    elif n_with_probability == n_clips:
        how_many = "each"
    return f"{written}, {how_many} with a probability"


def _calls_remark(predicted: "Predicted", model: "Model") -> str:
    """Write what the model was trained for and, if it decides, how many clips it classifies as positive.

    For example: "PCBM-LR trained for hn_s (codebook obygaze12) on 95 clips of 4 films: 12 of 30 clips called
    positive, 2 not judged". Those not judged are out of distribution.
    """
    card = model.card
    n_clips = len(predicted.table)
    trained = (
        f"{card.title} trained for {card.target['name']} (codebook {card.codebook['name']}) on "
        f"{counted(card.n_clips, 'clip')} of {counted(len(card.movies), 'film')}"
    )
    if not model.decides:
        return f"{trained}: {counted(n_clips, 'clip')}"
    n_called_positive = int(predicted.table["called"].sum())
    n_not_judged = int(predicted.has(OUT_OF_DISTRIBUTION).sum())
    judged_clips = counted(n_clips - n_not_judged, "clip")
    calls = f"{n_called_positive} of {judged_clips} called positive"
    if n_not_judged:
        calls += f", {n_not_judged} not judged"
    return f"{trained}: {calls}"


def _artificial_labels_remark(model: "Model") -> list[str]:
    """Write that the model was trained on labels made by a program, if it was."""
    line = labels_line(model.card)
    return [line] if line else []


def _known_clips_remark(predicted: "Predicted") -> list[str]:
    """Write how many clips are of films that the model was trained on, if there are any."""
    n_clips = int(predicted.has(TRAINED_ON).sum())
    if not n_clips:
        return []
    clips = counted(n_clips, "clip is of a film", "clips are of films")
    consequence = "its score is no prediction" if n_clips == 1 else "their scores are no predictions"
    return [f"{clips} that the model was trained on: {consequence}"]


def _recognised_films_remarks(predicted: "Predicted") -> list[str]:
    """Write which films and clips were recognised as training data although they have other names.

    For example: "alias is tt0097576 by its features: 97 % of their clips are the same"; "2 clips of other
    films have features that the model was trained on". If pictures of some film could not be
    compared, the reason follows.
    """
    recognition = predicted.recognition
    lines = []
    for film in recognition.films.values():
        if film.movie == film.trained_as:
            continue
        line = f"{film.movie} is {film.trained_as} by its {film.by}"
        if film.by != "name":
            line += f": {percentage(film.share)}% of their clips are the same"
        lines.append(line)
    # `recognition.clips` are of films that were not recognised as a whole.
    n_single_clips = int(predicted.table["clip_id"].isin(list(recognition.clips)).sum())
    if n_single_clips:
        clips = counted(n_single_clips, "clip of another film has", "clips of other films have")
        lines.append(f"{clips} features that the model was trained on")
    if recognition.why_no_pictures:
        lines.append(
            "copies that were encoded again, or cut into other clips, are not known: "
            f"{recognition.why_no_pictures}"
        )
    return lines


def _modality_remarks(predicted: "Predicted", model: "Model") -> list[str]:
    """Write for each modality how many clips lack it; nothing for a model of one modality."""
    lines = []
    for modality in model.card.modalities:
        name = modality["name"]
        flag = f"{WITHOUT}{name}"  # such as without_sound
        n_clips = int(predicted.has(flag).sum())
        if n_clips:
            clips = counted(n_clips, "clip has", "clips have")
            lines.append(f"{clips} no {name}: such clips are judged by what they have")
    return lines


def _partial_clips_remark(predicted: "Predicted", stores: Sequence["Store"]) -> list[str]:
    """Write how many clips could be read only in part, and of how many of them less than half was read.

    Nothing is written if all clips were read whole. The stores hold how much of each clip was read.
    """
    is_partial = predicted.has(PARTIAL)
    n_clips = int(is_partial.sum())
    if not n_clips:
        return []
    partial = counted(n_clips, "clip is partial", "clips are partial")
    line = f"{partial}: a part of the video could not be read"
    clip_ids = set(predicted.table["clip_id"][is_partial])
    # A clip of several stores may be cut short in each of them, and counts once.
    hardly_read = set[str]().union(*(_less_than_half_read(store) for store in stores)) & clip_ids
    if hardly_read:
        clips = counted(len(hardly_read), "clip")
        # When a whole film is scored, such windows are left out of all results.
        line += f"; less than half of {clips} was read: such a window counts nowhere in a scored film"
    return [line]


def _less_than_half_read(store: "Store") -> set[str]:
    """Return the ids of a store's clips that have no pictures for more than half of their length."""
    clips = store.table
    clip_ids = set()
    # Row of a clip -> the stretches of it without pictures, each with start and end in seconds.
    for row, stretches in clips.without_pictures_s.items():
        missing_s = sum(end_s - start_s for start_s, end_s in stretches)
        length_s = float(clips.end_s[row] - clips.start_s[row])
        if missing_s > length_s / 2:
            clip_ids.add(clips.clip_ids[row])
    return clip_ids


def _unlike_clip_remarks(predicted: "Predicted") -> list[str]:
    """Write for each film how many clips have no probability, as they are out of distribution."""
    movies = predicted.table["movie"]
    n_clips_of_movie = Counter(movies)
    n_far_of_movie = Counter(movies[predicted.has(OUT_OF_DISTRIBUTION)])
    lines = []
    for movie, n_far in n_far_of_movie.items():
        clips = counted(n_clips_of_movie[movie], "clip")
        lines.append(
            f"{movie}: no probability for {n_far} of {clips}, farther from the training clips than 99 % of "
            "these are from those of other films"
        )
    return lines


def _calibration_remark(model: "Model") -> list[str]:
    """Write why a model gives no probabilities, if it gives none.

    Columns of the table that are empty for that reason are named: p, and for a joint model also unlike.
    """
    # A model keeps how far its training clips reach, by which it finds clips that are unlike them
    # (`out_of_distribution`). Only a joint model does not: it is fitted to sums, which hold no single clips.
    is_joint = model.out_of_distribution is None
    if is_joint:
        line = (
            "a model joined from sums over films: it has no calibration, so p is empty, and does not say how "
            "far its training clips reach, so unlike is empty"
        )
        return [line]
    # Probabilities are calibrated on scores of clips that the model was not trained on (out-of-fold scores).
    lacks_calibration = model.decides and model.calibration is None
    if lacks_calibration:
        return ["the model has no calibration, as it keeps no out-of-fold scores: p is empty"]
    return []


def _excluded_remarks(excluded: Mapping[str, list[str]]) -> list[str]:
    """Write for each reason how many clips were excluded, such as "excluded 2: failed (film0-c003, ...)".

    `excluded` maps a reason to the ids of the clips that have no features for it.
    """
    lines = []
    for reason, clip_ids in sorted(excluded.items()):
        more = ", ..." if len(clip_ids) > 1 else ""
        lines.append(f"excluded {len(clip_ids)}: {reason} ({clip_ids[0]}{more})")
    return lines
