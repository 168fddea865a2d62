/** Formulas in a text, rendered on request: MathML from KaTeX without trust, bounded in number, length and time. */

const MOST_FORMULAS = 400;
const SEARCHED_CHARS = 50_000;
const BOXED_CHARS = 2000;
// Bounded, for a text may open a thousand formulas and close none.
const DELIMITED =
  /\$\$([\s\S]{1,2000}?)\$\$|\\\[([\s\S]{1,2000}?)\\\]|\\\(([\s\S]{1,2000}?)\\\)|\$(?!\s)([^$\n]{1,400}?)(?<!\s)\$(?!\d)|\\f?boxed *(?=\{)/.source;
const ANYWHERE = new RegExp(DELIMITED, "g");
const HERE = new RegExp(DELIMITED, "y");
const TIME_MS = 300;
const REFUSED = "#c0ffe1"; // how KaTeX colours a command that it does not trust
const OPTIONS = {
  output: "mathml",
  trust: false,
  strict: "ignore",
  throwOnError: true,
  errorColor: REFUSED,
  maxExpand: 200,
  maxSize: 20,
};

let katex = null;

/** Load KaTeX once. */
export async function loadKatex() {
  if (!katex) {
    await import("../vendor/katex.min.js");
    katex = globalThis.katex;
  }
  return katex;
}

/** Return the formula that a match of DELIMITED begins: {kind, formula, source}; null where a box has no end. */
function formulaOf(text, match) {
  const [all, dollars, square, round, single] = match;
  const formula = dollars ?? square ?? round ?? single;
  if (formula !== undefined) {
    return { kind: dollars !== undefined || square !== undefined ? "block" : "inline", formula, source: all };
  }
  const end = endOfBraces(text, match.index + all.length);
  if (end < 0) return null;
  const source = text.slice(match.index, end);
  return { kind: "inline", formula: source.replace(/^\\f?boxed */, "\\boxed"), source };
}

/** The place behind the brace that closes the one at a place; -1 where there is none near. */
function endOfBraces(text, start) {
  let depth = 0;
  for (let at = start; at < Math.min(text.length, start + BOXED_CHARS); at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "{") depth += 1;
    else if (text[at] === "}") depth -= 1;
    if (depth === 0) return at + 1;
  }
  return -1;
}

/** Return the formula that begins at a place of a text, as {kind, formula, source}; null without one. */
export function formulaAt(text, place) {
  HERE.lastIndex = place;
  const match = HERE.exec(text);
  return match && formulaOf(text, match);
}

/**
 * Split a text into [kind, text, source] with kind "text", "inline" or "block"; a formula is without its delimiters.
 * Formulas are looked for in the first 50,000 characters; a bare \boxed{…} is one.
 */
function formulas(text) {
  const parts = [];
  const searched = text.slice(0, SEARCHED_CHARS);
  let end = 0;
  let found = 0;
  ANYWHERE.lastIndex = 0;
  for (let match = ANYWHERE.exec(searched); match && found < MOST_FORMULAS; match = ANYWHERE.exec(searched)) {
    const part = formulaOf(searched, match);
    if (!part) continue;
    if (match.index > end) parts.push(["text", text.slice(end, match.index)]);
    parts.push([part.kind, part.formula, part.source]);
    end = match.index + part.source.length;
    ANYWHERE.lastIndex = end;
    found += 1;
  }
  if (end < text.length) parts.push(["text", text.slice(end)]);
  return parts;
}

/** Return each part of a text with its markup, which is null for plain text and for what is no formula. */
export function rendered(text) {
  const write = writer();
  return formulas(text).map(([kind, formula, source]) => ({
    kind,
    source: source ?? formula,
    markup: kind === "text" ? null : write(formula, kind === "block"),
  }));
}

/** Return a function that writes formulas as markup, or null for what is none, or once its time or number is spent. */
export function writer() {
  const until = performance.now() + TIME_MS;
  let left = MOST_FORMULAS;
  return (formula, displayMode) => {
    left -= 1;
    return left < 0 || performance.now() > until ? null : markupOf(formula, displayMode);
  };
}

function markupOf(formula, displayMode) {
  try {
    const markup = katex.renderToString(formula, { ...OPTIONS, displayMode });
    return markup.includes(REFUSED) ? null : markup;
  } catch {
    return null;
  }
}
