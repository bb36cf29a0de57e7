// A runner for Node 20 without dependencies: node worker.mjs URL HANDLERS.mjs, with its token in $FENCELINE_TOKEN.
// HANDLERS.mjs exports a function per kind: async (args, { job, number, token, signal, log }) => result. What it throws fails
// the job, and it is tried again; an error with `final: true` fails it for good. `signal` is aborted when it is to stop.
import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const [url, file] = process.argv.slice(2);
const handlers = { ...(await import(resolve(file))) };
const { FENCELINE_TOKEN, BEAT_SECONDS = "5", CONCURRENCY = "4" } = process.env;
const held = new Map(); // attempt_id → { abort, verdict }
let runner, stopping = false;
// Sent again until it is answered: a repeat of what was done is answered like the first.
async function call(method, path, body, attempt) {
  const fence = attempt && { "Fenceline-Attempt": attempt };
  const headers = { Authorization: `Bearer ${FENCELINE_TOKEN}`, "Content-Type": "application/json", ...fence };
  for (let wait = 100; ; wait = Math.min(wait * 2, 10_000)) {
    try {
      const answer = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
      if (answer.status < 500 && answer.status !== 429) return { status: answer.status, ...(await answer.json().catch(() => ({}))) };
    } catch (error) { if (stopping) throw error; }
    await pause(wait);
  }
}
const me = { name: `node-${process.pid}`, kinds: Object.keys(handlers) };
const register = async () => { runner = (await call("POST", "/v1/runners", me)).id; };
async function beat() {
  const { cancel = [], stale = [] } = await call("POST", `/v1/runners/${runner}/heartbeat`, { attempts: [...held.keys()] });
  for (const [ids, verdict] of [[cancel, "cancelled"], [stale, "stale"]])
    for (const id of ids) if (held.has(id)) Object.assign(held.get(id), { verdict }).abort.abort();
}
async function run({ job, attempt_id, number, token }) {
  const mine = { abort: new AbortController() }, lines = [];
  held.set(attempt_id, mine);
  const tell = (method, what, body) => call(method, `/v1/jobs/${job.id}/${what}`, body, attempt_id);
  const context = { job: job.id, number, token, signal: mine.abort.signal, log: (message) => lines.push({ message }) };
  await tell("PUT", "status", { status: "running" });
  let end = await handlers[job.kind](job.args, context).then(
    (result = null) => ({ status: "succeeded", result }),
    ({ message, final }) => ({ status: "failed", error: { message, code: "error" }, retry: !final }),
  );
  if (mine.verdict === "stale") return; // it is somebody else's
  if (end.status === "failed" && mine.abort.signal.aborted) end = { status: mine.verdict ?? "released" };
  if (lines.length) await tell("POST", "logs", { lines, offset: 0 });
  await tell("PUT", "status", end);
}
process.on("SIGTERM", () => { stopping = true; held.forEach(({ abort }) => abort.abort()); });
await register();
const beating = setInterval(() => beat().catch(() => {}), BEAT_SECONDS * 1000);
while (!stopping) {
  while (held.size >= CONCURRENCY) await pause(10);
  const claim = { runner_id: runner, count: CONCURRENCY - held.size, wait: held.size ? 0.2 : 2, request_id: randomUUID() };
  const { status, attempts = [] } = await call("POST", "/v1/jobs/claim", claim);
  if (stopping) break; // what was just claimed goes back with the stop
  if (status === 404) await register(); // taken for dead
  for (const attempt of attempts) run(attempt).catch(console.error).finally(() => held.delete(attempt.attempt_id));
}
while (held.size) await pause(10);
clearInterval(beating);
await call("POST", `/v1/runners/${runner}/stop`, {});
