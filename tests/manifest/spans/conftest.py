"""Files of tools, read as one import."""

from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans


@pytest.fixture
def import_files(tmp_path):
    """Return a function that imports files, {name: content}, at 25 frames a second.

    It returns the clips, and the notices and the reasons of records left out as one text of lines.
    """

    def import_files(files, **options):
        paths = []
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            paths.append(path)
        imported = import_spans(paths, tmp_path, **{"rate": Fraction(25)} | options)
        messages = list(imported.notices)
        for account in imported.accounts:
            assert account.seen == account.used + account.n_left_out, "a record is neither used nor left out"
            messages += [reason for _, reason in account.left_out]
        return list(imported.manifest), "\n".join(messages)

    return import_files


@pytest.fixture
def refusal_of(import_files):
    """Return a function that imports files as `import_files` does, and is refused; it returns the error."""

    def refusal_of(files, **options):
        with pytest.raises(ManifestError) as refusal:
            import_files(files, **options)
        return refusal.value

    return refusal_of
