"""Learning where judged films have one kind of answer only, or are of the corpus by another spelling."""

from dataclasses import replace

import pytest
from msgspec import structs

from obygaze_features.manifest import write_manifest
from obygaze_film import learn_from_judgements
from obygaze_film.errors import FilmError
from obygaze_film.learning import ONE_CLASS_JUDGED
from tests.command import obygaze
from tests.film.films import film_store, scored_film
from tests.film.test_learn import judged_by, plant_scored_film, write_judgements


def learn(folder, trained_models, capsys, answers):
    """Judge 40 windows of each film blindly, learn from that, and return the command's report.

    `answers` maps a film to the answer that all its windows get, or to None for right answers.
    """
    scored = []
    for seed, (movie, answer) in enumerate(answers.items()):
        is_violent = plant_scored_film(folder, trained_models, movie, seed)
        if answer is not None:
            is_violent[:] = answer
        scored.append(folder / movie / "scored")
        write_judgements(scored[-1] / "judgements.csv", is_violent, range(1, 41), movie=movie)
    write_manifest(trained_models.manifest, folder / "films.csv")
    corpus = ["--manifest", folder / "films.csv", "--store", trained_models.store.where]
    capsys.readouterr()  # what was printed before is of no interest
    assert obygaze("film", "learn", *scored, *corpus, "--out", folder / "learnt") == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.long
def test_why_nothing_is_told_of_judged_films_without_a_positive_window(tmp_path, trained_models, capsys):
    """AB found nothing in two films: there is no AUC in either, and the report says so in a sentence."""
    report = learn(tmp_path, trained_models, capsys, {"n0": False, "n1": False})

    assert ONE_CLASS_JUDGED in report
    assert "Films judged" not in report


@pytest.mark.long
def test_the_report_on_learning_has_the_change_of_auc_in_the_one_judged_film_with_both_answers(
    tmp_path, trained_models, capsys
):
    """AB's answers are right in n0, violent and calm, and calm in all windows of n1.

    An AUC needs both answers. n0 has them: the report lists the change in the films judged, and does not say
    that all of them have one answer.
    """
    report = learn(tmp_path, trained_models, capsys, {"n0": None, "n1": False})

    assert ONE_CLASS_JUDGED not in report
    assert "Films judged" in report


def test_a_film_of_the_corpus_in_another_spelling_is_refused(tmp_path, trained_models):
    """A film of the corpus, f0, was scored and judged under the name F0.

    If it were taken for another film, a model that is tested on f0 would be trained on clips of the same
    film.
    """
    _, timeline = scored_film(tmp_path, trained_models, models=("linear",))
    of_corpus = replace(timeline, record=structs.replace(timeline.record, movie="F0"))
    judgements = judged_by(trained_models, (8, 16), movie="F0")
    store = film_store(tmp_path / "again", "tt0000001")

    with pytest.raises(FilmError, match="F0 is in the corpus"):
        learn_from_judgements([of_corpus], judgements, [store], trained_models.manifest, trained_models.store)
