// The shell: who is signed in, the pages they may see, and the page that the address names.
import { loadSession, may, session, signIn, signOut } from "./api.js";
import { html, render, signal, useEffect, useState } from "./lib.js";
import { connection } from "./live.js";
import "./keys.js";
import { go, place } from "./router.js";
import { attempt, Dialogue, Toasts } from "./ui.js";
import { ROOT } from "./root.js";

/** @typedef {{path: string, name: string, permission: string, load: () => Promise<any>, hidden?: boolean}} Page */
/** @type {Page[]} Each page is loaded when it is first shown. */
const PAGES = [
  { path: "/", name: "Overview", permission: "workers:view", load: () => import("./pages/overview.js") },
  { path: "/jobs", name: "Jobs", permission: "jobs:read", load: () => import("./pages/jobs.js") },
  { path: "/jobs/", name: "Job", permission: "jobs:read", load: () => import("./pages/job.js"), hidden: true },
  { path: "/lanes", name: "Lanes", permission: "workers:view", load: () => import("./pages/lanes.js") },
  { path: "/workers", name: "Workers", permission: "workers:view", load: () => import("./pages/workers.js") },
  { path: "/schedules", name: "Schedules", permission: "schedules:manage", load: () => import("./pages/schedules.js") },
  { path: "/webhooks", name: "Webhooks", permission: "hooks:manage", load: () => import("./pages/webhooks.js") },
  { path: "/audit", name: "Audit", permission: "audit:read", load: () => import("./pages/audit.js") },
  { path: "/tokens", name: "Tokens and roles", permission: "tokens:manage", load: () => import("./pages/tokens.js") },
];

/** @type {Map<string, any>} */
const loaded = new Map();
const arrived = signal(0);

/** @param {Page} page */
function component(page) {
  void arrived.value;
  if (!loaded.has(page.path)) {
    loaded.set(page.path, null);
    void page.load().then((module) => { loaded.set(page.path, module.default); arrived.value += 1; });
  }
  return loaded.get(page.path);
}

function currentPage() {
  const { path } = place.value;
  const shown = PAGES.filter((page) => may(page.permission));
  return shown.find((page) => page.path === path)
    ?? shown.find((page) => page.path.length > 1 && page.path.endsWith("/") && path.startsWith(page.path))
    ?? (path === "/" || path === "/login" ? shown[0] : undefined);
}

const LIVE = { none: "", live: "Live", connecting: "Connecting", reconnecting: "Reconnecting" };

function Side() {
  const who = session.value;
  const current = currentPage();
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "");
  useEffect(() => { document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); }, [current]);
  const nextTheme = () => {
    const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const chosen = dark ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    localStorage.setItem("fenceline-theme", chosen);
    setTheme(chosen);
  };
  return html`<div class="side">
    <a class="brand" href="/"><img src="/assets/icon.svg" alt="" />Fenceline</a>
    <nav aria-label="Pages">
      ${PAGES.filter((page) => !page.hidden && may(page.permission)).map((page) => html`
        <a key=${page.path} href=${page.path} aria-current=${current === page || (current?.hidden && page.path === "/jobs") ? "page" : undefined}>${page.name}</a>`)}
    </nav>
    <div class="foot">
      ${connection.value === "none" ? null : html`<span class=${`live ${connection.value}`} role="status"><i></i>${LIVE[connection.value]}</span>`}
      <span class="who"><b>${who?.actor}</b><br /><span class="quiet">${who?.role}${who?.all_tenants ? "" : `, tenant ${who?.tenant}`}</span></span>
      <div class="row">
        <button class="tiny" type="button" onClick=${nextTheme} title="Light or dark">Theme</button>
        ${who?.csrf ? html`<button class="tiny" type="button" onClick=${() => attempt(signOut)}>Sign out</button>` : null}
      </div>
    </div>
  </div>`;
}

function Shell() {
  const page = currentPage();
  const Page = page && component(page);
  useEffect(() => { document.title = page ? `${page.name} · Fenceline` : "Fenceline"; }, [page]);
  return html`<div class="shell">
    <${Side} />
    <main id="main" tabindex="-1">
      ${!page ? html`<h1>Nothing here</h1><p class="quiet">There is no such page, or it is not for your role.</p>`
        : Page ? html`<${Page} key=${page.path === "/jobs/" ? place.value.path : page.path} />` : null}
    </main>
    <${Dialogue} /><${Toasts} />
  </div>`;
}

function Login() {
  const [error, setError] = useState("");
  const ways = document.querySelector("meta[name=fenceline-login]")?.getAttribute("content")?.split(" ") ?? [];
  /** @param {() => Promise<void>} enter */
  const enter = async (enter) => {
    try {
      await enter();
      if (place.value.path === "/login") go("/", true);
    } catch (refused) {
      setError(refused instanceof Error ? refused.message : String(refused));
    }
  };
  useEffect(() => {
    const code = location.hash.slice(1);
    if (place.value.path === "/login" && code) {
      history.replaceState(null, "", `${ROOT}/login`); // it works once: no need to keep it in the history
      void enter(() => signIn({ code }));
    }
  }, []);
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const token = /** @type {HTMLInputElement} */ (form.elements.namedItem("token")).value.trim();
    void enter(() => signIn({ token }));
  };
  return html`<main class="login"><div class="panel">
    <h1 class="brand"><img src="/assets/icon.svg" alt="" />Fenceline</h1>
    <form onSubmit=${submit}>
      <label class="field">Token
        <input name="token" type="password" autocomplete="off" spellcheck="false" required autofocus />
        <small>Made by <code>fenceline token create --role operator</code></small>
      </label>
      <button class="primary" type="submit">Sign in</button>
    </form>
    ${ways.includes("oidc") ? html`<a class="button" href="/v1/session/oidc">Sign in with your organisation</a>` : null}
    ${error ? html`<p class="bad" role="alert">${error}</p>` : null}
  </div></main>`;
}

function App() {
  if (session.value === undefined) return null;
  return session.value ? html`<${Shell} />` : html`<${Login} />`;
}

void (async () => {
  if (!(place.value.path === "/login" && location.hash)) await loadSession();
  else session.value = null;
  render(html`<${App} />`, document.body);
})();
