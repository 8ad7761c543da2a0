"""Every heavy file of every reader, as long as ``SAPP_PPB_SOAK_SECONDS`` says; all take 10 minutes."""

import os
import time
from itertools import zip_longest

from tests.hostile.limits import Limited, beyond
from tests.hostile.readers import READERS
from tests.hostile.spoiled import heavy


def test_heavy_files_are_read_or_refused_in_bounds(tmp_path, capsys):
    process, wrong, tried = Limited(), [], 0
    end = time.monotonic() + float(os.environ.get("SAPP_PPB_SOAK_SECONDS", "60"))
    rounds = zip_longest(*(((reader, case) for case in heavy(reader)) for reader in READERS))
    for reader, (label, content) in (entry for one in rounds for entry in one if entry is not None):
        if time.monotonic() > end:
            break
        path = tmp_path / reader.file_name
        path.write_bytes(content)
        tried += 1
        if fault := beyond(process.read(reader.name, path)):
            wrong.append((reader.name, label, fault))
    process.close()
    with capsys.disabled():
        print(f"{tried:,} heavy files for {len(READERS)} readers, {len(wrong)} findings")
    assert not wrong, wrong
