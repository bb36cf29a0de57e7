// Schedules: when each fires next, what it made last; pause and run now.
import { get, request } from "../api.js";
import { duration } from "../format.js";
import { html, useState } from "../lib.js";
import { useRefresh } from "../live.js";
import { go } from "../router.js";
import { attempt, Button, Empty, JobLink, Panel, Status, Table, Time } from "../ui.js";

const COLUMNS = [
  "Name", { name: "When", class: "wide-only" }, { name: "Next tick", class: "num" }, { name: "Last tick", class: "num wide-only" },
  { name: "Its job", class: "wide-only" }, "",
];
const TICKS = ["Tick", "Outcome", { name: "Job", class: "wide-only" }, { name: "Decided", class: "num" }];

/** @param {any} schedule */
const path = (schedule) => `/v1/schedules/${encodeURIComponent(schedule.name)}`;
/** @param {any} schedule */
const rule = (schedule) => schedule.cron ?? `every ${duration(schedule.every)}`;

export default function Schedules() {
  const [items, setItems] = useState(/** @type {any[] | null} */ (null));
  const [open, setOpen] = useState("");
  const [ticks, setTicks] = useState(/** @type {any[]} */ ([]));
  const reload = useRefresh(async () => setItems((await get("/v1/schedules")).items), { least: 3000, most: 15_000 });
  /** @param {any} schedule */
  const show = async (schedule) => {
    setTicks((await get(`${path(schedule)}/ticks`, { limit: 20 })).items);
    setOpen(schedule.name === open ? "" : schedule.name);
  };
  /** @param {any} schedule */
  const pause = (schedule) => attempt(async () => {
    await request("PATCH", path(schedule), { paused: !schedule.paused });
    await reload();
  }, schedule.paused ? `${schedule.name} goes on` : `${schedule.name} is paused`);
  /** @param {any} schedule */
  const run = (schedule) => attempt(async () => go(`/jobs/${(await request("POST", `${path(schedule)}/run`)).id}`));
  return html`<div class="head"><h1>Schedules</h1></div>
    <${Panel} title="Schedules" bare>${items === null ? null : !items.length
      ? html`<${Empty}>No schedules. In code: <code>@app.schedule("0 3 * * *")</code>, or <code>fenceline schedules set</code>.<//>`
      : html`<${Table} label="Schedules" columns=${COLUMNS}>${items.map((schedule) => html`<tr key=${schedule.name}>
        <td><${Status} of=${schedule.paused ? "paused" : schedule.error ? "error" : "active"} text=${schedule.name} />
          <div class="small quiet">${schedule.kind}${schedule.source === "code" ? ", from code" : ""}</div>
          <code class="phone-only">${rule(schedule)}</code>
          ${schedule.error ? html`<div class="small bad">${schedule.error}</div>` : null}</td>
        <td class="nowrap wide-only"><code>${rule(schedule)}</code>
          ${schedule.cron ? html`<div class="small quiet">${schedule.timezone}</div>` : null}</td>
        <td class="num"><${Time} at=${schedule.paused ? null : schedule.next_at} none=${schedule.paused ? "paused" : "–"} /></td>
        <td class="num wide-only"><${Time} at=${schedule.last_at} none="never" /></td>
        <td class="wide-only">${schedule.last_job ? html`<${JobLink} id=${schedule.last_job} />` : html`<span class="quiet">–</span>`}</td>
        <td class="num"><span class="tools">
          <${Button} class="tiny" onClick=${() => run(schedule)}>Run now<//>
          <${Button} class="tiny" onClick=${() => pause(schedule)}>${schedule.paused ? "Resume" : "Pause"}<//>
          <${Button} class="tiny" onClick=${() => show(schedule)}>History<//>
        </span></td>
      </tr>`)}<//>`}<//>
    ${open ? html`<${Ticks} name=${open} ticks=${ticks} />` : null}`;
}

/** @param {{name: string, ticks: any[]}} props */
function Ticks({ name, ticks }) {
  /** @param {any} tick */
  const shape = (tick) => (tick.outcome === "fired" ? "succeeded" : tick.error ? "failed" : "cancelled");
  return html`<${Panel} title=${`Last ticks of ${name}`}>${!ticks.length ? html`<${Empty}>It has not fired yet.<//>`
    : html`<${Table} label="Ticks" columns=${TICKS}>${ticks.map((tick) => html`<tr>
      <td><${Time} at=${tick.tick_at} /></td>
      <td><${Status} of=${shape(tick)} text=${tick.outcome} /> ${tick.error}</td>
      <td class="wide-only">${tick.job ? html`<${JobLink} id=${tick.job} />` : "–"}</td>
      <td class="num"><${Time} at=${tick.decided_at} /></td>
    </tr>`)}<//>`}<//>`;
}
