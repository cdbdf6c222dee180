"""Say how a sealed store is cited: BibTeX, and a reference in the style of the APA.

A store has no date and no author that a program could read: its version and its fingerprint say which it is,
and the citation that its makers stated, whatever its form, stands in full.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from obygaze_features.arguments import checked
from obygaze_features.store.files_remote import as_url
from obygaze_features.store.store import Store, open_store

ESCAPED = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{sign: f"\\{sign}" for sign in "{}&%$#_"},
    }
)
"""Signs of TeX's own -> how they are written in a text."""


@dataclass(frozen=True, slots=True)
class Citation:
    """What a reference to a store says.

    Parameters
    ----------
    key
        Name of the BibTeX entry.
    title, version, fingerprint, licence
        Of the store.
    stated
        How its makers want it to be cited; empty if they said nothing. It may be a BibTeX entry itself.
    url
        Where it was opened; empty for a place on this machine.
    """

    key: str
    title: str
    version: str
    fingerprint: str
    licence: str
    stated: str = ""
    url: str = ""

    @property
    def is_bibtex(self) -> bool:
        """Whether the makers stated an entry of BibTeX."""
        return bool(re.match(r"\s*@\w+\s*\{", self.stated))

    def bibtex(self) -> str:
        """Return the entry of the store, and that which its makers stated."""
        note = f"obygaze feature store, fingerprint {self.fingerprint}. Licence {self.licence}"
        if self.stated and not self.is_bibtex:
            note += f". {' '.join(self.stated.split())}"
        fields = {"title": f"{{{self.title.translate(ESCAPED)}}}", "version": self.version}
        fields["note"] = note.translate(ESCAPED)
        if self.url:
            fields["url"] = self.url
        lines = [f"  {name:8}= {{{value}}}," for name, value in fields.items()]
        entry = "\n".join([f"@misc{{{self.key},", *lines, "}"])
        return f"{entry}\n\n{self.stated.strip()}" if self.is_bibtex else entry

    def apa(self) -> str:
        """Return a reference in the style of the APA, without the author and the date that no store has."""
        reference = (
            f"{self.title} (Version {self.version}; fingerprint {self.fingerprint}) [Data set: obygaze "
            f"feature store]. (n.d.). Licence {self.licence}."
        )
        place = f" {self.url}" if self.url else ""
        stated = "" if self.is_bibtex or not self.stated else f" {' '.join(self.stated.split())}"
        return f"{reference}{place}{stated}"

    def record(self) -> dict[str, Any]:
        """Return all of it, and both texts, as JSON has them."""
        return {
            "title": self.title,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "licence": self.licence,
            "citation": self.stated,
            "url": self.url,
            "bibtex": self.bibtex(),
            "apa": self.apa(),
        }


@checked
def cite(store: Store | Path | str) -> Citation:
    """Return how a sealed store is cited.

    Parameters
    ----------
    store
        A store, or its path or URL.

    Returns
    -------
    Citation
        With `bibtex()`, `apa()` and `record()`.

    Examples
    --------
    >>> from obygaze_features.exchange import cite
    >>> print(cite("stores/films").bibtex().splitlines()[0])
    @misc{films-1.0.0,
    """
    opened = store if isinstance(store, Store) else open_store(store)
    return citation_of(opened, str(opened.attributes["licence"]))


def citation_of(store: Store, licence: str) -> Citation:
    """Return how a store is cited under a licence, which it may be given when it is shared."""
    corpus = str(store.attributes["corpus"]["name"])
    name = store.name if store.name.endswith(store.version) else f"{store.name}-{store.version}"
    return Citation(
        key=re.sub(r"[^A-Za-z0-9.:+-]+", "-", name).strip("-") or "store",
        title=f"Features of {corpus}",
        version=store.version,
        fingerprint=store.fingerprint,
        licence=licence,
        stated=str(store.attributes["citation"] or ""),
        url=_without_secrets(as_url(store.where) or ""),
    )


def _without_secrets(url: str) -> str:
    """Return a URL without a user's name and password, and without what is asked or signed after the path."""
    return re.sub(r"//[^/@]*@", "//", url.partition("?")[0].partition("#")[0])
