// Live streams: one connection per page, opened anew when it breaks, and events handed on a frame at a time.
import { loadSession, session } from "./api.js";
import { signal, useEffect, useRef } from "./lib.js";
import { ROOT } from "./root.js";

/** live, or reconnecting: shown in the corner of every page. */
export const connection = signal(/** @type {"none" | "live" | "connecting" | "reconnecting"} */ ("none"));

/** How many streams are open, or being opened. */
let streams = 0;

const EVENTS = ["status", "progress", "log"];
/** Events that wait for the next frame; older ones of a job are replaced by newer ones anyway. */
const MAX_WAITING = 5000;
/** Handed on per frame, so that a flood never blocks the page. */
const PER_FRAME = 200;

/**
 * @typedef {{event: string, data: any}} Live
 * @param {string} path @param {(events: Live[]) => void} show
 * @returns {() => void} closes it
 */
export function watch(path, show) {
  /** @type {{event: string, text: string}[]} */
  let waiting = [];
  let frame = 0;
  let timer = 0;
  let pause = 500;
  let closed = false;
  let ended = false;
  /** @type {EventSource | null} */
  let source = null;

  const flush = () => {
    frame = 0;
    const taken = waiting.splice(0, PER_FRAME);
    show(taken.map((each) => ({ event: each.event, data: JSON.parse(each.text) })));
    if (waiting.length) schedule();
  };
  const schedule = () => {
    // A page in the background has no frames: then by a timer.
    frame ||= document.hidden ? setTimeout(flush, 250) : requestAnimationFrame(flush);
  };
  const open = () => {
    const opened = new EventSource(ROOT + path);
    source = opened;
    opened.onopen = () => { connection.value = "live"; pause = 500; };
    for (const event of EVENTS) {
      opened.addEventListener(event, (message) => {
        connection.value = "live";
        waiting.push({ event, text: message.data });
        if (waiting.length > MAX_WAITING) waiting.splice(0, waiting.length - MAX_WAITING);
        schedule();
        if (path.startsWith("/v1/jobs/") && event === "status") ended = isFinal(message.data);
      });
    }
    opened.onerror = () => {
      if (closed) return;
      if (ended) { // the job is over, and so is its stream
        opened.close();
        connection.value = "live";
        return;
      }
      connection.value = "reconnecting";
      if (opened.readyState === EventSource.CLOSED) { // refused: the browser does not try again by itself
        void loadSession();
        timer = setTimeout(open, (pause = Math.min(pause * 2, 10_000)));
      }
    };
  };
  connection.value = "connecting";
  streams += 1;
  open();
  return () => {
    closed = true;
    streams -= 1;
    connection.value = "none";
    source?.close();
    clearTimeout(timer);
    cancelAnimationFrame(frame);
    waiting = [];
  };
}

/** @param {string} text */
function isFinal(text) {
  return FINAL.has(JSON.parse(text).status);
}

export const FINAL = new Set(["succeeded", "succeeded_with_errors", "failed", "cancelled"]);

/**
 * Watch for as long as a component is shown. @param {string | null} path @param {(events: Live[]) => void} show
 */
export function useStream(path, show) {
  const latest = useRef(show);
  latest.current = show;
  useEffect(() => (path === null ? undefined : watch(path, (events) => latest.current(events))), [path, !!session.value]);
}

/**
 * Load something now, again when jobs change (at most every `least` ms), and at least every `most` ms.
 * @param {() => Promise<void>} load @param {{least?: number, most?: number, stream?: boolean}} [pace]
 */
export function useRefresh(load, { least = 2000, most = 10_000, stream = true } = {}) {
  const state = useRef({ at: 0, timer: 0, running: false, shown: true, pause: most, load });
  state.current.load = load;
  const run = async () => {
    const mine = state.current;
    if (mine.running) { // what is under way may have been read before the change that this call is to show
      mine.pause = 0;
      return;
    }
    mine.running = true;
    mine.pause = most;
    clearTimeout(mine.timer);
    mine.at = Date.now();
    try {
      await mine.load();
      if (!streams && connection.value === "reconnecting") connection.value = "none";
    } catch { // tried again, and seen: a page without a stream has no other sign of it
      if (!streams) connection.value = "reconnecting";
    } finally {
      mine.running = false;
      if (mine.shown) mine.timer = setTimeout(run, mine.pause);
    }
  };
  useEffect(() => {
    void run();
    return () => { state.current.shown = false; clearTimeout(state.current.timer); };
  }, []);
  useStream(stream ? "/v1/stream" : null, () => {
    const mine = state.current;
    if (mine.running) {
      mine.pause = Math.min(mine.pause, least);
      return;
    }
    clearTimeout(mine.timer);
    mine.timer = setTimeout(run, Math.max(0, mine.at + least - Date.now()));
  });
  return run;
}
