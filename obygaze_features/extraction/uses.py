"""What a machine is for, and what each use needs of an install."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Use = Literal["laptop", "extract", "film", "share"]


@dataclass(frozen=True, slots=True)
class Needs:
    """What one kind of work needs of an install.

    Parameters
    ----------
    work
        What is done, in a few words.
    extras
        Extras without which nothing of it runs.
    helpful
        Extras without which a part of it is missing.
    networks
        Whether networks run on this machine.
    """

    work: str
    extras: tuple[str, ...]
    helpful: tuple[str, ...]
    networks: bool = False


USES: Mapping[Use, Needs] = MappingProxyType(
    {
        "laptop": Needs("evaluate a store that is there", (), ("figures", "xlsx", "skops")),
        "extract": Needs(
            "extract features of videos",
            ("video",),  # without torch, `descriptors` still runs
            ("extract", "onnx", "openclip", "ray", "sound", "xlsx"),
            networks=True,
        ),
        "film": Needs(
            "score whole films and write their pages (to judge them in the browser: obygaze[workspace])",
            ("video",),
            ("workspace", "extract", "onnx", "sound", "shots", "interchange"),
            networks=True,
        ),
        "share": Needs("send stores to S3 or the Hub, read many over HTTP", ("remote",), ()),
    }
)
"""Use -> what it needs; the base install is needed by all."""
