"""The card and croissant.json of a store, to lie beside it or where it is shared."""

from obygaze_features.store.card import NOBODY_SAID, card, facts_of
from obygaze_features.store.croissant import croissant
from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import CARD, CROISSANT, TABLE
from obygaze_features.store.objects import digest_of
from obygaze_features.store.provenance import validate_licence
from obygaze_features.store.reader import Store
from obygaze_features.store.values import one_line


def cards(
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
    facts = facts_of(store, sealed if licence is None else validate_licence(licence), said)
    table = croissant(facts, store.version, digest_of(store.objects, TABLE), store.objects.size(TABLE), url)
    return {CARD: card(facts).encode(), CROISSANT: table}
