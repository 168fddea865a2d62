/** Graphs: how the rewards, their failures and the training went, step by step. */
import { decoded, go, href, of } from "../lib/address.js";
import { passes, useApi } from "../lib/api.js";
import { useCurves } from "../lib/curves.js";
import { count, counted, visible } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/view.js";
import { Chart } from "../parts/chart.js";
import { clockOf } from "../parts/chart-axes.js";
import { isKnown, isNone, placed } from "../parts/chart-data.js";
import { seriesColour } from "../parts/chart-paint.js";
import { Choice, Search, Toggle } from "../parts/fields.js";
import { Empty, Loading, ProblemNote } from "../parts/states.js";
import { Costs } from "./graphs/costs.js";
import { ByGroup, GroupBy } from "./graphs/groups.js";
import { Spread, SpreadOf } from "./graphs/histogram.js";

const GROUPS = [["rewards", "Rewards"], ["failures", "Failures and time"], ["training", "Training"]];
const GROUP_OF = { metrics: "training" };
const MARKS = { version: "new version", flag: "health flag", change: "change", resume: "resumed" };
const MOST_FOUND = 30;
const NONE = [];
const PLAIN = "plain sum";
const TOTALS = ["total_reward", "total_reward_std"];
const FOLDED = ["failed", "timeouts", "skipped", "flat_groups", "length", "truncated"];
const SHARED = ["failed", "timeouts", "skipped", "time_p50", "time_p95", "flat_groups"];

export const isAtOnce = true;

/** The tab; it asks for the curves without waiting for the overview, which is null until it is there. */
export default function Graphs({ run, overview, query }) {
  const split = query.split === "eval" ? "eval" : "train";
  const metrics = useMemo(() => metricsIn(query.metrics), [query.metrics]);
  const heard = useCurves(run, { split, metrics });
  const { problem, reload } = heard;
  const data = overview && heard.data;
  const names = overview?.metrics?.[split] || NONE;
  const pinned = metrics === "usual" ? metricsOf(data) : metrics;
  const rewards = overview ? overview.rewards.map((one) => one.name) : NONE;
  const view = viewOf(query);
  const other = useCurves(view.beside, { split, metrics });
  const clock = useClock(run, split, view.clock);
  const otherClock = useClock(view.beside, split, view.clock);
  const besides = useMemo(() => (view.clock ? alongClock(other.data, clock, otherClock) : other.data), [other.data, view.clock, clock, otherClock]);
  const graphs = useMemo(
    () => (data ? data.graphs.map((graph) => drawn(chosen(graph, view), data, rewards, view.beside, besides)) : NONE),
    [data, rewards.join(), view.plain, view.beside, besides],
  );
  useKeys([
    ["z", "Zero in every y range, or not", () => set({ zero: view.zero ? null : 1 })],
    ["l", "Logarithmic y axes, or straight ones", () => set({ y: view.log ? null : "log" })],
    ["w", "Along the wall clock, or along the steps", () => set({ x: view.clock ? null : "clock" })],
    ["o", "Outliers within the frame, or beyond it", () => set({ outliers: view.fenced ? null : "beyond" })],
    ["r", "Show all steps", () => set({ from: null, to: null })],
  ]);

  if (!data && problem) return html`<${ProblemNote} problem=${problem} retry=${reload} />`;
  if (!data) return html`<${Loading} rows=${8} label="Loading the graphs" />`;
  const splits = ["train", "eval"].filter((one) => one === split || overview.steps?.[one]?.[2]);
  return html`
    <div class="stack graphs">
      <h1 class="unseen">Graphs of ${visible(run)}</h1>
      ${(data.steps.length > 0 || splits.length > 1) && html`<${Controls} run=${run} view=${view} splits=${splits} split=${split} marks=${data.markers} hasPlain=${data.graphs.some((graph) => graph.lines.some((line) => line.name === PLAIN))} unread=${data.unread} rewards=${rewards} />`}
      ${!data.steps.length && splits.length < 2 && overview.completions > 0 && html`<div class="bar"><${GroupBy} run=${run} column=${view.by} /><${SpreadOf} value=${view.spread} rewards=${rewards} /></div>`}
      <${Happened} run=${run} marks=${data.markers} />
      <${Costs} run=${run} split=${split} />
      ${view.sought && html`<${Found} sought=${view.sought} names=${names} pinned=${pinned} />`}
      ${view.by && html`<${ByGroup} run=${run} split=${split} column=${view.by} reward=${query.byof} rewards=${rewards} view=${view} clock=${clock} onRange=${toRange} />`}
      ${view.spread !== undefined && html`<${Spread} run=${run} split=${split} spread=${view.spread} query=${query} />`}
      ${problem && !passes(problem) && html`<${ProblemNote} problem=${problem} retry=${reload} />`}
      ${other.problem && !passes(other.problem) && html`<${ProblemNote} problem=${other.problem} retry=${other.reload} />`}
      ${data.steps.length
        ? html`<${Groups} graphs=${graphs} data=${data} view=${view} clock=${clock} names=${names} pinned=${pinned} />`
        : html`<${Nothing} split=${split} overview=${overview} />`}
      ${view.enlarged && html`<${Enlarged} graph=${graphs.find((one) => one.key === view.enlarged)} data=${data} view=${view} clock=${clock} />`}
    </div>
  `;
}

function set(query) {
  go({ query }, { replace: true });
}

function toRange(range) {
  set(range ? { from: range[0], to: range[1] } : { from: null, to: null });
}

function viewOf(query) {
  const [from, to] = [Number(query.from), Number(query.to)];
  return {
    sought: query.q || "",
    smoothing: Math.min(0.99, Math.max(0, Number(query.smooth) || 0)),
    zero: query.zero === "1",
    log: query.y === "log",
    clock: query.x === "clock",
    fenced: query.outliers === "beyond",
    range: query.from && query.to && Number.isFinite(from) && to > from ? [from, to] : null,
    plain: query.plain === "1",
    closed: (query.closed || "").split(",").filter(Boolean),
    enlarged: query.graph || null,
    beside: query.beside || null,
    by: query.by || null,
    spread: query.spread,
  };
}

/** The trainer's metrics that have a graph: those in the address, else the usual ones. */
function metricsIn(text) {
  return text === undefined ? "usual" : text.split(",").filter(Boolean).map(decoded);
}

function metricsOf(data) {
  return (data?.graphs || NONE).filter((graph) => graph.group === "metrics").map((graph) => graph.key.slice("metric/".length));
}

function pin(names) {
  set({ metrics: names.map(encodeURIComponent).join(",") || "," });
}

/** The clock of a run, where its graphs go along it; null else, and until it is known. */
function useClock(run, split, wanted) {
  const { data } = useApi(run && wanted ? of(run, "times") : null, { split });
  return useMemo(() => clockOf(data?.times), [data]);
}

/** Another run's curves with its steps where this run's clock has the same time since the beginning. */
function alongClock(data, clock, theirs) {
  if (!data || !clock || !theirs) return null;
  return { ...data, x: data.steps.map((step) => clock.bwd(theirs.fwd(step))) };
}

/** The main line of another run's graph of the same name, with that run's own steps. */
function besideOf(graph, name, data) {
  const theirs = data?.graphs.find((one) => one.key === graph.key);
  const line = theirs?.lines[0];
  if (!line || SHARED.includes(graph.key)) return NONE;
  const values = placed(line.values, data.steps, new Set(data.unscored), theirs.sparse);
  return [{ name, x: data.x || data.steps, values, low: null, high: null, edge: false, dashed: true, colour: "--s8" }];
}

/** A graph with the lines that the view asks for. */
function chosen(graph, view) {
  return view.plain ? graph : { ...graph, lines: graph.lines.filter((line) => line.name !== PLAIN) };
}

/** A graph as the chart takes it. */
function drawn(graph, data, rewards, beside, other) {
  const unscored = new Set(data.unscored);
  const reward = graph.key.startsWith("reward/") ? graph.key.slice("reward/".length) : null;
  const place = (values) => placed(values, data.steps, unscored, graph.sparse);
  const lines = graph.lines.map((line) => ({
    ...line,
    values: place(line.values),
    low: place(line.low),
    high: place(line.high),
    edge: reward !== null && line.name !== "mean",
    dashed: TOTALS.includes(graph.key) && line.name !== "total",
    colour: shade(graph, line, reward, rewards),
  }));
  lines.push(...besideOf(graph, beside, other));
  lines.sort((a, b) => Number(b.dashed) - Number(a.dashed)); // what is compared with lies behind
  const marks = data.markers.filter((mark) => reward === null || mark.reward === null || mark.reward === reward);
  return {
    ...graph,
    lines,
    marks: marks.map((mark) => ({ x: mark.step, kind: mark.kind, words: mark.words })),
    told: Object.fromEntries(graph.notes),
  };
}

function shade(graph, line, reward, rewards) {
  if (reward !== null) return line.name === "mean" ? seriesColour(rewards.indexOf(reward) + 1) : "--ink-3";
  if (rewards.includes(line.name) && graph.group !== "metrics") return seriesColour(rewards.indexOf(line.name) + 1);
  if (graph.lines.indexOf(line) > 0) return "--ink-3";
  return graph.group === "rewards" ? "--s1" : "--s7";
}

/** All marks in words, each with a link to what it is about: a mark on a graph is seen by pointing alone. */
function Happened({ run, marks }) {
  if (!marks.length) return null;
  return html`
    <details class="graphs-happened">
      <summary>What happened: ${counted(marks.length, "mark")}</summary>
      <ol>
        ${marks.map(
          (mark, place) => html`
            <li key=${place}>
              <span class=${`graphs-mark is-${mark.kind}`}><${MarkShape} kind=${mark.kind} /></span> step ${count(mark.step)}:${" "}
              ${markAddress(run, mark) ? html`<a href=${markAddress(run, mark)}>${visible(mark.words)}</a>` : visible(mark.words)}
            </li>
          `,
        )}
      </ol>
    </details>
  `;
}

function markAddress(run, { kind, reward, version, before }) {
  if (kind === "version") return href({ run, tab: "change", query: { reward, version, other: before, mode: before ? "differences" : null } });
  if (kind === "change") return href({ run, tab: "change", query: { reward } });
  return kind === "flag" ? href({ run, tab: "health" }) : null;
}

/** Another run whose curves are drawn beside these. */
function Beside({ run, name }) {
  const { data } = useApi("/api/runs");
  const others = (data?.runs || NONE).filter((one) => one.name !== run && one.state !== "unreadable").map((one) => one.name);
  if (name && !others.includes(name)) others.push(name);
  if (!others.length) return null;
  const options = [["", "no other run"], ...others.map((one) => [one, visible(one)])];
  return html`<${Choice} label="Beside" value=${name || ""} options=${options} onChange=${(one) => set({ beside: one || null })} />`;
}

function Controls({ run, view, splits, split, marks, hasPlain, unread, rewards }) {
  const kinds = Object.keys(MARKS).filter((kind) => marks.some((mark) => mark.kind === kind));
  return html`
    <div class="bar graphs-bar">
      <${Search} value=${view.sought} onChange=${(q) => set({ q })} label="Search graphs and metrics" hint="Graphs and metrics" />
      ${splits.length > 1 && html`<${Choice} label="Of" value=${split} options=${splits} onChange=${(one) => set({ split: one })} />`}
      <label class="field">
        <span class="field-label">Smoothing</span>
        <input
          type="range"
          min="0"
          max="0.95"
          step="0.05"
          value=${view.smoothing}
          onInput=${(event) => set({ smooth: Number(event.target.value) || null })}
        />
        <output class="graphs-smooth">${view.smoothing ? view.smoothing.toFixed(2) : "off"}</output>
      </label>
      <${Choice} label="x" value=${view.clock ? "clock" : ""} options=${[["", "steps"], ["clock", "wall clock"]]} onChange=${(x) => set({ x: x || null })} />
      <${Choice} label="y" value=${view.log ? "log" : ""} options=${[["", "straight"], ["log", "log"]]} onChange=${(y) => set({ y: y || null })} />
      <${Toggle} value=${view.zero} onChange=${(on) => set({ zero: on ? 1 : null })} label="From zero" />
      <${Toggle} value=${view.fenced} onChange=${(on) => set({ outliers: on ? "beyond" : null })} label="Outliers beyond the frame" />
      ${(hasPlain || view.plain) && html`<${Toggle} value=${view.plain} onChange=${(on) => set({ plain: on ? 1 : null })} label="Plain sum" />`}
      <${Beside} run=${run} name=${view.beside} />
      <${GroupBy} run=${run} column=${view.by} />
      <${SpreadOf} value=${view.spread} rewards=${rewards} />
      ${view.range && html`
        <button type="button" class="button" onClick=${() => set({ from: null, to: null })}>
          Steps ${count(view.range[0])} to ${count(view.range[1])}: show all
        </button>
      `}
      <span class="push"></span>
      ${unread > 0 && html`<span class="faint" role="status">Reading totals: ${count(unread)} batches to go</span>`}
      ${kinds.length > 0 && html`
        <ul class="graphs-marks" aria-label="Marks">
          ${kinds.map((kind) => html`<li key=${kind} class=${`graphs-mark is-${kind}`}><${MarkShape} kind=${kind} />${MARKS[kind]}</li>`)}
        </ul>
      `}
    </div>
  `;
}

const SHAPES = { version: "M1 1h8L5 9z", flag: "M1 9h8L5 1z", change: "M5 0l5 5-5 5-5-5z", resume: "M5 1a4 4 0 1 0 .01 0z" };

function MarkShape({ kind }) {
  return html`<svg viewBox="0 0 10 10" aria-hidden="true"><path d=${SHAPES[kind]} /></svg>`;
}

/** The trainer's metrics whose names fit a search, each to be given a graph or not. */
function Found({ sought, names, pinned }) {
  const found = names.filter((name) => name.toLowerCase().includes(sought.toLowerCase()));
  if (!found.length) return null;
  return html`
    <section class="graphs-found" aria-label="Metrics of the trainer that fit">
      <h2 class="graphs-found-title">Trainer's metrics</h2>
      ${found.slice(0, MOST_FOUND).map((name) => html`<${Pin} key=${name} name=${name} pinned=${pinned} />`)}
      ${found.length > MOST_FOUND && html`<span class="faint">and ${count(found.length - MOST_FOUND)} more</span>`}
    </section>
  `;
}

function Pin({ name, pinned }) {
  const on = pinned.includes(name);
  const turn = () => pin(on ? pinned.filter((one) => one !== name) : [...pinned, name]);
  return html`
    <button type="button" class="button graphs-pin" aria-pressed=${on} onClick=${turn} title=${on ? "Take its graph away" : "Give it a graph"}>
      ${visible(name)}
    </button>
  `;
}

function Groups({ graphs, data, view, clock, names, pinned }) {
  const sought = view.sought.toLowerCase();
  const shown = graphs.filter((graph) => graph.title.toLowerCase().includes(sought));
  const ofGroup = (key) => shown.filter((graph) => (GROUP_OF[graph.group] || graph.group) === key);
  if (!shown.length && !names.some((name) => name.toLowerCase().includes(sought))) {
    return html`<${Empty} title=${`No graph or metric has “${visible(view.sought)}” in its name`} hint="Clear the search to see all." />`;
  }
  return GROUPS.map(([key, title]) => {
    const those = ofGroup(key);
    if (!those.length) return null;
    const open = !view.closed.includes(key);
    const [quiet, drawn] = parted(those, (graph) => !sought && !data.unread && isQuiet(graph));
    const turn = () => set({ closed: (open ? [...view.closed, key] : view.closed.filter((one) => one !== key)).join(",") || null });
    return html`
      <section key=${key} class="graphs-group">
        <h2 class="graphs-group-title">
          <button type="button" class="graphs-fold" aria-expanded=${open} onClick=${turn}>
            <svg viewBox="0 0 10 10" aria-hidden="true"><path d="m3 1.5 4 3.5-4 3.5" /></svg>
            ${title} <span class="faint">${those.length}</span>
          </button>
          ${key === "training" && names.length > 0 && html`<${AddMetric} names=${names} pinned=${pinned} />`}
        </h2>
        ${open && html`<div class="graphs-grid">${drawn.map((graph) => html`<${Graph} key=${graph.key} graph=${graph} data=${data} view=${view} clock=${clock} pinned=${pinned} />`)}</div>`}
        ${open && quiet.length > 0 && html`<${Quiet} graphs=${quiet} steps=${data.steps.length} />`}
      </section>
    `;
  });
}

function parted(graphs, fits) {
  return [graphs.filter(fits), graphs.filter((graph) => !fits(graph))];
}

/** Whether a graph would only say that there was nothing; one that says why it has no value is not quiet. */
function isQuiet({ key, lines, unit, told }) {
  return (!isKnown(lines) && !Object.keys(told).length) || (FOLDED.includes(key) && isNone(lines, unit));
}

/** The graphs that have nothing to draw, in a line; a search for one shows it. */
function Quiet({ graphs, steps }) {
  const [unknown, none] = parted(graphs, ({ lines }) => !isKnown(lines));
  const told = ([words, those]) =>
    those.length > 0 && html`
      <span key=${words}>${words}: ${those.map(({ key, title, words: about }, place) => html`${place > 0 && ", "}<span key=${key} title=${about}>${title}</span>`)}</span>
    `;
  return html`<p class="graphs-quiet">${[[`None in ${counted(steps, "step")}`, none], ["Not recorded", unknown]].map(told)}</p>`;
}

function AddMetric({ names, pinned }) {
  const free = names.filter((name) => !pinned.includes(name));
  return html`
    <select
      class="input select graphs-add"
      aria-label="Add a graph of a trainer's metric"
      value=""
      onChange=${(event) => event.target.value && pin([...pinned, event.target.value])}
    >
      <option value="">Add a metric</option>
      ${free.map((name) => html`<option key=${name} value=${name}>${visible(name)}</option>`)}
    </select>
  `;
}

function Graph({ graph, data, view, clock, pinned, height = usualHeight(), alone = false }) {
  const name = graph.group === "metrics" ? graph.key.slice("metric/".length) : null;
  const remove = name !== null && !alone && html`
    <button
      type="button"
      class="chart-action"
      title="Take this graph away"
      aria-label=${`Take the graph of ${visible(name)} away`}
      onClick=${() => pin(pinned.filter((one) => one !== name))}
    ><svg viewBox="0 0 16 16" aria-hidden="true"><path d="m4 4 8 8M12 4l-8 8" /></svg></button>
  `;
  return html`
    <${Chart}
      title=${graph.title}
      words=${graph.words}
      x=${data.steps}
      lines=${graph.lines}
      markers=${graph.marks}
      notes=${graph.told}
      unit=${graph.unit}
      smoothing=${view.smoothing}
      zero=${view.zero}
      log=${view.log}
      clock=${clock}
      fenced=${view.fenced}
      range=${view.range}
      onRange=${toRange}
      onPick=${(step) => go({ tab: "completions", query: { step } })}
      onEnlarge=${alone ? null : () => go({ query: { graph: graph.key } })}
      syncKey=${alone ? null : "graphs"}
      height=${height}
      waiting=${data.unread > 0}
      actions=${remove}
    />
  `;
}

const HIGH_PX = 1600;

/** The height of a graph; on a high screen there is room for more. */
function usualHeight() {
  return window.innerHeight >= HIGH_PX ? 280 : undefined;
}

/** One graph over the whole window. */
function Enlarged({ graph, data, view, clock }) {
  const dialog = useRef(null);
  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, [Boolean(graph)]);
  if (!graph) return null;
  const close = () => go({ query: { graph: null } });
  const height = Math.max(220, Math.round(window.innerHeight * 0.62));
  return html`
    <dialog class="graphs-dialog" ref=${dialog} onClose=${close} aria-label=${visible(graph.title)}>
      <${Graph} graph=${graph} data=${data} view=${view} clock=${clock} height=${height} alone=${true} />
      <div class="graphs-dialog-foot">
        <p class="muted">${visible(graph.words)}</p>
        <button type="button" class="button" onClick=${() => dialog.current.close()}>Close <kbd>Esc</kbd></button>
      </div>
    </dialog>
  `;
}

function Nothing({ split, overview }) {
  if (split === "eval") return html`<${Empty} title="Nothing was evaluated" hint="Graphs of evaluations appear with the first one." />`;
  if (overview.completions) {
    return html`<${Empty}
      title="No training steps"
      hint="These completions were scored without a trainer, so there is nothing to draw over steps. They are on the Completions tab."
    />`;
  }
  return html`<${Empty} title="No step yet" hint="The graphs begin with the first batch that the training scores; this page waits for it." />`;
}
