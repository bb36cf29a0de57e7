"""What is asked of the repositories of projects and templates."""

import asyncio
import tempfile
from pathlib import Path


async def git(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "git", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, problem = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"git {arguments[0]} failed: {problem.decode().strip()}")
    return out.decode()


async def list_refs(repository: str) -> set[str]:
    """Names of its branches and tags."""
    lines = (await git("ls-remote", "--heads", "--tags", repository)).splitlines()
    return {line.partition("\t")[2].removeprefix("refs/heads/").removeprefix("refs/tags/") for line in lines}


async def read_file(repository: str, name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        await git("clone", "--quiet", "--depth", "1", repository, folder)
        return (Path(folder) / name).read_text()
