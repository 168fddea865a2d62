/** The table of all completions: chosen by conditions, sorted by any column, searched, with columns of one's choice. */
import { go, of } from "../../lib/address.js";
import { get, useApi } from "../../lib/api.js";
import { count, counted, percent, visible } from "../../lib/format.js";
import { useKeys } from "../../lib/keys.js";
import { SAVED } from "../../lib/saved.js";
import { html, useRef } from "../../lib/view.js";
import { CopyButton, copied, exactText } from "../../parts/copy.js";
import { Choice, Search, Toggle } from "../../parts/fields.js";
import { Reading } from "../../parts/reading.js";
import { Empty, Loading, ProblemNote } from "../../parts/states.js";
import { Table as Rows } from "../../parts/table.js";
import { allColumns, keysIn, sortOf, textOf, usualKeys } from "./columns.js";
import { commandOf, conditionOf, joined } from "../../lib/conditions.js";
import { Pager, splitsOf } from "./fields.js";
import { AddFilter, ChooseColumns, Where } from "./filters.js";
import { useSearch } from "./search.js";

const PAGE = 50;
const PLACES = [
  ["", "everywhere"],
  ["completion", "in completions"],
  ["prompt", "in prompts"],
  ["data", "in the data"],
  ["reason", "in reasons"],
  ["error,traceback", "in errors"],
  ["output", "in output"],
];

/** Change what is asked for: the first page, with what is new. */
function change(query) {
  go({ query: { at: null, until: null, ...query } }, { replace: true });
}

/** The table; all that is chosen lies in the address, in the language of the command line. */
export function Table({ run, overview, query }) {
  const splits = splitsOf(overview);
  const split = query.split || splits[0] || "train";
  const keys = keysIn(query.cols);
  const columns = keys && keys.filter((key) => key.startsWith("column.")).map((key) => key.slice("column.".length));
  const asked = {
    where: query.where,
    sort: query.by,
    split,
    [query.re === "1" ? "grep" : "find"]: query.find,
    in: query.find ? query.in : null,
    until: query.until,
    columns: columns?.length ? JSON.stringify(columns) : null,
  };
  const searching = Boolean(query.find);
  const paged = useApi(searching ? null : of(run, "table"), { ...asked, from: query.at, limit: PAGE });
  const search = useSearch(searching ? of(run, "table") : null, asked, PAGE);
  const { data, problem, reload } = searching ? search : paged;
  const last = useRef(null); // a wrong condition must not take the fields away
  if (data) last.current = data;
  const about = data || last.current || { rewards: [], numbers: [], data: [], matched: null };
  const whole = allColumns(about);
  const chosen = (keys || usualKeys(about)).map((key) => whole.find((one) => one.key === key)).filter(Boolean);
  return html`
    <div class="bar">
      <${Finder} query=${query} />
      ${splits.length > 1 && html`<${Choice} label="Split" value=${split} options=${[...splits, ["all", "both"]]} onChange=${(next) => change({ split: next })} />`}
    </div>
    <div class="bar">
      <${Where} value=${query.where || ""} example=${about.rewards[0]?.name ?? "reward"} onChange=${(where) => change({ where })} />
      <${AddFilter} columns=${whole} onAdd=${(name, sign, value) => change({ where: joined(query.where || "", conditionOf(name, sign, value)) })} />
      <${ChooseColumns} columns=${whole} chosen=${chosen.map((one) => one.key)} usual=${usualKeys(about)} left=${about.data_left} onChange=${(next) => go({ query: { cols: next && textOf(next) } }, { replace: true })} />
      <span class="push"></span>
      ${!SAVED && html`<${Exports} run=${run} asked=${asked} about=${about} keys=${chosen.map((one) => one.key)} />`}
      <${CopyButton} words="Copy as command" label="Copy the command that lists the same in a terminal" text=${commandOf(run, asked)} />
    </div>
    ${problem && (problem.status === 400 ? html`<p class="wrong-filter" role="alert">${visible(problem.words)}</p>` : html`<${ProblemNote} problem=${problem} retry=${reload} />`)}
    ${!problem && !data && html`<${Loading} rows=${10} label="Loading the completions" />`}
    ${!problem && data && html`<${Body} run=${run} data=${data} query=${query} columns=${chosen} whole=${whole} search=${searching ? search : null} reload=${reload} />`}
  `;
}

/** What is looked for, as a text or as a regular expression, and where. */
function Finder({ query }) {
  const regular = query.re === "1";
  return html`
    <${Search} label="Search in the completions" hint=${regular ? "Regular expression" : "Search texts"} value=${query.find || ""} onChange=${(find) => change({ find })} />
    <${Toggle} label="Regular expression" value=${regular} onChange=${(on) => change({ re: on ? 1 : null })} />
    <${Choice} label="Where to search" shown=${false} value=${query.in || ""} options=${PLACES} onChange=${(fields) => change({ in: fields || null })} />
  `;
}

function Body({ run, data, query, columns, whole, search, reload }) {
  const sort = query.by && keyOf(whole, query.by);
  const open = (row) => go({ query: { prompt: row.prompt, right: row.id, left: null, epoch: null, from: null } });
  const shown = columns.map((column) => (column.copies ? copying(run, column) : column));
  useKeys([["c", "Copy the completion of the row", () => copyFocused(run, data.rows)]]);
  if (data.reading) return html`<${Reading} reading=${data.reading} reload=${reload} verb="Read" />`;
  return html`
    <div class="bar table-state">
      ${search ? html`<${Searched} search=${search} />` : html`<p class="faint" role="status">${counted(data.matched, "completion")}${query.where ? " that fit" : ""}</p>`}
      ${Boolean(query.until) && data.newer > 0 && html`<button type="button" class="button" onClick=${() => change({})}>${count(data.newer)} newer: show them</button>`}
      <span class="push"></span>
      ${!search && html`<${Pager} offset=${data.from} shown=${data.rows.length} limit=${data.limit} of=${data.matched} things="completions" onOffset=${(at) => go({ query: { at: at || null, until: data.until } })} />`}
    </div>
    ${
      data.rows.length
        ? html`<${Rows} label="Completions" columns=${search ? [MATCH, ...shown] : shown} rows=${data.rows} rowKey=${(row) => row.id} sort=${sort} onSort=${(key) => change({ by: sortOf(whole, key) })} onRow=${open} />`
        : (!search || search.done) && html`<${Empty} title=${search ? "No text has a match" : "No completion fits"} hint=${search ? "Search for other words, or in other texts." : "Widen the filter, or clear it."} />`
    }
  `;
}

/** The key of the column that is sorted by a name, with its "-". */
function keyOf(columns, by) {
  const column = columns.find((one) => one.sort === by.replace(/^-/, ""));
  return column ? `${by.startsWith("-") ? "-" : ""}${column.key}` : by;
}

const MATCH_BEFORE = 12; // Characters, so few that the match itself is in sight
const MATCH = {
  key: "match",
  title: "Match",
  sortable: false,
  className: "match-cell",
  render: ({ match }) => html`
    <span class="line-of-text">
      <span class="chip">${visible(match.name ? `${match.field} ${match.name}` : match.field)}</span>
      ${" "}${visible(match.before.slice(-MATCH_BEFORE))}<mark>${visible(match.match)}</mark>${visible(match.after)}
    </span>
  `,
};

/** How far a search is, with the ways to stop it and to go on. */
function Searched({ search }) {
  const { data, running, done, stopped, stop, further } = search;
  const { end, matched, rows } = data;
  return html`
    <p class="reading" role="status">
      <progress max=${matched || 1} value=${done ? matched || 1 : end} aria-label="Searched so far"></progress>
      ${count(rows.length)} with a match in ${count(end)} of ${count(matched)}${done ? "" : ` (${percent(end / matched)})`}${stopped ? ", stopped" : ""}
    </p>
    ${running && html`<button type="button" class="button" onClick=${stop}>Stop</button>`}
    ${!running && !done && html`<button type="button" class="button" onClick=${further}>${stopped ? "Search on" : "Search for more"}</button>`}
  `;
}

/** Links to the file of what is shown: all rows that fit, with these columns. */
function Exports({ run, asked, about, keys }) {
  const cols = JSON.stringify(keys);
  const pairs = Object.entries({ ...asked, columns: null, until: asked.until || about.until, cols }).filter(([, value]) => value);
  const query = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
  const off = !keys.length;
  return html`
    <span class="exports" role="group" aria-label="Export what is shown">
      <span class="field-label">Export</span>
      ${["csv", "jsonl"].map((kind) => html`<a key=${kind} class="button" aria-disabled=${off ? "true" : null} href=${off ? null : `${of(run, "table")}.${kind}?${query}`} download title="All completions that are chosen, with the columns that are shown and whole texts">${kind === "csv" ? "CSV" : "JSON Lines"}</a>`)}
    </span>
  `;
}

/** A column whose text can be copied whole. */
function copying(run, column) {
  return {
    ...column,
    render: (row) =>
      hasText(row, column) ? html`<span class="cell-copies">${column.render(row)}<${CopyButton} label=${`Copy the ${column.copies} of completion ${row.id}`} text=${() => wholeText(run, row, column)} /></span>` : column.render(row),
  };
}

function hasText(row, { copies, reward }) {
  return Boolean(reward ? row.scores[reward]?.[copies] : copies === "prompt" ? row.prompt_text : row.text);
}

/** The whole text of a cell, which has only the beginning. */
async function wholeText(run, row, { copies, reward }) {
  if (copies === "prompt") return exactText((await get(of(run, "prompt"), { prompt: row.prompt, rest: 1, limit: 1 })).prompt);
  const { completion, scores } = await get(of(run, "completion"), { id: row.id, rest: 1 });
  if (copies === "completion") return exactText(completion);
  return scores.find((one) => one.reward === reward)?.[copies] ?? "";
}

async function copyFocused(run, rows) {
  const id = document.activeElement?.closest("tr[data-row]")?.dataset.row;
  const row = rows.find((one) => String(one.id) === id) || rows[0];
  if (row) await copied(await wholeText(run, row, { copies: "completion" }));
}
