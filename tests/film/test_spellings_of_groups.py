"""Groups of films that are one word in two spellings are named: each would have films of its own."""

import pytest

from obygaze_features.manifest import Manifest
from obygaze_film import compare_films
from tests.film.page.invented import fake_scored_film


def notes_on_genres(tmp_path, *genres):
    """Compare films, one of each genre, and return the notes of the comparison as one text."""
    films = []
    facts = {}
    for number, genre in enumerate(genres):
        film = fake_scored_film(f"tt{number}", f"Film {number}", n_rows=20, duration_s=500, seed=number)
        films.append(film)
        facts[film.movie] = {"genre": genre}
    return "\n".join(compare_films(films, Manifest((), tmp_path), facts, by="genre").notes)


CYRILLIC_A = "\N{CYRILLIC SMALL LETTER A}"


@pytest.mark.parametrize(
    "spelling", ["drama", "DRAMA", "Dr\N{LATIN SMALL LETTER A WITH ACUTE}ma", f"Dr{CYRILLIC_A}ma"]
)
def test_groups_that_differ_in_capitals_accents_or_look_alike_letters_are_named(tmp_path, spelling):
    """Genres of three films are Drama, another spelling of it, and Comedy: a note names the first two."""
    notes = notes_on_genres(tmp_path, "Drama", spelling, "Comedy")

    assert f"differ by spelling alone: Drama, {spelling}: write them alike" in notes
    assert "Comedy" not in notes


def test_groups_of_different_words_are_not_called_spellings_of_one_name(tmp_path):
    """Genres such as Drama and Dramedy, or 1990 and 1990s, have other letters, and mean other things."""
    assert "alike" not in notes_on_genres(tmp_path, "Drama", "Dramedy", "1990", "1990s")
