/** What is new in a run: a stream of events; asking every two seconds where it does not come through, seldom if hidden. */
import { of } from "./address.js";
import { SAVED } from "./saved.js";
import { useEffect, useState } from "./view.js";

const POLL_MS = 2000;
const HIDDEN_MS = 30000; // its title tells how far the run is
const SILENCE_MS = 4000;
const REOPEN_MS = 15000;
const MOST_STREAMS = 3; // a browser opens six connections to a server, for all its tabs together
const listeners = new Set();
const watchers = new Set();
const nothing = { run: null, tick: 0, link: SAVED ? "saved" : "polling", state: null, problem: null };
let now = nothing;
let connection = null;

/** Call back whenever the run that is shown has changed, or the server is back; returns how to leave. */
export function onTick(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Return {tick, link, state, problem} of a run: link is "live", "polling" or "lost", or "saved" where nothing comes. */
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
  connection = run && !SAVED ? connected(run) : null;
}

/** Take a place for a stream, which the tabs of a browser share; returns how to give it back, or null. */
async function placeForStream() {
  if (!navigator.locks) return () => {};
  for (let number = 0; number < MOST_STREAMS; number += 1) {
    const release = await locked(`rewardkit-stream-${number}`);
    if (release) return release;
  }
  return null;
}

function locked(name) {
  return new Promise((resolve) => {
    const hold = (lock) => (lock ? new Promise((release) => resolve(release)) : resolve(null));
    navigator.locks.request(name, { ifAvailable: true }, hold).catch(() => resolve(null));
  });
}

/** Hold the stream of one run open, and ask instead while it is silent or other tabs have all the streams. */
function connected(run) {
  let closed = false;
  let source = null;
  let release = null;
  let opened = 0;
  let timer = null;

  const leave = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
    release?.();
    release = null;
  };
  const open = async () => {
    leave();
    opened = performance.now(); // the clock on the wall may be set back
    const mine = opened;
    const given = await placeForStream();
    if (closed || document.hidden || source || opened !== mine) return given?.();
    if (!given) return poll();
    release = given;
    source = new EventSource(of(run, "live"));
    source.addEventListener("state", (event) => {
      clearTimeout(timer);
      timer = null;
      tick(JSON.parse(event.data), "live");
    });
    source.addEventListener("error", () => poll());
    clearTimeout(timer);
    timer = setTimeout(poll, SILENCE_MS);
    return undefined;
  };
  const poll = async () => {
    clearTimeout(timer);
    const since = opened;
    const wasLost = now.link === "lost";
    const { state, status } = await asked(of(run, "state"));
    if (closed || opened !== since) return undefined; // a stream was opened meanwhile
    if (state) {
      tick(state, "polling");
      const dead = (!source || source.readyState === EventSource.CLOSED) && performance.now() - opened > REOPEN_MS;
      if (!document.hidden && (wasLost || dead)) return open();
    } else if (now.problem !== status || !wasLost) {
      set({ link: "lost", problem: status });
      if (status) listeners.forEach((listener) => listener(now)); // gone or refused: whoever asks is told why
    }
    clearTimeout(timer);
    timer = setTimeout(poll, document.hidden ? HIDDEN_MS : POLL_MS);
    return undefined;
  };
  const seen = () => {
    if (!document.hidden) return open();
    leave();
    timer = setTimeout(poll, HIDDEN_MS);
    return undefined;
  };
  document.addEventListener("visibilitychange", seen);
  if (document.hidden) poll();
  else open();
  return {
    run,
    close() {
      closed = true;
      document.removeEventListener("visibilitychange", seen);
      leave();
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
