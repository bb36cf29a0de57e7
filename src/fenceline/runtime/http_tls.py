"""TLS of a runner: which servers it trusts, and the certificate it presents."""

import ssl
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

_VARIABLE = "FENCELINE_RUNNER_TLS_"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerTls:
    """PEM files. `ca` replaces the system's authorities; `cert` and `key` are for servers that ask for them."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise ValueError("--tls-cert and --tls-key are given together")

    def context(self) -> ssl.SSLContext:
        """Raises OSError (such as ssl.SSLError) if a file cannot be read or used."""
        context = ssl.create_default_context(cafile=self.ca)
        if self.cert is not None:
            context.load_cert_chain(self.cert, self.key)
        return context

    def to_environment(self) -> dict[str, str]:
        """For the helper process."""
        return {f"{_VARIABLE}{name.upper()}": value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        return cls(**{name: environment.get(f"{_VARIABLE}{name.upper()}") for name in ("ca", "cert", "key")})
