"""A round of annotation on the desk: planned, judged on the films' ledgers, imported, and followed."""

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest, assign, read_manifest, write_manifest
from obygaze_film.workspace.decisions import Decisions
from obygaze_models.evaluation.rounds import round_progress
from tests.command import obygaze
from tests.film.page.invented import fake_scored_film

PEOPLE = ("AB", "CD", "EF")


@pytest.fixture(scope="module")
def folder_of_round(tmp_path_factory):
    """The folder of the round, which is judged once: it has a folder for each film."""
    return tmp_path_factory.mktemp("round")


@pytest.fixture(scope="module")
def films(folder_of_round):
    """Six scored films of 20 windows by their ids; each has a folder to be judged in."""
    films = {}
    for number in range(6):
        name = f"tt{number + 1:07}"
        (folder_of_round / name).mkdir()
        films[name] = fake_scored_film(name, duration_s=200.0, n_rows=20, seed=number, unlike_parts=())
    return films


def windows_of(film):
    """Return the windows of a film as clips, in the order of time."""
    clips = []
    for number, row in enumerate(film.table.itertuples()):
        clip_id = f"{film.movie}-{number}"
        clips.append(Clip(clip_id, film.movie, "", float(row.start_s), float(row.end_s)))
    return clips


def judge_windows(folder, film, codebook, annotator, share, latent):
    """Judge all windows of a film at the desk: S where the latent number of a window is below a share."""
    desk = Decisions(folder, film, codebook)
    for clip in windows_of(film):
        level = "S" if latent[clip.clip_id] < share else "EN"
        desk.keep("judgement", clip.start_s, clip.end_s, annotator, level=level)


@pytest.fixture(scope="module")
def planned_round(films, folder_of_round):
    """A round in which two of three people judge each film, in an order of their own."""
    clips = [clip for film in films.values() for clip in windows_of(film)]
    return assign(Manifest(tuple(clips), folder_of_round), PEOPLE, each=2, calibration=4)


@pytest.fixture(scope="module")
def last_of_ef(planned_round):
    """The film that is the last in EF's order."""
    order = {clip.movie: int(clip.extras["order"]) for clip in planned_round if clip.annotator == "EF"}
    return max(order, key=order.get)


@pytest.fixture(scope="module")
def judged_round(films, planned_round, last_of_ef, folder_of_round):
    """The table of the round as it was judged; EF has not judged the last film.

    CD and EF call three windows in ten S. AB does so in the first film, and calls more in each later one.
    Each window has a random number, and a judge calls those with the lowest numbers S, so that judges of one
    share agree.
    """
    rng = np.random.default_rng(0)
    number_of_window = {clip.clip_id: rng.random() for film in films.values() for clip in windows_of(film)}
    # Which film of a judge's list comes first, second, ...
    place_in_list = {(clip.movie, clip.annotator): int(clip.extras["order"]) for clip in planned_round}
    del place_in_list[last_of_ef, "EF"]
    for (movie, annotator), place in place_in_list.items():
        share = 0.3
        if annotator == "AB":
            share = 0.3 + 0.15 * (place - 1)
        folder = folder_of_round / movie
        judge_windows(folder, films[movie], planned_round.codebook, annotator, share, number_of_window)
    tables = sorted(path.as_posix() for path in folder_of_round.glob("*/judgements.csv"))
    done = folder_of_round / "done.csv"
    assert obygaze("manifest", "import", "spans", *tables, "--out", done.as_posix()) == 0
    return done


@pytest.mark.long
def test_progress_of_a_round_names_the_films_still_to_be_judged(
    planned_round, judged_round, last_of_ef, tmp_path, capsys
):
    """Two of three people judge each of six films, and EF has judged all of their list but the last one.

    The command names this one as to do. Nothing of the table of judgements is left out.
    """
    plan = tmp_path / "round.csv"
    write_manifest(planned_round, plan)
    capsys.readouterr()

    exit_code = obygaze("manifest", "progress", plan.as_posix(), judged_round.as_posix(), "--task", "en_s")

    printed = capsys.readouterr()
    assert exit_code == 0
    assert f"EF: to do {last_of_ef}" in printed.out
    assert "left out" not in printed.err


@pytest.mark.long
def test_progress_of_a_round_counts_the_windows_judged(planned_round, judged_round):
    """Two of three people judge each of six films of 20 windows.

    AB has judged all of their windows, and EF all but the 20 of the last film.
    """
    progress = round_progress(planned_round, read_manifest(judged_round), "en_s")
    assert progress["AB"].clips_done == progress["AB"].clips
    assert progress["EF"].clips_done == progress["EF"].clips - 20


@pytest.mark.long
def test_progress_of_a_round_finds_the_judge_who_drifts(planned_round, judged_round):
    """AB calls more windows S in each later film, CD and EF the same share in all: only AB drifts.

    `against` is a judge's drift: how the differences from the others' calls change from film to film.
    """
    progress = round_progress(planned_round, read_manifest(judged_round), "en_s")

    drift_of_ab = progress["AB"].against
    assert drift_of_ab.is_found
    assert drift_of_ab.value > progress["CD"].against.value
    assert drift_of_ab.value > progress["EF"].against.value
