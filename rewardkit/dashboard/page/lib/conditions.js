/** Conditions as the command line writes them, made of a name, a sign and a value. */

const SIGNS = /[<>=!~≤≥≠]/;
const QUOTES = ['"', "'", "`"];

/** A part of a condition, in quotes where it needs them. */
function quoted(text, always) {
  const needs = always || !text || text !== text.trim() || /\sand(\s|$)/i.test(text) || QUOTES.includes(text[0]) || SIGNS.test(text[0]);
  if (!needs) return text;
  const mark = QUOTES.find((one) => !text.includes(one)) || QUOTES[0];
  return `${mark}${text}${mark}`;
}

/** A name as a condition has it. */
export function nameOf(name) {
  return quoted(name, SIGNS.test(name));
}

/** One condition. */
export function conditionOf(name, sign, value) {
  return `${nameOf(name)}${sign}${quoted(value)}`;
}

/** Two texts of conditions, both of which must hold. */
export function joined(where, condition) {
  return where.trim() ? `${where.trim()} and ${condition}` : condition;
}

/** A word of a shell's command. */
function word(text) {
  return /^[\w@%+:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** The command that lists the same in a terminal. */
export function commandOf(run, { where, sort, find, grep, split }) {
  const pattern = grep || (find && `(?i)${find.replace(/[\\^$.*+?()[\]{}|#&~\s-]/g, "\\$&")}`);
  const parts = ["rewardkit show", word(run)];
  if (where) parts.push("--where", word(where));
  if (sort) parts.push(sort.startsWith("-") ? `--sort=${word(sort)}` : `--sort ${word(sort)}`);
  if (pattern) parts.push(pattern.startsWith("-") ? `--grep=${word(pattern)}` : `--grep ${word(pattern)}`);
  if (split && split !== "train") parts.push("--split", split);
  if (!where && !sort && !pattern) parts.push("--limit 20");
  return parts.join(" ");
}
