"""A file is written whole or not at all."""

import errno
import os
import stat

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.files import whole_file, write_text_atomic


def test_text_is_written_as_it_is_and_folders_are_made(tmp_path):
    path = tmp_path / "a" / "b" / "file.json"
    write_text_atomic(path, "é\r\n\n")
    assert path.read_bytes() == b"\xc3\xa9\r\n\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]


def test_a_file_that_exists_is_kept_unless_forced(tmp_path):
    path = tmp_path / "file.json"
    path.write_text("old")
    with pytest.raises(
        InputError, match=r"file.json: the file exists; give --force \(force=True\) to replace it"
    ):
        write_text_atomic(path, "new")
    assert path.read_text() == "old"
    write_text_atomic(path, "new", force=True)
    assert path.read_text() == "new"


def test_a_new_file_has_the_permissions_of_any_new_file_and_an_old_one_keeps_its_own(tmp_path):
    usual, path = tmp_path / "usual", tmp_path / "file.json"
    usual.touch()
    write_text_atomic(path, "x")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    path.chmod(0o640)
    write_text_atomic(path, "y", force=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_symbolic_link_stays_one(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text_atomic(link, "new", force=True)
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_is_no_target(tmp_path, force):
    with pytest.raises(InputError, match="is a folder; name a file in it"):
        write_text_atomic(tmp_path, "x", force)


def test_a_device_is_never_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="is no ordinary file; choose another path"):
        write_text_atomic(pipe, "x", force=True)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_parent_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(InputError, match=r"can not be written|a file stands where a folder is needed"):
        write_text_atomic(tmp_path / "file" / "inner.json", "x")


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_a_path_that_can_not_exist_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="can not be written"):
        write_text_atomic(tmp_path / name, "x")


def test_a_name_as_long_as_the_file_system_allows_is_written(tmp_path):
    path = tmp_path / ("x" * 255)
    write_text_atomic(path, "x")
    assert path.read_text() == "x"


def test_text_that_is_no_unicode_is_refused(tmp_path):
    with pytest.raises(InputError, match="can not be written as UTF-8"):
        write_text_atomic(tmp_path / "file.json", "\ud800")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failing):
    path = tmp_path / "file.json"
    path.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(*(("os.fsync", full) if failing == "fsync" else ("pathlib.Path.replace", full)))
    with pytest.raises(InputError, match=r"can not be written \(No space left on device\)"):
        write_text_atomic(path, "new", force=True)
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("file.json", "old")]


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text_atomic(tmp_path / "file.json", "new")
    assert not list(tmp_path.iterdir())


def test_nothing_is_seen_of_a_file_before_it_is_whole(tmp_path):
    path = tmp_path / "file.json"
    with whole_file(path) as file:
        file.write(b"ab")
        file.flush()
        assert not path.exists()
        file.write(b"c")
    assert path.read_bytes() == b"abc"


def test_a_fault_while_writing_leaves_nothing_behind_and_keeps_its_own_name(tmp_path):
    with pytest.raises(ValueError, match="mine"), whole_file(tmp_path / "file.json") as file:  # noqa: PT012
        file.write(b"ab")
        raise ValueError("mine")
    assert not list(tmp_path.iterdir())
