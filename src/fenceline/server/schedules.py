"""Schedules, which enqueue jobs by the clock. Settings made here override those in the code."""

from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import ConfigDict, Field, JsonValue, StrictBool, StrictInt, StrictStr

from fenceline.client.schedule_decorator import ScheduleSettings, encode_settings
from fenceline.database import calls
from fenceline.model.identity import Identity
from fenceline.model.schedule import Schedule, Tick
from fenceline.server.filters import Cursor, Limit, answer_page
from fenceline.server.problems import missing
from fenceline.server.routing import ApiRequest, json_response, operation, router
from fenceline.server.schemas import AT, ID, Body, JobOptionsBody, JobView, with_role
from fenceline.server.views import View, examples, list_of, shows

routes = router("schedules")

_SCHEDULE: dict[str, JsonValue] = {
    "name": "report", "kind": "report", "args": {}, "options": {"tenant": "default"}, "cron": "0 3 * * *",
    "every": None, "timezone": "Europe/Berlin", "misfire": "once", "misfire_limit": 10, "windows": [],
    "paused": False, "tenant": "default", "source": "operator", "overrides": {"cron": "0 3 * * *"}, "next_at": AT,
    "last_at": None, "last_job": None, "error": None, "created_at": AT, "changed_at": AT, "changed_by": "ann",
    "declared_at": None,
}  # fmt: skip


class WindowBody(Body):
    """When the schedule does not fire: on these days, between these times in its time zone."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"days": "mon-fri", "from": "22:00", "to": "04:00"}]}, populate_by_name=False
    )

    days: StrictStr | None = None
    from_: Annotated[StrictStr, Field(alias="from")]
    to: StrictStr


class ScheduleBody(Body):
    """Either `cron` (five fields, in `timezone`) or `every` (seconds). Omitted fields keep their value; null removes an
    override.
    """

    model_config = examples({"cron": "0 4 * * *", "paused": False})

    kind: StrictStr | None = None
    args: dict[str, Any] | None = None
    options: JobOptionsBody | None = None
    cron: StrictStr | None = None
    every: StrictInt | None = None
    timezone: StrictStr | None = None
    misfire: Literal["skip", "once", "all"] | None = None
    misfire_limit: StrictInt | None = None
    windows: list[WindowBody] | None = None
    paused: StrictBool | None = None

    def settings(self, identity: Identity) -> dict[str, Any]:
        """As set_schedule takes them. Raises InvalidSchedule."""
        values = self.model_dump(exclude_unset=True, by_alias=True, exclude={"name"})
        if values.get("windows") is not None:
            values["windows"] = [
                {key: value for key, value in window.items() if value is not None} for window in values["windows"]
            ]
        options = values.pop("options", ...)
        settings = encode_settings(ScheduleSettings(**values))  # type: ignore[typeddict-item]  # names are the body's
        if options is not ...:
            settings["options"] = with_role(options, identity)
        return settings


class NewScheduleBody(ScheduleBody):
    model_config = examples({"name": "report", "kind": "report", "cron": "0 3 * * *", "timezone": "Europe/Berlin"})

    name: StrictStr


@shows(Schedule, without=("revision", "settled_at", "now"))
class ScheduleView(View):
    model_config = examples(_SCHEDULE, title="Schedule")


@shows(Tick)
class TickView(View):
    model_config = examples(
        {"tick_at": AT, "outcome": "fired", "decided_at": AT, "from_at": None, "job": ID, "error": None},
        title="Tick",
    )


@routes.get("/v1/schedules", **operation("schedules:manage", model=list_of(ScheduleView)))
async def list_schedules(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Schedules that you may see, by name. A page has at most about 4 MiB."""
    return await answer_page(request, calls.schedules.schedules_in_reach(request.identity), cursor)


@routes.post("/v1/schedules", **operation("schedules:manage", "conflict", status=201, model=ScheduleView))
async def create_schedule(request: ApiRequest, body: NewScheduleBody) -> Response:
    """Create a schedule; it and its jobs belong to your tenant."""
    made = await _act(request, body.name, "create", body)
    return json_response(made, 201, {"Location": f"/v1/schedules/{body.name}"})


@routes.get("/v1/schedules/{name}", **operation("schedules:manage", "not_found", model=ScheduleView))
async def get_schedule(request: ApiRequest, name: str) -> Response:
    """One schedule."""
    return json_response(await _schedule(request, name))


@routes.patch("/v1/schedules/{name}", **operation("schedules:manage", "not_found", model=ScheduleView))
async def change_schedule(request: ApiRequest, name: str, body: ScheduleBody) -> Response:
    """Change a schedule; `paused` pauses and resumes it."""
    return json_response(await _act(request, name, "change", body))


@routes.delete("/v1/schedules/{name}", **operation("schedules:manage", "not_found", status=204))
async def delete_schedule(request: ApiRequest, name: str) -> None:
    """Delete a schedule; one that is declared in code returns when its worker starts."""
    await _act(request, name, "delete")


@routes.post(
    "/v1/schedules/{name}/run",
    **operation("schedules:manage", "not_found", "resource_locked", status=202, model=JobView),
)
async def run_schedule(request: ApiRequest, name: str) -> Response:
    """Enqueue its job now, regardless of ticks, windows and pauses."""
    return json_response(await _act(request, name, "run"), 202)


@routes.get(
    "/v1/schedules/{name}/ticks", **operation("schedules:manage", "not_found", model=list_of(TickView, has_pages=False))
)
async def list_ticks(request: ApiRequest, name: str, limit: Limit = 50) -> Response:
    """What happened to its ticks, newest first."""
    await _schedule(request, name)
    return await request.answer_list(calls.schedules.ticks_in_reach(request.identity, name, limit))


async def _schedule(request: ApiRequest, name: str) -> str:
    found = await request.call(calls.schedules.schedules_in_reach(request.identity, name))
    if not found:
        raise missing("schedule", name)
    return found[0]


async def _act(request: ApiRequest, name: str, action: str, body: ScheduleBody | None = None) -> str:
    settings = None if body is None else body.settings(request.identity)
    return await request.call(calls.schedules.act_on_schedule(name, action, request.identity, settings))
