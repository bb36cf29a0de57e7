"""The calls of `ctx` on a runner, which has no database: they go to the server."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

from fenceline.context.attempt import Report
from fenceline.errors import RefusedError, StaleAttempt
from fenceline.model.json_text import stored_json
from fenceline.model.public_id import format_id
from fenceline.runtime.http_client import Client

log = logging.getLogger("fenceline.runner")

#: Limits of one request about many attempts. `MAX_SIZE`: characters of JSON; the server takes four times as many bytes.
MAX_ITEMS = 500
MAX_LINES = 2000
MAX_SIZE = 1_000_000


class HttpAttemptApi:
    has_database = False

    def __init__(self, client: Client) -> None:
        self._client = client
        #: Held while reports and ends are sent: lines arrive in order, once, and before the end of their attempt.
        self.turn = asyncio.Lock()

    async def execute(self, job_id: int, attempt_id: UUID, operation: str, values: dict[str, Any]) -> Any:
        method, path, body = request_of(operation, values)
        try:
            answer = await self._client.ask(method, f"/v1/jobs/{format_id(job_id)}/{path}", body, attempt_id=attempt_id)
        except StaleAttempt:
            if operation == "release_lock":
                return None  # a lock ends with its attempt
            raise
        return _READ[operation](answer) if operation in _READ else None

    async def report(self, job_id: int, attempt_id: UUID, report: Report) -> None:
        await self.send_reports([(job_id, attempt_id, report)])

    async def send_reports(self, reports: Sequence[tuple[int, UUID, Report]]) -> list[UUID]:
        """Write lines and progress of many attempts; returns the stale ones. Lines that are refused are lost."""
        async with self.turn:
            parts = [part for report in reports for part in _parts(*report)]
            return [gone for batch in _batches(parts) for gone in await self._send_parts(batch)]

    async def _send_parts(self, parts: "Sequence[_Part]") -> list[UUID]:
        try:
            return stale_of(await self._post("report", parts))
        except RefusedError as error:
            if len(parts) == 1:  # lines are worth less than the job that wrote them
                log.warning("job %s: lines of its log are lost: %s", format_id(parts[0].job_id), error)
                return []
            # One of them cannot be stored; the others must not suffer for it.
            return [gone for one in parts for gone in await self._send_parts([one])]

    async def post_batches(self, verb: str, items: Iterable[str]) -> list[dict[str, Any]]:
        """`POST /v1/jobs/start` or `finish`, in as many requests as it takes; returns the verdict on each item."""
        batches = _batches(_Part(0, 0, item) for item in items)
        return [verdict for batch in batches for verdict in await self._post(verb, batch)]

    async def _post(self, verb: str, parts: "Sequence[_Part]") -> list[dict[str, Any]]:
        items = ", ".join(part.text for part in parts)
        answer = await self._client.ask("POST", f"/v1/jobs/{verb}", f'{{"attempts": [{items}]}}')
        verdicts: list[dict[str, Any]] = answer["attempts"]
        return verdicts

    async def wait_for_turn(self, block: str, seconds: float) -> None:  # noqa: ARG002 - as in the other APIs
        """No notifications come here: locks are polled."""
        await asyncio.sleep(seconds)


#: What an operation returns, made from the server's answer; operations that are not here return None.
_READ: dict[str, Callable[[Any], Any]] = {
    "set_progress": lambda _answer: True,
    "move_items": lambda answer: answer,
    "add_children": lambda answer: answer["ids"],
    "begin_wait": lambda answer: answer,
    "create_callback": lambda answer: answer["expires_at"],
    "take_lock": lambda answer: answer["held"],
    "guard_newer": lambda answer: answer["newer"],
    "attempt_start": lambda answer: answer,
    "snapshot_hash": lambda answer: answer["hash"],
}
#: Method and path below the job, of operations whose values are the request's body as they are.
_AS_IT_IS = {
    "list_steps_ahead": ("PUT", "steps"),
    "move_items": ("PUT", "items"),
    "begin_wait": ("POST", "waits"),
    "create_callback": ("POST", "callbacks"),
    "take_lock": ("POST", "locks"),
    "guard_newer": ("POST", "guard"),
}


def request_of(operation: str, values: dict[str, Any]) -> tuple[str, str, str | None]:  # noqa: PLR0911 - a table
    """Method, path below the job, and body of an operation. Values that are JSON text are copied in unparsed."""
    if operation in _AS_IT_IS:
        return *_AS_IT_IS[operation], json_object(**values)
    match operation:
        case "record_step":
            body = json_object(raw={"result": values.get("result"), "error": values.get("error")},
                           args_hash=values.get("args_hash"), ran_seconds=values.get("ran_seconds"))  # fmt: skip
            return "PUT", f"steps/{quote(values['name'], safe='')}", body
        case "save_checkpoint":
            return "PUT", "checkpoint", json_object(raw={"state": values["state"]})
        case "set_progress" if values.get("phase") is not None:
            return "PUT", "phase", json_object(phase=values["phase"])
        case "set_progress":
            return "PUT", "progress", _progress(json.loads(values["progress"]))
        case "release_lock":
            return "DELETE", f"locks/{values['owner']}", None
        case "attempt_start":
            return "GET", "start", None
        case "snapshot_hash":
            return "POST", "snapshot-hash", json_object(raw={"snapshot": values["snapshot"]})
        case "add_children":
            many = f"[{', '.join(values['args'])}]"
            raw = {"many": many, "options": values.get("options"), "defaults": values.get("defaults")}
            return "POST", "children", json_object(raw=raw, kind=values["kind"], request_id=values["request_id"])
    raise ValueError(f"operation {operation!r} is unknown")


def _progress(progress: dict[str, Any]) -> str:
    """Fields that HTTP knows, and the rest as `more`."""
    shown = {
        name: progress[name]
        for name, kinds in (("done", int | float), ("total", int | float), ("message", str))
        if isinstance(progress.get(name), kinds)
    }
    more = {name: value for name, value in progress.items() if name not in shown}
    return json_object(**shown, more=more or None)


def json_object(raw: dict[str, str | None] | None = None, **values: Any) -> str:
    """A JSON object made of values and of JSON texts (`raw`), without those that are None."""
    parts = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items() if value is not None]
    parts += [f"{json.dumps(name)}: {text}" for name, text in (raw or {}).items() if text is not None]
    return f"{{{', '.join(parts)}}}"


def batch_item(job_id: int, attempt_id: UUID, raw: dict[str, str | None] | None = None, **values: Any) -> str:
    """An item of a batch, as JSON text."""
    return json_object(raw, job=format_id(job_id), attempt_id=str(attempt_id), **values)


def stale_of(verdicts: Sequence[Mapping[str, Any]]) -> list[UUID]:
    """The attempts for which nothing was written."""
    return [UUID(item["attempt_id"]) for item in verdicts if item["verdict"] != "accepted"]


class _Part(NamedTuple):
    """The report of an attempt, or as much of it as one request may carry."""

    job_id: int
    lines: int
    text: str


def _parts(job_id: int, attempt_id: UUID, report: Report) -> Iterator[_Part]:
    raw = {
        "lines": stored_json(report.lines) if report.lines else None,
        "progress": None if report.progress is None else stored_json(report.progress["progress"]),
    }
    text = batch_item(job_id, attempt_id, raw, offset=report.offset)
    count = len(report.lines)
    if count < 2 or (count <= MAX_LINES and len(text) <= MAX_SIZE):  # noqa: PLR2004 - a line cannot be halved
        yield _Part(job_id, count, text)
        return
    half = count // 2
    yield from _parts(job_id, attempt_id, Report(report.lines[:half], report.progress, report.offset))
    yield from _parts(job_id, attempt_id, Report(report.lines[half:], None, report.offset + half))


def _batches(parts: Iterable[_Part]) -> Iterator[Sequence[_Part]]:
    """As many at a time as the server takes."""
    batch: list[_Part] = []
    lines = size = 0
    for part in parts:
        lines, size = lines + part.lines, size + len(part.text)
        if batch and (len(batch) == MAX_ITEMS or lines > MAX_LINES or size > MAX_SIZE):
            yield batch
            batch, lines, size = [], part.lines, len(part.text)
        batch.append(part)
    if batch:
        yield batch
