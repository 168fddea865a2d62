/** Logs: what each reward printed and why it failed, as an endless list with counts and filters above. */
import { go, href, of } from "../lib/address.js";
import { get, useApi } from "../lib/api.js";
import { UNKNOWN, count, counted, epochsPassed, number, seconds, stepSpan, visible } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { onTick, useLive } from "../lib/live.js";
import { SAVED } from "../lib/saved.js";
import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/view.js";
import { Status, VersionChip } from "../parts/chip.js";
import { CompletionText } from "../parts/completion.js";
import { Choice, NumberField, Search } from "../parts/fields.js";
import { Empty, Loading, ProblemNote } from "../parts/states.js";

const FILTERS = ["reward", "version", "first", "last", "status", "cause", "text"];
const PAGE = 60;
const NEWS = 200;
const SLICES = { text: 40, other: 150 };
const AHEAD_PX = 600;
const ROW_PX = { wide: 33, narrow: 57 };
const NARROW = window.matchMedia("(max-width: 760px)");

/** The tab. */
export default function Logs({ run, overview, query }) {
  const filters = useMemo(() => chosen(query), [JSON.stringify(chosen(query))]);
  const { first, last } = SAVED ? {} : filters; // a saved page has the counts of all steps
  const counts = useApi(of(run, "logs"), { what: "counts", first, last });
  const set = (change) => go({ query: { entry: null, ...change } }, { replace: true });
  return html`
    <div class="stack logs">
      <h1 class="unseen">Logs</h1>
      ${counts.data && html`<${Summary} counts=${counts.data} filters=${filters} range=${{ first, last }} set=${set} />`}
      <${Filters} filters=${filters} order=${query.order} overview=${overview} set=${set} />
      <${Entries} key=${run} run=${run} filters=${filters} order=${query.order || "newest"} opened=${query.entry} set=${set} />
    </div>
  `;
}

function chosen(query) {
  return Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, query[name]]));
}

const none = Object.fromEntries(FILTERS.map((name) => [name, null]));

/* The counts */

function Summary({ counts, filters, range, set }) {
  return html`
    <div class="logs-summary">
      <section class="panel" aria-label="Calls by reward">
        <div class="panel-head logs-head">
          <h2>Calls</h2>
          <span class="muted">${spanOf(counts, range)}</span>
          ${filters.first !== undefined || filters.last !== undefined
            ? html`<button type="button" class="button is-bare push" onClick=${() => set({ first: null, last: null })}>All steps</button>`
            : counts.steps && html`<span class="faint push logs-hint">drag over the bars to choose steps</span>`}
        </div>
        <ul class="strips">
          ${counts.rewards.map(
            (one) => html`<${Strip} key=${`${one.reward} ${one.version}`} one=${one} counts=${counts} filters=${filters} set=${set} />`,
          )}
        </ul>
      </section>
      <${Faults} counts=${counts} filters=${filters} range=${range} set=${set} />
    </div>
  `;
}

function spanOf(counts, filters) {
  if (!counts.steps) return "scored without steps";
  return `of ${stepSpan(Number(filters.first ?? counts.steps[0]), Number(filters.last ?? counts.steps[1]))}`;
}

/** One version of a reward: where in the run its calls failed or were skipped, and how many. */
function Strip({ one, counts, filters, set }) {
  const failed = Object.values(one.failed).reduce((sum, part) => sum + part, 0);
  const pick = (status, cause) => () => set({ ...none, first: filters.first, last: filters.last, reward: one.reward, version: one.version, status, cause });
  const on = (status, cause) =>
    String(filters.reward === one.reward && filters.version === String(one.version) && filters.status === status && (filters.cause || null) === cause);
  return html`
    <li class="strip">
      <button type="button" class="strip-name" aria-pressed=${on(undefined, null)} onClick=${pick(null, null)} title="Show what it said">
        <${VersionChip} reward=${one.reward} number=${one.version} />
      </button>
      <${Bars} one=${one} counts=${counts} filters=${filters} set=${set} />
      <span class="strip-counts">
        ${one.scored > 0 && html`<button type="button" class="tally" aria-pressed=${on("scored", null)} onClick=${pick("scored", null)}>${count(one.scored)} scored</button>`}
        ${one.skipped > 0 && html`<button type="button" class="tally is-skipped" aria-pressed=${on("skipped", null)} onClick=${pick("skipped", null)}>${count(one.skipped)} skipped</button>`}
        ${Object.entries(one.failed).map(
          ([cause, times]) => html`
            <button key=${cause} type="button" class="tally is-failed" aria-pressed=${on("failed", cause)} onClick=${pick("failed", cause)}>
              ${count(times)} ${cause.replace("_", " ")}
            </button>
          `,
        )}
        ${!failed && !one.skipped && html`<span class="faint">${one.scored ? "none failed" : "no calls"}</span>`}
      </span>
    </li>
  `;
}

const HEIGHT = 20;

/** The parts of the run as bars: red is failed, hatched is skipped; dragging chooses steps. */
function Bars({ one, counts, filters, set }) {
  const [draft, setDraft] = useState(null);
  const box = useRef(null);
  if (!counts.steps) return html`<span class="bars" />`;
  const [low, high] = counts.steps;
  const places = Math.floor((high - low) / counts.width) + 1;
  const at = (event) => {
    const { left, width } = box.current.getBoundingClientRect();
    return Math.min(Math.max(Math.floor(((event.clientX - left) / width) * places), 0), places - 1);
  };
  const range = draft ? [Math.min(...draft), Math.max(...draft)] : rangeOf(filters, low, counts.width, places);
  const onDown = (event) => {
    if (event.button) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setDraft([at(event), at(event)]);
  };
  const onUp = () => {
    if (!draft) return;
    const [from, to] = [Math.min(...draft), Math.max(...draft)];
    setDraft(null);
    set({ first: low + from * counts.width, last: Math.min(low + (to + 1) * counts.width - 1, high) });
  };
  const failed = one.bars.reduce((sum, [, , , part]) => sum + part, 0);
  return html`
    <svg
      ref=${box}
      class="bars"
      viewBox=${`0 0 ${places} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label=${`${one.reward} v${one.version}: ${count(failed)} failed over the run`}
      onPointerDown=${onDown}
      onPointerMove=${(event) => draft && setDraft([draft[0], at(event)])}
      onPointerUp=${onUp}
      onPointerCancel=${() => setDraft(null)}
    >
      ${range && html`<rect class="bars-range" x=${range[0]} y="0" width=${range[1] - range[0] + 1} height=${HEIGHT} />`}
      ${one.bars.map(([place, scored, skipped, failures]) => html`<${Bar} key=${place} place=${place} parts=${[scored, skipped, failures]} low=${low} width=${counts.width} />`)}
    </svg>
  `;
}

function rangeOf(filters, low, width, places) {
  if (filters.first === undefined && filters.last === undefined) return null;
  const place = (step, otherwise) => (step === undefined ? otherwise : Math.floor((Number(step) - low) / width));
  const [from, to] = [Math.max(place(filters.first, 0), 0), Math.min(place(filters.last, places - 1), places - 1)];
  return from > to ? null : [from, to];
}

function Bar({ place, parts: [scored, skipped, failed], low, width }) {
  const all = scored + skipped + failed;
  if (!all) return null;
  const tall = (part) => (part ? Math.max(Math.sqrt(part / all) * (HEIGHT - 2), 3) : 0); // a root, so that few are seen
  const first = low + place * width;
  const where = width === 1 ? `step ${first}` : `steps ${first} to ${first + width - 1}`;
  return html`
    <g>
      <title>${`${where}: ${scored} scored, ${skipped} skipped, ${failed} failed`}</title>
      <rect class="bar-all" x=${place + 0.1} y="0" width="0.8" height=${HEIGHT} />
      <rect class="bar-base" x=${place + 0.1} y=${HEIGHT - 1} width="0.8" height="1" />
      ${skipped > 0 && html`<rect class="bar-skipped" x=${place + 0.1} y=${HEIGHT - tall(failed) - tall(skipped)} width="0.8" height=${tall(skipped)} />`}
      ${failed > 0 && html`<rect class="bar-failed" x=${place + 0.1} y=${HEIGHT - tall(failed)} width="0.8" height=${tall(failed)} />`}
    </g>
  `;
}

/** Why calls failed in the chosen steps: by reward and cause, each with its newest error. */
function Faults({ counts, filters, range, set }) {
  const total = counts.faults.reduce((sum, one) => sum + one.count, 0);
  return html`
    <section class="panel" aria-label="Why calls failed">
      <div class="panel-head logs-head">
        <h2>Why calls failed</h2>
        <span class="muted">${total ? `${counted(total, "failure")} ${spanOf(counts, range)}` : ""}</span>
      </div>
      ${total === 0 && html`<p class="faults-none">No call failed${counts.steps ? ` ${spanOf(counts, range).replace("of ", "in ")}` : ""}.</p>`}
      <ul class="faults">
        ${counts.faults.map((one) => html`<${Fault} key=${`${one.reward} ${one.version} ${one.cause}`} one=${one} filters=${filters} set=${set} />`)}
      </ul>
    </section>
  `;
}

function Fault({ one, filters, set }) {
  const steps = one.first_step === one.last_step ? `step ${count(one.first_step)}` : `${one.steps} steps, ${count(one.first_step)} to ${count(one.last_step)}`;
  const show = () =>
    set({ ...none, first: filters.first, last: filters.last, reward: one.reward, version: one.version, status: "failed", cause: one.cause, entry: one.example?.key ?? null });
  return html`
    <li>
      <button type="button" class="fault" onClick=${show} title="Show these failures">
        <span class="line">
          <span class="chip is-bad">${count(one.count)} × ${one.cause.replace("_", " ")}</span>
          <${VersionChip} reward=${one.reward} number=${one.version} />
          ${one.first_step !== null && html`<span class="faint">${steps}</span>`}
        </span>
        <span class="fault-words mono">${one.example ? visible(one.example.words) : "its words are not in the record"}</span>
      </button>
    </li>
  `;
}

/* The filters */

function Filters({ filters, order, overview, set }) {
  const rewards = [...new Set(overview.versions.map((one) => one.reward))];
  const numbers = overview.versions.filter((one) => one.reward === filters.reward).map((one) => one.number);
  const some = FILTERS.some((name) => filters[name] !== undefined);
  const outcome = filters.cause ? `failed ${filters.cause}` : (filters.status ?? "");
  const outcomes = [["", "any outcome"], "scored", "skipped", "failed", ...overview.causes.map((cause) => [`failed ${cause}`, `failed: ${cause.replace("_", " ")}`])];
  const setOutcome = (value) => {
    const [status, cause] = value.split(" ");
    set({ status: status || null, cause: cause || null });
  };
  return html`
    <div class="bar" role="search" aria-label="Filter the entries">
      <${Search} value=${filters.text ?? ""} label="Search prints, errors and reasons" onChange=${(text) => set({ text: text || null })} />
      <${Choice} label="Reward" shown=${false} value=${filters.reward ?? ""} options=${[["", "all rewards"], ...rewards.map((one) => [one, visible(one)])]} onChange=${(reward) => set({ reward: reward || null, version: null })} />
      ${numbers.length > 1 &&
      html`<${Choice} label="Version" shown=${false} value=${filters.version ?? ""} options=${[["", "all versions"], ...numbers.map((one) => [one, `v${one}`])]} onChange=${(version) => set({ version: version || null })} />`}
      <${Choice} label="Outcome" shown=${false} value=${outcome} options=${outcomes} onChange=${setOutcome} />
      <span class="line">
        <${NumberField} label="Steps" value=${filters.first} low=${0} hint="first" onChange=${(first) => set({ first })} />
        <${NumberField} label="to" value=${filters.last} low=${0} hint="last" onChange=${(last) => set({ last })} />
      </span>
      <${Choice} label="Order" shown=${false} value=${order ?? "newest"} options=${[["newest", "newest first"], ["oldest", "oldest first"]]} onChange=${(next) => set({ order: next === "newest" ? null : next })} />
      ${some && html`<button type="button" class="button is-bare" onClick=${() => set(none)}>Clear filters</button>`}
    </div>
  `;
}

/* The entries */

const nothing = { entries: [], next: null, ended: false, head: null, searchedTo: null, loading: true, problem: null, slices: 0, fresh: [] };

/** Entries of the filters, page by page, and those that come while the run goes on. */
function useEntries(run, filters, order, isAtEnd) {
  const [state, setState] = useState(nothing);
  const live = useRef(null);
  const path = of(run, "logs");
  useEffect(() => {
    const mine = { ...nothing, flight: new AbortController(), busy: false, listening: false };
    live.current = mine;
    const show = (change) => {
      Object.assign(mine, change);
      if (live.current === mine) setState({ ...mine });
    };
    const ask = (more) => get(path, { ...filters, ...more }, { signal: mine.flight.signal });
    const failed = (wrong) => {
      if (wrong.name !== "AbortError") show({ problem: wrong, loading: false });
    };
    mine.more = async () => {
      if (mine.busy || (mine.ended && order === "newest")) return;
      mine.busy = true;
      show({ loading: true, problem: null });
      try {
        const page = await ask({ order, from: mine.next, limit: PAGE });
        show({
          entries: [...mine.entries, ...page.entries],
          next: page.next,
          ended: page.ended,
          head: mine.head ?? page.head,
          searchedTo: page.searched_to,
          slices: page.entries.length ? 0 : mine.slices + 1,
          loading: false,
        });
      } catch (wrong) {
        failed(wrong);
      } finally {
        mine.busy = false;
      }
    };
    mine.goOn = () => {
      mine.slices = 0;
      return mine.more();
    };
    mine.takeFresh = () => show({ entries: order === "newest" ? [...mine.fresh, ...mine.entries] : mine.entries, fresh: [] });
    const news = async () => {
      if (mine.listening || mine.head === null || (order === "oldest" && !mine.ended)) {
        if (mine.problem && mine.head === null) mine.more();
        return;
      }
      mine.listening = true;
      try {
        const page = await ask({ order: "oldest", from: order === "newest" ? mine.head : mine.next, limit: NEWS });
        if (page.last_id < Number(mine.head.split(":")[0])) return restart();
        const came = page.entries;
        if (order === "oldest") {
          show({ entries: [...mine.entries, ...came], next: page.next, head: page.head, problem: null, fresh: isAtEnd() ? [] : [...mine.fresh, ...came] });
        } else {
          const fresh = [...came.toReversed(), ...mine.fresh];
          const takes = isAtEnd();
          show({ head: page.next, problem: null, entries: takes ? [...fresh, ...mine.entries] : mine.entries, fresh: takes ? [] : fresh });
        }
        if (!page.ended) setTimeout(news, 250);
      } catch (wrong) {
        failed(wrong);
      } finally {
        mine.listening = false;
      }
      return undefined;
    };
    // A run that went back to a checkpoint took entries away: the list begins anew.
    const restart = () => {
      show({ ...nothing });
      mine.more();
    };
    show({});
    mine.more();
    const leave = onTick(news);
    return () => {
      leave();
      mine.flight.abort();
    };
  }, [path, JSON.stringify(filters), order]);
  return { ...state, more: () => live.current?.more(), goOn: () => live.current?.goOn(), takeFresh: () => live.current?.takeFresh() };
}

function useNarrow() {
  const [narrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const tell = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", tell);
    return () => NARROW.removeEventListener("change", tell);
  }, []);
  return narrow;
}

function Entries({ run, filters, order, opened, set }) {
  const box = useRef(null);
  const { state: now } = useLive(run);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [extra, setExtra] = useState(0);
  const [at, setAt] = useState(null);
  const openKey = useRef(opened);
  openKey.current = opened;
  const pressed = useRef(false);
  const isAtEnd = useCallback(() => {
    const list = box.current;
    if (!list || openKey.current || pressed.current) return false;
    return order === "newest" ? list.scrollTop < 4 : list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  }, [order]);
  const list = useEntries(run, filters, order, isAtEnd);
  const { entries } = list;
  const px = ROW_PX[useNarrow() ? "narrow" : "wide"];
  const openAt = opened ? entries.findIndex((one) => one.key === opened) : -1;
  const tall = openAt < 0 ? 0 : extra;
  const running = now?.state === "running";

  const look = () => {
    const { scrollTop, clientHeight } = box.current;
    setView({ top: scrollTop, height: clientHeight });
    if (list.fresh.length && isAtEnd()) list.takeFresh();
  };
  useLayoutEffect(look, [entries.length === 0]);
  useEffect(() => {
    window.addEventListener("resize", look);
    return () => window.removeEventListener("resize", look);
  });
  // While the mouse is down nothing moves under it: a row that came in between would take the click away.
  const press = () => {
    pressed.current = true;
    const held = new AbortController();
    const release = () => {
      held.abort();
      setTimeout(() => {
        pressed.current = false;
        if (box.current) look();
      });
    };
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, release, { signal: held.signal });
  };
  const wasAtEnd = useRef(false);
  useLayoutEffect(() => {
    if (order === "oldest" && wasAtEnd.current && list.ended) box.current.scrollTop = box.current.scrollHeight;
    wasAtEnd.current = list.ended && isAtEnd();
  });
  const most = filters.text ? SLICES.text : SLICES.other;
  const below = entries.length * px + tall - view.top - view.height;
  useEffect(() => {
    if (!list.loading && !list.problem && !list.ended && below < AHEAD_PX && list.slices < most) list.more();
  }, [list.loading, list.problem, list.ended, below < AHEAD_PX, list.slices, entries.length]);

  const topOf = (place) => place * px + (openAt >= 0 && place > openAt ? tall : 0);
  const placeAt = (y) => {
    if (openAt < 0 || y < topOf(openAt + 1)) return Math.min(Math.floor(y / px), openAt < 0 ? Infinity : openAt);
    return Math.floor((y - tall) / px);
  };
  const from = Math.max(placeAt(Math.max(view.top - AHEAD_PX / 2, 0)), 0);
  const to = Math.min(placeAt(view.top + view.height + AHEAD_PX / 2) + 1, entries.length);

  const toggle = (key) => go({ query: { entry: key === opened ? null : key } }, { replace: true });
  const goTo = (place) => {
    const next = Math.min(Math.max(place, 0), entries.length - 1);
    if (next < 0) return;
    setAt(entries[next].key);
    const [top, end] = [topOf(next), topOf(next) + px];
    if (top < box.current.scrollTop) box.current.scrollTop = top;
    else if (end > box.current.scrollTop + box.current.clientHeight) box.current.scrollTop = end - box.current.clientHeight;
  };
  const place = entries.findIndex((one) => one.key === at);
  const follow = () => {
    if (order === "oldest" && !list.ended) return set({ order: null });
    list.takeFresh();
    if (opened) go({ query: { entry: null } }, { replace: true });
    box.current.scrollTop = order === "newest" ? 0 : box.current.scrollHeight;
    return undefined;
  };
  useKeys([
    ["j", "Next entry", () => goTo(place < 0 ? from : place + 1)],
    ["k", "Entry before", () => goTo(place < 0 ? from : place - 1)],
    ["Enter", "Open or close the entry", () => place >= 0 && toggle(at)],
    ["f", "Follow the run", follow],
  ]);
  useLayoutEffect(() => {
    if (at) box.current?.querySelector(`[data-key="${at}"]`)?.focus({ preventScroll: true });
  }, [at]);

  const following = running && !list.fresh.length && isAtEnd();
  return html`
    <section class="panel log-panel" aria-label="Entries" aria-busy=${String(list.loading)}>
      <div class="log-row log-titles" aria-hidden="true">
        <span class="right">step</span><span>outcome</span><span>reward</span><span>what it said</span><span class="right">score</span><span class="right">took</span>
      </div>
      ${opened && openAt < 0 && !list.loading && html`<div class="log-pinned"><${Detail} run=${run} entryKey=${opened} close=${() => toggle(opened)} /></div>`}
      <div class="log-list" ref=${box} onScroll=${look} onPointerDown=${press} tabindex="-1">
        <div class="log-space" style=${{ height: `${entries.length * px + tall}px` }}>
          <ul class="log-window" style=${{ transform: `translateY(${topOf(from)}px)` }}>
            ${entries.slice(from, to).map(
              (one) => html`
                <${Entry} key=${one.key} run=${run} one=${one} text=${filters.text} px=${px} open=${one.key === opened} at=${one.key === at} toggle=${toggle} setExtra=${setExtra} />
              `,
            )}
          </ul>
        </div>
        <${Foot} list=${list} order=${order} filters=${filters} set=${set} running=${running} most=${most} />
      </div>
      ${list.fresh.length > 0 && html`<button type="button" class="log-pill" onClick=${follow}>${order === "newest" ? "↑" : "↓"} ${count(list.fresh.length)}${list.fresh.length >= NEWS ? "+" : ""} new</button>`}
      <div class="log-state faint" role="status">
        <span>${counted(entries.length, "entry", "entries")}${list.ended ? "" : " so far"}</span>
        ${running && html`<button type="button" class="button is-bare" aria-pressed=${String(following)} onClick=${follow}>${following ? "Following" : "Follow"} <kbd>f</kbd></button>`}
      </div>
    </section>
  `;
}

/** What stands below the last entry: loading, how far a search came, or that there is no more. */
function Foot({ list, order, filters, set, running, most }) {
  if (list.problem) return html`<${ProblemNote} problem=${list.problem} retry=${list.more} />`;
  const some = FILTERS.some((name) => filters[name] !== undefined);
  if (list.ended && !list.entries.length) {
    const clear = html`<button type="button" class="button" onClick=${() => set(none)}>Clear filters</button>`;
    if (some) return html`<${Empty} title="No entry fits these filters" hint="A call has an entry where it printed, failed or gave a reason.">${clear}<//>`;
    const hint = "What a reward prints, the reason that it gives with Score(…, reason=…), and each failure stand here.";
    return html`<${Empty} title=${running ? "Nothing was said yet" : "No reward said anything"} hint=${hint} />`;
  }
  if (list.ended) return html`<p class="log-foot faint">${order === "newest" ? "This is the first entry." : running ? "New entries appear here." : "This is the last entry."}</p>`;
  if (list.slices >= most && !list.loading) {
    return html`
      <p class="log-foot">
        <span>Searched to ${list.searchedTo === null ? "here" : `step ${count(list.searchedTo)}`}.</span>
        <button type="button" class="button" onClick=${list.goOn}>Go on</button>
      </p>
    `;
  }
  if (!list.entries.length) return html`<div class="log-loading"><${Loading} rows=${8} label="Loading entries" /></div>`;
  const where = filters.text && list.searchedTo !== null ? `Searching at step ${count(list.searchedTo)} …` : "Loading …";
  return html`<p class="log-foot faint">${where}</p>`;
}

const KINDS = { error: "error", print: "print", reason: "reason", metrics: "metrics", unanswered: "no answer", none: "" };

function Entry({ run, one, text, px, open, at, toggle, setExtra }) {
  return html`
    <li class=${`log-entry${at ? " is-at" : ""}${open ? " is-open" : ""}`}>
      <button type="button" class="log-row" style=${{ height: `${px}px` }} data-key=${one.key} aria-expanded=${String(open)} onClick=${() => toggle(one.key)}>
        <span class="log-step right">${one.step === null ? `#${one.completion}` : html`<span class="log-step-word faint">step </span>${count(one.step)}`}${one.split === "eval" && html`<span class="faint"> eval</span>`}</span>
        <span class="log-status"><${Status} status=${one.status} cause=${one.cause} /></span>
        <span class="log-reward"><${VersionChip} reward=${one.reward} number=${one.version} /></span>
        <span class="log-words cut"><span class=${`log-kind is-${one.kind}`}>${KINDS[one.kind]}</span><${Marked} words=${visible(one.words)} text=${text} /></span>
        <span class="log-score right"><${Score} one=${one} /></span>
        <span class="log-took right faint">${one.cached ? "cached" : seconds(one.seconds)}</span>
      </button>
      ${open && html`<${Measured} setExtra=${setExtra}><${Detail} run=${run} entryKey=${one.key} text=${text} /><//>`}
    </li>
  `;
}

/** The score of a call; one that stands in for a failure is told apart from a scored one. */
function Score({ one }) {
  if (one.score === null) return html`<span class="faint">${UNKNOWN}</span>`;
  if (one.status === "failed") return html`<span class="stand-in" title="stands in for the failure">(${number(one.score)})</span>`;
  return number(one.score);
}

/** Words with what was searched for marked. */
function Marked({ words, text }) {
  if (!text) return words;
  const sought = text.toLowerCase();
  const lower = words.toLowerCase();
  if (lower.length !== words.length) return words;
  const parts = [];
  let from = 0;
  for (let found = lower.indexOf(sought); found >= 0; found = lower.indexOf(sought, from)) {
    parts.push(words.slice(from, found), html`<mark>${words.slice(found, found + sought.length)}</mark>`);
    from = found + sought.length;
  }
  return [...parts, words.slice(from)];
}

/** Tells the list how tall an open entry is. */
function Measured({ children, setExtra }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const measure = () => setExtra(box.current?.offsetHeight ?? 0);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    return () => {
      watch.disconnect();
      setExtra(0);
    };
  }, []);
  return html`<div ref=${box} class="log-measured">${children}</div>`;
}

/** All of one entry: score and reason, error and traceback, output, metrics, and the completion. */
function Detail({ run, entryKey, text, close }) {
  const { data: one, problem } = useEntry(run, entryKey);
  if (problem) return html`<div class="log-detail"><${ProblemNote} problem=${problem} />${close && html`<button type="button" class="button" onClick=${close}>Close</button>`}</div>`;
  if (!one) return html`<div class="log-detail"><${Loading} rows=${3} label="Loading the entry" /></div>`;
  const to = href({ run, tab: "completions", query: { prompt: one.prompt_index, right: one.completion } });
  return html`
    <div class="log-detail">
      <div class="line">
        <${Status} status=${one.status} cause=${one.cause} />
        <${VersionChip} reward=${one.reward} number=${one.version} />
        <span class="log-detail-score">${one.status === "failed" && one.score !== null ? `${number(one.score)} stands in` : one.status === "scored" ? number(one.score) : ""}</span>
        <span class="faint">${whereOf(one)}</span>
        <span class="push line">
          <a class="button" href=${to}>Compare this completion</a>
          ${close && html`<button type="button" class="button is-bare" onClick=${close}>Close</button>`}
        </span>
      </div>
      <div class="log-halves">
        <div class="stack">
          <${Block} title="Reason" words=${one.reason} text=${text} plain />
          <${Block} title="Error" words=${one.error} text=${text} bad />
          <${Block} title="Traceback" words=${one.traceback} text=${text} />
          <${Block} title="Printed" words=${one.logs} text=${text} />
          ${one.unanswered.length > 0 && html`<${Block} title="No answer from" words=${one.unanswered.map((part) => `${part.name}: ${part.message}`).join("\n")} />`}
          <${Metrics} metrics=${one.metrics} />
          <dl class="facts">
            <dt>Took</dt><dd>${one.cached ? "nothing: an earlier score of the same completion" : `${seconds(one.seconds)} in ${counted(one.attempts, "attempt")}`}</dd>
            <dt>Reward</dt><dd>${number(one.total)}, advantage ${number(one.advantage)}</dd>
          </dl>
        </div>
        <div class="stack">
          <section>
            <h3 class="block-title">Completion ${count(one.completion)} <span class="faint">${one.tokens === null ? "" : counted(one.tokens, "token")}${one.truncated ? ", truncated" : ""}</span></h3>
            <div class="block" tabindex="0">${one.text === null ? html`<p class="faint">its text was left out of the record</p>` : html`<${CompletionText} text=${one.text} mode=${modeOf(one.text)} />`}</div>
          </section>
          <section>
            <h3 class="block-title">Prompt ${count(one.prompt_index)}</h3>
            <div class="block" tabindex="0"><${CompletionText} text=${one.prompt} mode=${modeOf(one.prompt)} /></div>
          </section>
        </div>
      </div>
    </div>
  `;
}

const modeOf = (text) => (text.messages ? "conversation" : "text");

function whereOf(one) {
  const parts = [one.step === null ? null : `step ${count(one.step)}`, one.epoch === null ? null : `epoch ${epochsPassed(one.epoch)}`];
  return [...parts, one.split === "eval" ? "evaluation" : null, one.rank ? `rank ${one.rank}` : null].filter(Boolean).join(", ");
}

/** Ask for an entry once: what was recorded does not change. */
function useEntry(run, key) {
  const [heard, setHeard] = useState({ key: null, data: null, problem: null });
  useEffect(() => {
    const flight = new AbortController();
    get(of(run, "logs"), { what: "entry", key }, { signal: flight.signal })
      .then((data) => setHeard({ key, data, problem: null }))
      .catch((problem) => problem.name !== "AbortError" && setHeard({ key, data: null, problem }));
    return () => flight.abort();
  }, [run, key]);
  return heard.key === key ? heard : { data: null, problem: null };
}

function Block({ title, words, text, bad, plain }) {
  if (!words) return null;
  return html`
    <section>
      <h3 class="block-title">${title}</h3>
      <pre tabindex="0" class=${`block text${bad ? " is-bad" : ""}${plain ? " is-plain" : ""}`}><${Marked} words=${visible(words)} text=${text} /></pre>
    </section>
  `;
}

function Metrics({ metrics }) {
  const pairs = Object.entries(metrics);
  if (!pairs.length) return null;
  return html`
    <section>
      <h3 class="block-title">Metrics</h3>
      <dl class="facts mono">${pairs.map(([name, value]) => html`<dt key=${name}>${visible(name)}</dt><dd>${number(value)}</dd>`)}</dl>
    </section>
  `;
}
