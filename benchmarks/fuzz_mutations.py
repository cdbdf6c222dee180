"""Files changed a little: bytes, and values in JSON."""

import contextlib
import copy
import io
import json
import random
import zipfile

from obygaze_features.lines import encode_line

ODD = (
    *(None, True, -1, 0, 1, 2**31, 2**40, 2**63, -(2**70), 10**400, 1.5, 1e308),
    *("", "NaN", "x" * 5000, "../../../etc", "/etc/passwd", "\ud800", "\x00", "float64", "object", "gzip"),
    *([], {}, [[]], [2**40, 2**40], [0], [-1], {"a": {}}, [None]),
)
PIECES = (
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b",", b";", b"=", b"{", b"}", b"null", b"../"),
    *(b"9" * 5000, b"-1", b"nan", b"inf", b"1e999", b"\xe2\x80\xa8", b"[" * 3000),
)


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change a file a little; mostly by its structure, where it is JSON."""
    if data.startswith(b"{") and rng.random() < 0.7:
        with contextlib.suppress(ValueError, IndexError, KeyError):  # too damaged to be taken apart
            return mutate_json(data, rng)
    if data.startswith(b"PK") and rng.random() < 0.7:
        return mutate_member(data, rng)
    changed = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(6):
            case 0:
                changed[at : at + rng.randint(1, 40)] = b""
            case 1:
                changed[at:at] = rng.choice(PIECES)
            case 2 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 3:
                begin = rng.randrange(len(changed) + 1)
                changed[at:at] = changed[begin : begin + rng.randint(1, 200)]
            case 4 if rng.random() < 0.2:
                del changed[at:]
            case _:
                changed[at : at + 4] = rng.randbytes(4)
    return bytes(changed)


def mutate_member(data: bytes, rng: random.Random) -> bytes:
    """Change one file of a zip, which stays whole: a damaged one is hardly ever read."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(made, "w") as after:
        names = before.namelist()
        chosen = rng.choice(names)
        for name in names:
            content = before.read(name)
            after.writestr(name, mutate(content, rng) if name == chosen else content)
    return made.getvalue()


def mutate_json(data: bytes, rng: random.Random) -> bytes:
    """Replace one value anywhere in a JSON document, or in one line of them (with a right checksum)."""
    if data.startswith(b'{"crc32"'):
        lines = data.splitlines()
        at = rng.randrange(len(lines))
        entry = json.loads(lines[at])["entry"]
        entry = replace_one(entry, rng)
        try:
            lines[at] = encode_line(entry).rstrip(b"\n")
        except UnicodeEncodeError:
            return data
        return b"\n".join(lines) + b"\n"
    document = json.loads(data)
    if rng.random() < 0.2:
        return json.dumps(
            resized(document, rng.choice((2, 3, 4, 5)), rng.choice((2**27, 2**31, 2**40)))
        ).encode()
    for _ in range(rng.randint(1, 3)):
        document = replace_one(document, rng)
    return json.dumps(document).encode()


def resized(node: object, old: int, new: int) -> object:
    """Say another size everywhere: metadata that agree with themselves get further."""
    if isinstance(node, dict):
        return {key: resized(item, old, new) for key, item in node.items()}
    if isinstance(node, list):
        return [resized(item, old, new) for item in node]
    return new if node == old and not isinstance(node, bool) else node


def replace_one(document: object, rng: random.Random) -> object:
    """Walk down at random and replace what is there."""
    document = copy.deepcopy(document)
    node = document
    holder = None
    key = None
    while isinstance(node, dict | list) and node and rng.random() < 0.85:
        holder = node
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        node = node[key]
    if holder is None:
        return rng.choice(ODD)
    if isinstance(holder, dict) and rng.random() < 0.15:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(rng.choice(ODD))
    return document
