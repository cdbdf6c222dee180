"""A machine's answers as a zero-shot model: they are of one machine, and of the clips that are evaluated."""

import json

import pytest

from obygaze_models.dataset.variables_and_answers import with_answers
from obygaze_models.errors import DatasetError
from obygaze_models.protocol import find_target
from tests.evaluation.test_experts import plant_corpus


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """240 clips of several films."""
    return plant_corpus(tmp_path_factory.mktemp("whose-answers")).dataset()


def write_lines(folder, data, **more):
    """Write a line for each clip, in which a machine says that S is likely; return the file's path."""
    lines = []
    for clip_id, movie in zip(data.clip_ids.tolist(), data.movies.tolist(), strict=True):
        line = {"clip_id": clip_id, "movie": movie, "answers": {"level:EN": 0.2, "level:S": 0.8}}
        lines.append(json.dumps(line | more))
    path = folder / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_answers_of_two_machines_are_not_mixed(data, tmp_path):
    """A file in which two machines answered the same clips: the last of them would have been scored."""
    of_first = write_lines(tmp_path, data, model="qwen-vl").read_text("utf-8")
    path = write_lines(tmp_path, data, model="gemma")
    path.write_text(of_first + path.read_text("utf-8"), "utf-8")

    with pytest.raises(DatasetError, match=r"several machines: gemma \(240 clips\), qwen-vl \(240 clips\)"):
        with_answers(data, path, find_target("en_s", data.codebook))


def test_answers_on_clips_of_another_corpus_are_refused(data, tmp_path):
    """Ids of clips are those of the corpus, such as c0001, and its films are others."""
    path = write_lines(tmp_path, data, movie="another film")

    with pytest.raises(
        DatasetError, match=r"line 1: clip '.*' is of 'another film', and of '.*' in the manif"
    ):
        with_answers(data, path, find_target("en_s", data.codebook))


def test_another_spelling_of_a_film_is_no_other_film(data, tmp_path):
    """A machine says of each of 240 clips that S is likely: .8. Its file has the films' names in capitals.

    The films are the same, so each clip gets the machine's probability of S as its answer.
    """
    path = write_lines(tmp_path, data)
    content = path.read_text("utf-8")
    for movie in set(data.movies.tolist()):
        content = content.replace(f'"movie": "{movie}"', f'"movie": "{movie.upper()}"')
    path.write_text(content, "utf-8")

    level_s_against_en = find_target("en_s", data.codebook)
    answered, _notes = with_answers(data, path, level_s_against_en)

    assert answered.answers.tolist() == [[pytest.approx(0.8)]] * 240
