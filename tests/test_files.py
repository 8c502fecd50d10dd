"""Files are written whole or not at all."""

import os
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest

from unflip import NoiseRates
from unflip.review import Decisions, ReviewTable
from unflip.streaming import ArrayBatches, StreamingAudit

pytest.importorskip("pyarrow")

ACL = "system.posix_acl_access"
"""Attribute in which Linux keeps the access control list of a file (acl(5))."""

NOBODY = 65534
"""A user and a group without rights, by convention on Linux."""


X = np.random.default_rng(0).normal(size=(60, 1))
DATA = ArrayBatches(X, (X[:, 0] > 0).astype(int), batch_rows=30)
AUDIT = StreamingAudit("probabilistic", NoiseRates(0.1, 0.1)).fit(DATA)


class Watched(ArrayBatches):
    """Batches after the first of which something happens."""

    def __init__(self, happens):
        super().__init__(DATA.X, DATA.y, batch_rows=30)
        self.happens = happens

    def __iter__(self):
        first, *rest = super().__iter__()
        yield first
        self.happens()
        yield from rest


def write(path, data=DATA):
    AUDIT.write(data, path)


def is_new(path):
    """Whether a whole Parquet file is there."""
    content = path.read_bytes()
    return content.startswith(b"PAR1") and content.endswith(b"PAR1")


def failing(error):
    def fail():
        raise error

    return Watched(fail)


def mode(path):
    return path.stat().st_mode & 0o7777


def test_the_file_is_written_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "found.parquet"
    write(path)
    assert is_new(path)
    assert list(tmp_path.iterdir()) == [path]


def test_the_folder_is_made(tmp_path):
    write(tmp_path / "a" / "b" / "found.parquet")
    assert is_new(tmp_path / "a" / "b" / "found.parquet")


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_failure_keeps_the_old_file_and_leaves_no_temporary_one(tmp_path, monkeypatch, step):
    path = tmp_path / "found.parquet"
    path.write_text("old")
    full = OSError("disk full")

    def refuse(*_):
        raise full

    if step != "write":
        monkeypatch.setattr(os, step, refuse)
    with pytest.raises(OSError, match="disk full"):
        write(path, failing(full) if step == "write" else DATA)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="pipes and links are POSIX's")
def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(FileExistsError, match="a device, a pipe or a socket"):
            write(path)
    assert pipe.is_fifo()
    assert set(tmp_path.iterdir()) == {pipe, link}


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder" / "file")
    write(link)
    assert is_new(tmp_path / "folder" / "file")
    (tmp_path / "folder" / "file").write_text("old")
    write(link)
    assert is_new(tmp_path / "folder" / "file")
    assert link.is_symlink()


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o007, 0o660)])
def test_a_new_file_has_the_permissions_that_the_umask_gives(
    tmp_path, monkeypatch, umask, expected
):
    before = os.umask(umask)
    try:
        with monkeypatch.context() as patch:
            # the umask is the whole process's: another thread would make files without it
            patch.setattr(os, "umask", lambda _: pytest.fail("the umask was changed"))
            write(tmp_path / "page.md")
    finally:
        os.umask(before)
    assert mode(tmp_path / "page.md") == expected


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.parametrize("given", [0o600, 0o400, 0o640, 0o644, 0o666])
@pytest.mark.parametrize("by_link", [False, True])
def test_a_replaced_file_keeps_its_permissions(tmp_path, given, by_link):
    path = tmp_path / "private.csv"
    path.write_text("old")
    path.chmod(given)
    if by_link:
        (tmp_path / "link.csv").symlink_to(path)
    written = tmp_path / "link.csv" if by_link else path

    def look():
        (temporary,) = tmp_path.glob(".unflip-*")
        assert mode(temporary) == 0o600  # nobody else reads it in the meantime

    write(written, Watched(look))
    assert (is_new(path), mode(path)) == (True, given)
    assert written.is_symlink() == by_link


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_a_replaced_file_keeps_its_owner_and_group(tmp_path):
    path = tmp_path / "theirs.csv"
    path.write_text("old")
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o640)
    write(path)
    assert (is_new(path), mode(path)) == (True, 0o640)
    assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)


@pytest.fixture
def unprivileged():
    """Give a folder to a user who is not root, and be that user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(folder, NOBODY, NOBODY)
            os.setegid(NOBODY)
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
                os.setegid(0)
            folder.chmod(0o700)


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_rights_of_a_group_that_cannot_be_kept_are_not_given_to_another(unprivileged, monkeypatch):
    path = unprivileged / "page.md"
    path.write_text("old")
    path.chmod(0o664)

    def refuse(*_):
        raise PermissionError("not a member of the group")

    monkeypatch.setattr(os, "fchown", refuse)
    write(path)
    assert mode(path) == 0o604


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="access control lists are Linux's")
def test_a_replaced_file_keeps_its_access_control_list(tmp_path):
    path = tmp_path / "shared.csv"
    path.write_text("old")
    # acl(5): owner rw, user 65534 rw, group none, mask rw, others none; the mode says 660
    none = 2**32 - 1
    entries = [(1, 6, none), (2, 6, NOBODY), (4, 0, none), (16, 6, none), (32, 0, none)]
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, ACL, listed)
    except OSError as error:
        pytest.skip(f"no access control lists here: {error}")
    write(path)
    assert os.getxattr(path, ACL) == listed


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_folder_that_is_read_only_stays_as_it_was(unprivileged):
    path = unprivileged / "page.md"
    path.write_text("old")
    unprivileged.chmod(0o500)
    for name in ("page.md", "new.md", "below/new.md"):
        with pytest.raises(PermissionError):
            write(unprivileged / name)
    assert path.read_text() == "old"
    assert list(unprivileged.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="folders are synced on POSIX")
def test_the_content_is_on_disk_before_it_replaces_the_old_one_and_the_name_after(
    tmp_path, monkeypatch
):
    path, steps = tmp_path / "page.md", []
    fsync, replace = os.fsync, os.replace

    def noted_sync(handle):
        steps.append(os.fstat(handle).st_ino)
        fsync(handle)

    def noted_replace(old, new):
        steps.append("replace")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    write(path)
    assert steps == [path.stat().st_ino, "replace", tmp_path.stat().st_ino]


def test_the_name_of_a_new_file_of_decisions_is_on_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("unflip._app.review._file.sync_folder", synced.append)
    fingerprint = ReviewTable({"x": [1.0, 2.0], "y": ["a", "b"]}, "y").fingerprint
    Decisions(tmp_path / "d.sqlite", fingerprint).close()
    assert synced == [tmp_path]


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_an_interruption_while_writing_changes_nothing(tmp_path, failure):
    path = tmp_path / "page.md"
    path.write_text("old")
    path.chmod(0o600)

    with pytest.raises(type(failure)):
        write(path, failing(failure))
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
    assert os.name != "posix" or mode(path) == 0o600


def test_a_name_as_long_as_the_file_system_allows_is_written(tmp_path):
    write(tmp_path / ("x" * 255))
    assert is_new(tmp_path / ("x" * 255))
