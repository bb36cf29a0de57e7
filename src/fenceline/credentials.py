"""Credential providers for `Fenceline(credentials=…)`."""

from fenceline.client.credentials import (
    AwsStsCredentials,
    CommandCredentials,
    CredentialProvider,
    EnvironmentCredentials,
    FileCredentials,
    StaticCredentials,
    UnknownIdentity,
)

__all__ = [
    "AwsStsCredentials",
    "CommandCredentials",
    "CredentialProvider",
    "EnvironmentCredentials",
    "FileCredentials",
    "StaticCredentials",
    "UnknownIdentity",
]
