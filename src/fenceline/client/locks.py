"""`app.lock`: a named lock for a block of code outside handlers, with a lease of its own.

The blocking twin, `sync_locks.py`, is generated from this file by `scripts/generate_sync.py`. So everything here goes
through a `Database` and awaits nothing else.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fenceline.runtime.database import GetDatabase
from fenceline.runtime.lock_block import Block, holding, inside
from fenceline.runtime.lock_keeper import HeldLock, lost_error


@asynccontextmanager
async def hold_lock(
    get_database: GetDatabase, block: Block, *, tenant: str, timeout: float | None, lease_seconds: float
) -> AsyncIterator[HeldLock]:
    database = get_database()
    lock = await database.take_lock(block, holding(), tenant=tenant, timeout=timeout, lease_seconds=lease_seconds)
    is_kept = True
    try:
        with inside(block):
            yield lock
    finally:
        # Also when the lease is over: the next in line need not wait for that to be noticed.
        is_kept = await database.release_lock(block)
    if not is_kept:
        raise lost_error(lock)
