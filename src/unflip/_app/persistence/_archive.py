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

import numpy as np
from numpy.lib import format as npy

from unflip._utils.typing import Array

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

LEAST_MEMBERS = 10_000
BYTES_PER_MEMBER = 200
"""An archive may have so many members, and one more for each of these bytes of the file: zipfile
takes about 700 bytes of memory for each, and an entry of the directory as few as 46 of the file."""

ENTRY = b"PK\x01\x02"
"""How an entry of the archive's directory begins."""

OTHER = "classifier.skops"
"""The member that holds a classifier of another package, an archive of skops."""

SCHEMA = "schema.json"
"""The member of an archive of skops that says of which objects it consists."""

MEMBER = re.compile(r"unflip\.json|classifier\.skops|[a-z0-9_]{1,60}\.npy", re.ASCII)
"""Names of members: no folders, no way up, nothing to be read in another way."""


class BrokenFileError(ValueError):
    """What a file holds is not what a model file holds. Says why, without the file's name."""


class Archive:
    """The members of a model file, or of an archive in it, for which the file's size counts."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self.size = len(data) if size is None else size
        self._read: set[str] = set()
        # zipfile reads the whole directory at once, whatever the number of entries that it states
        n_members = data.count(ENTRY)
        self.check("members", n_members, LEAST_MEMBERS + self.size // BYTES_PER_MEMBER)
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        members = self._zip.infolist()
        self._members = {member.filename: member for member in members}
        if len(self._members) < len(members):
            raise BrokenFileError("two members have the same name")
        total = sum(member.file_size for member in members)
        self.check("bytes of members", total, LEAST_BYTES + BYTES_PER_BYTE * self.size)

    def check_names(self) -> None:
        """Refuse members of other names than model files have."""
        strange = [name for name in self._members if not MEMBER.fullmatch(name)]
        if strange:
            raise BrokenFileError(f"a member has the name {strange[0][:80]!a}")

    def check(self, what: str, found: int, allowed: int) -> None:
        """Refuse more of something than a file of this size may have."""
        if found > allowed:
            raise BrokenFileError(
                f"it has {found:,} {what}, and a file of {self.size:,} bytes may have {allowed:,}"
            )

    def read(self, name: str) -> bytes:
        """Return what a member holds, which is exactly as much as the archive says."""
        if name not in self._members:
            raise BrokenFileError(f"its member {name} is missing")
        member = self._members[name]
        self._read.add(name)
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BrokenFileError(f"member {name} is compressed in an unknown way")
        with self._zip.open(member) as file:
            # without a number of bytes, it would be unpacked whole before its size is checked
            content = file.read(member.file_size)
        if len(content) != member.file_size:
            raise BrokenFileError(f"member {name} ends too early")
        return content

    def inner(self, name: str) -> "Archive":
        """Return the archive that a member is."""
        return Archive(self.read(name), self.size)

    def stored(self) -> bytes:
        """Return the archive with its members as they are: who reads them cannot unpack more."""
        return pack((name, self.read(name)) for name in self._members).getvalue()

    def read_json(self, name: str) -> Any:
        """Return the values of a member in JSON."""
        size = self._members[name].file_size if name in self._members else 0
        self.check(f"bytes of {name}", size, LEAST_TEXT + self.size)
        text = self.read(name)
        n_values = sum(text.count(mark) for mark in (b",", b"[", b"{"))
        self.check(f"values in {name}", n_values, LEAST_VALUES + self.size // BYTES_PER_VALUE)
        return json.loads(text)

    def array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> Array:
        """Return an array of finite numbers of this type and shape, in which None is any length."""
        content = self.read(f"{name}.npy")
        stream = io.BytesIO(content)
        if npy.read_magic(stream) != (1, 0):
            raise BrokenFileError(f"the array {name} has an unknown header")
        found, by_column, kind = npy.read_array_header_1_0(stream)
        values = content[stream.tell() :]
        if (
            kind != np.dtype(dtype).newbyteorder("<")
            or by_column
            or len(found) != len(shape)
            or any(n < 0 or wanted not in (n, None) for n, wanted in zip(found, shape, strict=True))
            or math.prod(found) * kind.itemsize != len(values)
        ):
            raise BrokenFileError(f"the array {name} is not of the type and shape that it must be")
        array = np.frombuffer(values, dtype=kind).reshape(found)
        if not np.isfinite(array).all():
            raise BrokenFileError(f"the array {name} holds what is no finite number")
        return array.astype(dtype)

    def check_all_read(self) -> None:
        """Refuse members that nothing needs."""
        left = sorted(set(self._members) - self._read)
        if left:
            raise BrokenFileError(f"nothing needs its member {left[0]}")


def as_npy(array: Array) -> bytes:
    """Return an array in numpy's format, in the byte order of model files."""
    stream = io.BytesIO()
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    npy.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def pack(
    members: Iterable[tuple[str, bytes]], *, compression: int = zipfile.ZIP_STORED
) -> io.BytesIO:
    """Return an archive of the members, which are taken one by one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members:
            member = zipfile.ZipInfo(name)  # without the time, the same fit writes the same bytes
            member.external_attr = 0o600 << 16  # as zipfile has it: whoever unpacks may read it
            archive.writestr(member, content, compress_type=compression)
    buffer.seek(0)
    return buffer
