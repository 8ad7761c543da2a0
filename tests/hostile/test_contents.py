"""Whatever a file holds, it is read or refused in words; nothing else happens."""

import pytest

from tests.hostile.endings import faults_of_content
from tests.hostile.readers import INDIRECT, READERS, Reader
from tests.hostile.spoiled import ODD, encodings, replaced, truncated, with_numbers

readers = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
# A YAML takes 20 ms, so not every odd value is tried in every place here; soak/ tries them all.
ODD_PER_PLACE, MOST_PLACES, PIECES = 2, 10, 12


@readers
def test_good_files_are_read(reader, tmp_path):
    for good in reader.good:
        assert faults_of_content(reader, good, tmp_path) == ()


# Encodings that only look like other ones, which a reader may read.
HARMLESS = {"byte order mark", "CRLF", "CR", "next-line characters", "twice", "Latin-1", "control characters"}
TEXT = {"nothing", "blanks", "UTF-16", "UTF-32", "overlong UTF-8", "surrogate as UTF-8", "NUL bytes"}


@readers
def test_other_encodings_are_read_or_refused(reader, tmp_path):
    ends = {label: faults_of_content(reader, text, tmp_path) for label, text in encodings(reader.good[0])}
    refused = {label for label, faults in ends.items() if faults}
    if reader.name not in INDIRECT:  # what can not be gone on with begins anew, or is not known
        assert refused >= {"nothing", "blanks", "byte order mark alone", "UTF-16", "NUL bytes", "a pickle"}
        assert refused >= {"a broken gzip", "a ZIP"}


@readers
def test_a_file_that_is_cut_off_is_read_or_refused(reader, tmp_path):
    for _, text in truncated(reader.good[0], PIECES):
        faults_of_content(reader, text, tmp_path)


@readers
@pytest.mark.parametrize(
    "odd", ["-1", "0", "-0", "1e400", "NaN", "-Infinity", "1000000", '"x"', "null", "[]", "9" * 5000]
)
def test_a_file_of_odd_numbers_is_read_or_refused(reader, odd, tmp_path):
    if reader.form != "gzip":
        faults_of_content(reader, with_numbers(reader.good[0], odd)[1], tmp_path)


@readers
def test_odd_values_in_every_place_are_read_or_refused(reader: Reader, tmp_path):
    if reader.form == "gzip":
        return
    for number, (_, texts) in enumerate(replaced(reader, reader.good[0], MOST_PLACES)):
        odd = [texts[(ODD_PER_PLACE * number + more) % len(ODD)] for more in range(ODD_PER_PLACE)]
        for text in [*odd, *texts[len(ODD) :]]:  # and without the place, and with it twice
            faults_of_content(reader, text, tmp_path)
