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
    """Leave out settings and drawings of ASS; its breaks are blanks."""
    return re.sub(r"\\([{}])", r"\1", re.sub(r"\\[Nnh]", " ", _ASS_TAG.sub("", DRAWING.sub("", text))))


def vtt_text(text: str) -> str:
    """Leave out tags of WebVTT, and decode its entities once."""
    return html.unescape(_VTT_TAG.sub("", _BREAK.sub(" ", text)))


def srt_text(text: str) -> str:
    """Leave out tags that format, and settings as of ASS; SubRip has no entities."""
    return _SRT_TAG.sub("", _BREAK.sub(" ", text))
