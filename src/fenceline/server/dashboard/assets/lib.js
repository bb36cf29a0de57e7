// The third-party modules by the names that the pages use.
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import { ROOT } from "./root.js";

/** Addresses of our own are written from "/" on, wherever the dashboard is. @param {any} props */
function rooted(props) {
  const own = Object.entries(props).filter(([name, value]) => /^(href|src)$/.test(name) && String(value).startsWith("/"));
  return own.length ? { ...props, ...Object.fromEntries(own.map(([name, value]) => [name, ROOT + value])) } : props;
}

/** @param {any} type @param {any} props @param {any[]} children */
const element = (type, props, ...children) =>
  h(type, ROOT && props && typeof type === "string" ? rooted(props) : props, ...children);

/** Markup as a template: text in it is always text, never markup. */
export const html = htm.bind(element);
export { render } from "./vendor/preact.js";
export { useEffect, useRef, useState } from "./vendor/hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal } from "./vendor/signals.js";
