/** What stands round every tab: the run, its state, the tabs, the theme, and what changed in words. */
import { HOME, go, left, scrolledTo } from "../lib/address.js";
import { count, counted, visible } from "../lib/format.js";
import { activeKeys, useKeys } from "../lib/keys.js";
import { useLive } from "../lib/live.js";
import { PANELS, TITLES } from "../lib/panels.js";
import { SAVED } from "../lib/saved.js";
import { THEMES, useTheme } from "../lib/store.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/view.js";
import { SavedNote } from "./saved-note.js";
import { ShareButton } from "./share.js";

/** The frame of the page. */
export function Frame({ run, tab, list, overview, children }) {
  const live = useLive(run);
  const runs = list.data?.runs || [];
  const lost = run ? live.link === "lost" : Boolean(list.trouble);
  const heard = run ? overview.data : list.data;
  useTitle(run, tab, live, lost);
  const main = useFocus(run, tab);
  return html`
    <a class="skip-link button" href="#main" onClick=${(event) => skip(event, main)}>Skip to the content</a>
    <header class="top">
      <div class="top-line">
        <a class="brand" href=${HOME} aria-label=${SAVED ? "rewardkit, where this page begins" : "rewardkit, all runs"}><${Logo} /><span class="brand-name">rewardkit</span></a>
        ${run && html`<span class="slash" aria-hidden="true">/</span>${SAVED ? html`<b class="saved-run cut">${visible(run)}</b>` : html`<${Switcher} run=${run} tab=${tab} runs=${runs} />`}`}
        ${run && html`<${RunState} live=${live} overview=${overview} />`}
        <span class="push"></span>
        ${run && overview.data && html`<span class="rewards-told muted">${counted(overview.data.rewards.length, "reward")}</span>`}
        ${run && !SAVED && html`<${ShareButton} />`}
        <${KeysButton} />
        <${ThemeButton} />
      </div>
      ${run && html`<${Tabs} run=${run} tab=${tab} flags=${runs.find((one) => one.name === run)?.flags} />`}
    </header>
    <${SavedNote} />
    <main class="main" id="main" ref=${main} tabindex="-1">${children}</main>
    ${lost && heard && html`<${Away} status=${run ? live.problem : list.trouble.status} />`}
    <${Told} run=${run} tab=${tab} lost=${lost} live=${live} overview=${overview} />
  `;
}

function skip(event, main) {
  event.preventDefault();
  main.current?.focus();
}

function Logo() {
  return html`
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <rect width="16" height="16" rx="4" fill="var(--accent)" />
      <path d="M3 11.5 6.5 7l2.5 2.5L13 4.5" fill="none" stroke="var(--on-accent)" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  `;
}

function useTitle(run, tab, live, lost) {
  const step = live.state?.last_step;
  useEffect(() => {
    const parts = run ? [TITLES[tab], visible(run), "rewardkit"] : ["Runs", "rewardkit"];
    if (lost) parts.unshift("not connected");
    else if (live.state?.state === "running" && step !== null && step !== undefined) parts.unshift(`step ${step}`);
    document.title = parts.join(" · ");
  }, [run, tab, lost, step, live.state?.state]);
}

/**
 * Lead the focus to the content when another run or tab is shown, and not when only its query changes. It moves with the
 * drawing: a frame later it would be taken from a field that somebody has begun to type into.
 */
function useFocus(run, tab) {
  const main = useRef(null);
  const first = useRef(true);
  useLayoutEffect(() => {
    if (!first.current) {
      main.current?.focus({ preventScroll: true });
      window.scrollTo(0, scrolledTo());
    }
    first.current = false;
  }, [run, tab]);
  return main;
}

function Tabs({ run, tab, flags }) {
  return html`
    <nav class="tabs" aria-label="Views of the run">
      ${PANELS.map(
        ({ name, title }) => html`
          <a key=${name} class="tab" href=${left(run, name)} aria-current=${name === tab ? "page" : null}>
            ${title}
            ${name === "health" && flags > 0 && html`<span class="tab-count">${count(flags)}<span class="unseen"> ${flags === 1 ? "flag" : "flags"}</span></span>`}
          </a>
        `,
      )}
    </nav>
  `;
}

const STATES = { missing: "removed", stopped: "stopped by an error" };
const LINKS = { saved: "when it was saved", live: "live", polling: "every 2 s", lost: "not connected" };

/** Whether the run is being written, how far it is, and how this page hears of it. */
function RunState({ live, overview }) {
  const state = live.state?.state || overview.data?.state || null;
  const step = live.state?.last_step ?? overview.data?.steps?.train?.[1] ?? null;
  const running = state === "running";
  const broken = live.link === "lost" || ["missing", "unreadable", "stopped", "killed"].includes(state);
  const reason = live.state?.state_reason ?? overview.data?.state_reason ?? null;
  const kind = broken ? "is-lost" : running ? `is-running${live.link === "live" ? " is-live" : ""}` : "";
  return html`
    <span class="run-state">
      <span class=${`dot ${kind}`} aria-hidden="true"></span>
      <span title=${reason && visible(reason)}>${live.link === "lost" ? LINKS.lost : STATES[state] || state || "…"}</span>
      ${reason && live.link !== "lost" && html`<span class="run-reason faint cut">${visible(reason)}</span>`}
      ${step !== null && html`<span class="faint">step ${count(step)}</span>`}
      ${running && live.link !== "lost" && html`<span class="faint wide">${LINKS[live.link]}</span>`}
    </span>
  `;
}

/** The run that is shown, and a list of all to go to another. */
function Switcher({ run, tab, runs }) {
  const [open, setOpen] = useState(false);
  const [sought, setSought] = useState("");
  const [at, setAt] = useState(0);
  const box = useRef(null);
  const button = useRef(null);
  const field = useRef(null);
  const found = runs.filter((one) => one.name.toLowerCase().includes(sought.toLowerCase()));
  const active = Math.min(at, found.length - 1);
  const show = () => {
    setSought("");
    setAt(Math.max(runs.findIndex((one) => one.name === run), 0));
    setOpen(true);
  };
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  const choose = (one) => {
    setOpen(false);
    if (one.name === run) button.current?.focus();
    else go({ run: one.name, tab });
  };
  useKeys([["s", "Another run", show]], "Everywhere");
  useLayoutEffect(() => {
    if (!open) return undefined;
    field.current?.focus();
    const outside = (event) => !box.current?.contains(event.target) && setOpen(false);
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const onKeyDown = (event) => {
    if (event.key === "ArrowDown") setAt(Math.min(active + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(active - 1, 0));
    else if (event.key === "Enter" && found[active]) choose(found[active]);
    else if (event.key === "Escape") close();
    else if (event.key === "Tab") setOpen(false);
    else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  };
  return html`
    <div class="switcher" ref=${box}>
      <button ref=${button} type="button" class="button is-bare" aria-haspopup="listbox" aria-expanded=${String(open)} onClick=${() => (open ? close() : show())}>
        <span class="unseen">Run: </span><span class="cut">${visible(run)}</span>
        <svg viewBox="0 0 16 16" aria-hidden="true"><path d="m5 6.5 3 3 3-3" /></svg>
      </button>
      ${
        open &&
        html`
          <div class="switcher-list">
            <input
              ref=${field}
              class="input"
              type="text"
              role="combobox"
              aria-label="Find a run"
              aria-expanded="true"
              aria-controls="switcher-runs"
              aria-activedescendant=${found[active] ? `switcher-${active}` : null}
              placeholder="Find a run"
              autocomplete="off"
              spellcheck=${false}
              value=${sought}
              onInput=${(event) => {
                setSought(event.target.value);
                setAt(0);
              }}
              onKeyDown=${onKeyDown}
            />
            <ul id="switcher-runs" role="listbox" aria-label="Runs">
              ${found.map(
                (one, place) => html`
                  <li
                    key=${one.name}
                    id=${`switcher-${place}`}
                    role="option"
                    aria-selected=${String(one.name === run)}
                    class=${place === active ? "is-active" : null}
                    onPointerMove=${() => setAt(place)}
                    onClick=${() => choose(one)}
                  >
                    <span class=${`dot is-${one.state}`} aria-hidden="true"></span>
                    <span class="cut">${visible(one.name)}</span>
                    <span class="faint">${one.state}${one.last_step === null ? "" : `, step ${count(one.last_step)}`}</span>
                  </li>
                `,
              )}
            </ul>
            ${!found.length && html`<p class="faint">No run has this in its name.</p>`}
          </div>
        `
      }
    </div>
  `;
}

const NEXT_THEME = { system: "light", light: "dark", dark: "system" };
const THEME_SHAPES = {
  light: html`<circle cx="8" cy="8" r="2.75" /><path d="M8 1.75v1.5m0 9.5v1.5M1.75 8h1.5m9.5 0h1.5M3.6 3.6l1.05 1.05m6.7 6.7 1.05 1.05m0-8.8-1.05 1.05m-6.7 6.7L3.6 12.4" />`,
  dark: html`<path d="M13.25 9.6A5.6 5.6 0 0 1 6.4 2.75a5.6 5.6 0 1 0 6.85 6.85Z" />`,
  system: html`<rect x="2" y="3" width="12" height="8" rx="1.5" /><path d="M6 13.5h4" />`,
};

function ThemeButton() {
  const [theme, setTheme] = useTheme();
  const next = () => setTheme(NEXT_THEME[theme]);
  useKeys([["t", `Theme (${THEMES.join(", ")})`, next]], "Everywhere");
  return html`
    <button type="button" class="button is-bare is-icon" aria-label=${`Theme: ${theme}`} title=${`Theme: ${theme}`} onClick=${next}>
      <svg viewBox="0 0 16 16" aria-hidden="true">${THEME_SHAPES[theme]}</svg>
    </button>
  `;
}

/** The list of the keys that work where one is. */
function KeysButton() {
  const dialog = useRef(null);
  const [groups, setGroups] = useState([]);
  const show = () => {
    if (dialog.current?.open) return;
    setGroups(activeKeys());
    dialog.current?.showModal();
  };
  const close = () => dialog.current?.close();
  useKeys([["?", "These keys", show]], "Everywhere");
  const onKeyDown = (event) => {
    if (event.key === "?") close();
  };
  const onClick = (event) => event.target === dialog.current && close();
  return html`
    <button type="button" class="button is-bare is-icon keys-button" aria-label="Keys" title="Keys" onClick=${show}>?</button>
    <dialog ref=${dialog} class="keys" aria-labelledby="keys-title" onKeyDown=${onKeyDown} onClick=${onClick}>
      <div class="keys-head">
        <h2 id="keys-title">Keys</h2>
        <button type="button" class="button is-bare is-icon" aria-label="Close" onClick=${close}>
          <svg viewBox="0 0 16 16" aria-hidden="true"><path d="m4 4 8 8m0-8-8 8" /></svg>
        </button>
      </div>
      <div class="keys-groups">
        ${groups.map(
          ({ heading, bindings }) => html`
            <section key=${heading}>
              <h3>${heading}</h3>
              <dl>${merged(bindings).map(([keys, words]) => html`<${KeyLine} key=${words} keys=${keys} words=${words} />`)}</dl>
            </section>
          `,
        )}
      </div>
    </dialog>
  `;
}

/** Return [[keys, words], ...]: keys that do the same stand together. */
function merged(bindings) {
  const byWords = new Map();
  for (const [key, words] of bindings) byWords.set(words, [...(byWords.get(words) || []), key]);
  return [...byWords].map(([words, keys]) => [keys, words]);
}

function KeyLine({ keys, words }) {
  return html`
    <div>
      <dt>${words}</dt>
      <dd>
        ${keys.map((key, place) => html`${place > 0 && html`<span class="faint">or</span>`}${key.split(" ").map((one) => html`<kbd>${one}</kbd>`)}`)}
      </dd>
    </div>
  `;
}

/** A quiet bar while the server is away. */
function Away({ status }) {
  const words =
    status === 401
      ? "This link is no longer valid. Open the address that rewardkit ui printed when it was started."
      : "The server does not answer. This is what it last said; the page goes on by itself when it is back.";
  return html`<div class="away"><span class="dot is-lost" aria-hidden="true"></span><span>${words}</span></div>`;
}

const CHANGES = {
  running: "The run goes on",
  finished: "The run is finished",
  stopped: "An error has stopped the run",
  killed: "The run was killed",
  missing: "The run was removed",
  unreadable: "The record cannot be read",
};

/** What changed, for those who hear the page. */
function Told({ run, tab, lost, live, overview }) {
  const [words, setWords] = useState("");
  const state = live.state?.state ?? null;
  const versions = overview.data?.versions?.length ?? null;
  const before = useRef({ run, tab, lost, state, versions });
  useEffect(() => {
    const was = before.current;
    before.current = { run, tab, lost, state, versions };
    const same = was.run === run;
    if (!same || was.tab !== tab) setWords(run ? `${TITLES[tab]} of the run ${visible(run)}` : "All runs");
    else if (was.lost !== lost) setWords(lost ? "The server does not answer" : "The server is back");
    else if (state && was.state && was.state !== state) setWords(CHANGES[state]);
    else if (versions && was.versions && versions > was.versions) setWords("A reward has a new version");
  }, [run, tab, lost, state, versions]);
  return html`<div class="unseen" role="status" aria-live="polite">${words}</div>`;
}
