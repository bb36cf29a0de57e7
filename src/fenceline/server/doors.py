"""How many may come in at a time: in all, and for one key, such as an address."""

import contextlib
import ipaddress
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache

#: The part of an IPv6 address that belongs to one customer; the rest is theirs to choose.
SITE_BITS = 64


@lru_cache(maxsize=4096)
def address_key(host: str) -> str:
    """What counts as one address: an IPv4 address or a whole IPv6 site. Anything else stands for itself."""
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
    """Addresses and networks of proxies that are trusted to name the client's address."""

    def __init__(self, trusted: Sequence[str]) -> None:
        """Raises ValueError for anything else."""
        self._networks = [ipaddress.ip_network(text, strict=False) for text in trusted]

    def __contains__(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


class Places:
    """So many places in all, and so many for each key. Nobody waits for one."""

    def __init__(self, total: float, each: int) -> None:
        self._total = total
        self._each = each
        self._taken: Counter[Hashable] = Counter()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def take(self, key: Hashable) -> bool:
        """Whether a place was free. The key None may have any number of them."""
        if self._count >= self._total or (key is not None and self._taken[key] >= self._each):
            return False
        self._taken[key] += 1
        self._count += 1
        return True

    def give_back(self, key: Hashable) -> None:
        self._count -= 1
        self._taken[key] -= 1
        if not self._taken[key]:
            del self._taken[key]

    @contextlib.contextmanager
    def one(self, key: Hashable) -> Iterator[bool]:
        """Hold a place for the block, and say whether one was free."""
        found = self.take(key)
        try:
            yield found
        finally:
            if found:
                self.give_back(key)
