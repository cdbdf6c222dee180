"""The desk by a French keyboard, which types & é " with the keys of the digits."""

import pytest

from obygaze_film.workspace.decisions import JUDGEMENTS
from tests.files import rows_of
from tests.film.workspace.driving import NEXT_PASSAGE, open_desk, press_key_and_wait, wait_for_announcement

pytestmark = pytest.mark.long


def press_key_at(page, code, sign):
    """Press the key at a place of the keyboard, which types a sign there."""
    keyboard = page.context.new_cdp_session(page)
    keyboard.send("Input.dispatchKeyEvent", {"type": "keyDown", "code": code, "key": sign, "text": sign})
    keyboard.send("Input.dispatchKeyEvent", {"type": "keyUp", "code": code, "key": sign})


def test_the_keys_of_the_digits_give_levels_on_a_french_keyboard(desk_in_browser):
    """On a French keyboard the keys of the digits type other signs: that of 3 types a quotation mark.

    The desk goes by the key, not by the sign. So this key gives the third level, "violent".
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    open_desk(page)
    press_key_and_wait(page, NEXT_PASSAGE, "")

    press_key_at(page, "Digit3", '"')

    wait_for_announcement(page, "kept")
    assert [row["level"] for row in rows_of(folder / JUDGEMENTS)] == ["violent"]
    assert desk_in_browser.errors == []
