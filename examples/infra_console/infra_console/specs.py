"""The console's own tables, what a job takes from them when it is made, and what its end writes into them."""

import json
from typing import Any

import psycopg
from psycopg.rows import dict_row

from fenceline import NotFound
from infra_console import operations
from infra_console.operations import LANE, app

TABLES = """
create table if not exists account (
    name text primary key, identity text not null, status text not null default 'new', resources jsonb
);
create table if not exists spec (
    name text primary key, account text not null references account, config jsonb not null,
    status text not null default 'new', plan_job text, plan_hash text, deployments int not null default 0
);
create table if not exists component (
    spec text references spec, name text, attributes jsonb not null, primary key (spec, name)
);
create table if not exists runner (
    name text primary key, host text not null, release text not null, status text not null default 'new'
)
"""

#: Which table an operation is about; the argument that names the row is called like it.
OPERATIONS = {
    "connection_test": "account", "fetch_resources": "account",
    "plan": "spec", "deploy": "spec", "destroy": "spec",
    "deploy_worker": "runner", "update_worker": "runner", "destroy_worker": "runner",
}  # fmt: skip
ROWS = {
    "account": "select * from account where name = {}",
    "spec": "select s.*, a.identity from spec s join account a on a.name = s.account where s.name = {}",
    "runner": "select * from runner where name = {}",
}


async def prepare() -> None:
    """The tables, and the lane: a runner that is silent for 60 s is offline, a job that is for 5 minutes has failed."""
    async with await psycopg.AsyncConnection.connect(await app.dsn()) as connection:
        await connection.execute(TABLES)
    if LANE not in {lane.name for lane in await app.lanes.list()}:  # from then on it is the operators'
        await app.lanes.create(LANE, offline_timeout_seconds=60, stale_timeout_seconds=300, on_stale="fail")


def configuration(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """What a job of this row keeps, and what its hash is about."""
    if table == "spec":
        return {**row["config"], "name": row["name"], "identity": row["identity"]}
    return {"name": row["name"], "release": row.get("release")}


def options(operation: str, row: dict[str, Any]) -> dict[str, Any]:
    """How an operation is enqueued. Raises ValueError."""
    table, name = OPERATIONS[operation], row["name"]
    chosen = {"key": f"{table}:{name}", "dedupe_key": f"{operation}:{name}", "labels": {table: name}}
    chosen |= {"snapshot": configuration(table, row)}
    match table:
        case "account":
            return {**chosen, "identity": row["identity"]}
        case "runner":
            return {**chosen, "runner": row["host"]}  # it alone can look after the runners that it hosts
    if region := row["config"].get("region"):
        chosen |= {"runner": {"region": region}}
    if operation == "deploy":
        if row["plan_job"] is None:
            raise ValueError(f"spec {name!r} has no plan: plan it first")
        chosen |= {"requires_hash": {"job": row["plan_job"]}}
    return {**chosen, "identity": row["identity"]}


def _current(table: str, name: str) -> dict[str, Any]:
    """As it is at this moment: for whoever enqueues elsewhere, and for the comparison when a runner claims a deploy."""
    with psycopg.connect(app.sync.dsn(), row_factory=dict_row) as connection:
        row = connection.execute(ROWS[table].format("%s"), [name]).fetchone()
    if row is None:
        raise NotFound(f"{table} {name!r} does not exist")
    return configuration(table, row)


for of_spec in (operations.plan, operations.deploy, operations.destroy):
    of_spec.snapshot(lambda spec, **_: _current("spec", spec))
for of_runner in (operations.deploy_worker, operations.update_worker, operations.destroy_worker):
    of_runner.snapshot(lambda runner: _current("runner", runner))


@operations.connection_test.finalizer
@operations.fetch_resources.finalizer
async def keep_resources(conn: Any, args: dict[str, Any], result: dict[str, Any]) -> None:
    found = json.dumps(result["resources"])
    await conn.execute(
        "update account set status = $2, resources = $3 where name = $1", args["account"], "connected", found
    )


@operations.plan.finalizer
async def keep_plan(conn: Any, job: Any, args: dict[str, Any]) -> None:
    update = "update spec set status = 'planned', plan_job = $2, plan_hash = $3 where name = $1"
    await conn.execute(update, args["spec"], job.id, job.snapshot_hash)


@operations.deploy.finalizer
async def finalize_deployment(conn: Any, args: dict[str, Any], result: dict[str, Any]) -> None:
    """What the engine gave out becomes the spec's components: cluster endpoint, ArgoCD, databases."""
    spec = args["spec"]
    await conn.execute("update spec set status = 'deployed', deployments = deployments + 1 where name = $1", spec)
    await conn.execute("delete from component where spec = $1", spec)
    for name, attributes in result["outputs"].items():
        await conn.execute("insert into component values ($1, $2, $3)", spec, name, json.dumps(attributes))


@operations.destroy.finalizer
async def forget_components(conn: Any, args: dict[str, Any]) -> None:
    await conn.execute("delete from component where spec = $1", args["spec"])
    await conn.execute("update spec set status = 'destroyed', plan_job = null where name = $1", args["spec"])


@operations.deploy_worker.finalizer
@operations.update_worker.finalizer
@operations.destroy_worker.finalizer
async def keep_runner(conn: Any, job: Any, args: dict[str, Any]) -> None:
    status = "gone" if job.kind == "destroy_worker" else f"runs release {job.snapshot['release']}"
    await conn.execute("update runner set status = $2 where name = $1", args["runner"], status)
