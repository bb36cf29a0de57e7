// Overview: what an operator keeps open all day.
import { get, may, request } from "../api.js";
import { count, duration, percent } from "../format.js";
import { html, useState } from "../lib.js";
import { useRefresh } from "../live.js";
import { ask, attempt, Bar, Button, JobLink, Panel, say, Status, Table, Time, Words } from "../ui.js";
import { Chart } from "./chart.js";
import { Kinds, Phases, Tenants } from "./overview_load.js";

/** @typedef {import("../types.js").Fleet} Fleet */
/** @typedef {import("../types.js").Job} Job */
/** @typedef {import("../types.js").Worker} Worker */

const HOUR = 3600;
const BUCKET = 60;
const CHARTED = { seconds: HOUR + 2 * BUCKET, bucket_seconds: BUCKET };

/** @param {string} path @param {Record<string, unknown>} [values] */
const optional = (path, values = {}) => get(path, values).catch(() => null);

/** A server signs on too, to deliver webhooks: it does nobody's jobs. @param {Worker} worker */
const doesJobs = (worker) => worker.lanes?.join() !== "webhooks";

/**
 * One value per minute of the last hour, `none` where there is none; without this minute, which is not over.
 * @param {any[]} rows @param {(row: any) => (number | null)[]} pick
 */
function series(rows, pick, none = /** @type {number | null} */ (0)) {
  const end = Math.floor(Date.now() / 1000 / BUCKET) * BUCKET;
  const times = Array.from({ length: HOUR / BUCKET }, (_, index) => end - HOUR + index * BUCKET);
  const at = new Map();
  for (const row of rows) {
    const time = Math.floor(Date.parse(row.at) / 1000 / BUCKET) * BUCKET;
    const values = pick(row);
    /** @type {number[] | undefined} */
    const known = at.get(time);
    at.set(time, known ? known.map((value, index) => value + (values[index] ?? 0)) : values);
  }
  const width = pick({}).length;
  return [times, ...Array.from({ length: width }, (_, index) => times.map((time) => at.get(time)?.[index] ?? none))];
}

/** @param {any[]} rows */
function errorRate(rows) {
  const [times, ended, bad] = series(rows, (row) => [row.ended, row.failed + row.succeeded_with_errors]);
  const share = (/** @type {any} */ total, /** @type {number} */ index) => (total ? (100 * Number(bad[index])) / total : null);
  return [times, ended.map(share)];
}

/** @param {any[]} rows @param {string} name */
const total = (rows, name) => rows.reduce((/** @type {number} */ sum, row) => sum + (row[name] ?? 0), 0);

export default function Overview() {
  const [fleet, setFleet] = useState(/** @type {Fleet | null} */ (null));
  const [stats, setStats] = useState(/** @type {Record<string, any>} */ ({}));
  const [approvals, setApprovals] = useState(/** @type {Job[]} */ ([]));
  const [doctor, setDoctor] = useState(/** @type {any} */ (null));

  const reload = useRefresh(async () => {
    const [found, backlog, active, held] = await Promise.all([
      get("/v1/admin/workers/status"), get("/v1/stats/backlog"), optional("/v1/stats/active", { limit: 1 }),
      may("jobs:read") ? get("/v1/jobs", { status: "awaiting_approval", limit: 6 }) : null,
    ]);
    setFleet(found);
    setStats((known) => ({ ...known, backlog, active }));
    setApprovals(held?.items ?? []);
  }, { least: 1500, most: 5000 });
  useRefresh(async () => {
    const [throughput, starts, errors, failures, slow] = await Promise.all([
      get("/v1/stats/throughput", CHARTED), optional("/v1/stats/starts", CHARTED), optional("/v1/stats/errors", { seconds: HOUR }),
      optional("/v1/stats/failures", { seconds: HOUR, limit: 6 }), optional("/v1/stats/slow", { limit: 5 }),
    ]);
    setStats((known) => ({ ...known, throughput, starts, errors, failures, slow }));
  }, { most: 15_000, stream: false });
  useRefresh(async () => {
    if (may("system:manage")) setDoctor(await optional("/v1/admin/doctor"));
  }, { most: 60_000, stream: false });

  if (!fleet) return html`<div class="head"><h1>Overview</h1></div>`;
  const workers = [...fleet.workers, ...fleet.runners].filter(doesJobs);
  const isUp = workers.some((worker) => worker.status === "online");
  const ends = stats["throughput"]?.items ?? [];
  const backlog = stats["backlog"]?.items ?? [];
  const throughput = series(ends, (row) => [row.succeeded + row.succeeded_with_errors, row.failed, row.cancelled]);
  const starts = series(stats["starts"]?.items ?? [], (row) => [row.p50_seconds, row.p95_seconds], null);
  return html`
    <div class="head"><h1>Overview</h1>
      <div class="actions">${may("workers:manage") ? html`<${Drain} draining=${fleet.draining} reload=${reload} />` : null}</div>
    </div>
    ${fleet.draining ? html`<p class="notice"><${Status} of="drained" text="The system drains: new jobs from outside are refused." /></p>` : null}
    ${workers.length && !isUp ? html`<p class="notice bad" role="alert">
      <${Status} of="offline" text="No worker or runner is up: nothing is being done." /></p>` : null}
    <${Tiles} fleet=${fleet} workers=${workers} ends=${ends} backlog=${backlog} />
    <div class="columns even">
      <div class="span-4"><${Chart} title="Throughput" unit="jobs per minute" data=${throughput} least=${10}
        lines=${[["succeeded", "--good"], ["failed", "--bad"], ["cancelled", "--idle"]]} /></div>
      <div class="span-4"><${Chart} title="Error rate" unit="% of ended jobs" data=${errorRate(ends)} least=${10}
        lines=${[["failed or with errors", "--bad"]]} /></div>
      <div class="span-4"><${Chart} title="Wait before start" unit="seconds" data=${starts} least=${0.1}
        lines=${[["median", "--busy"], ["95 %", "--warn"]]} /></div>
    </div>
    <div class="columns">
      <div class="stack span-8">
        <${Lanes} lanes=${fleet.lanes} />
        <${Kinds} backlog=${backlog} errors=${stats["errors"]?.items ?? []} />
        <${Failures} failures=${stats["failures"]?.items ?? []} />
        <${Slow} jobs=${stats["slow"]?.items ?? []} />
      </div>
      <div class="stack span-4">
        <${Approvals} jobs=${approvals} total=${total(backlog, "awaiting_approval")} reload=${reload} />
        <${Doctor} found=${doctor} />
        <${Phases} phases=${stats["active"]?.phases ?? []} />
        <${Tenants} ends=${ends} />
        <${Workers} workers=${workers} />
      </div>
    </div>`;
}

/** @param {{fleet: Fleet, workers: Worker[], ends: any[], backlog: any[]}} props */
function Tiles({ fleet, workers, ends, backlog }) {
  const ended = total(ends, "ended");
  const bad = total(ends, "failed") + total(ends, "succeeded_with_errors");
  const oldest = Math.max(0, ...fleet.lanes.map((lane) => lane.oldest_age_seconds ?? 0));
  const up = workers.filter((worker) => worker.status === "online").length;
  const waiting = total(backlog, "scheduled") + total(backlog, "waiting");
  return html`<div class="tiles">
    <${Tile} name="running" value=${count(total(fleet.lanes, "in_use"))} to="/jobs?status=claimed&status=running" />
    <${Tile} name="queued" value=${count(total(backlog, "queued"))} to="/jobs?status=queued" />
    <${Tile} name="scheduled or waiting" value=${count(waiting)} to="/jobs?status=scheduled&status=waiting" />
    <${Tile} name="awaiting approval" value=${count(total(backlog, "awaiting_approval"))} to="/jobs?status=awaiting_approval" />
    <${Tile} name="oldest queued" value=${oldest ? duration(oldest) : "–"} to="/jobs?status=queued" />
    <${Tile} name="ended in the last hour" value=${count(ended)} to="/jobs" />
    <${Tile} name="failed or with errors" value=${ended ? percent(bad / ended) : "–"} to="/jobs?status=failed&status=succeeded_with_errors" />
    <${Tile} name="workers up" value=${`${up} / ${workers.length}`} to="/workers" />
  </div>`;
}

/** @param {{name: string, value: string, to: string}} props */
const Tile = ({ name, value, to }) => html`<a class="tile" href=${to}><b>${value}</b><span>${name}</span></a>`;

/** @param {{draining: boolean, reload: () => Promise<void>}} props */
function Drain({ draining, reload }) {
  const resume = () => attempt(async () => {
    await request("POST", "/v1/admin/resume", {});
    await reload();
  }, "New jobs are accepted again");
  const drain = () => ask({
    title: "Drain the system?", confirm: "Drain", danger: true,
    text: html`<p>New jobs from outside are refused until you resume; what is here goes on, with retries and schedules.</p>`,
    fields: [{ name: "reason", label: "Reason", hint: "It stands in the audit." }],
    onConfirm: async ({ reason }) => {
      await request("POST", "/v1/admin/drain", reason ? { reason } : {});
      say("New jobs from outside are refused now");
      await reload();
    },
  });
  return draining ? html`<${Button} onClick=${resume}>Resume the system<//>` : html`<${Button} onClick=${drain}>Drain the system …<//>`;
}

/** @param {{lanes: import("../types.js").Lane[]}} props */
function Lanes({ lanes }) {
  const busy = lanes.filter((lane) => lane.in_use || lane.depth || !lane.enabled || lane.kinds.length);
  const shown = (busy.length ? busy : lanes).toSorted((one, other) => other.depth - one.depth || other.in_use - one.in_use);
  const columns = [
    "Lane", { name: "Slots", class: "wide-only" }, { name: "Used", class: "num" }, { name: "Queued", class: "num" },
    { name: "Oldest", class: "num" },
  ];
  return html`<${Panel} title="Lanes" right=${html`<a href="/lanes">All lanes</a>`}><${Table} label="Lanes" columns=${columns}>
    ${shown.map((lane) => html`<tr key=${lane.name}>
      <td><a href=${`/jobs?lane=${lane.name}`}><b>${lane.name}</b></a> ${lane.enabled ? null : html`<${Status} of="drained" />`}</td>
      <td class="wide-only">${lane.slots === null ? html`<span class="quiet">unlimited</span>`
        : html`<${Bar} value=${lane.in_use} most=${lane.slots} label=${`slots of ${lane.name}`} />`}</td>
      <td class="num">${lane.in_use}${lane.slots === null ? "" : ` / ${lane.slots}`}</td>
      <td class="num">${count(lane.depth)}</td>
      <td class="num">${duration(lane.oldest_age_seconds)}</td>
    </tr>`)}
  <//><//>`;
}

/** @param {{failures: any[]}} props */
function Failures({ failures }) {
  if (!failures.length) return null;
  const columns = ["Kind", "Error", { name: "Jobs", class: "num" }, { name: "Last", class: "num wide-only" }];
  return html`<${Panel} title="What fails most" right=${html`<span class="quiet small">last hour</span>`}>
    <${Table} label="What fails most" columns=${columns}>${failures.map((each) => html`<tr>
      <td><a href=${`/jobs?status=failed&kind=${each.kind}`}><b>${each.kind}</b></a></td>
      <td class="text"><div class="cut" title=${each.message ?? ""}><b>${each.type ?? each.code}</b> <span class="quiet">${each.message}</span></div></td>
      <td class="num">${count(each.count)}</td>
      <td class="num wide-only"><a href=${`/jobs/${each.last_job}`}><${Time} at=${each.last_at} /></a></td>
    </tr>`)}<//>
  <//>`;
}

/** @param {{jobs: any[]}} props */
function Slow({ jobs }) {
  if (!jobs.length) return null;
  const columns = ["Kind", { name: "Id", class: "wide-only" }, "Status", { name: "Took", class: "num" }];
  return html`<${Panel} title="Slowest" right=${html`<span class="quiet small">now or in the last hour</span>`}>
    <${Table} label="Slowest" columns=${columns}>${jobs.map((job) => html`<tr key=${job.id}>
      <td><a href=${`/jobs/${job.id}`}><b>${job.kind}</b></a></td>
      <td class="wide-only"><${JobLink} id=${job.id} /></td>
      <td><${Status} of=${job.status} /></td>
      <td class="num">${duration(job.seconds)}</td>
    </tr>`)}<//>
  <//>`;
}

/** @param {{jobs: Job[], total: number, reload: () => Promise<void>}} props */
function Approvals({ jobs, total, reload }) {
  if (!jobs.length) return null;
  /** @param {Job} job */
  const approve = (job) => attempt(async () => {
    await request("POST", `/v1/jobs/${job.id}/approve`, {});
    await reload();
  }, `Approved ${job.kind}`);
  const more = total > jobs.length ? html`<a href="/jobs?status=awaiting_approval">All ${count(total)}</a>` : null;
  return html`<${Panel} title="Waits for approval" right=${more}><ul class="timeline plain">${jobs.map((job) => html`<li key=${job.id}>
    <div class="what"><a href=${`/jobs/${job.id}`}><b>${job.kind}</b></a>
      <div class="small quiet">${job.created_by ? `${job.created_by}, ` : ""}<${Time} at=${job.created_at} /></div></div>
    ${may("jobs:approve") ? html`<${Button} class="tiny" onClick=${() => approve(job)}>Approve<//>` : html`<${JobLink} id=${job.id} />`}
  </li>`)}</ul><//>`;
}

/** @param {{found: any}} props */
function Doctor({ found }) {
  if (!found) return null;
  const findings = /** @type {any[]} */ (found.findings).toSorted((one, other) => Number(one.level !== "problem") - Number(other.level !== "problem"));
  const shown = findings.slice(0, 6);
  return html`<${Panel} title="Doctor">${!findings.length ? html`<p class="note"><${Status} of="succeeded" text="Nothing is wrong." /></p>`
    : html`<ul class="timeline plain">${shown.map((finding) => html`<li><div class="what">
        <${Status} of=${finding.level === "problem" ? "error" : "warning"} text=${finding.subject} />
        <div class="small"><${Words} text=${finding.what} /></div>
        <div class="small quiet"><${Words} text=${finding.do} /></div>
      </div></li>`)}</ul>
      ${findings.length > shown.length ? html`<p class="note small">${findings.length - shown.length} more: <code>fenceline doctor</code></p>` : null}`}<//>`;
}

/** @param {{workers: Worker[]}} props */
function Workers({ workers }) {
  if (!workers.length) {
    return html`<${Panel} title="Workers and runners"><p class="note">None has signed on. Start one: <code>fenceline worker module:app</code></p><//>`;
  }
  return html`<${Panel} title="Workers and runners" right=${html`<a href="/workers">All</a>`}>
    <ul class="timeline plain">${workers.slice(0, 6).map((worker) => html`<li key=${worker.id}>
      <div class="what cut"><${Status} of=${worker.status} text=${worker.name} /></div>
      <span class="small num">${worker.status === "online" ? `${worker.in_use} ${worker.in_use === 1 ? "job" : "jobs"}`
        : html`<${Time} at=${worker.heartbeat_at} />`}</span>
    </li>`)}</ul>
  <//>`;
}
