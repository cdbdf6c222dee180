"""The desk's page: what it asks, cites and weighs."""

import gzip
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from obygaze_features.manifest import builtin_codebook
from obygaze_film.claims import Words
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.evidence import span_evidence
from obygaze_film.workspace.pages import OpenFilm, desk_page
from tests.film.page.invented import invented_film, with_model


@pytest.mark.parametrize(
    ("perceives", "left_out"),
    [
        (["visual"], {"Speech", "Voice", "Soundtrack", "Narratology"}),
        (["heard", "visual"], {"Narratology"}),
        ([], set()),
    ],
)
def test_concepts_that_no_model_of_the_film_can_perceive_are_not_asked_for(tmp_path, perceives, left_out):
    film = with_model(invented_film(n_rows=60, duration_s=600.0), perceives=perceives)
    book = builtin_codebook("obygaze12")
    opened = OpenFilm(0, film, Decisions(tmp_path, film, book))
    text = desk_page([opened], opened, "read", "en")
    asked = {name for name in book.concept_names if f'data-concept="{name}"' in text}
    assert asked == set(book.concept_names) - left_out


def test_the_desk_of_two_hours_is_sent_in_less_than_100_kilobytes(tmp_path):
    film = invented_film(traced=True)
    lines = pd.DataFrame({"start_s": np.arange(0, 7000, 4.5)}).assign(
        text="She said this, and did not look back."
    )
    opened = OpenFilm(0, replace(film, subtitles=lines.assign(end_s=lines["start_s"] + 3)), None)
    opened.decisions = Decisions(tmp_path, opened.timeline, builtin_codebook("obygaze12"))
    for mode in ("read", "blind"):
        assert len(gzip.compress(desk_page([opened], opened, mode, "en").encode())) < 100_000


@pytest.mark.parametrize("mode", ["read", "blind"])
def test_no_two_elements_share_an_id(tmp_path, mode):
    film = invented_film(n_rows=60, duration_s=600.0)
    opened = OpenFilm(0, film, Decisions(tmp_path, film, builtin_codebook("obygaze12")))
    ids = re.findall(r'<[a-z][^<>]*\sid="([^"]+)"', desk_page([opened], opened, mode, "en"))
    assert len(ids) > 20
    assert [name for name, n in Counter(ids).items() if n > 1] == []


def test_a_citation_names_the_model_by_twelve_digits(tmp_path):
    film = with_model(invented_film(n_rows=60, duration_s=600.0), sha256="0123456789abcdef" * 4)
    opened = OpenFilm(0, film, Decisions(tmp_path, film, builtin_codebook("obygaze12")))
    cited = span_evidence(opened, [opened], 50.0, 70.0, Words("en"))["cited"]
    assert cited.startswith("probability ")
    assert cited.endswith(" 0123456789ab")
