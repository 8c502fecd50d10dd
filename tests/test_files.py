"""Files are written whole or not at all."""

import os

import pytest

from unflip._files import write_whole


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


@pytest.mark.parametrize("failing", ["write", "replace"])
def test_a_failure_keeps_the_old_file_and_leaves_no_temporary_one(tmp_path, monkeypatch, failing):
    path = tmp_path / "page.md"
    write_whole(path, "old")
    text, error = "new", OSError
    if failing == "write":
        text, error = "new \ud800", UnicodeEncodeError  # half a character

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
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
def test_the_file_has_the_permissions_that_the_umask_gives(tmp_path, umask, expected):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "page.md", "x")
        assert os.umask(umask) == umask  # looked at, not changed
    finally:
        os.umask(before)
    assert (tmp_path / "page.md").stat().st_mode & 0o777 == expected
