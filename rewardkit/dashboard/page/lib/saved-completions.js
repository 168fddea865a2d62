/** What a saved page does with the table of all completions by itself: conditions, orders, searches, pages. */
import { filterOf, inOrder } from "./saved-conditions.js";

const AROUND = 60;

/** Return a page of the table; `textsOf(row, fields)` yields [field, name, text] of a completion. Throws TypeError as tables do. */
export async function completionsOf(body, { split = "train", where, sort, find, grep, in: fields, from = 0, limit = 50, ...others }, textsOf) {
  const other = Object.keys(others).find((name) => others[name] && !["until", "columns"].includes(name));
  if (other) throw new TypeError(other);
  const fits = filterOf(where || "", body);
  const fitting = body.rows.filter((row) => (split === "all" || row.split === split) && fits(row));
  const rows = sort ? inOrder(fitting, sort, body) : fitting.sort((one, two) => one.id - two.id);
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
