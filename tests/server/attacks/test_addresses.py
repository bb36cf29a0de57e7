"""SSRF: addresses of clouds' own services, also where Python takes them for public. The resolver is a fake."""

import asyncio
import ipaddress
import socket
from typing import Any

import httpcore
import pytest

from fenceline.server.safe_post import Refused, SafePost

ADDRESSES = (
    "192.0.0.192", "168.63.129.16", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:ffff::1", "fec0::1", "feff::1",
    "169.254.169.254", "100.100.100.200", "fd00:ec2::254", "::ffff:168.63.129.16", "64:ff9b::168.63.129.16",
    "2002:a83f:8110::", "192.0.0.8", "198.18.0.1", "240.0.0.1", "2001:db8::1",
    "::169.254.169.254", "::127.0.0.1", "::ffff:0:169.254.169.254",
)  # fmt: skip


#: The only ones that every Python knows.
KNOWN = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "fc00::/7", "::1/128")
)


def is_global_of_old(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return not ip.is_link_local and not any(ip in network for network in KNOWN)


@pytest.mark.parametrize("python", ["this", "older"])
@pytest.mark.parametrize("address", ADDRESSES)
async def test_metadata_addresses(monkeypatch: pytest.MonkeyPatch, address: str, python: str) -> None:
    async def resolve(_loop: object, _host: str, port: int, **_options: Any) -> list[Any]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 0, "", (address, port))]

    async def connect(*_args: object, **_options: object) -> None:
        pytest.fail(f"a packet would have gone to {address}")

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect)
    if python == "older":
        for kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
            monkeypatch.setattr(kind, "is_global", property(is_global_of_old))
    post = SafePost(allow_http=True)
    with pytest.raises(Refused, match="not a public address"):
        await post.post("http://rebound.example/", b"", {})
    await post.close()
