"""Tell a cell that cannot be read from a value: an error of a spreadsheet, a formula that was never computed.

A cell of a table has three states: a value, empty, and that it cannot be read. The third is written as
spreadsheets show it, such as `#N/A`, so that a workbook and the CSV of it say the same.
"""

import re
from typing import Final

NEVER_COMPUTED: Final = "#formula never computed"
"""In place of the value of a formula that a program wrote without one: no spreadsheet has opened the file."""

_ERROR = re.compile(r"#[¡¿]?[^\W\d_][\w/ .]{0,14}[!?]|#DIV/0|#N/?[ABDVK]!?|#GETTING_DATA|Err:\d{3}")
"""Errors of Excel and LibreOffice, in any language: #VALUE!, #WERT!, #¡REF!, #NOM?, #N/A, #NV, Err:502."""


def is_unreadable(cell: str) -> bool:
    """Return whether a cell is an error of a spreadsheet, or a formula that was never computed.

    Examples
    --------
    >>> is_unreadable("#N/A"), is_unreadable(" #WERT! "), is_unreadable("#Alive!"), is_unreadable("")
    (True, True, False, False)
    """
    if "#" not in cell and "Err:" not in cell:
        return False
    text = cell.strip()
    if text == NEVER_COMPUTED:
        return True
    if _ERROR.fullmatch(text) is None:
        return False
    # All errors but `Err:502` are in capitals. Other texts, such as the hashtag `#Alive!`, look alike.
    return text.startswith("Err:") or text == text.upper()
