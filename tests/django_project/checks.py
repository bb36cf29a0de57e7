"""Run by Django's own test runner, in the example project: see test_django.py."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import checks_tasks
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, connections, transaction
from django.test import Client, SimpleTestCase, TransactionTestCase, override_settings
from django.utils import timezone
from shop.jobs import send_receipt
from shop.models import Order

from fenceline import NotFound
from fenceline.django import app
from fenceline.django.database import dsn_of_alias
from fenceline.django.models import Job, ReadOnly
from fenceline.django.settings import read_settings
from fenceline.testing import drain

try:
    from django.tasks import TaskResultStatus
    from django.tasks.exceptions import TaskException, TaskResultDoesNotExist, TaskResultMismatch
    from django.tasks.signals import task_enqueued, task_finished, task_started
except ImportError:
    from django_tasks import TaskResultStatus
    from django_tasks.exceptions import TaskException, TaskResultDoesNotExist, TaskResultMismatch
    from django_tasks.signals import task_enqueued, task_finished, task_started

WAIT_SECONDS = 240.0  # patience, in a process of its own: the test that runs it has a limit


@app.job(retry=1)
def backend_pid() -> int:
    """Which connection this thread has."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        [found] = cursor.fetchone()
    return int(found)


@app.job(retry=1)
async def orders_from_loop() -> int:
    return int(await Order.objects.acount())


@contextmanager
def worker() -> Iterator[None]:
    """A worker, in a thread with an event loop of its own."""
    loop = asyncio.new_event_loop()
    working: list[asyncio.Task[None]] = []

    async def work() -> None:
        working.append(asyncio.create_task(app.run_worker(grace_seconds=1, threads=1)))
        await asyncio.wait(working)
        await app.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(work()))
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(working[0].cancel)
        thread.join()
        loop.close()


class QueueTestCase(TransactionTestCase):
    """Django empties its own tables behind each test; this does as much for the queue."""

    def tearDown(self) -> None:
        for job in app.sync.jobs.each(status=["scheduled", "queued"]):
            app.sync.jobs.handle(job.id).cancel()
        app.sync.close()


class Transactions(QueueTestCase):
    def tearDown(self) -> None:
        super().tearDown()
        kill_all_others()

    def test_a_rollback_leaves_no_job(self) -> None:
        client, before = Client(raise_request_exception=False), Job.objects.count()
        assert client.get("/order/nothing").status_code == 500
        assert Order.objects.count() == 0
        assert Job.objects.count() == before
        made = client.get("/order/tea").json()
        assert app.sync.jobs.get(made["job"]).args == {"order_id": made["order"]}

    def test_a_savepoint_too(self) -> None:
        with transaction.atomic():
            kept = send_receipt.sync.enqueue(order_id=1)
            sid = transaction.savepoint()
            gone = send_receipt.sync.enqueue(order_id=2)
            assert gone.status() == "queued"  # seen from within
            transaction.savepoint_rollback(sid)
        assert kept.status() == "queued"
        with self.assertRaises(NotFound):  # noqa: PT027 - Django's runner, not pytest
            gone.get()

    def test_a_commit_wakes_the_worker(self) -> None:
        # Nobody would look for an hour.
        app.sync.lanes.set("default", poll_interval_ms=3_600_000)
        order = Order.objects.create(item="tea")
        with worker():
            wait_for(waits_for_jobs)
            with transaction.atomic():
                job = send_receipt.sync.enqueue(order_id=order.pk)
                time.sleep(0.3)
                assert job.status() == "queued"
            assert job.wait(WAIT_SECONDS) == "succeeded"
        order.refresh_from_db()
        assert order.receipt == f"receipt {job.id} for tea"

    def test_a_killed_connection_heals(self) -> None:
        with worker():
            first = backend_pid.sync.enqueue().result(WAIT_SECONDS)
            assert backend_pid.sync.enqueue().result(WAIT_SECONDS) == first  # CONN_MAX_AGE: it is kept
            kill(first)
            # The job that finds out fails; the one after it has a new connection.
            backend_pid.sync.enqueue().wait(WAIT_SECONDS)
            assert backend_pid.sync.enqueue().result(WAIT_SECONDS) not in {None, first}

    def test_the_connection_of_a_request_heals_too(self) -> None:
        client = Client(raise_request_exception=False)
        with connection.cursor() as cursor:
            cursor.execute("select pg_backend_pid()")
            mine = cursor.fetchone()[0]
        kill(mine)
        client.get("/order/tea")
        connection.close_if_unusable_or_obsolete()  # as the end of a request does, which the test client leaves out
        assert client.get("/order/tea").status_code == 200

    def test_async_handlers_use_the_orm(self) -> None:
        Order.objects.create(item="tea")
        job = orders_from_loop.sync.enqueue()
        assert drain(app, raises=False) >= 1  # those of other tests are there too
        assert job.result() == 1


class Tasks(QueueTestCase):
    """Django's tasks, as its own tests have it for backends that keep results."""

    def test_a_task_is_run_and_its_result_kept(self) -> None:
        result = checks_tasks.add.enqueue(2, b=40)
        assert result.status == TaskResultStatus.READY
        with self.assertRaisesMessage(ValueError, "Task has not finished yet"):
            _ = result.return_value
        drain(app, raises=False)
        result.refresh()
        assert (result.status, result.return_value, result.attempts) == (TaskResultStatus.SUCCESSFUL, 42, 1)
        assert result.is_finished
        assert result.enqueued_at <= result.started_at <= result.finished_at
        again = checks_tasks.add.get_result(result.id)
        assert (again.return_value, again.args, again.kwargs) == (42, [2], {"b": 40})

    def test_a_failure_is_told_by_class_and_traceback(self) -> None:
        for name, error in (("built-in", KeyError), ("own", checks_tasks.Broken), ("exit", SystemExit)):
            result = checks_tasks.fail.enqueue(name)
            with self.assertLogs(TaskException.__module__.removesuffix(".exceptions"), level="ERROR") as logged:
                drain(app, raises=False)
            assert [result.id in line for line in logged.output] == [True]
            result.refresh()
            assert result.status == TaskResultStatus.FAILED
            assert [problem.exception_class for problem in result.errors] == [error]
            assert "in fail\n" in result.errors[0].traceback
            with self.assertRaisesMessage(ValueError, "Task failed"):
                _ = result.return_value

    def test_values_are_those_that_django_takes_for_json(self) -> None:
        kept, refused = checks_tasks.echo.enqueue("tuple"), checks_tasks.echo.enqueue("function")
        drain(app, raises=False)
        kept.refresh()
        refused.refresh()
        assert kept.return_value == [1, "two"]
        assert refused.errors[0].exception_class is TypeError
        assert "Unsupported type" in refused.errors[0].traceback

    def test_context_priority_queue_and_time(self) -> None:
        later = timezone.now() + timedelta(hours=1)
        result = checks_tasks.attempt.using(priority=7, queue_name="default", run_after=later).enqueue()
        job = app.sync.jobs.get(result.id)
        assert (job.status, job.priority, job.lane, job.run_at) == ("scheduled", 7, "default", later)
        now = checks_tasks.attempt.enqueue()
        drain(app, raises=False)
        assert checks_tasks.attempt.get_result(now.id).return_value == [1, now.id]

    def test_async_tasks_and_async_enqueue(self) -> None:
        result = async_to_sync(checks_tasks.on_loop.aenqueue)("tea")
        drain(app, raises=False)
        assert async_to_sync(checks_tasks.on_loop.aget_result)(result.id).return_value == "TEA"

    def test_what_cannot_be(self) -> None:
        with self.assertRaises(TypeError):  # noqa: PT027 - as above
            checks_tasks.add.enqueue(object(), 1)
        with self.assertRaises(TaskException):  # noqa: PT027 - as above
            checks_tasks.add.using(queue_name="unknown")
        other = send_receipt.sync.enqueue(order_id=1)
        for wrong in ("unknown", other.id, "0000-0000-0000-000"):
            with self.assertRaises(TaskResultDoesNotExist):  # noqa: PT027 - as above
                checks_tasks.add.get_result(wrong)
        mine = checks_tasks.add.enqueue(1, 2)
        with self.assertRaises(TaskResultMismatch):  # noqa: PT027 - as above
            checks_tasks.fail.get_result(mine.id)

    def test_a_rollback_leaves_no_task(self) -> None:
        with transaction.atomic():
            result = checks_tasks.add.enqueue(1, 2)
            transaction.set_rollback(True)
        with self.assertRaises(TaskResultDoesNotExist):  # noqa: PT027 - as above
            checks_tasks.add.get_result(result.id)

    def test_signals_are_sent(self) -> None:
        seen: list[tuple[str, str]] = []
        finished: list[Any] = []
        receivers = {
            name: lambda task_result, name=name, **_more: seen.append((name, task_result.status))
            for name in ("enqueued", "started", "finished")
        }
        task_finished.connect(keep := lambda task_result, **_more: finished.append(task_result))
        for name, signal in (("enqueued", task_enqueued), ("started", task_started), ("finished", task_finished)):
            signal.connect(receivers[name])
        checks_tasks.add.enqueue(1, 2)
        drain(app)
        assert seen == [("enqueued", "READY"), ("started", "RUNNING"), ("finished", "SUCCESSFUL")]
        checks_tasks.fail.enqueue("own")
        with override_settings(TASKS=tasks_setting(MAX_ATTEMPTS=2)):
            checks_tasks.fail.enqueue("built-in")  # will be tried again, so it is not finished
        drain(app, raises=False)
        done, failed = finished[-2:]
        assert (done.return_value, done.errors) == (3, [])
        assert [error.exception_class for error in failed.errors] == [checks_tasks.Broken]
        assert done.finished_at < failed.finished_at
        task_finished.disconnect(keep)


class Commands(QueueTestCase):
    def test_migrate_and_doctor(self) -> None:
        for action, said in (("migrate", "up to date"), ("doctor", "")):
            assert said in run_command(action)

    def test_worker_runs_one_job(self) -> None:
        order = Order.objects.create(item="tea")
        job = send_receipt.options(priority=100).sync.enqueue(order_id=order.pk)
        said = run_command("worker", "--once")
        assert said.endswith("exit 0"), said
        assert job.status() == "succeeded"


class Admin(QueueTestCase):
    def setUp(self) -> None:
        self.job = send_receipt.options(labels={"a": "b"}).sync.enqueue(order_id=7)
        self.client.force_login(User.objects.create_superuser("ann"))

    def test_jobs_are_shown(self) -> None:
        listed = self.client.get("/admin/fenceline/job/?status=queued").content.decode()
        assert self.job.id in listed
        assert self.job.id not in self.client.get("/admin/fenceline/job/?status=failed").content.decode()
        assert self.job.id in self.client.get(f"/admin/fenceline/job/?q={self.job.id}").content.decode()
        assert self.job.id not in self.client.get("/admin/fenceline/job/?q=other_kind").content.decode()
        shown = Job.objects.get(public_id=self.job.id)
        page = self.client.get(f"/admin/fenceline/job/{shown.pk}/change/").content.decode()
        assert "order_id" in page
        assert "default" in self.client.get("/admin/fenceline/lanedepth/").content.decode()

    def test_nothing_can_be_changed(self) -> None:
        shown = Job.objects.get(public_id=self.job.id)
        for url in ("add/", f"{shown.pk}/delete/"):
            assert self.client.get(f"/admin/fenceline/job/{url}").status_code == 403
        assert self.client.post(f"/admin/fenceline/job/{shown.pk}/change/", {"kind": "x"}).status_code == 403
        for change in (shown.save, shown.delete):
            with self.assertRaises(ReadOnly) as refused:  # noqa: PT027 - as above
                change()
            advice = str(refused.exception).rpartition(", as ")[2]
            eval(advice, {"app": app, "id": self.job.id})  # noqa: S307 - what people are told to do works
        assert not Job.objects.filter(public_id=self.job.id).exists()

    def test_without_the_permission_nothing_is_seen(self) -> None:
        self.client.force_login(User.objects.create_user("bob", is_staff=True))
        assert self.client.get("/admin/fenceline/job/").status_code == 403


class Settings(SimpleTestCase):
    def test_a_dsn_of_every_shape(self) -> None:
        for given, dsn in (
            (
                {"HOST": "db", "PORT": "5433", "USER": "u s", "PASSWORD": "p@/"},
                "postgresql://u%20s:p%40%2F@db:5433/shop",
            ),
            ({"HOST": "/run/pg", "PORT": ""}, "postgresql:///shop?host=/run/pg"),
            ({"OPTIONS": {"sslmode": "require", "pool": True}}, "postgresql:///shop?sslmode=require"),
        ):
            with settings_of(NAME="shop", **given):
                assert dsn_of_alias("default") == dsn

    def test_mistakes_are_told(self) -> None:
        for given, said in (({"POOL": 3}, "unknown keys POOL"), ({"DATABASE": "nowhere"}, "names database 'nowhere'")):
            with override_settings(FENCELINE=given), self.assertRaisesRegex(ImproperlyConfigured, said):  # noqa: PT027 - run by Django, not pytest
                read_settings()


@contextmanager
def settings_of(**given: Any) -> Iterator[None]:
    empty = {"HOST": "", "PORT": "", "USER": "", "PASSWORD": "", "OPTIONS": {}}
    before, connection.settings_dict = connection.settings_dict, {**connection.settings_dict, **empty, **given}
    try:
        yield
    finally:
        connection.settings_dict = before


def tasks_setting(**options: Any) -> dict[str, Any]:
    return {"default": {"BACKEND": "fenceline.django.tasks.FencelineBackend", "OPTIONS": options}}


def run_command(action: str, *options: str) -> str:
    """What a command prints, and how it ends."""
    import subprocess  # noqa: PLC0415 - signals and the process's end are the command's own
    import sys  # noqa: PLC0415 - as above

    environment = {**os.environ, "PGDATABASE": connection.settings_dict["NAME"], "COLUMNS": "200"}
    command = [sys.executable, "manage.py", "fenceline", action, *(["--", *options] if options else [])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=WAIT_SECONDS)
    return f"{done.stdout}{done.stderr} exit {done.returncode}"


def kill(pid: int) -> None:
    another = connections.create_connection("default")
    with another.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(%s, 10000)", [pid])
    another.close()


def kill_all_others() -> None:
    """Threads that have ended leave the connections that they kept; Django's runner wants the database for itself."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )


def waits_for_jobs() -> bool:
    """Whether a worker has said in the database that it wants to be told."""
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from fenceline.waiter")
        return bool(cursor.fetchone()[0])


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
