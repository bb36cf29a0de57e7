"""The queue, and the tables of the application, in one database: a job is enqueued in the transaction that needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg

from fenceline import Fenceline, NotFound

#: How jobs are delivered is not said here: `$FENCELINE_DELIVERY` is postgres, arq or inline.
app = Fenceline()

TABLES = """
create schema if not exists docs;
create table if not exists docs.org (
  id serial primary key, slug text unique not null, template text, draft_days int not null default 30,
  purgatory_days int not null default 30, ref_deleted boolean not null default true);
create table if not exists docs.project (
  id serial primary key, org_id int not null, slug text unique not null, repository text, template text);
create table if not exists docs.build (
  id serial primary key, project_id int not null, git_ref text not null, status text not null default 'pending',
  date_created timestamptz not null default clock_timestamp(), date_deleted timestamptz);
create table if not exists docs.build_object (
  build_id int, key text, hash text not null, content_type text, size int not null, primary key (build_id, key));
create table if not exists docs.edition (
  id serial primary key, project_id int not null, slug text not null, git_ref text not null, build_id int,
  fence bigint not null default 0, date_updated timestamptz not null default clock_timestamp(),
  ref_gone boolean not null default false, date_deleted timestamptz, unique (project_id, slug));
create table if not exists docs.edition_build_history (
  edition_id int not null, build_id int not null, date timestamptz not null default clock_timestamp());
create table if not exists docs.organization_credentials (
  org_id int, name text, encrypted_credential bytea not null, primary key (org_id, name));
"""


class Project(NamedTuple):
    id: int
    slug: str
    org: str
    repository: str | None
    template: str | None


class Build(NamedTuple):
    id: int
    git_ref: str
    date_created: datetime
    project: Project


class Edition(NamedTuple):
    id: int
    slug: str
    build_id: int | None


@asynccontextmanager
async def connect() -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(await app.dsn())
    try:
        yield connection
    finally:
        await connection.close()


async def fetch(sql: str, *values: Any) -> list[asyncpg.Record]:
    async with connect() as connection:
        return await connection.fetch(sql, *values)


async def load_projects(condition: str, *values: Any) -> list[Project]:
    rows = await fetch(
        "select p.id, p.slug, o.slug, p.repository, coalesce(p.template, o.template) from docs.project p "  # noqa: S608 - no input
        f"join docs.org o on o.id = p.org_id where {condition} order by p.id",
        *values,
    )
    return [Project(*row) for row in rows]


async def load_build(build_id: int) -> Build:
    rows = await fetch("select * from docs.build where id = $1", build_id)
    if not rows:
        raise NotFound(f"there is no build {build_id}")
    (project,) = await load_projects("p.id = $1", rows[0]["project_id"])
    return Build(build_id, rows[0]["git_ref"], rows[0]["date_created"], project)


async def list_editions(project_id: int) -> list[Edition]:
    rows = await fetch(
        "select id, slug, build_id from docs.edition where project_id = $1 and date_deleted is null order by slug",
        project_id,
    )
    return [Edition(*row) for row in rows]


async def make_sample(
    *, org: str = "lsst", project: str = "pipelines", repository: str | None = None, template: str | None = None
) -> int:
    """The tables, an organization and a project; its id. Again is harmless."""
    async with connect() as connection:
        await connection.execute(TABLES)
        org_id = await connection.fetchval(
            "insert into docs.org (slug, template) values ($1, $2) on conflict (slug) do update set template = $2 "
            "returning id",
            *(org, template),
        )
        project_id: int = await connection.fetchval(
            "insert into docs.project (org_id, slug, repository) values ($1, $2, $3) "
            "on conflict (slug) do update set repository = $3 returning id",
            *(org_id, project, repository),
        )
    return project_id
