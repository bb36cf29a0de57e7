"""Credential providers for `Fenceline(credentials=…)`."""

from fenceline.client.credential_providers import (
    AwsStsCredentials,
    CommandCredentials,
    CredentialProvider,
    EnvironmentCredentials,
    FileCredentials,
    StaticCredentials,
    UnknownIdentity,
)
from fenceline.client.federation import AzureFederatedCredentials, ExchangeRefused, GcpFederatedCredentials

__all__ = [
    "AwsStsCredentials",
    "AzureFederatedCredentials",
    "CommandCredentials",
    "CredentialProvider",
    "EnvironmentCredentials",
    "ExchangeRefused",
    "FileCredentials",
    "GcpFederatedCredentials",
    "StaticCredentials",
    "UnknownIdentity",
]
