"""The webhooks of Slack and GitHub: Fenceline checks their signatures, and each accepted request is a job."""

from typing import Any

import httpx

#: Without their secrets, which Slack and GitHub show to whoever sets them up.
TRIGGERS: list[dict[str, Any]] = [
    {
        "name": "slack",
        "scheme": "slack",
        "kind": "trigger-fire",
        "args": {"trigger": "slack"},
        "map": {
            "text": "$.event.text",
            "user_id": "$.event.user",
            "session_id": "$.event.channel",
            "message_id": "$.event.ts",
        },
    },
    {
        "name": "github",
        "scheme": "github",
        "kind": "trigger-fire",
        "args": {"trigger": "github"},
        "map": {"text": "$.comment.body", "user_id": "$.sender.login", "session_id": "$.repository.full_name"},
        "dedupe_header": "X-GitHub-Delivery",
    },
]


def create_triggers(client: httpx.Client, secrets: dict[str, str]) -> None:
    """`client`: of Fenceline's server, with the token of an operator. Those that are there already are left alone."""
    for trigger in TRIGGERS:
        answer = client.post("/v1/triggers", json={**trigger, "secret": secrets[trigger["name"]]})
        if answer.status_code != httpx.codes.CONFLICT:
            answer.raise_for_status()
