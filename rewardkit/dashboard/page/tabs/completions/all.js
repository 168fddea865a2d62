/** All completions in the order of recording, those that fit a filter. */
import { go, of } from "../../lib/address.js";
import { useApi } from "../../lib/api.js";
import { count, epochsPassed, number } from "../../lib/format.js";
import { html } from "../../lib/view.js";
import { Name } from "../../parts/chip.js";
import { Score } from "../../parts/completion.js";
import { Choice } from "../../parts/fields.js";
import { Empty, Loading, ProblemNote } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Filters, Line, PlainSums, filterOf, splitsOf, totalColumns } from "./fields.js";

const before = new Map(); // what a page was reached from, by the place after which it begins

/** A page of them; the next one goes on after the last row. */
export function All({ run, overview, query }) {
  const splits = splitsOf(overview);
  const split = query.split || splits[0] || "train";
  const asked = { split, after: query.after, ...filterOf(query) };
  const { data, problem, reload } = useApi(of(run, "completions"), asked);
  if (problem && !data) return html`<${ProblemNote} problem=${problem} retry=${reload} />`;
  if (!data) return html`<${Loading} rows=${10} label="Loading the completions" />`;
  const place = query.after || null;
  const back = before.get(place);
  const further = () => {
    before.set(String(data.after), place);
    go({ query: { after: data.after } });
  };
  const open = (row) => go({ query: { prompt: row.prompt, right: row.id, left: null, epoch: null, from: null } });
  return html`
    <div class="bar">
      ${splits.length > 1 && html`<${Choice} label="Split" value=${split} options=${splits} onChange=${(next) => go({ query: { split: next, after: null } })} />`}
      <${Filters} rewards=${overview.rewards.map((one) => one.name)} query=${query} />
      <${PlainSums} query=${query} />
      <span class="push"></span>
      <div class="pager">
        ${place && html`<button type="button" class="button" onClick=${() => go({ query: { after: null } })}>From the start</button>`}
        ${place && back !== undefined && html`<button type="button" class="button" onClick=${() => go({ query: { after: back } })}>Page before</button>`}
        <button type="button" class="button" disabled=${data.after === null} onClick=${further}>Next page</button>
      </div>
    </div>
    ${
      data.rows.length
        ? html`<${Table} label="Completions" columns=${columnsOf(data.rewards, query)} rows=${data.rows} rowKey=${(row) => row.id} onRow=${open} />`
        : html`<${Empty} title="No completion fits" hint="Clear the filter, or widen it." />`
    }
  `;
}

function columnsOf(rewards, query) {
  return [
    { key: "id", title: "Number", align: "right", className: "narrow", render: (row) => html`<span class="faint">${count(row.id)}</span>` },
    { key: "step", title: "Step", align: "right", render: (row) => count(row.step) },
    { key: "epoch", title: "Epoch", align: "right", render: (row) => epochsPassed(row.epoch) },
    { key: "prompt", title: "Prompt", align: "right", render: (row) => count(row.prompt) },
    { key: "text", title: "Completion", className: "text-cell", render: (row) => html`<${Line} text=${row.text} />` },
    ...rewards.map(({ key }) => scoreColumn(key)),
    ...totalColumns(query),
    { key: "advantage", title: "Advantage", align: "right", render: (row) => number(row.advantage) },
    { key: "tokens", title: "Tokens", align: "right", render: (row) => count(row.tokens) },
  ];
}

/** The column of one reward in one version. */
export function scoreColumn(key) {
  return {
    key,
    title: html`<${Name} name=${key} />`,
    align: "right",
    className: "score-cell",
    render: (row) => (row.scores[key] ? html`<${Score} ...${row.scores[key]} />` : html`<span class="faint">–</span>`),
  };
}
