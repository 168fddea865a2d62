/** The axes of a chart: straight, logarithmic or along the clock, and how far they reach. */
import { number, seconds } from "../lib/format.js";

const ROOM = 0.06;
const FENCE = 3;
const LEAST_VALUES = 8;
const MOST_DECADES = 6;
const TICK_PX = 72;
const INCREMENTS_S = [
  1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600,
  43200, 86400, 172800, 432000, 864000, 1728000, 4320000, 8640000,
];

/**
 * Return the clock of a run from pairs of a step and when it was scored: fwd turns a step into the seconds since the
 * first one, bwd turns them back. Between two steps time passes evenly. Null for fewer than two steps.
 */
export function clockOf(times) {
  if (!times || times.length < 2) return null;
  const steps = times.map(([step]) => step);
  const start = times[0][1];
  const passed = [];
  // A resumed run does steps again, and clocks are set back: time never goes back here, nor stands still.
  times.forEach(([, when], place) => passed.push(place ? Math.max(when - start, passed[place - 1] + 1e-6) : 0));
  return { fwd: (step) => between(steps, passed, step), bwd: (time) => between(passed, steps, time) };
}

function between(from, to, value) {
  let low = 0;
  let high = from.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle] <= value) low = middle;
    else high = middle;
  }
  return to[low] + ((value - from[low]) / (from[high] - from[low])) * (to[high] - to[low]);
}

/** Places of ticks along the clock, in steps, and what stands at them. */
export function clockTicks(clock) {
  const ticks = (plot, axis, low, high) => {
    const [first, last] = [clock.fwd(low), clock.fwd(high)];
    const most = Math.max(2, Math.floor(plot.over.clientWidth / TICK_PX));
    const by = INCREMENTS_S.find((one) => (last - first) / one <= most) ?? (last - first) / most;
    const found = [];
    for (let at = Math.max(0, Math.ceil(first / by)) * by; at <= last && found.length < 100; at += by) found.push(clock.bwd(at));
    return found;
  };
  return { splits: ticks, filter: (plot, steps) => steps, values: (plot, steps) => steps.map((step) => short(clock.fwd(step))) };
}

function short(passed) {
  return seconds(Math.round(passed * 1e4) / 1e4).replace(/ 0 (?:min|s)$/, "");
}

/**
 * Return {fwd, bwd, near, least} of a logarithmic scale for lines, or null where they have no value but 0. Where all values
 * are above 0, near is null; else the scale is straight between -near and near, for 0 has no logarithm.
 */
export function logScaleOf(lines) {
  let [low, high, signed] = [Infinity, 0, false];
  for (const { values } of lines) {
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      if (value <= 0) signed = true;
      if (value === 0) continue;
      low = Math.min(low, Math.abs(value));
      high = Math.max(high, Math.abs(value));
    }
  }
  if (!high) return null;
  const near = 10 ** Math.floor(Math.log10(Math.max(low, high * 10 ** -MOST_DECADES)));
  if (!signed) {
    const least = low / 1e3;
    return { near: null, least: low, fwd: (value) => Math.log10(Math.max(value, least)), bwd: (place) => 10 ** place };
  }
  return {
    near,
    fwd: (value) => Math.sign(value) * Math.log10(1 + Math.abs(value) / near),
    bwd: (place) => Math.sign(place) * near * (10 ** Math.abs(place) - 1),
  };
}

/** Places of ticks on a logarithmic scale: powers of ten, with 2 and 5 between few of them. */
export function logTicks(scale, low, high) {
  const found = new Set(scale.near !== null && low <= 0 && high >= 0 ? [0] : []);
  const size = Math.max(Math.abs(low), Math.abs(high));
  const least = scale.near ?? low;
  const [first, last] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(size))];
  const by = Math.max(1, Math.ceil((last - first) / 6));
  const parts = last - first <= 1 ? [1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9] : last - first <= 3 ? [1, 2, 5] : [1];
  for (let power = first; power <= last; power += by) {
    for (const part of parts) for (const sign of [1, -1]) found.add(Number((sign * part * 10 ** power).toPrecision(6)));
  }
  const ticks = [...found].filter((tick) => tick >= low && tick <= high && (tick === 0 || Math.abs(tick) >= least * (last - first > 1 && scale.near !== null ? 1.001 : 0.999)));
  return ticks.length > 2 ? ticks.sort((a, b) => a - b) : even(low, high);
}

function even(low, high) {
  const by = 10 ** Math.floor(Math.log10((high - low) / 2));
  const start = Math.ceil(low / by);
  const count = Math.floor(high / by) - start + 1;
  const skip = Math.max(1, Math.ceil(count / 5));
  return Array.from({ length: Math.ceil(count / skip) }, (_, place) => Number(((start + place * skip) * by).toPrecision(6)));
}

/** The y range of lines from low to high: with room, with 0 in it where that is asked for, no further than the fence. */
export function yRange(low, high, { unit, zero, logScale, fence }) {
  if (low === null || low === undefined || !Number.isFinite(low)) return [0, 1];
  let [bottom, top] = [low, high];
  if (fence) [bottom, top] = [Math.max(bottom, fence.low), Math.min(top, fence.high)];
  if (logScale) return logRange(bottom, top, logScale);
  if (zero || unit === "share" || unit === "seconds") [bottom, top] = [Math.min(bottom, 0), Math.max(top, 0)];
  if (unit !== "" && bottom === 0 && top === 0) return [0, 1];
  if (bottom === top) return [bottom - (Math.abs(bottom) || 1) / 2, top + (Math.abs(top) || 1) / 2];
  const room = ROOM * (top - bottom);
  return [bottom === 0 ? 0 : bottom - room, top === 0 ? 0 : top + room];
}

function logRange(bottom, top, { fwd, bwd, near, least }) {
  const [low, high] = [fwd(near === null ? Math.max(bottom, least) : bottom), fwd(top)]; // a band may reach below 0
  const room = high > low ? ROOM * (high - low) : 0.3;
  return [bwd(low - room), bwd(high + room)];
}

/**
 * How far values reach that are no outliers, {low, high}: three times the distance of the quartiles beyond these.
 * Null where nothing lies further out, where there are few values, or where half of them are the same.
 */
export function fenceOf(lines, x, range) {
  const all = placesOf(lines, x, range).map(({ value }) => value).sort((a, b) => a - b);
  if (all.length < LEAST_VALUES) return null;
  const quantile = (share) => all[Math.round(share * (all.length - 1))];
  let [first, third] = [quantile(0.25), quantile(0.75)];
  if (first === third) [first, third] = [quantile(0.05), quantile(0.95)];
  if (first === third) return null;
  const [low, high] = [first - FENCE * (third - first), third + FENCE * (third - first)];
  if (all[0] >= low && all[all.length - 1] <= high) return null;
  const inside = all.filter((value) => value >= low && value <= high);
  return { low: inside[0], high: inside[inside.length - 1] };
}

function placesOf(lines, x, range) {
  return lines.flatMap((line) =>
    line.values
      .map((value, place) => ({ value, step: (line.x || x)[place] }))
      .filter(({ value, step }) => Number.isFinite(value) && (!range || (step >= range[0] && step <= range[1]))),
  );
}

/** What lies beyond a fence, in words. */
export function beyond(fence, lines, x, range, write) {
  const all = placesOf(lines, x, range);
  const told = [
    ["below", all.filter(({ value }) => value < fence.low).sort((a, b) => a.value - b.value), "lowest"],
    ["above", all.filter(({ value }) => value > fence.high).sort((a, b) => b.value - a.value), "highest"],
  ];
  return told
    .filter(([, those]) => those.length)
    .map(([where, those, extreme]) => `${those.length} of ${all.length} values ${where} (${extreme} ${write(those[0].value)} at step ${stepWords(those[0].step)})`)
    .join(", ");
}

/** A step; one that another run's clock has put between two is rounded. */
export function stepWords(step) {
  return Number.isInteger(step) ? String(step) : number(step);
}
