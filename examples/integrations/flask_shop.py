"""A shop in Flask, with SQLAlchemy: `DATABASE_URL=postgresql://… flask --app flask_shop run`.

Its worker is a process of its own: `fenceline worker flask_shop:queue`.
"""

import atexit
import json
import os
from collections.abc import Iterator

from flask import Flask, Response, g, jsonify, request
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.orm import Session

from fenceline import Fenceline, InvalidId, NotFound, SyncContext

URL = os.environ["DATABASE_URL"]
queue = Fenceline(URL)
atexit.register(queue.sync.close)
engine = create_engine(make_url(URL).set(drivername="postgresql+psycopg"), pool_pre_ping=True)
web = Flask(__name__)


@queue.job(retry=3)
def send_receipt(ctx: SyncContext, order_id: int) -> str:
    ctx.progress(1, 2, "looking for the order")
    with Session(engine) as session, session.begin():
        found = session.execute(text("select item from shop_order where id = :id"), {"id": order_id})
        return f"receipt for {found.scalar_one()}"


def session() -> Session:
    """The request's: one transaction, which the end of the request commits or rolls back."""
    if "session" not in g:
        g.session = Session(engine)
    return g.session


@web.after_request
def commit(response: Response) -> Response:
    if "session" in g and response.status_code < 400:
        g.session.commit()
    return response


@web.teardown_appcontext
def close(_error: BaseException | None) -> None:
    if "session" in g:
        g.session.close()  # what was not committed is rolled back


@web.post("/orders")
def order() -> tuple[Response, int]:
    item = request.get_json()["item"]
    made = session().execute(text("insert into shop_order (item) values (:item) returning id"), {"item": item})
    job = send_receipt.options(connection=session()).sync.enqueue(order_id=made.scalar_one())
    if item == "nothing":
        return jsonify(error="there is no such item"), 422
    return jsonify(job=job.id), 202


@web.errorhandler(NotFound)
@web.errorhandler(InvalidId)
def missing(error: Exception) -> tuple[Response, int]:
    return jsonify(error=str(error)), 404


@web.get("/jobs/<job_id>")
def job_status(job_id: str) -> Response:
    record = queue.sync.jobs.get(job_id)
    return jsonify(status=record.status, result=record.result, progress=record.progress)


@web.get("/jobs/<job_id>/stream")
def stream(job_id: str) -> Response:
    """Server-sent events: `new EventSource("/jobs/…/stream")` in the page."""
    job = queue.sync.jobs.handle(job_id)
    job.get()  # if it is not there, that is the answer, and not the end of a stream

    def events() -> Iterator[str]:
        for event in job.watch():
            status = event.job.status if event.job else None
            data = {"status": status, "progress": event.progress, "line": event.line and event.line.message}
            yield f"event: {event.event}\ndata: {json.dumps(data)}\n\n"

    return Response(events(), mimetype="text/event-stream")
