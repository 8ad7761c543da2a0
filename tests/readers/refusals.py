"""What a reader says of a file that it refuses."""

import warnings

import pytest

from sapp_ppb.errors import FileNote, InputError


def faults_of(read, path, *others):
    """Faults of a file, which the refusal names; notes beside them do not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileNote)
        with pytest.raises(InputError) as caught:
            read(path, *others)
    assert caught.value.where == str(path)
    return caught.value.faults
