"""Providers of credentials: what they give, and what they refuse to be talked into."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from tests.support.patience import seconds_left

from fenceline.credentials import (
    AwsStsCredentials,
    CommandCredentials,
    CredentialProvider,
    EnvironmentCredentials,
    FileCredentials,
    StaticCredentials,
    UnknownIdentity,
)

UNSAFE = [
    "..",
    "../other",
    "a/../b",
    "/etc/passwd",
    "a//b",
    "a/",
    ".hidden",
    "-rf",
    "a/-rf",
    "",
    "a b",
    "a\nb",
    "a\x00b",
    "$(id)",
    "a;b",
    "ä",
]


async def ask(provider: CredentialProvider, identity: str, tenant: str = "default") -> Mapping[str, Any]:
    return await provider.credentials(identity, tenant=tenant, kind="deploy")


async def test_static() -> None:
    provider = StaticCredentials({"deployer": {"token": "t0ken"}})
    assert await ask(provider, "deployer") == {"token": "t0ken"}
    with pytest.raises(UnknownIdentity, match="'nobody' has no credentials"):
        await ask(provider, "nobody")


async def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FENCELINE_IDENTITY_DEPLOYER__TOKEN", "t0ken")
    monkeypatch.setenv("FENCELINE_IDENTITY_DEPLOYER__API_URL", "https://example.org")
    monkeypatch.setenv("FENCELINE_IDENTITY_DEPLOYER_PROD__TOKEN", "of another")
    monkeypatch.setenv("FENCELINE_IDENTITY_DEPLOYER__PROD__TOKEN", "of yet another")
    monkeypatch.setenv("OTHER_TEAM_A__KEY", "k")
    provider = EnvironmentCredentials()
    assert await ask(provider, "deployer") == {"token": "t0ken", "api_url": "https://example.org"}
    assert await ask(provider, "deployer-prod") == {"token": "of another"}
    assert await ask(EnvironmentCredentials("OTHER_"), "team/a") == {"key": "k"}
    for unknown in ("dep", "", "deploye", "nobody"):
        with pytest.raises(UnknownIdentity):
            await ask(provider, unknown)


async def test_file(tmp_path: Path) -> None:
    (tmp_path / "acme" / "team").mkdir(parents=True)
    path = tmp_path / "acme" / "team" / "deployer.json"
    path.write_text(json.dumps({"token": "t0ken"}))
    provider = FileCredentials(f"{tmp_path}/{{tenant}}/{{identity}}.json")
    assert await ask(provider, "team/deployer", tenant="acme") == {"token": "t0ken"}
    path.write_text(json.dumps({"token": "rotated"}))
    assert await ask(provider, "team/deployer", tenant="acme") == {"token": "rotated"}
    with pytest.raises(FileNotFoundError):
        await ask(provider, "team/deployer", tenant="globex")


@pytest.mark.parametrize("unsafe", UNSAFE)
async def test_no_identity_leaves_its_folder_or_becomes_an_option(tmp_path: Path, unsafe: str) -> None:
    (tmp_path / "secret.json").write_text(json.dumps({"token": "not yours"}))
    (tmp_path / "identities").mkdir()
    files = FileCredentials(f"{tmp_path}/identities/{{identity}}.json")
    command = CommandCredentials([sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')", "{identity}"])
    for provider in (files, command):
        with pytest.raises(UnknownIdentity, match="cannot be part of a path or a command"):
            await ask(provider, unsafe)
    with pytest.raises(UnknownIdentity):
        await ask(FileCredentials(f"{tmp_path}/identities/{{tenant}}/{{identity}}.json"), "secret", tenant="..")
    assert not (tmp_path / "ran").exists()


async def test_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = (
        "import json, sys; print('chatty', file=sys.stderr); print(json.dumps({'token': sys.argv[1] + sys.argv[2]}))"
    )
    provider = CommandCredentials([sys.executable, "-c", script, "{identity}", "{tenant}"])
    assert await ask(provider, "deployer", tenant="acme") == {"token": "deployeracme"}
    with pytest.raises(UnknownIdentity, match="ended with code 3"):
        await ask(CommandCredentials([sys.executable, "-c", "raise SystemExit(3)"]), "deployer")
    with pytest.raises(json.JSONDecodeError):
        await ask(CommandCredentials([sys.executable, "-c", "print('no json')"]), "deployer")
    with pytest.raises(FileNotFoundError):
        await ask(CommandCredentials([str(tmp_path / "missing")]), "deployer")
    slow = CommandCredentials([sys.executable, "-c", "import time; time.sleep(60)"], timeout_seconds=0.2)
    async with asyncio.timeout(seconds_left()):
        with pytest.raises(TimeoutError):
            await ask(slow, "deployer")
    assert "chatty" not in "".join(capfd.readouterr())


async def test_aws_sts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        provider = AwsStsCredentials(region="eu-central-1", duration_seconds=1800)
        given = await ask(provider, "arn:aws:iam::123456789012:role/deployer", tenant="acme")
        assert set(given) == {"aws_access_key_id", "aws_secret_access_key", "aws_session_token", "expiration"}
        assert given["aws_access_key_id"].startswith("ASIA")
        import boto3  # type: ignore[import-untyped]  # noqa: PLC0415 - slow to import

        who = boto3.client("sts", region_name="eu-central-1", **{k: v for k, v in given.items() if k != "expiration"})
        assert who.get_caller_identity()["Arn"].endswith("assumed-role/deployer/fenceline-acme-deploy")
