"""Paths that lead nowhere, in a circle, to a device or to a pipe are refused in words, and at once."""

import os
import re
import threading
import time

import pytest

from sapp_ppb import files
from tests.hostile.endings import faults_of
from tests.hostile.readers import BY_NAME, INDIRECT, READERS

readers = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
# What opens a copy of the file, or looks for files beside it, is not asked about the path itself.
named = pytest.mark.parametrize(
    "reader",
    [reader for reader in READERS if reader.name not in INDIRECT],
    ids=lambda reader: reader.name,
)


@named
def test_a_file_that_is_not_there_is_said_to_be_missing(reader, tmp_path):
    (fault,) = faults_of(reader, tmp_path / reader.file_name)
    assert "there is no such file; check the path" in fault


@named
def test_a_link_that_leads_nowhere_is_a_missing_file(reader, tmp_path):
    path = tmp_path / reader.file_name
    path.symlink_to(tmp_path / "nothing")
    (fault,) = faults_of(reader, path)
    assert "there is no such file; check the path" in fault


@named
def test_links_that_lead_in_a_circle_are_refused(reader, tmp_path):
    path, other = tmp_path / reader.file_name, tmp_path / "other"
    path.symlink_to(other)
    other.symlink_to(path)
    (fault,) = faults_of(reader, path)
    assert "can not be read (Too many levels of symbolic links); check the path" in fault


@named
def test_a_name_that_no_file_system_has_is_refused(reader, tmp_path):
    path = tmp_path / ("x" * 300 + reader.file_name)
    (fault,) = faults_of(reader, path)
    assert "can not be read (File name too long); check the path" in fault


@named
def test_a_null_character_in_a_path_is_refused(reader, tmp_path):
    # In our words: those of Python differ from call to call, and from 3.12 to 3.13.
    (fault,) = faults_of(reader, tmp_path / f"a\0{reader.file_name}")
    assert "can not be read (no path holds a null character); check the path" in fault


@named
def test_a_folder_is_refused(reader, tmp_path):
    path = tmp_path / reader.file_name
    path.mkdir()
    (fault,) = faults_of(reader, path)
    assert "is a folder; name a file in it" in fault or "holds no" in fault


@named
def test_a_pipe_that_nobody_writes_into_is_empty(reader, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_WRITER_MS", 1)
    path = tmp_path / reader.file_name
    os.mkfifo(path)
    assert any("is empty" in fault or "no configuration" in fault for fault in faults_of(reader, path))


@pytest.mark.parametrize("name", ["model", "peaks of a log", "trace of ops", "table of costs"])
def test_a_pipe_with_a_writer_is_read_to_its_end(name, tmp_path):
    reader = BY_NAME[name]
    path = tmp_path / reader.file_name
    os.mkfifo(path)

    def write():
        time.sleep(0.1)  # so that the reader is there first, and waits
        path.write_bytes(reader.good[-1])

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert faults_of(reader, path) == ()
    writer.join(10)
    assert not writer.is_alive()


@named
def test_a_device_without_an_end_is_refused(reader, tmp_path):
    path = tmp_path / reader.file_name
    path.symlink_to("/dev/zero")
    (fault,) = faults_of(reader, path)
    assert "holds nothing but null bytes; is it the right file?" in fault or re.search("(is|or) no ", fault)


@readers
def test_a_good_file_is_read_through_links_and_folders_above(reader, tmp_path):
    folder = tmp_path / "a b;c" / "ü"
    folder.mkdir(parents=True)
    (folder / reader.file_name).write_bytes(reader.good[0])
    (tmp_path / reader.file_name).symlink_to(folder / reader.file_name)
    assert faults_of(reader, tmp_path / reader.file_name) == ()
    assert faults_of(reader, folder / ".." / "ü" / reader.file_name) == ()


@named
def test_a_name_that_steers_a_terminal_is_no_reason_to_fail(reader, tmp_path):
    folder = tmp_path / "\x1b[2J\u202e<b>"
    folder.mkdir()
    path = folder / reader.file_name
    path.write_bytes(reader.good[0])
    assert faults_of(reader, path) == ()
