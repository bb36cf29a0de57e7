"""Let one account pass a folder, and nobody else: an entry in the folder's access list instead of a wider mode.

The list is an extended attribute: a version, then entries of a tag, permissions and an id, little-endian. Mode bits are
the entries of owner, group and others; beside a named user there is a mask, which bounds that one and the group.
"""

import errno
import os
import stat
import struct
from pathlib import Path

_ATTRIBUTE = "system.posix_acl_access"
_VERSION = struct.pack("<I", 2)
_ENTRY = struct.Struct("<HHI")
_OWNER, _USER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NOBODY = 0xFFFFFFFF
_EXECUTE = 1

Entries = dict[tuple[int, int], int]


def let_pass(folder: Path, uid: int) -> None:
    """Raises OSError where the file system has no access lists."""
    entries = _read(folder)
    mask = entries.get((_MASK, _NOBODY), entries[_GROUP, _NOBODY])
    if (_MASK, _NOBODY) in entries:
        # The wider mask is to give nobody else more than the one before did.
        bounded = {key: perm & mask for key, perm in entries.items() if key[0] in {_USER, _GROUP}}
        entries.update(bounded)
    entries[_USER, uid] = entries.get((_USER, uid), 0) | _EXECUTE
    entries[_MASK, _NOBODY] = mask | _EXECUTE
    packed = (_ENTRY.pack(tag, perm, who) for (tag, who), perm in sorted(entries.items()))
    os.setxattr(folder, _ATTRIBUTE, _VERSION + b"".join(packed))


def may_pass(folder: Path, uid: int) -> bool:
    """Whether its access list lets the account pass."""
    entries = _read(folder)
    mask = entries.get((_MASK, _NOBODY), 7)
    return bool(entries.get((_USER, uid), 0) & mask & _EXECUTE)


def _read(folder: Path) -> Entries:
    try:
        text = os.getxattr(folder, _ATTRIBUTE)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        mode = stat.S_IMODE(folder.stat().st_mode)
        return {(_OWNER, _NOBODY): mode >> 6 & 7, (_GROUP, _NOBODY): mode >> 3 & 7, (_OTHER, _NOBODY): mode & 7}
    return {(tag, who): perm for tag, perm, who in _ENTRY.iter_unpack(text[len(_VERSION) :])}
