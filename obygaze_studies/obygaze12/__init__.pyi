from . import paper as paper
from .statistics import PRINTED_COUNTS as PRINTED_COUNTS
from .statistics import Statistics as Statistics
from .statistics import count_table as count_table
from .statistics import grouped as grouped
from .statistics import printed_count_table as printed_count_table
from .statistics import statistics as statistics
