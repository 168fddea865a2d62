/** Formulas in a text, rendered on request: MathML from KaTeX without trust, bounded in number, length and time. */

const MOST_FORMULAS = 400;
const SEARCHED_CHARS = 50_000;
// Bounded, for a text may open a thousand formulas and close none.
const DELIMITED =
  /\$\$([\s\S]{1,2000}?)\$\$|\\\[([\s\S]{1,2000}?)\\\]|\\\(([\s\S]{1,2000}?)\\\)|\$(?!\s)([^$\n]{1,400}?)(?<!\s)\$(?!\d)/g;
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

/**
 * Split a text into [kind, text, source] with kind "text", "inline" or "block"; a formula is without its delimiters.
 * Formulas are looked for in the first 50,000 characters.
 */
function formulas(text) {
  const parts = [];
  let end = 0;
  let found = 0;
  for (const match of text.slice(0, SEARCHED_CHARS).matchAll(DELIMITED)) {
    const [all, dollars, square, round, single] = match;
    const formula = dollars ?? square ?? round ?? single;
    if (match.index > end) parts.push(["text", text.slice(end, match.index)]);
    parts.push([dollars !== undefined || square !== undefined ? "block" : "inline", formula, all]);
    end = match.index + all.length;
    found += 1;
    if (found === MOST_FORMULAS) break;
  }
  if (end < text.length) parts.push(["text", text.slice(end)]);
  return parts;
}

/** Return each part of a text with its markup, which is null for plain text and for what is no formula. */
export function rendered(text) {
  const until = performance.now() + TIME_MS;
  return formulas(text).map(([kind, formula, source]) => ({
    kind,
    source: source ?? formula,
    markup: kind === "text" || performance.now() > until ? null : markupOf(formula, kind === "block"),
  }));
}

function markupOf(formula, displayMode) {
  try {
    const markup = katex.renderToString(formula, { ...OPTIONS, displayMode });
    return markup.includes(REFUSED) ? null : markup;
  } catch {
    return null;
  }
}
