"""The zip archive of a model file: nothing is read from it that is larger than it may be.

All limits grow with the size of the file, so that whoever has room for the file can load it.
:func:`~unflip._app.persistence.save_model` stays within them.
"""

import io
import json
import math
import re
import zipfile
from collections.abc import Iterable
from typing import Any

from numpy.lib import format as npy

SCHEMA_FILE = "schema.json"
NOTE = "unflip.json"

LEAST_BYTES = 16 * 2**20
BYTES_PER_BYTE = 3
"""All members together may take so many bytes, and this many more per byte of the file."""

LEAST_TEXT = 8 * 2**20
"""A JSON text may have so many bytes, and one more per byte of the file."""

LEAST_VALUES = 200_000
BYTES_PER_VALUE = 8
"""A JSON text may hold so many values, and one more for each of these bytes of the file: a value
takes up to 80 bytes of memory."""

LEAST_NODES = 30_000
BYTES_PER_NODE = 100
"""A schema may hold so many nodes, and one more for each of these bytes of the file: skops takes up
to 5000 bytes of memory for each."""

LARGEST_ITEM = 2**20
"""Bytes of an array's item: the longest of several texts sets it."""

MEMBER = re.compile(r"(schema|unflip)\.json|[\w-]+\.(npy|npz|bin)", re.ASCII)
"""Names of members: no folders, no way up, nothing to be read in another way."""


class BrokenFileError(ValueError):
    """What a file holds is not what a model file holds. Says why, without the file's name."""


class Archive:
    """The members of a model file.

    Parameters
    ----------
    data : bytes
        The file's content.
    """

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        members = self._zip.infolist()
        self._members = {member.filename: member for member in members}
        if len(self._members) < len(members):
            raise BrokenFileError("two members have the same name")
        strange = [name for name in self._members if not MEMBER.fullmatch(name)]
        if strange:
            raise BrokenFileError(f"a member has the name {strange[0][:80]!a}")
        total = sum(member.file_size for member in members)
        self.check("bytes of members", total, LEAST_BYTES + BYTES_PER_BYTE * self.size)

    def check(self, what: str, found: int, allowed: int) -> None:
        """Refuse more of something than a file of this size may have."""
        if found > allowed:
            raise BrokenFileError(
                f"it has {found:,} {what}, and a file of {self.size:,} bytes may have {allowed:,}"
            )

    def read(self, name: str) -> bytes:
        """Return what a member holds, which is exactly as much as the archive says."""
        member = self._members[name]
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BrokenFileError(f"member {name} is compressed in an unknown way")
        with self._zip.open(member) as file:
            # without a number of bytes, it would be unpacked whole before its size is checked
            content = file.read(member.file_size)
        if len(content) != member.file_size:
            raise BrokenFileError(f"member {name} ends too early")
        return content

    def read_json(self, name: str) -> Any:
        """Return the values of a member in JSON."""
        self.check(f"bytes of {name}", self._members[name].file_size, LEAST_TEXT + self.size)
        text = self.read(name)
        n_values = sum(text.count(mark) for mark in (b",", b"[", b"{"))
        self.check(f"values in {name}", n_values, LEAST_VALUES + self.size // BYTES_PER_VALUE)
        return json.loads(text)

    def read_array(self, name: str) -> bytes:
        """Return a member in numpy's format, whose array is as large as the member, no larger."""
        content = self.read(name)
        stream = io.BytesIO(content)
        version = npy.read_magic(stream)
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, _, dtype = read_header[version](stream)
        n_items = math.prod(shape)
        if (
            dtype.hasobject
            or min(shape, default=0) < 0
            or n_items > len(content)  # of items without bytes there could be any number
            or dtype.itemsize > LARGEST_ITEM
            or stream.tell() + n_items * dtype.itemsize != len(content)
        ):
            raise BrokenFileError(f"the array {name} is not what its header says")
        return content


def pack(
    members: Iterable[tuple[str, bytes]], *, compression: int = zipfile.ZIP_STORED
) -> io.BytesIO:
    """Return an archive of the members, which are taken one by one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    buffer.seek(0)
    return buffer
