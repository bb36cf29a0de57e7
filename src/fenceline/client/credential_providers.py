"""Providers that turn the identity named on a job into temporary credentials, on the worker, just before it runs.

Give one to the app: `Fenceline(credentials=FileCredentials("/run/secrets/{identity}.json"))`. What it returns is a
mapping; the handler reads it as `ctx.credentials["…"]`. Credentials are never stored and never logged.
"""

import asyncio
import contextlib
import json
import os
import re
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from fenceline.errors import FencelineError

#: Parts separated by slashes. None starts with a dot or a hyphen: no way up, no hidden files, no options.
SAFE = re.compile(r"[A-Za-z0-9_:@=+][A-Za-z0-9_.:@=+-]*(/[A-Za-z0-9_:@=+][A-Za-z0-9_.:@=+-]*)*")


class UnknownIdentity(FencelineError):
    """The provider knows nothing of the identity."""


class CredentialProvider(Protocol):
    """What `Fenceline(credentials=…)` takes: any object with this verb."""

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> Mapping[str, Any]:
        """Temporary credentials for an identity that a job of this `tenant` and `kind` names.

        Whatever it raises fails the attempt, with code `credentials`.
        """
        ...


class StaticCredentials:
    """From a mapping of identities to credentials, for tests and small programs."""

    def __init__(self, by_identity: Mapping[str, Mapping[str, Any]]) -> None:
        self._by_identity = by_identity

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> Mapping[str, Any]:  # noqa: ARG002 - the protocol
        try:
            return self._by_identity[identity]
        except KeyError:
            raise UnknownIdentity(f"identity {identity!r} has no credentials here") from None


class EnvironmentCredentials:
    """From environment variables: the prefix, the identity in capitals, two underscores, the name.

    `FENCELINE_IDENTITY_DEPLOYER__TOKEN=…` is `credentials["token"]` of the identity `deployer`.
    """

    def __init__(self, prefix: str = "FENCELINE_IDENTITY_") -> None:
        self._prefix = prefix

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> Mapping[str, Any]:  # noqa: ARG002 - the protocol
        start = self._prefix + re.sub(r"[^A-Za-z0-9]", "_", identity).upper() + "__"
        found = {name[len(start) :].lower(): value for name, value in os.environ.items() if name.startswith(start)}
        found = {name: value for name, value in found.items() if name and "__" not in name}  # another identity's
        if not found:
            raise UnknownIdentity(f"no environment variable starts with {start}")
        return found


class FileCredentials:
    """From a JSON file per identity, read again for each attempt, because secret stores rotate them."""

    def __init__(self, path: str) -> None:
        """`path` contains `{identity}`, and may contain `{tenant}`."""
        self._path = path

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> Mapping[str, Any]:  # noqa: ARG002 - the protocol
        path = Path(_fill(self._path, identity, tenant))
        values: dict[str, Any] = json.loads(await asyncio.to_thread(path.read_text))
        return values


class CommandCredentials:
    """From a command that prints JSON, as credential helpers do. `{identity}` and `{tenant}` are replaced in it.

    Its standard error is dropped: it may not be fit for a log.
    """

    def __init__(self, command: Sequence[str], *, timeout_seconds: float = 30.0) -> None:
        self._command = tuple(command)
        self._timeout_seconds = timeout_seconds

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> Mapping[str, Any]:  # noqa: ARG002 - the protocol
        arguments = [_fill(part, identity, tenant) for part in self._command]
        process = await asyncio.create_subprocess_exec(*arguments, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                output, _errors = await process.communicate()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        if process.returncode != 0:
            raise UnknownIdentity(f"{self._command[0]} ended with code {process.returncode}")
        values: dict[str, Any] = json.loads(output)
        return values


class AwsStsCredentials:
    """From AWS STS: the identity is the ARN of a role to assume. Needs the extra `aws`."""

    def __init__(self, *, duration_seconds: int = 900, region: str | None = None) -> None:
        self._duration_seconds = duration_seconds
        self._region = region

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> Mapping[str, Any]:
        session = re.sub(r"[^A-Za-z0-9=,.@-]", "-", f"fenceline-{tenant}-{kind}")[:64]
        return await asyncio.to_thread(self._assume, identity, session)

    def _assume(self, role: str, session: str) -> Mapping[str, Any]:
        import boto3  # type: ignore[import-untyped]  # it has no hints

        client = boto3.client("sts", region_name=self._region)
        answer = client.assume_role(RoleArn=role, RoleSessionName=session, DurationSeconds=self._duration_seconds)
        found = answer["Credentials"]
        return {
            "aws_access_key_id": found["AccessKeyId"],
            "aws_secret_access_key": found["SecretAccessKey"],
            "aws_session_token": found["SessionToken"],
            "expiration": found["Expiration"],
        }


def _fill(template: str, identity: str, tenant: str) -> str:
    """Raises UnknownIdentity if one of them cannot be part of a path or a command."""
    for name in (identity, tenant):
        if not SAFE.fullmatch(name):
            raise UnknownIdentity(f"{name!r} cannot be part of a path or a command")
    return template.replace("{identity}", identity).replace("{tenant}", tenant)
