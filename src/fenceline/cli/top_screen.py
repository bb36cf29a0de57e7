"""The screen of `fenceline top`."""

from collections.abc import Awaitable, Mapping
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Label, Static

from fenceline.cli.failures import one_line
from fenceline.cli.queue import Queue
from fenceline.cli.top_view import (
    JOB_COLUMNS,
    LANE_COLUMNS,
    WORKER_COLUMNS,
    Row,
    Snapshot,
    headline,
    job_row,
    lane_row,
    look,
    worker_row,
)

Rows = Mapping[str, Row]


class RowTable(DataTable[Text]):
    """A table that is filled anew at every look, and keeps its cursor on the same thing."""

    def __init__(self, title: str, columns: tuple[str, ...], id: str) -> None:  # noqa: A002 - textual's name
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
        """The key of the row under the cursor, or nothing."""
        if not self.is_valid_row_index(self.cursor_row):
            return ""
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value or ""


class Question(ModalScreen[str | None]):
    """Asks for a word; Enter answers, Escape goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back")]

    def __init__(self, question: str, hint: str = "") -> None:
        super().__init__()
        self._question = question
        self._hint = hint

    def compose(self) -> ComposeResult:
        with Vertical(id="question"):
            yield Label(self._question)
            yield Input(placeholder=self._hint, id="answer")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)

    def action_back(self) -> None:
        self.dismiss(None)


class TopApp(App[None]):
    CSS = """
    #headline { height: 1; padding: 0 1; }
    #trouble { height: auto; padding: 0 1; color: $error; }
    RowTable { height: auto; border: round $primary-darken-2; padding: 0; }
    RowTable:focus { border: round $accent; }
    #lanes { max-height: 12; }
    #jobs { height: 1fr; min-height: 6; }
    #workers { max-height: 10; }
    Question { align: center middle; }
    #question { width: 60; height: auto; border: round $accent; padding: 1 2; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("tab", "focus_next", "Next table", show=False),
        Binding("d", "drain", "Drain lane"),
        Binding("r", "resume", "Resume lane"),
        Binding("c", "cancel", "Cancel job"),
        Binding("p", "reprioritise", "Priority of job"),
        Binding("space", "look", "Look now"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, queue: Queue, interval: float) -> None:
        super().__init__()
        self._queue = queue
        self._interval = interval
        self._seen: Snapshot | None = None
        self._looking = False

    def compose(self) -> ComposeResult:
        yield Static("looking …", id="headline")
        yield Static("", id="trouble")
        yield RowTable("lanes", LANE_COLUMNS, id="lanes")
        yield RowTable("jobs", JOB_COLUMNS, id="jobs")
        yield RowTable("workers", WORKER_COLUMNS, id="workers")
        yield Footer()

    def on_mount(self) -> None:
        self._looks()
        self.set_interval(self._interval, self._looks)

    def _looks(self) -> None:
        self.run_worker(self._look())

    async def action_look(self) -> None:
        await self._look()

    async def _look(self) -> None:
        if self._looking:
            return  # a slow look is not overtaken
        self._looking = True
        try:
            seen = await look(self._queue)
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
        self._table("lanes").fill({lane.name: lane_row(lane, seen.rates) for lane in seen.lanes})
        self._table("jobs").fill({job.id: job_row(job, seen.at) for job in seen.jobs})
        self._table("workers").fill({str(worker.id): worker_row(worker, seen.at) for worker in seen.workers})

    def action_drain(self) -> None:
        self._set_enabled(enabled=False)

    def action_resume(self) -> None:
        self._set_enabled(enabled=True)

    def _set_enabled(self, *, enabled: bool) -> None:
        lane = self._table("lanes").chosen
        if lane:
            self._do(self._queue.set_lane(lane, {"enabled": enabled}, create=False))

    def action_cancel(self) -> None:
        job = self._table("jobs").chosen

        def answered(word: str | None) -> None:
            if word is not None and word.strip().lower() in ("y", "yes"):
                self._do(self._queue.cancel(job, reason="from top", force=False))

        if job:
            self.push_screen(Question(f"Cancel {job}? Type y and Enter."), answered)

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
                self._trouble(f"{word!r} is no priority: use a whole number")
                return
            self._do(self._queue.reprioritise(job.id, priority))

        self.push_screen(Question(f"Priority of {job.id} (higher is sooner)", f"now {job.priority}"), answered)

    def _do(self, act: Awaitable[object]) -> None:
        async def work() -> None:
            try:
                await act
            except Exception as error:
                line = one_line(error)
                if line is None:
                    raise
                self.notify(line, severity="error")
                return
            await self._look()

        self.run_worker(work())

    def _trouble(self, line: str) -> None:
        self.query_one("#trouble", Static).update(Text(line))
        self.query_one("#trouble", Static).display = bool(line)

    def _table(self, name: str) -> RowTable:
        return self.query_one(f"#{name}", RowTable)
