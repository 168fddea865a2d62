/** The completions of a step, by prompt, the best and the worst first. */
import { go, of } from "../../lib/address.js";
import { useApi } from "../../lib/api.js";
import { count, counted, number } from "../../lib/format.js";
import { useKeys } from "../../lib/keys.js";
import { html, useRef } from "../../lib/view.js";
import { Name } from "../../parts/chip.js";
import { Score } from "../../parts/completion.js";
import { Choice, NumberField, Turn } from "../../parts/fields.js";
import { Empty, Loading, ProblemNote } from "../../parts/states.js";
import { focusRow } from "../../parts/table.js";
import { Filters, Line, PLAIN, Pager, PlainSums, TOTAL, filterOf, filtered, hasPlain, splitsOf } from "./fields.js";

/** One step; the last unless the address names one. */
export function Step({ run, overview, query }) {
  const splits = splitsOf(overview);
  const split = query.split || splits[0] || "train";
  const last = overview.steps?.[split]?.[1] ?? null;
  const step = query.step ?? last;
  const first = query.first || "best";
  const asked = { step, split, first, offset: query.from, ...filterOf(query) };
  const { data, problem, reload } = useApi(step === null ? null : of(run, "completions"), asked);
  const toStep = (next) => next !== null && next !== undefined && go({ query: { list: null, step: next, from: null } });
  const body = useRef(null);
  useKeys([
    ["[", "Step before", () => toStep(data?.before)],
    ["]", "Next step", () => toStep(data?.next)],
    ["j", "Next row", () => focusRow(body.current, 1)],
    ["k", "Row before", () => focusRow(body.current, -1)],
  ]);
  if (step === null) return html`<${Empty} title="No steps" hint="Nobody said at which step these completions were scored; they are under all completions." />`;
  const otherStep = html`<${NumberField} label="Go to step" low=${0} value=${step} onChange=${toStep} />`;
  if (problem && !data) return html`<div class="bar">${otherStep}</div><${ProblemNote} problem=${problem} retry=${reload} />`;
  if (!data) return html`<${Loading} rows=${10} label="Loading the step" />`;
  return html`
    <div class="bar">
      <div class="stepper">
        <${Turn} to="before" label="Step before" disabled=${data.before === null} onClick=${() => toStep(data.before)} />
        <h2>Step ${data.step}</h2>
        <${Turn} to="next" label="Next step" disabled=${data.next === null} onClick=${() => toStep(data.next)} />
      </div>
      ${otherStep}
      ${splits.length > 1 && html`<${Choice} label="Split" value=${split} options=${splits} onChange=${(next) => go({ query: { split: next, step: null, list: "steps", from: null } })} />`}
      <${Choice} label="First" value=${first} options=${FIRSTS} onChange=${(next) => filtered({ first: next === "best" ? null : next })} />
      <${Filters} rewards=${overview.rewards.map((one) => one.name)} query=${query} />
      <${PlainSums} query=${query} />
      <span class="push"></span>
      <${Pager} offset=${data.offset} shown=${data.groups.length} limit=${data.limit} of=${data.matched} things="prompts" onOffset=${(from) => go({ query: { from: from || null } })} />
    </div>
    ${
      data.groups.length
        ? html`<${Groups} data=${data} plain=${hasPlain(query)} body=${body} />`
        : html`<${Empty} title=${`No completion of step ${data.step} fits`} hint="Clear the filter, or go to another step." />`
    }
  `;
}

const FIRSTS = [
  ["best", "best prompts"],
  ["worst", "worst prompts"],
  ["spread", "widest apart"],
];

function Groups({ data, plain, body }) {
  const width = data.rewards.length + (plain ? 5 : 4);
  return html`
    <div class="table-box" role="region" aria-label=${`Completions of step ${data.step}`} tabindex="0" ref=${body}>
      <table class="table groups">
        <thead>
          <tr>
            <th scope="col" class="right" title=${TOTAL}>Reward</th>
            ${plain && html`<th scope="col" class="right" title=${PLAIN}>Plain sum</th>`}
            <th scope="col">Completion</th>
            ${data.rewards.map(({ key }) => html`<th scope="col" class="right" key=${key}><${Name} name=${key} /></th>`)}
            <th scope="col" class="right">Advantage</th>
            <th scope="col" class="right">Tokens</th>
          </tr>
        </thead>
        ${data.groups.map((group) => html`<${Group} key=${group.prompt} group=${group} rewards=${data.rewards} plain=${plain} width=${width} />`)}
      </table>
    </div>
  `;
}

function Group({ group, rewards, plain, width }) {
  const half = group.rows.length / 2;
  const between = group.completions - group.rows.length;
  return html`
    <tbody>
      <tr class="group-head">
        <th scope="rowgroup" colspan=${width}>
          <span class="group-line">
            <button type="button" class="button is-bare" onClick=${() => go({ query: { prompt: group.prompt, from: null } })}>Prompt ${group.prompt}</button>
            <span class="group-text"><${Line} text=${group.text} /></span>
            <span class="faint">${counted(group.completions, "completion")}, reward ${number(group.worst)} to ${number(group.best)}</span>
          </span>
        </th>
      </tr>
      ${group.rows.map(
        (row, place) => html`
          ${between > 0 && place === half && html`<tr class="group-between" key="between"><td colspan=${width}><span>${counted(between, "completion")} between these</span></td></tr>`}
          <${GroupRow} key=${row.id} row=${row} rewards=${rewards} plain=${plain} />
        `,
      )}
    </tbody>
  `;
}

function GroupRow({ row, rewards, plain }) {
  const open = () => go({ query: { prompt: row.prompt, right: row.id, left: null, epoch: null, from: null } });
  const onKeyDown = (event) => {
    if (event.key !== "Enter" || event.target !== event.currentTarget) return;
    event.preventDefault();
    open();
  };
  return html`
    <tr class="row-opens" tabindex="0" aria-label=${`Completion ${row.id}`} onClick=${() => String(window.getSelection()) || open()} onKeyDown=${onKeyDown}>
      <td class="right"><b>${number(row.total)}</b></td>
      ${plain && html`<td class="right">${number(row.plain_sum)}</td>`}
      <td class="text-cell"><${Line} text=${row.text} /></td>
      ${rewards.map(({ key }) => html`<td class="right" key=${key}>${row.scores[key] ? html`<${Score} ...${row.scores[key]} />` : html`<span class="faint">–</span>`}</td>`)}
      <td class="right">${number(row.advantage)}</td>
      <td class="right">${count(row.tokens)}</td>
    </tr>
  `;
}
