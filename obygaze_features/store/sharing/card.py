"""The card and croissant.json of a store, to lie beside it or where it is shared."""

from obygaze_features.store.croissant import croissant
from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import CARD, CROISSANT, STATUSES, TABLE, dimensions
from obygaze_features.store.provenance import validate_licence
from obygaze_features.store.reading.objects import digest_of
from obygaze_features.store.reading.store import Store
from obygaze_features.store.readme import NOBODY_SAID, Facts, describe, readme
from obygaze_features.store.staging.values import one_line


def card_files(
    store: Store, *, licence: str | None = None, citation: str | None = None, url: str | None = None
) -> dict[str, bytes]:
    """Write README.md and croissant.json anew: file name -> bytes. The sealed store is not touched.

    Parameters
    ----------
    licence
        SPDX expression; needed where the store was sealed without one, and else the store's own.
    citation
        How to cite the store, if not as it says itself.
    url
        Where the store's folder is served.

    Raises
    ------
    StoreError
        If nobody states a licence, or another one than the store's is given.
    """
    sealed = str(store.attributes["licence"])
    if licence is None and sealed == NOBODY_SAID:
        raise StoreError(
            f"{store.where}: nobody has stated a licence, and what is shared needs one: give it with "
            "--licence SPDX"
        )
    if licence is not None and sealed not in (NOBODY_SAID, licence):
        raise StoreError(
            f"{store.where}: sealed under {sealed}, not {licence}; another licence is another version of "
            "the store"
        )
    said = one_line(store.attributes["citation"] if citation is None else citation, "citation")
    facts = _facts(store, sealed if licence is None else validate_licence(licence), said)
    table = croissant(facts, store.version, digest_of(store.objects, TABLE), store.objects.size(TABLE), url)
    return {CARD: readme(facts).encode(), CROISSANT: table}


def _facts(store: Store, licence: str, citation: str) -> Facts:
    """Gather what a card tells of a sealed store, under this licence and citation."""
    statuses = [clip.status for clip in store.clips]
    groups = []
    for name in store:
        group = store[name]
        arrays = [
            describe(
                array,
                group.dtype(array).name,
                group.shape(array)[1:],
                dimensions(array, group.shape(array), group.n_frames),
            )
            for array in group.arrays
        ]
        groups.append((name, group.provenance, arrays))
    about = {**store.attributes, "licence": licence, "citation": citation}
    return Facts(about, {status: statuses.count(status) for status in STATUSES}, groups)
