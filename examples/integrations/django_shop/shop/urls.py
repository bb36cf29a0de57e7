from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path

from shop.jobs import send_receipt
from shop.models import Order


@transaction.atomic
def order(request: HttpRequest, item: str) -> JsonResponse:
    """The order and its job are there together, or neither is."""
    made = Order.objects.create(item=item)
    job = send_receipt.sync.enqueue(order_id=made.pk)
    if item == "nothing":
        raise ValueError("there is no such item")
    return JsonResponse({"order": made.pk, "job": job.id})


urlpatterns = [path("admin/", admin.site.urls), path("order/<str:item>", order)]
