"""Orders in SQLAlchemy, receipts in Fenceline: the order and its job are there together, or neither is.

`DATABASE_URL` is a PostgreSQL: `DATABASE_URL=postgresql://… python sqlalchemy_shop.py`.
"""

import asyncio
import os

from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from fenceline import Fenceline, SyncContext

URL = os.environ["DATABASE_URL"]
queue = Fenceline(URL)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "shop_order"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    receipt: Mapped[str | None]


def make_engine() -> Engine:
    # `pool_pre_ping`: a connection that was lost while it waited in the pool is replaced.
    return create_engine(make_url(URL).set(drivername="postgresql+psycopg"), pool_pre_ping=True)


def make_async_engine() -> AsyncEngine:
    return create_async_engine(make_url(URL).set(drivername="postgresql+psycopg"), pool_pre_ping=True)


engine = make_engine()


@queue.job
def send_receipt(ctx: SyncContext, order_id: int) -> str:
    """The receipt and the end of the job commit together: whatever happens, there is exactly one."""
    with Session(engine) as session, ctx.transaction(session) as transaction:
        order = session.get_one(Order, order_id)
        order.receipt = f"receipt for {order.item}"
        transaction.result = order.receipt
    return transaction.result


def place_order(session: Session, item: str) -> str:
    """The caller's session, and so the caller's transaction."""
    order = Order(item=item)
    session.add(order)
    session.flush()  # now it has an id
    return send_receipt.options(connection=session).sync.enqueue(order_id=order.id).id


async def place_order_async(session: AsyncSession, item: str) -> str:
    order = Order(item=item)
    session.add(order)
    await session.flush()
    return (await send_receipt.options(connection=session).enqueue(order_id=order.id)).id


async def main() -> None:
    await queue.migrate()
    Base.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        first = place_order(session, "tea")
    async_engine = make_async_engine()
    async with AsyncSession(async_engine) as async_session, async_session.begin():
        second = await place_order_async(async_session, "coffee")
    await async_engine.dispose()
    worker = asyncio.create_task(queue.run_worker())
    for job in (first, second):
        print(await queue.jobs.handle(job).result(timeout=30))
    worker.cancel()
    await asyncio.wait([worker])
    await queue.close()
    engine.dispose()


if __name__ == "__main__":
    asyncio.run(main())
