from .backbones import Backbone as Backbone
from .backbones import backbone_names as backbone_names
from .backbones import load_backbone as load_backbone
from .errors import ObygazeError as ObygazeError
from .exchange.diff import diff as diff
from .exchange.merge import merge as merge
from .exchange.publish import pack as pack
from .exchange.publish import push as push
from .exchange.transfer import pull as pull
from .extraction import extract as extract
from .manifest import Clip as Clip
from .manifest import Codebook as Codebook
from .manifest import Manifest as Manifest
from .manifest import builtin_codebook as builtin_codebook
from .manifest import import_folder as import_folder
from .manifest import load_codebook as load_codebook
from .manifest import read_manifest as read_manifest
from .manifest import write_manifest as write_manifest
from .store.group import Group as Group
from .store.store import Store as Store
from .store.store import open_store as open_store
from .store.verification import verify as verify
from .text_search import search as search
from .video import probe as probe
from .video import read_frames as read_frames
from .video import uniform as uniform

__version__: str
