"""The whole system on loopback, for tests: the console as a process of its own, runners as others, a person."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
from stand_ins.clouds import TokenServices

ROOT = Path(__file__).parents[1]
#: For the message of a wait in vain, and to end what was started.
KEPT_SECONDS = 15.0
OVER = {"succeeded", "succeeded_with_errors", "failed", "cancelled"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


_gives_up_at = float("inf")


def begin_test(seconds: float) -> None:
    """A test begins that may take so long."""
    global _gives_up_at  # noqa: PLW0603 - one test at a time runs in a process
    _gives_up_at = time.monotonic() + seconds - KEPT_SECONDS


def seconds_left() -> float:
    """What the test may still wait: for calls that take a timeout."""
    return max(0.0, _gives_up_at - time.monotonic())


def eventually(look: Callable[[], Any], what: str) -> Any:
    """Wait for as long as the test may take: machines differ."""
    seen: object = None
    while seconds_left() > 0:
        try:
            if seen := look():
                return seen
        except httpx.TransportError as error:
            seen = error
        time.sleep(0.05)
    raise AssertionError(f"waited in vain: {what}. Last seen: {seen!r}")


@dataclass
class Stack:
    """Everything that runs, and how it is reached."""

    dsn: str
    folder: Path
    services: TokenServices
    environment: dict[str, str]
    url: str = ""
    admin: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """In a group of its own, so that all of it can be killed; its output is in `<name>.log`."""
        with (self.folder / f"{name}.log").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def start_console(self) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        options = ("--port", str(port), "--timeout-graceful-shutdown", "1")
        self.start("console", "uvicorn", "infra_console.console:web", *options, FENCELINE_DSN=self.dsn)
        eventually(lambda: httpx.get(f"{self.url}/queue/readyz").is_success, "the console is up")

    def start_runner(self, name: str, **labels: str) -> subprocess.Popen[bytes]:
        """It has the address of the console, a token of its own and the clouds' addresses; no database."""
        token = self.folder / f"{name}.token"
        token.write_text(self.token("runner", name))
        options = [
            "--lanes",
            "infra",
            "--name",
            name,
            *(["--labels", ",".join(f"{k}={v}" for k, v in labels.items())] if labels else []),
        ]
        environment = {
            **self.environment,
            "FENCELINE_URL": f"{self.url}/queue",
            "FENCELINE_TOKEN_FILE": str(token),
            "INFRA_CONSOLE_SITE": str(self.folder / "site"),
        }
        process = self.start(name, "fenceline", "runner", "infra_console.operations:app", *options, **environment)
        eventually(lambda: name in self.runners(), f"runner {name} is there")
        return process

    def token(self, role: str, name: str) -> str:
        if not self.admin:
            command = [sys.executable, "-m", "fenceline", "token", "create", "--role", "platform_admin", "--json"]
            environment = {**os.environ, "FENCELINE_DSN": self.dsn}
            done = subprocess.run(command, check=True, capture_output=True, env=environment)
            self.admin = json.loads(done.stdout)["token"]
        with self.client(self.admin) as client:
            made = client.post("/queue/v1/tokens", json={"role": role, "name": name, "tenant": "default"})
            return str(made.raise_for_status().json()["token"])

    def client(self, token: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=300)

    def runners(self) -> dict[str, dict[str, Any]]:
        """Those that have registered and not signed off, by name."""
        with self.client(self.admin) as client:
            found = client.get("/queue/v1/admin/workers/status").raise_for_status().json()["runners"]
        return {runner["name"]: runner for runner in found}

    def end_lease(self, name: str) -> None:
        """A minute has passed without a word from that runner."""
        over = "update fenceline.worker set lease_until = clock_timestamp() where name = %s and stopped_at is null"
        with psycopg.connect(self.dsn) as connection:
            connection.execute(over, [name])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn) as connection:
            return connection.execute(query).fetchall()

    def stop(self) -> None:
        for process in reversed(self.processes):  # runners sign off while the console is there
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for file in self.folder.rglob("*.pid"):  # what a failed test has left
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(file.read_text().split("\n")[0]), signal.SIGKILL)


@dataclass
class Person:
    """Somebody with a token."""

    client: httpx.Client

    def save_spec(self, name: str, port: int, **more: Any) -> dict[str, Any]:
        cluster = {"port": port, **more.pop("cluster", {})}
        config = {"region": "local", "cluster": cluster, "database": {"name": "orders"}, "apps": ["shop"], **more}
        self.client.put(f"/api/spec/{name}", json={"account": "aws", "config": config}).raise_for_status()
        return config

    def press(self, table: str, name: str, operation: str) -> str:
        answer = self.client.post(f"/api/{table}/{name}/{operation}")
        assert answer.status_code == 202, answer.text  # noqa: S101 - for tests
        return str(answer.json()["job"])

    def job(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"/queue/v1/jobs/{job_id}").raise_for_status().json()
        return found

    def ended(self, job_id: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["status"] in OVER else None

        found: dict[str, Any] = eventually(look, f"job {job_id} has ended")
        return found

    def do(self, table: str, name: str, operation: str) -> dict[str, Any]:
        job = self.ended(self.press(table, name, operation))
        assert job["status"] == "succeeded", job["error"]  # noqa: S101 - for tests
        return job

    def log(self, job_id: str) -> list[str]:
        lines = self.client.get(f"/queue/v1/jobs/{job_id}/logs", params={"limit": 1000}).raise_for_status().json()
        return [line["message"] for line in lines["items"]]

    def row(self, table: str, name: str) -> dict[str, Any]:
        rows = self.client.get("/api/all").raise_for_status().json()[table]
        return next(row for row in rows if row["name"] == name)

    def components(self, spec: str) -> dict[str, Any]:
        rows = self.client.get("/api/all").raise_for_status().json()["component"]
        return {row["name"]: row["attributes"] for row in rows if row["spec"] == spec}
