/** By group: the reward of each group of the data over the steps, and its mean with an interval. */
import { go, href, of } from "../../lib/address.js";
import { useApi } from "../../lib/api.js";
import { count, number, visible } from "../../lib/format.js";
import { html, useMemo } from "../../lib/view.js";
import { Chart } from "../../parts/chart.js";
import { seriesColour } from "../../parts/chart-paint.js";
import { Name } from "../../parts/chip.js";
import { Choice } from "../../parts/fields.js";
import { Interval } from "../../parts/interval.js";
import { Reading } from "../../parts/reading.js";
import { Empty, Loading, ProblemNote } from "../../parts/states.js";
import { Table } from "../../parts/table.js";

const HEIGHT = 260;
const NONE = [];
const INTERVAL =
  "The 95 % interval of the mean; the completions of a prompt are taken as alike, so it is as wide as the prompts differ";
const FAILED = "Completions for which a reward failed that weighs anything: they are in no mean, whatever stood in";

/** The columns of the data that make groups; the choice is in the address. */
export function GroupBy({ run, column }) {
  const { data } = useApi(of(run, "columns"), {}, { live: false });
  const names = [...(data?.columns || NONE)];
  if (column && !names.includes(column)) names.push(column);
  if (!names.length) return null;
  const options = [["", "no column"], ...names.map((name) => [name, visible(name)])];
  return html`<${Choice} label="Group by" value=${column || ""} options=${options} onChange=${(by) => go({ query: { by: by || null } }, { replace: true })} />`;
}

/** One of the run's rewards, or the weighted sum. */
export function Measure({ label, name, value, rewards }) {
  const options = [["", "the reward"], ...rewards.map((reward) => [reward, visible(reward)])];
  return html`<${Choice} label=${label} value=${value || ""} options=${options} onChange=${(next) => go({ query: { [name]: next || null } }, { replace: true })} />`;
}

/** The section. */
export function ByGroup({ run, split, column, reward, rewards, view, clock, onRange }) {
  const { data, problem, reload } = useApi(of(run, "groups"), { column, split, reward });
  const lines = useMemo(() => (data ? linesOf(data) : NONE), [data]);
  return html`
    <section class="graphs-group" aria-label=${`By ${visible(column)}`}>
      <div class="bar">
        <h2 class="graphs-group-title">By ${visible(column)}</h2>
        <${Measure} label="Of" name="byof" value=${reward} rewards=${rewards} />
        <span class="push"></span>
        <button type="button" class="button is-bare" onClick=${() => go({ query: { by: null, byof: null } }, { replace: true })}>Close</button>
      </div>
      ${problem && html`<${ProblemNote} problem=${problem} retry=${reload} />`}
      ${!data && !problem && html`<${Loading} rows=${4} label="Loading the groups" />`}
      ${data && html`<${Reading} reading=${data.reading} reload=${reload} />`}
      ${data && !data.groups.length && !data.reading && html`<${Empty} title="No groups" hint=${`Nothing was scored of ${split}.`} />`}
      ${data && data.groups.length > 0 && html`
        <div class="graphs-split">
          ${data.steps.length > 0 && html`
            <${Chart} title=${`${data.measure} by ${data.column}`} words="The mean of each group at each step" x=${data.steps} lines=${lines} smoothing=${view.smoothing} zero=${view.zero} log=${view.log} clock=${clock} fenced=${view.fenced} range=${view.range} onRange=${onRange} onPick=${(step) => go({ tab: "completions", query: { step } })} syncKey="graphs" height=${HEIGHT} />
          `}
          <${Table} label=${`Groups by ${visible(column)}`} columns=${columnsOf(data)} rows=${data.groups} rowKey=${(row) => row.label} />
        </div>
      `}
    </section>
  `;
}

const isRest = (data, place) => data.rest > 0 && place === data.groups.length - 1;

function shadeOf(data, place) {
  return isRest(data, place) ? "--ink-3" : seriesColour(place);
}

function linesOf(data) {
  return data.groups.map((group, place) => ({
    name: group.label,
    values: data.curves[place].map((value) => value ?? undefined), // a group need not be met at each step
    low: null,
    high: null,
    edge: false,
    dashed: isRest(data, place),
    colour: shadeOf(data, place),
  }));
}

function columnsOf(data) {
  const bounds = spanOf(data.groups);
  return [
    { key: "label", title: visible(data.column), className: "group-label", render: (row) => html`<${Label} data=${data} row=${row} />` },
    { key: "mean", title: "Mean", align: "right", render: (row) => html`<b>${number(row.mean)}</b>` },
    { key: "interval", title: "95 % interval", hint: INTERVAL, render: (row) => html`<${Interval} value=${row.mean} low=${row.low} high=${row.high} bounds=${bounds} />` },
    { key: "prompts", title: "Prompts", align: "right", render: (row) => count(row.prompts) },
    { key: "scored", title: "Scored", align: "right", render: (row) => count(row.scored) },
    { key: "skipped", title: "Skipped", align: "right", render: (row) => count(row.skipped) },
    { key: "failed", title: "Failed", align: "right", hint: FAILED, render: (row) => html`<span class=${row.failed ? "worse" : null}>${count(row.failed)}</span>` },
  ];
}

/** A group's name behind its line's colour; a value leads to the prompts that have it. */
function Label({ data, row }) {
  const place = data.groups.indexOf(row);
  const shade = shadeOf(data, place);
  const isValue = !data.are_ranges && !isRest(data, place) && !["null", "(missing)"].includes(row.label);
  const name = html`<${Name} name=${row.label} most=${40} />`;
  return html`
    <i class="chart-swatch" style=${{ color: `var(${shade})` }}></i>${" "}
    ${isValue ? html`<a href=${href({ tab: "completions", query: { col: data.column, val: row.label } })}>${name}</a>` : name}
  `;
}

/** The lowest and highest number that the intervals have to show. */
function spanOf(groups) {
  const numbers = groups.flatMap(({ low, high, mean }) => [low, high, mean]).filter((value) => Number.isFinite(value));
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  return high > low ? [low, high] : [low - 0.5, low + 0.5];
}
