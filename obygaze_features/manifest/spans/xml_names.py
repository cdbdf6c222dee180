"""Compare names of XML without their namespaces, of which versions of a format differ."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element


def local_name(name: str) -> str:
    """Return the name of an element or attribute without its namespace.

    Examples
    --------
    >>> local_name("{http://www.w3.org/ns/ttml}tt"), local_name("eaf")
    ('tt', 'eaf')
    """
    return name.rpartition("}")[2]


def attribute(node: Element, name: str) -> str:
    """Return an attribute by its name without a namespace; "" if there is none."""
    if name in node.attrib:
        return node.attrib[name]
    for full_name, value in node.attrib.items():
        if local_name(full_name) == name:
            return value
    return ""


def children(node: Element, *names: str) -> Iterator[Element]:
    """Yield the children of an element that have one of some names, whatever their namespace."""
    for child in node:
        if local_name(child.tag) in names:
            yield child


def descendants(node: Element, *names: str) -> Iterator[Element]:
    """Yield the elements at any depth that have one of some names, whatever their namespace."""
    for inner in node.iter():
        if local_name(inner.tag) in names:
            yield inner
