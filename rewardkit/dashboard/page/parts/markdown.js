/** A text as Markdown: drawn node by node, so that no markup of the text reaches the page. */
import { count } from "../lib/format.js";
import { MARKDOWN_CHARS, loadMarkdown, nodesOf } from "../lib/markdown.js";
import { writer } from "../lib/mathematics.js";
import { html, useEffect, useMemo, useState } from "../lib/view.js";

/** A text as Markdown; `plain` draws a text as it is, and what is too long. */
export function Markdown({ text, plain }) {
  const [ready, setReady] = useState(false);
  const [wrong, setWrong] = useState(false);
  useEffect(() => {
    loadMarkdown().then(() => setReady(true), () => setWrong(true));
  }, []);
  const nodes = useMemo(() => (ready ? nodesOf(text.slice(0, MARKDOWN_CHARS)) : []), [ready, text]);
  const drawn = useMemo(() => {
    const write = writer();
    return nodes.map((node, place) => html`<${Block} key=${place} node=${node} write=${write} plain=${plain} />`);
  }, [nodes]);
  if (wrong) return html`<p class="text-missing">What reads Markdown could not be loaded; this is the text.</p>${plain(text)}`;
  if (!ready) return html`<p class="text-missing" role="status">Loading …</p>`;
  return html`
    <div class="markdown">${drawn}</div>
    ${
      text.length > MARKDOWN_CHARS &&
      html`<p class="text-missing">From character ${count(MARKDOWN_CHARS + 1)} on as text:</p>${plain(text.slice(MARKDOWN_CHARS))}`
    }
  `;
}

function Block({ node, write, plain }) {
  return drawNode(node, 0, write, plain);
}

const SHORT_WORD = 1000;

function drawNode(node, place, write, plain) {
  const inner = () => node.children.map((child, at) => drawNode(child, at, write, plain));
  if (node.text !== undefined) return node.text.length > SHORT_WORD ? plain(node.text) : node.text;
  if (node.code !== undefined) return html`<${Code} key=${place} ...${node} plain=${plain} />`;
  if (node.formula) return drawFormula(node.formula, place, write);
  if (node.picture !== undefined) return html`<span key=${place} class="markdown-link">[picture ${node.picture} <span class="markdown-address">${node.address}</span>]</span>`;
  if (node.address !== undefined) return drawLink(node, place, inner());
  switch (node.tag) {
    case "h1":
    case "h2":
    case "h3":
    case "h4":
    case "h5":
    case "h6":
      return html`<p key=${place} class=${`markdown-title is-${node.tag}`}>${inner()}</p>`;
    case "ol":
      return html`<ol key=${place} start=${Number(node.start ?? 1)}>${inner()}</ol>`;
    case "table":
      return html`<div key=${place} class="markdown-table"><table>${inner()}</table></div>`;
    case "th":
      return html`<th key=${place} scope="col" class=${node.align}>${inner()}</th>`;
    case "td":
      return html`<td key=${place} class=${node.align}>${inner()}</td>`;
    case "br":
    case "hr":
      return html`<${node.tag} key=${place} />`;
    default:
      return html`<${node.tag} key=${place}>${inner()}</${node.tag}>`;
  }
}

/** A link leads nowhere: its address stands behind its words. */
function drawLink({ address, children }, place, inner) {
  const words = children.map((child) => child.text ?? "").join("");
  return html`<span key=${place} class="markdown-link">${inner}${words !== address && html` <span class="markdown-address">(${address})</span>`}</span>`;
}

function drawFormula({ kind, formula, source }, place, write) {
  const markup = write(formula, kind === "block");
  if (!markup) return html`<span key=${place}>${source}</span>`;
  return html`<span key=${place} class=${`formula formula-${kind}`} dangerouslySetInnerHTML=${{ __html: markup }} />`;
}

/** Code of a language: `markup` is what highlight.js makes of it, which escapes the code itself. */
function Code({ code, language, markup, plain }) {
  return html`
    <div class="markdown-code">
      ${language && html`<span class="markdown-language">${language}</span>`}
      <pre tabindex="0" role="region" aria-label=${`Code${language ? ` in ${language}` : ""}`}>${
        markup ? html`<code class="hljs" dangerouslySetInnerHTML=${{ __html: markup }} />` : code.length > SHORT_WORD ? plain(code) : html`<code>${code}</code>`
      }</pre>
    </div>
  `;
}
