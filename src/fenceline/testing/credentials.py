"""A provider of credentials that needs no cloud."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """What a provider was asked for."""

    identity: str
    tenant: str
    kind: str


class FakeCredentials:
    """Gives every identity the same credentials, unless one has its own, and records what it was asked for.

    fenceline_app.use_credentials(FakeCredentials(token="made-up"))
    """

    def __init__(self, by_identity: Mapping[str, Mapping[str, Any] | Exception] | None = None, **values: Any) -> None:
        """`by_identity`: the credentials of some identities, or exceptions to raise. `values`: those of all others."""
        self._by_identity = dict(by_identity or {})
        self._values = values or {"token": "fake-token"}
        self.asked: list[Asked] = []

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> Mapping[str, Any]:
        """What a handler gets. The request is recorded in `asked`."""
        self.asked.append(Asked(identity, tenant, kind))
        found = self._by_identity.get(identity, self._values)
        if isinstance(found, Exception):
            raise found
        return found
