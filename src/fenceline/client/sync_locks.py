"""The blocking twin of locks.py.

Generated from locks.py by scripts/generate_sync.py: change that file, not this one.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from fenceline.client.sync_database import GetSyncDatabase
from fenceline.runtime.lock_block import Block, holding, inside
from fenceline.runtime.lock_keeper import HeldLock, lost_error


@contextmanager
def hold_lock(
    get_database: GetSyncDatabase, block: Block, *, tenant: str, timeout: float | None, lease_seconds: float
) -> Iterator[HeldLock]:
    database = get_database()
    lock = database.take_lock(block, holding(), tenant=tenant, timeout=timeout, lease_seconds=lease_seconds)
    is_kept = True
    try:
        with inside(block):
            yield lock
    finally:
        # Also when the lease is over: the next in line need not wait for that to be noticed.
        is_kept = database.release_lock(block)
    if not is_kept:
        raise lost_error(lock)
