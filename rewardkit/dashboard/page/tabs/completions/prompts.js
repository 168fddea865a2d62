/** The table of prompts. */
import { go, of } from "../../lib/address.js";
import { useApi } from "../../lib/api.js";
import { count, number, visible } from "../../lib/format.js";
import { html } from "../../lib/view.js";
import { Choice, Search, useDraft } from "../../parts/fields.js";
import { Reading } from "../../parts/reading.js";
import { Empty, Loading, ProblemNote } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Line, Pager, TOTAL } from "./fields.js";
import { pictureless } from "../../parts/pictures.js";

const PAGE = 50;
const PER = [
  ["prompt", "a row of the data"],
  ["question", "all rows of a text"],
];

/** All prompts of the run: sort, search, filter by a column, open one. */
export function Prompts({ run, query }) {
  const sort = query.psort || "index";
  const column = query.col || "";
  const asked = {
    sort: sort.replace(/^-/, ""),
    order: sort.startsWith("-") ? "down" : "up",
    search: query.q,
    column: query.val ? column : null,
    value: query.val,
    reward: query.pby,
    per: query.per,
    offset: query.pfrom,
    limit: PAGE,
  };
  const { data, problem, reload } = useApi(of(run, "prompts"), asked);
  if (problem && !data) return html`<${ProblemNote} problem=${problem} retry=${reload} />`;
  if (!data) return html`<${Loading} rows=${10} label="Loading the prompts" />`;
  const set = (change) => go({ query: { pfrom: null, ...change } }, { replace: true });
  const open = (row) => go({ query: { prompt: row.index, from: null } });
  return html`
    <div class="bar">
      <${Search} label="Search in the prompts" value=${query.q || ""} onChange=${(q) => set({ q })} />
      ${data.columns.length > 0 && html`<${ColumnFilter} columns=${data.columns} column=${column} value=${query.val || ""} onChange=${set} />`}
      ${data.columns_left > 0 && html`<span class="faint">${count(data.columns_left)} more columns are not shown</span>`}
      ${data.rewards.length > 1 && html`<${Choice} label="Scores of" value=${data.reward || ""} options=${[["", "the reward"], ...data.rewards.map((name) => [name, visible(name)])]} onChange=${(pby) => set({ pby: pby || null })} />`}
      <${Choice} label="A line is" value=${data.per} options=${PER} onChange=${(per) => set({ per })} />
      <span class="push"></span>
      <${Pager} offset=${data.offset} shown=${data.rows.length} limit=${data.limit} of=${data.matched} things="prompts" onOffset=${(from) => go({ query: { pfrom: from || null } })} />
    </div>
    <${Reading} reading=${data.reading} reload=${reload} verb=${query.q ? "Searched" : "Read"} />
    ${
      data.rows.length
        ? html`<${Table} label="Prompts" columns=${columnsOf(data)} rows=${data.rows} rowKey=${(row) => row.index} sort=${sort} onSort=${(psort) => set({ psort: psort === "index" ? null : psort })} onRow=${open} />`
        : !data.reading && html`<${Empty} title="No prompt fits" hint="Search for other words, or clear the filter." />`
    }
  `;
}

/** The prompts that have these words in a column. */
function ColumnFilter({ columns, column, value, onChange }) {
  const chosen = column || columns[0];
  const draft = useDraft(value, (val) => onChange({ col: val ? chosen : null, val }), { pause: true });
  return html`
    <${Choice} label="Column" value=${chosen} options=${columns.map((name) => [name, visible(name)])} onChange=${(col) => onChange({ col, val: draft.value })} />
    <label class="field">
      <span class="unseen">Words in the column</span>
      <input class="input column-words" type="text" placeholder="has …" spellcheck=${false} autocomplete="off" ...${draft} />
    </label>
  `;
}

function columnsOf({ columns, several_epochs: several, reward }) {
  const what = reward ? visible(reward) : "reward";
  const whose = reward ? `What ${what} scored, in all its versions` : TOTAL;
  return [
    { key: "index", title: "Prompt", align: "right", first: "up", className: "narrow", render: (row) => html`<span class="faint">${row.index}</span>` },
    { key: "text", title: "Text", first: "up", className: "text-cell", render: (row) => html`<${Line} text=${row.text} />` },
    { key: "epochs", title: "Epochs", align: "right", hint: "The epochs in which it was asked", render: epochsOf },
    { key: "completions", title: "Completions", align: "right", render: (row) => count(row.completions) },
    { key: "best", title: `Best ${what}`, align: "right", hint: `${whose}: the highest of the prompt`, render: (row) => number(row.best) },
    { key: "mean", title: `Mean ${what}`, align: "right", hint: `${whose}: the mean over the prompt`, render: (row) => html`<b>${number(row.mean)}</b>` },
    ...(several ? changes(whose) : []),
    ...columns.map((name) => ({
      key: `column:${name}`,
      title: visible(name),
      first: "up",
      className: "column-cell",
      render: (row) => (name in row.columns ? html`<span class="line-of-text">${pictureless(visible(row.columns[name]))}</span>` : html`<span class="faint">–</span>`),
    })),
    { key: "length", title: "Characters", align: "right", hint: "Length of the prompt in characters: the record does not know its tokens", render: (row) => count(row.length) },
  ];
}

/** What a prompt's rewards or scores were at first and at last. */
const changes = (whose) => [
  { key: "first_mean", title: "First epoch", align: "right", hint: `${whose}: the mean in the first epoch in which it was asked`, render: (row) => number(row.first_mean) },
  { key: "last_mean", title: "Last epoch", align: "right", hint: `${whose}: the mean in the latest epoch in which it was asked, so far`, render: (row) => number(row.last_mean) },
  { key: "change", title: "Change", align: "right", first: "up", hint: "The last epoch's mean less the first epoch's: sorted upwards, the prompt that got worst comes first", render: changeOf },
];

function changeOf({ change }) {
  if (change === null) return html`<span class="faint">–</span>`;
  return html`<span class=${change < 0 ? "worse" : null}>${change > 0 ? "+" : ""}${number(change)}</span>`;
}

function epochsOf({ epochs, first_epoch: first, last_epoch: last }) {
  if (!epochs) return html`<span class="faint">–</span>`;
  if (epochs === 1) return String(first);
  return epochs === last - first + 1 ? `${first}–${last}` : `${epochs} of ${first}–${last}`;
}
