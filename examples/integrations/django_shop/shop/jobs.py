from fenceline import SyncContext
from fenceline.django import app
from shop.models import Order


@app.job(retry=3)
def send_receipt(ctx: SyncContext, order_id: int) -> str:
    order = Order.objects.get(pk=order_id)
    order.receipt = f"receipt {ctx.job} for {order.item}"
    order.save()
    return order.receipt
