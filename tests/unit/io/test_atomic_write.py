"""Files that are written whole or not at all: on disk before they replace others, and nothing left of killed runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from priorshift.errors import InputError
from priorshift.io.files import atomic_write
from priorshift.io.temporary_folders import temporary_folder

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals and permissions")
_WRITER = """
import sys, time
from priorshift.io.files import atomic_write
with atomic_write(sys.argv[1]) as draft:
    draft.write_text("half")
    print(draft, flush=True)
    sys.stdin.read()
"""


def writer(path):
    """Start a process that is in the middle of writing a file; return it with the path of the draft."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return process, Path(process.stdout.readline().strip())


def end(process, number=signal.SIGKILL):
    process.send_signal(number)
    process.communicate()


def test_a_file_and_its_name_are_on_disk_before_and_after_it_replaces_another(tmp_path, monkeypatch):
    path, done = tmp_path / "a", []
    path.write_text("old")
    sync, replace = os.fsync, os.replace

    def watch_sync(descriptor):
        status = os.fstat(descriptor)
        done.append((status.st_ino, status.st_size if status.st_ino != tmp_path.stat().st_ino else None))
        sync(descriptor)

    def watch_replace(draft, final):
        done.append("replaced")
        replace(draft, final)

    monkeypatch.setattr(os, "fsync", watch_sync)
    monkeypatch.setattr(os, "replace", watch_replace)
    with atomic_write(path) as draft:
        draft.write_text("new content")
    expected = [(path.stat().st_ino, len("new content")), "replaced"]
    if sys.platform != "win32":
        expected.append((tmp_path.stat().st_ino, None))
    assert done == expected and path.read_text() == "new content"


def test_a_file_that_cannot_reach_the_disk_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("old")

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match=r"No space left"), atomic_write(path) as draft:
        draft.write_text("new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a"]


def test_errors_of_other_files_are_not_errors_of_writing(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(FileNotFoundError, match=r"input\.csv"), atomic_write(path):
        (tmp_path / "input.csv").read_text()
    with pytest.raises(InputError, match=r"^Cannot write .*: No such file"), atomic_write(path) as draft:
        (draft.parent / "folder" / "b").write_text("new")
    with pytest.raises(InputError, match=r"^Cannot write .*: No such file"), atomic_write(path):
        pass  # no draft was written
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("name", ["lock", "draft", "a" * 255])
def test_a_file_may_have_any_name(name, tmp_path):
    for text in ("one", "two"):
        with atomic_write(tmp_path / name) as draft:
            draft.write_text(text)
        assert (tmp_path / name).read_text() == text and os.listdir(tmp_path) == [name]


@posix
def test_what_a_killed_run_left_is_deleted_by_the_next_one(tmp_path):
    process, draft = writer(tmp_path / "a")
    assert draft.read_text() == "half" and draft.relative_to(tmp_path).parts[0].startswith(".priorshift-draft-")
    assert oct(draft.parents[1].stat().st_mode & 0o777) == "0o700"
    end(process)
    assert draft.exists()
    with atomic_write(tmp_path / "b") as other:
        other.write_text("whole")
    assert os.listdir(tmp_path) == ["b"]


@posix
def test_what_a_living_run_writes_is_left_alone(tmp_path):
    process, draft = writer(tmp_path / "a")
    try:
        with atomic_write(tmp_path / "b") as other:
            other.write_text("whole")
        assert draft.read_text() == "half"
    finally:
        process.communicate(timeout=30)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"] and (tmp_path / "a").read_text() == "half"


@posix
def test_only_own_folders_are_deleted_and_no_link_is_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "lock").write_text("1")
    (outside / "rows").write_text("rows")
    place = tmp_path / "place"
    place.mkdir()
    (place / ".priorshift-draft-link").symlink_to(outside, target_is_directory=True)
    (place / ".priorshift-draft-file").write_text("a file")
    (place / ".priorshift-other").mkdir()
    new = place / ".priorshift-draft-new"  # has no lock yet
    new.mkdir()
    about_to_lock = place / ".priorshift-draft-empty"  # has one that is not taken yet
    about_to_lock.mkdir()
    (about_to_lock / "lock").touch()
    linked = place / ".priorshift-draft-linked"  # its lock is a link
    linked.mkdir()
    (linked / "lock").symlink_to(outside / "lock")
    left = place / ".priorshift-draft-left"
    left.mkdir()
    (left / "lock").write_text("1")
    (left / "elsewhere").symlink_to(outside, target_is_directory=True)
    before = set(os.listdir(place))

    def write():
        with atomic_write(place / "a") as draft:
            draft.write_text("1")
        return before - set(os.listdir(place))

    assert write() == {left.name}
    for folder in (new, about_to_lock, linked):
        os.utime(folder, (0, 0))
    assert write() == {left.name, new.name, about_to_lock.name}
    assert sorted(os.listdir(outside)) == ["lock", "rows"]


def test_folders_that_cannot_be_locked_are_made_and_never_taken_for_left_over(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def fail(*args):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    with temporary_folder("a-", tmp_path) as first, temporary_folder("a-", tmp_path) as second:
        os.utime(first, (0, 0))
        with temporary_folder("a-", tmp_path):
            assert first.exists() and second.exists()
    assert not os.listdir(tmp_path)
