"""What the runner protocol carries: batches claimed and finished over HTTP by two runners, no handler in between."""

import asyncio
import json
import time

import asyncpg

from benchmarks import jobs
from benchmarks.client_enqueue import dsn_of
from benchmarks.http_server import Client, admin_token, server
from benchmarks.measure import Result, Size

RUNNERS = 2
BATCH = 200
TARGET = 2000


async def run(client: Client) -> int:
    """Claim and finish until there is nothing left; how many."""
    status, answer = await client.request("POST", "/v1/runners", b"{}")
    assert status == 201
    runner_id = json.loads(answer)["id"]
    done = 0
    while True:
        body = json.dumps({"runner_id": runner_id, "count": BATCH}).encode()
        status, answer = await client.request("POST", "/v1/jobs/claim", body)
        assert status == 200
        attempts = json.loads(answer)["attempts"]
        if not attempts:
            return done
        ends = [
            {"job": claimed["job"]["id"], "attempt_id": claimed["attempt_id"], "status": "succeeded", "result": 1}
            for claimed in attempts
        ]
        status, answer = await client.request("POST", "/v1/jobs/finish", json.dumps({"attempts": ends}).encode())
        assert status == 200
        assert {item["verdict"] for item in json.loads(answer)["attempts"]} == {"accepted"}
        done += len(attempts)


async def measure(connection: asyncpg.Connection, size: Size) -> list[Result]:
    count = BATCH * (10 if size.quick else 100)
    token = await admin_token(connection)
    async with server(await dsn_of(connection)) as port:
        clients = [await Client.open(port, token) for _ in range(RUNNERS)]
        await jobs.enqueue(connection, BATCH, jobs.args_of(100))
        await run(clients[0])
        await jobs.enqueue(connection, count, jobs.args_of(100))
        started = time.perf_counter()
        done = await asyncio.gather(*(run(client) for client in clients))
        seconds = time.perf_counter() - started
        assert sum(done) == count
        assert await connection.fetchval("select count(*) from fenceline.history where final") == count + BATCH
        for client in clients:
            client.close()
    return [
        Result(
            measurement=f"runners over HTTP: claim + finish, batches of {BATCH}, {RUNNERS} clients, one server process",
            unit="jobs/s",
            ours=count / seconds,
            target=TARGET,
        )
    ]
