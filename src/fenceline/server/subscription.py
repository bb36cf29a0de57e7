"""One client of a stream: what it has been sent, and a bounded buffer of what it has yet to receive.

A stream shows the latest state of jobs, and every log line. States may be skipped, lines never. The ids of events say
how far a client has come, so it can continue where it stopped, on any server.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sse_starlette import ServerSentEvent

from fenceline.database.calls.streams import FollowedJob, JournalRow, LineText
from fenceline.model.identity import Identity
from fenceline.model.job import JobFilter
from fenceline.model.public_id import format_id
from fenceline.model.status import FINAL
from fenceline.server.hiding import hide
from fenceline.server.limits import Recent

#: Lines read at a time; after a full page there may be another.
PAGE = 500
#: After how long a client reconnects.
RETRY_MS = 1000
#: For how many jobs a filtered stream remembers the last state, so as not to send it twice.
REMEMBERED = 1000
#: The part behind the dot of a filtered stream's event id when everything at this place has been sent.
WHOLE = 2**31 - 1

_JOB_ID = re.compile(r"(\d{1,18})-(\d{1,9})-([0-9a-f]{1,16})-([0-9a-f]{1,16})", re.ASCII)
_JOURNAL_ID = re.compile(r"(\d{1,18})\.(\d{1,10})", re.ASCII)
_SIXTY_FOUR = 2**64 - 1


class InvalidEventId(ValueError):
    """Not the id of an event of this stream."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a stream's client authenticated with; it is checked again while the stream is open."""

    identity: Identity
    token_hash: bytes | None = None  # one of our tokens
    authorization: str | None = None  # anything else


class Stream:
    """Events that wait for a client, up to `most_events` and about `most_bytes`. A slower client falls behind: nothing
    more is pushed to it, and it reads on by itself once it has taken what waits.
    """

    def __init__(self, proof: Proof, *, most_events: int = 1000, most_bytes: int = 256 * 1024) -> None:
        self.proof = proof
        self.closed = False
        self.is_behind = False
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._most_events = most_events
        self._most_bytes = most_bytes
        self._changed = asyncio.Event()

    def push(self, event: str | None, data: str | None, event_id: str) -> bool:
        """Queue an event for the client; False if there is no room, or the stream is closed."""
        if self.closed or self.is_behind:
            return False
        if len(self._waiting) >= self._most_events or self._bytes >= self._most_bytes:
            self.is_behind = True
            return False
        if data is not None and self.proof.identity.hides_args:
            data = hide(data)
        encoded = ServerSentEvent(data=data, event=event, id=event_id, sep="\n").encode()
        self._waiting.append(encoded)
        self._bytes += len(encoded)
        self._changed.set()
        return True

    def close(self, why: str | None = None) -> None:
        """End the stream after what waits has been sent, with a comment that says why."""
        if not self.closed:
            self.closed = True
            if why is not None:
                self._waiting.append(ServerSentEvent(comment=why, sep="\n").encode())
            self._changed.set()

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def take(self) -> bytes:
        """All that waits."""
        taken = b"".join(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return taken

    async def chunks(self) -> AsyncIterator[bytes]:
        """What is pushed, until the stream is closed or has fallen behind."""
        while True:
            self._changed.clear()
            if self._waiting:
                yield self.take()
            elif self.closed or self.is_behind:
                return
            else:
                await self._changed.wait()


class JobStream(Stream):
    """One job, to its end."""

    def __init__(self, job_id: int, proof: Proof, last_event_id: str | None = None) -> None:
        """Raises InvalidEventId."""
        super().__init__(proof)
        self.job_id = job_id
        self.after = (0, 0)  # token and line of the last log line sent
        self._status = self._progress = "0"  # versions of what was sent
        self.ended = False
        if last_event_id:
            found = _JOB_ID.fullmatch(last_event_id)
            if found is None or int(found[2]) > WHOLE:
                raise InvalidEventId(last_event_id)
            self.after = (int(found[1]), int(found[2]))
            self._status, self._progress = found[3], found[4]

    def offer(self, seen: FollowedJob) -> None:
        """Send what is new about the job, as far as there is room."""
        if seen.job is None or seen.progress is None:
            self.close("the job is gone")
            return
        is_final = seen.status in FINAL
        status, progress = _hex(seen.status_version), _hex(seen.progress_version)
        if not is_final:
            self._send("status", seen.job, self.after, status, self._progress)
        self._send("progress", seen.progress, self.after, self._status, progress)
        for line in seen.lines:
            if (line.token, line.line) > self.after:
                self._send("log", with_id(seen.job_id, line), (line.token, line.line), self._status, self._progress)
        if is_final and not self.is_behind and len(seen.lines) < PAGE:  # else there are more lines
            self._send("status", seen.job, self.after, status, self._progress)
            if not self.is_behind:
                self.ended = True
                self.close()

    def _send(self, event: str, data: str, after: tuple[int, int], status: str, progress: str) -> None:
        """Send it unless the client has seen it already."""
        if (after, status, progress) != (self.after, self._status, self._progress) and self.push(
            event, data, f"{after[0]}-{after[1]}-{status}-{progress}"
        ):
            self.after, self._status, self._progress = after, status, progress


@dataclass(frozen=True, slots=True)
class JournalPage:
    """Rows of the journal with their jobs, as they are now, and their log lines."""

    rows: Sequence[JournalRow]
    jobs: Mapping[int, FollowedJob]
    attributes: Mapping[int, Mapping[str, Any]]  # the jobs' JSON, read
    lines: Mapping[int, Sequence[LineText]]  # by the row's place


@dataclass(slots=True)
class Position:
    """How far a client has read in the journal: a place, and how much of what is there."""

    place: int
    part: int = field(default=WHOLE)

    @property
    def after(self) -> int:
        """The place after which to read on."""
        return self.place if self.part == WHOLE else self.place - 1


class FilterStream(Stream):
    """Every job that matches a filter, as things happen."""

    def __init__(self, filters: JobFilter, proof: Proof) -> None:
        super().__init__(proof)
        self.filters = filters
        self.position = Position(0)
        self._versions: Recent[int, tuple[int, int]] = Recent(REMEMBERED)

    @staticmethod
    def read_event_id(last_event_id: str) -> Position:
        """Raises InvalidEventId."""
        found = _JOURNAL_ID.fullmatch(last_event_id)
        if found is None or int(found[2]) > WHOLE:
            raise InvalidEventId(last_event_id)
        return Position(int(found[1]), int(found[2]))

    def matches(self, job: Mapping[str, Any]) -> bool:
        identity = self.proof.identity
        return (
            (identity.reach is None or job["tenant"] == identity.reach)
            and (identity.only_created_by is None or job["created_by"] == identity.only_created_by)
            and self.filters.matches(job)
        )

    def show(self, seen: FollowedJob, attributes: Mapping[str, Any]) -> bool:
        """Send the initial state of a job; False if there is no room, so it must be shown again."""
        if self.matches(attributes):
            self._send_state(seen, self.position.place, (WHOLE, WHOLE))
        return not self.is_behind

    def offer(self, page: JournalPage) -> None:
        """Send what is new on the page, as far as there is room."""
        last = {row.job_id: row.place for row in page.rows if row.token is None}  # only the last state of a job is sent
        for row in page.rows:
            if row.place <= self.position.after:
                continue
            sent = self.position.part if row.place == self.position.place else 0
            seen, attributes = page.jobs.get(row.job_id), page.attributes.get(row.job_id)
            if seen is not None and attributes is not None and self.matches(attributes):
                if row.token is not None:
                    self._send_lines(row, page.lines.get(row.place, ()), sent)
                elif last[row.job_id] == row.place and not _ended_after(row, attributes):
                    self._send_state(seen, row.place, (1, 2), sent)
            if self.is_behind or self.closed:
                return
            self.position = Position(row.place)

    def mark(self) -> None:
        """Send an id without an event, so that the client knows how far it has come although nothing was for it."""
        self.push(None, None, f"{self.position.place}.{self.position.part}")

    def _send_lines(self, row: JournalRow, lines: Sequence[LineText], sent: int) -> None:
        for line in lines:
            if line.line > sent and self.push("log", with_id(row.job_id, line), f"{row.place}.{line.line}"):
                self.position = Position(row.place, line.line)

    def _send_state(self, seen: FollowedJob, place: int, parts: tuple[int, int], sent: int = 0) -> None:
        if seen.job is None or seen.progress is None:
            return
        status_version, progress_version = self._versions.get(seen.job_id, (0, 0))
        if (
            seen.status_version != status_version
            and sent < parts[0]
            and self.push("status", seen.job, f"{place}.{parts[0]}")
        ):
            status_version = seen.status_version
            self.position = Position(place, parts[0])
        if (
            seen.progress_version != progress_version
            and sent < parts[1]
            and self.push("progress", seen.progress, f"{place}.{parts[1]}")
        ):
            progress_version = seen.progress_version
            self.position = Position(place, parts[1])
        self._versions[seen.job_id] = (status_version, progress_version)


def _ended_after(row: JournalRow, job: Mapping[str, Any]) -> bool:
    """Whether the job has ended since: more lines may come first, and the end has its own row."""
    return job["finished_at"] is not None and row.at < datetime.fromisoformat(job["finished_at"])


def with_id(job_id: int, line: LineText) -> str:
    """A log line's JSON with the job it belongs to."""
    return f'{{"id": "{format_id(job_id)}", {line.text[1:]}'


def _hex(version: int) -> str:
    return f"{version & _SIXTY_FOUR:x}"
