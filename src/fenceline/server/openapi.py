"""`/openapi.json`: FastAPI's description of the routes, plus problems, permissions and the bearer token."""

import json
from typing import Any

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi

from fenceline.server.incoming_webhooks import TriggerPayload
from fenceline.server.routing import PERMISSION, PUBLIC, ApiRequest, json_response, operation, router
from fenceline.server.schemas import ProblemView
from fenceline.server.signals import CallbackPayload

routes = router("about")


@routes.get(
    "/openapi.json",
    **operation(
        PUBLIC,
        answers={200: {"description": "OpenAPI 3.1", "content": {"application/json": {"schema": {"type": "object"}}}}},
    ),
)
async def openapi_document(request: ApiRequest) -> Response:
    """This document."""
    state = request.app.state
    if not hasattr(state, "openapi_text"):  # public, so it must be cheap
        state.openapi_text = json.dumps(openapi(request.app))
    return json_response(state.openapi_text)


def openapi(api: FastAPI) -> dict[str, Any]:
    """The document, created once."""
    if api.openapi_schema is None:
        document = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
        components = document.setdefault("components", {})
        schemas = components.setdefault("schemas", {})
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        problem = ProblemView.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(problem.pop("$defs", {}))
        schemas["Problem"] = problem
        schemas["TriggerPayload"] = TriggerPayload.model_json_schema()
        schemas["CallbackPayload"] = CallbackPayload.model_json_schema()
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path in document["paths"].values():
            for method in path.values():
                method["security"] = [] if method[PERMISSION] == PUBLIC else [{"token": []}]
        api.openapi_schema = document
    return api.openapi_schema
