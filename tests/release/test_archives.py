"""What the comparison of two builds finds."""

import io
import tarfile
import zipfile

import pytest

from release.archives import differences, misplaced


@pytest.fixture
def sdist(tmp_path):
    """Write an sdist of one file, with its time."""

    def write(name, text, time=0):
        path = tmp_path / name
        with tarfile.open(path, "w:gz") as tar:
            entry = tarfile.TarInfo("sapp_ppb-1/module.py")
            entry.size, entry.mtime = len(text), time
            tar.addfile(entry, io.BytesIO(text.encode()))
        return path

    return write


def wheel(path, *names):
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(zipfile.ZipInfo(name), name)
    return path


def test_equal_builds_have_no_differences(tmp_path):
    assert differences(wheel(tmp_path / "a.whl", "x"), wheel(tmp_path / "b.whl", "x")) == []


def test_files_of_one_build_only_are_named(tmp_path):
    one, other = wheel(tmp_path / "a.whl", "x", "y"), wheel(tmp_path / "b.whl", "y", "z")
    assert differences(one, other) == [f"x: only in {one}", f"z: only in {other}"]


def test_another_time_of_the_same_text_is_a_difference(sdist):
    assert differences(sdist("a.tar.gz", "x", 1), sdist("b.tar.gz", "x", 2)) == [
        "module.py: not the same in both"
    ]


def test_another_order_of_the_same_files_is_a_difference(tmp_path):
    one, other = wheel(tmp_path / "a.whl", "x", "y"), wheel(tmp_path / "b.whl", "y", "x")
    assert differences(one, other) == ["a.whl: the same files, packed in another order or by another program"]


def test_what_lacks_and_what_does_not_belong_is_named(sdist):
    assert misplaced(sdist("a.tar.gz", "x"), {"README.md"}) == [
        "a.tar.gz lacks README.md",
        "a.tar.gz should not hold module.py",
    ]
