"""The sentences that pages and the terminal say about a film, and the data that a page holds."""

import json
import re
from base64 import b64decode

from obygaze_film.claims import Words, group_claims
from obygaze_film.claims.of_film import film_title, marked_passages, model_evidence
from obygaze_film.claims.phrases import evidence_sentence, groups_sentence, marked_sentence, title_sentence
from obygaze_film.page.packed import MISSING


def heading_of(film, language="en", key=None):
    """Return the film's title as pages write it, followed by its warnings."""
    return title_sentence(film_title(film, key), Words(language))


def first_sentence(film, key=None, language="en"):
    """Return the first sentence about a film, on its marked passages; "" where nothing is predicted."""
    model = film.model(key)
    marked = marked_passages(film, model, film.segments(model.key))
    return "" if marked is None else marked_sentence(marked, Words(language))


def evidence_line(film, language="en"):
    """Return the sentence on how well the model did on films that it was not trained on."""
    return evidence_sentence(model_evidence(film.model()), Words(language))


def sentence_on_groups(compared, language="en"):
    """Return the sentence that compares groups of films."""
    return groups_sentence(group_claims(compared), Words(language))


def data_of(page):
    """Return the data that the script of a page of one film reads."""
    return json.loads(re.search('class="data">(.*?)</script>', page, re.DOTALL)[1])


def percentages_of(text):
    """Unpack probabilities as the page's script does: whole percentages, and -1 where there is none."""
    return [-1 if byte == MISSING else byte for byte in b64decode(text)]
