// Lanes: who uses their slots, what waits, and their settings, changed in place.
import { get, may, request } from "../api.js";
import { count, duration, exact, now } from "../format.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { useRefresh } from "../live.js";
import { ask, attempt, Button, Panel, say, Status, Table } from "../ui.js";

/** @typedef {import("../types.js").Lane} Lane */

/** Settings that are changed in place: name, label, what null means, unit. */
const SETTINGS = /** @type {const} */ ([
  ["slots", "Slots", "unlimited", ""], ["rate_per_second", "Starts per second", "no limit", ""],
  ["poll_interval_ms", "Poll every", null, "ms"], ["stale_timeout_seconds", "Stale after", "never", "s"],
]);

export default function Lanes() {
  const [fleet, setFleet] = useState(/** @type {import("../types.js").Fleet | null} */ (null));
  const [rates, setRates] = useState(/** @type {Record<string, number>} */ ({}));
  const reload = useRefresh(async () => {
    const [found, rate] = await Promise.all([get("/v1/admin/workers/status"), get("/v1/stats/rates", { seconds: 60 })]);
    setFleet(found);
    setRates(Object.fromEntries(rate.items.map((/** @type {any} */ row) => [row.lane, row.per_second])));
  }, { least: 1000, most: 5000 });
  const manage = may("workers:manage");
  const lanes = fleet?.lanes ?? [];
  const add = () => ask({
    title: "New lane", confirm: "Create",
    fields: [
      { name: "name", label: "Name", required: true, hint: "Small letters, digits, dot, dash." },
      { name: "slots", label: "Slots", type: "number", hint: "Empty: unlimited." },
    ],
    onConfirm: async ({ name, slots }) => {
      await request("POST", `/v1/admin/workers/lanes/${encodeURIComponent(name)}`, { slots });
      say(`Lane ${name} created`);
      await reload();
    },
  });
  return html`
    <div class="head"><h1>Lanes</h1><div class="actions">${manage ? html`<${Button} onClick=${add}>New lane …<//>` : null}</div></div>
    ${lanes.map((lane) => html`<${LanePanel} key=${lane.name} lane=${lane} lanes=${lanes} rate=${rates[lane.name] ?? 0} manage=${manage}
      reload=${reload} />`)}`;
}

/** @param {{lane: Lane, lanes: Lane[], rate: number, manage: boolean, reload: () => Promise<void>}} props */
function LanePanel({ lane, lanes, rate, manage, reload }) {
  const path = `/v1/admin/workers/lanes/${lane.name}`;
  /** @param {Partial<Lane>} changes @param {string} done */
  const change = (changes, done) => attempt(async () => {
    await request("PATCH", path, changes);
    await reload();
  }, done);
  const drain = () => ask({
    title: `Drain lane ${lane.name}?`, confirm: "Drain", danger: true,
    text: html`<p>Nothing more is started in it; what runs goes on, and new jobs are accepted.</p>`,
    onConfirm: async () => {
      await request("PATCH", path, { enabled: false });
      say(`Lane ${lane.name} is drained`);
      await reload();
    },
  });
  const resume = () => change({ enabled: true }, `Lane ${lane.name} goes on`);
  const moveKind = (/** @type {string} */ kind) => ask({
    title: `Move kind ${kind}`, confirm: "Move", text: html`<p>Jobs of this kind that are enqueued from now on go there.</p>`,
    fields: [{ name: "to", label: "To lane", options: lanes.filter((each) => each.name !== lane.name).map((each) => [each.name, each.name]) }],
    onConfirm: async ({ to }) => {
      const target = lanes.find((each) => each.name === to);
      await request("PATCH", `/v1/admin/workers/lanes/${to}`, { kinds: [...(target?.kinds ?? []), kind] });
      say(`${kind} goes to ${to}`);
      await reload();
    },
  });
  const state = html`<div class="head"><${Status} of=${lane.enabled ? "active" : "drained"} />
    ${manage ? html`<${Button} onClick=${lane.enabled ? drain : resume}>${lane.enabled ? "Drain …" : "Resume"}<//>` : null}</div>`;
  return html`<${Panel} title=${lane.name} right=${state}>
    <div class="body stack">
      <dl class="facts four">
        <div><dt>Slots used</dt><dd><${Slots} lane=${lane} /></dd></div>
        <div><dt>Queued</dt><dd><a href=${`/jobs?lane=${lane.name}&status=queued`}>${count(lane.depth)}</a></dd></div>
        <div><dt>Oldest</dt><dd>${duration(lane.oldest_age_seconds)}</dd></div>
        <div><dt>Ends per second</dt><dd>${rate ? rate.toFixed(rate < 0.1 ? 2 : 1) : "0"}</dd></div>
        ${SETTINGS.map(([name, label, none, unit]) => html`<div><dt>${label}</dt><dd>
          <${Editable} name=${`${label} of ${lane.name}`} value=${lane[name]} none=${none} unit=${unit} editable=${manage}
            onSave=${(/** @type {number | null} */ value) => change({ [name]: value }, `${label} of ${lane.name}: ${value ?? none}`)} />
        </dd></div>`)}
      </dl>
      ${lane.kinds.length ? html`<div class="tags"><span class="small quiet">Kinds</span>${lane.kinds.map((kind) => (manage && lanes.length > 1
        ? html`<button type="button" class="tiny" title=${`Move ${kind} to another lane`} onClick=${() => moveKind(kind)}>${kind} …</button>`
        : html`<span class="tag">${kind}</span>`))}</div>` : null}
    </div>
    ${lane.jobs?.length ? html`<${Running} name=${lane.name} jobs=${lane.jobs} />` : null}
  <//>`;
}

/** @param {{lane: Lane}} props one box per slot, up to 60 */
function Slots({ lane }) {
  if (lane.slots === null) return html`${lane.in_use} <span class="quiet">of unlimited</span>`;
  const boxes = Array.from({ length: Math.min(lane.slots, 60) }, (_, index) => html`<i class=${index < lane.in_use ? "used" : ""}></i>`);
  return html`${lane.in_use} of ${lane.slots}
    <div class="slots" role="img" aria-label=${`${lane.in_use} of ${lane.slots} slots used`}>${boxes}</div>`;
}

/** @param {{name: string, jobs: any[]}} props the jobs in the slots */
function Running({ name, jobs }) {
  return html`<${Table} label=${`Jobs in ${name}`} columns=${["Job", "Phase", "Worker", { name: "For", class: "num" }]}>
    ${jobs.slice(0, 20).map((job) => html`<tr key=${job.id}>
      <td><${Status} of=${job.status} text="" /> <a href=${`/jobs/${job.id}`}><b>${job.kind}</b></a></td>
      <td>${job.phase ?? html`<span class="quiet">–</span>`}</td>
      <td class="cut">${job.worker}</td>
      <td class="num"><${Since} at=${job.started_at ?? job.claimed_at} /></td>
    </tr>`)}
  <//>`;
}

/** For how long. @param {{at: string}} props */
const Since = ({ at }) => html`<time datetime=${at} title=${exact(at)}>${duration((now.value - Date.parse(at)) / 1000)}</time>`;

/**
 * A number that becomes a field when it is clicked.
 * @param {{name: string, value: number | null, none: string | null, unit: string, editable: boolean,
 *   onSave: (value: number | null) => unknown}} props
 */
function Editable({ name, value, none, unit, editable, onSave }) {
  const [editing, setEditing] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => field.current?.focus(), [editing]);
  const text = value === null ? none : unit ? duration(unit === "ms" ? value / 1000 : value) : count(value);
  if (!editable) return html`${text}`;
  if (!editing) {
    return html`<button type="button" class="tiny" aria-label=${`${name}: ${text}, change`} onClick=${() => setEditing(true)}>${text}</button>`;
  }
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const given = field.current?.value ?? "";
    await onSave(given === "" ? null : Number(given));
    setEditing(false);
  };
  return html`<form class="filters" onSubmit=${submit}>
    <input ref=${field} type="number" step="any" min="0" aria-label=${unit ? `${name}, in ${unit}` : name} defaultValue=${value ?? ""}
      placeholder=${none ?? ""} />
    <button type="submit" class="tiny primary">Save</button><button type="button" class="tiny" onClick=${() => setEditing(false)}>Back</button>
  </form>`;
}
