"""A terminal with a program in it: what it shows is read, keys are pressed, all in real time."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import psutil
import pyte
from tests.support.patience import give_up, seconds_left

#: How many pieces of output are read before the screen is looked at, so that it is mostly seen whole.
MAX_READS = 50

COLUMNS, LINES = 120, 40

#: Synchronized output: what a program asks, what a terminal answers that can do it, and what is around each frame then.
CAN_IT, IT_CAN = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
FRAME_BEGINS, FRAME_ENDS = b"\x1b[?2026h", b"\x1b[?2026l"


def _take_terminal() -> None:
    """Make the pty the program's own terminal, so that Ctrl-C reaches it, and its end. Whoever started the tests may
    have left both ignored, as a shell with a job in the background or `nohup` does.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """`with Terminal([program, …]) as terminal: terminal.until("text")`.

    A program that draws frames is looked at between them: in the middle of one, a text that stays may be missing.
    """

    def __init__(
        self,
        command: list[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        columns: int = COLUMNS,
        lines: int = LINES,
    ) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.raw = b""
        self._answered = False
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(lines)},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - the child runs two calls and then the program
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        if self._master >= 0:
            os.close(self._master)

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def _page(self) -> str:
        """What is within the widest frame, without a space."""
        inner = (max(line.split("│"), key=len) for line in self._screen.display)
        return "".join("".join(line.split()) for line in inner)

    def line(self, part: str) -> str:
        """The line that has this part in it, or nothing."""
        return next((line for line in self.text.splitlines() if part in line), "")

    @property
    def _is_whole(self) -> bool:
        return self.raw.rfind(FRAME_BEGINS) <= self.raw.rfind(FRAME_ENDS)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def until(self, *parts: str, gone: bool = False) -> str:
        """Until all parts are on the screen (or, with `gone`, none is)."""
        while True:
            shown = [part in self.text for part in parts]
            if self._is_whole and (not any(shown) if gone else all(shown)):
                return self.text
            if seconds_left() == 0.0:
                give_up(f"{parts}{' to go' if gone else ''}", self.text)
            self._read(0.05)

    def until_line(self, part: str, *others: str) -> str:
        """Until one line has all these parts."""
        while True:
            for line in self.text.splitlines() if self._is_whole else ():
                if part in line and all(other in line for other in others):
                    return line
            if seconds_left() == 0.0:
                give_up(f"{part!r} with {others} in one line", self.text)
            self._read(0.05)

    def until_told(self, *texts: str) -> None:
        """Until all texts are on the page that is open, wherever their lines are broken."""
        while not (self._is_whole and all("".join(text.split()) in self._page for text in texts)):
            if seconds_left() == 0.0:
                give_up(f"{texts}", self.text)
            self._read(0.05)

    def shut(self) -> int:
        """Close the terminal, as somebody who closes its window; the code that the program ends with."""
        os.close(self._master)
        self._master = -1
        return self._process.wait(seconds_left())

    def terminate(self) -> int:
        """SIGTERM, and nothing is read meanwhile; the code that the program ends with."""
        self._process.terminate()
        return self._process.wait(seconds_left())

    def is_busy(self, *, for_seconds: float) -> bool:
        """Whether the program does anything in the time to come."""
        program = psutil.Process(self._process.pid)
        before = program.cpu_times()
        time.sleep(for_seconds)
        return program.cpu_times() != before

    def exit_code(self) -> int:
        while self._process.poll() is None:
            if seconds_left() == 0.0:
                give_up("the end of the program", self.text)
            self._read(0.05)
        self._read(0)
        return self._process.returncode

    def _read(self, seconds: float) -> None:
        """What has come, or comes in these seconds; not for ever, as a program may draw faster than it is read here."""
        for _ in range(MAX_READS):
            if not select.select([self._master], [], [], seconds)[0]:
                return
            with contextlib.suppress(OSError):  # EIO: the program has closed its side
                data = os.read(self._master, 65536)
                self.raw += data
                self._stream.feed(data)
                if not self._answered and CAN_IT in self.raw:
                    self._answered = True
                    os.write(self._master, IT_CAN)
                seconds = 0
                continue
            return
