// Overview: whose work there is: by kind, by phase and by tenant.
import { count, duration, percent } from "../format.js";
import { html } from "../lib.js";
import { href } from "../router.js";
import { Panel, Table } from "../ui.js";

const ROWS = 8;

/**
 * Rows added up by one of their fields, the largest first.
 * @param {any[]} rows @param {string} field @param {string[]} sums @param {(row: any) => number} size
 */
function addUp(rows, field, sums, size) {
  const found = new Map();
  for (const row of rows) {
    const known = found.get(row[field]) ?? { name: row[field], oldest: null };
    for (const name of sums) known[name] = (known[name] ?? 0) + row[name];
    if (row.oldest_age_seconds !== undefined) known.oldest = Math.max(known.oldest ?? 0, row.oldest_age_seconds ?? 0);
    found.set(row[field], known);
  }
  return [...found.values()].toSorted((one, other) => size(other) - size(one)).slice(0, ROWS);
}

/** What waits, and how it goes. @param {{backlog: any[], errors: any[]}} props */
export function Kinds({ backlog, errors }) {
  const waiting = (/** @type {any} */ row) => row.scheduled + row.waiting + row.awaiting_approval;
  const rows = addUp(backlog, "kind", ["queued", "scheduled", "waiting", "awaiting_approval"], (row) => row.queued + waiting(row));
  if (!rows.length) return null;
  const rates = new Map(errors.map((row) => [row.kind, row.error_rate]));
  const columns = [
    "Kind", { name: "Queued", class: "num" }, { name: "Waiting", class: "num" }, { name: "Oldest", class: "num wide-only" },
    { name: "Errors", class: "num" },
  ];
  return html`<${Panel} title="Backlog by kind" right=${html`<span class="quiet small">errors of the last hour</span>`}>
    <${Table} label="Backlog by kind" columns=${columns}>${rows.map((row) => html`<tr key=${row.name}>
      <td><a href=${href("/jobs", { kind: row.name })}><b>${row.name}</b></a></td>
      <td class="num">${count(row.queued)}</td>
      <td class="num">${count(waiting(row))}</td>
      <td class="num wide-only">${row.oldest ? duration(row.oldest) : "–"}</td>
      <td class="num">${rates.has(row.name) ? percent(rates.get(row.name) ?? 0) : "–"}</td>
    </tr>`)}<//>
  <//>`;
}

/** What runs, and how far it is. @param {{phases: any[]}} props */
export function Phases({ phases }) {
  if (!phases.length) return null;
  const rows = phases.toSorted((one, other) => other.count - one.count).slice(0, ROWS);
  return html`<${Panel} title="At work"><${Table} label="At work" columns=${["Kind", "Phase", { name: "Jobs", class: "num" }]}>
    ${rows.map(({ kind, phase, count: jobs }) => html`<tr key=${`${kind} ${phase}`}>
      <td><a href=${href("/jobs", { kind, status: ["claimed", "running"], ...(phase ? { phase } : {}) })}><b>${kind}</b></a></td>
      <td class="text">${phase ?? html`<span class="quiet">–</span>`}</td>
      <td class="num">${count(jobs)}</td>
    </tr>`)}
  <//><//>`;
}

/** Who has had how much done; nothing to tell of a single one. @param {{ends: any[]}} props */
export function Tenants({ ends }) {
  const rows = addUp(ends, "tenant", ["ended", "failed", "succeeded_with_errors"], (row) => row.ended);
  if (rows.length < 2) return null;
  const columns = ["Tenant", { name: "Ended", class: "num" }, { name: "Errors", class: "num" }];
  return html`<${Panel} title="Tenants" right=${html`<span class="quiet small">last hour</span>`}>
    <${Table} label="Tenants" columns=${columns}>${rows.map((row) => html`<tr key=${row.name}>
      <td><a href=${href("/jobs", { tenant: row.name })}><b>${row.name}</b></a></td>
      <td class="num">${count(row.ended)}</td>
      <td class="num">${percent((row.failed + row.succeeded_with_errors) / row.ended)}</td>
    </tr>`)}<//>
  <//>`;
}
