// Jobs: filtered by the address, live without jumping, and verbs on many at once.
import { get, may, query, request, session } from "../api.js";
import { count, duration, now } from "../format.js";
import { useKeys } from "../keys.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { FINAL, useStream } from "../live.js";
import { go, href, place } from "../router.js";
import { ask, attempt, Button, Empty, JobLink, Labels, say, Status, STATUSES, Time } from "../ui.js";

/** @typedef {import("../types.js").Job} Job */

const LIMIT = 50;
const FILTERS = ["status", "kind", "lane", "tenant", "label", "phase", "created_by", "error", "created_after", "created_before"];
/** Those with one value, which may have commas in it. */
const SINGLE = new Set(["phase", "created_by", "error", "created_after", "created_before"]);
/** New jobs are counted up to here. */
const MAX_FRESH = 1000;
/** The page shows changes at most so often. */
const SHOW_MS = 200;

/** @param {URLSearchParams} place the filters of the address, as the API takes them */
function filtersOf(place) {
  /** @type {Record<string, string[]>} */
  const found = {};
  for (const name of FILTERS) {
    const values = place.getAll(name).filter(Boolean);
    if (values.length) found[name] = values;
  }
  return found;
}

/** @param {Record<string, string[]>} filters as the body of a bulk verb takes them */
function bodyOf(filters) {
  return Object.fromEntries(Object.entries(filters).map(([name, values]) => [name, SINGLE.has(name) ? values[0] : values]));
}

/** @param {Job} job how long it has run, or ran */
function ran(job) {
  if (!job.started_at) return null;
  return ((job.finished_at ? Date.parse(job.finished_at) : now.value) - Date.parse(job.started_at)) / 1000;
}

/** @param {{job: Job}} props */
function Took({ job }) {
  return html`${duration(ran(job))}`;
}

/**
 * @param {{job: Job, selected: boolean, current: boolean, left: boolean, onSelect: (on: boolean) => void, withTenant: boolean,
 *   selectable: boolean}} props
 */
function Row({ job, selected, current, left, onSelect, withTenant, selectable }) {
  const waiting = job.status === "waiting" ? job.waiting_for : job.cancel_requested_at && !FINAL.has(job.status) ? "cancelling" : null;
  const note = job.error?.message ?? job.error?.code ?? (FINAL.has(job.status) ? null : job.phase);
  return html`<tr class=${`${current ? "current" : ""} ${left ? "left" : ""}`} data-job=${job.id}>
    ${selectable ? html`<td class="shrink"><input type="checkbox" aria-label=${`select ${job.id}`} checked=${selected}
      onChange=${(/** @type {any} */ event) => onSelect(event.target.checked)} /></td>` : null}
    <td class="shrink"><${Status} of=${job.status} note=${waiting} /></td>
    <td><a href=${`/jobs/${job.id}`}><b>${job.kind}</b></a>
      <div class="small quiet phone-only">${job.lane}${note ? `: ${note}` : ""}</div></td>
    <td class="shrink wide-only"><${JobLink} id=${job.id} /></td>
    <td class="wide-only">${job.lane}</td>
    ${withTenant ? html`<td class="wide-only">${job.tenant}</td>` : null}
    <td class="num wide-only roomy-only">${job.priority}</td>
    <td class="num wide-only">${job.attempt}/${job.max_attempts}</td>
    <td class="num wide-only"><${Took} job=${job} /></td>
    <td class="num"><${Time} at=${job.created_at} /></td>
    <td class="text wide-only"><div class="cut" title=${note ?? ""}>${note ?? html`<${Labels} labels=${job.labels} />`}</div></td>
  </tr>`;
}

const VERBS = /** @type {const} */ ([
  ["cancel", "Cancel", "jobs:cancel"], ["retry", "Retry", "jobs:enqueue"],
  ["approve", "Approve", "jobs:approve"], ["reprioritise", "Reprioritise", "jobs:manage"],
]);

const PRIORITY = { name: "priority", label: "Priority", type: "number", value: 0, required: true, hint: "Higher starts first." };

export default function Jobs() {
  const address = place.value.query;
  const filters = filtersOf(address);
  const cursor = address.get("cursor") ?? "";
  const search = query(filters);
  const statuses = filters["status"] ?? [];
  const [page, setPage] = useState(/** @type {{items: Job[], next_cursor: string | null} | null} */ (null));
  const [error, setError] = useState("");
  const [selected, setSelected] = useState(/** @type {Set<string>} */ (new Set()));
  const [all, setAll] = useState(false);
  const [at, setAt] = useState(-1);
  const [fresh, setFresh] = useState(0);
  const seen = useRef({
    loads: 0, changed: /** @type {Map<string, Job> | null} */ (null), rows: new Map(), fresh: new Set(), timer: 0, bottom: "",
  });

  const load = async () => {
    const kept = seen.current;
    const turn = (kept.loads += 1);
    const changed = (kept.changed = new Map());
    try {
      const found = await get("/v1/jobs", { ...filters, cursor, limit: LIMIT });
      if (turn !== kept.loads) return; // answers may overtake each other: the last question counts
      // What the stream has told in the meantime may be newer than the answer.
      const items = found.items.map((/** @type {Job} */ job) => ({ ...job, ...changed.get(job.id) }));
      kept.changed = null;
      kept.rows = new Map(items.map((/** @type {Job} */ job) => [job.id, job]));
      kept.bottom = found.next_cursor ? found.items.at(-1)?.id ?? "" : "";
      kept.fresh.clear();
      setPage({ ...found, items });
      setFresh(0);
      setError("");
    } catch (refused) {
      if (turn === kept.loads) setError(refused instanceof Error ? refused.message : String(refused));
    }
  };
  useEffect(() => { setSelected(new Set()); setAll(false); setAt(-1); void load(); }, [search, cursor]);
  useEffect(() => () => clearTimeout(seen.current.timer), []);

  /** Whether it would stand on this page. @param {Job} job */
  const isFresh = (job) => !cursor && job.id > seen.current.bottom && (!statuses.length || statuses.includes(job.status));
  // Not by status: a job that changes it is to be seen doing so.
  const { status: _, ...streamed } = filters;
  useStream(`/v1/stream${query(streamed)}`, (events) => {
    const kept = seen.current;
    let changed = false;
    for (const { event, data } of events) {
      const known = kept.rows.get(data.id);
      if (event === "status") kept.changed?.set(data.id, data);
      if (event === "status" && known) {
        kept.rows.set(data.id, { ...known, ...data });
        changed = true;
      } else if (event === "progress" && known) {
        kept.rows.set(data.id, { ...known, phase: data.phase, progress: data.progress });
        changed = true;
      } else if (event === "status" && isFresh(data) && kept.fresh.size < MAX_FRESH) {
        kept.fresh.add(data.id);
        changed = true;
      }
    }
    if (changed && !kept.timer) {
      kept.timer = setTimeout(() => {
        kept.timer = 0;
        setPage((shown) => shown && { ...shown, items: shown.items.map((job) => kept.rows.get(job.id) ?? job) });
        setFresh(kept.fresh.size);
      }, SHOW_MS);
    }
  });

  const items = page?.items ?? [];
  /** @param {number} step */
  const move = (step) => {
    const next = Math.max(0, Math.min(items.length - 1, at + step));
    setAt(next);
    document.querySelector(`[data-job="${items[next]?.id}"]`)?.scrollIntoView({ block: "nearest" });
  };
  /** @param {string} id @param {boolean} on */
  const select = (id, on) => {
    const next = new Set(selected);
    if (on) next.add(id); else next.delete(id);
    setSelected(next);
    setAll(false);
  };
  const verbs = VERBS.filter(([, , permission]) => may(permission));
  useKeys({
    j: ["next job", () => move(1)], k: ["previous job", () => move(-1)],
    Enter: ["open the job", () => { if (items[at]) go(`/jobs/${items[at].id}`); }],
    ...(verbs.length ? { x: ["select the job", () => { if (items[at]) select(items[at].id, !selected.has(items[at].id)); }] } : {}),
  });

  /** @param {Record<string, unknown>} changes */
  const change = (changes) => go(href("/jobs", { ...filters, ...changes }), true);
  /** @param {string} action @param {string} word */
  const bulk = (action, word) => attempt(async () => {
    const about = all ? { filter: bodyOf(filters) } : { ids: [...selected] };
    /** @param {Record<string, unknown>} more */
    const send = (more) => request("POST", "/v1/jobs/bulk", { action, ...about, ...more });
    const preview = await send({ dry_run: true, ...(action === "reprioritise" ? { priority: 0 } : {}) });
    const reasons = Object.entries(preview.reasons).map(([code, many]) => `${count(/** @type {number} */ (many))} (${code.replaceAll("_", " ")})`);
    const jobs = `${count(preview.changed)} ${preview.changed === 1 ? "job" : "jobs"}`;
    ask({
      title: `${word} ${jobs}?`,
      text: html`<p>${count(preview.matched)} selected, ${count(preview.changed)} would be changed
        ${reasons.length ? `; left as they are: ${reasons.join(", ")}` : ""}.</p>`,
      fields: [
        ...(action === "reprioritise" ? [PRIORITY] : []),
        { name: "reason", label: "Reason", hint: "It stands in the audit." },
      ],
      confirm: `${word} ${jobs}`, danger: action === "cancel",
      onConfirm: async (values) => {
        const done = await send({
          ...(values["reason"] ? { reason: values["reason"] } : {}), ...(action === "reprioritise" ? { priority: values["priority"] } : {}),
        });
        say(`${word}: ${count(done.changed)} changed${done.refused ? `, ${count(done.refused)} refused` : ""}`);
        setSelected(new Set());
        setAll(false);
        void load();
      },
    });
  });

  const withTenant = session.value?.all_tenants ?? false;
  const isFiltered = Object.keys(filters).length > 0;
  /** @param {string} status */
  const toggle = (status) => change({ status: statuses.includes(status) ? statuses.filter((each) => each !== status) : [...statuses, status] });
  const selectAll = (/** @type {any} */ event) => {
    setAll(false);
    setSelected(new Set(event.target.checked ? items.map((job) => job.id) : []));
  };
  const none = !isFiltered ? "No jobs yet. Enqueue one, and it shows here at once." : html`No job matches. ${page?.next_cursor
    ? html`<a href=${href("/jobs", { ...filters, cursor: page.next_cursor })}>Look further back</a>` : html`<a href="/jobs">Show all jobs</a>`}`;
  return html`
    <div class="head"><h1>Jobs</h1></div>
    <${FilterForm} key=${search} filters=${filters} onChange=${change} withTenant=${withTenant} />
    <div class="chips" role="group" aria-label="Status">${STATUSES.map((status) => html`<button type="button"
      aria-pressed=${statuses.includes(status) ? "true" : "false"} onClick=${() => toggle(status)}><${Status} of=${status} /></button>`)}</div>
    ${error ? html`<p class="notice bad" role="alert">${error}</p>` : null}
    <section class="panel" aria-label="Jobs">
      ${fresh ? html`<div class="bulk">
        <span class="grow">${count(fresh)}${fresh < MAX_FRESH ? "" : "+"} new ${fresh === 1 ? "job" : "jobs"}</span><${Button} onClick=${load}>Show<//>
      </div>` : null}
      ${selected.size || all ? html`<div class="bulk" role="group" aria-label="Selected jobs">
        <b>${all ? "All that match the filter" : `${count(selected.size)} selected`}</b>
        ${!all && selected.size === items.length && page?.next_cursor && isFiltered
          ? html`<button type="button" class="tiny" onClick=${() => setAll(true)}>Select all that match the filter</button>` : null}
        ${verbs.map(([action, word]) => html`<${Button} onClick=${() => bulk(action, word)} class=${action === "cancel" ? "danger" : ""}>${word} …<//>`)}
        <button type="button" class="plain" onClick=${() => { setSelected(new Set()); setAll(false); }}>Clear</button>
      </div>` : null}
      ${page === null ? null : !items.length ? html`<${Empty}>${none}<//>` : html`<div class="table" role="group" aria-label="Jobs" tabindex="0"><table>
        <thead><tr>
          ${verbs.length ? html`<th scope="col" class="shrink"><input type="checkbox" aria-label="select all on this page"
            checked=${selected.size === items.length} onChange=${selectAll} /></th>` : null}
          <th scope="col">Status</th><th scope="col">Kind</th><th scope="col" class="wide-only">Id</th><th scope="col" class="wide-only">Lane</th>
          ${withTenant ? html`<th scope="col" class="wide-only">Tenant</th>` : null}
          <th scope="col" class="num wide-only roomy-only">Priority</th><th scope="col" class="num wide-only">Attempt</th>
          <th scope="col" class="num wide-only">Took</th><th scope="col" class="num">Created</th><th scope="col" class="wide-only">Notes</th>
        </tr></thead>
        <tbody>${items.map((job, index) => html`<${Row} key=${job.id} job=${job} selected=${all || selected.has(job.id)} current=${index === at}
          withTenant=${withTenant} selectable=${verbs.length > 0} left=${statuses.length > 0 && !statuses.includes(job.status)}
          onSelect=${(/** @type {boolean} */ on) => select(job.id, on)} />`)}</tbody>
      </table></div>`}
    </section>
    ${cursor || page?.next_cursor ? html`<div class="head">
      ${cursor ? html`<a class="button" href=${href("/jobs", filters)}>Newest</a>` : null}
      ${cursor ? html`<button type="button" onClick=${() => history.back()}>Newer</button>` : null}
      ${page?.next_cursor ? html`<a class="button" href=${href("/jobs", { ...filters, cursor: page.next_cursor })}>Older</a>` : null}
    </div>` : null}`;
}

const SPANS = /** @type {[string, string][]} */ ([
  ["", "any time"], ["900", "15 minutes"], ["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"],
]);
/** As people copy it: with hyphens. */
const JOB_ID = /^[0-9A-Za-z]{4}-[0-9A-Za-z]{4}-[0-9A-Za-z]{4}-[0-9A-Za-z]{2,3}$/;

/** @param {{filters: Record<string, string[]>, onChange: (changes: Record<string, unknown>) => void, withTenant: boolean}} props */
function FilterForm({ filters, onChange, withTenant }) {
  /** @param {string} name @param {string} text */
  const change = (name, text) => {
    if (name === "kind" && JOB_ID.test(text)) go(`/jobs/${text}`);
    else onChange({ [name]: SINGLE.has(name) ? text : text.split(",").map((each) => each.trim()) });
  };
  /** @param {string} name @param {string} label @param {Record<string, unknown>} [more] */
  const field = (name, label, more = {}) => html`<label class=${name === "error" ? "field wide" : "field"}>${label}
    <input name=${name} defaultValue=${(filters[name] ?? []).join(", ")} autocomplete="off" spellcheck="false" ...${more}
      onChange=${(/** @type {any} */ event) => change(name, event.target.value.trim())} />
  </label>`;
  const [after] = filters["created_after"] ?? [];
  const span = (/** @type {any} */ { target: { value } }) => onChange({
    created_before: null, created_after: value ? new Date(Date.now() - Number(value) * 1000).toISOString() : null,
  });
  return html`<form class="filters" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    ${field("kind", "Kind or id", { "data-search": true })}${field("lane", "Lane")}${withTenant ? field("tenant", "Tenant") : null}
    ${field("label", "Label", { placeholder: "name:value" })}${field("phase", "Phase")}${field("created_by", "Created by")}
    ${field("error", "Text in error")}
    <label class="field">Created within<select name="span" onChange=${span}>
      ${after ? html`<option selected>since ${new Date(after).toLocaleString()}</option>` : null}
      ${SPANS.map(([seconds, text]) => html`<option value=${seconds} selected=${!after && !seconds}>${text}</option>`)}
    </select></label>
    ${Object.keys(filters).length ? html`<a class="button" href="/jobs">Clear</a>` : null}
    <button type="submit" class="hidden-text" tabindex="-1">Filter</button>
  </form>`;
}
