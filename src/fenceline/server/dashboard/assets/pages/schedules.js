// Schedules: when they fire next, what became of the last ticks, pause and run now.
import { get, request } from "../api.js";
import { html, useState } from "../lib.js";
import { useRefresh } from "../live.js";
import { go } from "../router.js";
import { attempt, Button, Empty, JobLink, Panel, Status, Table, Time } from "../ui.js";

export default function Schedules() {
  const [items, setItems] = useState(/** @type {any[] | null} */ (null));
  const [open, setOpen] = useState("");
  const [ticks, setTicks] = useState(/** @type {any[]} */ ([]));
  const reload = useRefresh(async () => setItems((await get("/v1/schedules")).items), { least: 3000, most: 15_000 });
  /** @param {string} name */
  const show = async (name) => {
    setOpen(name === open ? "" : name);
    setTicks((await get(`/v1/schedules/${encodeURIComponent(name)}/ticks`, { limit: 20 })).items);
  };
  /** @param {any} schedule */
  const pause = (schedule) => attempt(async () => { await request("PATCH", `/v1/schedules/${encodeURIComponent(schedule.name)}`, { paused: !schedule.paused }); await reload(); }, schedule.paused ? `${schedule.name} goes on` : `${schedule.name} is paused`);
  /** @param {any} schedule */
  const run = (schedule) => attempt(async () => { const job = await request("POST", `/v1/schedules/${encodeURIComponent(schedule.name)}/run`); go(`/jobs/${job.id}`); });
  return html`<div class="head"><h1>Schedules</h1></div>
    <${Panel} title="Schedules" bare>${items === null ? null : !items.length ? html`<${Empty}>No schedules. In code: <code>@app.schedule("0 3 * * *")</code>, or <code>fenceline schedules set</code>.<//>` : html`
      <${Table} label="Schedules" columns=${["Name", { name: "When", class: "wide-only" }, { name: "Next tick", class: "num" }, { name: "Last tick", class: "num wide-only" }, { name: "Its job", class: "wide-only" }, ""]}>${items.map((schedule) => html`<tr key=${schedule.name}>
        <td><${Status} of=${schedule.paused ? "paused" : schedule.error ? "error" : "active"} text=${schedule.name} /><div class="small quiet">${schedule.kind}${schedule.source === "code" ? ", from code" : ""}</div><code class="phone-only">${schedule.cron ?? `every ${schedule.every} s`}</code>${schedule.error ? html`<div class="small bad">${schedule.error}</div>` : null}</td>
        <td class="nowrap wide-only"><code>${schedule.cron ?? `every ${schedule.every} s`}</code><div class="small quiet">${schedule.timezone}</div></td>
        <td class="num"><${Time} at=${schedule.paused ? null : schedule.next_at} none=${schedule.paused ? "paused" : "–"} /></td><td class="num wide-only"><${Time} at=${schedule.last_at} none="never" /></td>
        <td class="wide-only">${schedule.last_job ? html`<${JobLink} id=${schedule.last_job} />` : html`<span class="quiet">–</span>`}</td>
        <td class="num"><span class="tools"><${Button} class="tiny" onClick=${() => run(schedule)}>Run now<//><${Button} class="tiny" onClick=${() => pause(schedule)}>${schedule.paused ? "Resume" : "Pause"}<//><${Button} class="tiny" onClick=${() => show(schedule.name)}>History<//></span></td>
      </tr>`)}<//>`}<//>
    ${open && ticks ? html`<${Panel} title=${`Last ticks of ${open}`}>${!ticks.length ? html`<${Empty}>It has not fired yet.<//>` : html`<${Table} label="Ticks" columns=${["Tick", "Outcome", "Job", { name: "Decided", class: "num" }]}>${ticks.map((tick) => html`<tr>
      <td><${Time} at=${tick.tick_at} /></td><td><${Status} of=${tick.outcome === "fired" ? "succeeded" : tick.error ? "failed" : "cancelled"} text=${tick.outcome} /> ${tick.error}</td><td>${tick.job ? html`<${JobLink} id=${tick.job} />` : "–"}</td><td class="num"><${Time} at=${tick.decided_at} /></td></tr>`)}<//>`}<//>` : null}`;
}
