// What pages are made of.
import { exact, now, relative } from "./format.js";
import { html, signal, useEffect, useRef, useState } from "./lib.js";

/** Colour and shape of each status: neither alone has to be seen. @type {Record<string, [string, string]>} */
const STATUS = {
  awaiting_approval: ["warn", "M8 1.5 14.5 8 8 14.5 1.5 8Z M8 5v4 M8 11v.5"],
  waiting: ["idle", "M4 2h8 M4 14h8 M5 2c0 4 6 4 6 12 M11 2c0 4-6 4-6 12"],
  scheduled: ["idle", "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13 M8 4.5V8l2.5 2"],
  queued: ["idle", "M2 4h12 M2 8h12 M2 12h7"],
  claimed: ["busy", "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13 M8 5v6"],
  running: ["busy", "M4.5 2.5v11l9-5.5Z"],
  succeeded: ["good", "M2.5 8.5 6.5 12.5 13.5 4"],
  succeeded_with_errors: ["warn", "M1.5 8.5 5 12 11 4.5 M13.5 5v4 M13.5 11.5v.5"],
  failed: ["bad", "M3 3l10 10 M13 3 3 13"],
  cancelled: ["idle", "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13 M3.5 3.5l9 9"],
  online: ["good", "M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10"],
  offline: ["bad", "M2.5 8h11"],
  paused: ["warn", "M5 3v10 M11 3v10"],
  drained: ["warn", "M5 3v10 M11 3v10"],
  active: ["good", "M2.5 8.5 6.5 12.5 13.5 4"],
  error: ["bad", "M8 1.5 15 14H1Z M8 6v4 M8 12v.5"],
  warning: ["warn", "M8 1.5 15 14H1Z M8 6v4 M8 12v.5"],
};
export const STATUSES = [
  "awaiting_approval", "waiting", "scheduled", "queued", "claimed", "running",
  "succeeded", "succeeded_with_errors", "failed", "cancelled",
];

/** @param {{of: string, text?: string, note?: string | null}} props */
export function Status({ of, text, note }) {
  const [tone, path] = STATUS[of] ?? ["idle", "M3 8h10"];
  return html`<span class=${`status ${tone}`}>
    <svg viewBox="0 0 16 16" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">
      <path d=${path} /></svg>
    <span class="label">${text ?? of.replaceAll("_", " ")}</span>${note ? html` <span class="quiet">(${note})</span>` : null}
  </span>`;
}

/** A time as it is from now, with the exact one on hover. @param {{at: string | null | undefined, none?: string}} props */
export function Time({ at, none = "–" }) {
  if (!at) return html`<span class="quiet">${none}</span>`;
  return html`<time datetime=${at} title=${exact(at)} class="nowrap">${relative(at, now.value)}</time>`;
}

/** @param {{id: string}} props */
export const JobLink = ({ id }) => html`<a href=${`/jobs/${id}`} class="mono nowrap">${id}</a>`;

/** @param {{labels: Record<string, string> | null}} props */
export function Labels({ labels }) {
  const entries = Object.entries(labels ?? {});
  if (!entries.length) return null;
  return html`<span class="tags">${entries.map(([name, value]) => html`<span class="tag" title=${`${name}: ${value}`}>${name}: ${value}</span>`)}</span>`;
}

/** Words with commands in them, as the command line says them: between backticks. @param {{text: string}} props */
export const Words = ({ text }) => html`${text.split("`").map((part, index) => (index % 2 ? html`<code>${part}</code>` : part))}`;

/** @param {{value: number, most: number | null, label: string, tone?: string}} props */
export function Bar({ value, most, label, tone }) {
  const share = most ? Math.min(1, value / most) : 0;
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => { if (ref.current) ref.current.style.width = `${share * 100}%`; }, [share]);
  const className = tone ?? (most && value >= most ? "full" : "");
  return html`<span class=${`bar ${className}`} role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax=${most ?? 0} aria-valuenow=${value}>
    <i ref=${ref}></i></span>`;
}

/** @param {{title: string, right?: any, children?: any, class?: string, bare?: boolean}} props `bare`: the page says its title already */
export function Panel({ title, right, children, class: className = "", bare = false }) {
  return html`<section class=${`panel ${className}`} aria-label=${title}>
    ${bare && !right ? null : html`<header><h2>${title}</h2>${right ? html`<div class="right">${right}</div>` : null}</header>`}
    ${children}
  </section>`;
}

/** @param {{columns: (string | {name: string, class?: string})[], children?: any, label: string, class?: string}} props */
export function Table({ columns, children, label, class: tableClass }) {
  return html`<div class="table" role="group" aria-label=${label} tabindex="0"><table class=${tableClass}>
    <thead><tr>${columns.map((column) => {
      const { name, class: className } = typeof column === "string" ? { name: column, class: undefined } : column;
      return html`<th scope="col" class=${className}>${name || html`<span class="hidden-text">actions</span>`}</th>`;
    })}</tr></thead>
    <tbody>${children}</tbody>
  </table></div>`;
}

/** @param {{children?: any}} props */
export const Empty = ({ children }) => html`<p class="note">${children}</p>`;

/* Words about what was done, or refused. */
const toasts = signal(/** @type {{id: number, text: string, bad: boolean}[]} */ ([]));
let lastToast = 0;

/** @param {string} text @param {boolean} [bad] */
export function say(text, bad = false) {
  const id = ++lastToast;
  toasts.value = [...toasts.value, { id, text, bad }];
  setTimeout(() => { toasts.value = toasts.value.filter((each) => each.id !== id); }, bad ? 8000 : 4000);
}

export const Toasts = () => html`<div class="toasts" role="status" aria-live="polite">
  ${toasts.value.map((each) => html`<div key=${each.id} class=${each.bad ? "toast bad" : "toast"}>${each.text}</div>`)}
</div>`;

/** Do it, and say what became of it. @param {() => Promise<unknown>} action @param {string} [done] */
export async function attempt(action, done) {
  try {
    const answer = await action();
    if (done) say(done);
    return answer;
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), true);
    return undefined;
  }
}

/** @param {{onClick: () => unknown, class?: string, children?: any, title?: string, disabled?: boolean}} props */
export function Button({ onClick, class: className = "", children, title, disabled = false }) {
  const [busy, setBusy] = useState(false);
  const click = async () => {
    setBusy(true);
    try { await onClick(); } finally { setBusy(false); }
  };
  return html`<button type="button" class=${className} title=${title} disabled=${busy || disabled} onClick=${click}>${children}</button>`;
}

/**
 * @typedef {{name: string, label: string, type?: string, value?: any, hint?: string, required?: boolean, min?: number, max?: number,
 *   options?: [string, string][]}} Field
 * @typedef {{title: string, text?: any, fields?: Field[], confirm: string, danger?: boolean,
 *   onConfirm?: (values: Record<string, any>) => Promise<unknown>}} Question without `onConfirm`: something to read
 */
const question = signal(/** @type {Question | null} */ (null));

/** @param {Question} asked */
export const ask = (asked) => { question.value = asked; };

/** The one dialogue of the page. */
export function Dialogue() {
  const asked = question.value;
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [error, setError] = useState("");
  useEffect(() => { setError(""); if (asked) ref.current?.showModal(); }, [asked]);
  if (!asked) return null;
  // Another question may have been asked meanwhile: that one stays.
  const forget = () => { if (question.value === asked) question.value = null; };
  const close = () => {
    if (question.value === asked) ref.current?.close();
    forget();
  };
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    /** @type {Record<string, any>} */
    const values = {};
    for (const field of asked.fields ?? []) {
      const input = /** @type {HTMLInputElement} */ (form.elements.namedItem(field.name));
      values[field.name] = field.type === "checkbox" ? input.checked
        : field.type === "number" ? (input.value === "" ? null : Number(input.value)) : input.value;
    }
    try {
      await asked.onConfirm?.(values);
      close();
    } catch (refused) {
      setError(refused instanceof Error ? refused.message : String(refused));
    }
  };
  return html`<dialog ref=${ref} aria-label=${asked.title} onClose=${forget}>
    <form onSubmit=${submit}>
      <h1>${asked.title}</h1>
      ${asked.text ? html`<div>${asked.text}</div>` : null}
      ${(asked.fields ?? []).map((field) => html`<${FormField} key=${field.name} ...${field} />`)}
      ${error ? html`<p class="bad" role="alert">${error}</p>` : null}
      <div class="buttons">
        ${asked.onConfirm ? html`<button type="button" onClick=${close}>Back</button>` : null}
        <button type="submit" class=${asked.danger ? "danger" : "primary"}>${asked.confirm}</button>
      </div>
    </form>
  </dialog>`;
}

/** @param {Field} field */
function FormField({ name, label, type = "text", value, hint, required, min, max, options }) {
  if (type === "checkbox") {
    return html`<label><input type="checkbox" name=${name} defaultChecked=${value} /> ${label}${hint ? html` <small class="quiet">${hint}</small>` : null}</label>`;
  }
  const control = options
    ? html`<select name=${name}>${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}</select>`
    : html`<input name=${name} type=${type} defaultValue=${value ?? ""} required=${required} min=${min} max=${max}
      step=${type === "number" ? "any" : undefined} autocomplete="off" />`;
  return html`<label class="field">${label}${control}${hint ? html`<small>${hint}</small>` : null}</label>`;
}

/** @param {{value: unknown}} props */
export const Json = ({ value }) => html`<pre class="json" tabindex="0">${JSON.stringify(value, null, 2)}</pre>`;
