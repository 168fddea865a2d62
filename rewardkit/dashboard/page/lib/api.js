/** Asking the server: one function for each way, and a hook that keeps what it last heard. */
import { useCallback, useEffect, useRef, useState } from "./view.js";
import { onTick } from "./live.js";
import { SAVED, savedAnswer } from "./saved.js";
import { Refusal } from "./saved-conditions.js";
import { readPreference } from "./store.js";

const KEPT = 40;
const PAUSE_MS = 250;
const RETRY_MS = [1000, 2000, 4000];
const FINAL = [400, 404];
const PASSING = [0, 401, 408, 503];
const kept = new Map();

/** What went wrong with a request: status 0 means that the server did not answer; state names some that pass. */
export class Problem extends Error {
  constructor(status, words, state = null) {
    super(words);
    this.status = status;
    this.words = words;
    this.state = state;
  }
}

/** Whether a problem passes by itself: while there is data, only the frame says so. */
export function passes(problem) {
  return PASSING.includes(problem?.status);
}

/** Ask for JSON; throws a Problem. */
export async function get(path, query = {}, { signal } = {}) {
  return answer(url(path, query), { signal, headers: { Accept: "application/json" } });
}

/** Send JSON and return the answer; throws a Problem. */
export async function post(path, body) {
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  const token = readPreference("write-token", "", { session: true });
  if (token) headers["X-Write-Token"] = token;
  return answer(url(path), { method: "POST", headers, body: JSON.stringify(body) });
}

function url(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const asked = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
  const whole = path.startsWith("/") ? path : `/api/${path}`;
  return asked ? `${whole}?${asked}` : whole;
}

async function answer(address, options) {
  if (SAVED) return ofFile(address, options);
  let response;
  try {
    response = await fetch(address, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (wrong) {
    if (wrong.name === "AbortError") throw wrong;
    throw new Problem(0, "The server does not answer.");
  }
  const body = await response.json().catch((wrong) => {
    if (wrong.name === "AbortError") throw wrong;
    return null;
  });
  if (!response.ok) {
    throw new Problem(response.status, body?.error || `The server answered ${response.status}.`, body?.state);
  }
  return body;
}

/** What a saved page answers in place of the server: it changes nothing, and says what it does not have. */
async function ofFile(address, { method }) {
  const { pathname, searchParams } = new URL(address, "http://page");
  const query = Object.fromEntries(searchParams);
  try {
    const found = method === "POST" ? null : await savedAnswer(pathname.split("/").pop(), query);
    if (found) return found;
  } catch (wrong) {
    if (wrong instanceof Refusal) throw new Problem(400, wrong.message);
    if (!(wrong instanceof TypeError)) throw wrong;
    throw new Problem(404, `This filter (${wrong.message}) needs the run's record: rewardkit ui shows it.`, "saved");
  }
  throw new Problem(404, ["This page was saved without it.", ...SAVED.left_out].join(" "), "saved");
}

/**
 * Ask for a saved page of a run and return it as a Blob with what was said of it; `tell({done, of})` hears how far it is.
 * Throws a Problem.
 */
export async function savedPage(path, query, { signal, tell }) {
  let response;
  try {
    response = await fetch(url(path, query), { credentials: "same-origin", cache: "no-store", signal });
  } catch (wrong) {
    if (wrong.name === "AbortError") throw wrong;
    throw new Problem(0, "The server does not answer.");
  }
  if (!response.ok) throw new Problem(response.status, (await response.json().catch(() => null))?.error || `The server answered ${response.status}.`);
  const reader = response.body.getReader();
  const parts = [];
  let line = "";
  let about = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    let rest = value;
    while (!about && rest.length) {
      const end = rest.indexOf(10);
      line += new TextDecoder().decode(end < 0 ? rest : rest.subarray(0, end));
      rest = end < 0 ? rest.subarray(rest.length) : rest.subarray(end + 1);
      if (end < 0) break;
      const told = JSON.parse(line);
      line = "";
      if (told.error) throw new Problem(400, told.error);
      if (told.bytes) about = told;
      else tell(told);
    }
    if (about && rest.length) parts.push(rest);
  }
  const page = new Blob(parts, { type: "text/html" });
  if (!about || page.size !== about.bytes) throw new Problem(0, "The page did not arrive whole.");
  return { page, about };
}

function keep(address, data) {
  kept.delete(address);
  kept.set(address, data);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  return data;
}

/**
 * Ask for JSON and ask again at each tick of the run that is shown (not with `live: false`) and every `every` ms.
 * The last data stays while it loads anew and while the server is away: the frame says so, and `problem` is what the
 * view itself must say; `trouble` is either. A null path asks for nothing.
 */
export function useApi(path, query = {}, { every = 0, live = true } = {}) {
  const address = path === null || path === undefined ? null : url(path, query);
  const [heard, setHeard] = useState({ address: null, path: null, data: null, problem: null });
  const [loading, setLoading] = useState(false);
  const asker = useRef(null);

  useEffect(() => {
    if (address === null) return undefined;
    const ask = async (signal) => keep(address, await get(address, {}, { signal }));
    const mine = asking(ask, { every, live, setLoading }, (data, problem) =>
      setHeard((before) => ({ address, path, data: problem ? lastOf(before, address, path, problem) : data, problem })),
    );
    asker.current = mine;
    return mine.stop;
  }, [address, every, live]);

  const reload = useCallback(() => asker.current?.again(), []);
  const ours = heard.path === path;
  const data = ours ? (heard.address === address ? heard.data : (kept.get(address) ?? heard.data)) : kept.get(address);
  const pending = address !== null && heard.address !== address;
  const trouble = pending ? null : heard.problem;
  const problem = data && passes(trouble) ? null : trouble;
  return { data: data ?? null, problem, trouble, loading: loading || pending, reload };
}

/** What of the last data still holds: nothing, where the question was wrong or its subject is gone. */
function lastOf(before, address, path, problem) {
  if (FINAL.includes(problem.status)) {
    kept.delete(address);
    return null;
  }
  return before.path === path ? before.data : (kept.get(address) ?? null);
}

/**
 * Ask until it is stopped: at once, at each tick with `live`, every so many ms, and again after a failure; not while the
 * page is hidden. `ask(signal)` returns the data, of which `unfinished` says whether more can be had at once.
 */
export function asking(ask, { every = 0, live = true, setLoading = () => {}, unfinished = () => false }, tell) {
  let stopped = false;
  let flight = null;
  let stale = false;
  let heard = false;
  let failures = 0;
  let timer = null;

  const later = (pause) => {
    clearTimeout(timer);
    timer = setTimeout(again, pause);
  };
  const again = async () => {
    if (stopped) return;
    if (document.hidden && heard) {
      document.addEventListener("visibilitychange", again, { once: true });
      return;
    }
    if (flight) {
      stale = true;
      return;
    }
    clearTimeout(timer);
    flight = new AbortController();
    setLoading(true);
    try {
      const data = await ask(flight.signal);
      if (stopped) return;
      failures = 0;
      heard = true;
      tell(data, null);
      if (unfinished(data)) later(0);
      else if (every) later(every);
    } catch (wrong) {
      if (stopped || wrong.name === "AbortError") return;
      tell(null, wrong instanceof Problem ? wrong : new Problem(0, String(wrong.message || wrong)));
      failures += 1;
      if (every || !FINAL.includes(wrong.status)) later(RETRY_MS[Math.min(failures, RETRY_MS.length) - 1]);
    } finally {
      flight = null;
      if (!stopped) setLoading(false);
    }
    if (stale && !failures) later(PAUSE_MS);
    stale = false;
  };
  const leave = live ? onTick(again) : () => {};
  again();
  return {
    again,
    stop() {
      stopped = true;
      leave();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", again);
      flight?.abort();
    },
  };
}
