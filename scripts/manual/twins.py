"""For mkdocstrings: a verb without a docstring, of a class that does what another promises, has the other's."""

from typing import Any

import griffe

PROVIDERS = {
    "client.credential_providers": ("Static", "Environment", "File", "Command", "AwsSts"),
    "client.federation": ("GcpFederated", "AzureFederated"),
}
#: Class → the one that says what its verbs promise.
TWINS = {"context.sync_context.SyncContext": "context.context.Context"} | {
    f"{module}.{name}Credentials": "client.credential_providers.CredentialProvider"
    for module, names in PROVIDERS.items()
    for name in names
}


class Twins(griffe.Extension):
    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        for twin, original in TWINS.items():
            for name, member in pkg[twin].members.items():
                found = pkg[original].members.get(name)
                if found is not None and found.docstring is not None and member.docstring is None:
                    member.docstring = found.docstring
