/** Runs' curves: after the first answer only what has changed is asked for, and put behind what is known. */
import { of } from "./address.js";
import { asking, get } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./view.js";

const NEW = { lines: [], notes: [] };
const NOTHING = { data: null, problem: null };

/** Return {data, problem, reload} of a run's curves; a null run has no curves. */
export function useCurves(run, query) {
  const [heard, reload] = useCurvesOf(run === null ? [] : [run], query);
  return { ...(heard[run] || NOTHING), reload };
}

/**
 * Return [{run: {data, problem}}, reload] of several runs, each asked for again every so many ms besides at each tick.
 * query: split, metrics and graphs as the server takes them, the last two as lists of names; metrics may be "usual".
 */
export function useCurvesOf(runs, { split = "train", metrics = [], graphs = [] }, { every = 0 } = {}) {
  const [heard, setHeard] = useState({});
  const askers = useRef([]);
  const key = JSON.stringify([runs, split, metrics, graphs, every]);
  useEffect(() => {
    const chosen = metrics === "usual" ? { usual: 1 } : { metrics: listed(metrics) };
    const query = { split, ...chosen, graphs: listed(graphs) };
    askers.current = runs.map((run) => following(run, query, every, setHeard));
    return () => askers.current.forEach((one) => one.stop());
  }, [key]);
  const reload = useCallback(() => askers.current.forEach((one) => one.again()), []);
  return [heard, reload];
}

function listed(names) {
  return names.map(encodeURIComponent).join(",");
}

function following(run, query, every, setHeard) {
  let data = null;
  const ask = async (signal) => {
    data = merged(data, await get(of(run, "graphs"), { ...query, after: data?.mark }, { signal }));
    return data;
  };
  return asking(ask, { every, unfinished: ({ unread }) => unread > 0 }, (found, problem) =>
    setHeard((before) => ({ ...before, [run]: { data: found || data || before[run]?.data || null, problem } })),
  );
}

/** Put an answer behind the part of what is known that has not changed. */
function merged(known, answer) {
  if (!known || !answer.from || known.steps.length < answer.from) return answer;
  const before = known.steps.slice(0, answer.from);
  const first = answer.steps.length ? answer.steps[0] : Infinity;
  const older = new Map(known.graphs.map((graph) => [graph.key, graph]));
  const graphs = answer.graphs.map((graph) => {
    const old = older.get(graph.key) || NEW;
    const names = [...new Set([...graph.lines, ...old.lines].map((line) => line.name))];
    const lines = names.map((name) => longer(name, old.lines, graph.lines, answer.from, answer.steps.length));
    return { ...graph, lines, notes: [...old.notes.filter(([step]) => step < first), ...graph.notes] };
  });
  const unscored = [...known.unscored.filter((step) => step < first), ...answer.unscored];
  return { ...answer, steps: [...before, ...answer.steps], graphs, unscored };
}

function longer(name, old, now, from, more) {
  const [before, after] = [old, now].map((lines) => lines.find((line) => line.name === name));
  const joined = (part) => {
    if (!before?.[part] && !after?.[part]) return null;
    return [
      ...(before?.[part]?.slice(0, from) || Array(from).fill(null)),
      ...(after?.[part] || Array(more).fill(null)),
    ];
  };
  return { name, values: joined("values"), low: joined("low"), high: joined("high") };
}
