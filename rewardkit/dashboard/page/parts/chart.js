/** A line chart over steps. */
import uPlot from "../vendor/uPlot.esm.js";
import { counted, seconds, visible } from "../lib/format.js";
import { html, useEffect, useMemo, useRef, useState } from "../lib/view.js";
import { beyond, clockTicks, fenceOf, logScaleOf, logTicks, stepWords, yRange } from "./chart-axes.js";
import { alone, columnsOf, csvOf, gapsOf, isKnown, isNone, partCount, told, written } from "./chart-data.js";
import { Name } from "./chip.js";
import { colour, marksNear, paintGaps, paintMarks, pictureOf, save, seriesColour } from "./chart-paint.js";

const HEIGHT = 168;
const TALL_PX = 300;
const TABLE_ROWS = 50;
const AXIS_PX = 46;
const AXIS_GAP = 4;
const CLICK_PX = 4;
const DOUBLE_MS = 220;
const AHEAD = "400px";
const TURN_MS = 12;
const NONE = [];

/**
 * A chart of lines over steps, with what happened as marks.
 *
 * lines: [{name, values, low, high, x, colour, edge, dashed}]; a line with its own x need not have the others' steps; colour is
 * a CSS custom property or a colour; edge is a thin line beside the main one, dashed one to compare with. A null is a gap; undefined is passed over.
 * markers: [{x, kind: "version"|"flag"|"change"|"resume", words}]. notes: {step: words}; a step that has one gets a mark below
 * the axis, a hollow one where there is no value.
 * range: [from, to] in steps or null; onRange hears of another one. onPick hears of the step that is chosen.
 * Charts with one syncKey share the cursor. zero: the y range has 0 in it. actions: buttons beside the title.
 * log: the y axis is logarithmic. clock: of clockOf, the x axis goes along it. fenced: outliers do not widen the y range, and
 * are told in words.
 */
export function Chart(props) {
  const figure = useRef(null);
  const [near, seen] = useSeen(figure);
  const shown = useRef(props);
  if (seen) shown.current = props; // out of sight, nothing is drawn anew
  return html`<figure class="chart" ref=${figure}><${Drawn} ...${shown.current} figure=${figure} near=${near} /></figure>`;
}

function Drawn({
  figure, near, title, words = "", x = NONE, lines = NONE, markers = NONE, notes = {}, unit = "", smoothing = 0, zero = false,
  range = null, onRange, onPick, onEnlarge, syncKey, height = HEIGHT, actions = null, waiting = false, log = false, clock = null, fenced = false,
}) {
  const [hidden, setHidden] = useState(NONE);
  const box = useRef(null);
  const latest = useRef({});
  const shades = lines.map((line, place) => line.colour || (line.edge ? "--ink-3" : seriesColour(place)));
  const none = isNone(lines, unit);
  const known = isKnown(lines) && !none;
  const columns = useMemo(() => columnsOf(x, lines, smoothing), [x, lines, smoothing]);
  const logScale = useMemo(() => (log && known ? logScaleOf(lines) : null), [log, lines]);
  const visibleLines = lines.filter((line) => !hidden.includes(line.name));
  const fence = useMemo(() => (fenced ? fenceOf(visibleLines, x, range) : null), [fenced, x, lines, hidden, String(range)]);
  const gaps = useMemo(() => gapsOf(x, lines, notes), [x, lines, notes]);
  latest.current = {
    title, x, lines, shades, markers, gaps, notes, unit, smoothing, zero, range, onRange, onPick, columns, hidden, logScale, clock, fence,
    readout: (place) => tellReadout(figure.current, latest.current, place),
  };
  const layout = JSON.stringify([lines.map((line) => [line.name, !line.low, line.edge, line.dashed]), shades, smoothing > 0, unit, logScale && [logScale.near, logScale.least]]);
  const plot = usePlot({ box, latest, near: near && known, layout, columns, range, zero, hidden, markers, syncKey, clock, fence });
  const notice = fence ? `Beyond the frame: ${beyond(fence, visibleLines, x, range, written(unit))}` : "";

  const toggle = (name) => setHidden(hidden.includes(name) ? hidden.filter((one) => one !== name) : [...hidden, name]);
  const ordered = [...lines].sort((a, b) => Number(Boolean(a.dashed)) - Number(Boolean(b.dashed)));
  const saveCsv = () => save(new Blob([csvOf(x, ordered)], { type: "text/csv;charset=utf-8" }), `${title}.csv`);
  const savePng = async () => {
    const names = lines.map((line, place) => ({ name: visible(line.name), shade: shades[place] }));
    save(await pictureOf(plot.current, visible(title), names), `${title}.png`);
  };
  const spoken = useMemo(() => ordered.map((line) => told(line, x, unit)).join("; ") || "No values.", [x, lines, unit]);

  return html`
      <figcaption class="chart-head">
        <h3 class="chart-title" title=${[visible(title), visible(words)].filter(Boolean).join("\n\n")}><${Name} name=${title} most=${30} /></h3>
        <div class="chart-actions">
          ${actions}
          ${known && html`
            <button type="button" class="chart-action" onClick=${savePng} title="Save as PNG" aria-label=${`Save ${visible(title)} as PNG`}>PNG</button>
            <button type="button" class="chart-action" onClick=${saveCsv} title="Save as CSV" aria-label=${`Save ${visible(title)} as CSV`}>CSV</button>
          `}
          ${known && onEnlarge && html`
            <button type="button" class="chart-action" onClick=${onEnlarge} title="Enlarge" aria-label=${`Enlarge ${visible(title)}`}>
              <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M9.5 2.5h4v4M13.5 2.5l-5 5M6.5 13.5h-4v-4M2.5 13.5l5-5" /></svg>
            </button>
          `}
        </div>
      </figcaption>
      <div class="chart-legend" hidden=${none}>
        <span class="chart-step" data-at="step"></span>
        ${lines.map((line, place) => html`
          <button
            type="button"
            key=${line.name}
            class=${line.dashed ? "chart-line is-later" : "chart-line"}
            aria-pressed=${!hidden.includes(line.name)}
            onClick=${() => toggle(line.name)}
            title=${`Show or hide ${visible(line.name)}`}
          >
            <i class=${`chart-swatch${line.edge ? " is-edge" : ""}${line.dashed ? " is-dashed" : ""}`} style=${{ color: cssColour(shades[place]) }}></i>
            <span class="chart-name"><${Name} name=${line.name} /></span>
            <span class="chart-value" data-at=${place}></span>
          </button>
        `)}
      </div>
      ${known && notice && html`<p class="chart-beyond">${notice}</p>`}
      ${known && logScale && logScale.near !== null && html`<p class="chart-beyond is-scale">Logarithmic beyond ±${written(unit)(logScale.near)}, straight between</p>`}
      <div class="chart-plot" style=${{ height: `${height}px` }}>
        ${known
          ? html`<div
              class="chart-box"
              ref=${box}
              tabindex="0"
              role="slider"
              aria-orientation="horizontal"
              aria-label=${`${visible(title)}. ${spoken}`}
              aria-valuemin=${columns[0][0] ?? 0}
              aria-valuemax=${columns[0][columns[0].length - 1] ?? 0}
              aria-valuenow=${columns[0][columns[0].length - 1] ?? 0}
              onFocus=${() => latest.current.readout(plot.current?.cursor.idx)}
              onKeyDown=${(event) => onKey(event, plot.current, latest.current, box.current)}
            ></div>`
          : html`<p class="chart-none">${waiting ? "Being read …" : none ? `None in ${counted(x.length, "step")}` : "Nothing recorded"}</p>`}
        <div class="chart-mark" hidden></div>
      </div>
      ${known && columns[0].length <= TABLE_ROWS && html`<${Values} title=${title} x=${x} lines=${lines} notes=${notes} unit=${unit} />`}
  `;
}

function cssColour(shade) {
  return shade.startsWith("--") ? `var(${shade})` : shade;
}

/** The values for those who cannot see the chart. */
function Values({ title, x, lines, notes, unit }) {
  const write = written(unit);
  const shared = lines.filter((line) => !line.x);
  if (!shared.length) return null;
  return html`
    <div class="unseen">
      <table>
        <caption>${visible(title)}</caption>
        <thead><tr>
          <th scope="col">step</th>
          ${shared.map((line) => html`<th scope="col" key=${line.name}>${visible(line.name)}</th>`)}
          ${Object.keys(notes).length > 0 && html`<th scope="col">note</th>`}
        </tr></thead>
        <tbody>
          ${x.map((step, place) => html`
            <tr key=${step}>
              <th scope="row">${step}</th>
              ${shared.map((line) => html`<td key=${line.name}>${write(line.values[place])}</td>`)}
              ${notes[step] && html`<td>${visible(notes[step])}</td>`}
            </tr>
          `)}
        </tbody>
      </table>
    </div>
  `;
}

/** Whether an element was ever in the window or close to it, and whether it is now. */
function useSeen(element) {
  const [[near, seen], set] = useState([false, false]);
  useEffect(() => {
    const told = (changes) => set(([before]) => [before || changes.at(-1).isIntersecting, changes.at(-1).isIntersecting]);
    const watcher = new IntersectionObserver(told, { rootMargin: AHEAD });
    watcher.observe(element.current);
    return () => watcher.disconnect();
  }, []);
  return [near, seen];
}

const queue = [];
let drawing = false;

/** Draw charts one after the other, so that the first are seen before the last are drawn; return how to leave the queue. */
function inTurn(draw) {
  queue.push(draw);
  if (!drawing) drawNext();
  return () => {
    const place = queue.indexOf(draw);
    if (place >= 0) queue.splice(place, 1);
  };
}

function drawNext() {
  const until = performance.now() + TURN_MS;
  do queue.shift()?.();
  while (queue.length && performance.now() < until);
  drawing = queue.length > 0;
  if (drawing) setTimeout(drawNext);
}

/** Keep one uPlot in a box: made anew for other lines, else told what has changed. */
function usePlot({ box, latest, near, layout, columns, range, zero, hidden, markers, syncKey, clock, fence }) {
  const plot = useRef(null);
  useEffect(() => {
    if (!near || !box.current) return undefined;
    let end = null;
    const leave = inTurn(() => {
      const mine = new uPlot(options(latest, box.current, syncKey), latest.current.columns, box.current);
      plot.current = mine;
      settle(mine, latest.current);
      const stopListening = listen(mine, latest);
      end = () => {
        stopListening();
        mine.destroy();
        plot.current = null;
      };
    });
    return () => {
      leave();
      end?.();
    };
  }, [near, layout, syncKey, clock]);
  useEffect(() => {
    if (!plot.current || plot.current.data === columns) return;
    plot.current.setData(columns, false);
    settle(plot.current, latest.current);
  }, [columns]);
  useEffect(() => {
    if (plot.current) settle(plot.current, latest.current);
  }, [String(range), zero, hidden, markers, JSON.stringify(fence)]);
  return plot;
}

/** Bring scales and visible lines to what is asked for. */
function settle(plot, state) {
  const steps = plot.data[0];
  let place = 1;
  plot.batch(() => {
    state.lines.forEach((line) => {
      const show = !state.hidden.includes(line.name);
      for (let part = partCount(line, state.smoothing); part > 0; part -= 1) {
        if (plot.series[place].show !== show) plot.setSeries(place, { show });
        place += 1;
      }
    });
    const [first, last] = state.range || [steps[0], steps[steps.length - 1]];
    const apart = first === last ? 0.5 : 0;
    plot.setScale("x", { min: first - apart, max: last + apart });
  });
  plot.redraw(true, true);
  state.readout(plot.cursor.idx);
}

function options(latest, box, syncKey) {
  const state = () => latest.current;
  const axis = {
    stroke: () => colour("--ink-3"),
    font: `11px ${getComputedStyle(document.body).fontFamily}`,
    grid: { stroke: () => colour("--line"), width: 1 },
    ticks: { show: false },
  };
  const { clock, logScale } = state();
  const shown = { pub: (type) => type === "mousemove" || type === "mouseleave" };
  return {
    width: box.clientWidth,
    height: box.clientHeight,
    padding: [14, 16, 0, 0],
    legend: { show: false },
    scales: {
      x: { time: false, ...(clock && { distr: 100, fwd: clock.fwd, bwd: clock.bwd }) },
      y: { range: (plot, low, high) => yRange(low, high, state()), ...(logScale && { distr: 100, fwd: logScale.fwd, bwd: logScale.bwd }) },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 28, gap: 8, space: 48, incrs: [1, 2, 5].flatMap(tens).sort((a, b) => a - b), ...(clock && clockTicks(clock)) },
      { ...axis, size: labelRoom, gap: AXIS_GAP, space: box.clientHeight > TALL_PX ? 56 : 30, values: (_, ticks) => ticks.map(written(state().unit)), ...(logScale && { splits: (plot, axis, low, high) => logTicks(logScale, low, high), filter: (plot, ticks) => ticks }) },
    ],
    series: [{}, ...state().lines.flatMap((line, place) => seriesOf(line, state().shades[place], state().smoothing))],
    bands: bandsOf(state()),
    cursor: {
      y: false,
      drag: { x: true, y: false, setScale: false, dist: CLICK_PX },
      points: { size: (plot, place) => (plot.series[place].told ? 7 : 0) },
      bind: { dblclick: () => () => state().onRange?.(null) },
      ...(syncKey && { sync: { key: syncKey, scales: ["x", null], setSeries: false, filters: shown } }),
    },
    hooks: {
      draw: [(plot) => paintMarks(plot, state().markers), (plot) => paintGaps(plot, state().gaps)],
      setCursor: [(plot) => onCursor(plot, state())],
      setSelect: [(plot) => onSelect(plot, state())],
    },
  };
}

/** The width of the y axis: the longest of its labels has room. */
function labelRoom(plot, labels, at) {
  [plot.ctx.font] = plot.axes[at].font;
  const widths = (labels || NONE).map((label) => plot.ctx.measureText(label ?? "").width / devicePixelRatio);
  return Math.max(AXIS_PX, ...widths.map((width) => Math.ceil(width) + 2 * AXIS_GAP));
}

function tens(start) {
  return Array.from({ length: 9 }, (_, power) => start * 10 ** power);
}

function seriesOf(line, shade, smoothing) {
  const unseen = { stroke: "transparent", width: 0, points: { show: false } };
  const stroke = () => colour(shade);
  const main = {
    told: true,
    stroke,
    width: line.edge ? 1 : line.dashed ? 1.25 : 1.75,
    ...(line.edge && { dash: [2, 3] }),
    ...(line.dashed && { dash: [6, 3] }),
    points: { size: 5, stroke, fill: stroke, ...(line.edge ? { show: false } : { filter: lonely }) },
  };
  const raw = { stroke: () => colour(shade, 0.3), width: 1, points: { show: false } };
  const band = line.low ? [unseen, unseen] : [];
  return smoothing > 0 && !line.edge ? [...band, raw, main] : [...band, main];
}

function lonely(plot, place, show) {
  const dashed = Boolean(plot.series[place].dash); // its dashes tell it apart, and dots would hide them
  return show && !dashed ? null : alone(plot.data[place]);
}

function bandsOf({ lines, shades, smoothing }) {
  const found = [];
  let place = 1;
  lines.forEach((line, at) => {
    if (line.low) found.push({ series: [place + 1, place], fill: () => colour(shades[at], 0.14) });
    place += partCount(line, smoothing);
  });
  return found;
}

/** Follow the box's size and the theme, and take a click for a choice where it is no drag. */
function listen(plot, latest) {
  const sizes = new ResizeObserver(([{ contentRect: { width, height } }]) => {
    if (width > 0 && (width !== plot.width || height !== plot.height)) plot.setSize({ width, height });
  });
  sizes.observe(plot.root.parentElement);
  const redraw = () => plot.redraw(false);
  document.addEventListener("theme", redraw);
  let began = 0;
  const down = (event) => {
    began = event.clientX;
  };
  let touched = null;
  let choice = null;
  const choose = () => {
    const { onPick, columns } = latest.current;
    const step = columns[0][plot.cursor.idx];
    if (plot.cursor.idx !== null && Number.isInteger(step)) onPick?.(step); // another run's clock has places between steps
  };
  const click = (event) => {
    clearTimeout(choice);
    if (Math.abs(event.clientX - began) >= CLICK_PX || event.detail > 1) return;
    const again = event.pointerType !== "touch" || touched === plot.cursor.idx; // a first touch only points
    touched = plot.cursor.idx;
    if (again) choice = setTimeout(choose, DOUBLE_MS);
  };
  plot.over.addEventListener("mouseenter", () => {
    plot.pointed = true;
  });
  plot.over.addEventListener("mouseleave", () => {
    plot.pointed = false;
  });
  plot.over.addEventListener("mousedown", down);
  plot.over.addEventListener("click", click);
  return () => {
    clearTimeout(choice);
    sizes.disconnect();
    document.removeEventListener("theme", redraw);
  };
}

function onSelect(plot, { onRange }) {
  const { left, width } = plot.select;
  if (width < CLICK_PX) return;
  const from = Math.floor(plot.posToVal(left, "x"));
  const to = Math.ceil(plot.posToVal(left + width, "x"));
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  if (to > from) onRange?.([from, to]);
}

function onCursor(plot, state) {
  state.readout(plot.cursor.idx);
  const label = plot.root.closest(".chart-plot")?.querySelector(".chart-mark");
  if (!label) return;
  const { left } = plot.cursor;
  const here = plot.pointed || plot.root.parentElement === document.activeElement;
  const marks = here && left >= 0 ? marksNear(plot, state.markers, left) : NONE;
  label.hidden = !marks.length;
  if (!marks.length) return;
  label.textContent = marks.map((mark) => `step ${mark.x}: ${visible(mark.words)}`).join("\n");
  const main = plot.series.findLastIndex((one) => one.told);
  label.classList.toggle("is-low", plot.valToPos(plot.data[main][plot.cursor.idx] ?? 0, "y") < plot.over.clientHeight / 2);
  const room = label.parentElement.clientWidth - label.offsetWidth - 4;
  label.style.left = `${Math.max(4, Math.min(room, plot.over.offsetLeft + left + 8))}px`;
}

/** Write a step's values into the legend and for screen readers; without a step the last ones. */
function tellReadout(figure, state, place) {
  if (!figure) return;
  const { columns, lines, unit, notes, markers } = state;
  const pointed = place !== null && place !== undefined;
  const write = written(unit);
  const at = pointed ? place : columns[0].length - 1;
  const step = columns[0][at];
  const note = pointed ? notes[step] : undefined;
  const when = state.clock && step !== undefined ? `, after ${seconds(state.clock.fwd(step))}` : "";
  const moment = pointed ? `step ${stepWords(step)}${when}` : "last";
  put(figure.querySelector("[data-at='step']"), note ? `${moment}: ${visible(note)}` : moment);
  let row = 1;
  const values = lines.map((line, number) => {
    const many = partCount(line, state.smoothing);
    const raw = columns[row + (line.low ? 2 : 0)];
    row += many;
    const value = pointed ? raw[at] : lastOf(raw);
    put(figure.querySelector(`[data-at='${number}']`), write(value));
    return `${visible(line.name)} ${write(value)}`;
  });
  const box = figure.querySelector(".chart-box");
  if (!box || step === undefined || (pointed && box !== document.activeElement)) return;
  const happened = markers.filter((mark) => mark.x === step).map((mark) => visible(mark.words));
  box.setAttribute("aria-valuenow", step);
  box.setAttribute("aria-valuetext", [`step ${stepWords(step)}${when}`, ...values, ...(note ? [visible(note)] : []), ...happened].join(", "));
}

function put(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

function lastOf(values) {
  for (let place = values.length - 1; place >= 0; place -= 1) {
    if (Number.isFinite(values[place])) return values[place];
  }
  return null;
}

const MOVES = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };

/** Arrows move the cursor, Enter chooses the step, Escape shows all steps again. */
function onKey(event, plot, state, box) {
  if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
  const { columns, onPick, onRange, range } = state;
  const now = plot.cursor.idx;
  if (event.key in MOVES) {
    const steps = columns[0];
    const lowest = range ? Math.max(0, steps.findIndex((step) => step >= range[0])) : 0;
    const highest = range ? Math.max(lowest, steps.findLastIndex((step) => step <= range[1])) : steps.length - 1;
    const next = Math.max(lowest, Math.min(highest, (now ?? highest + 1) + MOVES[event.key]));
    const left = plot.valToPos(steps[next], "x");
    plot.setCursor({ left, top: 0 }, true, true);
    box.focus();
  } else if (event.key === "Enter" && now !== null && now !== undefined) {
    onPick?.(columns[0][now]);
  } else if (event.key === "Escape" && range) {
    onRange?.(null);
  } else {
    return undefined;
  }
  event.preventDefault();
  event.stopPropagation();
  return undefined;
}
