"""A store is cited by its version and fingerprint, whatever its makers stated."""

import re
from dataclasses import replace

import numpy as np
import pytest

import obygaze_features as of
from obygaze_features.exchange import Citation, cite
from obygaze_features.store.testing import seal_arrays


def make_sealed_store(folder, name="films", **about):
    arrays = {"pooled": np.ones((2, 3), np.float32)}
    return seal_arrays(folder / name, {"a-0": "a", "b-0": "b"}, {"toy": arrays}, **about)


def fields(entry: str) -> dict[str, str]:
    return dict(re.findall(r"(?m)^  (\w+) *= \{(.*)\},$", entry))


def test_both_texts_name_the_version_the_fingerprint_and_the_licence(tmp_path):
    """The two texts are an entry for BibTeX and a sentence in the style of the APA."""
    store = of.open_store(make_sealed_store(tmp_path))

    citation = cite(store)

    entry = citation.bibtex()
    assert entry.startswith(f"@misc{{films-{store.version},\n")
    assert fields(entry)["version"] == store.version
    for text in (entry, citation.apa()):
        assert store.fingerprint in text
        assert store.attributes["licence"] in text

    citation_by_path = cite(store.path)
    assert citation_by_path == citation


@pytest.fixture
def citation():
    return Citation("films-1.0.0", "Features of films", "1.0.0", "f" * 64, "CC0-1.0")


def test_a_citation_that_the_makers_state_stands_in_full_in_both_texts(citation):
    """The makers of a store state how to cite them, in two lines of plain text, which become one line.

    It ends the sentence in APA style, and the note of the BibTeX entry, where an & needs a backslash.
    """
    stated = replace(citation, stated="Doe and Roe,\nFilms & looks, 2026")

    assert stated.apa().endswith("Doe and Roe, Films & looks, 2026")
    assert fields(stated.bibtex())["note"].endswith(r"Doe and Roe, Films \& looks, 2026")


def test_an_entry_of_bibtex_that_the_makers_state_stays_an_entry_of_its_own(citation):
    """The makers of a store state how to cite them as an entry of BibTeX.

    It comes after the entry of the store, with an empty line between, and is no part of the APA sentence.
    """
    entry = "@article{doe, title={Films}}"
    stated = replace(citation, stated=entry)

    entries = stated.bibtex().split("\n\n")
    assert entries[1] == entry
    assert entry not in stated.apa()


@pytest.mark.parametrize("title", ["Films_of {1990} 100 % & $5 #1", "a\\b", "x^2 ~ y"])
def test_special_characters_of_tex_are_escaped_in_bibtex(citation, title):
    """Unescaped, they would stop TeX or be read as commands. Braces must be as many open as closed."""
    title_in_braces = fields(replace(citation, title=title).bibtex())["title"]
    written = title_in_braces.removeprefix("{").removesuffix("}")
    assert written.count("{") == written.count("}")

    special_without_backslash = r"(?<!\\)[&%$#_]"
    assert not re.search(special_without_backslash, written)


@pytest.mark.parametrize(
    ("where", "cited"),
    [
        ("https://user:secret@lab.example/films-1.0.0", "https://lab.example/films-1.0.0"),
        ("https://lab.example/films.zip?signature=secret", "https://lab.example/films.zip"),
        ("hf://datasets/lab/films@0123abc", "hf://datasets/lab/films@0123abc"),
        ("stores/films", ""),
    ],
)
def test_a_url_is_cited_without_what_is_secret_in_it(tmp_path, where, cited):
    """A password, a signature of a link, or a path on one's own machine must not be published."""
    store = of.open_store(make_sealed_store(tmp_path))
    store.where = where  # as if it had been opened there

    assert cite(store).url == cited


def test_a_name_in_any_script_gives_a_key_that_bibtex_reads(tmp_path):
    """The store is called "Filme, große". A key, which ends with a comma, has ASCII letters and digits."""
    store = of.open_store(make_sealed_store(tmp_path, "Filme, große"))

    entry = cite(store).bibtex()

    assert re.match(r"@misc\{[A-Za-z0-9.:+-]+,\n", entry)
