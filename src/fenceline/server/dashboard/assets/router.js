// Which page is shown: the path and the query of the address, so that every view can be linked to.
import { signal } from "./lib.js";
import { ROOT } from "./root.js";

const read = () => ({ path: location.pathname.slice(ROOT.length) || "/", query: new URLSearchParams(location.search) });

export const place = signal(read());
addEventListener("popstate", () => { place.value = read(); });

/** @param {string} path @param {Record<string, unknown>} [query] */
export function href(path, query = {}) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") parts.append(name, String(each));
    }
  }
  const text = parts.toString();
  return text ? `${path}?${text}` : path;
}

/** @param {string} to @param {boolean} [replace] */
export function go(to, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", ROOT + to);
  place.value = read();
  if (!replace) scrollTo(0, 0);
}

// Links within the dashboard change the page without loading it anew.
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
  if (!link.pathname.startsWith(`${ROOT}/`) || link.pathname.startsWith(`${ROOT}/v1/`)) return;
  event.preventDefault();
  go(link.pathname.slice(ROOT.length) + link.search);
});
