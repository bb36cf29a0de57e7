"""The service layer: the same for jobs, requests and scripts, so its locks are those of the app and not of a job."""

import asyncio
import re

from docs_hosting import store
from docs_hosting.database import Build, Edition, Project, app, connect, fetch, list_editions

REWRITES = ((re.compile(r"^tickets/"), ""), (re.compile(r"[^A-Za-z0-9._-]+"), "-"))
SEMVER = re.compile(r"^v(\d+)\.\d+\.\d+$")
TEMPLATE = "<h1>{project}</h1><ul>{editions}</ul>"


class Superseded(Exception):
    """The edition shows a newer build already."""


async def catalog_build(build: Build) -> int:
    """Inventory: what was uploaded. Again is harmless."""
    objects = await asyncio.to_thread(lambda: [*store.list_objects(build)])
    async with connect() as connection:
        await connection.executemany(
            "insert into docs.build_object values ($1, $2, $3, $4, $5) on conflict (build_id, key) do update "
            "set hash = excluded.hash, content_type = excluded.content_type, size = excluded.size",
            [(build.id, *found) for found in objects],
        )
    return len(objects)


def tracking_slugs(git_ref: str) -> list[str]:
    """The editions that follow a ref: the main one, a stream of versions, or one of its own."""
    if git_ref == "main":
        return ["__main"]
    slug = git_ref
    for pattern, replacement in REWRITES:
        slug = pattern.sub(replacement, slug)
    major = SEMVER.match(git_ref)
    return [slug] if major is None else [slug, f"v{major[1]}.x"]


async def evaluate_tracking(build: Build) -> list[Edition]:
    """Which editions this build belongs to; new ones are made."""
    for slug in tracking_slugs(build.git_ref):
        await fetch(
            "insert into docs.edition (project_id, slug, git_ref) values ($1, $2, $3) on conflict (project_id, slug) "
            "do update set date_deleted = null, ref_gone = false, git_ref = excluded.git_ref",
            *(build.project.id, slug, build.git_ref),
        )
    slugs = set(tracking_slugs(build.git_ref))
    return [edition for edition in await list_editions(build.project.id) if edition.slug in slugs]


async def update_edition(edition: Edition, build: Build, *, force: bool = False) -> None:
    """Point an edition to a build, unless it shows a newer one (Superseded); `force`: an admin knows better."""
    async with app.lock("edition", edition.id, tenant=build.project.org) as lock:
        current = await fetch(
            "select b.id from docs.edition e join docs.build b on b.id = e.build_id "
            "where e.id = $1 and b.date_created > $2",
            *(edition.id, build.date_created),
        )
        if current and not force:
            raise Superseded(f"superseded by build {current[0]['id']}")
        pointer = store.site(build.project) / "kv" / f"{edition.slug}.json"
        await asyncio.to_thread(store.write_json, pointer, {"build": build.id, "fence": lock.token})
        lock.raise_if_lost()
        async with connect() as connection, connection.transaction():
            # Whoever lost the lock in between changes nothing: the token of the next is higher.
            changed = await connection.fetchval(
                "update docs.edition set build_id = $2, fence = $3, date_updated = now() "
                "where id = $1 and fence < $3 and build_id is distinct from $2 returning id",
                *(edition.id, build.id, lock.token),
            )
            if changed is not None:
                await connection.execute("insert into docs.edition_build_history values ($1, $2)", edition.id, build.id)
        await write_metadata(build.project, edition._replace(build_id=build.id))


async def write_metadata(project: Project, edition: Edition) -> None:
    """Under the edition's lock."""
    place = store.site(project) / "__editions" / f"{edition.slug}.json"
    await asyncio.to_thread(store.write_json, place, {"slug": edition.slug, "build": edition.build_id})


async def render_dashboard(project: Project) -> None:
    """The project's pages from the tables: whoever renders last is right."""
    async with app.lock("project", project.id, tenant=project.org):
        editions = await list_editions(project.id)
        template = store.root() / "templates" / project.org / f"{project.slug}.html"
        text = template.read_text() if template.exists() else TEMPLATE
        shown = "".join(f"<li>{edition.slug}: build {edition.build_id}</li>" for edition in editions)
        page = text.replace("{project}", project.slug).replace("{editions}", shown)
        site = store.site(project)
        store.write(site / "__dashboard.html", page)
        store.write(site / "__404.html", f"<h1>404</h1>{page}")
        store.write_json(site / "__switcher.json", [edition.slug for edition in editions])

    async def write_one(edition_id: int) -> None:
        async with app.lock("edition", edition_id, tenant=project.org):
            for edition in await list_editions(project.id):
                if edition.id == edition_id:
                    await write_metadata(project, edition)

    await asyncio.gather(*(write_one(edition.id) for edition in editions))
