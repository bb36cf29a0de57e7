// The public HTTP API, with the session's cookie. What the dashboard can do, curl can do.
import { signal } from "./lib.js";
import { ROOT } from "./root.js";

/**
 * @typedef {{actor: string, role: string, tenant: string, permissions: string[], own_jobs: boolean,
 *   all_tenants: boolean, csrf: string | null}} Session
 */

/** Who is signed in; undefined: not yet known; null: nobody. */
export const session = signal(/** @type {Session | null | undefined} */ (undefined));

/** @param {string} permission */
export function may(permission) {
  const held = session.value?.permissions ?? [];
  return held.includes("*") || held.includes(permission);
}

/** What the server refused, in its own words (RFC 9457). */
export class Problem extends Error {
  /** @param {number} status @param {{code?: string, detail?: string}} document */
  constructor(status, document) {
    super(document.detail ?? `the server answered ${status}`);
    this.status = status;
    this.code = document.code ?? "unknown";
  }
}

/** @param {Record<string, unknown>} values `a=1&b=2&b=3`; empty ones are left out */
export function query(values) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") parts.append(name, String(each));
    }
  }
  const text = parts.toString();
  return text && `?${text}`;
}

/**
 * @param {string} method @param {string} path @param {unknown} [body]
 * @returns {Promise<any>} the answer's JSON, null where there is none
 */
export async function request(method, path, body) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (session.value?.csrf) headers["X-Fenceline-CSRF"] = session.value.csrf;
  const answer = await fetch(ROOT + path, {
    method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store",
  });
  const text = await answer.text();
  let document = null;
  try { document = text ? JSON.parse(text) : null; } catch { /* a proxy's page */ }
  if (answer.ok) return document;
  if (answer.status === 401 && path !== "/v1/session") session.value = null;
  throw new Problem(answer.status, document ?? {});
}

/** @param {string} path @param {Record<string, unknown>} [values] */
export const get = (path, values = {}) => request("GET", path + query(values));

/** Find out who is signed in. */
export async function loadSession() {
  try {
    session.value = await get("/v1/session");
  } catch {
    session.value = null;
  }
}

/** @param {{token: string} | {code: string}} proof */
export async function signIn(proof) {
  session.value = await request("POST", "/v1/session", proof);
}

export async function signOut() {
  await request("DELETE", "/v1/session");
  session.value = null;
}
