"""Files are written whole or not at all."""

import os
import struct
import tempfile
from pathlib import Path

import pytest

from unflip._utils.files import ACL, whole_file, write_whole
from unflip.review import Decisions, ReviewTable

NOBODY = 65534
"""A user and a group without rights, by convention on Linux."""


def mode(path):
    return path.stat().st_mode & 0o7777


def test_the_text_is_written_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "page.md"
    write_whole(path, "rate ρ ± 0.1\n")
    assert path.read_text(encoding="utf-8") == "rate ρ ± 0.1\n"
    assert list(tmp_path.iterdir()) == [path]


def test_the_folder_is_made(tmp_path):
    write_whole(tmp_path / "a" / "b" / "page.md", "x")
    assert (tmp_path / "a" / "b" / "page.md").read_text() == "x"


def test_an_old_file_is_replaced(tmp_path):
    path = tmp_path / "page.md"
    write_whole(path, "a long old text")
    write_whole(path, "new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
def test_a_failure_keeps_the_old_file_and_leaves_no_temporary_one(tmp_path, monkeypatch, failing):
    path = tmp_path / "page.md"
    write_whole(path, "old")
    text, error = "new", OSError
    if failing == "write":
        text, error = "new \ud800", UnicodeEncodeError  # half a character

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync" if failing == "fsync" else "replace", refuse)
    with pytest.raises(error):
        write_whole(path, text)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="pipes and links are POSIX's")
def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(FileExistsError, match="a device, a pipe or a socket"):
            write_whole(path, "x")
    assert pipe.is_fifo()
    assert set(tmp_path.iterdir()) == {pipe, link}


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")
def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder" / "file")
    for text in ("made", "replaced"):
        write_whole(link, text)
        assert (tmp_path / "folder" / "file").read_text() == text
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
            write_whole(tmp_path / "page.md", "x")
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
    with whole_file(written) as temporary:
        assert mode(temporary) == 0o600  # nobody reads it in the meantime
        temporary.write_text("new")
    assert (path.read_text(), mode(path)) == ("new", given)
    assert written.is_symlink() == by_link


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_a_replaced_file_keeps_its_owner_and_group(tmp_path):
    path = tmp_path / "theirs.csv"
    path.write_text("old")
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o640)
    write_whole(path, "new")
    assert (path.read_text(), mode(path)) == ("new", 0o640)
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
    write_whole(path, "new")
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
    write_whole(path, "new")
    assert os.getxattr(path, ACL) == listed


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_folder_that_is_read_only_stays_as_it_was(unprivileged):
    path = unprivileged / "page.md"
    path.write_text("old")
    unprivileged.chmod(0o500)
    for name in ("page.md", "new.md", "below/new.md"):
        with pytest.raises(PermissionError):
            write_whole(unprivileged / name, "new")
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
    write_whole(path, "x")
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

    def half_written():
        with whole_file(path) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(type(failure)):
        half_written()
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
    assert os.name != "posix" or mode(path) == 0o600


def test_a_name_as_long_as_the_file_system_allows_is_written(tmp_path):
    write_whole(tmp_path / ("x" * 255), "x")
    assert (tmp_path / ("x" * 255)).read_text() == "x"
