/** Changing a reward: its versions, an editor, a trial on stored completions, and what the training is asked for. */
import { go, of } from "../lib/address.js";
import { post, useApi } from "../lib/api.js";
import { count, visible } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { SAVED } from "../lib/saved.js";
import { readPreference, writePreference } from "../lib/store.js";
import { html, useEffect, useMemo, useState } from "../lib/view.js";
import { Choice } from "../parts/fields.js";
import { Empty, Loading, ProblemNote } from "../parts/states.js";
import { Asked } from "./change/asked.js";
import { Confirm } from "./change/confirm.js";
import { SourceDiff } from "./change/diff.js";
import { Editor } from "./change/editor.js";
import { Trial } from "./change/trial.js";
import { WriteToken, useWriting } from "./change/writing.js";

const SPANS = [5, 20];
const JOB_EVERY_MS = 400;
const EDITED = "rewards/edited/";
const MODES = [
  ["source", "Source"],
  ["differences", "Differences"],
  ...(SAVED ? [] : [["file", "File on the server"]]),
];

/** The tab. */
export default function Change({ run, query }) {
  const asked = { version: query.version, other: query.other };
  const told = useApi(of(run, "change"), asked);
  if (told.problem && !told.data) return html`<${ProblemNote} problem=${told.problem} retry=${told.reload} />`;
  if (!told.data) return html`<${Loading} rows=${8} label="Loading the rewards" />`;
  if (!told.data.rewards.length) {
    return html`<${Empty} title="No rewards yet" hint="They are here once the first step is recorded." />`;
  }
  return html`<${Page} run=${run} query=${query} data=${told.data} reload=${told.reload} />`;
}

function Page({ run, query, data, reload }) {
  const reward = data.rewards.find((one) => one.name === query.reward) || data.rewards.find((one) => one.now) || data.rewards[0];
  const chosen = useChosen(reward, query, data.can_write);
  const draft = useDraft(run, chosen.version?.label, data.texts);
  const writing = useWriting(data.can_write);
  const job = useJob(run, data.job, reload);
  const [words, setWords] = useState(null);
  const [sent, setSent] = useState(null);
  const [confirming, setConfirming] = useState(null);
  const [span, setSpan] = useState("last");
  const [file, setFile] = useState("");
  const mode = MODES.some(([name]) => name === query.mode) ? query.mode : "source";

  useEffect(() => setWords(null), [reward.name, chosen.version?.label, mode]);

  const brought = mode === "file" ? { reference: file } : { source: draft.text ?? "", function: draft.named ?? "" };
  const running = job.now?.state === "running";
  const reach = reachOf(chosen.other, reward, data.steps);
  const send = async (action, body) => {
    setWords(null);
    setSent(body.source ?? null);
    try {
      job.take((await post(of(run, `change/${action}`), body)).job);
      reload();
    } catch (wrong) {
      if (wrong.status === 403) writing.forget();
      setWords([action === "ask" ? "not asked" : action === "try" ? "not tried" : "not done", wrong.words || String(wrong)]);
    }
  };
  const able = writing.can && !running && (mode === "file" ? file.trim() : draft.text);
  const attempt = () => {
    if (!able) return;
    send("try", { reward: reward.name, old: chosen.other?.label, steps: stepsOf(span, reach), ...brought });
  };
  const ofEditor = job.now?.state === "failed" && (job.now.about.new || "").startsWith(EDITED);
  const wrong = sent === draft.text ? (lineOf(words?.[1]) ?? (ofEditor ? lineOf(job.now.problem) : null)) : null;
  useKeys([
    ["e", "Edit the source", () => document.querySelector(".editor-text")?.focus()],
    ["d", "Differences or source", () => go({ query: { mode: mode === "differences" ? null : "differences" } }, { replace: true })],
    ["y", "Try it", attempt],
  ]);

  const trial =
    job.now &&
    html`<${Trial}
      job=${job.now}
      onCancel=${writing.can ? () => send("cancel", {}) : null}
      onLine=${mode === "source" && wrong ? () => document.querySelector(".editor-text")?.focus() : null}
    />`;
  return html`
    <div class="change">
      <h1 class="unseen">Change a reward</h1>
      ${!SAVED && html`<${Standing} data=${data} /><${WriteToken} writing=${writing} />`}
      <div class="change-columns">
        <div class="stack">
          ${SAVED && trial}
          <section class="panel" aria-label="The reward's source">
            <${Chooser} data=${data} reward=${reward} chosen=${chosen} />
            <${Modes} mode=${mode} draft=${draft} chosen=${chosen} />
            <div class="panel-body change-source">
              <${Source} mode=${mode} draft=${draft} chosen=${chosen} data=${data} file=${file} setFile=${setFile} wrong=${wrong} onSend=${attempt} reward=${reward} />
            </div>
            ${!SAVED && html`<${Actions}
              data=${data}
              reward=${reward}
              reach=${reach}
              span=${span}
              setSpan=${setSpan}
              able=${able}
              running=${running}
              writing=${writing}
              onTry=${attempt}
              onAsk=${(action) => setConfirming(action)}
            />`}
            ${words && html`<p class="change-words" role="alert"><span class="chip is-bad">${words[0]}</span> ${visible(words[1])}</p>`}
          </section>
          ${!SAVED && trial}
        </div>
        <aside class="stack">
          <${Versions} reward=${reward} chosen=${chosen} />
          <${Asked} changes=${data.changes} fresh=${job.now?.result?.change ?? null} step=${data.trainer?.step ?? null} />
        </aside>
      </div>
      ${
        confirming &&
        html`<${Confirm}
          action=${confirming}
          reward=${reward}
          trainer=${data.trainer}
          taken=${data.rewards.map((one) => one.name)}
          what=${mode === "file" ? file : `The function ${draft.named} in the editor`.replace("  ", " ")}
          onCancel=${() => setConfirming(null)}
          onDone=${(more) => {
            setConfirming(null);
            const brings = ["replace", "shadow", "add"].includes(confirming);
            send("ask", { reward: more.name ?? reward.name, action: confirming, ...(brings ? brought : {}), ...more });
          }}
        />`
      }
    </div>
  `;
}

/** Whether a training takes changes, in one line. */
function Standing({ data }) {
  if (data.trainer) {
    const { step } = data.trainer;
    return html`
      <p class="change-standing">
        <span class="dot is-running" aria-hidden="true"></span>
        <span>
          ${step < 0 ? "The training has not begun its first step." : html`The training is at step <b>${count(step)}</b>.`} A change takes effect at the beginning of a later step, or not at all.
        </span>
      </p>
    `;
  }
  return html`
    <p class="change-standing">
      <span class="dot" aria-hidden="true"></span>
      <span>Nothing can be applied here: ${visible(data.refused)}.${data.can_write && " Trying still works."}</span>
    </p>
  `;
}

/** The version before another one; the one after it for the first. */
function neighbour(reward, version) {
  const own = reward.versions.filter((one) => !one.shadow);
  const place = own.indexOf(version);
  return own[place - 1] || own[place + 1] || null;
}

/** The version that is edited and the one that it is compared with: where nothing can be tried, the one before it. */
function useChosen(reward, query, canWrite) {
  const { versions } = reward;
  const own = versions.filter((one) => !one.shadow);
  const now = own.filter((one) => one.digits === reward.digits).pop();
  const last = now || own.filter((one) => one.origin === "run").pop() || own[own.length - 1] || versions[versions.length - 1];
  const version = versions.find((one) => one.label === query.version) || last || null;
  const other = versions.find((one) => one.label === query.other) || (canWrite ? null : neighbour(reward, version)) || last || null;
  useEffect(() => {
    const wanted = { reward: reward.name, version: version?.label, other: other?.label };
    if (Object.entries(wanted).some(([key, value]) => value && query[key] !== value)) go({ query: wanted }, { replace: true });
  }, [reward.name, version?.label, other?.label, query.reward, query.version, query.other]);
  return { version, other };
}

/** What stands in the editor: the recorded text, or what was made of it in this browser's tab. */
function useDraft(run, label, texts) {
  const key = `draft:${run}:${label}`;
  const [drafts, setDrafts] = useState({});
  const recorded = label ? texts[label] : null;
  const kept = useMemo(() => readPreference(key, null, { session: true }), [key]);
  const draft = key in drafts ? drafts[key] : kept;
  const set = (next) => {
    setDrafts({ ...drafts, [key]: next });
    writePreference(key, next, { session: true });
  };
  const text = draft?.text ?? recorded?.text ?? null;
  const named = draft?.named ?? recorded?.function ?? "";
  return {
    recorded,
    text,
    named,
    edited: Boolean(draft) && text !== recorded?.text,
    edit: (next) => set({ text: next, named }),
    name: (next) => set({ text: text ?? "", named: next }),
    forget: () => set(null),
    texts,
  };
}

/** The run's last trial or request, asked for while it is under way. */
function useJob(run, told, reload) {
  const [taken, setTaken] = useState(null);
  const newest = taken && (!told || taken.id > told.id || (taken.id === told.id && taken.state !== "running")) ? taken : told;
  const running = newest?.state === "running";
  const asked = useApi(running ? of(run, "change") : null, { only: "job" }, { every: JOB_EVERY_MS });
  const heard = asked.data?.job;
  const now = heard && newest && heard.id === newest.id && running ? heard : newest;
  useEffect(() => {
    if (heard && newest && heard.id === newest.id && heard.state !== "running") {
      setTaken(heard);
      reload();
    }
  }, [heard?.id, heard?.state]);
  return { now, take: setTaken };
}

/** The first and last step at which a version scored, as far as the versions after it tell. */
function reachOf(version, reward, steps) {
  if (!steps || !version) return null;
  const [first, last] = steps;
  const later = reward.versions.filter((one) => one.origin === "run" && one.first_step > (version.first_step ?? first));
  const after = later.filter((one) => !one.shadow || version.shadow).map((one) => one.first_step);
  return [version.first_step ?? first, Math.min(last, ...after.map((step) => step - 1))];
}

function stepsOf(span, reach) {
  if (!reach) return null;
  const [first, last] = reach;
  if (span === "all") return reach;
  return [span === "last" ? last : Math.max(first, last - Number(span) + 1), last];
}

/** The line that an error names, such as "line 3: ..." or "... (line 3)". */
function lineOf(words) {
  const found = /^line (\d+):|\(line (\d+)\)$/.exec(words || "");
  return found ? Number(found[1] ?? found[2]) : null;
}

function Chooser({ data, reward, chosen }) {
  const options = reward.versions.map((one) => [one.label, titleOf(one, reward)]);
  const to = (query) => go({ query }, { replace: true });
  return html`
    <div class="panel-head change-choices">
      <${Choice}
        label="Reward"
        value=${reward.name}
        options=${data.rewards.map((one) => [one.name, one.now || !data.trainer ? visible(one.name) : `${visible(one.name)} (removed)`])}
        onChange=${(name) => to({ reward: name, version: null, other: null })}
      />
      <${Choice} label="Start from" value=${chosen.version?.label} options=${options} onChange=${(label) => to({ version: label })} />
      <${Choice} label="Compare with" value=${chosen.other?.label} options=${options} onChange=${(label) => to({ other: label })} />
    </div>
  `;
}

function titleOf(version, reward) {
  const now = version.digits === reward.digits && !version.shadow ? ", now" : "";
  const shadow = version.shadow ? " (shadow)" : "";
  return `${visible(version.label)}${shadow}${now}`;
}

function Modes({ mode, draft, chosen }) {
  const recorded = draft.recorded;
  return html`
    <div class="change-modes">
      <div class="line" role="group" aria-label="What is shown">
        ${MODES.map(
          ([name, words]) => html`
            <button
              key=${name}
              type="button"
              class="button"
              aria-pressed=${String(mode === name)}
              onClick=${() => go({ query: { mode: name === "source" ? null : name } }, { replace: true })}
            >
              ${words}
            </button>
          `,
        )}
      </div>
      <span class="push"></span>
      ${
        mode !== "file" &&
        draft.edited &&
        html`<span class="chip is-warn">edited</span><button type="button" class="button is-bare" onClick=${draft.forget}>Back to ${visible(chosen.version?.label)}</button>`
      }
      ${
        mode === "source" &&
        recorded &&
        html`
          <label class="field">
            <span class="field-label">Function</span>
            <input class="input mono change-function" value=${draft.named} spellcheck=${false} autocomplete="off" onInput=${(event) => draft.name(event.target.value)} />
          </label>
        `
      }
    </div>
  `;
}

function Source({ mode, draft, chosen, data, file, setFile, wrong, onSend, reward }) {
  const { recorded } = draft;
  if (mode === "file") return html`<${FileField} file=${file} setFile=${setFile} onSend=${onSend} reward=${reward} />`;
  if (chosen.version && recorded === undefined) return html`<${Loading} rows=${4} label="Loading the source" />`;
  if (mode === "differences") {
    const other = chosen.other && draft.texts[chosen.other.label];
    const lacking = [[chosen.other, other?.text], [chosen.version, draft.text]].find(([, text]) => text === null || text === undefined);
    if (chosen.other && other === undefined) return html`<${Loading} rows=${4} label="Loading the source" />`;
    if (lacking) return html`<p class="diff-none muted">The source of ${visible(lacking[0]?.label)} is not recorded.</p>`;
    const before = !draft.edited && chosen.other === chosen.version && neighbour(reward, chosen.version);
    const newer = `${visible(chosen.version.label)}${draft.edited ? ", edited" : ""}`;
    return html`
      <p class="muted diff-title"><code>${visible(chosen.other.label)}</code> → <code>${newer}</code></p>
      <${SourceDiff} before=${other.text} after=${draft.text} own=${draft.edited ? null : [other.own_lines, recorded?.own_lines]} label="Differences of the sources" />
      ${
        before &&
        html`<p class="diff-none"><button type="button" class="button" onClick=${() => go({ query: { other: before.label } }, { replace: true })}>Compare with ${visible(before.label)}</button></p>`
      }
    `;
  }
  return html`
    ${
      recorded && recorded.text === null
        ? html`<p class="muted">The source of ${visible(chosen.version?.label)} is not recorded.${SAVED ? "" : " Write a new one, or name a file."}</p>`
        : !SAVED && recorded && !recorded.whole && html`<p class="muted">Only the function is recorded: what it takes from its script, such as imports, has to stand here too.</p>`
    }
    <${Editor} value=${draft.text ?? ""} onChange=${draft.edit} onSend=${onSend} label="Source of the reward" wrong=${wrong} describedby=${SAVED ? null : "editor-hint"} isFixed=${SAVED !== null} />
    ${!SAVED && html`<p class="faint editor-hint" id="editor-hint">
      Tab indents, <kbd>Esc</kbd> leaves, <kbd>Ctrl</kbd> <kbd>Enter</kbd> tries. ${data.columns.length > 0 && html`<span>The rows have the ${data.columns.length === 1 ? "column" : "columns"} ${data.columns.map((name, place) => html`${place > 0 && ", "}<code>${visible(name)}</code>`)}.</span>`}
    </p>`}
  `;
}

function FileField({ file, setFile, onSend, reward }) {
  return html`
    <label class="change-file">
      <span class="field-label">File and function</span>
      <input
        class="input mono"
        value=${file}
        placeholder=${`rewards/new.py:${reward.name}`}
        spellcheck=${false}
        autocomplete="off"
        onInput=${(event) => setFile(event.target.value)}
        onKeyDown=${(event) => event.key === "Enter" && onSend()}
      />
    </label>
    <p class="faint">A file on the machine where rewardkit ui runs, looked for from the folder in which it was started.</p>
  `;
}

function Actions({ data, reward, reach, span, setSpan, able, running, writing, onTry, onAsk }) {
  const spans = spansOf(reach);
  const open = writing.can && !running;
  const why = (action) => (data.trainer ? data.blocked[action] || null : `Nothing can be applied: ${data.refused}`);
  const button = (action, words, more = {}) => html`
    <button
      type="button"
      class=${`button ${more.className || ""}`}
      disabled=${!open || Boolean(why(action)) || more.disabled}
      title=${why(action) || more.title || null}
      onClick=${() => onAsk(action)}
    >
      ${words}
    </button>
  `;
  return html`
    <div class="change-actions">
      <${Choice} label="On steps" value=${span} options=${spans} onChange=${setSpan} />
      <button type="button" class="button is-main" disabled=${!able} onClick=${onTry} title="Nothing is applied">${running ? "Trying …" : "Try"}</button>
      <span class="push"></span>
      ${button("shadow", "Run as shadow", { disabled: !able || !reward.now })}
      ${button("replace", "Apply", { disabled: !able || !reward.now })}
      ${button("add", "Add as new", { disabled: !able, title: "Score it as a further reward, under another name" })}
      ${button("weight", "Set weight", { disabled: !reward.now })}
      ${button("remove", "Remove", { className: "is-bad", disabled: !reward.now })}
    </div>
    ${data.trainer && Object.keys(data.blocked).length > 0 && html`<p class="faint change-blocked">${visible(blockedWords(data.blocked))}</p>`}
  `;
}

/** The steps that a trial can take, as far as the compared version scored. */
function spansOf(reach) {
  if (!reach) return [["last", "none yet"]];
  const [first, last] = reach;
  const some = SPANS.filter((size) => last - first >= size).map((size) => [String(size), `${count(last - size + 1)} to ${count(last)}`]);
  const all = last > first ? [["all", `${count(first)} to ${count(last)}`]] : [];
  return [["last", count(last)], ...some, ...all];
}

function blockedWords(blocked) {
  const lacking = ["weight", "remove"].filter((action) => blocked[action]);
  return lacking.length ? blocked[lacking[0]] : "";
}

/** The versions that the reward has had, newest first. */
function Versions({ reward, chosen }) {
  const rows = [...reward.versions].reverse();
  return html`
    <section class="panel" aria-labelledby="versions-title">
      <div class="panel-head"><h2 id="versions-title">Versions</h2><span class="faint push">weight ${reward.weight === null ? "–" : reward.weight}</span></div>
      <ul class="versions">
        ${rows.map((one) => {
          const now = reward.now && one.digits === reward.digits && !one.shadow;
          return html`
            <li key=${one.label}>
              <button
                type="button"
                class="version-row"
                aria-pressed=${String(one.label === chosen.version?.label)}
                onClick=${() => go({ query: { version: one.label } }, { replace: true })}
              >
                <span class="line"><b class="mono">${visible(one.label)}</b>${now && html`<span class="chip is-good">now</span>`}${one.shadow && html`<span class="chip">shadow</span>`}${one.origin === "rescore" && html`<span class="chip">rescore</span>`}</span>
                <span class="faint">${one.first_step === null ? "no step yet" : `from step ${count(one.first_step)}`}</span>
                <span class="faint cut version-place" title=${visible(one.reference)}>${one.reference ? visible(placeOf(one.reference)) : "defined in a script"}</span>
              </button>
            </li>
          `;
        })}
      </ul>
    </section>
  `;
}

/** The end of a reference, which tells files apart. */
function placeOf(reference) {
  return reference.split("/").slice(-2).join("/");
}
