/** A search through all completions: asked slice by slice, so that finds stand there at once and it can be stopped. */
import { Problem, get } from "../../lib/api.js";
import { useEffect, useRef, useState } from "../../lib/view.js";

const READING_MS = 60;
const RETRY_MS = 1000;

/**
 * Search until so many rows have a match; {data, running, done, stopped, problem, stop, further, reload}.
 * `data` is the last answer with all rows so far. The run may grow meanwhile: the search is of what there was at first.
 */
export function useSearch(path, asked, page) {
  const key = path === null ? null : JSON.stringify([path, asked]);
  const [state, setState] = useState({ key: null, data: null, running: false, done: false, stopped: false, problem: null });
  const mine = useRef(null);

  const start = (before) => {
    mine.current?.abort();
    const flight = new AbortController();
    mine.current = flight;
    searched(path, asked, page, before, flight.signal, (change) => {
      if (!flight.signal.aborted) setState((now) => ({ ...(now.key === key ? now : { data: null }), key, ...change }));
    });
  };
  useEffect(() => {
    if (key === null) return undefined;
    start(null);
    return () => mine.current?.abort();
  }, [key]);

  const ours = state.key === key ? state : { data: null, running: true, done: false, stopped: false, problem: null };
  return {
    ...ours,
    stop() {
      mine.current?.abort();
      setState((now) => ({ ...now, running: false, stopped: true }));
    },
    further: () => start(ours.data),
    reload: () => start(ours.data),
  };
}

async function searched(path, asked, page, before, signal, tell) {
  const rows = before ? [...before.rows] : [];
  const most = rows.length + page;
  let { end, until } = before || { end: 0, until: asked.until };
  tell({ running: true, done: false, stopped: false, problem: null });
  while (!signal.aborted) {
    let data;
    try {
      data = await get(path, { ...asked, until, from: end, limit: most - rows.length }, { signal });
    } catch (wrong) {
      if (signal.aborted || wrong.name === "AbortError") return;
      const problem = wrong instanceof Problem ? wrong : new Problem(0, String(wrong.message || wrong));
      if ([0, 503].includes(problem.status)) {
        await pause(RETRY_MS);
        continue;
      }
      tell({ running: false, done: true, problem });
      return;
    }
    if (data.reading) {
      tell({ data: { ...data, rows } });
      await pause(READING_MS);
      continue;
    }
    rows.push(...data.rows);
    ({ end, until } = data);
    const done = end >= data.matched;
    const running = !done && rows.length < most;
    tell({ data: { ...data, rows: [...rows] }, running, done });
    if (!running) return;
  }
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
