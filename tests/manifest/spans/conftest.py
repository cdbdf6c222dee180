"""Files of tools, read as one import."""

from fractions import Fraction

import pytest

from obygaze_features.manifest import import_spans


@pytest.fixture
def read(tmp_path):
    """Import files by name: the clips, and all that is said of them."""

    def read(files, **options):
        paths = [tmp_path / name for name in files]
        for path, content in zip(paths, files.values(), strict=True):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        imported = import_spans(paths, tmp_path, **{"rate": Fraction(25)} | options)
        for account in imported.accounts:
            assert account.seen == account.used + account.n_left_out
        left = [why for account in imported.accounts for _, why in account.left_out]
        return list(imported.manifest), "\n".join([*imported.notices, *left])

    return read
