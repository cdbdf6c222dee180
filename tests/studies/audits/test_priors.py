"""Priors of a table of captions: which texts, in which batches, and how a stopped run is taken up."""

import pytest

from obygaze_features.errors import ExtractError
from obygaze_studies.gender_score.belief_revision import read_priors
from obygaze_studies.gender_score.priors import measure_priors, texts_to_score, write_priors
from tests.files import written
from tests.later import later
from tests.tiny_checkpoints import tiny_language_model

Compute = later("obygaze_features.backbones.compute", "Compute")
language_model = later("obygaze_studies.gender_score.language_model", "language_model")

CAPTIONS = """caption_id,image_id,caption
c1,i1,a man riding a motorcycle
c2,i1,"a <MASK>, riding"
c3,i2,a [MASK] on a road
c4,i2,a man riding a motorcycle
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return language_model(str(tiny_language_model(tmp_path_factory.mktemp("gpt2"))), compute=Compute("cpu"))


@pytest.fixture
def table(tmp_path):
    return lambda text=CAPTIONS: written(tmp_path / "captions.csv", text)


class Counted:
    """The model, counting the texts that it scores and perhaps stopping before one."""

    def __init__(self, model, stop_at=None):
        self.model = model
        self.stop_at = stop_at
        self.n = 0

    def __getattr__(self, name):
        return getattr(self.model, name)

    def score(self, texts):
        if self.n == self.stop_at:
            raise KeyboardInterrupt
        self.n += 1
        return self.model.score(texts)


def test_every_text_is_listed_once_and_masks_become_both_genders(table):
    where, record = texts_to_score(table())
    assert list(where) == [
        "a man riding a motorcycle",
        "a man, riding",
        "a woman, riding",
        "a man on a road",
        "a woman on a road",
    ]
    assert (record["rows"], record["masked"]) == (4, 2)


def test_a_stopped_run_is_taken_up_and_gives_the_same_numbers(model, table, tmp_path):
    texts, _ = texts_to_score(table())
    whole = measure_priors(model, texts, tmp_path / "whole")
    for batch_size in (1, 2):
        journal = tmp_path / f"stopped{batch_size}"
        first = Counted(model, stop_at=2)
        with pytest.raises(KeyboardInterrupt):
            measure_priors(first, texts, journal, batch_size=batch_size)
        with journal.open("a", encoding="utf-8") as file:
            file.write('[2, [{"n_tok')  # as a kill may leave it
        second = Counted(model)
        priors = measure_priors(second, texts, journal, batch_size=batch_size)
        assert list(priors) == list(texts)
        for text, values in priors.items():
            assert values == pytest.approx(dict(whole[text]), rel=1e-5)
        if batch_size == 1:
            assert (priors, first.n, second.n) == (whole, 2, 3)


def test_a_line_that_is_lost_is_measured_again(model, table, tmp_path):
    (texts, _) = texts_to_score(table())
    journal = tmp_path / "journal"
    priors = measure_priors(model, texts, journal)
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    journal.write_text("".join([*lines[:2], *lines[3:]]), encoding="utf-8")
    again = Counted(model)
    assert measure_priors(again, texts, journal) == priors
    assert again.n == 1


def test_a_journal_of_another_run_is_refused_unless_begun_anew(model, table, tmp_path):
    journal = tmp_path / "journal"
    measure_priors(model, texts_to_score(table())[0], journal)
    other, _ = texts_to_score(table("text_id,text\nt,a woman\n"))
    with pytest.raises(ExtractError):
        measure_priors(model, other, journal)
    assert list(measure_priors(model, other, journal, restart=True)) == ["a woman"]


def test_a_text_that_is_too_long_is_named_before_any_work(model, table, tmp_path):
    path = table(f"caption_id,caption\nc1,a man\nc2,{'a' * 40}\n")
    counted = Counted(model)
    with pytest.raises(ExtractError, match=r"captions.csv, c2") as raised:
        measure_priors(counted, texts_to_score(path)[0], tmp_path / "journal")
    assert "\n" not in str(raised.value)
    assert counted.n == 0
    assert not (tmp_path / "journal").exists()


def test_a_table_of_priors_is_read_as_it_was_written_whatever_the_texts(tmp_path):
    texts = ("plain", 'a "b", c', "two\nlines", "two\r\nlines", "a\rb", " x ", "x\u2028y")
    priors = {text: {"n_tokens": place, "lm_mean": 1 / (3 + place)} for place, text in enumerate(texts)}
    write_priors(tmp_path / "lm.csv", priors, {})
    assert read_priors(tmp_path / "lm.csv") == {text: of["lm_mean"] for text, of in priors.items()}
