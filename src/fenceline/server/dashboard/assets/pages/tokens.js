// Tokens and roles: who may come in, and what they may do.
import { get, request, session } from "../api.js";
import { html, useState } from "../lib.js";
import { useRefresh } from "../live.js";
import { ask, Button, Panel, say, Status, Table, Time } from "../ui.js";

const TOKENS = [
  "Name", "Role", { name: "Tenant", class: "wide-only" }, { name: "Bound to", class: "wide-only" },
  { name: "Last used", class: "num wide-only" }, { name: "Expires", class: "num" }, "",
];
const ROLES = ["Role", "May", { name: "Reaches", class: "wide-only" }];

/** @param {any} token */
function stateOf(token) {
  if (token.revoked_at) return ["cancelled", "revoked"];
  if (token.expires_at && Date.parse(token.expires_at) < Date.now()) return ["cancelled", "expired"];
  return ["active", "valid"];
}

/** @param {any} role */
const reach = (role) => (role.all_tenants ? "all tenants" : role.own_jobs ? "its own jobs" : "its tenant");

export default function Tokens() {
  const [tokens, setTokens] = useState(/** @type {any[]} */ ([]));
  const [roles, setRoles] = useState(/** @type {any[]} */ ([]));
  const [secret, setSecret] = useState("");
  const reload = useRefresh(async () => {
    const [all, known] = await Promise.all([get("/v1/tokens", { limit: 200 }), get("/v1/roles")]);
    setTokens(all.items);
    setRoles(known.items);
  }, { most: 30_000, stream: false });
  const add = () => ask({
    title: "New token", confirm: "Create",
    fields: [
      { name: "name", label: "Name", required: true, hint: "Who it is for: the actor of its jobs and in the audit." },
      { name: "role", label: "Role", options: roles.map((role) => [role.name, role.name]), value: "operator" },
      { name: "tenant", label: "Tenant", value: session.value?.tenant },
      { name: "days", label: "Days until it expires", type: "number", value: 90, min: 1 },
    ],
    onConfirm: async ({ name, role, tenant, days }) => {
      const expires = days ? new Date(Date.now() + days * 86_400_000).toISOString() : undefined;
      const made = await request("POST", "/v1/tokens", { name, role, tenant: tenant || undefined, expires_at: expires });
      setSecret(made.token);
      await reload();
    },
  });
  /** @param {any} token */
  const revoke = (token) => ask({
    title: `Revoke the token of ${token.name}?`, confirm: "Revoke", danger: true,
    text: html`<p>It is refused within a second, and its sessions and streams end.</p>`,
    onConfirm: async () => {
      await request("DELETE", `/v1/tokens/${token.id}`);
      say("Revoked");
      await reload();
    },
  });
  return html`<div class="head"><h1>Tokens and roles</h1><div class="actions"><${Button} onClick=${add} disabled=${!roles.length}>New token …<//></div></div>
    ${secret ? html`<p class="notice">The token, shown once: <code class="wrap-anywhere">${secret}</code>
      <button type="button" class="tiny" onClick=${() => setSecret("")}>Done</button></p>` : null}
    <${Panel} title="Tokens"><${Table} label="Tokens" columns=${TOKENS}>
      ${tokens.map((token) => html`<${Token} key=${token.id} token=${token} onRevoke=${() => revoke(token)} />`)}<//><//>
    <${Panel} title="Roles"><${Table} label="Roles" columns=${ROLES}>${roles.map((role) => html`<tr key=${role.name}>
      <td class="nowrap"><b>${role.name}</b>${role.built_in ? null : html` <span class="tag">your own</span>`}
        <div class="small quiet phone-only">${reach(role)}</div></td>
      <td><span class="tags">${role.permissions.map((/** @type {string} */ permission) => html`<span class="tag">
        ${permission === "*" ? "everything" : permission}</span>`)}</span></td>
      <td class="nowrap wide-only">${reach(role)}</td>
    </tr>`)}<//><//>`;
}

/** @param {{token: any, onRevoke: () => unknown}} props */
function Token({ token, onRevoke }) {
  const [shape, text] = stateOf(token);
  const bound = [
    ...(token.lanes ?? []).map((/** @type {string} */ lane) => `lane ${lane}`),
    ...(token.kinds ?? []).map((/** @type {string} */ kind) => `kind ${kind}`),
  ];
  return html`<tr class=${shape === "active" ? "" : "left"}>
    <td><b>${token.name}</b> <${Status} of=${shape} text=${text} /></td>
    <td>${token.role}</td>
    <td class="wide-only">${token.tenant}</td>
    <td class="wide-only">${bound.join(", ") || html`<span class="quiet">–</span>`}</td>
    <td class="num wide-only"><${Time} at=${token.last_used_at} none="never" /></td>
    <td class="num"><${Time} at=${token.expires_at} none="never" /></td>
    <td class="num">${shape === "active" ? html`<${Button} class="tiny danger" onClick=${onRevoke}>Revoke<//>` : null}</td>
  </tr>`;
}
