/** Runs compared with the first one on the rows that both have: scored files, and trainings by their last evaluation. */
import { go, href } from "../../lib/address.js";
import { useApi } from "../../lib/api.js";
import { count, counted, number, signed, visible } from "../../lib/format.js";
import { html } from "../../lib/view.js";
import { Name } from "../../parts/chip.js";
import { Choice } from "../../parts/fields.js";
import { Loading, ProblemNote } from "../../parts/states.js";

const TOTAL = "reward";
const SELF = ""; // how rows are matched where the server may choose
const INTERVAL = "The mean difference with its 95 % interval. Rows of one prompt are not independent, so the standard error is clustered by prompt (Miller, arXiv 2411.00640); t of Student's distribution with one degree less than there are prompts";

/** One table for each run after the first; trainings are compared when asked to, because all their rows are read. */
export function Pairs({ runs, query }) {
  const [first, ...others] = runs;
  if (!others.length) return null;
  const isOpen = query.pairs ? query.pairs === "1" : runs.every((one) => one.steps === 0);
  const toggle = (event) => event.target.open !== isOpen && go({ query: { pairs: event.target.open ? 1 : 0 } }, { replace: true });
  return html`
    <details class="panel runs-pairs" open=${isOpen} onToggle=${toggle}>
      <summary><h2>On the same rows</h2><span class="faint cut">how the others differ from ${visible(first.name)}, row by row</span></summary>
      ${isOpen && others.map((one) => html`<${Pair} key=${one.name} first=${first} other=${one} by=${query.by} />`)}
    </details>
  `;
}

function Pair({ first, other, by }) {
  const { data, problem, reload } = useApi("/api/compare", { first: first.name, other: other.name, by }, { live: false });
  const title = html`<h3><${Name} name=${other.name} /> <span class="faint">against</span> <${Name} name=${first.name} /></h3>`;
  if (problem) return html`<section class="runs-pair">${title}<${ProblemNote} problem=${problem} retry=${reload} />${by && html`<button type="button" class="button" onClick=${() => go({ query: { by: null } }, { replace: true })}>Match rows in another way</button>`}</section>`;
  if (!data) return html`<section class="runs-pair">${title}<${Loading} rows=${3} label="Comparing row by row" /></section>`;
  const options = [[SELF, by ? "what fits best" : `what fits best: ${visible(data.by)}`], ...data.ways.map((way) => [way, visible(way)])];
  return html`
    <section class="runs-pair" aria-label=${`${visible(other.name)} against ${visible(first.name)}`}>
      <div class="bar">
        ${title}
        <span class="faint">${matched(data)}</span>
        <span class="push"></span>
        <${Choice} label="Match rows by" value=${by || SELF} options=${options} onChange=${(next) => go({ query: { by: next || null } }, { replace: true })} />
      </div>
      <${Measures} data=${data} />
      ${data.notes.map((note) => html`<p class="muted" key=${note}>${visible(note)}</p>`)}
      ${data.examples.length > 0 && html`<${Changed} data=${data} />`}
    </section>
  `;
}

function matched(data) {
  const alone = [
    [data.first_alone, data.first],
    [data.other_alone, data.other],
  ];
  return [
    `${counted(data.rows, "row")} in both`,
    ...alone.filter(([rows]) => rows > 0).map(([rows, name]) => `${count(rows)} only in ${visible(name)}`),
    Math.max(...data.repeated) > 0 && `several completions of a row count with their mean`,
  ]
    .filter(Boolean)
    .join(" · ");
}

function Measures({ data }) {
  return html`
    <div class="runs-figures" role="region" tabindex="0" aria-label=${`Figures of ${visible(data.other)} against ${visible(data.first)}`}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col"><span class="unseen">What is compared</span></th>
            <th scope="col" class="right">${visible(data.first)}</th>
            <th scope="col" class="right">${visible(data.other)}</th>
            <th scope="col" class="right" title=${INTERVAL}>Difference</th>
            <th scope="col" class="right" title=${INTERVAL}>95 % interval</th>
            <th scope="col" class="right" title="Rows of which both have a value">Rows</th>
            <th scope="col" class="right" title="Rows with a higher value here than in the first run">Wins</th>
            <th scope="col" class="right" title="Rows with a lower value">Losses</th>
            <th scope="col" class="right" title="Rows with the same value">Ties</th>
            <th scope="col" class="right" title="Rows that flip from wrong to right. Right is at least halfway between the lowest and the highest value of all pairs">Gained</th>
            <th scope="col" class="right" title="Rows that flip from right to wrong">Lost</th>
          </tr>
        </thead>
        <tbody>${data.measures.map((measure) => html`<${Measure} key=${measure.name} measure=${measure} data=${data} />`)}</tbody>
      </table>
    </div>
  `;
}

function Measure({ measure, data }) {
  const reasons = [...Object.entries(measure.left_out).map(([why, rows]) => `${counted(rows, "row")} left out: ${why}`), ...uncounted(measure, data)].join("; ");
  const interval = measure.low === null ? (measure.pairs ? "one prompt: not known" : "–") : `${number(measure.low)} to ${number(measure.high)}`;
  const isClear = measure.low !== null && (measure.low > 0 || measure.high < 0);
  return html`
    <tr>
      <th scope="row" class="runs-figure-name">${measure.name === TOTAL ? html`<b>Reward</b>` : visible(measure.name)}</th>
      <td class="right">${number(measure.first)}</td>
      <td class="right">${number(measure.other)}</td>
      <td class="right">${isClear ? html`<b>${signed(measure.difference)}</b>` : signed(measure.difference)}</td>
      <td class="right">${interval}</td>
      <td class="right">${count(measure.pairs)}</td>
      <td class="right">${count(measure.wins)}</td>
      <td class="right">${count(measure.losses)}</td>
      <td class="right">${count(measure.ties)}</td>
      <td class="right" title=${`right from ${number(measure.right)}`}>${count(measure.gained)}</td>
      <td class="right" title=${`right from ${number(measure.right)}`}>${count(measure.lost)}</td>
    </tr>
    ${reasons && html`<tr class="runs-left-out"><td colspan="11" class="faint">${visible(reasons)}</td></tr>`}
  `;
}

/** How many completions of the rows count nowhere, and why, for each run that has any. */
function uncounted(measure, data) {
  return measure.uncounted
    .map((reasons, side) => [Object.entries(reasons), side ? data.other : data.first])
    .filter(([reasons]) => reasons.length)
    .map(([reasons, name]) => `completions of ${name} without a value: ${reasons.map(([why, rows]) => `${count(rows)} ${why}`).join(", ")}`);
}

/** The rows that change most, each with its completion on either side. */
function Changed({ data }) {
  return html`
    <details class="runs-changed">
      <summary>The ${count(data.examples.length)} rows whose ${data.measures[0].name === TOTAL ? "reward" : visible(data.measures[0].name)} changes most</summary>
      <ul>
        ${data.examples.map(
          (row) => html`
            <li key=${row.first_id}>
              <a href=${href({ run: data.first, tab: "completions", query: { id: row.first_id } })} title=${`Completion ${row.first_id} of ${visible(data.first)}`}>${number(row.first)}</a>
              <span aria-hidden="true">→</span>
              <a href=${href({ run: data.other, tab: "completions", query: { id: row.other_id } })} title=${`Completion ${row.other_id} of ${visible(data.other)}`}>${number(row.other)}</a>
              <span class="cut">${visible(row.prompt)}</span>
            </li>
          `,
        )}
      </ul>
    </details>
  `;
}
