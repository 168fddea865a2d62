/** Markdown read into a tree of plain values, and code marked by its language: no markup of the text is passed on. */
import { formulaAt, loadKatex } from "./mathematics.js";

export const MARKDOWN_CHARS = 200_000;
const CODE_CHARS = 50_000;
const TIME_MS = 300;
const TAGS = new Set(
  "p h1 h2 h3 h4 h5 h6 ul ol li blockquote table thead tbody tr th td strong em s code pre hr br".split(" "),
);
const GUESSES = [
  ["python", /^(?:def|class|from|import|@)\b|^\s+(?:return|elif|def)\b/m],
  ["cpp", /^#include\s*</m],
  ["java", /^(?:public|import java)\b/m],
  ["javascript", /^(?:const|let|function|export)\b/m],
  ["json", /^\s*[[{][\s\n]*["[{\]}]/],
  ["xml", /^\s*<[?!a-z]/i],
];

let reader = null;
let highlighter = null;

/** Load what reads Markdown, marks code and writes formulas, once. */
export async function loadMarkdown() {
  if (reader) return;
  const [{ default: Markdown }, { default: highlight }] = await Promise.all([
    import("../vendor/markdown-it.js"),
    import("../vendor/highlight.js"),
    loadKatex(),
  ]);
  highlighter = highlight;
  const made = new Markdown({ html: false, linkify: false, typographer: false });
  made.inline.ruler.before("escape", "formula", inlineFormula);
  made.block.ruler.before("fence", "formula", blockFormula, { alt: ["paragraph", "blockquote", "list"] });
  made.validateLink = () => true; // an address is only shown
  reader = made;
}

function inlineFormula(state, silent) {
  const sign = state.src[state.pos];
  if (sign !== "$" && sign !== "\\") return false;
  const match = formulaAt(state.src, state.pos);
  if (!match || state.pos + match.source.length > state.posMax) return false;
  if (!silent) state.push("formula", "", 0).meta = match;
  state.pos += match.source.length;
  return true;
}

/** A formula that stands alone in its lines, which may look like lists or headings. */
function blockFormula(state, line, last, silent) {
  const start = state.bMarks[line] + state.tShift[line];
  if (!/^(?:\$\$|\\\[)/.test(state.src.slice(start, start + 2))) return false;
  const match = formulaAt(state.src, start);
  if (!match || match.kind !== "block") return false;
  const lines = match.source.split("\n").length;
  const rest = state.src.slice(start + match.source.length, state.eMarks[line + lines - 1]);
  if (line + lines > last || rest.trim()) return false;
  if (silent) return true;
  state.push("formula", "", 0).meta = match;
  state.line = line + lines;
  return true;
}

/**
 * Read Markdown into nodes: {tag, children}, {text}, {code, language, markup}, {formula: {kind, formula, source}},
 * {address, children}, {picture, address}. Cells of a table have align, lists a start.
 */
export function nodesOf(text) {
  const root = { tag: "root", children: [] };
  const marking = { until: performance.now() + TIME_MS };
  put(reader.parse(text, {}), root, marking);
  return root.children;
}

function put(tokens, root, marking) {
  const open = [root];
  const add = (node) => open[open.length - 1].children.push(node);
  for (const token of tokens) {
    if (token.nesting === -1) {
      if (!token.hidden && open.length > 1) open.pop();
    } else if (token.nesting === 1) {
      if (token.hidden) continue;
      const node = opened(token);
      add(node);
      open.push(node);
    } else if (token.type === "inline") {
      const inner = { children: [] };
      put(token.children, inner, marking);
      inner.children.forEach(add);
    } else {
      add(leaf(token, marking));
    }
  }
}

function opened(token) {
  if (token.tag === "a") return { address: token.attrGet("href") || "", children: [] };
  const align = /text-align:(left|right|center)/.exec(token.attrGet("style") || "")?.[1] ?? null;
  return { tag: TAGS.has(token.tag) ? token.tag : "p", align, start: token.attrGet("start"), children: [] };
}

function leaf(token, marking) {
  switch (token.type) {
    case "fence":
    case "code_block":
      return codeOf(token.content, (token.info || "").trim().split(/\s+/)[0], marking);
    case "code_inline":
      return { tag: "code", children: [{ text: token.content }] };
    case "formula":
      return { formula: token.meta };
    case "image":
      return { picture: token.content, address: token.attrGet("src") || "" };
    case "softbreak":
      return { text: "\n" };
    case "hardbreak":
      return { tag: "br", children: [] };
    case "hr":
      return { tag: "hr", children: [] };
    default:
      return { text: token.content };
  }
}

function codeOf(code, name, marking) {
  const language = highlighter.getLanguage(name) ? name : name ? null : guess(code);
  const plain = { code, language: name, markup: null };
  if (!language || code.length > CODE_CHARS || performance.now() > marking.until) return plain;
  try {
    return { ...plain, markup: highlighter.highlight(code, { language, ignoreIllegals: true }).value };
  } catch {
    return plain;
  }
}

function guess(code) {
  const start = code.slice(0, 2000);
  return GUESSES.find(([, sign]) => sign.test(start))?.[0] ?? null;
}
