"""The seven kinds. Each is one job; what it does in parallel it does by asyncio.gather in the service layer."""

import asyncio
import os

from cryptography.fernet import Fernet, MultiFernet

from docs_hosting import store
from docs_hosting.database import Build, Edition, Project, app, fetch, load_build, load_projects
from docs_hosting.git import list_refs, read_file
from docs_hosting.services import Superseded, catalog_build, evaluate_tracking, render_dashboard, update_edition
from fenceline import Context

ONCE_MORE = 2  # attempts of periodic jobs; then the next run has to see to it


@app.job(retry=3)
async def build_processing(ctx: Context, build_id: int) -> dict[str, int]:
    build = await load_build(build_id)
    await set_status(build_id, "processing")
    async with ctx.phase("inventory"):
        objects = await catalog_build(build)
        await ctx.progress(message=f"Cataloged {objects} objects")
    async with ctx.phase("tracking"):
        editions = await evaluate_tracking(build)
    async with ctx.phase("editions"):
        await ctx.progress(total=len(editions))
        await ctx.items.start(*(edition.slug for edition in editions))
        await asyncio.gather(*(update_one(ctx, edition, build) for edition in editions))
    if len(ctx.items.errors) == len(editions):
        await set_status(build_id, "failed")
        raise RuntimeError(f"no edition was updated: {ctx.items.errors[0]['error']}")
    async with ctx.phase("dashboard"):
        await render_dashboard(build.project)
    await set_status(build_id, "completed_with_errors" if ctx.items.errors else "completed")
    return {"objects": objects, "editions": len(editions)}


async def set_status(build_id: int, status: str) -> None:
    await fetch("update docs.build set status = $2 where id = $1", build_id, status)


async def update_one(ctx: Context, edition: Edition, build: Build) -> None:
    """What becomes of one edition is told of that one; the others go on."""
    try:
        await update_edition(edition, build)
    except Superseded as newer:
        await ctx.items.skip(edition.slug, reason=str(newer))
    except Exception as error:  # noqa: BLE001 - it is told
        await ctx.items.fail(edition.slug, error=error)
    else:
        await ctx.items.complete(edition.slug)


@app.job(retry=3)
async def edition_update(ctx: Context, edition_id: int, build_id: int) -> None:
    """An admin's word: also back to an older build."""
    build = await load_build(build_id)
    (row,) = await fetch("select id, slug, build_id from docs.edition where id = $1", edition_id)
    async with ctx.phase("editions"):
        await update_edition(Edition(*row), build, force=True)
    async with ctx.phase("dashboard"):
        await render_dashboard(build.project)


@app.job(retry=3)
async def dashboard_sync(ctx: Context, template: str) -> int:
    """A template repository was pushed to: every project that uses it is rendered anew."""
    projects = await load_projects("coalesce(p.template, o.template) = $1 and o.slug = $2", template, ctx.tenant)
    text = await read_file(template, "dashboard.html")
    for project in projects:
        store.write(store.root() / "templates" / project.org / f"{project.slug}.html", text)
    await asyncio.gather(*(render_dashboard(project) for project in projects))
    return len(projects)


@app.schedule("0 3 * * *")
@app.job(retry=ONCE_MORE)
async def lifecycle_eval(ctx: Context) -> dict[str, int]:
    """Drafts that nobody has updated for long, and builds that no edition shows, are deleted softly."""
    orgs = await fetch("select id, slug, draft_days from docs.org")
    await ctx.items.start(*(org["slug"] for org in orgs))
    counts = await asyncio.gather(*(clean_org(ctx, org["id"], org["slug"], org["draft_days"]) for org in orgs))
    return {"editions": sum(count[0] for count in counts), "builds": sum(count[1] for count in counts)}


async def clean_org(ctx: Context, org_id: int, org: str, days: int) -> tuple[int, int]:
    editions = await fetch(
        "update docs.edition e set date_deleted = now() from docs.project p "
        "where p.id = e.project_id and p.org_id = $1 and date_deleted is null and e.slug <> '__main' "
        "and date_updated < now() - make_interval(days => $2) returning e.id",
        *(org_id, days),
    )
    builds = await fetch(
        "update docs.build b set date_deleted = now() from docs.project p "
        "where p.id = b.project_id and p.org_id = $1 and date_deleted is null "
        "and date_created < now() - make_interval(days => $2) and not exists ("
        "select 1 from docs.edition e where e.build_id = b.id and e.date_deleted is null) returning b.id",
        *(org_id, days),
    )
    for build in builds:
        await asyncio.to_thread(store.to_purgatory, org, build["id"])
    await ctx.items.complete(org)
    return len(editions), len(builds)


@app.schedule("0 4 * * *")
@app.job(retry=ONCE_MORE)
async def git_ref_audit(ctx: Context) -> int:
    """Editions whose ref is gone are flagged, and deleted softly where the organization's rule `ref_deleted` is on."""
    projects = await load_projects("p.repository is not null")
    await ctx.items.start(*(project.slug for project in projects))

    async def audit(project: Project) -> int:
        try:
            refs = await list_refs(str(project.repository))
        except RuntimeError as error:
            await ctx.items.fail(project.slug, error=error)
            return 0
        gone = await fetch(
            "update docs.edition e set ref_gone = true, date_deleted = case when o.ref_deleted then now() end "
            "from docs.project p join docs.org o on o.id = p.org_id where p.id = $1 and e.project_id = p.id "
            "and not ref_gone and date_deleted is null and e.slug <> '__main' and git_ref <> all($2) returning e.id",
            *(project.id, list(refs)),
        )
        await ctx.items.complete(project.slug)
        return len(gone)

    return sum(await asyncio.gather(*(audit(project) for project in projects)))


@app.schedule("0 5 * * *")
@app.job(retry=ONCE_MORE)
async def purgatory_cleanup(ctx: Context) -> int:
    """Finished jobs need no cleaning up here: Fenceline forgets them after seven days."""
    orgs = await fetch("select slug, purgatory_days from docs.org")
    return sum([await asyncio.to_thread(store.empty_purgatory, org["slug"], org["purgatory_days"]) for org in orgs])


@app.schedule("0 2 * * 0")
@app.job(retry=ONCE_MORE)
async def credential_reencrypt(ctx: Context) -> int:
    """Every credential under the newest key. `rotate` never shows what is inside, and again is harmless."""
    keys = encryptor()
    rows = await fetch("select org_id, name, encrypted_credential from docs.organization_credentials")

    async def rotate(org_id: int, name: str, token: bytes) -> None:
        await fetch(
            "update docs.organization_credentials set encrypted_credential = $4 "
            "where org_id = $1 and name = $2 and encrypted_credential = $3",
            *(org_id, name, token, keys.rotate(token)),
        )

    await asyncio.gather(*(rotate(*row) for row in rows))
    return len(rows)


def encryptor() -> MultiFernet:
    """`DOCS_KEYS`: Fernet keys with commas between, the newest first."""
    return MultiFernet([Fernet(key) for key in os.environ["DOCS_KEYS"].split(",")])
