/** What a saved page does with the table of all completions by itself: simple conditions, orders, searches, pages. */

const SIGNS = {
  "<": (one, other) => one < other,
  ">": (one, other) => one > other,
  "<=": (one, other) => one <= other,
  ">=": (one, other) => one >= other,
  "=": (one, other) => one === other,
  "!=": (one, other) => one !== other,
};
const NUMBERS = { reward: "total", total: "total", plain_sum: "plain_sum", advantage: "advantage", tokens: "tokens", characters: "characters", step: "step", prompt: "prompt", id: "id" };
const STATES = ["scored", "skipped", "failed"];
const AROUND = 60;

/** Return a page of the table; `textsOf(row, fields)` yields [field, name, text] of a completion. Throws TypeError as tables do. */
export async function completionsOf(body, { split = "train", where, sort, find, grep, in: fields, from = 0, limit = 50, ...others }, textsOf) {
  const other = Object.keys(others).find((name) => others[name] && !["until", "columns"].includes(name));
  if (other) throw new TypeError(other);
  const conditions = conditionsOf(where || "", body);
  let rows = body.rows.filter((row) => (split === "all" || row.split === split) && conditions.every((fits) => fits(row)));
  rows = sort ? sorted(rows, sort, body) : rows.sort((one, two) => one.id - two.id);
  const [start, most] = [Number(from), Number(limit)];
  const head = { ...body, from: start, limit: most, matched: rows.length, newer: 0, reading: null };
  const pattern = patternOf(find, grep);
  if (!pattern) return { ...head, rows: rows.slice(start, start + most), end: Math.min(start + most, rows.length) };
  const found = [];
  let at = start;
  for (; at < rows.length && found.length < most; at += 1) {
    const match = await matchOf(rows[at], pattern, fields, textsOf);
    if (match) found.push({ ...rows[at], match });
  }
  return { ...head, rows: found, end: at };
}

function patternOf(find, grep) {
  if (!find && !grep) return null;
  try {
    return grep ? new RegExp(grep, "u") : new RegExp(find.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  } catch {
    throw new TypeError("grep");
  }
}

async function matchOf(row, pattern, fields, textsOf) {
  for (const [field, name, text] of await textsOf(row)) {
    if (fields && !fields.split(",").includes(field)) continue;
    const match = pattern.exec(text);
    if (!match) continue;
    const end = match.index + match[0].length;
    return { field, name, before: text.slice(Math.max(0, match.index - AROUND), match.index), match: match[0], after: text.slice(end, end + AROUND) };
  }
  return null;
}

/** Conditions as the command line writes them, but for those with quotes. */
function conditionsOf(where, body) {
  if (!where.trim()) return [];
  if (/["'`~]/.test(where)) throw new TypeError("where");
  return where.split(/\s+and\s+/i).map((text) => {
    const parts = /^\s*(.+?)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*$/.exec(text);
    if (!parts) throw new TypeError("where");
    return conditionOf(parts[1], parts[2] === "==" ? "=" : parts[2], parts[3], body);
  });
}

function conditionOf(name, sign, value, body) {
  if (["outcome", "cause"].includes(name)) {
    const has = (row) => Object.values(row.scores).some((one) => (name === "outcome" ? one.status : one.cause) === value);
    if (!["=", "!="].includes(sign)) throw new TypeError("where");
    return (row) => has(row) === (sign === "=");
  }
  const isReward = body.rewards.some((one) => one.name === name);
  if (isReward && (STATES.includes(value) || /^[a-z_]+$/.test(value)) && value !== "none") {
    const compare = SIGNS[sign];
    return (row) => Boolean(row.scores[name]) && compare(STATES.includes(value) ? row.scores[name].status : row.scores[name].cause, value);
  }
  const read = readerOf(name, body);
  if (value === "none") return (row) => (read(row) === null) === (sign === "=");
  const wanted = asNumber(value);
  return (row) => {
    const own = read(row);
    if (own === null) return false;
    const number = asNumber(own);
    return wanted !== null && number !== null ? SIGNS[sign](number, wanted) : SIGNS[sign](String(own), value);
  };
}

function asNumber(value) {
  return typeof value === "number" ? value : value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : null;
}

/** What a name stands for in a row, null where it has no value. */
function readerOf(name, body) {
  if (body.rewards.some((one) => one.name === name)) return ({ scores }) => (scores[name]?.status === "scored" ? scores[name].score : null);
  if (name in NUMBERS) return (row) => row[NUMBERS[name]] ?? null;
  const column = name.startsWith("column.") ? name.slice("column.".length) : name;
  if (body.data.includes(column)) return ({ data }) => data[column] ?? null;
  throw new TypeError(name);
}

function sorted(rows, sort, body) {
  const read = readerOf(sort.replace(/^-/, ""), body);
  const down = sort.startsWith("-") ? -1 : 1;
  const keyed = rows.map((row) => [read(row), row]);
  const words = keyed.some(([key]) => key !== null && asNumber(key) === null);
  const value = (key) => (words ? String(key) : asNumber(key));
  return keyed
    .sort(([one, a], [two, b]) => {
      if (one === null || two === null) return (one === null) - (two === null) || a.id - b.id;
      const [left, right] = [value(one), value(two)];
      return (left < right ? -1 : left > right ? 1 : 0) * down || a.id - b.id;
    })
    .map(([, row]) => row);
}
