// Workers and runners: who is up, what each runs now, and how fresh its heartbeat is.
import { get } from "../api.js";
import { duration } from "../format.js";
import { html, useState } from "../lib.js";
import { useRefresh } from "../live.js";
import { Empty, JobLink, Labels, Panel, Status, Table, Time } from "../ui.js";

/** @typedef {import("../types.js").Worker} Worker */

/** Jobs of a worker that are named. */
const NAMED = 4;
const COLUMNS = [
  "Name", "Runs now", { name: "Jobs", class: "num wide-only" }, { name: "Lanes", class: "wide-only" }, { name: "Host", class: "wide-only" },
  { name: "Version", class: "wide-only" }, { name: "Heartbeat", class: "num" }, { name: "Up since", class: "num wide-only" },
];

export default function Workers() {
  const [fleet, setFleet] = useState(/** @type {import("../types.js").Fleet | null} */ (null));
  useRefresh(async () => setFleet(await get("/v1/admin/workers/status")), { least: 1000, most: 5000 });
  if (!fleet) return html`<div class="head"><h1>Workers</h1></div>`;
  /** @type {Map<string, any[]>} */
  const jobs = new Map();
  for (const job of fleet.lanes.flatMap((lane) => lane.jobs ?? [])) jobs.set(job.worker, [...(jobs.get(job.worker) ?? []), job]);
  const none = html`No worker has signed on. Start one: <code>fenceline worker module:app</code>`;
  return html`<div class="head"><h1>Workers</h1></div>
    <${Group} title="Workers" workers=${fleet.workers} jobs=${jobs} none=${none} />
    ${fleet.runners.length ? html`<${Group} title="Runners" workers=${fleet.runners} jobs=${jobs} none="" />` : null}`;
}

/** @param {{title: string, workers: Worker[], jobs: Map<string, any[]>, none: any}} props */
function Group({ title, workers, jobs, none }) {
  const versions = new Set(workers.filter((worker) => worker.status === "online").map((worker) => worker.version));
  const mixed = versions.size > 1 ? html`<${Status} of="warning" text=${`${versions.size} versions side by side`} />` : null;
  return html`<${Panel} title=${title} right=${mixed}>${!workers.length ? html`<${Empty}>${none}<//>`
    : html`<${Table} label=${title} class="fleet" columns=${COLUMNS}>
      ${workers.map((worker) => html`<${Row} key=${worker.id} worker=${worker} jobs=${jobs.get(worker.name) ?? []} />`)}<//>`}
  <//>`;
}

/** @param {{worker: Worker, jobs: any[]}} props */
function Row({ worker, jobs }) {
  const none = html`<span class="quiet">–</span>`;
  return html`<tr>
    <td><${Status} of=${worker.status} text=${worker.name} /><div class="small quiet phone-only">${worker.version}</div>
      <${Labels} labels=${worker.labels} />
      ${worker.blocked_seconds ? html`<div class="small bad">its event loop has not turned for ${duration(worker.blocked_seconds)}
        ${worker.blocked_by ? html`: <${JobLink} id=${worker.blocked_by} />` : null}</div>` : null}</td>
    <td>${jobs.length ? null : none}
      ${jobs.slice(0, NAMED).map((job) => html`<div class="nowrap"><a href=${`/jobs/${job.id}`}>${job.kind}</a>
        <span class="quiet wide-only"> ${job.phase ?? ""}</span></div>`)}
      ${jobs.length > NAMED ? html`<span class="quiet">and ${jobs.length - NAMED} more</span>` : null}</td>
    <td class="num wide-only">${worker.in_use}</td>
    <td class="wide-only">${worker.lanes ? worker.lanes.join(", ") : html`<span class="quiet">all</span>`}</td>
    <td class="nowrap wide-only">${worker.host ?? none}${worker.pid ? html` <span class="quiet">${worker.pid}</span>` : null}</td>
    <td class="wide-only">${worker.version ?? none}</td>
    <td class="num"><${Time} at=${worker.heartbeat_at} /></td>
    <td class="num wide-only"><${Time} at=${worker.started_at} /></td>
  </tr>`;
}
