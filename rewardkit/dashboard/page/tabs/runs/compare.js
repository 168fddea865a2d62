/** Several runs over each other: the total and one more number of each, as curves and in figures. */
import { go, href } from "../../lib/address.js";
import { passes } from "../../lib/api.js";
import { useCurvesOf } from "../../lib/curves.js";
import { count, counted, signed, visible } from "../../lib/format.js";
import { html, useMemo } from "../../lib/view.js";
import { Chart } from "../../parts/chart.js";
import { placed, written } from "../../parts/chart-data.js";
import { COLOURS, seriesColour } from "../../parts/chart-paint.js";
import { Name } from "../../parts/chip.js";
import { Choice, Toggle } from "../../parts/fields.js";
import { ProblemNote } from "../../parts/states.js";

const TOTAL = "total_reward";
const TOTALS = [TOTAL, "total_reward_std"];
const OTHERS = [["total_reward_std", "total_reward_std"], ["length", "completion length"], ["truncated", "truncated"]];
const METRIC = "metric/";
const RECENT = 10;
const TALL = 220;
const EVERY_MS = 3000;
const HIGH_IS_GOOD = /^(total_reward$|reward\/)/;

/** The graphs and figures of the runs that were chosen; the first is what the others are compared with. */
export function Compare({ runs, asked, fenced, onDrop }) {
  const options = useMemo(() => optionsOf(runs), [runs]);
  const known = options.map(([key]) => key);
  const metric = known.includes(asked) ? asked : known[0];
  const names = runs.map((one) => one.name);
  const query = {
    graphs: [TOTAL, metric],
    metrics: metric?.startsWith(METRIC) ? [metric.slice(METRIC.length)] : [],
  };
  const [heard] = useCurvesOf(names, query, { every: runs.some((one) => one.state === "running") ? EVERY_MS : 0 });
  if (!runs.length) return html`<p class="panel runs-none faint">Choose runs below to see their curves here.</p>`;
  const troubles = names.map((name) => heard[name]?.problem).filter((one) => one && !passes(one));
  const choice = html`<${Choice}
    label="Metric"
    shown=${false}
    value=${metric}
    options=${options}
    onChange=${(next) => go({ query: { metric: next === known[0] ? null : next } }, { replace: true })}
  />`;
  return html`
    <section class="stack" aria-label="Curves of the chosen runs">
      ${troubles.length > 0 && html`<${ProblemNote} problem=${troubles[0]} />`}
      <div class="bar">
        <${Toggle} value=${fenced} onChange=${(on) => go({ query: { outliers: on ? "beyond" : null } }, { replace: true })} label="Outliers beyond the frame" />
      </div>
      <div class="runs-compare">
        <${Compared} graph=${TOTAL} names=${names} heard=${heard} fenced=${fenced} onDrop=${onDrop} />
        ${metric && html`<${Compared} graph=${metric} names=${names} heard=${heard} fenced=${fenced} onDrop=${onDrop} choice=${choice} />`}
      </div>
    </section>
  `;
}

/** What can be compared: the rewards, those of most runs first, what else is known of every run, the trainer's metrics. */
function optionsOf(runs) {
  const counts = new Map();
  for (const { name } of runs.flatMap((one) => one.rewards)) counts.set(name, (counts.get(name) || 0) + 1);
  const rewards = [...counts].sort(([, one], [, other]) => other - one).map(([name]) => [`reward/${name}`, visible(name)]);
  const metrics = [...new Set(runs.flatMap((one) => one.metrics))].sort();
  return [...rewards, ...OTHERS, ...metrics.map((name) => [METRIC + name, visible(name)])];
}

function Compared({ graph, names, heard, fenced, onDrop, choice = null }) {
  const data = names.map((name) => heard[name]?.data);
  const about = data.map((one) => graphIn(one, graph)).find(Boolean);
  const lines = useMemo(() => names.map((name, place) => lineOf(name, place, heard[name]?.data, graph)), [names.join("\n"), graph, ...data]);
  const waiting = data.some((one) => !one || one.unread > 0);
  const unread = TOTALS.includes(graph) ? data.reduce((sum, one) => sum + (one?.unread || 0), 0) : 0;
  return html`
    <div class="panel runs-compared">
      <${Chart}
        title=${about?.title || graph.replace(/^(reward|metric)\//, "")}
        words=${about?.words}
        lines=${lines}
        unit=${about?.unit}
        height=${TALL}
        syncKey="runs"
        waiting=${waiting}
        fenced=${fenced}
        actions=${choice}
      />
      ${unread > 0 && html`<p class="faint runs-unread" role="status">Reading totals: ${count(unread)} batches to go; the curves and figures are of those that were read</p>`}
      <${Figures} lines=${lines} unit=${about?.unit} best=${HIGH_IS_GOOD.test(graph)} onDrop=${onDrop} />
    </div>
  `;
}

function graphIn(data, key) {
  return data?.graphs.find((one) => one.key === key);
}

/** The main line of a run's graph, with the run's own steps. */
function lineOf(name, place, data, key) {
  const graph = graphIn(data, key);
  const values = graph?.lines.length ? placed(graph.lines[0].values, data.steps, new Set(data.unscored), graph.sparse) : [];
  return { name, x: values.length ? data.steps : [], values, low: null, high: null, dashed: place >= COLOURS, colour: seriesColour(place) };
}

/** Each run's figures; the difference is at the last step that a run has in common with the first one. */
function Figures({ lines, unit, best, onDrop }) {
  const write = written(unit);
  const [first] = lines;
  return html`
    <div class="runs-figures">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col" class="right runs-last-one">Last</th>
            <th scope="col" class="right" title=${`The mean of the last ${RECENT} steps with a value`}>Last ${RECENT}</th>
            <th scope="col" class="right">${best ? "Best" : "Highest"}</th>
            <th scope="col" class="right" title=${`The mean of ${RECENT} steps less that of ${visible(first.name)}, both up to the last step that both have`}>Difference</th>
            <th scope="col"><span class="unseen">Take out</span></th>
          </tr>
        </thead>
        <tbody>
          ${lines.map((line, place) => html`<${Figure} key=${line.name} line=${line} first=${place ? first : null} write=${write} unit=${unit} onDrop=${onDrop} />`)}
        </tbody>
      </table>
    </div>
  `;
}

function Figure({ line, first, write, unit, onDrop }) {
  const points = pointsOf(line);
  const top = points.reduce((best, one) => (best === null || one[1] > best[1] ? one : best), null);
  const steps = counted(points.length, "step");
  return html`
    <tr>
      <th scope="row" class="runs-figure-name">
        <i class=${`chart-swatch${line.dashed ? " is-dashed" : ""}`} style=${{ color: `var(${line.colour})` }}></i>
        <a href=${href({ run: line.name, tab: "graphs" })} title=${`${visible(line.name)}: ${steps} with a value`}><${Name} name=${line.name} /></a>
      </th>
      <td class="right runs-last-one" title=${points.length ? `step ${count(points.at(-1)[0])}` : null}>${write(points.at(-1)?.[1])}</td>
      <td class="right">${write(recent(points))}</td>
      <td class="right">${write(top?.[1])}${top && html`<span class="faint runs-at"> at ${count(top[0])}</span>`}</td>
      <td class="right">${first ? html`<${Difference} points=${points} others=${pointsOf(first)} unit=${unit} write=${write} />` : html`<span class="faint">reference</span>`}</td>
      <td class="runs-drop">
        <button type="button" class="chart-action" aria-label=${`Take ${visible(line.name)} out of the graphs`} title="Take out" onClick=${() => onDrop(line.name)}>
          <svg viewBox="0 0 16 16" aria-hidden="true"><path d="m4 4 8 8M12 4l-8 8" /></svg>
        </button>
      </td>
    </tr>
  `;
}

function Difference({ points, others, unit, write }) {
  if (!points.length || !others.length) return write(null);
  const last = Math.min(points.at(-1)[0], others.at(-1)[0]);
  const [mine, theirs] = [points, others].map((some) => recent(some.filter(([step]) => step <= last)));
  if (mine === null || theirs === null) return html`<span class="faint">no step in common</span>`;
  const apart = mine - theirs;
  const words = unit === "share" || unit === "seconds" ? `${apart > 0 ? "+" : ""}${write(apart)}` : signed(apart);
  return html`${words}<span class="faint runs-at"> at ${count(last)}</span>`;
}

/** The known [step, value] pairs of a line. */
function pointsOf(line) {
  return line.x.map((step, place) => [step, line.values[place]]).filter(([, value]) => Number.isFinite(value));
}

function recent(points) {
  const some = points.slice(-RECENT).map(([, value]) => value);
  return some.length ? some.reduce((sum, value) => sum + value, 0) / some.length : null;
}
