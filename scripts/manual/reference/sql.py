"""Every function and view that a role may use, from the heads of their files."""

import re
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from scripts.manual.reference.markdown import code

SQL = files("fenceline") / "sql"
#: Folder → heading. What is in none of them is read only.
FOLDERS = {
    "enqueue": "Enqueue",
    "operate": "Operate",
    "schedule": "Schedules",
    "webhook": "Webhooks",
    "access": "Tokens and roles",
    "watch": "Watch",
    "worker": "Workers",
    "claim": "Claim",
    "deliver": "Messages of a backend",
    "attempt": "What a live attempt writes",
    "finish": "Finish",
    "lock": "Locks outside of handlers",
    "place": "Place",
    "upkeep": "Upkeep",
    "encryption": "Encryption",
    "rules": "Ids, clock and versions",
    "reads": "Read",
    "views": "Views",
}


@dataclass(frozen=True)
class Routine:
    name: str
    folder: str
    roles: str
    text: str
    signature: str


def routines() -> list[Routine]:
    """Those that a role may use."""
    places = [*(SQL / "functions").iterdir(), SQL / "reads", SQL / "views"]
    found = [read(file, place.name) for place in places if place.is_dir() for file in place.iterdir()]
    return sorted((routine for routine in found if routine.roles != "none"), key=lambda routine: routine.name)


def read(file: Traversable, folder: str) -> Routine:
    text = file.read_text("utf-8")
    head = [line.removeprefix("--").removeprefix(" ") for line in re.match(r"(--.*\n)+", text)[0].splitlines()]  # type: ignore[index]
    [roles] = [line.removeprefix("roles: ") for line in head if line.startswith("roles: ")]
    words = "\n".join(line for line in head if not line.startswith("roles: ")).strip()
    return Routine(file.name.removesuffix(".sql"), folder, roles, words, signature(text))


def signature(text: str) -> str:
    """What it takes and gives, as it is declared."""
    found = re.search(r"create or replace function (fenceline\.\w+\s*\(.*?)\n?\s*language", text, re.DOTALL)
    return found[1].strip() if found else ""


def summary(routine: Routine) -> str:
    """The head up to its first empty line."""
    return " ".join(routine.text.split("\n\n")[0].split())


def described(routine: Routine) -> str:
    rest = routine.text.partition("\n\n")[2].strip("\n")
    parts = [f"### `{routine.name}`", f"{summary(routine)} For {', '.join(map(code, routine.roles.split(', ')))}."]
    if rest:
        parts.append(f"```text\n{rest}\n```")
    if routine.signature:
        parts.append(f"```sql\n{routine.signature}\n```")
    return "\n\n".join(parts) + "\n"


def page() -> str:
    found = routines()
    found_in = {routine.folder for routine in found}
    parts = [
        f"## {heading}\n\n" + "\n".join(described(routine) for routine in found if routine.folder == folder)
        for folder, heading in (FOLDERS | {name: name.capitalize() for name in found_in - FOLDERS.keys()}).items()
        if any(routine.folder == folder for routine in found)
    ]
    return """# SQL functions and views

The functions and views of the schema `fenceline` that you may use, with the database role that each needs: `fenceline_producer`, `fenceline_worker`,
`fenceline_reader` or `fenceline_admin`. Names, parameters and results do not change between releases. [SQL](../guides/sql.md) has a session with psql; [Errors](errors.md) explains the
SQLSTATEs.

""" + "\n".join(parts)
