"""Statements about scored films as data, and the sentences that print them.

A claim says who says what, of which time of a film, with a number, its interval and its conditions.
`of_film`, `of_judgements` and `of_groups` compute claims from records; `phrases` writes each kind by one
function, in the languages of `LANGUAGES`. No other module of films writes such a number into a sentence.

Examples
--------
>>> from obygaze_film.claims import document, film_claims, sentences
>>> import obygaze_features as of
>>> import obygaze_film
>>> film = obygaze_film.score_film(of.open_store("stores/more"), ["kept/linear.model"], movie="film6")
>>> claims = film_claims(film)
>>> sorted({document(claim)["claim"] for claim in claims})
['evidence', 'expected share', 'experts', 'judged time', 'marked passages', 'passage', 'title']
>>> len(sentences(claims, "fr")) == len(claims)
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
