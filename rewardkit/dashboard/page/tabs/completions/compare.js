/** One prompt through the epochs: two of its completions side by side, and all of them below. */
import { go, href, of } from "../../lib/address.js";
import { get, useApi } from "../../lib/api.js";
import { count, counted, epochsPassed, number, visible } from "../../lib/format.js";
import { compared } from "../../lib/diff.js";
import { useKeys } from "../../lib/keys.js";
import { readPreference, writePreference } from "../../lib/store.js";
import { html, useMemo, useRef, useState } from "../../lib/view.js";
import { Name } from "../../parts/chip.js";
import { CompletionText, Score, Scores, plainOf, talks } from "../../parts/completion.js";
import { CopyButton, exactText } from "../../parts/copy.js";
import { Toggle, Turn } from "../../parts/fields.js";
import { Pictures, pictureless } from "../../parts/pictures.js";
import { Empty, Loading, ProblemNote } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { Filters, Line, Pager, PlainSums, filterOf, scoreColumn, totalColumns } from "./fields.js";

const MODES = [
  ["text", "Text"],
  ["conversation", "Conversation"],
  ["markdown", "Markdown"],
  ["math", "Mathematics"],
];
const RENDERED = ["markdown", "math"];
const PAGE = 50;

/** The view of one prompt; all that is chosen lies in the address. */
export function Compare({ run, overview, query }) {
  const sort = query.sort || "id";
  const asked = {
    prompt: query.prompt,
    sort: sort.replace(/^-/, ""),
    order: sort.startsWith("-") ? "down" : "up",
    offset: query.from,
    limit: PAGE,
    per: query.per,
    ...filterOf(query),
  };
  const { data, problem, reload } = useApi(of(run, "prompt"), asked);
  const before = useRef(null);
  if (data && data.index === Number(query.prompt)) before.current = data;
  const shown = before.current;
  const whole = shown && shown.index === Number(query.prompt);
  return html`
    <div class="stack completions compare">
      <${Head} query=${query} prompts=${overview.prompts} data=${whole ? shown : null} />
      ${problem && !whole && html`<${ProblemNote} problem=${problem} retry=${reload} />`}
      ${!problem && !whole && html`<${Loading} rows=${8} label="Loading the prompt" />`}
      ${whole && html`<${PromptBox} run=${run} data=${shown} mode=${chosenMode(query)} />`}
      ${whole && !shown.completions && html`<${Empty} title="No completions of this prompt" hint="Those of steps that were done again were taken away." />`}
      ${whole && shown.completions > 0 && html`<${Panes} run=${run} data=${shown} query=${query} />`}
      ${whole && shown.completions > 0 && html`<${AllOf} data=${shown} query=${query} sort=${sort} rewards=${overview.rewards} />`}
    </div>
  `;
}

const CLOSED = { prompt: null, left: null, right: null, epoch: null, from: null, sort: null };

/** The way back, and the prompts before and after. */
function Head({ query, prompts, data }) {
  const at = Number(query.prompt);
  const { before, next, place, of: all } = data || { before: at > 0 ? at - 1 : null, next: at + 1 < prompts ? at + 1 : null, place: at, of: prompts };
  const turn = (to) => to !== null && go({ query: { ...CLOSED, prompt: to, sort: query.sort } });
  const back = () => go({ query: CLOSED });
  useKeys([
    ["u", "Back to the list", back],
    ["n", "Next prompt", () => turn(next)],
    ["p", "Prompt before", () => turn(before)],
  ]);
  const where = query.step !== undefined ? `Step ${query.step}` : query.list === "steps" ? "Steps" : query.list === "all" ? "All completions" : "Prompts";
  return html`
    <div class="bar">
      <button type="button" class="button is-bare back" onClick=${back}>
        <svg viewBox="0 0 16 16" aria-hidden="true"><path d="m9.5 4-4 4 4 4" /></svg>${where}
      </button>
      <div class="stepper">
        <${Turn} to="before" label="Prompt before" disabled=${before === null} onClick=${() => turn(before)} />
        <h2>${data?.per === "question" ? `Question ${count(place + 1)}` : `Prompt ${query.prompt}`}</h2>
        <${Turn} to="next" label="Next prompt" disabled=${next === null} onClick=${() => turn(next)} />
        <span class="faint">of ${count(all)}</span>
      </div>
      ${data?.per === "question" && data.prompts.length > 1 && html`<span class="faint">${counted(data.completions, "solution")} in ${counted(data.prompts.length, "row")}${data.differing.length ? ` that differ in ${data.differing.map(visible).join(", ")}` : ""}</span>`}
    </div>
  `;
}

function hasPictures({ messages = [] }) {
  return messages.some(({ parts }) => parts.some(({ kind }) => kind === "picture"));
}

/** The prompt with its row's columns. */
function PromptBox({ run, data, mode }) {
  const isRendered = RENDERED.includes(mode);
  const [rest, setRest] = useState(null);
  const more = useApi(rest === data.index ? of(run, "prompt") : null, { prompt: data.index, rest: 1, limit: 1 });
  const body = (rest === data.index && more.data?.prompt) || data.prompt;
  const pictures = (name) => data.pictures?.[name] || [];
  const columns = Object.entries(data.columns).sort(([one], [other]) => Number(pictures(other).length > 0) - Number(pictures(one).length > 0));
  return html`
    <section class="panel prompt-box" aria-label="The prompt">
      <span class="prompt-copy"><${CopyButton} label="Copy the prompt" text=${async () => exactText((await get(of(run, "prompt"), { prompt: data.index, rest: 1, limit: 1 })).prompt)} /></span>
      <div class="prompt-text" tabindex="0" role="region" aria-label="Text of the prompt">
        <${CompletionText} text=${body} mode=${isRendered ? (hasPictures(body) ? "markdown" : mode) : body.messages ? "conversation" : "text"} onRest=${() => setRest(data.index)} />
      </div>
      ${
        columns.length > 0 &&
        html`
          <div class="prompt-columns" tabindex="0" role="region" aria-label="Columns of the row">
            <dl>
            ${columns.map(([name, value]) => html`<${ColumnBox} key=${name} name=${name} value=${value} mode=${isRendered ? "math" : "text"} pictures=${pictures(name)} />`)}
            </dl>
          </div>
          ${data.columns_left > 0 && html`<p class="faint">${count(data.columns_left)} more columns are not shown</p>`}
        `
      }
    </section>
  `;
}

/** One column of the row: its pictures, and its text unless it is nothing beside them. */
function ColumnBox({ name, value, mode, pictures }) {
  const text = pictures.length ? pictureless(value) : value;
  return html`
    <div>
      <dt>${visible(name)}</dt>
      <dd>
        ${pictures.length > 0 && html`<${Pictures} pictures=${pictures} name=${name} />`}
        ${!value && html`<span class="faint">empty</span>`}
        ${text && text !== "[picture]" && html`<${CompletionText} text=${text} mode=${mode} />`}
      </dd>
    </div>
  `;
}

/** Where a completion stands: the epoch, and its place in it. */
function placeOf(epochs, id) {
  const at = epochs.findIndex((one) => one.ids.includes(id));
  return at < 0 ? null : { at, place: epochs[at].ids.indexOf(id) };
}

/** Which two are shown: what the address names, else the best of an epoch, else those that the server proposes. */
function chosen(data, query) {
  const ofEpoch = data.epochs.find((one) => String(one.epoch) === query.epoch);
  return {
    left: query.left ? Number(query.left) : (ofEpoch?.best ?? data.left),
    right: query.right ? Number(query.right) : data.right,
  };
}

function Panes({ run, data, query }) {
  const ids = chosen(data, query);
  const left = useCompletion(run, ids.left);
  const right = useCompletion(run, ids.right);
  const mode = chosenMode(query) ?? bodyMode(left.data, right.data);
  const differs = query.diff !== "0";
  const diff = useDiff(left.data, right.data, mode === "text" && differs);
  const toMode = (next) => {
    writePreference(READING, RENDERED.includes(next) ? next : null);
    go({ query: { mode: next } }, { replace: true });
  };
  const toDiff = (on) => go({ query: { diff: on ? null : "0" } }, { replace: true });
  const show = (side, id) => go({ query: side === "left" ? { left: id, epoch: null } : { right: id } }, { replace: true });
  const step = (side, by) => {
    const at = placeOf(data.epochs, ids[side]);
    const next = at && data.epochs[at.at].ids[at.place + by];
    if (next) show(side, next);
  };
  const toEpoch = (side, at) => {
    const next = data.epochs[at];
    if (!next) return;
    if (side === "left") go({ query: { left: null, epoch: next.epoch === null ? "null" : next.epoch } }, { replace: true });
    else show("right", next.best);
  };
  const byEpoch = (side, by) => toEpoch(side, (placeOf(data.epochs, ids[side])?.at ?? 0) + by);
  const swap = () => go({ query: { left: ids.right, right: ids.left, epoch: null } }, { replace: true });
  useKeys([
    ["ArrowRight", "Next completion in the epoch (shift: right side)", (event) => step(event.shiftKey ? "right" : "left", 1)],
    ["ArrowLeft", "Completion before (shift: right side)", (event) => step(event.shiftKey ? "right" : "left", -1)],
    ["]", "Next epoch on the left", () => byEpoch("left", 1)],
    ["[", "Epoch before on the left", () => byEpoch("left", -1)],
    ["}", "Next epoch on the right", () => byEpoch("right", 1)],
    ["{", "Epoch before on the right", () => byEpoch("right", -1)],
    ["d", "Differences on or off", () => toDiff(!differs)],
    ["m", "Text, conversation, Markdown or mathematics", () => toMode(MODES[(MODES.findIndex(([one]) => one === mode) + 1) % MODES.length][0])],
    ["x", "Change sides", swap],
  ]);
  const pane = (side, heard) => html`
    <${Pane}
      side=${side}
      id=${ids[side]}
      prompts=${data.prompts}
      differing=${data.differing}
      heard=${heard}
      epochs=${data.epochs}
      mode=${mode}
      marks=${diff ? diff[side] : null}
      onStep=${(by) => step(side, by)}
      onEpoch=${(at) => toEpoch(side, at)}
      onShow=${(id) => show(side, id)}
    />
  `;
  return html`
    <div class="bar compare-bar">
      <div class="segments" role="group" aria-label="Show as">
        ${MODES.map(([one, words]) => html`<button key=${one} type="button" class="segment" aria-pressed=${String(one === mode)} onClick=${() => toMode(one)}>${words}</button>`)}
      </div>
      ${mode === "text" && html`<${Toggle} label="Differences" value=${differs} onChange=${toDiff} />`}
      ${diff && html`<span class="faint" role="status">${diffWords(diff, left.data.completion.whole && right.data.completion.whole)}</span>`}
      <span class="push"></span>
      <button type="button" class="button is-bare" onClick=${swap}>Change sides</button>
    </div>
    <div class="compare-body">
      <div class="panes">${pane("left", left)}${pane("right", right)}</div>
      <${Scores} left=${left.data} right=${right.data} />
    </div>
  `;
}

const READING = "reading";

/** How texts are to be shown: as the address says, else as this browser chose last; null for their own way. */
function chosenMode(query) {
  const mode = query.mode ?? readPreference(READING, null);
  return MODES.some(([one]) => one === mode) ? mode : null;
}

/** A conversation is shown as one unless another way is asked for. */
function bodyMode(left, right) {
  return talks(left?.completion) || talks(right?.completion) ? "conversation" : "text";
}

/** A completion, and how to fetch the rest of its text. */
function useCompletion(run, id) {
  const [whole, setWhole] = useState(null);
  const { data, problem, reload } = useApi(id ? of(run, "completion") : null, { id, rest: whole === id ? 1 : null });
  return { data: data?.id === id ? data : null, problem, reload, onRest: () => setWhole(id), text: async () => exactText((await get(of(run, "completion"), { id, rest: 1 })).completion) };
}

function useDiff(left, right, on) {
  const texts = on && left?.completion && right?.completion ? [left, right].map((one) => plainOf(one.completion)) : [null, null];
  return useMemo(() => (texts[0] === null ? null : compared(...texts)), texts);
}

function diffWords({ way, changed }, whole) {
  if (way === "same") return whole ? "The two texts are the same" : "What is shown of the two texts is the same";
  if (way === "apart") return "The two texts share next to nothing";
  if (way === "none") return "Too long and too different to compare in time";
  const what = counted(changed, "piece differs", "pieces differ");
  return way === "lines" ? `${what}, compared by lines: the texts are long` : what;
}

const NAMES = { left: "Left", right: "Right" };

/** One of the two completions, and the ways to another one. */
function Pane({ side, id, prompts, differing, heard, epochs, mode, marks, onStep, onEpoch, onShow }) {
  const { data, problem, reload, onRest } = heard;
  const at = placeOf(epochs, id);
  const epoch = at && epochs[at.at];
  return html`
    <section class=${`panel pane pane-${side}`} aria-label=${`${NAMES[side]} completion`}>
      <div class="pane-ways">
        <span class="pane-side">${NAMES[side]}</span>
        ${data?.completion && html`<${CopyButton} label=${`Copy the ${side} completion`} text=${heard.text} />`}
        ${epochs.length > 1 && at && html`<${EpochSlider} side=${side} epochs=${epochs} at=${at.at} onEpoch=${onEpoch} />`}
        ${data && !prompts.includes(data.prompt) && html`<a class="chip is-warn" href=${href({ query: { ...CLOSED, prompt: data.prompt, right: id } })}>of prompt ${data.prompt}</a>`}
        ${
          epoch &&
          html`
            <div class="stepper">
              <${Turn} to="before" label=${`${NAMES[side]}: completion before`} disabled=${at.place === 0} onClick=${() => onStep(-1)} />
              <span class="stepper-words">${at.place + 1} of ${count(epoch.completions)}</span>
              <${Turn} to="next" label=${`${NAMES[side]}: next completion`} disabled=${at.place + 1 >= epoch.ids.length} onClick=${() => onStep(1)} />
            </div>
          `
        }
        <span class="push"></span>
        ${
          epoch && epoch.best === id
            ? html`<span class="chip is-good">best${epochs.length > 1 ? " of the epoch" : ""}</span>`
            : epoch && html`<button type="button" class="button is-bare" onClick=${() => onShow(epoch.best)}>Best${epochs.length > 1 ? " of the epoch" : ""}</button>`
        }
      </div>
      ${data && html`<p class="pane-facts">${[...differing.filter((name) => name in data.columns).map((name) => `${visible(name)} ${visible(data.columns[name])}`), factsOf(data)].join(" · ")}</p>`}
      ${data && html`<${PaneScores} data=${data} />`}
      <div class="pane-text" tabindex="0" role="region" aria-label=${`Text of the ${side} completion`}>
        ${problem && !data && html`<${ProblemNote} problem=${problem} retry=${reload} />`}
        ${!problem && !data && html`<${Loading} rows=${3} label="Loading the completion" />`}
        ${data && html`<${CompletionText} text=${data.completion} mode=${mode} marks=${marks} onRest=${onRest} />`}
      </div>
    </section>
  `;
}

/** The reward and what each function gave, above the text, so that they stay in view beside a long one. */
function PaneScores({ data }) {
  return html`
    <ul class="pane-scores" aria-label="Scores" tabindex="0">
      <li class="pane-total"><span>Reward</span> <b>${number(data.total)}</b></li>
      ${data.scores.map(({ key, reward, ...call }) => html`<li key=${key}><span><${Name} name=${reward} /></span> <${Score} ...${call} /></li>`)}
    </ul>
  `;
}

function factsOf({ step, epoch, split, rank, id, truncated, tokens }) {
  const facts = [
    step === null ? null : `step ${count(step)}`,
    epoch === null ? null : `epoch ${epochsPassed(epoch)}`,
    split === "train" ? null : split,
    tokens === null ? null : counted(tokens, "token"),
    truncated ? "truncated" : null,
    rank ? `rank ${rank}` : null,
    `number ${count(id)}`,
  ];
  return facts.filter(Boolean).join(" · ");
}

/** Through the epochs; its mean reward stands beside each for a first impression. */
function EpochSlider({ side, epochs, at, onEpoch }) {
  const { epoch, mean } = epochs[at];
  const words = epoch === null ? "epoch unknown" : `Epoch ${epoch}`;
  const own = (event) => event.key.startsWith("Arrow") && event.stopPropagation();
  return html`
    <label class="epoch-slider">
      <span class="epoch-words">${words}</span>
      <input
        type="range"
        min="0"
        max=${epochs.length - 1}
        step="1"
        value=${at}
        aria-label=${`${NAMES[side]}: epoch`}
        aria-valuetext=${`${words}, mean reward ${number(mean)}`}
        title=${`mean reward ${number(mean)}`}
        onInput=${(event) => onEpoch(Number(event.target.value))}
        onKeyDown=${own}
      />
    </label>
  `;
}

/** All completions of the prompt; a row goes to the right pane, with shift to the left one. */
function AllOf({ data, query, sort, rewards }) {
  const ids = chosen(data, query);
  const shift = useRef(false);
  const note = (event) => {
    shift.current = event.shiftKey;
  };
  const view = (row, left) => {
    go({ query: left ? { left: row.id, epoch: null } : { right: row.id } }, { replace: true });
    if (window.innerWidth < 900) document.querySelector(left ? ".pane-left" : ".pane-right")?.scrollIntoView({ block: "start" });
  };
  const set = (change) => go({ query: { from: null, ...change } }, { replace: true });
  return html`
    <section class="stack all-of" aria-label="All completions of this prompt">
      <div class="bar">
        <h2>All completions</h2>
        <${Filters} rewards=${rewards.map((one) => one.name)} query=${query} />
        <${PlainSums} query=${query} />
        <span class="push"></span>
        <${Pager} offset=${data.offset} shown=${data.rows.length} limit=${data.limit} of=${data.matched} things="completions" onOffset=${(from) => go({ query: { from: from || null } }, { replace: true })} />
      </div>
      ${
        data.rows.length
          ? html`
              <div onClickCapture=${note} onKeyDownCapture=${note}>
                <${Table}
                  label="All completions of this prompt"
                  columns=${columnsOf(data, ids, view, query)}
                  rows=${data.rows}
                  rowKey=${(row) => row.id}
                  selected=${ids.right}
                  sort=${sort}
                  onSort=${(next) => set({ sort: next === "id" ? null : next })}
                  onRow=${(row) => view(row, shift.current)}
                />
              </div>
            `
          : html`<${Empty} title="No completion fits" hint="Clear the filter, or widen it." />`
      }
    </section>
  `;
}

function columnsOf(data, ids, view, query) {
  return [
    { key: "epoch", title: "Epoch", align: "right", first: "up", render: (row) => epochsPassed(row.epoch) },
    { key: "step", title: "Step", align: "right", first: "up", render: (row) => html`${count(row.step)}${row.split === "eval" && html` <span class="chip">eval</span>`}` },
    { key: "text", title: "Completion", sortable: false, className: "text-cell", render: (row) => html`<${Line} text=${row.text} />` },
    ...data.differing.map((name) => ({ key: `column:${name}`, title: visible(name), sortable: false, className: "column-cell", render: (row) => html`<span class="line-of-text">${visible(row.columns[name] ?? "–")}</span>` })),
    ...data.rewards.map(({ key }) => scoreColumn(key)),
    ...totalColumns(query),
    { key: "advantage", title: "Advantage", align: "right", render: (row) => number(row.advantage) },
    { key: "tokens", title: "Tokens", align: "right", hint: "Length of the completion in tokens", render: (row) => html`${count(row.tokens)}${row.truncated && html` <span class="chip is-warn">truncated</span>`}` },
    { key: "view", title: "", label: "View", sortable: false, className: "view-cell", render: (row) => html`<${ViewButtons} row=${row} ids=${ids} view=${view} />` },
  ];
}

function ViewButtons({ row, ids, view }) {
  return html`
    <span class="view-buttons">
      <button type="button" class="button is-small" aria-pressed=${String(row.id === ids.left)} aria-label=${`View ${row.id} on the left`} onClick=${() => view(row, true)}>Left</button>
      <button type="button" class="button is-small" aria-pressed=${String(row.id === ids.right)} aria-label=${`View ${row.id} on the right`} title="View on the right; with shift on the left" onClick=${(event) => view(row, event.shiftKey)}>View</button>
    </span>
  `;
}
