"""Read options that are for all backbones, or for one as in `NAME=VALUE`."""

from collections.abc import Iterable


def values_by_backbone(text: str, names: Iterable[str]) -> dict[str, str]:
    """Return backbone -> the value of an option, for the backbones that the option is for.

    `NAME=VALUE` is for one backbone, any other text is the value for all. A value may hold "=" itself: what
    is before a "=" counts as a name only if it is one of `names`.

    Parameters
    ----------
    text
        The option's value as typed.
    names
        The backbones.
    """
    name, _, value = text.partition("=")
    if name in names and name != text:
        return {name: value}
    return dict.fromkeys(names, text)
