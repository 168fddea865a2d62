/** What a saved page does with a table by itself: filters, order and pages, as the server does them. */

const ENTRIES = "entries";
const PASSED_OVER = ["rest", "split"];

/** Return a page of a table: `rows` names the list of its rows. Throws TypeError where the query asks for something else. */
export function tableOf(body, rows, query) {
  if (rows === ENTRIES) return entriesOf(body, query);
  const { sort, order, first, offset = 0, limit = body.limit, ...filters } = query;
  let found = body[rows].filter(fits(body, filters));
  if (sort) found = sorted(found, (row) => valueOf(row, sort), order === "down");
  if (first) found = sorted(found, FIRSTS[first], false);
  const from = Number(offset);
  const size = Number(limit);
  return { ...body, [rows]: found.slice(from, from + size), matched: found.length, offset: from, limit: size };
}

/** By what a step's prompts are put in order; the lowest value is first. */
const FIRSTS = {
  best: ({ best }) => (best === null ? null : -best),
  worst: ({ worst }) => worst,
  spread: ({ best, worst }) => (best === null ? null : worst - best),
};

/** Prompts by their pass rates, as the profile names them. */
const KINDS = {
  all: () => true,
  never_right: ({ rate }) => rate === 0,
  in_between: ({ rate }) => rate > 0 && rate < 1,
  always_right: ({ rate }) => rate === 1,
  unknown: ({ rate }) => rate === null,
};

function valueOf(row, name) {
  if (name.startsWith("column:")) return ofColumn(row.columns[name.slice("column:".length)]);
  if (row.scores && name in row.scores) return row.scores[name].status === "scored" ? row.scores[name].score : null;
  const value = row[name] ?? null;
  return typeof value === "string" ? value.toLowerCase() : value;
}

function ofColumn(text) {
  if (text === undefined) return null;
  return text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text);
}

/** Rows in order; those without a value stand last, equal ones as they stood. */
function sorted(rows, value, down) {
  const keyed = rows.map((row) => [value(row), row]);
  const words = keyed.some(([key]) => typeof key === "string");
  const compare = ([one], [other]) => {
    if (one === null || other === null) return (one === null) - (other === null);
    const [left, right] = words ? [String(one), String(other)] : [one, other];
    return (left < right ? -1 : left > right ? 1 : 0) * (down ? -1 : 1);
  };
  return keyed.sort(compare).map(([, row]) => row);
}

/** Return what tells whether a row fits; the filters are those of the server's tables. */
function fits(body, { column, value, reward, status, min, max, kind, ...others }) {
  const other = Object.keys(others).find((name) => !PASSED_OVER.includes(name) && others[name]);
  if (other) throw new TypeError(other);
  const versions = new Map((body.rewards || []).map((key) => [key.key, key.reward]));
  const has = (text, part) => String(text ?? "").toLowerCase().includes(part.toLowerCase());
  const isBounded = min !== undefined || max !== undefined;
  if (body.groups && (reward || isBounded)) throw new TypeError(reward ? "reward" : "min");
  return (row) => {
    if (column && value && !has(row.columns?.[column], value)) return false;
    if (kind && !KINDS[kind](row)) return false;
    if (!reward && !isBounded) return true;
    const cell = reward ? Object.entries(row.scores).find(([key]) => versions.get(key) === reward)?.[1] : null;
    if (reward && !cell) return false;
    const wanted = status || (reward && isBounded ? "scored" : null);
    if (wanted && cell.status !== wanted) return false;
    const number = reward ? cell.score : row.total;
    if (isBounded && number === null) return false;
    return (min === undefined || number >= Number(min)) && (max === undefined || number <= Number(max));
  };
}

/** A page of the logs' entries, which go on from a key and not from a row. */
function entriesOf(body, { order = "newest", from, limit = 50, first, last, reward, version, status, cause, split, ...others }) {
  const other = Object.keys(others).find((name) => others[name]);
  if (other) throw new TypeError(other);
  const wanted = Object.entries({ reward, status, cause, split }).filter(([, value]) => value);
  const fitting = (entry) =>
    wanted.every(([name, value]) => entry[name] === value) &&
    (!version || entry.version === Number(version)) &&
    (!first || (entry.step !== null && entry.step >= Number(first))) &&
    (!last || (entry.step !== null && entry.step <= Number(last)));
  const unique = [...new Map(body.entries.map((entry) => [entry.key, entry])).values()];
  const ordered = unique.filter(fitting).sort((one, other) => placeOf(one.key) - placeOf(other.key));
  if (order === "newest") ordered.reverse();
  const start = from ? ordered.findIndex(({ key }) => key === from) + 1 : 0;
  const entries = ordered.slice(start, start + Number(limit));
  const ended = start + entries.length >= ordered.length;
  return { ...body, entries, next: entries.at(-1)?.key ?? from ?? "0:0", ended, searched_to: null };
}

function placeOf(key) {
  const [completion, version] = key.split(":").map(Number);
  return completion * 1e5 + version;
}
