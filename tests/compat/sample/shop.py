"""A module as Celery's users write it: eleven tasks and the workflows made of them, in Celery's documented API."""

from celery import Celery, chain, chord, group, shared_task
from celery.exceptions import MaxRetriesExceededError
from celery.result import AsyncResult
from celery.schedules import crontab
from celery.utils.log import get_task_logger

logger = get_task_logger(__name__)

app = Celery("shop", broker="redis://localhost:6379/0", backend="redis://localhost:6379/1")
app.conf.update(
    task_serializer="json",
    accept_content=["json"],
    timezone="Europe/Berlin",
    task_routes={"shop.send_mail": {"queue": "mail"}},
)


@app.task
def add(x, y):
    return x + y


@shared_task
def multiply(x, y):
    return x * y


@shared_task
def total(numbers):
    return sum(numbers)


@app.task(rate_limit="100/s", expires=3600)
def divide(x, y):
    return x / y


@app.task(bind=True, max_retries=3, default_retry_delay=0)
def charge(self, succeeds_after):
    try:
        if self.request.retries < succeeds_after:
            raise ConnectionError("the bank does not answer")
    except ConnectionError as exc:
        raise self.retry(exc=exc)
    return self.request.retries


@shared_task(
    bind=True, autoretry_for=(ConnectionError,), retry_kwargs={"max_retries": 2, "countdown": 0}, acks_late=True
)
def fetch(self, succeeds_after):
    if self.request.retries < succeeds_after:
        raise ConnectionError("no route")
    return self.request.retries


@app.task(bind=True, max_retries=1, default_retry_delay=0)
def give_up(self):
    try:
        self.retry()
    except MaxRetriesExceededError:
        logger.warning("no luck")
        return "gave up after {}".format(self.request.retries)


@app.task(name="shop.send_mail", ignore_result=True)
def send_mail(to, subject="hello"):
    logger.info("to %s: %s", to, subject)
    return "not kept"


class Database(app.Task):
    _connection = None

    @property
    def connection(self):
        if self._connection is None:
            self._connection = {"open": True}
        return self._connection


@app.task(base=Database, bind=True)
def is_connected(self):
    return self.connection["open"]


@app.on_after_configure.connect
def set_up_periodic_tasks(sender, **kwargs):
    sender.add_periodic_task(30.0, add.s(1, 2), name="add every 30")
    sender.add_periodic_task(crontab(hour=7, minute=30, day_of_week=1), send_mail.s("ann@example.com"))


@shared_task(bind=True)
def whoami(self, *args, **kwargs):
    return {"id": self.request.id, "name": self.name, "args": list(args), "kwargs": kwargs}


@app.task(bind=True)
def index(self, pages):
    for page in range(pages):
        self.update_state(state="PROGRESS", meta={"current": page + 1, "total": pages})
    return pages


def state_of(task_id):
    return AsyncResult(task_id).state


def sum_of_sums(count):
    """A chord: the header's tasks run together, the body gets the list of their results."""
    return chord(add.s(number, number) for number in range(count))(total.s())


def price(amount):
    """A chain: each task gets the result of the one before, unless it is immutable."""
    return chain(add.s(amount, 1), multiply.s(10), add.s(5))()


def table(number):
    return group(multiply.s(number, factor) for factor in range(1, 4))()


def mixed(number):
    """Task, then a group, then a task that gets the group's results, then one that wants nothing."""
    work = add.s(number, 1) | group(multiply.s(2), multiply.s(3)) | total.s()
    return (work | whoami.si("done")).apply_async()
