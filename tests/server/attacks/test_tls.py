"""TLS in the server itself, its deadline, and client certificates for runners."""

# ruff: noqa: ASYNC210, ASYNC212, ASYNC221 - the server is another process, and nothing else runs here

import json
import os
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest
from tests.server.attacks.certificates import Authority
from tests.server.attacks.victim import COMMAND, answer, running, token_of
from tests.support.patience import seconds_left

APP = """
from fenceline import Fenceline

app = Fenceline()

@app.job()
async def hello() -> str:
    return "done over TLS"
"""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def context(authority: Authority, files: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=authority.file)
    if files is not None:
        made.load_cert_chain(*files)
    return made


def flags(files: tuple[Path, Path], *more: str) -> tuple[str, ...]:
    return ("--tls-cert", str(files[0]), "--tls-key", str(files[1]), *more)


async def test_tls_in_the_server_itself(database: str, tmp_path: Path, authority: Authority) -> None:
    files = authority.issue("server")
    with running(
        database, tmp_path, *flags(files, "--header-seconds", "2", "--connections-per-address", "20")
    ) as victim:
        assert victim.url.startswith("https://")
        headers = {"Authorization": f"Bearer {await token_of(database)}"}
        with httpx.Client(
            base_url=victim.url, headers=headers, verify=context(authority), timeout=seconds_left()
        ) as client:
            made = client.post("/v1/jobs", json={"kind": "plain"})
            assert made.status_code == 202
            assert "max-age" in made.headers["strict-transport-security"]
            # A client that speaks plainly, or not at all, has as little time as any other.
            plain = victim.connect()
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert not answer(plain).startswith(b"HTTP/1.1 200")
            silent = [victim.connect() for _ in range(18)]
            for connection in silent:
                assert answer(connection) == b""
            # A renewed certificate is used from the next connection on.
            before = ssl.get_server_certificate(("127.0.0.1", victim.port))
            files[0].write_text("half a certif")
            assert ssl.get_server_certificate(("127.0.0.1", victim.port)) == before
            authority.issue("server")
            assert ssl.get_server_certificate(("127.0.0.1", victim.port)) != before


async def test_runners_show_a_certificate(database: str, tmp_path: Path, authority: Authority) -> None:
    server, runner = authority.issue("server"), authority.issue("runner")
    stranger = Authority(tmp_path, "stranger").issue("forged")
    token = await token_of(database, "runner")
    headers = {"Authorization": f"Bearer {token}"}
    (tmp_path / "shop.py").write_text(APP)
    clients = tmp_path / "clients.pem"
    clients.write_bytes(authority.file.read_bytes())
    with running(database, tmp_path, *flags(server, "--tls-client-ca", str(clients))) as victim:
        # Others need none.
        operator = {"Authorization": f"Bearer {await token_of(database)}"}
        made = httpx.post(
            f"{victim.url}/v1/jobs",
            json={"kind": "hello"},
            headers=operator,
            verify=context(authority),
            timeout=seconds_left(),
        ).json()
        refused = httpx.post(
            f"{victim.url}/v1/runners", json={}, headers=headers, verify=context(authority), timeout=seconds_left()
        )
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        with pytest.raises(httpx.TransportError):
            httpx.post(
                f"{victim.url}/v1/runners",
                json={},
                headers=headers,
                verify=context(authority, stranger),
                timeout=seconds_left(),
            )
        ran = subprocess.run(
            [
                COMMAND, "runner", "shop:app", "--once", "--tls-ca", str(authority.file),
                "--tls-cert", str(runner[0]), "--tls-key", str(runner[1]),
            ],
            cwd=tmp_path,
            env=os.environ | {"FENCELINE_URL": victim.url, "FENCELINE_TOKEN": token},
            capture_output=True, text=True, check=False, timeout=seconds_left(),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        job = httpx.get(
            f"{victim.url}/v1/jobs/{made['id']}", headers=operator, verify=context(authority), timeout=seconds_left()
        ).json()
        assert (job["status"], json.dumps(job["result"])) == ("succeeded", '"done over TLS"')
        # Whoever is not trusted any more stays out from the next connection on.
        shown = context(authority, runner)
        assert (
            httpx.post(
                f"{victim.url}/v1/runners", json={}, headers=headers, verify=shown, timeout=seconds_left()
            ).status_code
            == 201
        )
        clients.write_bytes(Authority(tmp_path, "newer").file.read_bytes())
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{victim.url}/v1/runners", json={}, headers=headers, verify=shown, timeout=seconds_left())


def test_tls_flags_go_together(database: str, tmp_path: Path, authority: Authority) -> None:
    files = authority.issue("server")
    for wrong in (("--tls-cert", str(files[0])), ("--tls-client-ca", str(authority.file))):
        refused = subprocess.run(
            [COMMAND, "server", *wrong], cwd=tmp_path, env=os.environ | {"FENCELINE_DSN": database},
            capture_output=True, text=True, check=False, timeout=seconds_left(),
        )  # fmt: skip
        assert refused.returncode == 2
        assert "--tls-cert and --tls-key are given together" in refused.stderr
