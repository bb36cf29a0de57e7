// Numbers, times and durations as people read them.
import { signal } from "./lib.js";

/** A clock that ticks once a second, so that relative times stay true. */
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

const UNITS = /** @type {const} */ ([["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]]);

/** @param {number | null | undefined} seconds `3.2 s`, `4 min`, `2 h 5 min` */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.0095) return "0 s";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${(Math.floor(seconds * 10) / 10).toFixed(1)} s`;
  let rest = Math.round(seconds);
  const parts = [];
  for (const [unit, size] of UNITS) {
    if (rest >= size || parts.length) {
      const count = Math.floor(rest / size);
      rest -= count * size;
      if (count) parts.push(`${count} ${unit}`);
      if (parts.length === 2 || unit === "min" && parts.length) break;
    }
  }
  return parts.join(" ");
}

/** @param {string} at @param {number} current */
export function relative(at, current) {
  const seconds = (current - Date.parse(at)) / 1000;
  const span = Math.abs(seconds);
  if (span < 1.5) return "now";
  const text = span < 60 ? `${Math.floor(span)} s` : duration(span - (span % 60)).split(" ").slice(0, 2).join(" ");
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

/** @param {string} at */
export const exact = (at) => new Date(at).toLocaleString(undefined, {
  year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});

/** @param {string} at `12:03:04.120` */
export const clock = (at) => {
  const date = new Date(at);
  return `${date.toLocaleTimeString("en-GB")}.${String(date.getMilliseconds()).padStart(3, "0")}`;
};

/** @param {number | null | undefined} value */
export const count = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));

/** @param {number} share */
export const percent = (share) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

/** @param {unknown} value */
export const json = (value) => JSON.stringify(value, null, 2);
