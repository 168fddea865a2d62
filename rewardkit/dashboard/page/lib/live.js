/** What is new in a run: one stream of events, and asking every two seconds where it does not come through. */
import { useEffect, useState } from "./view.js";

const POLL_MS = 2000;
const SILENCE_MS = 4000;
const REOPEN_MS = 15000;
const listeners = new Set();
const watchers = new Set();
const nothing = { run: null, tick: 0, link: "polling", state: null, problem: null };
let now = nothing;
let connection = null;

/** Call back whenever the run that is shown has changed, or the server is back; returns how to leave. */
export function onTick(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Return {tick, link, state, problem} of a run: link is "live", "polling" or "lost". */
export function useLive(run) {
  const [seen, setSeen] = useState(now);
  useEffect(() => {
    watchers.add(setSeen);
    watch(run);
    setSeen(now);
    return () => watchers.delete(setSeen);
  }, [run]);
  return seen.run === run ? seen : { ...nothing, run };
}

function set(change) {
  now = { ...now, ...change };
  watchers.forEach((watcher) => watcher(now));
}

function tick(state, link) {
  const changed = JSON.stringify(state) !== JSON.stringify(now.state);
  const back = now.link === "lost";
  if (!changed && !back && now.link === link) return;
  set({ state, link, problem: null, tick: now.tick + (changed || back ? 1 : 0) });
  if (changed || back) listeners.forEach((listener) => listener(now));
}

function watch(run) {
  if (connection?.run === run) return;
  connection?.close();
  now = { ...nothing, run };
  connection = run ? connected(run) : null;
}

/** Hold the stream of one run open, and ask instead while it is silent. */
function connected(run) {
  const base = `/api/runs/${encodeURIComponent(run)}`;
  let closed = false;
  let source = null;
  let opened = 0;
  let timer = null;

  const open = () => {
    source?.close();
    if (document.hidden) return; // a browser has six connections to a host, for all its tabs together
    opened = Date.now();
    source = new EventSource(`${base}/live`);
    source.addEventListener("state", (event) => {
      clearTimeout(timer);
      timer = null;
      tick(JSON.parse(event.data), "live");
    });
    source.addEventListener("error", () => poll());
    clearTimeout(timer);
    timer = setTimeout(poll, SILENCE_MS);
  };
  const poll = async () => {
    clearTimeout(timer);
    if (document.hidden) return undefined;
    const wasLost = now.link === "lost";
    const { state, status } = await asked(`${base}/state`);
    if (closed) return undefined;
    if (state) {
      tick(state, "polling");
      const dead = source?.readyState === EventSource.CLOSED && Date.now() - opened > REOPEN_MS;
      if (wasLost || dead) return open();
    } else if (now.problem !== status || !wasLost) {
      set({ link: "lost", problem: status });
      if (status) listeners.forEach((listener) => listener(now)); // gone or refused: whoever asks is told why
    }
    clearTimeout(timer);
    timer = setTimeout(poll, POLL_MS);
    return undefined;
  };
  const onVisibility = () => {
    if (!document.hidden) return open();
    clearTimeout(timer);
    source?.close();
    return undefined;
  };
  document.addEventListener("visibilitychange", onVisibility);
  open();
  return {
    run,
    close() {
      closed = true;
      document.removeEventListener("visibilitychange", onVisibility);
      clearTimeout(timer);
      source?.close();
    },
  };
}

async function asked(address) {
  try {
    const response = await fetch(address, { credentials: "same-origin", cache: "no-store" });
    return { state: response.ok ? await response.json() : null, status: response.status };
  } catch {
    return { state: null, status: 0 };
  }
}
