from .decided import Decided as Decided
from .registry import DEFAULT_RATE as DEFAULT_RATE
from .registry import FORMATS as FORMATS
from .registry import Format as Format
from .registry import collect as collect
from .registry import export as export
from .registry import write_export as write_export
from .tiers import KINDS as KINDS
