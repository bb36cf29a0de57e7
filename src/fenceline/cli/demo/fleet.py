"""The demo's workers: real `fenceline worker` programs, to be killed and frozen."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from fenceline.cli.demo.app import LEDGER_VARIABLE

PROGRAM = (sys.executable, "-c", "from fenceline.cli import main; main()")
LEASE_SECONDS = 2.0


class DemoWorker:
    def __init__(self, name: str, dsn: str, folder: Path, ledger: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *PROGRAM, "worker", "fenceline.cli.demo.app:app", "--lanes", "demo,demo.slow",
                    "--lease", str(LEASE_SECONDS), "--grace", "5", "--concurrency", "40",
                ],
                cwd=folder,
                env={**os.environ, "FENCELINE_DSN": dsn, LEDGER_VARIABLE: str(ledger)},
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the demo, which then ends its workers
            )  # fmt: skip
        self._frozen: list[int] = []

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def owns(self, pid: int) -> bool:
        """Whether a process is a child of this worker's supervisor."""
        with contextlib.suppress(OSError, IndexError):
            # "pid (name) state parent …"; the name may hold anything, also brackets.
            return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == self.process.pid
        return False

    def kill(self) -> None:
        """Kill -9: no goodbye. Its child processes die with it."""
        self.thaw()
        self.process.kill()
        self.process.wait()

    def freeze(self, child: int) -> None:
        """SIGSTOP for the worker as a whole, as when a machine is suspended."""
        self._frozen = [child, self.process.pid]
        for pid in reversed(self._frozen):
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._frozen = []

    def thaw_child(self) -> None:
        """The process with the handlers first: it goes on as if nothing had been."""
        os.kill(self._frozen[0], signal.SIGCONT)

    def stop(self) -> None:
        self.thaw()
        if self.alive:
            self.process.terminate()

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return f"{self.name} has ended: {lines[-1] if lines else 'without a word'}"

    def refused(self) -> int:
        """How many writes of this worker the queue has refused as stale."""
        return self.log.read_text(errors="replace").count("was refused")
