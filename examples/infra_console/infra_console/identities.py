"""Whose credentials a job runs with: the identity that it names is exchanged by the runner, just before the handler.

Nothing is stored: AWS trusts the runner's own keys, Google and Microsoft a token that the platform gives to the runner.
Where they are can be said in the environment; without that it is the clouds' own addresses.
"""

import contextlib
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import boto3  # type: ignore[import-untyped]
import httpx
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from fenceline.credentials import (
    AwsStsCredentials,
    AzureFederatedCredentials,
    CredentialProvider,
    GcpFederatedCredentials,
)

SETTINGS = {
    "WORKLOAD_TOKEN_URL": "http://169.254.169.254/token",
    "GCP_AUDIENCE": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/runners/providers/platform",
    "GCP_STS_URL": "https://sts.googleapis.com/v1/token",
    "GCP_IAM_URL": "https://iamcredentials.googleapis.com",
    "GCP_USERINFO_URL": "https://openidconnect.googleapis.com/v1/userinfo",
    "AZURE_TENANT_ID": "common",
    "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.com",
    "AZURE_USERINFO_URL": "https://graph.microsoft.com/oidc/userinfo",
}


def setting(name: str) -> str:
    return os.environ.get(name, SETTINGS[name])


async def workload_token(audience: str) -> str:
    """What the platform says of this runner."""
    async with httpx.AsyncClient() as client:
        return (await client.get(setting("WORKLOAD_TOKEN_URL"), params={"audience": audience})).raise_for_status().text


def cloud_of(identity: str) -> str:
    """By the form of its names: an ARN, the e-mail of a service account, a client id."""
    return "aws" if identity.startswith("arn:") else "gcp" if "@" in identity else "azure"


class CloudCredentials:
    """Each identity from its own cloud."""

    async def credentials(self, identity: str, *, tenant: str, kind: str) -> Mapping[str, Any]:
        return await self._provider(cloud_of(identity)).credentials(identity, tenant=tenant, kind=kind)

    def _provider(self, cloud: str) -> CredentialProvider:
        if cloud == "aws":
            return AwsStsCredentials()
        if cloud == "gcp":
            audience = setting("GCP_AUDIENCE")
            return GcpFederatedCredentials(
                audience,
                partial(workload_token, f"https:{audience}"),
                sts_url=setting("GCP_STS_URL"),
                iam_url=setting("GCP_IAM_URL"),
            )
        return AzureFederatedCredentials(
            tenant_id=setting("AZURE_TENANT_ID"),
            authority=setting("AZURE_AUTHORITY_HOST"),
            assertion=partial(workload_token, "api://AzureADTokenExchange"),
        )


def as_environment(credentials: Mapping[str, Any]) -> dict[str, str]:
    """As the clouds' own tools look for them."""
    return {name.upper(): value for name, value in credentials.items() if isinstance(value, str)}


def look_around(identity: str, credentials: Mapping[str, Any]) -> dict[str, Any]:
    """Who the cloud takes us for, and what there is to choose from. Blocking."""
    cloud = cloud_of(identity)
    if cloud != "aws":
        headers = {"Authorization": f"Bearer {credentials['access_token']}"}
        answer = httpx.get(setting(f"{cloud.upper()}_USERINFO_URL"), headers=headers).raise_for_status()
        return {"caller": answer.json()["sub"], "resources": {}}
    session = boto3.Session(**{name: value for name, value in credentials.items() if name.startswith("aws_")})
    listed = {
        "vpcs": ("ec2", "describe_vpcs", "Vpcs", "VpcId"),
        "subnets": ("ec2", "describe_subnets", "Subnets", "SubnetId"),
        "hosted_zones": ("route53", "list_hosted_zones", "HostedZones", "Name"),
    }
    resources = {}
    for name, (service, verb, items, key) in listed.items():
        with contextlib.suppress(ClientError):  # what the role may not list is not to choose from
            resources[name] = [item[key] for item in getattr(session.client(service), verb)()[items]]
    return {"caller": session.client("sts").get_caller_identity()["Arn"], "resources": resources}
