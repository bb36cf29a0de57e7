"""Incoming webhooks that are signed in the ways of others, by the examples that they publish."""

import base64
import hashlib
import hmac
import json
import time
from typing import Any
from urllib.parse import quote_plus

import httpx
import pytest
from tests.conftest import Connect
from tests.server.conftest import AsRole
from tests.server.test_incoming_webhooks import code, create, signed

from fenceline.model.webhook_schemes import SCHEMES, BadSecret

FORM = "application/x-www-form-urlencoded"
SLACK_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"  # noqa: S105 - of Slack's documentation
SLACK_BODY = (
    "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
    "&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
    "%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a1"
    "4d10d2c447fce8b6703c"
)
GITHUB_SECRET = "It's a Secret to Everybody"  # noqa: S105 - of GitHub's documentation
STRIPE_SECRET = "whsec_" + "q" * 32
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - of the specification's libraries
BODY = b'{"action": "opened", "number": 7}'

#: Scheme, secret, headers, body, as they were published. Stripe's page has a header without its secret: that one is
#: made with the steps of the page.
EXAMPLES: list[tuple[str, str, dict[str, str], bytes]] = [
    (
        "github",
        GITHUB_SECRET,
        {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
        b"Hello, World!",
    ),
    (
        "slack",
        SLACK_SECRET,
        {
            "X-Slack-Request-Timestamp": "1531420618",
            "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        },
        SLACK_BODY.encode(),
    ),
    (
        "standard",
        STANDARD_SECRET,
        {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        b'{"test": 2432232314}',
    ),
    (
        "stripe",
        "whsec_test_secret",
        {
            "Stripe-Signature": "t=1492774577,"
            "v1=ba9f4c41ab8fee0d4ac1a3c7fdf55d6b75ef1a48ddeaa0f3abe4c2a8d7e3b8f1,"
            f"v1={hmac.new(b'whsec_test_secret', b'1492774577.{}', hashlib.sha256).hexdigest()},"
            "v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"
        },
        b"{}",
    ),
]


def accepts(scheme: str, secret: str, headers: dict[str, str], body: bytes) -> bool:
    known = SCHEMES[scheme]
    claim = known.read(httpx.Headers(headers))
    if claim is None:
        return False
    signing = claim.start(known.key(secret))
    signing.update(body)
    return claim.fits(signing)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example[0])
def test_published_examples_fit_and_nothing_else(example: tuple[str, str, dict[str, str], bytes]) -> None:
    scheme, secret, headers, body = example
    assert accepts(scheme, secret, headers, body)
    assert not accepts(scheme, secret, headers, body + b" ")
    other = STANDARD_SECRET.replace("M", "N") if scheme == "standard" else secret + "x"
    assert not accepts(scheme, other, headers, body)
    for name, value in headers.items():
        assert not accepts(scheme, secret, {key: text for key, text in headers.items() if key != name}, body)
        for wrong in ("", value.upper().swapcase(), value.replace("1", "2"), value[:-2], f"x{value}"):
            if wrong != value and not (scheme == "stripe" and wrong == value[:-2]):  # only its v0 is cut
                assert not accepts(scheme, secret, {**headers, name: wrong}, body), wrong


def test_a_request_cannot_choose_how_it_is_checked() -> None:
    digest = hmac.new(STRIPE_SECRET.encode(), b"1.{}", hashlib.sha256).hexdigest()
    assert accepts("stripe", STRIPE_SECRET, {"Stripe-Signature": f"t=1,v1={digest}"}, b"{}")
    for header in (
        f"t=1,v0={digest}",
        f"v1={digest}",
        f"t=1,t=2,v1={digest}",
        f"t=1,v1={digest}" + f",v1={digest}" * 10,
    ):
        assert not accepts("stripe", STRIPE_SECRET, {"Stripe-Signature": header}, b"{}")
    headers = EXAMPLES[2][2]
    good = headers["webhook-signature"]
    for header, fits in ((f"v1,AAAA v1a,{good[3:]} {good}", True), (f"v1a,{good[3:]}", False), (good[3:], False)):
        assert accepts("standard", STANDARD_SECRET, {**headers, "webhook-signature": header}, EXAMPLES[2][3]) is fits


@pytest.mark.parametrize(
    "secret", ["whsec_", "whsec_short", "whsec_ÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄ", "not base64 at all, is it?"]
)
def test_a_secret_of_standard_webhooks_is_base64(secret: str) -> None:
    with pytest.raises(BadSecret, match="whsec_ and the base64"):
        SCHEMES["standard"].key(secret)


def sign_as(scheme: str, body: bytes, *, at: float | None = None, message_id: str = "msg_1") -> dict[str, str]:
    """Headers of a request, made here from the words of each documentation."""
    timestamp = int(time.time() if at is None else at)

    def hexdigest(secret: str, text: str) -> str:
        return hmac.new(secret.encode(), text.encode() + body, hashlib.sha256).hexdigest()

    match scheme:
        case "github":
            return {"X-Hub-Signature-256": f"sha256={hexdigest(GITHUB_SECRET, '')}", "X-GitHub-Delivery": message_id}
        case "slack":
            signature = hexdigest(SLACK_SECRET, f"v0:{timestamp}:")
            return {"X-Slack-Request-Timestamp": str(timestamp), "X-Slack-Signature": f"v0={signature}"}
        case "stripe":
            return {"Stripe-Signature": f"t={timestamp},v1={hexdigest(STRIPE_SECRET, f'{timestamp}.')}"}
        case _:
            key = base64.b64decode(STANDARD_SECRET.removeprefix("whsec_"))
            digest = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
            text = base64.b64encode(digest).decode()
            return {"webhook-id": message_id, "webhook-timestamp": str(timestamp), "webhook-signature": f"v1,{text}"}


SECRETS = {"github": GITHUB_SECRET, "slack": SLACK_SECRET, "stripe": STRIPE_SECRET, "standard": STANDARD_SECRET}


async def send(
    client: httpx.AsyncClient, scheme: str, body: bytes = BODY, *, form: bool = False, **options: Any
) -> httpx.Response:
    headers = {"Content-Type": FORM if form else "application/json", **sign_as(scheme, body, **options)}
    return await client.post("/v1/triggers/push", content=body, headers=headers)


@pytest.mark.parametrize("scheme", SECRETS)
async def test_each_scheme_enqueues_once_and_in_time(
    as_role: AsRole, anonymous: httpx.AsyncClient, connect: Connect, scheme: str
) -> None:
    operator = await as_role("operator", tenant="acme")
    made = await create(operator, scheme=scheme, secret=SECRETS[scheme])
    assert made["scheme"] == scheme
    at = time.time()
    fired = await send(anonymous, scheme, at=at)
    assert fired.status_code == (200 if scheme == "slack" else 202), fired.text
    job = (await operator.get(fired.headers["location"])).json()
    assert (job["args"], job["created_by"]) == ({"action": "opened", "number": 7}, "trigger:push")
    assert code(await send(anonymous, scheme, at=at)) == (409, "conflict")
    if scheme == "github":  # it signs no time: what was accepted is remembered for longer
        kept = "select extract(epoch from max(until) - clock_timestamp()) from fenceline.trigger_seen"
        assert await (await connect()).fetchval(kept) > 6 * 86400
    else:
        for late in (at - 400, at + 400):
            assert code(await send(anonymous, scheme, at=late)) == (401, "unauthenticated")
    # Ours is no way in where another was chosen.
    ours = await anonymous.post("/v1/triggers/push", content=BODY, headers=signed(BODY, SECRETS[scheme]))
    assert code(ours) == (401, "unauthenticated")
    forged = {"Content-Type": "application/json", **sign_as(scheme, b"{}")}
    assert code(await anonymous.post("/v1/triggers/push", content=BODY, headers=forged)) == (401, "unauthenticated")


async def test_a_delivery_of_standard_webhooks_that_is_sent_again_is_the_same_job(
    as_role: AsRole, anonymous: httpx.AsyncClient
) -> None:
    made = await create(await as_role("operator"), scheme="standard", secret=STANDARD_SECRET)
    assert made["idempotency_header"] == "webhook-id"
    first = await send(anonymous, "standard")
    again = await send(anonymous, "standard", at=time.time() - 9)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    other = await send(anonymous, "standard", message_id="msg_2")
    assert other.status_code == 202


async def test_slack_is_told_the_challenge_and_nothing_of_the_job(
    as_role: AsRole, anonymous: httpx.AsyncClient, connect: Connect
) -> None:
    await create(await as_role("operator"), scheme="slack", secret=SLACK_SECRET, map={"who": "$.user_name"})
    body = json.dumps(
        {"token": "t", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmd", "type": "url_verification"}
    ).encode()
    answer = await send(anonymous, "slack", body)
    assert (answer.status_code, answer.json()) == (200, {"challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmd"})
    connection = await connect()
    assert await connection.fetchval("select count(*) from fenceline.job") == 0
    unsigned = await anonymous.post("/v1/triggers/push", content=body, headers={"Content-Type": "application/json"})
    assert code(unsigned) == (401, "unauthenticated")
    command = await send(anonymous, "slack", SLACK_BODY.encode(), form=True)
    assert (command.status_code, command.content) == (200, b"")
    assert json.loads(await connection.fetchval("select args from fenceline.job")) == {"who": "roadrunner"}


async def test_forms_become_args(as_role: AsRole, anonymous: httpx.AsyncClient, connect: Connect) -> None:
    operator = await as_role("operator")
    await create(operator, scheme="github", secret=GITHUB_SECRET)

    async def args(body: bytes) -> Any:
        answer = await send(anonymous, "github", body, form=True)
        return answer.json()["args"] if answer.status_code == 202 else code(answer)

    assert await args(f"payload={quote_plus(BODY.decode())}".encode()) == {"action": "opened", "number": 7}
    assert await args(b"a=1&b=x+y%C3%A4&a=2&empty=") == {"a": ["1", "2"], "b": "x yä", "empty": ""}
    assert await args(b"payload=x&other=1") == {"payload": "x", "other": "1"}
    for wrong in (b"payload=%7B", b"payload=[1]", b"no form", b"a=%FF", b"\xff=1", b"a=1&" * 1001 + b"b=2"):
        assert await args(wrong) == (422, "invalid"), wrong
    plain = {"Content-Type": "text/plain", **sign_as("github", BODY)}
    assert code(await anonymous.post("/v1/triggers/push", content=BODY, headers=plain)) == (
        415,
        "unsupported_media_type",
    )
    # Elsewhere a form is still none of our business.
    posted = await operator.post("/v1/jobs", content=b"kind=x", headers={"Content-Type": FORM})
    assert code(posted) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "wrong",
    [
        {"scheme": "nonsense"}, {"scheme": "slack"}, {"scheme": "stripe"},
        {"scheme": "standard", "secret": "whsec_not base64, but long enough"},
    ],
)  # fmt: skip
async def test_schemes_are_checked(as_role: AsRole, wrong: dict[str, Any]) -> None:
    operator = await as_role("operator")
    response = await operator.post("/v1/triggers", json={"name": "push", "kind": "build", **wrong})
    assert code(response) == (422, "invalid"), response.text


@pytest.mark.parametrize("scheme", ["fenceline", "github", "standard"])
async def test_secrets_that_we_make_are_of_use(as_role: AsRole, scheme: str) -> None:
    operator = await as_role("operator")
    made = (await operator.post("/v1/triggers", json={"name": "push", "kind": "build", "scheme": scheme})).json()
    assert len(SCHEMES[scheme].key(made["secret"])) >= 32
