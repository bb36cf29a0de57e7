"""The page in a browser: sign in by a link, plan, deploy, watch the log, see what was made."""

import os
import re
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright
from stand_ins.stack import Person, Stack, eventually, free_port, seconds_left

pytestmark = pytest.mark.xdist_group("infra console")

PICTURE = os.environ.get("INFRA_CONSOLE_PICTURE")  # a file: keep what was seen


def test_a_person_deploys_by_the_page(stack: Stack, ann: Person) -> None:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        reason = "chromium is missing, so what needs it is NOT tested: scripts/install-test-tools"
        if os.environ.get("FENCELINE_REQUIRE_TOOLS"):
            pytest.fail(reason)
        pytest.skip(reason)
    port = free_port()
    ann.save_spec("shop", port)
    ann.client.put("/api/runner/site-2", json={"host": "site-1", "release": "1"}).raise_for_status()
    code = ann.client.post("/queue/v1/session/codes").raise_for_status().json()["code"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(seconds_left() * 1000)
        expect.set_options(timeout=seconds_left() * 1000)
        page.goto(f"{stack.url}/#{code}")
        spec = page.locator("#spec-shop")
        spec.get_by_role("button", name="plan").click()
        expect(page.locator("#log")).to_contain_text("cluster: changed")
        expect(spec.locator(".status")).to_have_text("planned")
        spec.get_by_role("button", name="deploy").click()
        expect(page.locator("#title")).to_contain_text("running on site-1")
        expect(page.locator("#log")).to_contain_text("network: changed")  # while it runs
        expect(spec.locator(".status")).to_have_text("deployed")
        expect(spec).to_contain_text(f"argocd: http://127.0.0.1:{port}/apps.json")
        expect(page.locator("#title")).to_contain_text("succeeded")
        if PICTURE:
            page.screenshot(path=PICTURE)
        spec.get_by_label("shop").fill(
            '{"region": "local", "cluster": {"port": 1}, "database": {"name": "x"}, "apps": []}'
        )
        spec.get_by_role("button", name="save").click()
        expect(page.locator("#spec-shop textarea")).to_have_value(re.compile(r'"name": "x"'))
        page.locator("#spec-shop").get_by_role("button", name="deploy").click()
        expect(page.locator("#log")).to_contain_text("plan_hash_mismatch")
        release = page.get_by_label("release of site-2")
        release.fill("7")
        page.locator("#runner-site-2").get_by_role("button", name="save").click()
        eventually(lambda: ann.row("runner", "site-2")["release"] == "7", "it is saved")
        browser.close()
