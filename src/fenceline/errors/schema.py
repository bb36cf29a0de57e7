"""The embedded database, and the schema of any database."""

from fenceline.errors.base import FencelineError


class EmbeddedError(FencelineError):
    """The embedded PostgreSQL cannot be installed, started or stopped."""


class SchemaMissing(FencelineError):
    """The database has no Fenceline schema yet: run `fenceline migrate`."""


class SchemaOutdated(FencelineError):
    """The schema is older than this program needs: run `fenceline migrate`."""


class SchemaTooNew(FencelineError):
    """The schema has moved on past what this program understands: upgrade the program."""


class SchemaForeign(FencelineError):
    """A schema named `fenceline` exists that Fenceline did not make; it is left alone."""


class SchemaForbidden(FencelineError):
    """The database role may not use the schema: an administrator must grant it one of Fenceline's roles."""


class MigrationChanged(FencelineError):
    """A migration that this database has applied is not the one this program carries."""


class MigrationBlocked(FencelineError):
    """Other transactions held the locks that the migration needs. What it did stays and works; run it again."""
