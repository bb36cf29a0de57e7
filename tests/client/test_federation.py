"""Workload identity federation with Google Cloud and Microsoft Entra, against services that check what theirs check."""

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.client.token_services import (
    ACCOUNT,
    AUDIENCE,
    AZURE_TOKEN,
    CLIENT_ID,
    FEDERATED,
    GCP_TOKEN,
    PROVIDER,
    TENANT_ID,
    Services,
    token_services,
    workload_token,
)
from tests.conftest import Connect
from tests.context.test_identity import everything
from tests.worker.in_process_worker import ended, running

from fenceline import Context, Fenceline, Retry
from fenceline.credentials import (
    AzureFederatedCredentials,
    CredentialProvider,
    ExchangeRefused,
    GcpFederatedCredentials,
    UnknownIdentity,
)

FOR_GOOGLE = f"https://iam.googleapis.com/{PROVIDER}"
FOR_AZURE = "api://AzureADTokenExchange"


@pytest.fixture
def services() -> Iterator[Services]:
    with token_services() as services:
        yield services


async def ask(provider: CredentialProvider, identity: str) -> Mapping[str, Any]:
    return await provider.credentials(identity, tenant="default", kind="deploy")


def gcp(services: Services, token: Any, **options: Any) -> GcpFederatedCredentials:
    audience = options.pop("audience", AUDIENCE)
    return GcpFederatedCredentials(audience, token, sts_url=f"{services.url}/v1/token", iam_url=services.url, **options)


def azure(services: Services, token: Any, **options: Any) -> AzureFederatedCredentials:
    given = {"tenant_id": TENANT_ID, "authority": services.url, **options}
    return AzureFederatedCredentials(assertion=token, **given)


async def test_gcp_impersonates_a_service_account(services: Services, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(workload_token(FOR_GOOGLE) + "\n")
    given = await ask(gcp(services, path, lifetime_seconds=600), ACCOUNT)
    assert given["access_token"] == GCP_TOKEN
    assert timedelta(seconds=500) < given["expiration"] - datetime.now(UTC) <= timedelta(seconds=600)
    assert services.asked == ["/v1/token", f"/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken"]


async def test_gcp_gives_the_federated_token_itself(services: Services) -> None:
    async def fetch() -> str:
        return workload_token(FOR_GOOGLE)

    given = await ask(gcp(services, fetch), AUDIENCE)
    assert given["access_token"] == FEDERATED
    assert timedelta(seconds=3500) < given["expiration"] - datetime.now(UTC) <= timedelta(seconds=3600)
    assert services.asked == ["/v1/token"]


async def test_azure_exchanges_a_client_assertion(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text(workload_token(FOR_AZURE))
    monkeypatch.setenv("AZURE_TENANT_ID", TENANT_ID)
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(path))
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", f"{services.url}/")
    given = await ask(AzureFederatedCredentials(), CLIENT_ID)
    assert given["access_token"] == AZURE_TOKEN
    assert timedelta(seconds=3500) < given["expiration"] - datetime.now(UTC) <= timedelta(seconds=3600)
    assert services.asked == [f"/{TENANT_ID}/oauth2/v2.0/token"]


async def test_a_refusal_tells_the_code_and_nothing_else(services: Services, tmp_path: Path) -> None:
    path = tmp_path / "token"

    async def refused(token: str, provider: CredentialProvider, identity: str) -> str:
        path.write_text(token)
        with pytest.raises(ExchangeRefused) as caught:
            await ask(provider, identity)
        return str(caught.value)

    good, late = workload_token(FOR_GOOGLE), workload_token(FOR_GOOGLE, seconds=-600)
    forged, foreign = workload_token(FOR_GOOGLE, key="k" * 32), workload_token(FOR_GOOGLE, subject="other")
    assert [await refused(token, gcp(services, path), ACCOUNT) for token in (late, forged, foreign)] == [
        "127.0.0.1 answered 400 invalid_grant"
    ] * 3
    assert await refused(good, gcp(services, path, audience=f"{AUDIENCE}2"), ACCOUNT) == (
        "127.0.0.1 answered 400 invalid_target"
    )
    assert await refused(good, gcp(services, path), f"other-{ACCOUNT}") == "127.0.0.1 answered 404 NOT_FOUND"
    assert await refused(good, gcp(services, path, lifetime_seconds=7200), ACCOUNT) == (
        "127.0.0.1 answered 400 INVALID_ARGUMENT"
    )
    assert await refused(good, azure(services, path), CLIENT_ID) == "127.0.0.1 answered 401 invalid_client"
    assert await refused(good, azure(services, path, scope="a b"), CLIENT_ID) == "127.0.0.1 answered 400 invalid_scope"
    services.broken = (503, {"error": {"status": f"quotes {good}"}})
    assert await refused(good, azure(services, path), CLIENT_ID) == "127.0.0.1 answered 503"
    # A redirect is not followed: the token would go to somebody else.
    services.broken = (307, {})
    assert await refused(good, azure(services, path), CLIENT_ID) == "127.0.0.1 answered 307"


@pytest.mark.parametrize(
    "identity", ["", "a/b@c", "x@y:z", "x@y?z", "../x@y", "x@y\n", "nobody", f"{AUDIENCE}2", "a@b@c"]
)
async def test_no_identity_changes_where_a_token_is_sent(services: Services, identity: str) -> None:
    for provider in (gcp(services, "/no/such/file"), azure(services, "/no/such/file")):
        with pytest.raises(UnknownIdentity):
            await ask(provider, identity)
    assert services.asked == []


def test_tokens_do_not_travel_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_TENANT_ID", raising=False)
    for url in ("http://sts.example.org/v1/token", "ftp://localhost", "localhost", "http://localhost.example.org"):
        with pytest.raises(ValueError, match="must start with https://"):
            GcpFederatedCredentials(AUDIENCE, "token", sts_url=url)
        with pytest.raises(ValueError, match="must start with https://"):
            AzureFederatedCredentials(tenant_id=TENANT_ID, assertion="token", authority=url)
    with pytest.raises(ValueError, match="tenant_id is missing: give it, or set AZURE_TENANT_ID"):
        AzureFederatedCredentials(assertion="token")
    with pytest.raises(ValueError, match="must be a GUID or a domain"):
        AzureFederatedCredentials(tenant_id="a/b", assertion="token")


async def test_no_token_enters_the_database_or_the_logs(
    database: str,
    connect: Connect,
    services: Services,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    own = workload_token(FOR_GOOGLE)

    async def fetch() -> str:
        return own

    app = Fenceline(database, credentials=gcp(services, fetch))

    @app.job(retry=Retry(max_attempts=1))
    async def deploy(ctx: Context) -> str:
        ctx.log(f"with {ctx.credentials['access_token']}")
        return str(dict(ctx.credentials))

    with caplog.at_level(logging.DEBUG):
        async with running(app):
            done = await ended(await deploy.options(identity=ACCOUNT).enqueue())
            refused = await ended(await deploy.options(identity=f"other-{ACCOUNT}").enqueue())
    assert done.status == "succeeded"
    assert refused.error is not None
    assert (refused.error["code"], refused.error["message"]) == (
        "credentials",
        f"no credentials for identity 'other-{ACCOUNT}': 127.0.0.1 answered 404 NOT_FOUND",
    )
    where = {"database": await everything(await connect()), "logs": caplog.text, "output": "".join(capfd.readouterr())}
    for name, text in where.items():
        for secret in (own, FEDERATED, GCP_TOKEN):
            assert secret not in text, name
