"""The zip archive of a model file, read within limits that grow with the size of the file."""

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
"""Maximum size of all members: a constant, and a number of bytes per byte of the file."""

LEAST_TEXT = 8 * 2**20
"""Maximum size of a JSON text: this constant, and one byte per byte of the file."""

LEAST_VALUES = 200_000
BYTES_PER_VALUE = 8
"""Maximum number of values in a JSON text: a constant, and one per these bytes of the file. A value
takes up to 80 bytes of memory."""

LEAST_MEMBERS = 10_000
BYTES_PER_MEMBER = 200
"""Maximum number of members: a constant, and one per these bytes of the file. zipfile takes about
700 bytes of memory for each; an entry of the directory can be as small as 46 bytes."""

ENTRY = b"PK\x01\x02"
"""First bytes of an entry in the archive's directory."""

OTHER = "classifier.skops"
"""Member with a classifier of another package, an archive of skops."""

SCHEMA = "schema.json"
"""Member of an archive of skops that lists its objects."""

MEMBER = re.compile(r"unflip\.json|classifier\.skops|[a-z0-9_]{1,60}\.npy", re.ASCII)
"""Valid names of members, without folders."""


class BrokenFileError(ValueError):
    """The content of a file is not that of a model file; the message leaves out its name."""


class Archive:
    """The members of a model file or of an archive in it; limits depend on the file's size."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self.size = len(data) if size is None else size
        self._read: set[str] = set()
        # zipfile reads the whole directory at once, whatever number of entries it states
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
        """Reject members with invalid names."""
        strange = [name for name in self._members if not MEMBER.fullmatch(name)]
        if strange:
            raise BrokenFileError(f"a member has the name {strange[0][:80]!a}")

    def check(self, what: str, found: int, allowed: int) -> None:
        """Reject more of something than a file of this size may have."""
        if found > allowed:
            raise BrokenFileError(
                f"it has {found:,} {what}, and a file of {self.size:,} bytes may have {allowed:,}"
            )

    def read(self, name: str) -> bytes:
        """Return the content of a member, which must have the size that the archive states."""
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
        """Return the archive in a member."""
        return Archive(self.read(name), self.size)

    def stored(self) -> bytes:
        """Return the archive uncompressed, so that no reader can unpack more."""
        return pack((name, self.read(name)) for name in self._members).getvalue()

    def read_json(self, name: str) -> Any:
        """Return the values in a JSON member."""
        size = self._members[name].file_size if name in self._members else 0
        self.check(f"bytes of {name}", size, LEAST_TEXT + self.size)
        text = self.read(name)
        n_values = sum(text.count(mark) for mark in (b",", b"[", b"{"))
        self.check(f"values in {name}", n_values, LEAST_VALUES + self.size // BYTES_PER_VALUE)
        return json.loads(text)

    def array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> Array:
        """Return an array of finite numbers with this type and shape; None is any length."""
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
            raise BrokenFileError(f"the array {name} has the wrong type or shape")
        array = np.frombuffer(values, dtype=kind).reshape(found)
        if not np.isfinite(array).all():
            raise BrokenFileError(f"the array {name} holds values that are not finite")
        return array.astype(dtype)

    def check_all_read(self) -> None:
        """Reject members that the model does not need."""
        left = sorted(set(self._members) - self._read)
        if left:
            raise BrokenFileError(f"its member {left[0]} belongs to no model")


def as_npy(array: Array) -> bytes:
    """Return an array in numpy's format, in the byte order of model files."""
    stream = io.BytesIO()
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    npy.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def pack(
    members: Iterable[tuple[str, bytes]], *, compression: int = zipfile.ZIP_STORED
) -> io.BytesIO:
    """Return an archive of the members, packed one by one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members:
            member = zipfile.ZipInfo(name)  # no time: the same fit writes the same bytes
            member.external_attr = 0o600 << 16  # zipfile's default: the owner may read it
            archive.writestr(member, content, compress_type=compression)
    buffer.seek(0)
    return buffer
