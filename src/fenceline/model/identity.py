"""Who speaks to the server, and what they may do. Frozen values, no I/O."""

from dataclasses import dataclass

#: What a token that is bound to lanes or kinds can be used for. Other permissions are about all lanes and kinds.
FOR_BOUND = frozenset({"jobs:read", "jobs:enqueue", "jobs:cancel", "runners:claim", "workers:view"})

#: The one permission that takes something away.
HIDE_ARGS = "jobs:hide_args"


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
    lanes: frozenset[str] | None = None  # what the token is bound to; None: any
    kinds: frozenset[str] | None = None

    @property
    def is_bound(self) -> bool:
        return self.lanes is not None or self.kinds is not None

    def is_for(self, kind: str, lane: str) -> bool:
        """Whether the token's binding allows such a job."""
        return (self.kinds is None or kind in self.kinds) and (self.lanes is None or lane in self.lanes)

    def may(self, permission: str) -> bool:
        if self.is_bound and permission not in FOR_BOUND:
            return False
        return "*" in self.permissions or permission in self.permissions

    @property
    def hides_args(self) -> bool:
        """Whether args and results are hidden from them; `*` does not include this."""
        return HIDE_ARGS in self.permissions

    @property
    def reach(self) -> str | None:
        return None if self.all_tenants else self.tenant

    @property
    def only_created_by(self) -> str | None:
        """The actor whose jobs alone may be seen and changed; None: those of everybody in reach."""
        return self.actor if self.own_jobs else None

    @property
    def owner(self) -> str:
        """Who a runner belongs to: the token that registered it, or the person whom an identity provider named."""
        return f"actor {self.tenant} {self.actor}" if self.token_id is None else f"token {self.token_id}"
