"""Who speaks to the server, and what they may do. Frozen values, no I/O."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The bearer of a token.

    `actor` is `created_by` of jobs and the actor of the audit. `reach` is the tenant whose things may be seen and
    changed, None for all of them; new jobs always belong to `tenant`.
    """

    actor: str
    role: str
    tenant: str
    permissions: frozenset[str]
    own_jobs: bool = True
    all_tenants: bool = False
    token_id: int | None = None

    def may(self, permission: str) -> bool:
        return "*" in self.permissions or permission in self.permissions

    @property
    def reach(self) -> str | None:
        return None if self.all_tenants else self.tenant

    @property
    def only_created_by(self) -> str | None:
        """The actor whose jobs alone may be seen and changed; None: those of everybody in reach."""
        return self.actor if self.own_jobs else None
