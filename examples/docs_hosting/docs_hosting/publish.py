"""What a client does: `python -m docs_hosting.publish PROJECT GIT_REF FOLDER`. Prints what became of the build."""

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from docs_hosting import store
from docs_hosting.api import create_build, show_job, upload_is_complete
from docs_hosting.database import app, load_projects


async def publish(project: str, git_ref: str, folder: Path) -> dict[str, Any]:
    (found,) = await load_projects("p.slug = $1", project)
    build = (await create_build(found.id, git_ref))["build"]
    await asyncio.to_thread(shutil.copytree, folder, store.build_folder(build))
    job = (await upload_is_complete(build))["job"]
    await app.jobs.handle(job).wait(120)
    return {"build": build} | await show_job(job)


async def main() -> None:
    async with app:
        print(json.dumps(await publish(sys.argv[1], sys.argv[2], Path(sys.argv[3])), indent=1, default=str))


if __name__ == "__main__":
    asyncio.run(main())
