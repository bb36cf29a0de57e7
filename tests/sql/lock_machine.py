"""Named locks against a small model: handlers and code outside them, leases, deaths, and time that passes.

A block is known by its owner. The model keeps the rows that there must be, those of the dead included until somebody
ends them: who holds what, the line for each lock in order, the leases.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, LiteralString
from uuid import UUID, uuid4

import hypothesis.strategies as st
import psycopg
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.sql.clock import MOVE_CLOCK, RESET_CLOCK, clock_sql
from tests.sql.machine_base import FORGET_VISITS, PICK
from tests.sql.observed import RESET

LEASE_SECONDS = 10
NAMES = st.sampled_from(["a", "a", "b"])
#: Somebody maintains the queue all the time: so time that passes is no step of the clock.
LOOKED = """
insert into fenceline.maintenance values ('live', fenceline.clock())
on conflict (task) do update set ran_at = excluded.ran_at
"""


@dataclass(eq=False, slots=True)
class Block:
    """Of a job (`attempt`), or of code outside handlers (`lease_until`, None once it was ended)."""

    name: str
    job_id: int | None = None
    attempt: UUID | None = None
    lives: bool = True
    lease_until: float | None = None
    owner: UUID = field(default_factory=uuid4)


class Locks(RuleBasedStateMachine):
    connection: ClassVar[psycopg.Connection]
    seen: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.blocks: list[Block] = []
        self.held: dict[str, Block] = {}
        self.lines: dict[str, list[Block]] = {"a": [], "b": []}

    @initialize()
    def start_empty(self) -> None:
        self.connection.execute(f"{RESET} {RESET_CLOCK}".encode())
        for table in ("attempt_lock", "lock_wait", "lock_lease"):
            self.connection.execute(f"delete from fenceline.{table}".encode())
        self.connection.execute(FORGET_VISITS)
        self.connection.execute(LOOKED)
        [(self.worker,)] = self.sql("select fenceline.register_worker('w', 86400)")

    def sql(self, text: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(text, parameters).fetchall()

    # What may happen -----------------------------------------------------------------------------------------

    @rule(name=NAMES)
    def come_in_a_job(self, name: str) -> None:
        self.sql("select fenceline.enqueue('work', '{}')")
        [(job_id, attempt)] = self.sql("select job_id, attempt_id from fenceline.claim_jobs(%s)", self.worker)
        self.take(Block(name, job_id, attempt))

    @rule(name=NAMES)
    def come_outside(self, name: str) -> None:
        self.take(Block(name))

    @precondition(lambda self: self.blocks)
    @rule(pick=PICK)
    def ask_again(self, pick: int) -> None:
        block = self.blocks[pick % len(self.blocks)]
        if block.attempt is None or block.lives:
            self.take(block)

    @precondition(lambda self: self.blocks)
    @rule(pick=PICK)
    def leave(self, pick: int) -> None:
        block = self.blocks.pop(pick % len(self.blocks))
        if block.attempt is not None:
            self.sql("select fenceline.release_lock(%s, %s)", block.job_id, block.owner)
        else:
            [(answer,)] = self.sql("select fenceline.release_outside_lock(%s)", block.owner)
            assert answer["held"] == (block.lease_until is not None)
            self.seen.add(f"left, held: {answer['held']}")
            block.lease_until = None
        self.forget(block)

    @precondition(lambda self: any(block.attempt and block.lives for block in self.blocks))
    @rule(pick=PICK)
    def end_an_attempt(self, pick: int) -> None:
        alive = [block for block in self.blocks if block.attempt and block.lives]
        block = alive[pick % len(alive)]
        self.sql("select fenceline.finish_attempt(%s, %s)", block.job_id, block.attempt)
        block.lives = False

    @rule(seconds=st.sampled_from([1, 4, 4, 11]))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        self.connection.execute(MOVE_CLOCK, (seconds,))
        self.connection.execute(LOOKED)

    @precondition(lambda self: self.blocks)
    @rule(pick=PICK)
    def keep(self, pick: int) -> None:
        block = self.blocks[pick % len(self.blocks)]
        if block.attempt is None:
            words = self.sql("select word from fenceline.keep_outside_locks(array[%s])", block.owner)
            assert words == ([("lost",)] if block.lease_until is None else [])
            if block.lease_until is not None:
                block.lease_until = self.now + LEASE_SECONDS

    @rule()
    def maintain(self) -> None:
        self.sql("select fenceline.maintain(0)")
        self.end_leases()

    # What must come of it ------------------------------------------------------------------------------------

    def take(self, block: Block) -> None:
        if block not in self.blocks:
            self.blocks.append(block)
        if block.attempt is None:
            answer = self.sql(
                "select fenceline.take_outside_lock('default', 'n', %s, %s, '{}', %s, 'ann') is not null",
                *(block.name, block.owner, LEASE_SECONDS),
            )
            block.lease_until = self.now + LEASE_SECONDS
        else:
            answer = self.sql(
                "select fenceline.take_lock(%s, %s, 'n', %s, %s)",
                *(block.job_id, block.attempt, block.name, block.owner),
            )
        expected = self.expect(block)
        assert answer == [(expected,)]
        self.seen.add(f"{'job' if block.attempt else 'outside'} {'holds' if expected else 'waits'}")

    def expect(self, block: Block) -> bool:
        holder, line = self.held.get(block.name), self.lines[block.name]
        if holder is block and block.attempt is None:
            return True
        if holder is None and not line:
            self.held[block.name] = block
            return True
        self.end_leases()
        holder = self.held.get(block.name)
        if holder is not None and not self.counts(holder):
            del self.held[block.name]
            self.seen.add("taken from the dead")
        line[:] = [waiting for waiting in line if self.counts(waiting)]
        holder = self.held.get(block.name)
        if holder is block:
            return True
        if block not in line:
            line.append(block)
        if holder is not None or line[0] is not block:
            return False
        self.held[block.name] = line.pop(0)
        return True

    def counts(self, block: Block) -> bool:
        return block.lives if block.attempt is not None else block.lease_until is not None

    def end_leases(self) -> None:
        for block in self.blocks:
            if block.lease_until is not None and block.lease_until < self.now:
                block.lease_until = None
                self.forget(block)
                self.seen.add("a lease was ended")

    def forget(self, block: Block) -> None:
        if self.held.get(block.name) is block:
            del self.held[block.name]
        if block in self.lines[block.name]:
            self.lines[block.name].remove(block)

    @invariant()
    def agree(self) -> None:
        held = self.sql("select name, owner from fenceline.attempt_lock")
        assert dict(held) == {name: block.owner for name, block in self.held.items()}
        for name, line in self.lines.items():
            waiting = self.sql("select owner from fenceline.lock_wait where name = %s order by seq", name)
            assert [owner for (owner,) in waiting] == [block.owner for block in line]
        leases = self.sql("select owner from fenceline.lock_lease")
        assert {owner for (owner,) in leases} == {block.owner for block in self.blocks if block.lease_until is not None}


def run_lock_machine(dsn: str, *, examples: int) -> None:
    """Run the machine on a database of its own; the same steps every time. Raises what the first failure raised."""
    repeatable = settings(
        max_examples=examples,
        stateful_step_count=40,
        derandomize=True,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set synchronous_commit = off")
        connection.execute(clock_sql().encode())
        Locks.connection, Locks.seen = connection, set()
        run_state_machine_as_test(Locks, settings=repeatable)
