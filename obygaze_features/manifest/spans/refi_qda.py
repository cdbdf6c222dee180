"""Read and write projects of REFI-QDA (.qdpx, .qde), which NVivo, MAXQDA, ATLAS.ti and QualCoder exchange.

Coded selections of video and audio are spans, coders are annotators. A tier is the code above a code; codes
without one are on the tier `code`. Selections of texts, pictures and PDF have no times: they are left out
and counted. Source: REFI, "REFI-QDA 1.5" (2019), Project.xsd.
"""

import io
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import unquote
from uuid import NAMESPACE_URL, uuid5
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

from msgspec.structs import replace

from obygaze_features.arguments import checked
from obygaze_features.manifest.spans.json_values import number
from obygaze_features.manifest.spans.names import path_of
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.xml_names import attribute, children, descendants, local_name
from obygaze_features.text import first_few
from obygaze_features.untrusted import MAX_BYTES

ROOT: Final = "Project"
NAMESPACE: Final = "urn:QDA-XML:project:1.0"
PROJECT: Final = "project.qde"
"""The document of a project in its archive."""

ZIP: Final = b"PK\x03\x04"
"""How a zip archive begins. Source: APPNOTE.TXT of PKWARE, 4.3.7."""

FIRST_NAME_BYTES: Final = 300
"""The name of an archive's first member stands in its first bytes."""

DAMAGED: Final = (
    "a project of REFI-QDA (.qdpx) that is damaged, or cut short: the document in it, project.qde, cannot be "
    "read; copy or export it again"
)

WITH_TIME: Final = ("VideoSource", "AudioSource")
SELECTIONS: Final = ("VideoSelection", "AudioSelection")
WITHOUT_TIME: Final[Mapping[str, str]] = {
    "TextSource": "of a text, which has no times",
    "PictureSource": "of a picture, which has no times",
    "PDFSource": "of a PDF, which has no times",
}
"""Sources that are left out, and why."""

NO_CODE: Final = "a selection without a code"
TIER: Final = "code"
"""The tier of codes that stand below no other."""

MAX_DEPTH: Final = 100
"""How deep codes may stand below each other."""


class Code(NamedTuple):
    """A code of a codebook: its name, and the code above it, "" if none is."""

    name: str
    above: str


class Selection(NamedTuple):
    """A selection of a medium in seconds, with what all its codings share.

    Attributes
    ----------
    cells
        The film, and a comment.
    user
        Id of who made it.
    """

    where: str
    start_s: float
    end_s: float
    cells: Mapping[str, str]
    user: str


# --- reading
# ---------------------------------------------------------------------------
def read_refi_qda(file: SpanFile) -> Iterator[RawSpan]:
    """Yield a record for each code that is given to a selection in a project.

    Raises
    ------
    ManifestError
        The project is damaged, or is none.
    """
    _take_document(file)
    root = file.xml(ROOT, "a project of REFI-QDA", has_namespace=True)
    name_of_user = {}
    for user in descendants(root, "User"):
        name_or_id = attribute(user, "name") or attribute(user, "id") or attribute(user, "guid")
        name_of_user[attribute(user, "guid").casefold()] = one_line(name_or_id)
    reader = _Reader(_codes(file, root), name_of_user)
    for sources in children(root, "Sources"):
        for source in sources:
            yield from reader.source(source)


def is_damaged_archive(file: SpanFile) -> bool:
    """Return whether a file seems to be a project's archive, but the document in it is not found.

    A project's archive is a zip archive called .qdpx with a document called .qde in it. If it was cut short,
    its list of members, which is at its end, is lost. It is then known by its own name or, as it may have
    been renamed, by the document's name, which an archive has at its beginning if that is its first member.
    """
    if not file.content.startswith(ZIP):
        return False
    has_document = _document_name(file) != ""
    if has_document:
        return False
    is_named_as_project = file.path.suffix.lower() == ".qdpx"
    begins_with_document = b".qde" in file.content[:FIRST_NAME_BYTES].lower()
    return is_named_as_project or begins_with_document


def _document_name(file: SpanFile) -> str:
    """Return the name of the document in a project's archive; "" if the file is no such archive."""
    names = _document_names(file)
    return names[0] if names else ""


def _document_names(file: SpanFile) -> list[str]:
    """List the names of the documents in a project's archive: of one project, there is one.

    The standard calls it project.qde; where that is in the archive, it alone counts. ATLAS.ti names the
    document after the project.
    """
    if not file.content.startswith(ZIP):
        return []
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return []
    documents = []
    for name in names:
        _, _, name_without_folders = name.casefold().rpartition("/")
        if name_without_folders == PROJECT:
            return [name]
        # An archive that macOS packed again has a hidden file of attributes, ._NAME, for each file.
        is_hidden = name_without_folders.startswith(".")
        if name_without_folders.endswith(".qde") and not is_hidden:
            documents.append(name)
    return documents


def _take_document(file: SpanFile) -> None:
    """Replace the content of a file that is a project's archive by the document in it.

    Raises
    ------
    ManifestError
        The archive is damaged, holds several documents, or one that is larger than what is held in memory.
    """
    names = _document_names(file)
    if not names:
        if file.content.startswith(ZIP):
            raise file.error(DAMAGED)
        return
    if len(names) > 1:
        raise file.error(
            f"it holds {len(names)} projects, {first_few(names, 3)}, where REFI-QDA has one in each "
            ".qdpx; unzip it and import each .qde by itself"
        )
    name = names[0]
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            is_too_large = archive.getinfo(name).file_size > MAX_BYTES
            document = b"" if is_too_large else archive.read(name)
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, NotImplementedError, EOFError, RuntimeError):
        raise file.error(DAMAGED) from None
    if is_too_large:
        raise file.error(f"{name} in it is larger than {MAX_BYTES >> 20} MB")
    file.close()  # forgets what was computed from the archive's bytes
    file.content = document


def _codes(file: SpanFile, root: Element) -> dict[str, Code]:
    """Return id of a code, in lower case -> the code, for all codes of a project, however deep."""
    codes = {}
    waiting: list[tuple[Element, str, int]] = []  # element, name of the code above, depth
    for book in children(root, "CodeBook"):
        waiting += [(node, "", 0) for node in children(book, "Codes")]
    while waiting:
        node, above, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise file.error("codes nested too deeply")
        for code in children(node, "Code"):
            name = one_line(attribute(code, "name"))
            codes[attribute(code, "guid").casefold()] = Code(name, above)
            waiting.append((code, name, depth + 1))
    return codes


class _Reader:
    """Reads the sources of a project.

    Parameters
    ----------
    codes, users
        By their ids in small letters.
    """

    def __init__(self, codes: Mapping[str, Code], users: Mapping[str, str]) -> None:
        """Keep the codes and the users' names of a project, by their ids."""
        self._codes = codes
        self._users = users
        self._n_selections = 0  # selections so far, whose numbers are their places in messages

    def source(self, source: Element) -> Iterator[RawSpan]:
        """Yield the records of a source; the codings of one without time, such as a text, are left out."""
        kind = local_name(source.tag)
        name = one_line(attribute(source, "name"))
        if kind in WITH_TIME:
            yield from self._medium(source, name)
            return
        reason = WITHOUT_TIME.get(kind, f"of a source {kind:.40}, which is not read")
        n_codings = len(list(descendants(source, "Coding")))
        for _ in range(max(n_codings, 1)):  # a source without codings counts as one record
            yield RawSpan(f"source {name:.60}", reason=reason)

    def _medium(self, source: Element, name: str) -> Iterator[RawSpan]:
        """Yield the records of a film or a sound: of the whole, of its selections, and of its transcripts."""
        media = _media(source, name)
        # A code may be given to the whole source. It then has no times, and its coding says who gave it.
        whole = Selection(
            where=f"source {name:.60}", start_s=math.nan, end_s=math.nan, cells={"media": media}, user=""
        )
        for coding in children(source, "Coding"):
            yield self._coded(whole, coding, is_whole_file=True)
        for node in children(source, *SELECTIONS):
            begin_s = number(attribute(node, "begin")) / 1000
            end_s = number(attribute(node, "end")) / 1000
            yield from self._selection(node, begin_s, end_s, media)
        for transcript in children(source, "Transcript"):
            yield from self._transcript(transcript, media)

    def _transcript(self, transcript: Element, media: str) -> Iterator[RawSpan]:
        """Yield the records of a transcript, whose selections have the times of the points that they name."""
        time_of_point_s = {
            attribute(point, "guid").casefold(): number(attribute(point, "timeStamp")) / 1000
            for point in children(transcript, "SyncPoint")
        }
        for node in children(transcript, "TranscriptSelection"):
            begin_s = time_of_point_s.get(attribute(node, "fromSyncPoint").casefold(), math.nan)
            end_s = time_of_point_s.get(attribute(node, "toSyncPoint").casefold(), math.nan)
            yield from self._selection(node, begin_s, end_s, media)

    def _selection(self, node: Element, begin_s: float, end_s: float, media: str) -> Iterator[RawSpan]:
        """Yield a record for each code of a selection; one without codes is left out with a reason."""
        self._n_selections += 1
        location = f"selection {self._n_selections}"

        cells = {"media": media}
        descriptions = list(children(node, "Description"))
        comment = one_line(descriptions[0].text or "") if descriptions else ""
        if comment:
            cells["comment"] = comment

        user = attribute(node, "creatingUser") or attribute(node, "modifyingUser")
        selection = Selection(location, begin_s, end_s, cells, user)
        codings = list(children(node, "Coding"))
        if not codings:
            yield RawSpan(location, reason=NO_CODE)
        for coding in codings:
            yield self._coded(selection, coding)

    def _coded(self, selection: Selection, coding: Element, *, is_whole_file: bool = False) -> RawSpan:
        """Make the record of a code that somebody gave to a selection.

        A coding refers to its code by an id; without one, or with an unknown id, it has no code. Its coder
        is the user who made it, else the one who made the selection.
        """
        ids_of_code = [attribute(reference, "targetGUID") for reference in children(coding, "CodeRef")]
        code = self._codes.get(ids_of_code[0].casefold()) if ids_of_code else None
        user = attribute(coding, "creatingUser") or selection.user
        cells = {**selection.cells, "annotator": self._users.get(user.casefold(), "")}
        record = RawSpan(
            selection.where,
            selection.start_s,
            selection.end_s,
            tier=TIER,
            cells=cells,
            is_whole_file=is_whole_file,
        )
        if code is None:
            return replace(record, reason="its code is not in the codebook")
        return replace(record, text=code.name, tier=code.above or TIER)


def _media(source: Element, name: str) -> str:
    """Return the film of a source: its name if that has a suffix, else its path or URL."""
    if path_of(name).suffix:
        return name
    for place in (attribute(source, "currentPath"), attribute(source, "path")):
        # A path inside of the archive is a random name, which says nothing of the film.
        is_in_archive = place.startswith("internal:")
        if place and not is_in_archive:
            _, _, path_in_url = place.partition("://")
            return unquote(path_in_url or place)
    return name


# --- writing
# ---------------------------------------------------------------------------
@dataclass(frozen=True)
class CodedSpan:
    """A selection of a film with the codes that one coder gave to it.

    Attributes
    ----------
    start_s, end_s
        In seconds.
    codes
        Pairs of the code above and the code, such as `("level", "S")`.
    coder
        Who coded it.
    comment
        A comment on it; "" for none.
    """

    start_s: float
    end_s: float
    codes: Sequence[tuple[str, str]]
    coder: str
    comment: str = ""


@dataclass
class _Ids:
    """Ids of a project's parts, which are the same for the same names."""

    project: str
    names: dict[tuple[str, ...], str] = field(default_factory=dict)

    def of(self, *names: str) -> str:
        """Return the id of the part with these names, such as "user" and the name of a coder."""
        if names not in self.names:
            self.names[names] = str(uuid5(NAMESPACE_URL, "\n".join([self.project, *names])))
        return self.names[names]


@checked
def refi_qda_project(spans: Sequence[CodedSpan], movie: str, description: str = "") -> str:
    """Write the XML document of a project of REFI-QDA with codes and selections of one film.

    `refi_qda_archive` makes the file that other tools open from it.

    Parameters
    ----------
    spans
        The selections, with their codes and coders.
    movie
        Name of the film. Its video is not part of the project.
    description
        Description of the project; "" for none.

    Examples
    --------
    >>> from obygaze_features.manifest import CodedSpan, refi_qda_project
    >>> text = refi_qda_project([CodedSpan(1.0, 5.0, [("level", "S")], "AB")], "tt0000042")
    >>> 'begin="1000" end="5000"' in text
    True
    """
    ids = _Ids(movie)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<Project xmlns="{NAMESPACE}" name={_quoted(movie)} origin="obygaze">',
        *_users(spans, ids),
        *_codebook(spans, ids),
        "<Sources>",
        f'<VideoSource guid="{ids.of("source")}" name={_quoted(movie)}>',
    ]
    for number_of_span, span in enumerate(spans, start=1):
        lines += _selection_lines(span, ids, str(number_of_span))
    lines += ["</VideoSource>", "</Sources>"]
    if description:
        lines.append(f"<Description>{escape(one_line(description))}</Description>")
    return "\n".join([*lines, "</Project>", ""])


@checked
def refi_qda_archive(document: str) -> bytes:
    """Make the archive (.qdpx) of a document of `refi_qda_project`; equal documents give equal bytes."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        # A fixed time, as the time of writing would change the bytes.
        archive.writestr(zipfile.ZipInfo(PROJECT, (1980, 1, 1, 0, 0, 0)), document)
    return data.getvalue()


def _users(spans: Sequence[CodedSpan], ids: _Ids) -> list[str]:
    """Write the lines of the coders; no lines without coders."""
    coders = dict.fromkeys(span.coder for span in spans)  # each once, in order
    if not coders:
        return []
    users = [f'<User guid="{ids.of("user", coder)}" name={_quoted(coder)}/>' for coder in coders]
    return ["<Users>", *users, "</Users>"]


def _codebook(spans: Sequence[CodedSpan], ids: _Ids) -> list[str]:
    """Write the codebook of a REFI-QDA project as lines of XML: all codes of spans; [] if there are none.

    Codes have two floors, as in `level` > `S`. Only those below, such as `S`, can be given to a selection.

    Parameters
    ----------
    spans
        The selections of films, each with pairs of a code above and a code.
    ids
        Makes the id of each element from what it is, so that other lines can refer to it.
    """
    names_below: dict[str, list[str]] = {}  # code above -> names of the codes below it
    for span in spans:
        for above, name in span.codes:
            names = names_below.setdefault(above, [])
            if name not in names:
                names.append(name)
    if not names_below:
        return []
    lines = ["<CodeBook>", "<Codes>"]
    for above, names in names_below.items():
        id_above = ids.of("code", above)
        lines.append(f'<Code guid="{id_above}" name={_quoted(above)} isCodable="false">')
        for name in names:
            id_below = ids.of("code", above, name)
            lines.append(f'<Code guid="{id_below}" name={_quoted(name)} isCodable="true"/>')
        lines.append("</Code>")
    return [*lines, "</Codes>", "</CodeBook>"]


def _selection_lines(span: CodedSpan, ids: _Ids, place: str) -> list[str]:
    """Write the lines of a selection with its codes.

    `place` is the number of the selection, from which its ids are made.
    """
    user = ids.of("user", span.coder)
    begin = round(1000 * span.start_s)
    end = round(1000 * span.end_s)
    guid = ids.of("selection", place)
    times = f'begin="{begin}" end="{end}"'
    lines = [f'<VideoSelection guid="{guid}" {times} creatingUser="{user}">']
    if span.comment:
        lines.append(f"<Description>{escape(one_line(span.comment))}</Description>")
    for above, name in span.codes:
        coding = ids.of("coding", place, above, name)
        lines.append(f'<Coding guid="{coding}" creatingUser="{user}">')
        lines.append(f'<CodeRef targetGUID="{ids.of("code", above, name)}"/></Coding>')
    return [*lines, "</VideoSelection>"]


def _quoted(text: str) -> str:
    """Write a text on one line as an attribute of XML, with its quotes."""
    return quoteattr(one_line(text))
