// What is kept of a job: attempts, phases with their items, steps, locks, relatives, audit. Empty ones are not shown.
import { get } from "../api.js";
import { duration, now } from "../format.js";
import { html, useEffect, useState } from "../lib.js";
import { FINAL } from "../live.js";
import { Bar, JobLink, Json, Panel, Status, Time } from "../ui.js";

/** @typedef {import("../types.js").Job} Job */

/** @param {string} at @param {string | null} until */
const seconds = (at, until) => ((until ? Date.parse(until) : now.value) - Date.parse(at)) / 1000;

/** @type {Record<string, string>} An attempt's outcome → the status whose colour and shape it has. */
const OUTCOMES = {
  released: "queued", refused: "queued", crashed: "failed", lost: "failed", snoozed: "scheduled", retried: "failed", timed_out: "failed",
};

/** @type {Record<string, string>} A write that came too late → what it was. */
const WRITES = {
  start: "its start", finish: "its end", log: "log lines", set_progress: "progress", move_items: "items",
  save_checkpoint: "a checkpoint", record_step: "a step", list_steps_ahead: "steps", add_children: "children",
  take_lock: "a lock", release_lock: "a lock", guard_newer: "a guard", guard_write: "a guard", begin_wait: "a wait",
  create_callback: "a callback",
};

/** @param {Record<string, number>} writes `its end, log lines (3 times)` */
function refusedText(writes) {
  const said = Object.entries(writes).map(([write, times]) => `${WRITES[write] ?? write.replaceAll("_", " ")}${times > 1 ? ` (${times} times)` : ""}`);
  return said.join(", ");
}

/** @param {{attempts: any[], events: any[]}} props */
export function Attempts({ attempts, events }) {
  if (!attempts.length) return null;
  const refused = new Map(events.filter((each) => each.event === "attempt.refused").map((each) => [each.details.attempt_id, each.details]));
  return html`<${Panel} title="Attempts"><ol class="timeline">
    ${attempts.map((attempt) => html`<${Attempt} key=${attempt.attempt_id ?? "unclaimed"} attempt=${attempt} late=${refused.get(attempt.attempt_id)} />`)}
  </ol><//>`;
}

/** @param {{attempt: any, late: any}} props `late`: its writes that came too late */
function Attempt({ attempt, late }) {
  const { error } = attempt;
  const outcome = attempt.outcome ?? (attempt.started_at ? "running" : "claimed");
  const from = attempt.started_at ?? attempt.claimed_at;
  const who = [
    attempt.worker && `on ${attempt.worker}`, from && `for ${duration(seconds(from, attempt.ended_at))}`,
    attempt.actor && `ended by ${attempt.actor}`,
  ];
  return html`<li>
    <b class="num">${attempt.number ?? "–"}</b>
    <div class="what"><${Status} of=${OUTCOMES[outcome] ?? outcome} text=${outcome.replaceAll("_", " ")} />
      <div class="small quiet">${who.filter(Boolean).join(" ")}</div>
      ${error ? html`<div class="small">${error.type ?? error.code}: ${error.message}</div>` : null}
      ${error?.traceback ? html`<details class="small"><summary>Traceback</summary><pre class="json" tabindex="0">${error.traceback}</pre></details>` : null}
      ${late ? html`<div class="small warn">Refused, because too late: ${refusedText(late.writes)}
        <span class="quiet"> <${Time} at=${late.last_at} /></span></div>` : null}
    </div>
    <span class="small"><${Time} at=${attempt.claimed_at ?? attempt.ended_at} /></span>
  </li>`;
}

const SETS = /** @type {[string, string][]} */ ([["in_progress", "In progress"], ["completed", "Completed"], ["skipped", "Skipped"], ["failed", "Failed"]]);

/** @param {any} progress done and total, said outright or counted from the items */
function counted(progress) {
  if (!progress) return null;
  if (typeof progress.total === "number") return { done: progress.done ?? 0, total: progress.total };
  if (!progress.items) return null;
  const [open, ...done] = SETS.map(([set]) => progress.items[set]?.length ?? 0);
  const ended = done.reduce((sum, size) => sum + size, 0);
  return { done: ended, total: Math.max(progress.items.total ?? 0, open + ended) };
}

/** @param {{job: Job, phases: any[]}} props */
export function Phases({ job, phases }) {
  // The live one is newer in the stream than in what was read.
  const shown = phases.map((phase, index) => {
    const isLive = index === phases.length - 1 && !phase.ended_at && phase.phase === job.phase;
    return isLive ? { ...phase, progress: job.progress ?? phase.progress } : phase;
  });
  if (!shown.length && (job.phase || job.progress)) {
    shown.push({ phase: job.phase, progress: job.progress, started_at: job.started_at, ended_at: job.finished_at, token: 0 });
  }
  if (!shown.length) return null;
  const last = shown.at(-1);
  return html`<${Panel} title="Phases and progress"><div class="body stack">
    <div class="progress">${shown.map((phase) => html`<${Phase} phase=${phase} ended=${FINAL.has(job.status) ? job.finished_at : null} />`)}</div>
    ${last?.progress?.message ? html`<p>${last.progress.message}</p>` : null}
    <${Items} items=${last?.progress?.items} />
  </div><//>`;
}

/** @param {{phase: any, ended: string | null}} props `ended`: when the job did */
function Phase({ phase, ended }) {
  const of = counted(phase.progress);
  const name = phase.phase ?? "start";
  const tone = of && of.done >= of.total ? "good" : phase.ended_at ? "full" : " ";
  return html`<b class="cut" title=${phase.phase ?? "before the first"}>${name}</b>
    ${of ? html`<${Bar} value=${of.done} most=${of.total} label=${`progress of ${name}`} tone=${tone} />`
      : html`<span class="quiet cut">${phase.progress?.message ?? ""}</span>`}
    <span class="num">${of ? `${of.done} / ${of.total}` : ""} ${phase.started_at
      ? html`<span class="quiet">${duration(seconds(phase.started_at, phase.ended_at ?? ended))}</span>` : null}</span>`;
}

/** @param {{items: any}} props */
function Items({ items }) {
  const sets = SETS.filter(([set]) => items?.[set]?.length);
  if (!sets.length) return null;
  /** @param {any} item */
  const told = (item) => (typeof item === "string" ? item : html`${item.item}<span class="quiet"> ${item.reason ?? item.error ?? ""}</span>`);
  return html`<div class="sets">${sets.map(([set, name]) => html`<div><h2>${name} <span class="quiet">${items[set].length}</span></h2>
    <ul tabindex="0" aria-label=${name}>${items[set].slice(0, 200).map((/** @type {any} */ item) => html`<li class="wrap-anywhere">${told(item)}</li>`)}</ul>
  </div>`)}</div>`;
}

/** @type {Record<string, string>} A step's status → the status whose colour and shape it has. */
const STEPS = { done: "succeeded", listed: "queued", failed: "failed" };

/** @param {{steps: any[]}} props */
export function Steps({ steps }) {
  if (!steps.length) return null;
  /** @param {any} step */
  const hasResult = (step) => step.status === "done" && step.result !== null && step.result !== undefined;
  return html`<${Panel} title="Steps"><ol class="timeline">${steps.map((step, index) => html`<li key=${step.name}>
    <b class="num">${index + 1}</b>
    <div class="what"><${Status} of=${STEPS[step.status]} text=${step.name} />
      ${step.error ? html`<div class="small">${step.error.message}</div>` : null}
      ${hasResult(step) ? html`<details class="small"><summary>Result</summary><${Json} value=${step.result} /></details>` : null}</div>
    <span class="small num">${step.ran_seconds === null ? "" : duration(step.ran_seconds)}</span>
  </li>`)}</ol><//>`;
}

/** @param {{checkpoint: any}} props the state from which the next attempt goes on */
export function Checkpoint({ checkpoint }) {
  if (!checkpoint?.updated_at) return null;
  return html`<${Panel} title="Checkpoint" right=${html`<span class="small quiet"><${Time} at=${checkpoint.updated_at} /></span>`}>
    <div class="body"><${Json} value=${checkpoint.state} /></div><//>`;
}

/** @param {{job: Job}} props the configuration that was planned with: read when it is opened, for it may be long */
export function Snapshot({ job }) {
  const [snapshot, setSnapshot] = useState(/** @type {unknown} */ (undefined));
  if (!job.snapshot_hash && !job.requires_hash) return null;
  const open = async () => {
    if (snapshot === undefined) setSnapshot((await get(`/v1/jobs/${job.id}`, { fields: "snapshot" })).snapshot);
  };
  return html`<${Panel} title="Plan"><div class="body stack">
    <dl class="facts one">
      ${job.snapshot_hash ? html`<div><dt>Hash of its snapshot</dt><dd><code>${job.snapshot_hash}</code></dd></div>` : null}
      ${job.requires_hash ? html`<div><dt>Runs only with the plan</dt><dd><code>${job.requires_hash}</code></dd></div>` : null}
    </dl>
    ${job.snapshot_hash ? html`<details onToggle=${open}><summary>Snapshot</summary>
      ${snapshot === undefined ? null : html`<${Json} value=${snapshot} />`}</details>` : null}
  </div><//>`;
}

/** @type {Record<string, string>} */
const LOCKS = { lock: "lock", resource_lock: "resource lock", key: "key" };

/** @param {{locks: any[]}} props what it holds, and what it waits for */
export function Locks({ locks }) {
  if (!locks.length) return null;
  /** @param {any} lock */
  const holder = (lock) => (lock.holder ? html` for <${JobLink} id=${lock.holder} />`
    : lock.holder_actor ? ` for code outside jobs (${lock.holder_actor})` : null);
  /** @param {any} lock */
  const name = (lock) => [lock.namespace, lock.name].filter(Boolean).join(":");
  return html`<${Panel} title="Locks"><ul class="timeline plain">${locks.map((lock) => html`<li>
    <div class="what"><${Status} of=${lock.held ? "active" : "waiting"} text=${name(lock)} note=${LOCKS[lock.what]} />
      ${lock.held ? null : html`<div class="small">waits${holder(lock)}</div>`}</div>
    <span class="small"><${Time} at=${lock.since} none="" /></span>
  </li>`)}</ul><//>`;
}

/** @type {Record<string, string>} What happened → how one says so. */
const EVENTS = {
  "job.enqueue": "enqueued", "attempt.claim": "claimed", "attempt.start": "started", "attempt.end": "ended", "job.end": "ended",
  "job.approve": "approved", "job.reject": "rejected", "job.cancel": "cancel requested", "job.kill": "cancelled by force",
  "job.retry": "retried", "job.run_now": "made to run now", "job.reprioritise": "reprioritised", "job.move": "moved",
  "job.signal": "signalled", "job.erase": "args erased",
};

/** @param {any} event `ended: failed`, `refused log lines (3 times)` */
function eventText({ event, details }) {
  if (event === "attempt.refused") return `refused ${refusedText(details.writes)}`;
  const said = EVENTS[event] ?? event.replace(/^\w+\./, "").replaceAll("_", " ");
  return details?.outcome ? `${said}: ${details.outcome.replaceAll("_", " ")}` : said;
}

/** @param {{events: any[]}} props */
export function Audit({ events }) {
  if (!events.length) return null;
  return html`<${Panel} title="What happened"><ol class="timeline plain">${events.map((event) => html`<li>
    <div class="what">${eventText(event)}${event.actor ? html` <span class="quiet">by ${event.actor}</span>` : null}
      ${event.reason ? html`<div class="small">“${event.reason}”</div>` : null}</div>
    <span class="small"><${Time} at=${event.at} /></span>
  </li>`)}</ol><//>`;
}

/** @param {{job: Job, children: any[]}} props */
export function Graph({ job, children }) {
  const above = [...new Set([job.parent, ...(job.after ?? []), job.retry_of].filter((id) => id !== null && id !== undefined))].slice(0, 12);
  const [known, setKnown] = useState(/** @type {Record<string, any>} */ ({}));
  useEffect(() => {
    const read = above.map((id) => get(`/v1/jobs/${id}`).catch(() => ({ id })));
    void Promise.all(read).then((found) => setKnown(Object.fromEntries(found.map((each) => [each.id, each]))));
  }, [above.join()]);
  if (!above.length && !children.length) return null;
  /** @param {any} each */
  const node = (each) => html`<a key=${each.id} class=${each.id === job.id ? "node self" : "node"} href=${`/jobs/${each.id}`}>
    <b class="cut">${each.kind ?? "job"}</b>${each.status ? html`<${Status} of=${each.status} />` : html`<span class="mono">${each.id}</span>`}</a>`;
  const arrow = html`<span class="arrow" aria-hidden="true">→</span>`;
  return html`<${Panel} title="Parents and children"><div class="graph" role="group" aria-label="Graph" tabindex="0">
    ${above.length ? html`<div class="level">${above.map((id) => node(known[id] ?? { id }))}</div>${arrow}` : null}
    <div class="level">${node(job)}</div>
    ${children.length ? html`${arrow}<div class="level">${children.slice(0, 30).map(node)}
      ${children.length > 30 ? html`<span class="quiet">and ${children.length - 30} more</span>` : null}</div>` : null}
  </div><//>`;
}
