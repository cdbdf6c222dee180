"""Features of frozen video models, in stores that labs can share.

Names are imported when they are first used, so that `import obygaze_features` costs nothing.

Examples
--------
>>> import obygaze_features as of
>>> of.uniform(32).record()
{'policy': 'uniform', 'n': 32}
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obygaze_features.backbones import Backbone, backbone_names, load_backbone
    from obygaze_features.errors import ObygazeError
    from obygaze_features.exchange.diff import diff
    from obygaze_features.exchange.merge import merge
    from obygaze_features.exchange.publish import pack
    from obygaze_features.exchange.push import push
    from obygaze_features.exchange.transfer import pull
    from obygaze_features.extraction import extract
    from obygaze_features.manifest import (
        Clip,
        Codebook,
        Manifest,
        builtin_codebook,
        import_folder,
        load_codebook,
        read_manifest,
        write_manifest,
    )
    from obygaze_features.store.group import Group
    from obygaze_features.store.store import Store, open_store
    from obygaze_features.store.verification import verify
    from obygaze_features.text_search import search
    from obygaze_features.video import probe, read_frames, uniform

    __version__: str

__all__ = [
    "Backbone",
    "Clip",
    "Codebook",
    "Group",
    "Manifest",
    "ObygazeError",
    "Store",
    "__version__",
    "backbone_names",
    "builtin_codebook",
    "diff",
    "extract",
    "import_folder",
    "load_backbone",
    "load_codebook",
    "merge",
    "open_store",
    "pack",
    "probe",
    "pull",
    "push",
    "read_frames",
    "read_manifest",
    "search",
    "uniform",
    "verify",
    "write_manifest",
]

_HOMES = {
    "Backbone": "backbones",
    "Clip": "manifest",
    "Codebook": "manifest",
    "Group": "store.group",
    "Manifest": "manifest",
    "ObygazeError": "errors",
    "Store": "store.store",
    "backbone_names": "backbones",
    "builtin_codebook": "manifest",
    "diff": "exchange.diff",
    "extract": "extraction",
    "import_folder": "manifest",
    "load_backbone": "backbones",
    "load_codebook": "manifest",
    "merge": "exchange.merge",
    "open_store": "store.store",
    "pack": "exchange.publish",
    "probe": "video",
    "pull": "exchange.transfer",
    "push": "exchange.push",
    "read_frames": "video",
    "read_manifest": "manifest",
    "search": "text_search",
    "uniform": "video",
    "verify": "store.verification",
    "write_manifest": "manifest",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow, and needed here alone

        return version("obygaze")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
