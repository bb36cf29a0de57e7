// The log of a job: live, searched, filtered by level, paused, downloaded.
import { get } from "../api.js";
import { clock, exact } from "../format.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { attempt, Button, Panel } from "../ui.js";

const LEVELS = ["debug", "info", "warning", "error", "critical"];
/** Lines that are drawn: the last ones that match. */
const MAX_SHOWN = 500;

/** @param {any} line */
const textOf = (line) => {
  const fields = Object.entries(line.fields ?? {}).map(([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return line.message + fields.join("");
};

/** @param {{id: string, lines: any[], ended: boolean}} props */
export function Log({ id, lines, ended }) {
  const [search, setSearch] = useState("");
  const [level, setLevel] = useState("debug");
  const [held, setHeld] = useState(/** @type {any[] | null} */ (null));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const bottom = useRef(true);
  const wanted = search.toLowerCase();
  const least = LEVELS.indexOf(level);
  const matching = (held ?? lines).filter((line) => LEVELS.indexOf(line.level) >= least
    && (!wanted || textOf(line).toLowerCase().includes(wanted)));
  const shown = matching.slice(-MAX_SHOWN);
  useEffect(() => { if (box.current && bottom.current && !held) box.current.scrollTop = box.current.scrollHeight; });
  const download = () => attempt(async () => {
    const all = [];
    let cursor = "";
    do {
      const page = await get(`/v1/jobs/${id}/logs`, { cursor, limit: 1000 });
      all.push(...page.items);
      cursor = page.next_cursor ?? "";
    } while (cursor);
    const text = all.map((line) => `${line.at} ${line.level.padEnd(8)} ${textOf(line)}\n`).join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = `${id}.log`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  if (!lines.length && ended) return null;
  const tools = html`<div class="tools">
    <input type="search" aria-label="Search the log" placeholder="Search" data-search value=${search}
      onInput=${(/** @type {any} */ event) => setSearch(event.target.value)} />
    <select aria-label="Lowest level" value=${level} onChange=${(/** @type {any} */ event) => setLevel(event.target.value)}>
      ${LEVELS.map((each) => html`<option value=${each} selected=${each === level}>${each}</option>`)}
    </select>
    ${ended && !held ? null : html`<button type="button" aria-pressed=${held ? "true" : "false"} onClick=${() => setHeld(held ? null : lines)}>
      ${held ? `Go on (${lines.length - held.length} new)` : "Pause"}</button>`}
    <${Button} onClick=${download}>Download<//>
  </div>`;
  const scrolled = (/** @type {any} */ { target }) => {
    bottom.current = target.scrollHeight - target.scrollTop - target.clientHeight < 24;
  };
  return html`<${Panel} title="Log" right=${lines.length ? tools : null}>
    ${!shown.length ? html`<p class="note">${lines.length ? "No line matches." : "No lines yet: they show here as the handler writes them."}</p>` : html`
    <div class="log" ref=${box} tabindex="0" role="log" aria-label="Log lines" onScroll=${scrolled}>
      ${matching.length > shown.length ? html`<p class="note">The last ${MAX_SHOWN} of ${matching.length} lines; the download has all.</p>` : null}
      ${shown.map((line) => html`<div key=${`${line.token}-${line.line}`} class=${line.level}>
        <time datetime=${line.at} title=${exact(line.at)}>${clock(line.at)}</time>
        <span class="level">${line.level}</span><span class="message">${textOf(line)}</span></div>`)}
    </div>`}
  <//>`;
}
