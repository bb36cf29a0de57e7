"""What opens over the screen of `fenceline top`: a question, the help, and the page of a job."""

from collections.abc import Sequence
from typing import ClassVar

from rich.console import Group, RenderableType
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

KEYS = (
    ("Tab, arrows", "move between tables and rows"),
    ("Enter", "the page of a job: why it waits, timeline, error, log"),
    ("/", "show only jobs with a word in them, or the job with an id; empty: all"),
    ("f", "what doctor finds, and what to type"),
    ("a, x", "approve or reject a job"),
    ("t", "run a finished job again"),
    ("c, p", "cancel a job, change its priority"),
    ("d, r", "drain or resume a lane"),
    ("Space", "look now"),
    ("q", "leave"),
)


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


class Page(ModalScreen[None]):
    """Text to read; Escape, Enter or q goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("enter", "back", "Back", show=False),
        Binding("q", "back", "Back", show=False),
    ]

    def __init__(self, parts: Sequence[RenderableType]) -> None:
        super().__init__()
        self._parts = parts

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            yield Static(Group(*self._parts))

    def action_back(self) -> None:
        self.dismiss(None)
