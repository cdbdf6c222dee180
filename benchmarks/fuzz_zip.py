"""Zips that lie: one field, name or member changed, and all around it made to agree, so that it gets far."""

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

LOCAL, CENTRAL, END = "<4s2B4HL2L2H", "<4s4B4HL2L5H2L", "<4s4H2LH"
LOCAL_FIELDS = (
    *("version", "reserved", "flags", "method", "time", "date", "crc", "packed", "size"),
    *("name_length", "extra_length"),
)
CENTRAL_FIELDS = (
    *("made_by", "system", "version", "reserved", "flags", "method", "time", "date", "crc", "packed", "size"),
    *("name_length", "extra_length", "comment_length", "disk", "internal", "external", "offset"),
)
NAMES = (
    *(
        "../../outside",
        "/outside",
        "C:\\outside",
        "..\\outside",
        "data/../../outside",
        "",
        "a/",
        "x" * 3000,
    ),
    *(
        "card.json",
        "data/clips.csv",
        "data/features.zarr/zarr.json",
        "fetch.txt",
        "a\x00b",
        "\u00e9",
        ".",
        "..",
    ),
    *("tagmanifest-sha256.txt", "data/features.zarr/toy/pooled/c/0/0", "parameters.npy", "extra.npy"),
)
NUMBERS = (
    0,
    1,
    2,
    8,
    99,
    0x800,
    0xFFFF,
    0xFFFFFFFF,
    0xFFFFFFFE,
    1 << 20,
    1 << 31,
    0xA1FF << 16,
    0o40755 << 16,
)
EXTRAS = (
    b"\x01\x00\x10\x00" + b"\xff" * 16,
    b"\x01\x00\x18\x00" + struct.pack("<3Q", 1 << 60, 1 << 60, 1 << 60),
    b"\x01\x00\x08\x00" + struct.pack("<Q", 5),
    b"\x01\x00",
    b"\x75\x70\x0d\x00\x01" + b"\0" * 4 + b"../../x",
    b"\0" * 60000,
)
BOMB = zlib.compress(bytes(1 << 24), 9)[2:-4]


@dataclass(frozen=True)
class Part:
    """One member: its bytes, and what its two headers say of them against the truth."""

    name: bytes
    data: bytes
    local: dict[str, int] = field(default_factory=dict)
    central: dict[str, int] = field(default_factory=dict)
    extra: bytes = b""
    hidden: bool = False
    """Left out of the directory."""


def parts_of(data: bytes) -> list[Part]:
    """Take a stored zip without gaps apart."""
    parts = []
    at = 0
    while data[at : at + 4] == b"PK\x03\x04":
        values = struct.unpack_from(LOCAL, data, at)[1:]
        said = dict(zip(LOCAL_FIELDS, values, strict=True))
        begin = at + struct.calcsize(LOCAL)
        name = data[begin : begin + said["name_length"]]
        begin += said["name_length"] + said["extra_length"]
        parts.append(Part(name, data[begin : begin + said["size"]]))
        at = begin + said["size"]
    central = []
    while data[at : at + 4] == b"PK\x01\x02":
        said = dict(zip(CENTRAL_FIELDS, struct.unpack_from(CENTRAL, data, at)[1:], strict=True))
        central.append(
            {name: said[name] for name in ("made_by", "system", "version", "external", "time", "date")}
        )
        at += struct.calcsize(CENTRAL) + sum(said[f"{kind}_length"] for kind in ("name", "extra", "comment"))
    return [replace(part, central=said) for part, said in zip(parts, central, strict=True)]


def build(parts: list[Part], end: dict[int, int] | None = None) -> bytes:
    """Put members together, with whatever their headers claim."""
    body, directory, count = b"", b"", 0
    for part in parts:
        truth = {"crc": zlib.crc32(part.data), "packed": len(part.data), "size": len(part.data)}
        base = {"time": 0, "date": 33, "version": 20, **truth}
        lengths = {"name_length": len(part.name), "extra_length": len(part.extra)}
        offset = len(body)
        body += _packed(LOCAL, b"PK\x03\x04", LOCAL_FIELDS, base | lengths | part.local)
        body += part.name + part.extra + part.data
        if not part.hidden:
            said = base | lengths | {"offset": offset} | part.central
            directory += _packed(CENTRAL, b"PK\x01\x02", CENTRAL_FIELDS, said) + part.name + part.extra
            count += 1
    values = [0, 0, count, count, len(directory), len(body), 0]
    for place, value in (end or {}).items():
        values[place] = value
    return (
        body
        + directory
        + struct.pack(
            END, b"PK\x05\x06", *(v & (0xFFFFFFFF if i in (4, 5) else 0xFFFF) for i, v in enumerate(values))
        )
    )


def _packed(layout: str, mark: bytes, names: tuple[str, ...], said: dict[str, int]) -> bytes:
    sizes = {"B": 0xFF, "H": 0xFFFF, "L": 0xFFFFFFFF}
    kinds = [kind for count, kind in _runs(layout[3:]) for _ in range(count)]
    values = [said.get(name, 0) & sizes[kind] for name, kind in zip(names, kinds, strict=True)]
    return struct.pack(layout, mark, *values)


def _runs(layout: str) -> list[tuple[int, str]]:
    runs, number = [], ""
    for sign in layout.removeprefix("s"):
        if sign.isdigit():
            number += sign
        else:
            runs.append((int(number or 1), sign))
            number = ""
    return runs


def mutate_zip(data: bytes, rng: random.Random, mutate: Callable[[bytes, random.Random], bytes]) -> bytes:
    """Change one or two members; `mutate` changes the bytes of one."""
    parts = parts_of(data)
    end: dict[int, int] = {}
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(parts))
        part = parts[at]
        match rng.randrange(10):
            case 0 | 1 | 2:
                parts[at] = replace(part, data=mutate(part.data or b"\0", rng))
            case 3:
                folder = part.name.partition(b"/")[0] + b"/" if b"/" in part.name else b""
                name = (b"" if rng.random() < 0.3 else folder) + rng.choice(NAMES).encode()
                parts[at] = replace(part, name=name)
            case 4:
                which = rng.choice(CENTRAL_FIELDS)
                parts[at] = replace(part, central=part.central | {which: rng.choice(NUMBERS)})
            case 5:
                which = rng.choice(LOCAL_FIELDS)
                parts[at] = replace(part, local=part.local | {which: rng.choice(NUMBERS)})
            case 6:
                parts[at] = replace(part, extra=rng.choice(EXTRAS))
            case 7:
                again = replace(part, hidden=rng.random() < 0.3)
                parts.insert(rng.randrange(len(parts) + 1), again)
            case 8:
                said = {"method": 8, "size": 1 << 24, "packed": len(BOMB), "crc": zlib.crc32(bytes(1 << 24))}
                parts[at] = replace(part, data=BOMB, local=said, central=part.central | said)
            case _:
                end[rng.randrange(7)] = rng.choice(NUMBERS)
    if rng.random() < 0.1:  # every member claims the bytes of one: the overlap of a bomb
        first = rng.randrange(len(data))
        parts = [replace(part, central=part.central | {"offset": first}) for part in parts]
    return build(parts, end)
