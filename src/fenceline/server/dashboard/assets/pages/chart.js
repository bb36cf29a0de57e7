// A chart over time, in the colours of the theme; its last values stand beside it as text.
import { html, useEffect, useRef } from "../lib.js";
import { Panel } from "../ui.js";

/** @param {string} name a colour of the theme, as it is now */
function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** @param {number} at seconds */
const minute = (at) => new Date(at * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Where the only value is: it makes no line, so it is drawn as a point. @param {ArrayLike<unknown>} values */
function alone(values) {
  const places = Array.from(values).flatMap((value, place) => (value === null || value === undefined ? [] : [place]));
  return places.length === 1 ? places : null;
}

/** As the line is drawn. @param {{name: string, index: number}} props */
const Stroke = ({ name, index }) => html`<svg width="18" height="6" aria-hidden="true">
  <line x1="0" y1="3" x2="18" y2="3" stroke=${`var(${name})`} stroke-width="2" stroke-dasharray=${index ? `6 ${3 * index}` : "none"} /></svg>`;

/** @param {{title: string, unit: string, data: any[], lines: [string, string][], least: number}} props the scale reaches to `least` at least */
export function Chart({ title, unit, data, lines, least }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const chart = useRef(/** @type {any} */ (null));
  const latest = useRef(data); // newer ones may come while the script does
  latest.current = data;
  const theme = document.documentElement.dataset.theme;
  useEffect(() => {
    let gone = false;
    let watcher = /** @type {ResizeObserver | null} */ (null);
    void import("../vendor/uplot.js").then(({ default: uPlot }) => {
      if (gone || !box.current) return;
      const [ink, grid] = [colour("--ink-2"), colour("--line")];
      const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
      chart.current = new uPlot({
        width: box.current.clientWidth || 300, height: 168, cursor: { drag: { x: false, y: false } }, legend: { show: false },
        scales: { y: { range: (_chart, _low, high) => [0, Math.max(least, (high ?? 0) * 1.1)] } },
        axes: [{ ...axis, space: 70, size: 28, values: (_chart, splits) => splits.map(minute) }, { ...axis, size: 40, space: 36 }],
        series: [{}, ...lines.map(([label, name], index) => ({
          label, stroke: colour(name), width: 2, spanGaps: true, dash: index ? [6, 3 * index] : undefined,
          points: { show: false, size: 6, fill: colour(name), filter: (/** @type {any} */ chart, /** @type {number} */ at) => alone(chart.data[at]) },
        }))],
      }, /** @type {any} */ (latest.current), box.current);
      watcher = new ResizeObserver(() => { if (box.current) chart.current?.setSize({ width: box.current.clientWidth, height: 168 }); });
      watcher.observe(box.current);
    });
    return () => { gone = true; watcher?.disconnect(); chart.current?.destroy(); chart.current = null; };
  }, [theme]);
  useEffect(() => { chart.current?.setData(data); }, [data]);
  const last = lines.map(([label], index) => {
    const value = data[index + 1]?.findLast((/** @type {number | null} */ each) => each !== null);
    return `${label} ${value === undefined ? "–" : Math.round(value * 100) / 100}`;
  });
  return html`<${Panel} title=${title} right=${html`<span class="small quiet">${unit}</span>`}><div class="body">
    <div class="chart" ref=${box} role="img" aria-label=${`${title}, last hour: ${last.join(", ")}`}></div>
    <div class="keys">${lines.map(([, name], index) => html`<span><${Stroke} name=${name} index=${index} />${last[index]}</span>`)}</div>
  </div><//>`;
}
