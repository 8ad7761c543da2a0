"""Every heavy file of every reader, as long as ``SAPP_PPB_SOAK_SECONDS`` says; all take 10 minutes."""

import os
import time
from collections import Counter
from itertools import zip_longest

from soak.tables import counted
from tests.hostile.limits import Limited, beyond
from tests.hostile.readers import READERS
from tests.hostile.spoiled import heavy

# What is counted, in the order of the table; what begins with "of them" is a part of the row above.
FILES = (
    READ_BY := "readers",
    TRIED := "heavy files",
    REFUSED := "of them refused in words",
    READ := "of them read",
    BEYOND := "findings",
)


def test_heavy_files_are_read_or_refused_in_bounds(tmp_path, capsys):
    process, wrong, counts = Limited(), [], Counter({READ_BY: len(READERS)})
    most_s = most_mb = 0.0
    end = time.monotonic() + float(os.environ.get("SAPP_PPB_SOAK_SECONDS", "60"))
    rounds = zip_longest(*(((reader, case) for case in heavy(reader)) for reader in READERS))
    for reader, (label, content) in (entry for one in rounds for entry in one if entry is not None):
        if time.monotonic() > end:
            break
        path = tmp_path / reader.file_name
        path.write_bytes(content)
        answer = process.read(reader.name, path)
        most_s, most_mb = max(most_s, answer["seconds"]), max(most_mb, answer["mb"])
        fault = beyond(answer)
        counts[TRIED] += 1
        counts[BEYOND if fault else REFUSED if answer["said"] else READ] += 1
        if fault:
            wrong.append((reader.name, label, fault))
    process.close()
    with capsys.disabled():
        print(
            f"\n{counted(FILES, counts)}\n\n"
            f"The longest took {most_s:.1f} s of work, the largest {most_mb:.0f} MB."
        )
    assert not wrong, wrong
