"""POST to a URL that a user has chosen, without giving the user access to this network (SSRF).

The host's name is resolved once, all its addresses are checked, and the connection goes to the very address that was
checked, so a name that resolves differently later gains nothing. Redirects are not followed, proxies of the environment
are not used, and only the beginning of an answer is read.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import httpcore

MAX_ANSWER_BYTES = 4096

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


#: What older Pythons consider global, and addresses of clouds' internal services.
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(text)
    for text in (
        "192.0.0.0/24",  # 192.0.0.192 is a cloud's metadata service
        "168.63.129.16/32",  # so is this
        "100.64.0.0/10", "198.18.0.0/15", "192.88.99.0/24", "240.0.0.0/4",
        "::/96", "::ffff:0:0:0/96",  # other spellings of IPv4 addresses, long out of use
        "64:ff9b:1::/48",  # NAT64 of a local network
        "fec0::/10", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16",
    )
)  # fmt: skip


class Refused(Exception):
    """The address must not be posted to."""


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to public addresses and to the allowed networks."""

    def __init__(self, *, allowed: Sequence[Network]) -> None:
        self._allowed = allowed
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} cannot be found: {error}") from error
        addresses = [str(info[4][0]) for info in found]
        for address in addresses:
            if not (is_public(address) or self._is_allowed(address)):
                raise Refused(f"{host} is {address}, which is not a public address")
        return await self._network.connect_tcp(addresses[0], port, timeout, local_address, socket_options)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002 - theirs
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - theirs
    ) -> httpcore.AsyncNetworkStream:
        raise Refused(f"{path} is not a public address")

    def _is_allowed(self, address: str) -> bool:
        """Loopback and link-local addresses (cloud metadata) need a network of just those: 0.0.0.0/0 does not do."""
        ip = ipaddress.ip_address(address.partition("%")[0])
        return any(
            ip in network
            and (network.is_loopback or not ip.is_loopback)
            and (network.is_link_local or not ip.is_link_local)
            for network in self._allowed
        )

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def is_public(address: str) -> bool:
    """Whether it is on the public internet: not this machine, a private network, or a cloud's internal service."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is not None:
            return is_public(str(inner))
        if ip in ipaddress.ip_network("64:ff9b::/96"):  # NAT64
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _NOT_PUBLIC)


class SafePost:
    def __init__(self, *, allow_http: bool, allowed: Sequence[Network] = (), timeout_seconds: float = 10.0) -> None:
        """`allowed`: networks that may be posted to although they are private."""
        self._allow_http = allow_http
        self._timeout_seconds = timeout_seconds
        self._pool = httpcore.AsyncConnectionPool(
            network_backend=CheckedBackend(allowed=allowed), max_connections=50, keepalive_expiry=10
        )

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        """The status, and the beginning of the answer. Raises Refused, TimeoutError, and what the network raises."""
        if not (url.startswith("https://") or (self._allow_http and url.startswith("http://"))):
            raise Refused("http is not allowed here")
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), self._timeout_seconds)
        async with (
            asyncio.timeout(2 * self._timeout_seconds),
            self._pool.stream(
                "POST", url, content=body, headers=list(headers.items()), extensions={"timeout": timeouts}
            ) as response,
        ):
            answer = b""
            async for chunk in response.aiter_stream():
                answer += chunk
                if len(answer) >= MAX_ANSWER_BYTES:
                    break
            return response.status, answer[:MAX_ANSWER_BYTES].decode("utf-8", "replace")

    async def close(self) -> None:
        await self._pool.aclose()
