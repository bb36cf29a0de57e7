"""A module written for Celery runs with nothing changed but where it imports from."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from uuid import uuid4

import pytest
from tests.support.patience import seconds_left

from fenceline import JobFailed
from fenceline.compat.celery.exceptions import TaskRevokedError

SAMPLE = Path(__file__).with_name("sample") / "shop.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    text, changed = re.subn(r"(?m)^from celery\b", "from fenceline.compat.celery", SAMPLE.read_text())
    assert changed == 5
    (folder / "shop.py").write_text(text)
    return folder


@pytest.fixture
def shop(folder: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module, with a worker of its own, as people start it."""
    monkeypatch.setenv("FENCELINE_DSN", database)
    spec = importlib.util.spec_from_file_location("shop", folder / "shop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    command = [sys.executable, "-m", "fenceline", "worker", "shop:app", "--processes", "1", "--grace", "1"]
    environment = {**os.environ, "FENCELINE_DSN": database}
    with subprocess.Popen(command, cwd=folder, env=environment) as worker:
        try:
            yield module
        finally:
            worker.send_signal(signal.SIGTERM)
            try:
                worker.wait(seconds_left())
            finally:
                worker.kill()
                module.app.sync.close()


def test_eleven_tasks_run_with_only_the_import_changed(shop: ModuleType) -> None:
    assert len([task for task in shop.app.tasks.values() if task.name.startswith("shop.")]) == 11
    chord, chain, mixed = shop.sum_of_sums(10), shop.price(1), shop.mixed(1)
    table, charged, fetched = shop.table(7), shop.charge.delay(2), shop.fetch.delay(1)
    assert chord.get(seconds_left()) == 90
    assert chord.parent.get(seconds_left()) == [number * 2 for number in range(10)]
    links = (chain, chain.parent, chain.parent.parent)
    assert [link.get(seconds_left()) for link in links] == [25, 20, 2]
    assert table.get(seconds_left()) == [7, 14, 21]
    assert mixed.get(seconds_left())["args"] == ["done"]
    assert mixed.parent.get(seconds_left()) == 10
    assert (charged.get(seconds_left()), fetched.get(seconds_left())) == (2, 1)  # how often each was tried again
    assert shop.give_up.delay().get(seconds_left()) == "gave up after 1"

    mail = shop.send_mail.apply_async(("ann@example.com",), {"subject": "sale"}, countdown=0.2)
    assert (mail.get(seconds_left()), mail.successful(), mail.job.get().lane) == (None, True, "mail")

    task_id = str(uuid4())
    named = shop.whoami.apply_async((1,), {"colour": "red"}, task_id=task_id)
    assert named.get(seconds_left()) == {"id": task_id, "name": "shop.whoami", "args": [1], "kwargs": {"colour": "red"}}
    assert shop.app.AsyncResult(task_id).status == shop.state_of(task_id) == "SUCCESS"
    again = shop.whoami.apply_async((1,), {"colour": "red"}, task_id=task_id)
    assert again.job == named.job

    assert shop.index.delay(3).get(seconds_left()) == 3
    assert shop.is_connected.delay().get(seconds_left()) is True
    lane = shop.app.sync.lanes.get("shop.divide")
    assert (lane.rate_per_second, lane.burst, lane.kinds) == (100, 1, ["shop.divide"])
    schedules = {schedule.name: schedule for schedule in shop.app.sync.schedules.list()}
    assert (schedules["add-every-30"].every, schedules["shop.send_mail"].cron) == (30, "30 7 * * 1")
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        shop.divide.delay(1, 0).get(seconds_left())
    hopeless = shop.fetch.delay(9)
    with pytest.raises(ConnectionError, match="no route"):
        hopeless.get(seconds_left())
    assert (hopeless.status, hopeless.job.get().attempt) == ("FAILURE", 3)
    never = shop.add.apply_async((1, 1), countdown=3600)
    never.revoke()
    assert (never.status, never.ready()) == ("REVOKED", True)
    with pytest.raises(TaskRevokedError):
        never.get(seconds_left())
    late = shop.add.apply_async((1, 1), countdown=0.5, expires=0.1)
    assert isinstance(late.get(seconds_left(), propagate=False), TaskRevokedError)
    broken = (shop.divide.s(1, 0) | shop.add.s(1)).apply_async()
    # What waits for a failure is cancelled.
    assert isinstance(broken.get(seconds_left(), propagate=False), TaskRevokedError)
    assert not isinstance(broken.parent.result, JobFailed)
