// One job, live: why it is where it is, what was tried, what it says, and what can be done.
import { get, may, request } from "../api.js";
import { duration, now } from "../format.js";
import { useKeys } from "../keys.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { FINAL, useStream } from "../live.js";
import { go, place } from "../router.js";
import { ask, Button, JobLink, Json, Labels, Panel, say, Status, Time } from "../ui.js";
import { Log } from "./job_log.js";
import { Attempts, Audit, Checkpoint, Graph, Locks, Phases, Snapshot, Steps } from "./job_parts.js";

/** @typedef {import("../types.js").Job} Job */

const UNCLAIMED = new Set(["awaiting_approval", "waiting", "scheduled", "queued"]);
/** Lines kept in the page; the download has all. */
const MAX_LINES = 5000;

/** @param {string} path what is not there, or not for us, is left out */
const optional = (path) => get(path).catch(() => null);

export default function JobPage() {
  const id = decodeURIComponent(place.value.path.slice("/jobs/".length));
  const [job, setJob] = useState(/** @type {Job | null} */ (null));
  const [missing, setMissing] = useState(false);
  const [parts, setParts] = useState(/** @type {Record<string, any>} */ ({}));
  const [lines, setLines] = useState(/** @type {any[]} */ ([]));
  const kept = useRef({ timer: 0, lines: /** @type {any[]} */ ([]), statuses: 0 });

  const loadParts = async () => {
    const names = ["explain", "attempts", "phases", "steps", "checkpoint", "events", "locks", "children"];
    const found = await Promise.all(names.map((name) => optional(`/v1/jobs/${id}/${name}`)));
    setParts(Object.fromEntries(names.map((name, index) => [name, found[index]])));
  };
  const load = async () => {
    try {
      let found, statuses;
      do { // asked again if the stream told of a change in the meantime: the answer may be from before it
        ({ statuses } = kept.current);
        found = await get(`/v1/jobs/${id}`);
      } while (statuses !== kept.current.statuses);
      setJob(found);
    } catch {
      setMissing(true);
      return;
    }
    await loadParts();
  };
  useEffect(() => { void load(); return () => clearTimeout(kept.current.timer); }, [id]);
  // What it waits for may change without the job changing, and late writes are refused after its end.
  useEffect(() => {
    if (!job) return undefined;
    let rounds = FINAL.has(job.status) ? 3 : Infinity;
    const timer = setInterval(() => {
      if (!document.hidden) void loadParts();
      if (!(rounds -= 1)) clearInterval(timer);
    }, 5000);
    return () => clearInterval(timer);
  }, [job?.status]);
  useStream(missing ? null : `/v1/jobs/${id}/stream`, (events) => {
    const mine = kept.current;
    let later = false;
    for (const { event, data } of events) {
      if (event === "status") {
        setJob(data);
        mine.statuses += 1;
        later = true;
      } else if (event === "progress") {
        setJob((known) => known && { ...known, phase: data.phase, progress: data.progress });
        later = true;
      } else {
        mine.lines.push(data);
      }
    }
    if (mine.lines.length > MAX_LINES) mine.lines = mine.lines.slice(-MAX_LINES);
    setLines(mine.lines.slice());
    if (later && !mine.timer) mine.timer = setTimeout(() => { mine.timer = 0; void loadParts(); }, 400);
  });
  useKeys({ Escape: ["back to the jobs", () => (history.length > 1 ? history.back() : go("/jobs"))] });

  if (missing) {
    return html`<div class="head"><h1>No such job</h1></div>
      <p>It does not exist, is past its retention, or is not yours to see. <a href="/jobs">All jobs</a></p>`;
  }
  if (!job) return null;
  const ended = FINAL.has(job.status);
  /** @param {string} name */
  const items = (name) => parts[name]?.items ?? [];
  return html`
    <div class="head">
      <h1>${job.kind}</h1><${Status} of=${job.status} note=${job.cancel_requested_at && !ended ? "cancelling" : job.waiting_for} />
      <span class="mono quiet wrap-anywhere">${job.id}</span>
      <${Actions} job=${job} explain=${parts["explain"]} reload=${load} />
    </div>
    <${Why} explain=${parts["explain"]} job=${job} />
    <div class="columns">
      <div class="stack span-8">
        <${Panel} title="Facts"><div class="body"><${Facts} job=${job} /></div><//>
        <${Phases} job=${job} phases=${items("phases")} />
        <${Failure} job=${job} attempts=${items("attempts")} />
        <${Log} id=${job.id} lines=${lines} ended=${ended} />
        <${Steps} steps=${items("steps")} />
        <${Value} title="Result" value=${job.result} />
        <${Value} title="Errors beside the result" value=${job.errors} />
        <${Value} title="Args" value=${job.args} />
        <${Graph} job=${job} children=${items("children")} />
      </div>
      <div class="stack span-4">
        <${Attempts} attempts=${items("attempts")} events=${items("events")} />
        <${Locks} locks=${items("locks")} />
        <${Checkpoint} checkpoint=${parts["checkpoint"]} />
        <${Snapshot} job=${job} />
        <${Audit} events=${items("events")} />
      </div>
    </div>`;
}

/** What is empty is not shown. @param {{title: string, value: any}} props */
function Value({ title, value }) {
  const isEmpty = value === null || value === undefined || (typeof value === "object" && !Object.keys(value).length);
  return isEmpty ? null : html`<${Panel} title=${title}><div class="body"><${Json} value=${value} /></div><//>`;
}

/** @param {{explain: any, job: Job}} props */
function Why({ explain, job }) {
  if (!explain?.text || job.status === "succeeded" || explain.status !== job.status) return null;
  const isUnclaimed = UNCLAIMED.has(job.status);
  const tone = job.status === "failed" ? "failed" : isUnclaimed ? "" : "busy";
  const since = explain.since ? html`<span>${FINAL.has(job.status) ? "Ended" : "Since"} <${Time} at=${explain.since} /></span>` : null;
  const until = explain.until && Date.parse(explain.until) > now.value ? html`<span>Over at the latest <${Time} at=${explain.until} /></span>` : null;
  return html`<section class=${`why ${tone}`} aria-label="Why it is where it is">
    <b>${explain.text}</b>
    ${since || until ? html`<span class="small tags apart">${since}${until}</span>` : null}
    ${(explain.also ?? []).map((/** @type {any} */ reason) => html`<span class="small">${reason.text}</span>`)}
    ${explain.commands?.length ? html`<span class="tags">
      ${explain.commands.map((/** @type {string} */ command) => html`<code class="tag">${command}</code>`)}</span>` : null}
  </section>`;
}

/** @param {{job: Job}} props */
function Facts({ job }) {
  const from = job.started_at && Date.parse(job.started_at);
  const took = from ? ((job.finished_at ? Date.parse(job.finished_at) : now.value) - from) / 1000 : null;
  const runner = typeof job.runner === "object" && job.runner ? html`<${Labels} labels=${job.runner} />` : job.runner;
  /** @type {[string, any][]} */
  const facts = [
    ["Lane", html`<a href=${`/jobs?lane=${job.lane}`}>${job.lane}</a>`], ["Priority", job.priority], ["Tenant", job.tenant],
    ["Attempt", `${job.attempt} of ${job.max_attempts}`],
    ["Created", html`<${Time} at=${job.created_at} />${job.created_by ? html` by ${job.created_by}` : null}`],
    ["Runs at", job.run_at && html`<${Time} at=${job.run_at} />`],
    ["Started", job.started_at && html`<${Time} at=${job.started_at} />`],
    ["Ended", job.finished_at && html`<${Time} at=${job.finished_at} />`],
    [job.finished_at ? "Took" : "Running for", took === null ? null : duration(took)],
    ["Worker", job.worker], ["Addressed to", runner],
    ["Labels", job.labels && html`<${Labels} labels=${job.labels} />`],
    ["Key", job.key && `${job.key}${job.key_limit && job.key_limit > 1 ? ` (${job.key_limit} at a time)` : ""}`],
    ["Resource lock", job.resource_lock], ["Dedupe key", job.dedupe_key],
    ["Expires", job.expires_at && html`<${Time} at=${job.expires_at} />`],
    ["Timeout", job.timeout ? duration(job.timeout) : null], ["Identity", job.identity], ["Group", job.group],
    ["Retry of", job.retry_of && html`<${JobLink} id=${job.retry_of} />`],
    ["Parent", job.parent && html`<${JobLink} id=${job.parent} />`],
    ["Delivery", job.delivery === "postgres" ? null : job.delivery],
  ];
  const known = facts.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`<dl class="facts">${known.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** @param {{job: Job, attempts: any[]}} props */
function Failure({ job, attempts }) {
  const error = job.error ?? attempts.findLast((attempt) => attempt.error)?.error;
  if (!error) return null;
  return html`<${Panel} title=${job.error ? "Error" : "Error of the attempt before"}><div class="body stack">
    <p><b class="bad">${error.type ?? error.code ?? "error"}</b> <span class="wrap-anywhere">${error.message}</span></p>
    ${error.traceback ? html`<pre class="json" tabindex="0">${error.traceback}</pre>` : null}
  </div><//>`;
}

/** Its payload is what `ctx.wait_for` returns. @param {string} text nothing: no payload */
function readPayload(text) {
  if (!text.trim()) return {};
  try {
    return { payload: JSON.parse(text) };
  } catch {
    throw new Error('The payload is not JSON. Text has quotes around it: "yes".');
  }
}

/** @param {Job} job @param {string | undefined} name the one that it waits for @param {() => Promise<void>} reload */
const askForSignal = (job, name, reload) => ask({
  title: "Send a signal to this job?", confirm: "Send signal",
  text: html`<p>Its handler goes on with it: <b>${job.kind}</b> <span class="mono">${job.id}</span></p>`,
  fields: [
    { name: "name", label: "Signal", value: name, required: true, hint: "Another one than it waits for is kept until a wait asks for it." },
    { name: "payload", label: "Payload", hint: 'Any JSON, or nothing: {"approved": true}' },
  ],
  onConfirm: async (values) => {
    await request("POST", `/v1/jobs/${job.id}/signals/${encodeURIComponent(values["name"])}`, readPayload(values["payload"]));
    say("The signal is sent");
    await reload();
  },
});

/**
 * @typedef {{word: string, title?: string, text?: string, done: string, path: string, method?: string, body?: object,
 *   fields?: any[], danger?: boolean}} Verb
 */
const REASON = { name: "reason", label: "Reason", hint: "It stands in the audit." };

/** @param {{job: Job, explain: any, reload: () => Promise<void>}} props */
function Actions({ job, explain, reload }) {
  const base = `/v1/jobs/${job.id}`;
  /** @param {Verb} verb */
  const button = ({ word, title, text, done, path, method = "POST", body = {}, fields = [REASON], danger = false }) => html`<${Button}
    class=${danger ? "danger" : word === "Approve" ? "primary" : ""} onClick=${() => ask({
      title: title ?? `${word} this job?`, fields, danger,
      confirm: word === "Cancel" ? "Cancel the job" : word, // alone it could mean to leave the dialogue
      text: html`<p>${text ? `${text} ` : ""}<b>${job.kind}</b> <span class="mono">${job.id}</span></p>`,
      onConfirm: async (values) => {
        const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== null));
        const answer = await request(method, path, { ...body, ...given });
        say(done);
        if (word === "Retry") go(`/jobs/${answer.id}`);
        else await reload();
      },
    })}>${word}<//>`;
  const ended = FINAL.has(job.status);
  const isHeld = job.status === "awaiting_approval" && may("jobs:approve");
  const isSignalled = job.waiting_for === "signal" && may("jobs:enqueue");
  const priority = { name: "priority", label: "Priority", type: "number", value: job.priority, required: true, hint: "Higher starts first." };
  return html`<div class="actions">
    ${isHeld ? button({ word: "Approve", done: "Approved", path: `${base}/approve` }) : null}
    ${isHeld ? button({ word: "Reject", done: "Rejected", path: `${base}/reject`, danger: true }) : null}
    ${isSignalled ? html`<${Button} class="primary" onClick=${() => askForSignal(job, explain?.details?.signal, reload)}>Send signal<//>` : null}
    ${job.status === "scheduled" && may("jobs:manage") ? button({
      word: "Run now", title: "Run this job now?", done: "It is due now", path: `${base}/run-now` }) : null}
    ${UNCLAIMED.has(job.status) && may("jobs:manage") ? button({
      word: "Reprioritise", done: "Its priority is changed", method: "PATCH", path: `/v1/admin/workers/jobs/${job.id}/priority`, fields: [priority] }) : null}
    ${ended && may("jobs:enqueue") ? button({
      word: "Retry", text: "It runs again as a new job:", done: "This is the new job", path: `${base}/retry` }) : null}
    ${!ended && may("jobs:cancel") ? button({
      word: "Cancel", text: job.worker ? "Its handler is asked to stop:" : "", done: job.worker ? "It is asked to stop" : "Cancelled",
      path: `${base}/cancel`, danger: true }) : null}
    ${!ended && job.worker && may("jobs:cancel") ? button({
      word: "Force cancel", text: "It is taken from its worker at once:", done: "Cancelled",
      path: `${base}/cancel`, body: { force: true }, danger: true }) : null}
  </div>`;
}
