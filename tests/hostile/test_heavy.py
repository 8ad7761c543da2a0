"""Files that are large, deep or become so: in 5 s of work and 500 MB each is read, or refused in words."""

from itertools import islice

import pytest

from tests.hostile.limits import Limited, beyond
from tests.hostile.readers import READERS
from tests.hostile.spoiled import heavy

FIRST = 4  # heavy files of each reader; soak/test_heavy_readers.py tries them all


@pytest.fixture(scope="module")
def limited():
    process = Limited()
    yield process
    process.close()


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_heavy_files_are_read_or_refused_in_bounds(reader, limited, tmp_path):
    path, wrong = tmp_path / reader.file_name, {}
    for label, content in islice(heavy(reader), FIRST):
        path.write_bytes(content)
        if fault := beyond(limited.read(reader.name, path)):
            wrong[label] = fault
    assert not wrong
