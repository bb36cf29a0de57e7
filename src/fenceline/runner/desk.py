"""The desk of a handler on a runner: its wishes go to the server. There is no database here."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from uuid import UUID

from fenceline.context.attempt import Report
from fenceline.errors import RefusedError, StaleAttempt
from fenceline.model.json_text import stored_json
from fenceline.model.public_id import format_id
from fenceline.runner.client import Client

log = logging.getLogger("fenceline.runner")


class HttpDesk:
    has_database = False

    def __init__(self, client: Client) -> None:
        self._client = client
        self._jobs: dict[int, UUID] = {}
        self._logs: dict[UUID, _Log] = {}

    def open(self, job_id: int, attempt_id: UUID) -> None:
        """An attempt was claimed."""
        self._jobs[job_id] = attempt_id

    def close(self, job_id: int, attempt_id: UUID) -> None:
        """Nothing more will be written for it."""
        if self._jobs.get(job_id) == attempt_id:
            del self._jobs[job_id]
        self._logs.pop(attempt_id, None)

    async def ask(self, job_id: int, attempt_id: UUID, operation: str, values: dict[str, Any]) -> Any:
        method, path, body = request_of(operation, values)
        try:
            answer = await self._client.ask(method, f"/v1/jobs/{format_id(job_id)}/{path}", body, attempt_id=attempt_id)
        except StaleAttempt:
            if operation == "release_lock":
                return None  # a lock ends with its attempt
            raise
        return _READ[operation](answer) if operation in _READ else None

    async def start_json(self, job_id: int) -> dict[str, Any]:
        start: dict[str, Any] = await self._client.ask(
            "GET", f"/v1/jobs/{format_id(job_id)}/start", attempt_id=self._jobs[job_id]
        )
        return start

    async def snapshot_hash(self, snapshot: str) -> str:
        """Of whichever attempt: the server only wants to see one."""
        job_id, attempt_id = next(reversed(self._jobs.items()))
        path = f"/v1/jobs/{format_id(job_id)}/snapshot-hash"
        answer = await self._client.ask("POST", path, f'{{"snapshot": {snapshot}}}', attempt_id=attempt_id)
        return str(answer["hash"])

    async def report(self, job_id: int, attempt_id: UUID, report: Report) -> None:
        lines = self._logs.setdefault(attempt_id, _Log())
        async with lines.turn:  # in order, each line once
            if report.lines:
                body = stored_json({"lines": report.lines, "offset": lines.sent})
                path = f"/v1/jobs/{format_id(job_id)}/logs"
                try:
                    await self._client.ask("POST", path, body, attempt_id=attempt_id)
                except StaleAttempt:
                    raise
                except RefusedError as error:  # lines are worth less than the work that they tell of
                    log.warning("job %s: lines of its log are lost: %s", format_id(job_id), error)
                else:
                    lines.sent += len(report.lines)
            if report.progress is not None:
                values = {"progress": stored_json(report.progress["progress"])}
                await self.ask(job_id, attempt_id, "set_progress", values)

    async def reported(self, attempt_id: UUID) -> None:
        """Until what is on its way has arrived."""
        lines = self._logs.get(attempt_id)
        if lines is not None:
            async with lines.turn:
                pass

    async def woken(self, block: str, seconds: float) -> None:  # noqa: ARG002 - as the others have it
        """No notification comes here: the line for a lock is asked about again and again."""
        await asyncio.sleep(seconds)


class _Log:
    """How many lines of an attempt the server has."""

    __slots__ = ("sent", "turn")

    def __init__(self) -> None:
        self.sent = 0
        self.turn = asyncio.Lock()


#: What the answer means to whoever asked, where it is more than that it was done.
_READ: dict[str, Callable[[Any], Any]] = {
    "set_progress": lambda _answer: True,
    "move_items": lambda answer: answer,
    "add_children": lambda answer: answer["ids"],
    "take_lock": lambda answer: answer["held"],
    "guard_newer": lambda answer: answer["newer"],
}


def request_of(operation: str, values: dict[str, Any]) -> tuple[str, str, str | None]:  # noqa: C901, PLR0911 - a table
    """Method, path below the job, and body of an operation. Values that are JSON text already go in as they are."""
    match operation:
        case "record_step":
            body = _object(raw={"result": values.get("result"), "error": values.get("error")},
                           args_hash=values.get("args_hash"), ran_seconds=values.get("ran_seconds"))  # fmt: skip
            return "PUT", f"steps/{quote(values['name'], safe='')}", body
        case "list_steps_ahead":
            return "PUT", "steps", _object(names=values["names"])
        case "save_checkpoint":
            return "PUT", "checkpoint", _object(raw={"state": values["state"]})
        case "set_progress" if values.get("phase") is not None:
            return "PUT", "phase", _object(phase=values["phase"])
        case "set_progress":
            return "PUT", "progress", _progress(json.loads(values["progress"]))
        case "move_items":
            return "PUT", "items", _object(**values)
        case "take_lock":
            return "POST", "locks", _object(**values)
        case "release_lock":
            return "DELETE", f"locks/{values['owner']}", None
        case "guard_newer":
            return "POST", "guard", _object(**values)
        case "add_children":
            many = f"[{', '.join(values['args'])}]"
            raw = {"many": many, "options": values.get("options"), "defaults": values.get("defaults")}
            return "POST", "children", _object(raw=raw, kind=values["kind"], request_id=values["request_id"])
    raise ValueError(f"operation {operation!r} is unknown")


def _progress(said: dict[str, Any]) -> str:
    """What has a place of its own, and the rest as `more`."""
    shown = {
        name: said[name]
        for name, kinds in (("done", int | float), ("total", int | float), ("message", str))
        if isinstance(said.get(name), kinds)
    }
    more = {name: value for name, value in said.items() if name not in shown}
    return _object(**shown, more=more or None)


def _object(raw: dict[str, str | None] | None = None, **values: Any) -> str:
    """A JSON object of values, and of JSON texts; what is None is left out."""
    parts = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items() if value is not None]
    parts += [f"{json.dumps(name)}: {text}" for name, text in (raw or {}).items() if text is not None]
    return f"{{{', '.join(parts)}}}"
