from .explained import explained_report as explained_report
from .import_segments import RECORDS as RECORDS
from .import_segments import import_mobygaze as import_mobygaze
from .tables import mobygaze_report as mobygaze_report
