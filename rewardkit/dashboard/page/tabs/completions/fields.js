/** What the lists of completions share: filters by a reward's outcome, and pages. */
import { go } from "../../lib/address.js";
import { count, number, visible } from "../../lib/format.js";
import { html } from "../../lib/view.js";
import { Name } from "../../parts/chip.js";
import { Score } from "../../parts/completion.js";
import { Choice, NumberField, Toggle, Turn } from "../../parts/fields.js";
import { pictureless } from "../../parts/pictures.js";

/** What the reward of a completion is, and the plain sum beside it. */
export const TOTAL = "The weighted sum of a completion's scores, as the trainer computes it";
export const PLAIN = "The sum of a completion's scores without weights, of the rewards that weigh anything";

/** Whether the tables have a column of plain sums, as the address says. */
export function hasPlain(query) {
  return query.plain === "1";
}

/** Adds the column of plain sums, and takes it away. */
export function PlainSums({ query }) {
  return html`<${Toggle} value=${hasPlain(query)} onChange=${(on) => go({ query: { plain: on ? 1 : null } }, { replace: true })} label="Plain sums" />`;
}

/** The columns of the reward and, where it is asked for, of the plain sum. */
export function totalColumns(query) {
  const total = { key: "total", title: "Reward", hint: TOTAL, align: "right", render: (row) => html`<b>${number(row.total)}</b>` };
  const plain = { key: "plain_sum", title: "Plain sum", hint: PLAIN, align: "right", render: (row) => number(row.plain_sum) };
  return hasPlain(query) ? [total, plain] : [total];
}

/** The splits in which the run has steps. */
export function splitsOf(overview) {
  return ["train", "eval"].filter((split) => overview.steps?.[split]?.[2]);
}

/** Change the query and go back to the first page. */
export function filtered(query) {
  go({ query: { ...query, from: null, after: null } }, { replace: true });
}

/** The filter of the address, as the server takes it. */
export function filterOf({ reward, status, min, max }) {
  return { reward, status: reward ? status : null, min, max };
}

/** Filters by one reward's outcome, or by the weighted sum of all. */
export function Filters({ rewards, query }) {
  const set = (name) => (value) => filtered({ [name]: value });
  const some = ["reward", "status", "min", "max"].some((name) => query[name]);
  const options = [["", "the reward"], ...rewards.map((name) => [name, visible(name)])];
  return html`
    <${Choice} label="Filter by" value=${query.reward || ""} options=${options} onChange=${(reward) => filtered({ reward, status: reward ? query.status : null })} />
    ${query.reward && html`<${Choice} label="Status" shown=${false} value=${query.status || ""} options=${STATUSES} onChange=${set("status")} />`}
    <span class="range">
      <${NumberField} label="from" value=${query.min} onChange=${set("min")} step="any" hint="lowest" />
      <${NumberField} label="to" value=${query.max} onChange=${set("max")} step="any" hint="highest" />
    </span>
    ${some && html`<button type="button" class="button is-bare" onClick=${() => filtered({ reward: null, status: null, min: null, max: null })}>Clear</button>`}
  `;
}

const STATUSES = [
  ["", "any status"],
  ["scored", "scored"],
  ["skipped", "skipped"],
  ["failed", "failed"],
];

/** Which rows are shown of how many, and the ways to those before and after. */
export function Pager({ offset, shown, limit, of: total, things, onOffset, children }) {
  if (!total) return null;
  return html`
    <div class="pager">
      ${children}
      <span class="faint">${count(offset + 1)}–${count(offset + shown)} of ${count(total)} ${things}</span>
      <${Turn} to="before" label="Rows before" disabled=${offset === 0} onClick=${() => onOffset(Math.max(0, offset - limit))} />
      <${Turn} to="next" label="Further rows" disabled=${offset + shown >= total} onClick=${() => onOffset(offset + limit)} />
    </div>
  `;
}

/** A line of text in a table: nothing, an empty text and one that was left out look different. */
export function Line({ text }) {
  if (text === null || text === undefined) return html`<span class="faint">text left out</span>`;
  if (!text.trim()) return html`<span class="faint">${text ? "white space" : "empty text"}</span>`;
  return html`<span class="line-of-text">${pictureless(visible(text))}</span>`;
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
