from .manifest_file import codebook_option as codebook_option
from .manifest_file import folder_for as folder_for
from .manifest_file import manifest_output as manifest_output
from .manifest_file import write_imported as write_imported
