/** The conditions and orders of the table of completions in a saved page, read as the server reads them. */
import { conditionOf } from "./conditions.js";

const COMPARE = {
  "<=": (one, other) => one <= other,
  ">=": (one, other) => one >= other,
  "!=": (one, other) => one !== other,
  "=": (one, other) => one === other,
  "<": (one, other) => one < other,
  ">": (one, other) => one > other,
};
const OTHER_SIGNS = { "==": "=", "≤": "<=", "≥": ">=", "≠": "!=" };
const SIGN = /[<>=!~]+|[≤≥≠]/;
const AND = /\s+and(?:\s+|$)/i;
const QUOTES = ['"', "'", "`"];
const NONE = "none";
const NUMBER = /^[+-]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(e[+-]?\d+)?$/i;
const NUMBERS = { reward: "total", total: "total", plain_sum: "plain_sum", advantage: "advantage", tokens: "tokens", characters: "characters", step: "step", epoch: "epoch", prompt: "prompt", id: "id", truncated: "truncated" };
const TEXTS = { completion: "text", prompt_text: "prompt_text" };
const STATES = ["scored", "skipped", "failed", "exception", "timeout", "bad_return", "coercion", "crashed", "infrastructure"];
const PARTS = ["version", "status", "cause", "seconds", "reason", "error"];

/** A condition or an order that is wrong; its message says how. */
export class Refusal extends RangeError {}

/** Return what tells whether a row fits all conditions of a text. Throws a Refusal; TypeError for a column that is not saved. */
export function filterOf(where, body) {
  const tests = [];
  for (let rest = where.trim(); rest; ) {
    const { condition, following } = firstCondition(rest);
    tests.push(testOf(condition, body));
    rest = following;
  }
  return (row) => tests.every((test) => test(row));
}

/** Return rows in the order of a name, with "-" before it the highest first; those without a value stand last. */
export function inOrder(rows, sort, body) {
  const down = sort.startsWith("-") ? -1 : 1;
  const read = readerOf(meaningOf(sort.replace(/^-/, ""), body));
  const keyed = rows.map((row) => [keyOf(read(row)), row]);
  return keyed.sort(([one, a], [two, b]) => (one && two ? compared(one, two) * down : !one - !two) || a.id - b.id).map(([, row]) => row);
}

/** By what a value is put in order: numbers by size, then texts. */
function keyOf(value) {
  if (value === null) return null;
  const number = typeof value === "string" ? numberOf(value) : value;
  return number === null ? [1, value] : [0, number];
}

function compared([kind, one], [otherKind, other]) {
  return kind - otherKind || (one < other ? -1 : one > other ? 1 : 0);
}

function firstCondition(text) {
  const [name, after] = partOf(text, SIGN, text);
  const sign = beginning(SIGN, after);
  if (sign === null || !name) throw refusal(text, "expected a name, a sign and a value, such as judge<0.2; a value that has `and` is quoted");
  const symbol = OTHER_SIGNS[sign] ?? sign;
  if (!(symbol in COMPARE)) throw refusal(text, `no sign ${quoted(sign)}; there are ${Object.keys(COMPARE).join(", ")}; a value that begins with one is quoted`);
  const [value, rest] = partOf(after.slice(sign.length).trimStart(), AND, text);
  const joint = beginning(AND, rest);
  if (rest && joint === null) throw refusal(text, `expected \`and\` before ${quoted(rest.trim().slice(0, 30))}`);
  const following = joint === null ? "" : rest.slice(joint.length).trim();
  if (joint !== null && !following) throw refusal(text, "expected a condition behind `and`");
  return { condition: { name, sign: symbol, value, text: conditionOf(name, symbol, value) }, following };
}

/** The name or value that a text begins with, up to its closing quote or to `end`, and what follows it. */
function partOf(text, end, whole) {
  if (QUOTES.includes(text[0])) {
    const close = text.indexOf(text[0], 1);
    if (close < 0) throw refusal(whole, `the quote ${text[0]} does not end`);
    const rest = end === SIGN ? text.slice(close + 1).trimStart() : text.slice(close + 1);
    if (!rest.trim() || beginning(end, rest) !== null) return [text.slice(1, close), end === SIGN ? rest : rest.trimEnd()];
  }
  const match = end.exec(text);
  return match ? [text.slice(0, match.index).trim(), text.slice(match.index)] : [text.trim(), ""];
}

function beginning(pattern, text) {
  const match = pattern.exec(text);
  return match?.index === 0 ? match[0] : null;
}

function refusal(text, reason) {
  return new Refusal(`condition ${quoted(text.slice(0, 60))}: ${reason}`);
}

function quoted(text) {
  return text.includes("'") && !text.includes('"') ? `"${text}"` : `'${text.replaceAll("'", "\\'")}'`;
}

/** What a name stands for: a reward goes first, then what every completion has, and last a column of the data. */
function meaningOf(name, body) {
  const own = ofCompletions(name, body);
  if (own) return own;
  const column = [name, name.replace(/^column\./, "")].find((part) => body.data.includes(part));
  if (column !== undefined) return { kind: "data", name: column };
  if (body.data_left > 0) throw new TypeError(name);
  throw new Refusal(`nothing is called ${quoted(name)}; there are ${[...body.rewards.map((one) => one.name), ...Object.keys(NUMBERS), ...body.data].slice(0, 24).join(", ")}`);
}

function ofCompletions(name, { rewards }) {
  const names = rewards.map((one) => one.name);
  if (names.includes(name)) return { kind: "score", name };
  if (name in NUMBERS) return { kind: "number", name: NUMBERS[name] };
  if (name === "outcome" || name === "cause") return { kind: "any", name };
  if (name === "split") return { kind: "split", name };
  if (name in TEXTS) return { kind: "text", name: TEXTS[name] };
  const version = /^(.+)@(\d+)$/.exec(name);
  if (version && names.includes(version[1])) return { kind: "score", name: version[1], version: Number(version[2]) };
  const dot = name.lastIndexOf(".");
  const [reward, part] = [name.slice(0, dot), name.slice(dot + 1)];
  if (dot > 0 && names.includes(reward) && PARTS.includes(part)) return { kind: ["status", "cause"].includes(part) ? "state" : part, name: reward };
  const behind = name.startsWith("reward.") ? name.slice("reward.".length) : "";
  if (!behind || (behind in NUMBERS && !names.includes(behind))) return null;
  return ofCompletions(behind, { rewards });
}

/** Return what reads the value of a row; null where it has none. */
function readerOf(meaning) {
  const { kind, name, version } = meaning;
  if (kind === "number") return (row) => (row[name] === null || row[name] === undefined ? null : Number(row[name]));
  if (kind === "text") return (row) => row[name] ?? null;
  if (kind === "split") return (row) => row.split;
  if (kind === "data") return ({ data }) => (data[name] === undefined || data[name] === "null" ? null : data[name]);
  if (kind === "score") return ({ scores }) => (scores[name]?.status === "scored" && ofVersion(scores[name], version) ? scores[name].score : null);
  if (kind === "any") return ({ scores }) => (Object.keys(scores).length ? Math.max(...Object.values(scores).map(stateOf)) : null);
  if (kind === "state") return ({ scores }) => (scores[name] ? stateOf(scores[name]) : null);
  return ({ scores }) => scores[name]?.[kind] ?? null;
}

function ofVersion(call, version) {
  return version === undefined || call.version === version;
}

function stateOf({ status, cause }) {
  return STATES.indexOf(cause ?? status);
}

function testOf(condition, body) {
  const { name, sign, value, text } = condition;
  const meaning = meaningOf(name, body);
  const equality = (reason) => {
    if (sign !== "=" && sign !== "!=") throw new Refusal(`condition ${text}: ${reason} is = or != another`);
    return sign === "=";
  };
  if (["state", "any"].includes(meaning.kind) || (meaning.kind === "score" && STATES.includes(value))) {
    const wanted = equality("a status or a cause");
    if (!STATES.includes(value) && value !== NONE) throw new Refusal(`condition ${text}: expected ${STATES.join(", ")} or ${NONE}`);
    return ofStates(meaning, value, wanted);
  }
  const read = readerOf(meaning);
  if (value === NONE) {
    const wanted = equality("that there is no value");
    return (row) => (read(row) === null) === wanted;
  }
  if (["text", "reason", "error"].includes(meaning.kind)) throw new Refusal(`condition ${text}: a text is searched for, with --grep or on the page; ${name}=${NONE} is what has no text`);
  if (meaning.kind === "split") {
    const wanted = equality("a split");
    if (!["train", "eval"].includes(value)) throw new Refusal(`condition ${text}: expected train or eval`);
    return (row) => (read(row) === value) === wanted;
  }
  return meaning.kind === "data" ? ofData(read, sign, value) : ofNumbers(read, condition, meaning.kind === "score");
}

function ofStates({ kind, name, version }, value, wanted) {
  const calls = ({ scores }) => (kind === "any" ? Object.values(scores) : scores[name] && ofVersion(scores[name], version) ? [scores[name]] : []);
  if (value === NONE) return (row) => (calls(row).length === 0) === wanted;
  return (row) => {
    const own = calls(row);
    return own.length > 0 && own.some((call) => call.status === value || call.cause === value) === wanted;
  };
}

function ofData(read, sign, value) {
  const wanted = numberOf(value);
  return (row) => {
    const own = read(row);
    if (own === null) return false;
    const number = numberOf(own);
    return wanted !== null && number !== null ? COMPARE[sign](number, wanted) : COMPARE[sign](own, value);
  };
}

function ofNumbers(read, { name, sign, value, text }, isScore) {
  if (value.toLowerCase() === "nan") throw new Refusal(`condition ${text}: nothing compares with NaN; ${name}=${NONE} is what has no value`);
  const wanted = numberOf({ true: "1", false: "0" }[value.toLowerCase()] ?? value);
  if (wanted === null) throw new Refusal(`condition ${text}: expected a number${isScore ? `, or of a reward one of ${STATES.join(", ")}, ${NONE}` : ""}`);
  return (row) => {
    const own = read(row);
    return own !== null && COMPARE[sign](own, wanted);
  };
}

/** A text as a number; null for another text. */
function numberOf(text) {
  const trimmed = text.trim();
  const endless = /^([+-]?)inf(inity)?$/i.exec(trimmed);
  if (endless) return endless[1] === "-" ? -Infinity : Infinity;
  return NUMBER.test(trimmed) ? Number(trimmed.replaceAll("_", "")) : null;
}
