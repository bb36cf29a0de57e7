"""The bare counterpart: the same split layout with nothing around it.

Unpartitioned tables with the indexes that the loop itself needs; a fence and a history, because without them
the comparison would be with something that loses jobs; no functions, gates, lanes' rules, limits or leases.
"""

CREATE_SQL = """
create schema bare;
create table bare.job (
  id bigint primary key,
  priority smallint not null,
  max_attempts smallint not null,
  kind text not null,
  lane text not null,
  tenant text not null,
  args json not null
);
create table bare.ready (
  job_id bigint not null,
  seq bigint not null,
  priority smallint not null,
  lane text not null,
  kind text not null,
  tenant text not null
);
create unique index on bare.ready (job_id);
create index on bare.ready (lane, priority desc, seq);
create table bare.running (
  job_id bigint primary key,
  token bigint not null,
  claimed_at timestamptz not null,
  worker_id integer not null,
  attempt_id uuid not null,
  number smallint not null,
  lane text not null
);
create table bare.history (
  job_id bigint not null,
  ended_at timestamptz not null,
  token bigint,
  claimed_at timestamptz,
  started_at timestamptz,
  worker_id integer,
  attempt_id uuid,
  number smallint,
  final boolean not null,
  outcome text not null
);
create unique index on bare.history (job_id) where final;
"""

# $1: JSON texts
ENQUEUE_SQL = """
with new as (
  select fenceline.next_id() as id, a.args from unnest($1::json[]) a(args)
), made as (
  insert into bare.job (id, priority, max_attempts, kind, lane, tenant, args)
  select id, 0, 3, 'noop', 'default', 'default', args from new
)
insert into bare.ready (job_id, seq, priority, lane, kind, tenant)
select id, id, 0, 'default', 'noop', 'default' from new
"""

# $1: how many
CLAIM_SQL = """
with picked as materialized (
  delete from bare.ready where ctid = any(array(
    select ctid from bare.ready where lane = 'default'
    order by lane, priority desc, seq limit $1 for update skip locked))
  returning job_id, kind, tenant, gen_random_uuid() as attempt_id
), claimed as (
  insert into bare.running (job_id, token, claimed_at, worker_id, attempt_id, number, lane)
  select job_id, 1, now(), 1, attempt_id, 1, 'default' from picked
)
select p.job_id, p.attempt_id, p.kind, p.tenant, j.args from picked p join bare.job j on j.id = p.job_id
"""

# $1: job ids, $2: attempt ids
FINISH_SQL = """
with given as materialized (
  select * from unnest($1::bigint[], $2::uuid[]) g(job_id, attempt_id)
), ended as (
  delete from bare.running r using given g where r.job_id = g.job_id and r.attempt_id = g.attempt_id
  returning r.*
)
insert into bare.history
  (job_id, ended_at, token, claimed_at, started_at, worker_id, attempt_id, number, final, outcome)
select job_id, now(), token, claimed_at, claimed_at, worker_id, attempt_id, number, true, 'succeeded'
from ended
"""

# $1: JSON text
INSERT_SQL = """
insert into bare.job (id, priority, max_attempts, kind, lane, tenant, args)
values (nextval('fenceline.job_id'), 0, 3, 'noop', 'default', 'default', $1::json)
"""
