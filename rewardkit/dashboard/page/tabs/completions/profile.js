/** Pass rates: how often each prompt is right over its last groups, and the command that writes those to go on with. */
import { go, of } from "../../lib/address.js";
import { get, useApi } from "../../lib/api.js";
import { count, counted, number, percent, visible } from "../../lib/format.js";
import { SAVED } from "../../lib/saved.js";
import { html, useEffect, useRef, useState } from "../../lib/view.js";
import { save } from "../../parts/chart-paint.js";
import { Choice, NumberField, useDraft } from "../../parts/fields.js";
import { Interval } from "../../parts/interval.js";
import { Reading } from "../../parts/reading.js";
import { Empty, Loading, ProblemNote } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Line, Pager, splitsOf } from "./fields.js";

const LAST = 4;
const COPIED_MS = 1500;
const KINDS = [
  ["all", "All", "prompts"],
  ["never_right", "Never right", "never_right"],
  ["in_between", "In between", "in_between"],
  ["always_right", "Always right", "always_right"],
  ["unknown", "No pass rate", "unknown"],
];
const WILSON = "The 95 % interval of the pass rate, Wilson's: wide where few completions count, and never beyond 0 and 1";
const CHANGE = "The pass rate of its last groups less that of its first ones, of both as many as count and at most half of all: sorted upwards, the prompt that got worst comes first";

/** The list of prompts by their pass rates. */
export function Profile({ run, overview, query }) {
  const splits = splitsOf(overview);
  const split = query.split || splits[0] || "train";
  const sort = query.rsort || "rate";
  const asked = {
    split,
    reward: query.right,
    pass_at: query.passat,
    last: query.last,
    kind: query.kind,
    keep: query.keep,
    sort: sort.replace(/^-/, ""),
    order: sort.startsWith("-") ? "down" : "up",
    offset: query.rfrom,
  };
  const { data, problem, reload } = useApi(of(run, "profile"), asked);
  const set = (change) => go({ query: { rfrom: null, ...change } }, { replace: true });
  const rewards = [["", "the reward"], ...overview.rewards.map(({ name }) => [name, visible(name)])];
  return html`
    <div class="bar">
      ${splits.length > 1 && html`<${Choice} label="Split" value=${split} options=${splits} onChange=${(next) => set({ split: next })} />`}
      <${Choice} label="Right by" value=${query.right || ""} options=${rewards} onChange=${(right) => set({ right: right || null })} />
      <${NumberField} label="from" value=${query.passat} onChange=${(passat) => set({ passat })} step="any" hint="> half" />
      <${NumberField} label="Last groups" value=${query.last} onChange=${(last) => set({ last })} low=${1} hint=${String(LAST)} />
      <${Keep} value=${query.keep} onChange=${(keep) => set({ keep: keep || null })} />
      <span class="push"></span>
      ${data && html`<${Pager} offset=${data.offset} shown=${data.rows.length} limit=${data.limit} of=${data.matched} things="prompts" onOffset=${(from) => go({ query: { rfrom: from || null } })} />`}
    </div>
    ${problem && html`<${ProblemNote} problem=${problem} retry=${reload} />`}
    ${!data && !problem && html`<${Loading} rows=${10} label="Loading the pass rates" />`}
    ${data && html`
      <${Reading} reading=${data.reading} reload=${reload} />
      <${Kinds} data=${data} kind=${query.kind || "all"} onChange=${(kind) => set({ kind: kind === "all" ? null : kind })} />
      <${Rates} data=${data} />
      ${!SAVED && html`<${Command} run=${run} split=${split} query=${query} asked=${asked} />`}
      ${data.rows.length
        ? html`<${Table} label="Pass rates" columns=${COLUMNS} rows=${data.rows} rowKey=${(row) => row.prompt} sort=${sort} onSort=${(rsort) => set({ rsort: rsort === "rate" ? null : rsort })} onRow=${(row) => go({ query: { prompt: row.prompt, from: null } })} />`
        : !data.reading && html`<${Empty} title="No prompt fits" hint="Choose another kind, or a wider range of pass rates." />`}
    `}
  `;
}

/** A range of pass rates, such as 0.1..0.9. */
function Keep({ value, onChange }) {
  const draft = useDraft(value, onChange);
  return html`
    <label class="field">
      <span class="field-label">Rates</span>
      <input class="input number-input" type="text" placeholder="0.1..0.9" spellcheck=${false} autocomplete="off" ...${draft} />
    </label>
  `;
}

/** How many prompts are of each kind; a click shows them. */
function Kinds({ data, kind, onChange }) {
  const counts = { prompts: data.prompts, ...data.kinds };
  const kinds = KINDS.filter(([name, , key]) => name !== "unknown" || counts[key] > 0 || kind === name);
  return html`
    <div class="profile-kinds">
      <div class="segments" role="group" aria-label="Prompts that are">
        ${kinds.map(([name, words, key]) => html`
          <button key=${name} type="button" class="segment" aria-pressed=${String(name === kind)} onClick=${() => onChange(name)}>
            ${words}${" "}<span class="faint">${count(counts[key])}</span>
          </button>
        `)}
      </div>
      <p class="faint">
        Right: ${visible(data.passes)}. Each ${data.by === "question" ? "question" : "prompt"} over its last ${counted(data.last, "group")}.
        ${data.several_versions > 0 && html`${" "}${counted(data.several_versions, "prompt")} with scores of several versions of a reward.`}
        ${data.exceeds_scale && html`${" "}Scores go beyond 1: say from where on they are right.`}
      </p>
    </div>
  `;
}

/** How many prompts have which pass rate. */
function Rates({ data }) {
  const most = Math.max(...data.rates, 1);
  const names = data.rates.map((_, place) => (place === 0 ? "0" : place === 11 ? "1" : `above ${(place - 1) / 10} to ${place === 10 ? "below 1" : place / 10}`));
  const words = names.map((name, place) => `${name}: ${count(data.rates[place])}`).join(", ");
  return html`
    <figure class="profile-rates">
      <div class="profile-bars" role="img" aria-label=${`Prompts by pass rate. ${words}`}>
        ${data.rates.map((value, place) => html`
          <span key=${place} class=${place === 0 || place === 11 ? "is-end" : null} title=${`pass rate ${names[place]}: ${counted(value, "prompt")}`}><i style=${{ height: `${(100 * value) / most}%` }}></i></span>
        `)}
      </div>
      <figcaption><span>never right</span><span>prompts by pass rate</span><span>always right</span></figcaption>
    </figure>
  `;
}

const RANGES = { never_right: "0..0", always_right: "1..1" };

/** The command that writes these prompts as a data set. */
function Command({ run, split, query, asked }) {
  const [copied, setCopied] = useState(false);
  const range = query.keep || RANGES[query.kind] || "0.1..0.9";
  const options = {
    "--reward": query.right, "--pass-at": query.passat, "--last": query.last, "--split": split === "train" ? null : split,
    "--keep": range, "--out": "keep.jsonl",
  };
  const words = Object.entries(options).filter(([, value]) => value).flatMap(([name, value]) => [`${name}=${quoted(value)}`]);
  const command = ["rewardkit profile", quoted(run), ...words].join(" ");
  const copy = async () => {
    await navigator.clipboard?.writeText(command);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return html`
    <p class="profile-command">
      <span class="faint">As a data set:</span> <code>${visible(command)}</code>
      <button type="button" class="button" onClick=${copy}>${copied ? "Copied" : "Copy"}</button>
      <${Download} run=${run} asked=${{ ...asked, keep: range }} />
    </p>
  `;
}

/** The same rows as a file of this browser's, fetched a part at a time; a second click stops it. */
function Download({ run, asked }) {
  const [state, setState] = useState(null); // null, or {done, of}, or {problem}
  const stop = useRef(null);
  useEffect(() => () => stop.current?.abort(), []);
  const load = async () => {
    stop.current = new AbortController();
    const lines = new Set(); // rows that differ in columns of a completion alone come again
    try {
      setState({ done: 0, of: 0 });
      for (let offset = 0; offset !== null; ) {
        const part = await get(of(run, "prompt_rows"), { ...asked, offset }, { signal: stop.current.signal });
        if (part.reading) continue;
        part.lines.forEach((line) => lines.add(line));
        setState({ done: part.done, of: part.of });
        offset = part.next;
      }
      if (lines.size) save(new Blob([...lines], { type: "application/jsonl" }), "keep.jsonl");
      setState(lines.size ? null : { problem: "No prompt has such a pass rate." });
    } catch (wrong) {
      setState(wrong.name === "AbortError" ? null : { problem: wrong.words || String(wrong) });
    }
  };
  const isLoading = state?.done !== undefined;
  return html`
    <button type="button" class="button" onClick=${isLoading ? () => stop.current.abort() : load}>
      ${isLoading ? `Stop: ${count(state.done)} of ${count(state.of)} prompts` : "Download"}
    </button>
    ${state?.problem && html`<span class="worse" role="alert">${visible(state.problem)}</span>`}
  `;
}

/** By how much a pass rate changed; what its interval leaves open is faint. */
function changeOf({ change, change_low: low, change_high: high, change_groups: groups }) {
  if (change === null) return html`<span class="faint" title=${groups ? null : "One group: nothing to compare"}>–</span>`;
  const kind = low <= 0 && high >= 0 ? "faint" : change < 0 ? "worse" : null;
  return html`<span class=${kind} title=${`${signed(low)} to ${signed(high)} with 95 %, ${counted(groups, "group")} at either end`}>${signed(change)}</span>`;
}

function signed(share) {
  return `${share > 0 ? "+" : ""}${percent(share)}`;
}

/** A word as a shell takes it. */
function quoted(text) {
  return /^[\w./@%+:=-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

const COLUMNS = [
  { key: "prompt", title: "Prompt", align: "right", first: "up", className: "narrow", render: (row) => html`<span class="faint">${row.prompt}</span>` },
  { key: "rate", title: "Pass rate", align: "right", first: "up", render: (row) => html`<b>${percent(row.rate)}</b>` },
  { key: "interval", title: "95 % interval", sortable: false, hint: WILSON, render: (row) => html`<${Interval} value=${row.rate} low=${row.low} high=${row.high} bounds=${[0, 1]} write=${percent} />` },
  { key: "change", title: "Change", align: "right", first: "up", hint: CHANGE, render: changeOf },
  { key: "passed", title: "Right", align: "right", render: (row) => count(row.passed) },
  { key: "counted", title: "Of", align: "right", hint: "Completions that are right or wrong: neither skipped nor failed", render: (row) => count(row.counted) },
  { key: "groups", title: "Groups", align: "right", sortable: false, hint: "How many groups count, the last ones, of how many", render: (row) => `${count(row.groups)} of ${count(row.groups_of_all)}` },
  { key: "skipped", title: "Skipped", align: "right", render: (row) => count(row.skipped) },
  { key: "failed", title: "Failed", align: "right", render: (row) => html`<span class=${row.failed ? "worse" : null}>${count(row.failed)}</span>` },
  { key: "mean", title: "Mean", align: "right", hint: "The mean reward, or score, of the completions that count", render: (row) => number(row.mean) },
  { key: "text", title: "Text", sortable: false, className: "text-cell", render: (row) => html`<${Line} text=${row.text} />` },
];
