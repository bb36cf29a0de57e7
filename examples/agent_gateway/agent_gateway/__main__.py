"""`make up`: the gateway, two remote agents and a worker, on the embedded database of this folder, until Ctrl-C."""

import contextlib
import os
import subprocess
import sys
import time

import httpx

from agent_gateway.app import app
from agent_gateway.triggers import create_triggers

PORT = 8340
AGENTS = {"ada": PORT + 1, "bob": PORT + 2}
SECRETS = {"slack": "slack-signing-secret", "github": "github-webhook-secret"}  # of this example

GREETING = f"""
say      curl localhost:{PORT}/v1/messages -H 'Content-Type: application/json' \\
           -d '{{"user_id": "ann", "session_id": "s1", "text": "ask the others: how are you?"}}'
read     curl localhost:{PORT}/v1/sessions/s1
plan     curl localhost:{PORT}/v1/orchestrate -H 'Content-Type: application/json' \\
           -d '{{"goal": "read; do the impossible; write"}}'
failed   curl 'localhost:{PORT}/v1/jobs?status=failed&limit=20' -H "Authorization: Bearer $TOKEN"
dashboard  http://localhost:{PORT}/ (with the same token)
"""


def start(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", *arguments])


def make_token() -> str:
    command = ["token", "create", "--role", "operator", "--name", f"gateway-{time.time():.0f}"]
    made = subprocess.run([sys.executable, "-m", "fenceline", *command], check=True, capture_output=True, text=True)
    return made.stdout.strip()


def until_it_answers(client: httpx.Client) -> None:
    for _ in range(300):
        with contextlib.suppress(httpx.TransportError):
            client.get("/v1/sessions/none")
            return
        time.sleep(0.1)
    raise TimeoutError("the gateway does not answer")


def main() -> None:
    os.environ |= {
        "FENCELINE_PUBLIC_URL": f"http://127.0.0.1:{PORT}",
        "AGENTS": " ".join(f"http://127.0.0.1:{port}" for port in AGENTS.values()),
    }
    app.sync.system.depth()  # the embedded database is there now, for the programs below
    programs = [start("agent_gateway.gateway", str(PORT))]
    programs += [start("agent_gateway.agents", name, str(port), "2") for name, port in AGENTS.items()]
    programs.append(start("fenceline", "worker", "agent_gateway.jobs:app"))
    try:
        token = make_token()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{PORT}", headers=headers) as client:
            until_it_answers(client)
            create_triggers(client, SECRETS)
        print(GREETING.replace("$TOKEN", token), flush=True)
        programs[0].wait()
    finally:
        for program in programs:
            program.terminate()
            program.wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
