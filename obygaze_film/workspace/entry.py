"""Hold the secrets by which a server that was started lets its user's browser in."""

import secrets
from typing import Final

ENTRY: Final = "/enter/"
"""Path before the token in the address that is printed. A token in the query of the address would be blotted
out where addresses are printed."""

REDIRECTING_PAGE: Final = (
    '<!doctype html><link rel="icon" href="data:,"><meta http-equiv="refresh" content="0; url={}">'
)
"""Page that sends the browser to another address; it loads no icon."""


class Secrets:
    """Random texts by which a server that was started recognises its user's browser.

    Attributes
    ----------
    token
        Part of the address that is printed. It is valid for one entry, and empty afterwards.
    cookie
        Value of the cookie that the browser gets when it enters, and sends from then on.
    path
        Path below which all pages are. Browsers send cookies of this machine to all of its ports, whoever
        listens there; this cookie they send only to pages below the path.
    """

    def __init__(self) -> None:
        """Draw the three texts, which nobody can guess (192 random bits each)."""
        self.token = secrets.token_urlsafe(24)
        self.cookie = secrets.token_urlsafe(24)
        self.path = secrets.token_urlsafe(24)
