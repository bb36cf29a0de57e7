// Audit: what operators did, with the reason, before and after.
import { get, query } from "../api.js";
import { html, useRef, useState } from "../lib.js";
import { useRefresh } from "../live.js";
import { go, href, place } from "../router.js";
import { Button, Empty, Panel, Table, Time } from "../ui.js";

const FILTERS = ["subject", "actor", "action"];
const COLUMNS = [
  "Action", { name: "About", class: "wide-only" }, { name: "By", class: "wide-only" }, { name: "When", class: "num" },
  { name: "Reason and changes", class: "wide-only" },
];

/** @param {any} event what is different after it */
function changes({ before, after }) {
  if (!before || !after) return [];
  const said = (/** @type {unknown} */ value) => JSON.stringify(value ?? null);
  return Object.keys({ ...before, ...after })
    .filter((name) => name !== "updated_at" && said(before[name]) !== said(after[name]))
    .map((name) => `${name}: ${said(before[name])} → ${said(after[name])}`);
}

/** Why, and what is different now. @param {{event: any}} props */
const Details = ({ event }) => html`${event.reason ? html`<div class="wrap-anywhere">“${event.reason}”</div>` : null}
  ${changes(event).slice(0, 4).map((text) => html`<div class="small quiet wrap-anywhere">${text}</div>`)}`;

export default function Audit() {
  const address = place.value.query;
  const filters = Object.fromEntries(FILTERS.map((name) => [name, address.get(name) ?? ""]).filter(([, value]) => value));
  const search = query(filters);
  /** @param {string} name @param {any} event */
  const filter = (name, event) => go(href("/audit", { ...filters, [name]: event.target.value.trim() }), true);
  return html`<div class="head"><h1>Audit</h1></div>
    <form class="filters" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      ${FILTERS.map((name, index) => html`<label class="field">${name[0].toUpperCase() + name.slice(1)}
        <input name=${name} defaultValue=${filters[name] ?? ""} data-search=${index === 0 || undefined} autocomplete="off"
          onChange=${(/** @type {any} */ event) => filter(name, event)} /></label>`)}
      ${search ? html`<a class="button" href="/audit">Clear</a>` : null}
      <button type="submit" class="hidden-text" tabindex="-1">Filter</button>
    </form>
    <${Actions} key=${search} filters=${filters} />`;
}

/** @param {{filters: Record<string, string>}} props */
function Actions({ filters }) {
  const [items, setItems] = useState(/** @type {any[] | null} */ (null));
  const [next, setNext] = useState(/** @type {string | null} */ (null));
  const isDeep = useRef(false); // whoever has gone back is not pulled to the front
  /** @param {string} [cursor] */
  const load = async (cursor) => {
    const page = await get("/v1/admin/audit", { ...filters, cursor, limit: 50 });
    setItems((known) => (cursor ? [...(known ?? []), ...page.items] : page.items));
    setNext(page.next_cursor);
  };
  useRefresh(async () => { if (!isDeep.current) await load(); }, { most: 10_000, stream: false });
  const older = () => { isDeep.current = true; return load(next ?? undefined); };
  if (items === null) return null;
  return html`<${Panel} title="Actions" bare>
    ${!items.length ? html`<${Empty}>${Object.keys(filters).length ? "Nothing matches." : "Nobody has done anything yet."}<//>`
      : html`<${Table} label="Actions" columns=${COLUMNS}>${items.map((event) => html`<${Action} key=${event.id} event=${event} />`)}<//>`}
    <//>
    ${next ? html`<div><${Button} onClick=${older}>Older<//></div>` : null}`;
}

/** @param {{event: any}} props */
function Action({ event }) {
  const isJob = event.action.startsWith("job.");
  return html`<tr>
    <td><b>${event.action}</b><div class="small quiet phone-only">${event.subject}<br />by ${event.actor ?? "database"}</div>
      <div class="phone-only"><${Details} event=${event} /></div></td>
    <td class="nowrap wide-only">${isJob ? html`<a class="mono" href=${`/jobs/${event.subject}`}>${event.subject}</a>` : event.subject}</td>
    <td class="wide-only">${event.actor ?? html`<span class="quiet">database</span>`}</td>
    <td class="num"><${Time} at=${event.at} /></td>
    <td class="wide-only"><${Details} event=${event} /></td>
  </tr>`;
}
