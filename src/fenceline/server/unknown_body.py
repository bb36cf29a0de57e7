"""Bodies of requests without a token: read before anybody knows whose they are, so few at a time, short and quick."""

import asyncio
from collections.abc import Callable

from fenceline.server.problems import Problem
from fenceline.server.routing import ApiRequest


async def read_unknown_body(request: ApiRequest, hear: Callable[[bytes], None] | None = None) -> bytes:
    """The body; `hear` gets it piece by piece. Raises Problem `too_large`, `timeout`."""
    settings, body = request.server.settings, bytearray()
    seconds = settings.trigger_body_seconds
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.bounded_stream(settings.trigger_body_bytes):
                body += chunk
                if hear is not None:
                    hear(chunk)
    except TimeoutError:
        raise Problem("timeout", f"the body took more than {seconds:g} s") from None
    return bytes(body)
