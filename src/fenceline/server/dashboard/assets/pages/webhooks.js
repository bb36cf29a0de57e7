// Webhooks: where the ends of jobs are reported to, and what enqueues jobs from outside.
import { get, request } from "../api.js";
import { html, useState } from "../lib.js";
import { useRefresh } from "../live.js";
import { ask, Button, Empty, Panel, say, Status, Table, Time } from "../ui.js";

const OUTGOING = [
  "Address", { name: "Kinds", class: "wide-only" }, "Ends", { name: "Tenant", class: "wide-only" },
  { name: "Created", class: "num wide-only" }, "",
];
const INCOMING = [
  "Name", "Kind", { name: "Signed by", class: "wide-only" }, { name: "Tenant", class: "wide-only" }, { name: "Last fired", class: "num" },
];

export default function Webhooks() {
  const [hooks, setHooks] = useState(/** @type {any[] | null} */ (null));
  const [triggers, setTriggers] = useState(/** @type {any[] | null} */ (null));
  const [secret, setSecret] = useState("");
  const reload = useRefresh(async () => {
    const [out, into] = await Promise.all([get("/v1/hooks"), get("/v1/triggers").catch(() => null)]);
    setHooks(out.items);
    setTriggers(into?.items ?? null);
  }, { most: 30_000, stream: false });
  const add = () => ask({
    title: "New outgoing webhook", confirm: "Create",
    fields: [
      { name: "url", label: "URL", type: "url", required: true, hint: "https only, unless the server allows more." },
      { name: "kinds", label: "Kinds", hint: "Commas between; empty: all." },
      { name: "failed", label: "Only failures", type: "checkbox" },
    ],
    onConfirm: async ({ url, kinds, failed }) => {
      const named = kinds.split(",").map((/** @type {string} */ kind) => kind.trim()).filter(Boolean);
      const made = await request("POST", "/v1/hooks", {
        url, kinds: named.length ? named : undefined, statuses: failed ? ["failed"] : undefined,
      });
      setSecret(made.secret);
      await reload();
    },
  });
  /** @param {any} hook */
  const remove = (hook) => ask({
    title: "Delete this webhook?", text: html`<p class="wrap-anywhere">${hook.url}</p>`, confirm: "Delete", danger: true,
    onConfirm: async () => { await request("DELETE", `/v1/hooks/${hook.id}`); say("Deleted"); await reload(); },
  });
  return html`<div class="head"><h1>Webhooks</h1><div class="actions"><${Button} onClick=${add}>New webhook …<//></div></div>
    ${secret ? html`<p class="notice">Its deliveries are signed with this secret, shown once: <code class="wrap-anywhere">${secret}</code>
      <button type="button" class="tiny" onClick=${() => setSecret("")}>Done</button></p>` : null}
    <${Panel} title="Outgoing">${hooks === null ? null : !hooks.length ? html`<${Empty}>The ends of jobs are reported nowhere.<//>`
      : html`<${Table} label="Outgoing webhooks" columns=${OUTGOING}>${hooks.map((hook) => html`<tr key=${hook.id}>
        <td class="wrap-anywhere">${hook.url}</td>
        <td class="wide-only">${hook.kinds?.join(", ") ?? html`<span class="quiet">all</span>`}</td>
        <td>${hook.statuses.length === 4 ? html`<span class="quiet">all</span>` : html`<span class="tags apart">
          ${hook.statuses.map((/** @type {string} */ status) => html`<${Status} of=${status} />`)}</span>`}</td>
        <td class="wide-only">${hook.tenant}</td>
        <td class="num wide-only"><${Time} at=${hook.created_at} /></td>
        <td class="num"><${Button} class="tiny danger" onClick=${() => remove(hook)}>Delete<//></td>
      </tr>`)}<//>`}<//>
    ${triggers ? html`<${Panel} title="Incoming">${!triggers.length
      ? html`<${Empty}>Nothing outside enqueues jobs by a webhook. Make a trigger: <code>POST /v1/triggers</code><//>`
      : html`<${Table} label="Incoming webhooks" columns=${INCOMING}>${triggers.map((trigger) => html`<tr key=${trigger.name}>
        <td><${Status} of=${trigger.enabled ? "active" : "paused"} text=${trigger.name} /></td>
        <td>${trigger.kind}</td>
        <td class="wide-only">${trigger.scheme}</td>
        <td class="wide-only">${trigger.tenant}</td>
        <td class="num"><${Time} at=${trigger.fired_at} none="never" /></td>
      </tr>`)}<//>`}<//>` : null}`;
}
