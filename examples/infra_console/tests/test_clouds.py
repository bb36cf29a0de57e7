"""The stand-ins refuse what the real ones do; else the tests of credentials would show little."""

from typing import Any
from urllib.parse import urlencode

import pytest
from stand_ins.clouds import AZURE_CLIENT, AZURE_TENANT, GCP_ACCOUNT, TokenServices

from infra_console.identities import SETTINGS

GOOGLE, MICROSOFT = f"https:{SETTINGS['GCP_AUDIENCE']}", "api://AzureADTokenExchange"


def exchange(services: TokenServices, token: str, **changed: str) -> int:
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "audience": SETTINGS["GCP_AUDIENCE"],
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "subject_token": token,
    }
    return services.post("/v1/token", {}, urlencode(form | changed).encode())[0]


def client_credentials(services: TokenServices, token: str, **changed: str) -> int:
    form = {
        "grant_type": "client_credentials",
        "client_id": AZURE_CLIENT,
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": token,
        "scope": "https://management.azure.com/.default",
    }
    return services.post(f"/{AZURE_TENANT}/oauth2/v2.0/token", {}, urlencode(form | changed).encode())[0]


@pytest.mark.parametrize(
    "claims", [{"iss": "https://other.example"}, {"exp": 1}, {"sub": "somebody"}, {"aud": "other"}]
)
def test_what_a_token_says_is_checked(claims: dict[str, Any]) -> None:
    services = TokenServices()
    for ask, audience in ((exchange, GOOGLE), (client_credentials, MICROSOFT)):
        assert ask(services, services.workload_token(audience)) == 200
        assert ask(services, services.workload_token(audience, **claims)) in (400, 401)
        assert ask(services, TokenServices().workload_token(audience)) in (400, 401)  # another's signature
        assert ask(services, services.workload_token(audience), grant_type="password") == 400
        assert ask(services, services.workload_token(audience), scope="") == 400


def test_names_are_checked() -> None:
    services = TokenServices()
    assert exchange(services, services.workload_token(GOOGLE), audience="//iam.googleapis.com/other") == 400
    assert client_credentials(services, services.workload_token(MICROSOFT), client_id=AZURE_TENANT) == 400
    path = f"/v1/projects/-/serviceAccounts/{GCP_ACCOUNT}:generateAccessToken"
    body = b'{"scope": ["a"], "lifetime": "900s"}'
    assert services.post(path, {"Authorization": "Bearer made-up"}, body)[0] == 401
    assert services.get("/userinfo", {"Authorization": "Bearer made-up"})[0] == 401
