"""Write texts of other tools on one line."""

from obygaze_features.text import unsuitable


def one_line(text: str) -> str:
    """Return a text on one line, without control characters; joiners of letters and emoji stay."""
    line = " ".join(text.split())
    if line.isprintable():  # then it has no control characters
        return line
    clean = "".join(sign for sign in line if sign != "\ufeff" and unsuitable(sign) is None)
    return " ".join(clean.split())
