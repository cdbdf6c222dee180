from .formats import DEFAULT_RATE as DEFAULT_RATE
from .formats import FORMATS as FORMATS
from .formats import Format as Format
from .formats import export as export
from .formats import write_export as write_export
from .tiers import KINDS as KINDS
