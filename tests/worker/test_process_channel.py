"""The talk between a worker process and the keeper of its lease."""

import socket
from uuid import uuid4

from fenceline.worker.process_channel import ProcessChannel


async def test_a_message_may_name_every_attempt_of_a_large_worker() -> None:
    ours, theirs = socket.socketpair()
    keeper, child = await ProcessChannel.open(ours), await ProcessChannel.open(theirs)
    cancelled = [str(uuid4()) for _ in range(5000)]
    keeper.send(cancel=cancelled)
    assert await child.receive() == {"cancel": cancelled}
    keeper.close()
    assert await child.receive() is None
    child.close()
