"""What is said of a scored film, for tests that look for it."""

from obygaze_film.claims import Words, group_claims
from obygaze_film.claims.of_film import film_title, marked_passages, model_evidence
from obygaze_film.claims.phrases import evidence_sentence, groups_sentence, marked_sentence, title_sentence


def heading_of(film, language="en"):
    """Return the film's title with its warnings."""
    return title_sentence(film_title(film), Words(language))


def first_sentence(film, key=None, language="en"):
    """Return what is said of a film first; empty where its model predicts nothing."""
    model = film.model(key)
    marked = marked_passages(film, model, film.segments(model.key))
    return "" if marked is None else marked_sentence(marked, Words(language))


def evidence_line(film, language="en"):
    """Return what films left out show of the film's model."""
    return evidence_sentence(model_evidence(film.model()), Words(language))


def sentence_of(compared, language="en"):
    """Return what is said of groups of films."""
    return groups_sentence(group_claims(compared), Words(language))
