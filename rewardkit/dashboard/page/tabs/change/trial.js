/** A trial of a changed reward: how far it is, and what the change would do. */
import { href } from "../../lib/address.js";
import { count, counted, number, percent, seconds, signed, visible } from "../../lib/format.js";
import { html } from "../../lib/view.js";
import { Status } from "../../parts/chip.js";

export const WHAT = { replace: "Apply", shadow: "Run as shadow", weight: "Set weight", add: "Add", remove: "Remove" };
const COSTS = { cost_usd: "USD", prompt_tokens: "Prompt tokens", completion_tokens: "Completion tokens" };

/** What is under way, with a way to end it; then its result, or why it has no result. */
export function Trial({ job, onCancel, onLine }) {
  const { about } = job;
  return html`
    <section class="panel trial" aria-labelledby="trial-title">
      <div class="panel-head">
        <h2 id="trial-title">${job.kind === "try" ? "Trial" : WHAT[about.action]}</h2>
        <span class="muted cut trial-about">
          ${visible(about.reward)}${about.old && html` <code>${visible(about.old)}</code>`}${about.new && html` → <code>${visible(about.new)}</code>`}
        </span>
        <span class="push faint">${job.seconds > 0 && seconds(job.seconds)}</span>
        ${job.state === "running" && onCancel && html`<button type="button" class="button" onClick=${onCancel}>Cancel</button>`}
      </div>
      <div class="panel-body stack">
        ${job.state === "running" && html`<${Progress} job=${job} />`}
        ${job.state === "cancelled" && html`<p class="muted">${job.problem}</p>`}
        ${job.state === "failed" && html`<${Failure} job=${job} onLine=${onLine} />`}
        ${job.state === "done" && html`<${Outcome} job=${job} />`}
      </div>
    </section>
  `;
}

function Progress({ job }) {
  const known = job.total > 0;
  const words = known ? `${count(job.done)} of ${counted(job.total, "call")}` : job.kind === "try" ? "loading the reward in a process of its own" : "checking it before the training is asked";
  return html`
    <div class="trial-progress" role="status">
      <progress max=${known ? job.total : null} value=${known ? job.done : null} aria-label="Progress of the trial"></progress>
      <span class="muted">${words}${job.failed > 0 && html`, <span class="is-bad-words">${count(job.failed)} failed</span>`}</span>
    </div>
  `;
}

/** Why there is no result: one line, and the rest on request. */
function Failure({ job, onLine }) {
  const line = /\(line (\d+)\)$/.exec(job.problem || "");
  const more = job.details && job.details.trim() !== job.problem ? job.details : "";
  return html`
    <div class="stack trial-failure" role="alert">
      <p><span class="chip is-bad">failed</span> ${visible(job.problem)}</p>
      ${line && onLine && html`<p><button type="button" class="button" onClick=${() => onLine(Number(line[1]))}>Go to line ${line[1]}</button></p>`}
      ${more && html`<details><summary>The whole error</summary><pre class="text">${visible(more)}</pre></details>`}
      ${job.printed && html`<details><summary>What it printed</summary><pre class="text">${visible(job.printed)}</pre></details>`}
    </div>
  `;
}

function Outcome({ job }) {
  const found = job.kind === "try" ? job.result : job.result.difference;
  const notes = job.kind === "ask" ? job.result.notes : [];
  return html`
    ${job.kind === "ask" && html`<p role="status">The checks passed, and the training is asked (change ${job.result.change}). Its answer is under “Changes asked for”.</p>`}
    ${notes.map((note) => html`<p class="muted" key=${note}>${visible(note)}</p>`)}
    ${found && html`<${Difference} found=${found} />`}
  `;
}

/** The numbers of a difference, its notes, and the completions that change most. */
function Difference({ found }) {
  return html`
    <div class="trial-numbers">
      <${Figures} found=${found} />
      <${Sides} found=${found} />
    </div>
    <ul class="trial-notes muted">${found.notes.map((note) => html`<li key=${note}>${visible(note)}</li>`)}</ul>
    <${Examples} examples=${found.examples} />
  `;
}

function Figures({ found }) {
  const change = found.old_mean === null || found.new_mean === null ? null : found.new_mean - found.old_mean;
  const lost = found.groups_lost > 0;
  return html`
    <dl class="figures">
      <${Figure} name="Mean score" value=${html`${number(found.old_mean)} <span class="faint">→</span> ${number(found.new_mean)}`} more=${`${signed(change)} where both scored`} />
      <${Figure} name="Scores that change" value=${count(found.changed)} more=${`of ${count(found.both)} that both scored`} />
      <${Figure}
        name="Sign flips"
        value=${count(found.sign_flips)}
        more=${`${percent(found.completions ? found.sign_flips / found.completions : null)} of the advantages`}
      />
      <${Figure}
        name="Rank correlation"
        value=${found.rank_correlation === null ? "–" : found.rank_correlation.toFixed(3)}
        more=${`inside ${counted(found.ranked_groups, "group")}${found.unranked_groups ? `; ${count(found.unranked_groups)} flat on one side` : ""}`}
      />
      <${Figure} name="Groups that gain signal" value=${count(found.groups_gained)} more=${`of ${counted(found.groups, "group")}`} />
      <${Figure}
        name="Groups that lose all signal"
        value=${count(found.groups_lost)}
        more=${lost ? "they teach nothing then" : `of ${counted(found.groups, "group")}`}
        warn=${lost}
      />
    </dl>
  `;
}

function Figure({ name, value, more, warn = false }) {
  return html`
    <div class=${warn ? "figure is-warn" : "figure"}>
      <dt>${name}</dt>
      <dd class="figure-value">${value}</dd>
      <dd class="figure-more">${more}</dd>
    </div>
  `;
}

function Sides({ found }) {
  const { old, new: fresh, old_cost: before, new_cost: after } = found;
  const metrics = [...new Set([...Object.keys(before || {}), ...Object.keys(after || {})])].filter((name) => name !== "seconds");
  const failed = (side) => (side.stand_ins ? `${count(side.failed)} (${count(side.stand_ins)} with a default)` : count(side.failed));
  const rows = [
    ["Mean", number(old.mean), number(fresh.mean)],
    ["Standard deviation", number(old.std), number(fresh.std)],
    ["Scored", count(old.scored), count(fresh.scored)],
    ["Skipped", count(old.skipped), count(fresh.skipped)],
    ["Failed", failed(old), failed(fresh)],
    ["Groups with signal", count(old.groups_with_signal), count(fresh.groups_with_signal)],
    ["Time per 1,000", seconds(before?.seconds), seconds(after?.seconds)],
    ...metrics.map((name) => [`${COSTS[name] || visible(name)} per 1,000`, number(before?.[name]), number(after?.[name])]),
  ];
  return html`
    <div class="table-box sides" role="region" aria-label="Both versions in numbers" tabindex="0">
      <table class="table">
        <thead>
          <tr><th scope="col"><span class="unseen">What</span></th><th scope="col" class="right">Old</th><th scope="col" class="right">New</th></tr>
        </thead>
        <tbody>
          ${rows.map(
            ([name, one, two]) => html`
              <tr key=${name}>
                <th scope="row">${name}</th>
                <td class="right">${one}</td>
                <td class=${one === two ? "right" : "right is-other"}>${two}</td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

function Examples({ examples }) {
  if (!examples.length) return html`<p class="muted">No score changes.</p>`;
  return html`
    <div class="stack">
      <h3>Completions that change most</h3>
      <ol class="examples">${examples.map((one) => html`<${Example} key=${one.id} one=${one} />`)}</ol>
    </div>
  `;
}

function Example({ one }) {
  const columns = Object.entries(one.example);
  return html`
    <li class="example">
      <p class="line">
        <span class="example-scores"><${Said} row=${one.old} /> <span class="faint">→</span> <${Said} row=${one.new} /></span>
        <span class="faint push">${one.step === null ? "" : `step ${count(one.step)}, `}<a href=${href({ tab: "completions", query: { id: one.id } })}>completion ${one.id}</a></span>
      </p>
      <p class="text example-prompt">${visible(one.prompt)}</p>
      <p class="text example-completion">${visible(one.completion)}</p>
      ${
        columns.length > 0 &&
        html`<p class="faint example-columns">${columns.map(([name, value]) => html`<span key=${name}>${visible(name)}: <code>${visible(value)}</code></span>`)}</p>`
      }
      <div class="reasons">
        <${Reason} label="Old" row=${one.old} />
        <${Reason} label="New" row=${one.new} />
      </div>
    </li>
  `;
}

function Said({ row }) {
  return row.status === "scored" ? html`<b>${number(row.score)}</b>` : html`<${Status} status=${row.status} cause=${row.cause} />`;
}

function Reason({ label, row }) {
  const words = row.reason || row.error;
  return html`
    <div class="reason">
      <span class="faint">${label}</span>
      ${words ? html`<span>${visible(words)}</span>` : html`<span class="faint">no reason given</span>`}
    </div>
  `;
}
