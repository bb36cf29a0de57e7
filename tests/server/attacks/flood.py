"""`python flood.py PORT TOKEN`: heads without end, and half heads and half bodies over 300 connections, until killed.

A program of its own, so that it does not slow down the clients that are measured. Each connection is replaced as soon
as the server has cut it. The first time that this happens to one of a kind, it prints the kind's number.
"""

import asyncio
import contextlib
import sys

#: Of each kind, as `starts` has them.
CONNECTIONS = (10, 150, 150)


def starts(token: str) -> tuple[bytes, ...]:
    return (
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
        f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{".encode(),
    )


_cut: set[int] = set()


def tell_cut(kind: int) -> None:
    if kind not in _cut:
        _cut.add(kind)
        print(kind, flush=True)  # noqa: T201 - for who started it


async def attack(port: int, kind: int, start: bytes) -> None:
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(f"127.0.0.{2 + kind}", 0))
            try:
                writer.write(start)
                while not reader.at_eof():
                    writer.write(b"a" * (65536 if kind == 0 else 1))
                    await writer.drain()
                    await asyncio.sleep(0.2)
                writer.close()
            finally:
                tell_cut(kind)
        await asyncio.sleep(0.2)


async def main(port: int, token: str) -> None:
    attacks = [
        attack(port, kind, start)
        for kind, (start, count) in enumerate(zip(starts(token), CONNECTIONS, strict=True))
        for _ in range(count)
    ]
    await asyncio.gather(*attacks)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
