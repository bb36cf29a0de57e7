"""The schema as the files under `sql/` state it: migrations, and the code (functions and views) on top of
them.

Each migration starts with `-- compatible_from: N`; each function and view has a header line `-- roles: a, b`
that says which database roles may use it (`none` for internal ones). The file is named after what it defines.
A file that breaks these rules is a mistake in the program, and is refused before a database is touched.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, Literal

ROLES: Final = ("producer", "worker", "reader", "admin")

_MIGRATION_NAME: Final = re.compile(r"(\d{4})_(pre|post)_[a-z0-9_]+\.sql")
_COMPATIBLE_FROM: Final = re.compile(r"-- compatible_from: (\d+)\n")
_ROLES: Final = re.compile(r"^-- roles: (.+)$", re.MULTILINE)
_DEFINES: Final = re.compile(r"^create or replace (function|view) fenceline\.(\w+)", re.MULTILINE)


class SchemaFileInvalid(ValueError):
    """A file under `sql/` breaks the rules of its kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    number: int
    name: str
    phase: Literal["pre", "post"]  # before or after the new program rolls out
    compatible_from: int
    checksum: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFile:
    path: str
    kind: Literal["function", "view"]
    name: str
    roles: tuple[str, ...]
    text: str

    @property
    def key(self) -> str:
        """What a database remembers the file by: its path without the sub-folder, which may be another tomorrow."""
        return f"{self.path.partition('/')[0]}/{self.name}.sql"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFiles:
    bootstrap: str
    migrations: tuple[Migration, ...]  # numbered 1, 2, 3 … without a gap
    code: tuple[CodeFile, ...]  # functions first: views use them
    setup: str = ""  # run when the code is in place, and again whenever it has changed
    role_prefix: str = "fenceline_"  # roles belong to the whole cluster; a test brings its own

    @property
    def number(self) -> int:
        """The highest migration this program knows."""
        return len(self.migrations)

    @property
    def required_number(self) -> int:
        """The highest migration this program cannot do without; later ones clean up after its predecessor."""
        return max((migration.number for migration in self.migrations if migration.phase == "pre"), default=0)

    def role_name(self, role: str) -> str:
        return self.role_prefix + role


def read_schema_files(directory: Traversable | None = None, *, with_code: bool = True) -> SchemaFiles:
    """Read the files of `directory`, by default those this program carries. Raises `SchemaFileInvalid`.

    Without code, which is most of it, there is enough to compare numbers, as every program does when it connects.
    """
    root = files("fenceline") / "sql" if directory is None else directory
    migrations = tuple(_migration(file) for _, file in _sql_files(root / "migrations", "migrations"))
    if [migration.number for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise SchemaFileInvalid("sql/migrations: the numbers must run 0001, 0002, … without a gap")
    code = tuple(
        _code_file(path, file.read_text("utf-8"))
        for folder in (("functions", "reads", "views") if with_code else ())
        for path, file in _sql_files(root / folder, folder)
    )
    names = [file.name for file in code]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise SchemaFileInvalid(f"sql: defined by more than one file: {', '.join(repeated)}")
    bootstrap = (root / "bootstrap.sql").read_text("utf-8")
    setup = root / "setup.sql"
    return SchemaFiles(
        bootstrap=bootstrap,
        migrations=migrations,
        code=code,
        setup=setup.read_text("utf-8") if setup.is_file() else "",
    )


def checksum_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _sql_files(directory: Traversable, path: str) -> list[tuple[str, Traversable]]:
    """The SQL files of a folder and the folders in it, with their paths, in the order of their names."""
    return sorted(_walk(directory, path), key=lambda found: found[1].name)


def _walk(directory: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in directory.iterdir() if directory.is_dir() else ():
        if entry.is_dir():
            yield from _walk(entry, f"{path}/{entry.name}")
        elif entry.name.endswith(".sql"):
            yield f"{path}/{entry.name}", entry


def _migration(file: Traversable) -> Migration:
    text = file.read_text("utf-8")
    name = _MIGRATION_NAME.fullmatch(file.name)
    if name is None:
        raise SchemaFileInvalid(f"migrations/{file.name}: the name must be NNNN_pre_what.sql or NNNN_post_what.sql")
    number = int(name[1])
    header = _COMPATIBLE_FROM.match(text)
    if header is None or not 1 <= int(header[1]) <= number:
        raise SchemaFileInvalid(
            f"migrations/{file.name}: the first line must be `-- compatible_from: N`, N from 1 to {number}"
        )
    return Migration(
        number=number,
        name=file.name.removesuffix(".sql"),
        phase="pre" if name[2] == "pre" else "post",
        compatible_from=int(header[1]),
        checksum=checksum_of(text),
        text=text,
    )


def _code_file(path: str, text: str) -> CodeFile:
    kind: Literal["function", "view"] = "view" if path.startswith("views/") else "function"
    name = path.rpartition("/")[2].removesuffix(".sql")
    if _DEFINES.findall(text) != [(kind, name)]:
        raise SchemaFileInvalid(f"{path}: must hold one `create or replace {kind} fenceline.{name}` and no other")
    header = _ROLES.search(text)
    if header is None:
        raise SchemaFileInvalid(f"{path}: the header must have a line `-- roles: ` with roles or `none`")
    roles = () if header[1] == "none" else tuple(header[1].split(", "))
    if unknown := sorted(set(roles) - set(ROLES)):
        raise SchemaFileInvalid(f"{path}: not a role: {', '.join(unknown)}; roles are {', '.join(ROLES)} or none")
    # Who administers the queue may do whatever anybody may.
    granted = tuple(role for role in ROLES if role in roles or (roles and role == "admin"))
    return CodeFile(path=path, kind=kind, name=name, roles=granted, text=text)
