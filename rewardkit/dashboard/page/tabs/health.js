/** Health: what the detectors say of the run, with the completions that show it, and what to do next. */
import { go, href, of } from "../lib/address.js";
import { useApi } from "../lib/api.js";
import { count, counted, number, percent, seconds, stepSpan, visible } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { html, useEffect, useState } from "../lib/view.js";
import { Status, VersionChip } from "../parts/chip.js";
import { Loading, ProblemNote } from "../parts/states.js";

const LOOK_MS = 700;
const QUIET_MS = 10000;

/** The tab. */
export default function Health({ run, overview, query, list }) {
  const [every, setEvery] = useState(LOOK_MS);
  const { data, problem, reload } = useApi(of(run, "health"), {}, { every });
  const waits = data?.looking || data?.current === false;
  useEffect(() => setEvery(waits || !data ? LOOK_MS : QUIET_MS), [waits, !data]);
  const flags = data?.diagnosis?.flags.length ?? null;
  useEffect(() => {
    if (flags !== null) list.reload(); // the number on the tab and in the list of runs is this one
  }, [flags]);
  if (!data) return problem ? html`<${ProblemNote} problem=${problem} retry=${reload} />` : html`<${Loading} label="Looking at the run" />`;
  const found = data.diagnosis;
  const failed = failedOf(overview);
  return html`
    <div class="stack health">
      <h1 class="unseen">Health</h1>
      <${Verdict} data=${data} failed=${failed} />
      ${!found && data.looking && html`<${Loading} rows=${4} label="The detectors are looking" />`}
      ${found && found.flags.length > 0 && html`<${Timeline} data=${data} found=${found} />`}
      ${found && html`<${Families} run=${run} data=${data} found=${found} failed=${failed} opened=${query.flag} />`}
      ${data.live.length > 0 && html`<${Live} data=${data} />`}
      ${data.report && html`<${Report} data=${data} />`}
    </div>
  `;
}

/** Return the calls that failed, by reward and cause, the most frequent first. */
function failedOf(overview) {
  const all = overview.rewards.flatMap((one) => Object.entries(one.failed).map(([cause, times]) => ({ reward: one.name, cause, times })));
  return all.sort((one, other) => other.times - one.times);
}

const timesOf = (failed) => failed.reduce((sum, one) => sum + one.times, 0);

const nameOf = (detector) => detector.replace(/_/g, " ");
const kindOf = (flag) => `${flag.detector}:${flag.reward ?? ""}`;
const stepsOf = (flag) => (flag.first_step === null ? "" : stepSpan(flag.first_step, flag.last_step));
const MOST_SPANS = 12; // times of a flag that are named with their steps

/** The diagnosis in words, how it answers each question, and as of which step. */
function Verdict({ data, failed }) {
  const found = data.diagnosis;
  const flags = found?.flags ?? [];
  const kind = !found ? "" : flags.length ? "is-flagged" : "is-clear";
  return html`
    <section class=${`panel verdict ${kind}`} aria-label="Diagnosis">
      <div class="verdict-head">
        <${Mark} kind=${kind} />
        <p class="verdict-words">${found ? visible(found.summary) : data.problem ? visible(data.problem) : "The detectors are looking at the run …"}</p>
      </div>
      ${found && html`<p class="muted verdict-more">${visible(capital(found.gradient))}. A flag is a reason to read the completions that it names, and no proof.</p>`}
      ${found &&
      html`
        <ul class="answers">
          ${Object.entries(data.families).map(([family, words]) => html`<${Answer} key=${family} family=${family} words=${words} data=${data} found=${found} failed=${family === "faults" ? timesOf(failed) : 0} />`)}
        </ul>
      `}
      ${found && found.blind_spots.length > 0 && html`<${BlindSpots} found=${found} />`}
      <p class="faint verdict-state" role="status">${asOf(data)}</p>
    </section>
  `;
}

/** What cannot be seen in this run, and why: a line each. */
function BlindSpots({ found }) {
  return html`
    <div class="blind-spots">
      <h3>What cannot be seen</h3>
      <ul>
        ${found.blind_spots.map((line) => html`<li key=${line}>${visible(capital(line))}</li>`)}
      </ul>
    </div>
  `;
}

function asOf(data) {
  const parts = [];
  if (data.as_of_step !== undefined && data.as_of_step !== null) parts.push(`As of step ${count(data.as_of_step)}`);
  const { baseline, steps } = data.diagnosis?.coverage || {};
  const between = ([first, last]) => `${count(first)} to ${count(last)}`;
  if (baseline) parts.push(`steps ${between(steps)} looked at and compared with steps ${between(baseline)}`);
  if (data.seconds !== undefined) parts.push(`looked in ${seconds(data.seconds)}`);
  if (data.looking) parts.push("looking again now");
  else if (data.current === false) parts.push(data.last_step === data.as_of_step ? "the record has grown since" : `the run is at step ${count(data.last_step)}; the next look follows in a moment`);
  return capital(parts.join(", "));
}

const capital = (words) => words.slice(0, 1).toUpperCase() + words.slice(1);

function Mark({ kind }) {
  const shape = kind === "is-clear" ? html`<path d="m5.5 10.5 3 3 6-7" />` : kind ? html`<path d="M10 5v6m0 3v.5" />` : html`<path d="M6 10h8" />`;
  return html`<svg class="verdict-mark" viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="9" />${shape}</svg>`;
}

/** One question and how it stands: flagged, nothing found, not looked at, or calls failed and none is flagged. */
function Answer({ family, words, data, found, failed }) {
  const [title, question] = words.split(": ");
  const names = data.detectors.filter((one) => one.family === family).map((one) => one.name);
  const flags = found.flags.filter((one) => one.family === family);
  const looked = names.filter((name) => found.looked.includes(name)).length;
  const kind = flags.length ? "is-flagged" : looked && !failed ? "is-clear" : "is-open";
  const told = flags.length ? counted(flags.length, "flag") : failed ? `no flag, ${counted(failed, "call")} failed` : looked ? "nothing found" : "could not look";
  const go_to = () => document.getElementById(`family-${family}`)?.scrollIntoView({ block: "start" });
  return html`
    <li>
      <button type="button" class=${`answer ${kind}`} onClick=${go_to}>
        <span class="answer-title">${title}</span>
        <span class="answer-question muted">${question}</span>
        <span class="answer-told"><span class="answer-dot" aria-hidden="true"></span>${told}</span>
        <span class="faint">${looked} of ${counted(names.length, "detector")} looked</span>
      </button>
    </li>
  `;
}

/** The flags over the steps, with the rewards' versions as upright lines. */
function Timeline({ data, found }) {
  const timed = found.flags.filter((one) => one.first_step !== null);
  if (!timed.length || !found.steps) return null;
  const [low, high] = found.steps;
  const across = Math.max(high - low + 1, 1);
  const left = (step) => `${((step - low) / across) * 100}%`;
  const begun = data.versions.filter((one) => one.first_step !== null && one.first_step > low && one.first_step <= high);
  return html`
    <section class="panel" aria-label="Flags over the steps">
      <div class="panel-head"><h2>When</h2><span class="muted">flags over ${stepSpan(low, high)}${begun.length ? ", with new versions of rewards" : ""}</span></div>
      <div class="timeline">
        <ul class="timeline-rows">
          <li class="timeline-marks" aria-hidden="true">
            ${begun.map((one) => html`<span key=${`${one.reward} ${one.version}`} class="timeline-mark" style=${{ left: left(one.first_step) }} />`)}
          </li>
          ${timed.map(
            (flag) => html`
              <li key=${kindOf(flag)} class="timeline-row">
                <span class="timeline-name cut">${nameOf(flag.detector)}${flag.reward && html` <span class="faint">${visible(flag.reward)}</span>`}</span>
                <span class="timeline-track">
                  ${flag.spans.map(
                    ([first, last]) => html`
                      <button
                        key=${first}
                        type="button"
                        class=${`timeline-bar is-${flag.family}`}
                        style=${{ left: left(first), width: `${((last - first + 1) / across) * 100}%` }}
                        title=${`${nameOf(flag.detector)}, ${stepSpan(first, last)}: ${flag.words}`}
                        aria-label=${`${nameOf(flag.detector)}, ${stepSpan(first, last)}`}
                        onClick=${() => show(flag)}
                      />
                    `,
                  )}
                </span>
              </li>
            `,
          )}
        </ul>
        <div class="timeline-row timeline-foot faint">
          <span class="timeline-name">step</span>
          <span class="timeline-track">
            <span class="timeline-end">${count(low)}</span>
            <span class="timeline-end is-last">${count(high)}</span>
          </span>
        </div>
        ${begun.length > 0 &&
        html`
          <ul class="line timeline-versions">
            ${begun.map((one) => html`<li key=${`${one.reward} ${one.version}`} class="line"><${VersionChip} reward=${one.reward} number=${one.version} /><span class="faint">from step ${count(one.first_step)}</span></li>`)}
          </ul>
        `}
      </div>
    </section>
  `;
}

function show(flag) {
  go({ query: { flag: kindOf(flag) } }, { replace: true });
  requestAnimationFrame(() => document.getElementById(`flag-${kindOf(flag)}`)?.scrollIntoView({ block: "center" }));
}

const isOf = (opened, kind) => opened === kind || Boolean(opened?.startsWith(`${kind}:`));

/** The detectors by family: their flags, and what was looked at or could not be. */
function Families({ run, data, found, failed, opened }) {
  const kinds = Object.keys(data.families).flatMap((family) => found.flags.filter((one) => one.family === family).map(kindOf));
  const [at, setAt] = useState(null);
  const step = (by) => {
    const place = kinds.indexOf(at);
    const next = kinds[Math.min(Math.max(place < 0 ? 0 : place + by, 0), kinds.length - 1)];
    if (!next) return;
    setAt(next);
    const head = document.getElementById(`flag-${next}`)?.querySelector("button");
    head?.focus();
    head?.scrollIntoView({ block: "nearest" });
  };
  const toggle = (kind) => go({ query: { flag: isOf(opened, kind) ? null : kind } }, { replace: true });
  useKeys([
    ["j", "Next flag", () => step(1)],
    ["k", "Flag before", () => step(-1)],
    ["Enter", "Open or close the flag", () => at && toggle(at)],
  ]);
  return html`${Object.entries(data.families).map(
    ([family, words]) => html`<${Family} key=${family} run=${run} family=${family} words=${words} data=${data} found=${found} failed=${failed} opened=${opened} toggle=${toggle} />`,
  )}`;
}

function Family({ run, family, words, data, found, failed, opened, toggle }) {
  const [title, question] = words.split(": ");
  const flags = found.flags.filter((one) => one.family === family);
  return html`
    <section class="panel family" id=${`family-${family}`} aria-label=${title}>
      <div class="panel-head">
        <h2>${title}</h2><span class="muted">${question}</span>
        <span class="push">${flags.length ? html`<span class="chip is-warn">${counted(flags.length, "flag")}</span>` : html`<span class="faint">no flag</span>`}</span>
      </div>
      ${flags.map(
        (flag) => html`
          <${Flag}
            key=${kindOf(flag)}
            run=${run}
            flag=${flag}
            about=${data.detectors.find((one) => one.name === flag.detector)}
            open=${isOf(opened, kindOf(flag)) || (opened === undefined && found.flags.length === 1)}
            toggle=${toggle}
          />
        `,
      )}
      ${family === "faults" && failed.length > 0 && html`<${Failed} run=${run} failed=${failed} />`}
      ${family === "hacking" && html`<${Proof} data=${data} />`}
      ${family === "noise" && html`<${NoiseTable} noise=${found.noise} />`}
      <${Looked} family=${family} data=${data} found=${found} />
    </section>
  `;
}

/** The calls that failed, flagged or not: detectors look at shares, and a few failures may be below their bounds. */
function Failed({ run, failed }) {
  const parts = failed.map((one) => `${visible(one.reward)} ${count(one.times)} ${visible(one.cause)}`);
  return html`
    <div class="proof">
      <p><strong>${counted(timesOf(failed), "call")} failed in training:</strong> ${parts.join(", ")}.</p>
      <a href=${href({ run, tab: "logs", query: { status: "failed" } })}>Read why in the logs</a>
    </div>
  `;
}

/** How to prove or refute that a reward is gamed: the audit of its best completions. */
function Proof({ data }) {
  return html`
    <div class="proof">
      <p><strong>Is it hacking?</strong> Detectors see traces. The proof is the audit: it changes this run's best completions, and tells what the rewards wrongly pay for.</p>
      ${data.audit && html`<${Command} words=${data.audit} />`}
    </div>
  `;
}

/** How to show the run to somebody who cannot open this page. */
function Report({ data }) {
  return html`
    <section class="panel" aria-label="Report">
      <div class="proof">
        <p><strong>To hand on:</strong> this page as one file with the run inside, which needs neither a server nor a token. “Share” above saves it, and so does this command.</p>
        <${Command} words=${data.report} />
      </div>
    </section>
  `;
}

function Command({ words }) {
  const [told, setTold] = useState("Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(words);
      setTold("Copied");
    } catch {
      setTold("Select and copy");
    }
    setTimeout(() => setTold("Copy"), 2000);
  };
  return html`<span class="command"><code tabindex="0">${visible(words)}</code><button type="button" class="button is-bare" onClick=${copy}>${told}</button></span>`;
}

/** One flag: what was found, against which bound, what to do next, and the completions that show it. */
function Flag({ run, flag, about, open, toggle }) {
  const kind = kindOf(flag);
  const times = flag.spans.map(([first, last]) => stepSpan(first, last));
  const more = times.length - MOST_SPANS;
  const bounds = [
    ["Measured", flag.value],
    ["Threshold", flag.threshold],
    ["At first", flag.baseline],
  ].filter(([, value]) => value !== null);
  return html`
    <article class=${`flag${open ? " is-open" : ""}`} id=${`flag-${kind}`}>
      <button type="button" class="flag-head" aria-expanded=${String(open)} onClick=${() => toggle(kind)}>
        <svg class="flag-fold" viewBox="0 0 12 12" aria-hidden="true"><path d="m4.5 3 3 3-3 3" /></svg>
        <span class="flag-name">${nameOf(flag.detector)}</span>
        ${flag.reward && html`<span class="chip mono">${visible(flag.reward)}</span>`}
        <span class="flag-words">${visible(capital(flag.words))}${flag.quote && html`: <code>${visible(flag.quote)}</code>`}</span>
        <span class="faint flag-steps">${times.length > 1 ? `${times.length} times, ` : ""}${stepsOf(flag)}</span>
      </button>
      <p class="flag-next"><strong>Next</strong> ${visible(flag.action)}</p>
      ${open &&
      html`
        <div class="flag-body">
          ${times.length > 1 && html`<p class="muted">It held at ${times.slice(0, MOST_SPANS).join(", ")}${more > 0 ? ` and ${counted(more, "more time")}` : ""}; what is measured is of the last time.</p>`}
          <dl class="flag-bounds">
            ${bounds.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${number(value)}</dd></div>`)}
          </dl>
          <${Evidence} run=${run} flag=${flag} />
          <dl class="facts flag-about">
            <dt>Looks for</dt><dd>${told(about.summary)}</dd>
            <dt>Formula</dt><dd>${told(about.formula)}</dd>
            <dt>Source</dt><dd>${told(about.source)}</dd>
            <dt>Limits</dt><dd>${told(about.limits)}</dd>
          </dl>
        </div>
      `}
    </article>
  `;
}

/** A detector's words; what stands between backticks is set as code. */
function told(words) {
  return (words || "–").split("`").map((part, place) => (place % 2 ? html`<code>${part}</code>` : part));
}

function Evidence({ run, flag }) {
  if (!flag.rows.length) return html`<p class="faint">No single completion shows it.</p>`;
  const logs = flag.family === "faults" && flag.reward;
  return html`
    <div>
      <div class="line evidence-head">
        <h3>Completions that show it</h3>
        ${logs && html`<a class="push" href=${href({ run, tab: "logs", query: { reward: flag.reward, status: "failed", first: flag.first_step, last: flag.last_step } })}>Its failures in the logs</a>`}
      </div>
      <ul class="evidence">
        ${flag.rows.map(
          (one) => html`
            <li key=${one.completion}>
              <a class="evidence-row" href=${href({ run, tab: "completions", query: { prompt: one.prompt_index, right: one.completion } })}>
                <span class="faint">${one.step === null ? `#${one.completion}` : `step ${count(one.step)}`}</span>
                <span class="evidence-text mono">${one.text === null ? html`<em class="faint">text left out</em>` : visible(one.text.trim().replace(/\s*\n\s*/g, " ↵ "))}${one.cut ? " …" : ""}</span>
                <span class="evidence-score">${one.status && one.status !== "scored" ? html`<${Status} status=${one.status} cause=${one.cause} />` : html`<span class="faint">${flag.reward ? "score" : "weighted"}</span> ${number(one.score)}`}</span>
              </a>
            </li>
          `,
        )}
      </ul>
    </div>
  `;
}

function NoiseTable({ noise }) {
  const rows = Object.entries(noise);
  if (!rows.length) return null;
  return html`
    <div class="noise-box">
      <table class="table">
        <thead><tr><th scope="col">reward scored twice</th><th scope="col" class="right">noise</th><th scope="col" class="right">signs right</th><th scope="col" class="right">completions</th></tr></thead>
        <tbody>
          ${rows.map(([name, one]) => html`<tr key=${name}><td>${visible(name)}</td><td class="right">${percent(one.share)}</td><td class="right">${percent(one.right)}</td><td class="right">${count(one.completions)}</td></tr>`)}
        </tbody>
      </table>
    </div>
  `;
}

/** Which detectors of a family looked, and which could not and why. */
function Looked({ family, data, found }) {
  const names = data.detectors.filter((one) => one.family === family);
  const looked = names.filter((one) => found.looked.includes(one.name));
  const open = names.filter((one) => one.name in found.not_looked);
  return html`
    <details class="looked">
      <summary>${looked.length} of ${counted(names.length, "detector")} looked${open.length ? `; ${names.length - looked.length} could not` : ""}</summary>
      <dl class="facts">
        ${looked.map((one) => html`<dt key=${one.name}>${nameOf(one.name)}</dt><dd>${told(one.summary)}</dd>`)}
      </dl>
      ${open.map((one) => html`<p key=${one.name} class="looked-not"><strong>Could not look</strong> ${nameOf(one.name)}: ${visible(found.not_looked[one.name])}.</p>`)}
    </details>
  `;
}

/** What the training itself flagged while it ran. */
function Live({ data }) {
  return html`
    <section class="panel" aria-label="Flagged while it ran">
      <div class="panel-head"><h2>Flagged while it ran</h2><span class="muted">what the training itself told, oldest first</span></div>
      <ul class="told-live">
        ${data.live.map((one) => html`<li key=${one.event}><span class="faint">${stepsOf(one)}</span><span class="flag-name">${nameOf(one.detector)}</span><span>${one.reward && html`<span class="chip mono">${visible(one.reward)}</span> `}${visible(capital(one.words))}</span></li>`)}
      </ul>
    </section>
  `;
}
