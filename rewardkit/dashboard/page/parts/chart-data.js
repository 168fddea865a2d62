/** The numbers behind a chart: smoothing, alignment, and how they are told in words and as CSV. */
import { stepWords } from "./chart-axes.js";
import uPlot from "../vendor/uPlot.esm.js";
import { number, percent, seconds, visible } from "../lib/format.js";

const FORMULA = /^[=+\-@\t\r]/;
const TREND_POINTS = 10;

/** How a chart's unit writes a number. */
export function written(unit) {
  return { share: percent, seconds }[unit] || number;
}

/** Whether any line has a value. */
export function isKnown(lines) {
  return lines.some((line) => line.values.some((value) => Number.isFinite(value)));
}

/** Whether lines of shares say the same of every step: none. */
export function isNone(lines, unit) {
  return unit === "share" && isKnown(lines) && lines.every((line) => line.values.every((value) => !value));
}

/**
 * Exponential smoothing, 0 for none to 0.99, as TensorBoard does it: the first values weigh no more than later ones.
 * A gap stays a gap, and what comes after it goes on from what came before.
 */
function smoothed(values, weight) {
  let last = 0;
  let sum = 0;
  return values.map((value) => {
    if (value === null || value === undefined) return value;
    last = weight * last + (1 - weight) * value;
    sum = weight * sum + (1 - weight);
    return last / sum;
  });
}

/** uPlot's columns: x, then of each line what is drawn of it. A gap is null; undefined is no place of the line. */
export function columnsOf(x, lines, smoothing) {
  const tables = lines.map((line) => [line.x || x, ...parts(line, smoothing)]);
  if (lines.every((line) => !line.x)) return [x, ...tables.flatMap((table) => table.slice(1))];
  return uPlot.join(tables);
}

/** What is drawn of a line, in this order: low and high of its band, the raw line behind, the line. */
export function parts(line, smoothing) {
  const band = line.low ? [line.low, line.high] : [];
  return smoothing > 0 && !line.edge ? [...band, line.values, smoothed(line.values, smoothing)] : [...band, line.values];
}

/** How many columns are drawn of a line. */
export function partCount(line, smoothing) {
  return (line.low ? 2 : 0) + (smoothing > 0 && !line.edge ? 2 : 1);
}

/** Where nothing was scored there is no place for a gap: null becomes undefined there, or everywhere. */
export function placed(values, steps, unscored, sparse) {
  if (!values || (!sparse && !unscored.size)) return values;
  return values.map((value, place) => (value === null && (sparse || unscored.has(steps[place])) ? undefined : value));
}

/** The places of values that have no neighbour, which a line alone would not show. */
export function alone(values) {
  const known = (place) => values[place] !== null && values[place] !== undefined;
  const beside = (place, way) => {
    let next = place + way;
    while (next >= 0 && next < values.length && values[next] === undefined) next += way;
    return next >= 0 && next < values.length && known(next);
  };
  return values.map((_, place) => place).filter((place) => known(place) && !beside(place, -1) && !beside(place, 1));
}

/** The steps of which a note says something: {step, empty}, empty where there is no value. */
export function gapsOf(x, lines, notes) {
  const own = lines.filter((line) => !line.x);
  const empty = (place) => own.every((line) => !Number.isFinite(line.values[place]));
  return x.map((step, place) => ({ step, place })).filter(({ step }) => notes[step]).map(({ step, place }) => ({ step, empty: empty(place) }));
}

/** The last known value of a line and where it goes, in words. */
export function told(line, x, unit) {
  const at = line.x || x;
  const places = line.values.map((_, place) => place).filter((place) => Number.isFinite(line.values[place]));
  if (!places.length) return `${visible(line.name)}: no values`;
  const last = places[places.length - 1];
  return `${visible(line.name)}: ${written(unit)(line.values[last])} at step ${stepWords(at[last])}, ${trend(line, places)}`;
}

function trend(line, places) {
  const recent = places.slice(-TREND_POINTS).map((place) => line.values[place]);
  const before = places.slice(-2 * TREND_POINTS, -TREND_POINTS).map((place) => line.values[place]);
  if (!before.length) return "too few steps for a trend";
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const all = [...before, ...recent];
  const spread = Math.max(...all) - Math.min(...all);
  const change = mean(recent) - mean(before);
  if (Math.abs(change) <= 0.1 * spread) return "steady";
  return change > 0 ? "rising" : "falling";
}

/** Steps and raw values as CSV; no cell is taken for a formula. */
export function csvOf(x, lines) {
  const own = lines.map((line) => [line.x || x, line.values, ...(line.low ? [line.low, line.high] : [])]);
  const table = own.length ? uPlot.join(own) : [x];
  const names = lines.flatMap((line) => [line.name, ...(line.low ? [`${line.name} low`, `${line.name} high`] : [])]);
  const rows = Array.from(table[0], (step, place) => [step, ...table.slice(1).map((column) => column[place])]);
  return [["step", ...names].map(safe), ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function safe(name) {
  const text = visible(name);
  return FORMULA.test(text) ? `'${text}` : text;
}

function cell(value) {
  if (value === null || value === undefined) return "";
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
