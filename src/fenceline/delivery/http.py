"""Delivery over HTTP: a runner has no database, a server hands out the jobs and is told what becomes of them.

Every request is safe to repeat, and is repeated with growing pauses: a claim carries a request id, an exact repeat of
an end is answered like the first, log lines carry their offset, and the rest is idempotent.
"""

import asyncio
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

import httpx

from fenceline.context.attempt import Attempt, Ending, Report
from fenceline.database.calls.attempts import AttemptEnd
from fenceline.database.calls.lanes import LaneForWorker
from fenceline.database.dsn import without_password
from fenceline.delivery.contract import AttemptNotice, ClaimRequest, Lease, Notices, Verdict, WorkerRecord
from fenceline.delivery.http_api import HttpAttemptApi, batch_item, json_object, stale_of
from fenceline.errors import NotFound, RefusedError, WorkerLost
from fenceline.model.outcome import Outcome
from fenceline.model.public_id import parse_id
from fenceline.runtime.http_client import ANSWER_SECONDS, Client, Forbidden, ServerTooOld, TokenRefused
from fenceline.runtime.http_tls import RunnerTls
from fenceline.runtime.http_token import Rotation, Token

log = logging.getLogger("fenceline.runner")

#: How long a request waits on the server for new jobs, and the pause before the next one.
WAIT_SECONDS = 20.0
PAUSE_SECONDS = 0.05
#: How long a claim under a rate limit waits there: less than a stopping engine waits for its last claim.
TURN_SECONDS = 0.4
#: The server's words for verdicts; any other is `stale`.
_VERDICTS: Mapping[str, Verdict] = {"already": "already", "finalizer_missing": "later"}


class HttpDelivery:
    cannot = ("ctx.transaction() does not work over HTTP: let a finalizer of the kind write the result",)
    is_deaf = False
    leases: Literal["postgres", "http"] = "http"
    turn_seconds = TURN_SECONDS
    wants_heartbeats = True

    def __init__(
        self,
        url: str,
        token: str | Token,
        *,
        lease_seconds: float | None = None,
        rotate_seconds: float | None = None,
        tls: RunnerTls | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        patient: bool = True,
    ) -> None:
        """`lease_seconds`: None takes the server's default. `rotate_seconds`: how often to exchange the token for a new
        one. `patient`: also wait for the server when registering.
        """
        self._url = url
        self._token = Token(token) if isinstance(token, str) else token
        self._tls = tls or RunnerTls()
        self._client = Client(url, self._token, tls=self._tls, transport=transport)
        self._lease_seconds = lease_seconds
        self._rotate_seconds = rotate_seconds
        self._patient = patient
        self.api = HttpAttemptApi(self._client)
        self._worker_id = 0
        self._lanes: list[str] | None = None
        self._known: list[str] = []
        self._rated: set[str] = set()
        self._ends: dict[UUID, AttemptEnd] = {}  # from the server's last answers

    @property
    def where(self) -> str:
        return f"server {without_password(self._url)}"

    async def environment(self) -> Mapping[str, str]:
        return {"FENCELINE_URL": self._url, **self._token.to_environment(), **self._tls.to_environment()}

    # The worker ------------------------------------------------------------------------------------------------------

    async def register(self, worker: WorkerRecord) -> Lease:
        """Raises TokenRefused, ServerTooOld, and unless patient ServerAway."""
        body = json_object(
            name=worker.name,
            lanes=worker.lanes,
            kinds=sorted(worker.kinds),
            labels=worker.labels,
            host=worker.host,
            version=worker.version,
            lease_seconds=self._lease_seconds,
            tells_starts=True,
            signatures=worker.signatures,
        )
        ask = self._client.ask if self._patient else self._client.ask_once
        try:
            runner = await ask("POST", "/v1/runners", body)
        except Forbidden as error:
            raise TokenRefused(f"{error}: give the runner a token of the role `runner`") from error
        except RefusedError as error:
            if "tells_starts" in str(error):  # 0.1.0 does not know the field, nor much else that a runner asks for now
                raise ServerTooOld("the server is older than this runner: upgrade the server first") from error
            raise
        self._worker_id, self._lanes = runner["id"], runner["lanes"]
        log.info("registered as runner %s (%s)", runner["id"], runner["name"])
        return Lease(runner["id"], runner["lease_seconds"])

    async def heartbeat(self, held: Collection[UUID]) -> list[AttemptNotice]:
        body = json.dumps({"attempts": [str(attempt_id) for attempt_id in held]})
        answer = await self._ask_runner("POST", "heartbeat", body, once=True)
        cancelled = [AttemptNotice(UUID(text), "cancel", answer["grace"].get(text)) for text in answer["cancel"]]
        return cancelled + [AttemptNotice(UUID(text), "stale") for text in answer["stale"]]

    async def sign_off(self, fail_kinds: Sequence[str]) -> None:
        await self._ask_runner("POST", "stop", json.dumps({"fail_kinds": list(fail_kinds)}), once=True)

    async def listen(self, notices: Notices) -> None:
        rotating = asyncio.create_task(self._rotate_token())
        try:
            await self._wait_for_jobs(notices)
        finally:
            rotating.cancel()

    async def _rotate_token(self) -> None:
        if self._rotate_seconds is not None:
            await Rotation(self._client, self._token, every_seconds=self._rotate_seconds).run()

    async def _wait_for_jobs(self, notices: Notices) -> None:
        """Always keep a request waiting on the server: it is answered when a lane may have new jobs."""
        while True:
            if self._known:
                body = json.dumps({"lanes": self._known, "seconds": WAIT_SECONDS})
                try:
                    heard = await self._ask_runner("POST", "wait", body, answer_seconds=WAIT_SECONDS + ANSWER_SECONDS)
                except RefusedError as error:  # claims say what is wrong; this only makes things quicker
                    log.warning("the server does not tell of new jobs: %s", error)
                    await asyncio.sleep(WAIT_SECONDS)
                else:
                    for lane in heard["lanes"]:
                        notices.wake(lane)
            await asyncio.sleep(PAUSE_SECONDS)

    async def close(self) -> None:
        await self._client.close()

    async def _ask_runner(
        self, method: str, path: str, body: str | None = None, *, once: bool = False, **options: Any
    ) -> Any:
        """A request below this runner's path. Raises WorkerLost."""
        ask = self._client.ask_once if once else self._client.ask
        try:
            return await ask(method, f"/v1/runners/{self._worker_id}/{path}", body, **options)
        except NotFound as error:
            raise WorkerLost(str(error)) from error

    # Claiming --------------------------------------------------------------------------------------------------------

    async def read_lanes(self) -> list[LaneForWorker]:
        lanes = await self._read_lanes(self._lanes)
        self._known = [lane["name"] for lane in lanes]
        self._rated = {lane["name"] for lane in lanes if lane["pause_seconds"] is not None}
        return [
            LaneForWorker(**{name: value for name, value in lane.items() if name != "pause_seconds"}) for lane in lanes
        ]

    async def rate_pauses(self, lanes: Sequence[str]) -> Mapping[str, float]:
        rated = [lane for lane in lanes if lane in self._rated]
        found = await self._read_lanes(rated) if rated else []
        return {lane["name"]: lane["pause_seconds"] for lane in found if lane["pause_seconds"] is not None}

    async def _read_lanes(self, lanes: Sequence[str] | None) -> list[dict[str, Any]]:
        query = "" if lanes is None else f"?{httpx.QueryParams([('lane', lane) for lane in lanes])}"
        found: list[dict[str, Any]] = (await self._ask_runner("GET", f"lanes{query}"))["lanes"]
        return found

    async def claim(self, request: ClaimRequest) -> list[Attempt]:
        body = json_object(
            runner_id=self._worker_id,
            lanes=[request.lane],
            count=request.limit,
            request_id=str(request.request_id),
            apart=request.alone or None,
            kinds=request.kinds,
            notify=request.wait_seconds,
            wait=request.turn_seconds or None,
        )
        try:
            answer = await self._client.ask("POST", "/v1/jobs/claim", body)
        except NotFound as error:
            raise WorkerLost(str(error)) from error
        return [read_attempt(claimed) for claimed in answer["attempts"]]

    # Attempts --------------------------------------------------------------------------------------------------------

    async def start(self, attempts: Sequence[Attempt], ran_seconds: Sequence[float]) -> list[UUID]:
        items = [
            batch_item(attempt.job_id, attempt.attempt_id, ran_seconds=round(seconds, 6))
            for attempt, seconds in zip(attempts, ran_seconds, strict=True)
        ]
        return stale_of(await self.api.post_batches("start", items))

    async def check(self, attempts: Sequence[Attempt]) -> list[AttemptNotice]:  # noqa: ARG002 - heartbeats bring the news
        return []

    async def report(self, reports: Sequence[tuple[Attempt, Report]], *, patient: bool = True) -> list[UUID]:  # noqa: ARG002 - the server waits
        return await self.api.send_reports([(a.job_id, a.attempt_id, report) for a, report in reports])

    async def finish(self, endings: Sequence[Ending]) -> Mapping[UUID, Verdict]:
        async with self.api.turn:  # after the reports that are on their way
            answer = await self.api.post_batches("finish", map(_finish_item, endings))
        self._ends |= {end.attempt_id: end for end in map(_end_of, answer) if end is not None}
        return {
            UUID(item["attempt_id"]): _VERDICTS.get(item["verdict"], "stale")
            for item in answer
            if item["verdict"] != "accepted"
        }

    async def crash(self, ending: Ending) -> Verdict:
        body = json_object({"error": ending.error}, status=Outcome.CRASHED)
        path, attempt_id = f"/v1/jobs/{ending.attempt.id}/status", ending.attempt.attempt_id
        try:
            job = await self._client.ask("PUT", path, body, attempt_id=attempt_id)
        except RefusedError as error:
            log.warning("job %s: that it killed its process was refused: %s", ending.attempt.id, error)
            return "stale"
        is_final = job["status"] == "failed"
        self._ends[attempt_id] = AttemptEnd(attempt_id, is_final, "quarantined" if is_final else "crashed", None)
        return "accepted"

    async def find_ends(self, endings: Sequence[Ending]) -> Mapping[UUID, AttemptEnd]:  # noqa: ARG002 - all that are known
        ends, self._ends = self._ends, {}
        return ends

    async def find_in_use(self, attempts: Sequence[Attempt]) -> set[UUID]:  # noqa: ARG002 - the server waits for them
        return set()


def read_attempt(claimed: Mapping[str, Any]) -> Attempt:
    """An attempt as the server described it."""
    job = claimed["job"]
    return Attempt(
        lane=job["lane"],
        job_id=parse_id(job["id"]),
        attempt_id=UUID(claimed["attempt_id"]),
        token=claimed["token"],
        number=claimed["number"],
        kind=job["kind"],
        args=json.dumps(job["args"]),
        tenant=job["tenant"],
        priority=job["priority"],
        seq=0,  # of no use here
        max_attempts=job["max_attempts"],
        timeout_seconds=claimed["timeout_seconds"],
        alone=claimed["alone"],
        details_text=None if claimed["details"] is None else json.dumps(claimed["details"]),
    )


def _end_of(answered: Mapping[str, Any]) -> AttemptEnd | None:
    """None: an older server does not say."""
    if answered.get("final") is None:
        return None
    return AttemptEnd(UUID(answered["attempt_id"]), answered["final"], answered["asked"], answered["next_seconds"])


def _finish_item(ending: Ending) -> str:
    # Over HTTP, "do not retry" is a field of its own beside the status; all other outcomes have the same names.
    retry = ending.outcome is not Outcome.FAILED_FOR_GOOD
    return batch_item(
        ending.attempt.job_id,
        ending.attempt.attempt_id,
        {"result": ending.result, "error": ending.error, "errors": ending.errors},
        status=ending.outcome if retry else Outcome.FAILED,
        retry=retry,
        delay_seconds=ending.delay,
        ran_seconds=ending.ran_seconds,
    )
