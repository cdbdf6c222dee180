"""Know a file by its first bytes, whatever its name says, to refuse it with a reason and a remedy.

Sources: the magic numbers of each format's specification; for git-lfs,
https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md.
"""

import re
from pathlib import Path
from typing import NamedTuple

HEAD_BYTES = 1 << 16
PICTURE_SUFFIXES = frozenset({".avif", ".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
"""Of names of still pictures that are read."""
VIDEO_SUFFIXES: frozenset[str] = frozenset({
    ".3gp", ".avi", ".flv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg",
    ".mts", ".ogv", ".ts", ".vob", ".webm", ".wmv",
})  # fmt: skip
FILM_SUFFIXES = VIDEO_SUFFIXES | {".wav", ".mp3", ".flac", ".m4a", ".aac", ".ogg"}
"""Of files by which a film is named: tools that annotate sound name its sound."""


class FileKind(NamedTuple):
    """What a file is.

    Attributes
    ----------
    name
        With its article, for messages, e.g. "a git-lfs pointer".
    remedy
        What to do where another file was expected; empty if the kind alone does not say.
    """

    name: str
    remedy: str = ""


PAGE = "a server's answer in place of the file: log in or accept its terms, then get the file itself"
PICKLE = "pickles can run code and are never opened: save arrays with numpy.save, tensors as safetensors"
UNPACK = "unpack it first"
EXCEL = "save the sheet as CSV (UTF-8)"
FETCH = "fetch the file itself: "
LIST = "name the file that it lists"
AGAIN = "get or write it again"

NPY, NPZ, HDF5, PARQUET = "a .npy array", "a .npz archive", "an HDF5 file", "a Parquet file"
SAFETENSORS, TORCH, TEXT, XML = "a safetensors file", "a PyTorch file", "a text file", "an XML file"
UTF16, MP4 = "a text file in UTF-16", "an MP4 or QuickTime film"

XML_PROLOGUE = r"(?:(?><(?:\?(?s:.*?)\?|!--(?s:.*?)--)>)\s*+)*+"
"""What may stand before the root of XML; each part ends where it first can, or time is exponential."""
_XML = rb"(?i)\s*" + XML_PROLOGUE.encode()
_ZIP = rb"PK\x03\x04.{26}.{0,300}?"
_TEXTS: tuple[tuple[bytes, str, str], ...] = (
    (rb"version https://[\w.-]+/spec/|.{0,200}\boid sha256:", "a git-lfs pointer", FETCH + "git lfs pull"),
    (rb"[^\0]{0,200}/annex/objects/", "a git-annex pointer", FETCH + "git annex get"),
    (rb"outs:\s+- ", "a DVC pointer", FETCH + "dvc pull"),
    (rb"(ccopy_reg|c[a-z_]+(\.[a-z_]+)+)\n\w+\n[pq]|\([dl]p\d+\n", "a Python pickle", PICKLE),
    (_XML + rb"<(!doctype html|html|head|body)\b", "a web page (HTML)", PAGE),
    (_XML + rb"<(error|accessdenied)\b", "a server's error message (XML)", PAGE),
    (rb"\s*\{\s*\"(error|message|detail)\"(?!.*\}\s*\n\s*\{)", "a server's error message (JSON)", PAGE),
    (_XML + rb"<MPD\b", "a list of other files (DASH)", LIST),
    (rb"\s*#EXTM3U", "a list of other files (HLS)", LIST),
    (rb"\s*ffconcat", "a list of other files (ffconcat)", LIST),
    (rb"\s*\[playlist\]", "a list of other files (PLS)", LIST),
    (rb"\s*v=0\r?\n", "a list of other files (SDP)", LIST),
    (_XML + rb"<(asx|smil|playlist)\b", "a list of other files (XML)", LIST),
    (_XML + rb"<(!DOCTYPE svg|svg)\b", "an SVG picture", ""),
    (_XML + rb"<\w", XML, ""),
    (rb"%PDF-", "a PDF document", ""),
    (rb"\{\\rtf", "an RTF document", "save it as plain text (UTF-8)"),
)  # fmt: skip
_BINARIES: tuple[tuple[bytes, str, str], ...] = (
    (rb"\x93NUMPY", NPY, ""),
    (rb"\x89HDF\r\n\x1a\n|(.{512}|.{1024}|.{2048}|.{4096})\x89HDF\r\n\x1a\n", HDF5, ""),
    (rb"PAR1", PARQUET, ""),
    (rb".{4}\0{4}\{", SAFETENSORS, ""),
    (_ZIP + rb"/(data\.pkl|data/\d|\.data/|\.format_version|byteorder)", TORCH, ""),
    (rb"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19\.", TORCH, ""),
    (_ZIP + rb"\.npy", NPZ, ""),
    (rb"PK.*?(\[Content_Types\]|xl/|opendocument\.s)", "an Excel workbook (or another office file)", EXCEL),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook (or another office file)", EXCEL),
    (rb"PK(\x03\x04|\x05\x06)", "a zip archive", UNPACK),
    (rb"\x80[\x02-\x05]|[\]}]q\0", "a Python pickle", PICKLE),
    (rb"\x1f\x8b", "a gzip archive", UNPACK),
    (rb"\xff\xfe|\xfe\xff", UTF16, "save it as UTF-8"),
    (rb"BZh\d1AY&SY", "a bzip2 archive", UNPACK),
    (rb"\xfd7zXZ\0", "an xz archive", UNPACK),
    (rb"\x28\xb5\x2f\xfd", "a Zstandard archive", UNPACK),
    (rb"\x04\x22\x4d\x18", "an LZ4 archive", UNPACK),
    (rb"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", UNPACK),
    (rb"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (rb"x[\x01^\x9c\xda]", "zlib data, such as a compressed pickle of joblib", PICKLE),
    (rb".{257}ustar", "a tar archive", UNPACK),
    (rb"ARROW1\0\0|FEA1", "an Arrow or Feather file", "save it as Parquet or CSV"),
    (rb"MATLAB 5\.0 MAT-file", "a MATLAB file", "save it with -v7.3 (HDF5), or its arrays as .npy"),
    (rb"CDF[\x01\x02\x05]", "a NetCDF file", "save its arrays as HDF5 or .npy"),
    (rb"RDX[23]\n", "an R data file", "save it as CSV or Parquet"),
    (rb"SQLite format 3\0", "an SQLite database", "export its table as CSV"),
    (rb"GGUF", "a GGUF file of quantised weights", "get the unquantised weights (safetensors)"),
    (rb"IxF[A-Z2I]", "a FAISS index", "save its vectors with numpy.save"),
    (rb"\0\x05\x16[\0\x07]", "a side file of macOS (._NAME)", "remove it; the file itself is beside it"),
    (rb"bplist00", "a property list of macOS, as iCloud leaves", "download the file in the Finder"),
    (rb"\x89PNG\r\n\x1a\n", "a PNG picture", ""),
    (rb"\xff\xd8\xff", "a JPEG picture", ""),
    (rb"GIF8[79]a", "a GIF picture", ""),
    (rb"RIFF.{4}WEBP", "a WebP picture", ""),
    (rb"BM.{4}\0{4}", "a BMP picture", ""),
    (rb"II\*\0|MM\0\*", "a TIFF picture", ""),
    (rb".{4}ftyp(heic|heix|mif1|avif)", "a HEIF picture", "save it as PNG or JPEG"),
    (rb"RIFF.{4}WAVE", "a WAV sound", ""),
    (rb"ID3|fLaC", "a sound file", ""),
    (rb".{4}(ftyp|moov|mdat|wide|free)", MP4, ""),
    (rb"\x1aE\xdf\xa3", "a Matroska or WebM film", ""),
    (rb"RIFF.{4}AVI ", "an AVI film", ""),
    (rb"FLV\x01", "a Flash film", ""),
    (rb"\0\0\x01[\xba\xb3]|G.{187}G.{187}G", "an MPEG film", ""),
    (rb"OggS", "an Ogg film or sound", ""),
    (rb"\x7fELF|MZ.{58}.{4}", "a program", ""),
)  # fmt: skip
UNKNOWN = FileKind("a file of unknown content", AGAIN)


def what(found: Path | bytes) -> FileKind:
    """Tell what a file is by its first bytes.

    Parameters
    ----------
    found
        The file, or what it begins with.

    Returns
    -------
    FileKind
        `UNKNOWN` for bytes of no known format.

    Raises
    ------
    OSError
        It cannot be read.
    """
    if isinstance(found, bytes):
        head = found[:HEAD_BYTES]
    elif found.is_dir():
        return FileKind("a folder")
    elif found.exists() and not found.is_file():
        return FileKind("no regular file", "name a file on a disk")
    else:
        with found.open("rb") as file:
            head = file.read(HEAD_BYTES)
    if not any(head):
        name = "a file of zeros" if head else "an empty file (0 bytes)"
        return FileKind(name, f"an unfinished copy or download? {AGAIN}")
    text = head.removeprefix(b"\xef\xbb\xbf")
    is_text = not any(byte < 32 and byte not in b"\t\n\v\f\r\x1b" for byte in head)
    for pattern, name, remedy in _TEXTS if is_text else (*_TEXTS, *_BINARIES):
        if re.match(pattern, text, re.DOTALL):
            return FileKind(name, remedy)
    return FileKind(TEXT) if is_text else UNKNOWN


def why_not(found: Path | bytes, wanted: str) -> str:
    """Say in one sentence why a file that a library refuses is not what was expected, and what to do.

    Parameters
    ----------
    wanted
        What was expected, as `FileKind.name` has it.
    """
    kind = what(found)
    if kind.name == wanted:
        return f"{wanted} that is damaged, cut short or of an unsupported version: {AGAIN}"
    if kind == UNKNOWN:
        return f"not {wanted}: damaged, or of another format; {AGAIN}"
    return f"this is {kind.name}, not {wanted}: {kind.remedy or f'name {wanted}'}"


def no_text(content: bytes) -> str:
    """Say why a file's bytes are no text, whatever its encoding; "" where they may be one."""
    return "" if what(content).name in {TEXT, UTF16, XML, UNKNOWN.name} else why_not(content, TEXT)


def where_damaged(error: Exception, found: Path | bytes, wanted: str) -> str:
    """Say in our words why a parser of JSON, TOML or XML refuses a text: the line, or what it is.

    Parameters
    ----------
    error
        What the parser raised: a text that cannot be decoded, a line that is damaged, or too deep a nesting.
    wanted
        What was expected, with its article.
    """
    if what(found).name not in (TEXT, XML) or isinstance(error, UnicodeDecodeError):
        return why_not(found, wanted)
    line = re.search(r"\bline (\d+)", str(error))
    if isinstance(error, RecursionError):
        return f"not {wanted}: nested too deeply"
    return f"not {wanted}: damaged{f' at line {line[1]}' if line else ''}, or cut short; {AGAIN}"
