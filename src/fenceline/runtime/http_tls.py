"""TLS of a runner: whose servers it believes, and the certificate that it shows them."""

import ssl
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

_VARIABLE = "FENCELINE_RUNNER_TLS_"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerTls:
    """PEM files. `ca`: instead of the system's authorities; `cert` and `key`: for a server that asks for them."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise ValueError("--tls-cert and --tls-key are given together")

    def context(self) -> ssl.SSLContext:
        """Raises OSError (ssl.SSLError is one) when a file cannot be read or does not fit."""
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
