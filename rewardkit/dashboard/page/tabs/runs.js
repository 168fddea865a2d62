/** All runs of the folder: what is in each, and the curves of several in one graph. */
import { decoded, go, href } from "../lib/address.js";
import { ago, bytes, clock, count, counted, number, percent, visible } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { html, useMemo } from "../lib/view.js";
import { Name as Shortened } from "../parts/chip.js";
import { seriesColour } from "../parts/chart-paint.js";
import { Search } from "../parts/fields.js";
import { Sparkline } from "../parts/spark.js";
import { Empty, Loading, ProblemNote } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Compare } from "./runs/compare.js";
import { Pairs } from "./runs/pairs.js";

const SHOWN_REWARDS = 2;
const PICKED_AT_FIRST = 4;
const NOTHING = "-";
const TOTAL = "The weighted sum of the scores, as the trainer computes it: its mean at each step, and at the last. Of a scored file, which has no steps, the mean of all rows";

/** The list of runs. */
export default function Runs({ list, query }) {
  if (!list.data) return list.problem ? html`<${ProblemNote} problem=${list.problem} />` : html`<${Loading} rows=${4} label="Loading the runs" tall />`;
  const { runs, folder, there, whole } = list.data;
  if (!runs.length) return html`<${NoRuns} folder=${folder} there=${there} />`;
  return html`<${Listed} runs=${runs} folder=${folder} whole=${whole} query=${query} />`;
}

function NoRuns({ folder, there }) {
  const title = there === false ? `The folder ${visible(folder)} is not there yet` : `No runs in ${visible(folder)} yet`;
  return html`
    <h1 class="unseen">Runs</h1>
    <${Empty} title=${title} hint="A run appears here by itself as soon as its record begins. This makes one:">
      <code class="runs-command">rewardkit score REWARDS DATA --record runs/one</code>
    <//>
  `;
}

function Listed({ runs, folder, whole, query }) {
  const sort = query.sort || "-began";
  const sought = (query.q || "").toLowerCase();
  const sorted = useMemo(() => inOrder(runs, sort), [runs, sort]);
  const shown = sorted.filter((one) => one.name.toLowerCase().includes(sought));
  const picked = pickedOf(runs, query.pick);
  const toggle = (name) => go({ query: { pick: toggled(picked, name) } }, { replace: true });
  const chosen = picked.map((name) => runs.find((one) => one.name === name));
  useKeys([["x", "Compare the run with others, or no more", () => toggleFocused(toggle)]]);
  return html`
    <div class="stack">
      <div class="bar">
        <h1>Runs</h1>
        <span class="faint cut" title=${visible(folder)}>${counted(runs.length, "run")} in ${visible(folder)}</span>
        <span class="push"></span>
        <${Search} label="Search runs" value=${query.q} onChange=${(q) => go({ query: { q } }, { replace: true })} />
      </div>
      ${chosen.some(hasCurve) && html`<${Compare} runs=${chosen.filter(hasCurve)} asked=${query.metric} fenced=${query.outliers === "beyond"} onDrop=${toggle} />`}
      ${runs.some(isComparable) && !chosen.length && html`<p class="panel runs-none faint">Choose runs below to compare them here.</p>`}
      <${Pairs} runs=${chosen} query=${query} />
      <${Table}
        label="Runs"
        columns=${columnsFor(picked, toggle)}
        rows=${shown}
        rowKey=${(one) => one.name}
        sort=${sort}
        onSort=${(next) => go({ query: { sort: next === "-began" ? null : next } })}
        onRow=${(one) => go({ run: one.name, tab: tabOf(one) })}
      />
      ${!whole && html`<p class="faint">Only a part of the folder's subfolders was looked at: there are too many. rewardkit ui with one of them as its RUNS_DIR shows its runs.</p>`}
      ${!shown.length && html`<${Empty} title="No run has this in its name" hint="The search looks at names of runs." />`}
    </div>
  `;
}

function toggleFocused(toggle) {
  const name = document.activeElement?.closest?.("tr[data-row]")?.dataset.row;
  if (name) toggle(name);
}

function toggled(picked, name) {
  const next = picked.includes(name) ? picked.filter((one) => one !== name) : [...picked, name];
  return next.map(encodeURIComponent).join(",") || NOTHING;
}

/** The runs that are compared: those of the address, or the newest and what shares its first reward, scored files apart. */
function pickedOf(runs, asked) {
  const names = new Set(runs.map((one) => one.name));
  if (asked) return asked.split(",").map(decoded).filter((one) => names.has(one));
  const newest = inOrder(runs, "-began").filter(isComparable);
  const first = newest[0]?.rewards.find(isMeasured)?.name;
  const isAlike = (one) => hasCurve(one) === hasCurve(newest[0]) && one.rewards.some((reward) => reward.name === first && isMeasured(reward));
  const alike = newest.filter(isAlike).slice(0, PICKED_AT_FIRST).map((one) => one.name);
  return newest.length && hasCurve(newest[0]) ? alike : alike.reverse(); // of scored files the oldest is the reference
}

function hasCurve(one) {
  return one.rewards.some(({ series }) => series.length);
}

function isMeasured({ last, series }) {
  return series.length > 0 || last !== null;
}

function isComparable(one) {
  return one.rewards.some(isMeasured);
}

/** Where a run opens: a scored file has no steps, and so no graphs. */
function tabOf(one) {
  return one.steps === 0 && one.completions ? "completions" : "graphs";
}

function inOrder(runs, sort) {
  const down = sort.startsWith("-");
  const key = down ? sort.slice(1) : sort;
  const known = (value) => value !== null && value !== undefined;
  return [...runs].sort((one, other) => {
    const [a, b] = [one[key], other[key]];
    if (!known(a) || !known(b)) return Number(known(b)) - Number(known(a));
    const before = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
    return down ? -before : before;
  });
}

function columnsFor(picked, toggle) {
  return [
    { key: "pick", title: "", label: "Compared", sortable: false, className: "runs-pick", render: (one) => html`<${Pick} one=${one} picked=${picked} toggle=${toggle} />` },
    { key: "name", title: "Run", first: "up", className: "runs-name", render: (one) => html`<${Name} one=${one} />` },
    { key: "total", title: "Reward", hint: TOTAL, className: "runs-total", render: (one) => html`<${Total} one=${one} />` },
    { key: "rewards", title: "Scores", hint: "Mean score of each reward at each step, and at the last; of a scored file over all rows", sortable: false, className: "runs-rewards", render: (one) => html`<${Rewards} one=${one} />` },
    { key: "flags", title: "Health", className: "runs-flags", render: (one) => html`<${Flags} one=${one} />` },
    { key: "steps", title: "Steps", align: "right", className: "runs-more", render: (one) => count(one.steps) },
    { key: "completions", title: "Completions", align: "right", className: "runs-more", render: (one) => count(one.completions) },
    { key: "bytes", title: "Size", align: "right", className: "runs-more runs-size", render: (one) => bytes(one.bytes) },
    { key: "began", title: "Began", align: "right", className: "runs-more", render: (one) => html`<span class="muted" title=${clock(one.began)}>${ago(one.began)}</span>` },
  ];
}

function Pick({ one, picked, toggle }) {
  const at = picked.indexOf(one.name);
  if (!isComparable(one)) return null;
  return html`
    <label class="runs-check">
      <input
        type="checkbox"
        checked=${at >= 0}
        style=${at >= 0 ? { accentColor: `var(${seriesColour(at)})` } : null}
        aria-label=${`Compare ${visible(one.name)}`}
        onChange=${() => toggle(one.name)}
      />
    </label>
  `;
}

function Name({ one }) {
  const step = one.last_step === null || one.last_step === undefined ? null : `step ${count(one.last_step)}`;
  const when = one.seen && one.state !== "running" ? ago(one.seen) : null;
  return html`
    <a class="runs-link" href=${href({ run: one.name, tab: tabOf(one) })}>${visible(one.name)}</a>
    <span class="runs-state">
      <span class=${`dot is-${one.state}`} aria-hidden="true"></span>
      <span>${[one.state === "stopped" ? "stopped by an error" : one.state, step, when].filter(Boolean).join(" · ")}</span>
    </span>
    ${one.state_reason && html`<span class="runs-reason cut" title=${visible(one.state_reason)}>${visible(one.state_reason)}</span>`}
  `;
}

function Total({ one }) {
  if (one.total === null) return html`<span class="faint">–</span>`;
  return html`
    <div class="runs-spark">
      <span class="runs-last">${number(one.total)}</span>
      ${one.totals.length > 0 && html`<${Sparkline} name="Reward" series=${one.totals} />`}
    </div>
  `;
}

function Rewards({ one }) {
  if (one.problem) return html`<span class="runs-problem">${visible(one.problem)}</span>`;
  if (!one.rewards.length) return html`<span class="faint">no rewards yet</span>`;
  const more = one.rewards.length - SHOWN_REWARDS;
  return html`
    <div class="runs-sparks">
      ${one.rewards.slice(0, SHOWN_REWARDS).map(
        (reward) => html`
          <div class="runs-spark" key=${reward.name}>
            <span class="runs-reward cut"><${Shortened} name=${reward.name} most=${12} /></span>
            <span class="runs-last">${number(reward.last)}</span>
            <${Sparkline} name=${visible(reward.name)} series=${reward.series} />
          </div>
        `,
      )}
      ${more > 0 && html`<span class="faint runs-others" title=${one.rewards.slice(SHOWN_REWARDS).map((reward) => visible(reward.name)).join(", ")}>+${more}</span>`}
    </div>
  `;
}

function Flags({ one }) {
  if (one.problem) return html`<span class="faint">–</span>`;
  const failed = one.failed_share > 0 && html`<a class="runs-failed" title="The share of its calls that failed" href=${href({ run: one.name, tab: "logs", query: { status: "failed" } })}>${percent(one.failed_share)} failed</a>`;
  if (one.flags === null || one.flags === undefined) {
    const why = "The health checks of this run begin when Health is opened";
    return html`${failed}<a class="faint" href=${href({ run: one.name, tab: "health" })} title=${why}>not checked yet</a>`;
  }
  if (!one.flags) return html`${failed}<span class="faint">no flags</span>`;
  return html`${failed}<a class="chip is-warn" href=${href({ run: one.name, tab: "health" })}>
    <svg class="mark" viewBox="0 0 12 12" aria-hidden="true"><path d="M3 11V1.5h6L7.5 4 9 6.5H3" /></svg>${counted(one.flags, "flag")}
  </a>`;
}
