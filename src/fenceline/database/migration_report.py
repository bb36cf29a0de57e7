"""What a run of the migrator did."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """What one run did. `str()` is what `fenceline migrate` prints."""

    number: int  # the highest migration now in the database
    applied: tuple[str, ...] = ()  # names of the migrations this run applied
    code_applied: bool = False  # whether it put functions and views in place
    retired: tuple[str, ...] = ()  # functions and views that no file defines any more, set aside
    dropped: tuple[str, ...] = ()  # of those that an earlier run set aside
    newer: bool = False  # the schema is newer than this program, and was left as it is
    administrator_sql: str | None = None  # roles this user may not create; everything else works without them

    def __str__(self) -> str:
        lines = [f"applied {name}" for name in self.applied]
        if self.code_applied:
            lines.append("functions and views are in place")
        if self.retired:
            lines.append(f"set aside {', '.join(self.retired)}: a later run drops them, when no older worker is left")
        lines += [f"dropped {name}" for name in self.dropped]
        if self.newer:
            lines.append(f"the schema (number {self.number}) is newer than this program and fits it: left as it is")
        elif not lines:
            lines.append(f"the schema is up to date (number {self.number})")
        if self.administrator_sql is not None:
            lines.append("database roles are missing that this user may not create; an administrator can run:")
            lines.append(self.administrator_sql)
        return "\n".join(lines)
