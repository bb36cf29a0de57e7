"""The ledger that handlers keep, and how it is held against what the queue says."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Line:
    """`start` or `end` of a handler."""

    word: str
    job_id: int
    attempt_id: str
    token: int
    pid: int
    at: float


@dataclass(frozen=True, slots=True)
class Ending:
    """An ended attempt, as the queue tells it; `result` is the attempt whose handler returned it."""

    job_id: int
    attempt_id: str | None
    token: int | None
    outcome: str
    final: bool
    result: str | None


class Ledger:
    """Reads the file as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = []
        self.done: set[int] = set()
        self._read = 0

    def refresh(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        for text in whole.decode().splitlines():
            word, job_id, attempt_id, token, pid, at = text.split()
            line = Line(word, int(job_id), attempt_id, int(token), int(pid), float(at))
            self.lines.append(line)
            if word == "end":
                self.done.add(line.job_id)

    def at_work(self, job_ids: set[int]) -> dict[int, list[Line]]:
        """Starts without an end, of these jobs, by the process that the handler runs in."""
        ended = {line.attempt_id for line in self.lines if line.word == "end"}
        running: dict[int, list[Line]] = defaultdict(list)
        for line in self.lines:
            if line.word == "start" and line.job_id in job_ids and line.attempt_id not in ended:
                running[line.pid].append(line)
        return running

    def most_at_once(self, job_ids: set[int], since: float, until: float) -> int:
        """How many handlers of these jobs ran at the same time, of those that started in between."""
        started = {
            line.attempt_id
            for line in self.lines
            if line.word == "start" and line.job_id in job_ids and since <= line.at < until
        }
        moments = sorted(
            (line.at, -1 if line.word == "end" else 1) for line in self.lines if line.attempt_id in started
        )
        running = most = 0
        for _, step in moments:
            running += step
            most = max(most, running)
        return most


def check(job_ids: Sequence[int], lines: Iterable[Line], endings: Iterable[Ending]) -> list[str]:
    """What does not hold; nothing, if all is well.

    Every job has exactly one terminal write, a success, by the attempt that was claimed last, whose handler really
    ran to its end and whose result it is.
    """
    tokens: dict[int, set[int]] = defaultdict(set)
    ended: set[tuple[int, str]] = set()
    for line in lines:
        tokens[line.job_id].add(line.token)
        if line.word == "end":
            ended.add((line.job_id, line.attempt_id))
    finals: dict[int, list[Ending]] = defaultdict(list)
    for ending in endings:
        if ending.token is not None:
            tokens[ending.job_id].add(ending.token)
        if ending.final:
            finals[ending.job_id].append(ending)

    wrong = [f"job {job_id} ran and was never enqueued" for job_id in sorted(set(tokens) - set(job_ids))]
    for job_id in job_ids:
        if len(finals[job_id]) != 1:
            wrong.append(f"job {job_id} has {len(finals[job_id])} terminal writes, not one")
        complaints = (_complaint(final, ended, max(tokens[job_id], default=0)) for final in finals[job_id])
        wrong += [f"job {job_id} {complaint}" for complaint in complaints if complaint is not None]
    return wrong


def _complaint(final: Ending, ended: set[tuple[int, str]], last_token: int) -> str | None:
    if final.outcome != "succeeded":
        return final.outcome
    if (final.job_id, final.attempt_id) not in ended:
        return "counts as done, but that attempt's handler did not run to its end"
    if final.token != last_token:
        return "was ended by an attempt that was not the last one claimed"
    if final.result != final.attempt_id:
        return "carries the result of a stale attempt"
    return None
