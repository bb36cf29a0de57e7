"""The functions and views that the schema has, as the catalogue knows them."""

from dataclasses import dataclass
from typing import TypeAlias

import asyncpg

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# Each definition with the transaction that wrote it: "create or replace" rewrites the row even when nothing
# changed, so it tells what a run has put in place from what it found. For views that row is the rule.
_DEFINITIONS = """
select 'routine' as kind, p.oid, p.proname::text as name, p.oid::regprocedure::text as identity,
       p.xmin::text as written_by, p.pronargs - p.pronargdefaults as least_arguments, p.pronargs as most_arguments,
       obj_description(p.oid, 'pg_proc') as note
from pg_proc p where p.pronamespace = 'fenceline'::regnamespace
union all
select 'view', c.oid, c.relname::text, c.oid::regclass::text, r.xmin::text, 0, 0, obj_description(c.oid, 'pg_class')
from pg_class c join pg_rewrite r on r.ev_class = c.oid and r.rulename = '_RETURN'
where c.relnamespace = 'fenceline'::regnamespace and c.relkind = 'v'
order by kind, identity
"""


@dataclass(frozen=True, slots=True)
class Definition:
    kind: str
    oid: int
    name: str
    identity: str  # the name with its schema and the types of its parameters
    written_by: str
    least_arguments: int
    most_arguments: int
    note: str | None

    def takes_calls_of(self, other: "Definition") -> bool:
        """Whether some call could mean either of two functions of one name."""
        return self.least_arguments <= other.most_arguments and other.least_arguments <= self.most_arguments


async def read_definitions(connection: Connection) -> list[Definition]:
    return [Definition(**row) for row in await connection.fetch(_DEFINITIONS)]
