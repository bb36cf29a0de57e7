"""uvicorn's configuration for this server: limits, TLS, proxies."""

from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI

from fenceline.server.protocol import Edge, EdgeProtocol
from fenceline.server.tls import Certificates, TlsDoor


def uvicorn_config(api: FastAPI, **options: Any) -> uvicorn.Config:
    """For an application of `create_app`; `options` are uvicorn's own, like host and port.

    Raises OSError when the certificate cannot be read.
    """
    server = api.state.server
    settings = server.settings
    edge = Edge(settings.edge, server.refusals)
    protocol: Any = partial(EdgeProtocol, edge=edge)
    if settings.tls is not None:
        protocol = partial(TlsDoor, edge=edge, certificates=Certificates(settings.tls))
    return uvicorn.Config(
        api,
        http=protocol,
        ws="none",
        log_level="error",  # its warnings are in the log of refusals, with the address
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=settings.edge.idle_seconds,
        # Trust no proxy by default: uvicorn would trust this machine.
        proxy_headers=bool(settings.edge.trusted_proxies),
        forwarded_allow_ips=list(settings.edge.trusted_proxies),
        **options,
    )
