/** Small drawn curves: a sparkline, and several runs over each other. */
import { count, number, visible } from "../lib/format.js";
import { html, useEffect, useRef, useState } from "../lib/view.js";
import { COLOURS, seriesColour } from "./chart-paint.js";

const WIDTH = 72;
const HEIGHT = 22;
const TALL = 220;
const EDGE = { top: 10, right: 12, bottom: 24, left: 46 };

/** The colour of the series at a place. */
export function colourOf(place) {
  return `var(${seriesColour(place)})`;
}

/** The dashes of the series at a place: none, until the colours begin again. */
export function dashOf(place) {
  return place < COLOURS ? null : "6 3";
}

const known = (series) => series.filter(([, value]) => value !== null);

/** A reward's mean over the steps, as small as a word. */
export function Sparkline({ name, series }) {
  const points = known(series);
  if (points.length < 2) return html`<svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true" />`;
  const x = scale(points[0][0], points[points.length - 1][0], 2, WIDTH - 4);
  const values = points.map(([, value]) => value);
  const y = scale(Math.min(...values), Math.max(...values), HEIGHT - 4, 4);
  const [lastX, lastY] = points[points.length - 1];
  const words = `${name} from ${number(values[0])} to ${number(lastY)}`;
  return html`
    <svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${words}>
      <path d=${pathOf(points, x, y)} />
      <circle cx=${x(lastX)} cy=${y(lastY)} r="2" />
    </svg>
  `;
}

function scale(low, high, from, to) {
  if (high === low) return () => (from + to) / 2;
  return (value) => Math.round((from + ((value - low) / (high - low)) * (to - from)) * 100) / 100;
}

function pathOf(points, x, y) {
  return points.map(([step, value], place) => `${place ? "L" : "M"}${x(step)} ${y(value)}`).join("");
}

/** Return about so many round numbers that span a range. */
function ticks(low, high, most) {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => span / one <= most);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

/** Curves of several runs; the pointer or the arrow keys choose the step whose values the legend shows. */
export function Overlay({ lines, label, onDrop }) {
  const box = useRef(null);
  const width = useWidth(box);
  const [at, setAt] = useState(null);
  const [strong, setStrong] = useState(null);
  const drawn = lines.map((line) => ({ ...line, points: known(line.series) })).filter((line) => line.points.length);
  const steps = [...new Set(drawn.flatMap((line) => line.points.map(([step]) => step)))].sort((a, b) => a - b);
  const frame = frameOf(drawn, width);
  const onPointerMove = (event) => {
    const left = event.clientX - event.currentTarget.getBoundingClientRect().left;
    setAt(nearest(steps, frame.stepAt(left)));
  };
  const onKeyDown = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const place = at === null ? (by > 0 ? -1 : steps.length) : steps.indexOf(at);
    setAt(steps[Math.min(Math.max(place + by, 0), steps.length - 1)]);
  };
  const leave = () => setAt(null);
  return html`
    <div class="overlay">
      <div class="overlay-plot" ref=${box}>
        ${
          width > 0 &&
          html`
            <svg
              width=${width}
              height=${TALL}
              role="img"
              tabindex="0"
              aria-label=${`${label} by step, ${drawn.length} runs; the list after it has the values`}
              onPointerMove=${onPointerMove}
              onPointerLeave=${leave}
              onBlur=${leave}
              onKeyDown=${onKeyDown}
            >
              <${Axes} frame=${frame} width=${width} />
              ${drawn.map(
                (line) => html`
                  <path
                    key=${line.name}
                    class=${`overlay-line${strong && strong !== line.name ? " is-weak" : ""}`}
                    style=${{ stroke: line.colour, strokeDasharray: line.dash }}
                    d=${pathOf(line.points, frame.x, frame.y)}
                  />
                `,
              )}
              ${at !== null && html`<line class="overlay-at" x1=${frame.x(at)} x2=${frame.x(at)} y1=${EDGE.top} y2=${TALL - EDGE.bottom} />`}
              ${
                at !== null &&
                drawn.map((line) => {
                  const value = valueAt(line, at);
                  return value !== null && html`<circle key=${line.name} class="overlay-dot" cx=${frame.x(at)} cy=${frame.y(value)} r="3.5" style=${{ fill: line.colour }} />`;
                })
              }
            </svg>
          `
        }
      </div>
      <${Legend} lines=${lines} at=${at} onDrop=${onDrop} setStrong=${setStrong} />
    </div>
  `;
}

function useWidth(box) {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([one]) => setWidth(Math.floor(one.contentRect.width)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return width;
}

function frameOf(drawn, width) {
  const points = drawn.flatMap((line) => line.points);
  const xs = points.map(([step]) => step);
  const ys = points.map(([, value]) => value);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [low, high] = padded(Math.min(...ys), Math.max(...ys));
  const [from, to] = [EDGE.left, width - EDGE.right];
  return {
    left,
    right,
    low,
    high,
    x: scale(left, right, from, to),
    y: scale(low, high, TALL - EDGE.bottom, EDGE.top),
    stepAt: (place) => left + ((place - from) / (to - from)) * (right - left),
  };
}

/** A range with a little air; one that lies within 0 and 1 stays there. */
function padded(low, high) {
  const air = (high - low || Math.abs(high) || 1) * 0.06;
  return [low >= 0 && low - air < 0 ? 0 : low - air, high + air];
}

function Axes({ frame, width }) {
  return html`
    <g class="overlay-axes">
      ${ticks(frame.low, frame.high, 5).map(
        (value) => html`
          <g key=${value}>
            <line x1=${EDGE.left} x2=${width - EDGE.right} y1=${frame.y(value)} y2=${frame.y(value)} />
            <text x=${EDGE.left - 8} y=${frame.y(value)} dy="0.32em" text-anchor="end">${number(value)}</text>
          </g>
        `,
      )}
      ${ticks(frame.left, frame.right, Math.max(Math.floor(width / 110), 2))
        .filter(Number.isInteger)
        .map((step) => html`<text key=${step} x=${frame.x(step)} y=${TALL - 6} text-anchor="middle">${count(step)}</text>`)}
    </g>
  `;
}

function nearest(steps, wanted) {
  return steps.reduce((best, step) => (Math.abs(step - wanted) < Math.abs(best - wanted) ? step : best), steps[0]);
}

function valueAt(line, at) {
  const found = line.series.find(([step]) => step === at);
  return found ? found[1] : null;
}

function Legend({ lines, at, onDrop, setStrong }) {
  return html`
    <div class="overlay-legend">
      <p class="overlay-step">${at === null ? "Last step" : `Step ${count(at)}`}</p>
      <ul>
        ${lines.map((line) => {
          const points = known(line.series);
          const value = at === null ? (points.length ? points[points.length - 1][1] : null) : valueAt(line, at);
          return html`
            <li key=${line.name} onPointerEnter=${() => setStrong(line.name)} onPointerLeave=${() => setStrong(null)}>
              <span class="swatch" style=${{ background: line.colour }} aria-hidden="true"></span>
              <a class="cut" href=${line.href}>${visible(line.name)}</a>
              <span class="overlay-value">${number(value)}</span>
              <button type="button" class="overlay-drop" aria-label=${`Take ${visible(line.name)} out of the graph`} onClick=${() => onDrop(line.name)}>
                <svg viewBox="0 0 12 12" aria-hidden="true"><path d="m3 3 6 6m0-6-6 6" /></svg>
              </button>
            </li>
          `;
        })}
      </ul>
    </div>
  `;
}
