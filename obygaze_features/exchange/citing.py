"""Cite a sealed store: as BibTeX, and as a reference in the style of the APA.

A store has no date and no author that a program could read. Its version and its fingerprint identify it, and
the citation that its makers stated is given in full, whatever its form.
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
"""Characters with a meaning in TeX -> how they are written in a text."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A reference to a store.

    Parameters
    ----------
    key
        Name of the BibTeX entry.
    title, version, fingerprint, licence
        Title, version, fingerprint and licence of the store.
    stated
        How its makers want it to be cited; empty if they said nothing. It may be a BibTeX entry itself.
    url
        URL at which it was opened; empty for a path of this machine.
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
        """Whether the citation that the makers stated is a BibTeX entry, such as `@article{...}`."""
        return bool(re.match(r"\s*@\w+\s*\{", self.stated))

    def bibtex(self) -> str:
        """Return a BibTeX entry of the store, followed by the entry that its makers stated, if any."""
        note = f"obygaze feature store, fingerprint {self.fingerprint}. Licence {self.licence}"
        if self.stated and not self.is_bibtex:
            stated_on_one_line = " ".join(self.stated.split())
            note += f". {stated_on_one_line}"
        # `ESCAPED` writes characters that mean something in TeX, such as &. Braces keep capital letters.
        title = "{" + self.title.translate(ESCAPED) + "}"
        fields = {"title": title, "version": self.version, "note": note.translate(ESCAPED)}
        if self.url:
            fields["url"] = self.url
        lines = [f"  {name:8}= {{{value}}}," for name, value in fields.items()]
        entry = "\n".join([f"@misc{{{self.key},", *lines, "}"])
        if self.is_bibtex:
            return f"{entry}\n\n{self.stated.strip()}"
        return entry

    def apa(self) -> str:
        """Return a reference in the style of the APA, without the author and the date that no store has."""
        reference = (
            f"{self.title} (Version {self.version}; fingerprint {self.fingerprint}) [Data set: obygaze "
            f"feature store]. (n.d.). Licence {self.licence}."
        )
        if self.url:
            reference += f" {self.url}"
        if self.stated and not self.is_bibtex:
            stated_on_one_line = " ".join(self.stated.split())
            reference += f" {stated_on_one_line}"
        return reference

    def record(self) -> dict[str, Any]:
        """Return all fields, and the BibTeX and APA texts, as plain JSON."""
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
    """Return the citation of a sealed store.

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
    """Return the citation of a store.

    `licence` is the one under which it is shared, which may differ from the one it was sealed with.
    """
    corpus = str(store.attributes["corpus"]["name"])

    name_and_version = store.name
    if not store.name.endswith(store.version):
        name_and_version = f"{store.name}-{store.version}"
    # The key of a BibTeX entry has no other characters.
    key = re.sub(r"[^A-Za-z0-9.:+-]+", "-", name_and_version).strip("-")

    stated = store.attributes["citation"]  # None if the makers stated none
    url = as_url(store.where)  # None for a path of this machine
    return Citation(
        key=key or "store",
        title=f"Features of {corpus}",
        version=store.version,
        fingerprint=store.fingerprint,
        licence=licence,
        stated=str(stated) if stated else "",
        url=_without_secrets(url) if url else "",
    )


def _without_secrets(url: str) -> str:
    """Return a URL without user, password, query and fragment: they may hold what is secret."""
    without_query, _, _query = url.partition("?")
    without_fragment, _, _fragment = without_query.partition("#")
    return re.sub(r"//[^/@]*@", "//", without_fragment)  # such as https://USER:PASSWORD@HOST/NAME
