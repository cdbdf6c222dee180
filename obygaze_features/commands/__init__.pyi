from .manifest_output import PATH as PATH
from .store_output import LOCAL as LOCAL
