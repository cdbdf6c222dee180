"""Priors of a table of captions: which texts, in which batches, and how a stopped run is taken up."""

import pytest

from obygaze_features.errors import ExtractError
from obygaze_studies.gender_score.belief_revision import read_priors
from obygaze_studies.gender_score.priors import measure_priors, texts_to_score, write_priors
from tests.files import written
from tests.lazy_import import lazy_import
from tests.tiny_checkpoints import tiny_language_model

Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
language_model = lazy_import("obygaze_studies.gender_score.language_model", "language_model")

CAPTIONS = """caption_id,image_id,caption
c1,i1,a man riding a motorcycle
c2,i1,"a <MASK>, riding"
c3,i2,a [MASK] on a road
c4,i2,a man riding a motorcycle
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny GPT-2 with random weights."""
    return language_model(str(tiny_language_model(tmp_path_factory.mktemp("gpt2"))), compute=Compute("cpu"))


@pytest.fixture
def write_table(tmp_path):
    """Return a function that writes a table of texts: of four captions with five texts, or another one."""
    return lambda text=CAPTIONS: written(tmp_path / "captions.csv", text)


class CountedModel:
    """The model, counting the batches that it scores, and interrupted before one of them."""

    def __init__(self, model, interrupted_after=None):
        self.model = model
        self.interrupted_after = interrupted_after
        self.n_batches = 0

    def __getattr__(self, name):
        return getattr(self.model, name)

    def score(self, texts):
        if self.n_batches == self.interrupted_after:
            raise KeyboardInterrupt
        self.n_batches += 1
        return self.model.score(texts)


def test_equal_texts_are_listed_once_and_a_mask_becomes_both_genders(write_table):
    """Of four captions, the first and the last are equal. A mask stands for a man or a woman.

    So the two captions with a mask are two texts each.
    """
    table = write_table(
        "caption_id,image_id,caption\n"
        "c1,i1,a man riding a motorcycle\n"
        'c2,i1,"a <MASK>, riding"\n'
        "c3,i2,a [MASK] on a road\n"
        "c4,i2,a man riding a motorcycle\n"
    )

    texts, record = texts_to_score(table)

    assert list(texts) == [
        "a man riding a motorcycle",
        "a man, riding",
        "a woman, riding",
        "a man on a road",
        "a woman on a road",
    ]
    assert record["rows"] == 4
    assert record["masked"] == 2


@pytest.mark.parametrize(
    ("batch_size", "n_batches_left"), [(1, 3), (2, 1)], ids=["a text a batch", "two texts a batch"]
)
def test_an_interrupted_run_measures_the_rest_and_gives_the_same_priors(
    model, write_table, tmp_path, batch_size, n_batches_left
):
    """Of five texts, two batches were scored before the interruption. A kill may leave half a line."""
    texts, _ = texts_to_score(write_table())
    assert len(texts) == 5
    of_undisturbed_run = measure_priors(model, texts, tmp_path / "undisturbed")
    journal = tmp_path / "interrupted"
    with pytest.raises(KeyboardInterrupt):
        measure_priors(CountedModel(model, interrupted_after=2), texts, journal, batch_size=batch_size)
    with journal.open("a", encoding="utf-8") as file:
        file.write('[2, [{"n_tok')
    second = CountedModel(model)

    priors = measure_priors(second, texts, journal, batch_size=batch_size)

    assert second.n_batches == n_batches_left
    assert list(priors) == list(texts)
    for text, values in priors.items():  # texts in other batches differ by rounding
        assert values == pytest.approx(dict(of_undisturbed_run[text]), rel=1e-5)
    if batch_size == 1:  # as in the undisturbed run: nothing depends on batches
        assert priors == of_undisturbed_run


def remove_line(path, number):
    """Remove a line from a file; the first one is number 1."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    del lines[number - 1]
    path.write_text("".join(lines), encoding="utf-8")


def test_a_line_that_is_lost_is_measured_again(model, write_table, tmp_path):
    """A run writes each prior that it has measured into a line of its journal, below a header.

    The third line, of one text, is lost, so that one batch is measured when the run is resumed.
    """
    texts, _ = texts_to_score(write_table())
    journal = tmp_path / "journal"
    priors = measure_priors(model, texts, journal)
    remove_line(journal, number=3)
    counted = CountedModel(model)

    priors_when_resumed = measure_priors(counted, texts, journal)

    assert priors_when_resumed == priors
    assert counted.n_batches == 1


def test_a_journal_of_other_texts_is_refused_unless_the_run_is_started_anew(model, write_table, tmp_path):
    """A journal keeps what a run has measured, so that the run can be resumed with the same texts."""
    journal = tmp_path / "journal"
    texts, _ = texts_to_score(write_table())
    measure_priors(model, texts, journal)
    other_texts, _ = texts_to_score(write_table("text_id,text\nt,a woman\n"))

    with pytest.raises(ExtractError):
        measure_priors(model, other_texts, journal)

    priors = measure_priors(model, other_texts, journal, restart=True)
    assert list(priors) == ["a woman"]


def test_a_text_that_is_too_long_is_named_before_any_work(model, write_table, tmp_path):
    """The tiny model takes texts of up to 31 letters, of which the caption c2 has 40."""
    forty_letters = "a" * 40
    table = write_table(f"caption_id,caption\nc1,a man\nc2,{forty_letters}\n")
    texts, _ = texts_to_score(table)
    counted = CountedModel(model)

    with pytest.raises(ExtractError, match=r"captions.csv, c2") as raised:
        measure_priors(counted, texts, tmp_path / "journal")

    assert "\n" not in str(raised.value)
    assert counted.n_batches == 0
    assert not (tmp_path / "journal").exists()


def test_priors_of_texts_with_quotes_and_any_line_breaks_are_read_as_they_were_written(tmp_path):
    """They are kept in a table, by their text. A prior is the mean probability of its tokens, `lm_mean`."""
    texts = ("plain", 'a "b", c', "two\nlines", "two\r\nlines", "a\rb", " x ", "x\u2028y")
    prior_of_text = {text: 1 / (3 + number) for number, text in enumerate(texts)}
    measured = {text: {"n_tokens": 1, "lm_mean": prior} for text, prior in prior_of_text.items()}

    write_priors(tmp_path / "lm.csv", measured, {})

    assert read_priors(tmp_path / "lm.csv") == prior_of_text
