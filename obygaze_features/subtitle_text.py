"""Take what is said out of the text of a subtitle: without tags, settings and drawings.

Sources: WebVTT (W3C, 2019), SubRip and SubStation Alpha as players read them.
"""

import html
import re

_VTT_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<(?:\d+:)+[\d.]+>|</?>")
_SRT_TAG = re.compile(
    r"</?(?:b|i|u|s|em|strong|font|span|c|ruby|rt|p|div)(?:\.[\w.-]+)?"
    r"(?:\s+[\w:-]+\s*=\s*(?>\"[^<>\"]*+(?:\"(?=[\s/>])|(?=>))|'[^<>']*+(?:'(?=[\s/>])|(?=>))|[^\s<>]+))*+\s*/?>"
    r"|</(?:v|lang)>|<lang\s+[\w-]+>|^<v(?:\.[\w.-]+)?\s[^<>\n]*>|\{\\[^{}]*\}",
    re.IGNORECASE | re.MULTILINE,
)
"""What formats: names of tags alone or with attributes; `<b and c>` is said."""
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s++([^<>]+)>")
_ASS_TAG = re.compile(r"(?<!\\)\{[^{}]*\}")
_REST = r"(?:[^{}\\]|\\(?!p(?![a-z])))*+\}"
"""Of a tag, behind its last `\\p`, which begins drawings, or text without a number or with 0."""
DRAWING = re.compile(rf"(?<!\\)\{{[^{{}}]*\\p[1-9]{_REST}.*?(?=\{{[^{{}}]*\\p(?![1-9a-z]){_REST}|$)")


def ass_text(text: str) -> str:
    """Return the words of a subtitle in ASS format.

    Drawings, and settings in braces, are removed; line breaks become blanks.
    """
    text = DRAWING.sub("", text)
    text = _ASS_TAG.sub("", text)
    text = re.sub(r"\\[Nnh]", " ", text)  # \N and \n break the line, \h is a hard blank
    return re.sub(r"\\([{}])", r"\1", text)  # \{ and \} stand for braces in the words themselves


def vtt_text(text: str) -> str:
    """Return the words of a WebVTT subtitle: without tags, and with entities such as `&amp;` decoded once."""
    without_breaks = _BREAK.sub(" ", text)
    without_tags = _VTT_TAG.sub("", without_breaks)
    return html.unescape(without_tags)


def srt_text(text: str) -> str:
    r"""Return the words of a SubRip subtitle, without tags for its looks.

    These are tags as of HTML, and settings in braces as of the format ASS, which some programs leave there.

    Examples
    --------
    >>> srt_text("<i>Who's there?</i>"), srt_text(r"{\an8}Nobody.")
    ("Who's there?", 'Nobody.')
    """
    without_breaks = _BREAK.sub(" ", text)
    return _SRT_TAG.sub("", without_breaks)
