// The keyboard: one set of keys for all pages, and what a page adds to it.
import { html, signal, useEffect } from "./lib.js";
import { go } from "./router.js";
import { ask } from "./ui.js";

/** @typedef {Record<string, [string, () => void]>} Keys key → what it does, and doing it */
const page = signal(/** @type {Keys} */ ({}));

/** @param {Keys} keys for as long as a component is shown */
export function useKeys(keys) {
  useEffect(() => { page.value = keys; });
  useEffect(() => () => { page.value = {}; }, []);
}

const GO = { o: ["Overview", "/"], j: ["Jobs", "/jobs"], l: ["Lanes", "/lanes"], w: ["Workers", "/workers"] };
let prefix = 0;

function help() {
  const rows = [
    ["/", "search or filter"], ["j k", "next, previous"], ["Enter", "open"], ["?", "these keys"],
    ...Object.entries(GO).map(([key, [name]]) => [`g ${key}`, `go to ${name}`]),
    ...Object.entries(page.value).filter(([key]) => !["j", "k", "Enter", "/"].includes(key)).map(([key, [what]]) => [key, what]),
  ];
  ask({
    title: "Keys", confirm: "Close",
    text: html`<table><tbody>${rows.map(([key, what]) => html`<tr><td class="shrink nowrap"><kbd>${key}</kbd></td><td>${what}</td></tr>`)}</tbody></table>`,
  });
}

addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const typing = ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) || document.querySelector("dialog[open]");
  if (event.key === "Escape" && target instanceof HTMLInputElement) target.blur();
  if (typing || event.metaKey || event.ctrlKey || event.altKey) return;
  if (Date.now() - prefix < 1000 && event.key in GO) {
    prefix = 0;
    go(GO[/** @type {keyof typeof GO} */ (event.key)][1]);
  } else if (event.key === "g") {
    prefix = Date.now();
    return;
  } else if (event.key === "?") {
    help();
  } else if (event.key === "/") {
    /** @type {HTMLElement | null} */ (document.querySelector("[data-search]"))?.focus();
  } else if (event.key in page.value && !(event.key === "Enter" && target.closest("a, button"))) {
    page.value[event.key][1]();
  } else {
    return;
  }
  event.preventDefault();
});
