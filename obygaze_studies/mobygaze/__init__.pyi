from .importer import RECORDS as RECORDS
from .importer import import_mobygaze as import_mobygaze
from .tables import mobygaze_report as mobygaze_report
