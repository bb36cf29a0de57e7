"""The screen of `fenceline top`."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static

from fenceline.cli.exception_text import one_line
from fenceline.cli.queue import Queue, QueueJob
from fenceline.cli.top_dialogs import KEYS, Page, Question
from fenceline.cli.top_view import (
    JOB_COLUMNS,
    LANE_COLUMNS,
    WORKER_COLUMNS,
    Row,
    Snapshot,
    findings_line,
    findings_page,
    headline,
    job_page,
    job_row,
    lane_row,
    look,
    worker_row,
)
from fenceline.doctor.finding import Finding, Limits
from fenceline.errors import RefusedError

Rows = Mapping[str, Row]
REASON = "from top"
#: Between runs of the doctor, which cost the database more than a refresh of the screen.
EXAMINE_SECONDS = 4.0


class RowTable(DataTable[Text]):
    """A table that is filled anew at every refresh, and keeps its cursor on the same row."""

    def __init__(self, title: str, columns: tuple[str, ...], id: str) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=False, show_header=True)
        self.border_title = title
        self._columns_shown = columns

    def on_mount(self) -> None:
        self.add_columns(*self._columns_shown)

    def fill(self, rows: Rows) -> None:
        chosen, place, offset = self.chosen, self.cursor_row, self.scroll_y
        self.clear()
        for key, cells in rows.items():
            self.add_row(*cells, key=key)
        if chosen in rows:
            place = list(rows).index(chosen)
        if rows:
            self.move_cursor(row=min(place, len(rows) - 1), animate=False, scroll=False)
            self.scroll_to(y=offset, animate=False)

    @property
    def chosen(self) -> str:
        """The key of the row under the cursor; empty without one."""
        if not self.is_valid_row_index(self.cursor_row):
            return ""
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value or ""


class TopApp(App[None]):
    CSS = """
    #headline { height: 1; padding: 0 1; }
    #trouble { height: auto; padding: 0 1; color: $error; }
    #findings { height: 1; padding: 0 1; color: $warning; display: none; }
    RowTable { height: auto; border: round $primary-darken-2; padding: 0; }
    RowTable:focus { border: round $accent; }
    #lanes { max-height: 12; }
    #jobs { height: 1fr; min-height: 6; }
    #workers { max-height: 10; }
    Question { align: center middle; }
    #question { width: 60; height: auto; border: round $accent; padding: 1 2; background: $surface; }
    Page { align: center middle; }
    #page { width: 95%; height: 90%; border: round $accent; padding: 1 2; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("tab", "focus_next", "Next table", show=False),
        Binding("d", "drain", "Drain lane"),
        Binding("r", "resume", "Resume lane"),
        Binding("c", "cancel", "Cancel job"),
        Binding("p", "reprioritise", "Priority of job"),
        Binding("a", "approve", "Approve", show=False),
        Binding("x", "reject", "Reject", show=False),
        Binding("t", "retry", "Retry", show=False),
        Binding("f", "findings", "Findings", show=False),
        Binding("slash", "filter", "Filter"),
        Binding("question_mark", "help", "Help"),
        Binding("space", "look", "Look now"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, queue: Queue, interval: float) -> None:
        super().__init__()
        self._queue = queue
        self._interval = interval
        self._seen: Snapshot | None = None
        self._looking = False
        self._word = ""
        self._findings: list[Finding] = []

    def compose(self) -> ComposeResult:
        yield Static("looking …", id="headline")
        yield Static("", id="trouble")
        yield Static("", id="findings")
        yield RowTable("lanes", LANE_COLUMNS, id="lanes")
        yield RowTable("jobs", JOB_COLUMNS, id="jobs")
        yield RowTable("workers", WORKER_COLUMNS, id="workers")
        yield Footer()

    def on_mount(self) -> None:
        self.action_look()
        self.set_interval(self._interval, self.action_look)
        self.run_worker(self._examine())

    async def _examine(self) -> None:
        """Run `doctor` every few seconds; without a word if the user may not."""
        while True:
            try:
                self._findings = await self._queue.examine(Limits())
            except RefusedError:
                return  # and it would be refused the next time
            except Exception as error:
                if one_line(error) is None:
                    raise
            else:
                shown = self.query_one("#findings", Static)
                shown.update(findings_line(self._findings))
                shown.display = bool(self._findings)
            await asyncio.sleep(EXAMINE_SECONDS)

    def action_look(self) -> None:
        self.run_worker(self._look())

    async def _look(self) -> None:
        if self._looking:
            return  # the one before has not finished
        self._looking = True
        try:
            word = None
            while word != self._word:  # the filter may have changed meanwhile
                word = self._word
                seen = await look(self._queue, word)
        except Exception as error:
            line = one_line(error)
            if line is None:
                raise
            self._trouble(f"{line} — trying again")
            return
        finally:
            self._looking = False
        self._trouble("")
        self._show(seen)

    def _show(self, seen: Snapshot) -> None:
        self._seen = seen
        self.query_one("#headline", Static).update(headline(seen))
        self._table("lanes").fill({n.name: lane_row(n, seen.rates, seen.failed[n.name]) for n in seen.lanes})
        self._table("jobs").border_title = f"jobs with {self._word!r}" if self._word else "jobs"
        self._table("jobs").fill({job.id: job_row(job, seen.at) for job in seen.jobs})
        self._table("workers").fill({str(worker.id): worker_row(worker, seen.at) for worker in seen.workers})

    def action_drain(self) -> None:
        lane = self._table("lanes").chosen
        if lane:
            self._ask(f"Drain lane {lane}? Nothing in it is started then.", lambda: self._queue.lanes.drain(lane))

    def action_resume(self) -> None:
        lane = self._table("lanes").chosen
        if lane:
            self._do(self._queue.lanes.resume(lane))

    def action_cancel(self) -> None:
        self._act(lambda job: job.cancel(REASON), ask="Cancel")

    def action_approve(self) -> None:
        self._act(lambda job: job.approve(REASON))

    def action_reject(self) -> None:
        self._act(lambda job: job.reject(REASON), ask="Reject")

    def action_retry(self) -> None:
        self._act(lambda job: job.retry())

    def action_filter(self) -> None:
        def answered(word: str | None) -> None:
            if word is not None:
                self._word = word.strip()
                self.action_look()

        self.push_screen(
            Question("Show jobs with this word, or the job with this id (empty: all)", self._word), answered
        )

    def action_findings(self) -> None:
        self.push_screen(Page(findings_page(self._findings)))

    def action_help(self) -> None:
        self.push_screen(Page([Text(f"{key:<14}{does}") for key, does in KEYS]))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter on a job opens its page."""
        if event.data_table.id == "jobs" and event.row_key.value:
            self.run_worker(self._open(event.row_key.value))

    async def _open(self, job_id: str) -> None:
        with self._showing_errors():
            self.push_screen(Page(await job_page(self._queue, job_id, width=self.size.width - 10)))

    @contextlib.contextmanager
    def _showing_errors(self) -> Iterator[None]:
        """Show what goes wrong, unless it is a mistake of this program."""
        try:
            yield
        except Exception as error:
            line = one_line(error)
            if line is None:
                raise
            self.notify(line, severity="error")

    def _act(self, act: Callable[[QueueJob], Awaitable[object]], *, ask: str | None = None) -> None:
        """Do it to the chosen job; with `ask`, only after a yes to that question."""
        chosen = self._table("jobs").chosen
        if chosen and ask is not None:
            self._ask(f"{ask} {chosen}?", lambda: act(self._queue.job(chosen)))
        elif chosen:
            self._do(act(self._queue.job(chosen)))

    def _ask(self, question: str, act: Callable[[], Awaitable[object]]) -> None:
        """Do it after a yes."""

        def answered(word: str | None) -> None:
            if word is not None and word.strip().lower() in {"y", "yes"}:
                self._do(act())

        self.push_screen(Question(f"{question} Type y and Enter."), answered)

    def action_reprioritise(self) -> None:
        chosen = self._table("jobs").chosen
        job = next((job for job in self._seen.jobs if job.id == chosen), None) if self._seen else None
        if job is None:
            return

        def answered(word: str | None) -> None:
            if word is None:
                return
            try:
                priority = int(word)
            except ValueError:
                self._trouble(f"{word!r} is not a priority: use a whole number")
                return
            self._do(self._queue.job(job.id).reprioritise(priority))

        self.push_screen(Question(f"Priority of {job.id} (higher is sooner)", f"now {job.priority}"), answered)

    def _do(self, act: Awaitable[object]) -> None:
        async def work() -> None:
            with self._showing_errors():
                await act
                await self._look()

        self.run_worker(work())

    def _trouble(self, line: str) -> None:
        self.query_one("#trouble", Static).update(Text(line))
        self.query_one("#trouble", Static).display = bool(line)

    def _table(self, name: str) -> RowTable:
        return self.query_one(f"#{name}", RowTable)
