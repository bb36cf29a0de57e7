"""How many may come in at a time: in all, and from one address."""

import contextlib
import ipaddress
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

#: The part of an IPv6 address that belongs to one customer; the rest is theirs to choose.
SITE_BITS = 64


@lru_cache(maxsize=4096)
def address_key(host: str) -> str:
    """What counts as one address: an IPv4 address, or a whole IPv6 site. What is no address is its own key."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host[:100]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, SITE_BITS), strict=False))
    return str(address)


class Proxies:
    """Those whose word about an address is taken: single addresses and networks."""

    def __init__(self, trusted: Sequence[str]) -> None:
        """Raises ValueError for what is neither."""
        self._networks = [ipaddress.ip_network(text, strict=False) for text in trusted]

    def __contains__(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


class Places:
    """A number of places, of which one key gets a part. Nobody waits: who finds none is told so."""

    def __init__(self, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._taken: Counter[str] = Counter()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def take(self, key: str | None) -> bool:
        """Whether there was one; None is nobody in particular, who may have any number."""
        if self._count >= self._total or (key is not None and self._taken[key] >= self._each):
            return False
        self._taken[key or ""] += 1
        self._count += 1
        return True

    def give_back(self, key: str | None) -> None:
        self._count -= 1
        self._taken[key or ""] -= 1
        if not self._taken[key or ""]:
            del self._taken[key or ""]

    @contextlib.contextmanager
    def one(self, key: str | None) -> Iterator[bool]:
        """Whether there is one, for the block."""
        found = self.take(key)
        try:
            yield found
        finally:
            if found:
                self.give_back(key)
