from .manifest_file import complete_codebook as complete_codebook
from .manifest_file import folder_for as folder_for
from .manifest_file import write_imported as write_imported
from .manifest_import import roles_of_tiers as roles_of_tiers
