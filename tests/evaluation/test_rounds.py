"""A round that is under way: what is done, and an annotator whose calls change is told from films that do."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import linregress, t

from obygaze_features.manifest import (
    Clip,
    EafTier,
    Manifest,
    assign,
    builtin_codebook,
    eaf_document,
    import_spans,
    read_manifest,
    write_documents,
    write_manifest,
)
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.rounds import drifts, round_progress
from tests.command import obygaze


def planned(folder, films=10, per_film=60, names=("AB", "CD", "EF"), each=3, calibration=0):
    """Assign films to annotators: a row for each clip and annotator."""
    clips = []
    for film in range(films):
        for number in range(per_film):
            start_s = 5.0 * number
            clips.append(Clip(f"f{film:02}-{number:02}", f"f{film:02}", "", start_s, start_s + 5))
    return assign(Manifest(tuple(clips), folder), names, each, calibration=calibration)


def called(plan, share, seed=0):
    """Call clips S at a share that depends on annotator, film and order; a clip is as easy for all."""
    rng = np.random.default_rng(seed)
    easiness = {clip.clip_id: rng.random() for clip in plan}
    labelled = []
    for clip in plan:
        level = "S" if easiness[clip.clip_id] < share(clip) else "EN"
        labelled.append(replace(clip, level=level, extras={}))
    return plan.with_clips(labelled)


def with_order(clip, number):
    """Give the film of a clip another number in its annotator's order."""
    return replace(clip, extras={**clip.extras, "order": number})


def test_of_a_film_judged_in_part_the_clips_are_counted(tmp_path):
    plan = planned(tmp_path, films=4)
    one_film_and_a_half = [clip for clip in called(plan, lambda _: 0.5) if clip.annotator == "AB"][:90]
    progress = round_progress(plan, plan.with_clips(one_film_and_a_half))
    assert len(progress["AB"].done) == 2
    assert progress["AB"].clips_done == 90
    assert progress["CD"].clips_done == 0


def test_a_film_with_two_numbers_is_refused(tmp_path):
    plan = planned(tmp_path, films=4)
    renumbered = []
    for clip in plan:
        is_first = clip.annotator == "AB" and clip.clip_id == "f00-00"
        renumbered.append(with_order(clip, "9") if is_first else clip)
    with pytest.raises(ProtocolError, match="'f00' of 'AB' has two numbers"):
        round_progress(plan.with_clips(renumbered), plan)


def test_a_number_of_two_films_is_refused(tmp_path):
    plan = planned(tmp_path, films=4)
    renumbered = []
    for clip in plan:
        is_of_first_film = clip.annotator == "AB" and clip.extras["order"] == "1"
        renumbered.append(with_order(clip, "2") if is_of_first_film else clip)
    with pytest.raises(ProtocolError, match="is of two films"):
        round_progress(plan.with_clips(renumbered), plan)


def test_numbers_count_as_data_frames_write_them(tmp_path):
    plan = planned(tmp_path, films=4)
    with_point = plan.with_clips(with_order(clip, f"{clip.extras['order']}.0") for clip in plan)
    as_written = round_progress(with_point, plan)
    as_planned = round_progress(plan, plan)
    assert {name: progress.films for name, progress in as_written.items()} == {
        name: progress.films for name, progress in as_planned.items()
    }


@pytest.mark.parametrize(
    ("column", "spelling", "other_spelling"), [("annotator", "AB", "ab"), ("movie", "f00", "F00")]
)
def test_an_annotator_or_film_in_two_spellings_is_refused(tmp_path, capsys, column, spelling, other_spelling):
    plan = planned(tmp_path, films=2, per_film=2)
    write_manifest(plan, tmp_path / "round.csv")
    spelled_once = [clip for clip in plan if getattr(clip, column) == spelling]
    annotated = [replace(clip, level="S", **{column: other_spelling}) for clip in spelled_once]
    write_manifest(plan.with_clips(annotated), tmp_path / "done.csv")
    assert obygaze("manifest", "progress", tmp_path / "round.csv", tmp_path / "done.csv") == 1
    assert "are one name: spell both alike" in capsys.readouterr().err


def test_the_slope_is_that_of_least_squares_and_t_where_films_differ():
    rng = np.random.default_rng(0)
    films = [rng.normal(0.1 * number + 3 * rng.normal(), 1, 40) for number in range(8)]
    (drift,) = drifts([(films, range(8))])
    line = linregress(range(8), [calls.mean() for calls in films])
    half_width = t.ppf(0.975, 8 - 2) * line.stderr
    assert drift.value == pytest.approx(7 * line.slope)
    assert drift.high - drift.value == pytest.approx(7 * half_width)


def test_fewer_than_four_films_have_no_drift():
    rng = np.random.default_rng(0)
    films = [rng.normal(size=40) for _ in range(3)]
    three_films, no_film = drifts([(films, range(3)), ([], [])])
    assert (three_films.films, no_film.films) == (3, 0)
    assert np.isnan([three_films.value, no_film.high]).all()


def test_calls_that_are_all_alike_show_no_drift():
    (drift,) = drifts([([np.zeros(9)] * 5, range(5))])
    assert not drift.is_found


def test_an_annotator_who_drifts_is_found_and_others_are_not_whatever_the_films_show(tmp_path):
    plan = planned(tmp_path)

    def of_film(clip):
        return 0.2 + 0.3 * int(clip.movie[1:]) / 9

    def drifting(clip):
        order = int(clip.extras["order"]) - 1
        return of_film(clip) + (0.3 * order / 9 if clip.annotator == "AB" else 0)

    with_drift = round_progress(plan, called(plan, drifting), "en_s")
    assert with_drift["AB"].against.is_found
    assert with_drift["AB"].against.value == pytest.approx(0.3, abs=0.06)
    without_drift = round_progress(plan, called(plan, of_film), "en_s")
    assert not any(progress.against.is_found for progress in without_drift.values())


@pytest.fixture
def elan_round(tmp_path, monkeypatch):
    """A round that is assigned by the command and annotated in ELAN.

    AB has annotated all films, CD all but the last, EF none. The working folder has clips.csv, round.csv, and
    done.csv of the imported files.
    """
    monkeypatch.chdir(tmp_path)
    clips = planned(tmp_path, films=6, per_film=20, each=2, calibration=1)
    one_row_a_clip = {clip.clip_id: replace(clip, annotator="", extras={}) for clip in clips}
    write_manifest(clips.with_clips(one_row_a_clip.values()), "clips.csv")
    annotators = ["--annotator", "AB", "--annotator", "CD", "--annotator", "EF"]
    options = ["--each", 2, "--calibration", 1, "--out", "round.csv"]
    assert obygaze("manifest", "assign", "clips.csv", *annotators, *options) == 0
    plan = read_manifest("round.csv")
    documents = {}
    for annotator in ("AB", "CD"):
        films = sorted({clip.movie for clip in plan if clip.annotator == annotator})
        annotated = films[:-1] if annotator == "CD" else films
        for film in annotated:
            documents[f"{film}-{annotator}"] = elan_document(film, annotator)
    paths = write_documents(documents, tmp_path / "done", force=False)
    annotated = import_spans(paths, tmp_path).manifest
    write_manifest(annotated, "done.csv")
    return plan, annotated


def elan_document(film, annotator):
    """Write what somebody marked in a film as an ELAN file."""
    codebook = builtin_codebook("obygaze12")
    spans = [(0.0, 12.0, "S"), (12.0, 40.0, "HN"), (50.0, 62.0, "S")]
    tier = EafTier(f"human: level@{annotator}", "level", spans, annotator=annotator)
    vocabulary = {"levels": ("levels", codebook.level_names)}
    return eaf_document([tier], {"codebook": codebook.name, "movie": film}, vocabulary)


def test_progress_of_a_round_in_elan_says_what_is_to_do(elan_round, capsys):
    plan, annotated = elan_round
    progress = round_progress(plan, annotated)
    assert progress["AB"].to_do == []
    assert progress["AB"].clips_done == progress["AB"].clips
    assert len(progress["CD"].to_do) == 1
    assert progress["EF"].done == []
    capsys.readouterr()
    assert obygaze("manifest", "progress", "round.csv", "done.csv") == 0
    assert f"CD: to do {progress['CD'].to_do[0]}" in capsys.readouterr().out


@pytest.mark.usefixtures("elan_round")
def test_a_template_of_a_round_can_be_written_for_an_annotator():
    assert obygaze("codebook", "template", "round.csv", "f00.mp4", "--annotator", "AB", "--out", "blank") == 0


def test_clips_of_other_annotators_and_films_are_counted_as_left_out(elan_round, capsys):
    _, annotated = elan_round
    first = annotated.clips[0]
    of_guest = replace(first, annotator="GH")
    of_other_film = replace(first, clip_id="x", movie="f9")
    write_manifest(annotated.with_clips([*annotated, of_guest, of_other_film]), "more.csv")
    capsys.readouterr()
    assert obygaze("manifest", "progress", "round.csv", "more.csv") == 0
    message = capsys.readouterr().err
    assert "GH (1)" in message
    assert "f9 (1)" in message


def test_a_manifest_without_numbers_of_films_is_no_round(elan_round):
    _, annotated = elan_round
    with pytest.raises(ProtocolError, match="order"):
        round_progress(annotated, annotated)
