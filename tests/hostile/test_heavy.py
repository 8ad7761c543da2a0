"""Files that are large, deep or become so: in 5 s of work and 500 MB each is read, or refused in words."""

import pytest

from tests.hostile.limits import MOST_MB, MOST_SECONDS, Limited
from tests.hostile.readers import READERS
from tests.hostile.spoiled import heavy


@pytest.fixture(scope="module")
def limited():
    process = Limited()
    yield process
    process.close()


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_heavy_files_are_read_or_refused_in_bounds(reader, limited, tmp_path):
    path, wrong = tmp_path / reader.file_name, []
    for label, content in heavy(reader):
        path.write_bytes(content)
        answer = limited.read(reader.name, path)
        if answer["said"].startswith("CRASH") or answer["seconds"] > MOST_SECONDS or answer["mb"] > MOST_MB:
            wrong.append((label, round(answer["seconds"], 1), round(answer["mb"]), answer["said"][-300:]))
    assert not wrong, wrong
