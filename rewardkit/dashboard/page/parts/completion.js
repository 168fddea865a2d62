/** A completion as text, as a conversation or with its mathematics, and what the rewards said of it. */
import { count, number, seconds, signed, visible } from "../lib/format.js";
import { loadKatex, rendered } from "../lib/mathematics.js";
import { html, useEffect, useMemo, useState } from "../lib/view.js";
import { Name, Status, VersionChip } from "./chip.js";
import { CopyButton } from "./copy.js";
import { Markdown } from "./markdown.js";
import { Picture, pictureWords } from "./pictures.js";

const REASON_CHARS = 600;
const BLOCK_CHARS = 20_000;
const WORD_CHARS = 1_000;
const LONG_WORD = new RegExp(`\\S{${WORD_CHARS},}`);
const LEFT_OUT = "The text was left out of the record: the disk was slower than the run. The scores are all there.";

/** A text or conversation as a body {text | messages, chars, whole}; a plain string is one too. */
function bodyOf(text) {
  return typeof text === "string" ? { text, chars: text.length, whole: true } : text;
}

/** All of a body as one text, each message under its role. */
export function plainOf(body) {
  if (!body) return "";
  if (!body.messages) return visible(body.text);
  if (!talks(body)) return visible(body.messages.flatMap(({ parts }) => parts.map(({ text }) => text)).join("\n"));
  return body.messages.map(messageText).join("\n\n");
}

/** Whether a body says more as a conversation: it has several messages, calls of tools, or thinking. */
export function talks(body) {
  const { messages } = body || {};
  return Boolean(messages) && (messages.length > 1 || messages.some(({ parts }) => parts.some(({ kind }) => kind !== "text")));
}

function messageText({ role, name, parts }) {
  const head = `[${[role || "message", name].filter(Boolean).join(" ")}]`;
  return visible([head, ...parts.map(partText)].join("\n"));
}

function partText(part) {
  const { kind, text, name } = part;
  if (kind === "picture") return pictureWords(part);
  if (kind === "text" || kind === "result") return text;
  return `<${[kind, name].filter(Boolean).join(" ")}> ${text}`;
}

/**
 * A completion: mode is "text", "conversation", "markdown" or "math".
 * With marks, a list of [kind, text] from a comparison, the text is shown with them. `onRest` fetches what is missing.
 */
export function CompletionText({ text, mode = "text", marks = null, onRest = null }) {
  const body = bodyOf(text);
  if (!body) return html`<p class="text-missing">${LEFT_OUT}</p>`;
  if (!body.chars) return html`<p class="text-missing">An empty text: nothing was written.</p>`;
  return html`
    ${mode === "conversation" && html`<${Conversation} body=${body} />`}
    ${mode === "markdown" && html`<${Rendered} body=${body} />`}
    ${mode === "math" && html`<${Mathematics} text=${plainOf(body)} />`}
    ${mode === "text" && html`<${Plain} pieces=${marks || [["same", plainOf(body)]]} />`}
    ${!body.whole && html`<${Rest} body=${body} onRest=${onRest} />`}
  `;
}

function Rest({ body, onRest }) {
  const shown = body.messages ? plainOf(body).length : body.text.length;
  return html`
    <p class="text-rest">
      The first ${count(shown)} of ${count(body.chars)} characters.
      ${onRest && html`<button type="button" class="button" onClick=${onRest}>Show the rest</button>`}
    </p>
  `;
}

/** Text with its white space; a long one in blocks of which the browser draws those in sight. */
function Plain({ pieces }) {
  const blocks = useMemo(() => blocksOf(pieces), [pieces]);
  return html`
    <div class="text">
      ${blocks.map((block, place) => html`<div key=${place} class=${blocks.length > 1 ? "text-block" : null}>${block.map(Piece)}</div>`)}
    </div>
  `;
}

function Piece([kind, text, markup], place) {
  if (markup) return html`<span key=${place} class=${`formula formula-${kind}`} dangerouslySetInnerHTML=${{ __html: markup }} />`;
  if (kind === "gone") return html`<del key=${place}>${breakable(text)}</del>`;
  if (kind === "new") return html`<ins key=${place}>${breakable(text)}</ins>`;
  return html`<span key=${place}>${breakable(text)}</span>`;
}

/** Places where an endless word may break: the browser takes minutes to find its own. */
function breakable(text) {
  if (text.length < WORD_CHARS || !LONG_WORD.test(text)) return text;
  const parts = [];
  for (let start = 0; start < text.length; ) {
    const end = wholePair(text, start + WORD_CHARS);
    parts.push(text.slice(start, end), html`<wbr key=${start} />`);
    start = end;
  }
  return parts;
}

/** A place that does not part the two halves of a character. */
function wholePair(text, place) {
  return /[\ud800-\udbff]/.test(text[place - 1] || "") ? place + 1 : place;
}

function blocksOf(pieces) {
  const blocks = [[]];
  let size = 0;
  for (const [kind, text, markup] of pieces) {
    let rest = text;
    if (markup) blocks[blocks.length - 1].push([kind, text, markup]);
    if (markup) continue;
    while (size + rest.length > BLOCK_CHARS) {
      const cut = placeToCut(rest, BLOCK_CHARS - size);
      blocks[blocks.length - 1].push([kind, rest.slice(0, cut).replace(/\n$/, "")]);
      blocks.push([]);
      rest = rest.slice(cut);
      size = 0;
    }
    if (rest) blocks[blocks.length - 1].push([kind, rest]);
    size += rest.length;
  }
  return blocks;
}

/** After the last line end that fits, or the last space, or where the room ends. */
function placeToCut(text, room) {
  const line = text.lastIndexOf("\n", room - 1);
  if (line >= 0) return line + 1;
  const space = text.lastIndexOf(" ", room - 1);
  return space > 0 ? space + 1 : wholePair(text, Math.max(room, 1));
}

/** Draws a text as it is, also within Markdown. */
function drawPlain(text) {
  return html`<${Plain} pieces=${[["same", text]]} />`;
}

/** Markdown: of a plain text, or of the texts of a conversation and beside its thoughts. */
function Rendered({ body }) {
  if (talks(body) || (!body.messages && body.text.includes("<think>"))) return html`<${Conversation} body=${body} isMarkdown=${true} />`;
  return html`<${Markdown} text=${plainOf(body)} plain=${drawPlain} />`;
}

function Conversation({ body, isMarkdown = false }) {
  const messages = body.messages || [{ role: "assistant", name: null, parts: [{ kind: "text", text: body.text, name: null }] }];
  return html`<div class="conversation">${messages.map((one, place) => html`<${MessageBox} key=${place} ...${one} isMarkdown=${isMarkdown} />`)}</div>`;
}

function MessageBox({ role, name, parts, isMarkdown }) {
  return html`
    <section class=${`message message-${ROLES.includes(role) ? role : "other"}`}>
      <h3 class="message-role">${visible(role || "message")}${name && html` <span class="message-name">${visible(name)}</span>`}</h3>
      ${parts.flatMap(thinkingApart).map((part, place) => html`<${Part} key=${place} ...${part} isMarkdown=${isMarkdown} />`)}
      ${!parts.length && html`<p class="text-missing">empty</p>`}
    </section>
  `;
}

const ROLES = ["system", "user", "assistant", "tool"];

/** Split what stands between <think> and </think> from a text. */
function thinkingApart(part) {
  if (part.kind !== "text" || !part.text.includes("<think>")) return [part];
  return part.text
    .split(/(<think>[\s\S]*?(?:<\/think>|$))/)
    .map((text) =>
      text.startsWith("<think>")
        ? { kind: "thinking", text: text.replace(/^<think>|<\/think>$/g, "").trim(), name: null }
        : { ...part, text: text.trim() },
    )
    .filter(({ text }) => text);
}

function Part({ kind, text, name, about, isMarkdown }) {
  if (kind === "picture") return html`<${Picture} about=${about} text=${text} />`;
  if (kind === "thinking") {
    return html`
      <details class="thinking">
        <summary>Thinking, ${count(text.length)} characters</summary>
        <${Plain} pieces=${[["same", visible(text)]]} />
      </details>
    `;
  }
  if (kind === "call" || kind === "result" || kind === "other") {
    const title = { call: "calls", result: "result", other: "other content" }[kind];
    return html`
      <div class=${`tool tool-${kind}`}>
        <p class="tool-head">${title}${name && html` <b>${visible(name)}</b>`}</p>
        <${Plain} pieces=${[["same", visible(kind === "call" ? indented(text) : text)]]} />
      </div>
    `;
  }
  if (isMarkdown) return html`<${Markdown} text=${visible(text)} plain=${drawPlain} />`;
  return drawPlain(visible(text));
}

/** JSON with line breaks; other text as it is. */
function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Mathematics({ text }) {
  const [ready, setReady] = useState(false);
  const [wrong, setWrong] = useState(false);
  useEffect(() => {
    loadKatex().then(() => setReady(true), () => setWrong(true));
  }, []);
  const parts = useMemo(() => (ready ? rendered(text).map(({ kind, source, markup }) => [kind, source, markup]) : []), [ready, text]);
  if (wrong) return html`<p class="text-missing">The formulas could not be loaded; this is the text.</p><${Plain} pieces=${[["same", text]]} />`;
  if (!ready) return html`<p class="text-missing" role="status">Loading …</p>`;
  return html`<div class="text-math"><${Plain} pieces=${parts} /></div>`;
}

/** A score, or in its place what became of the call. */
export function Score({ status, score, cause }) {
  if (status === "scored") return html`<span class="score">${number(score)}</span>`;
  return html`<${Status} status=${status} cause=${cause} />`;
}

/** What each reward said of two completions, side by side; either is what the view `completion` returns, or null. */
export function Scores({ left, right }) {
  const sides = [left, right];
  const rewards = [...new Set(sides.flatMap((side) => (side?.scores || []).map((one) => one.reward)))];
  return html`
    <div class="table-box scores-box" role="region" aria-label="Scores" tabindex="0">
      <table class="table scores">
        <thead>
          <tr>
            <th scope="col">Reward</th>
            <th scope="col">Left</th>
            <th scope="col">Right</th>
            <th scope="col" class="right">Difference</th>
          </tr>
        </thead>
        <tbody>
          ${rewards.map((reward) => html`<${RewardRow} key=${reward} reward=${reward} sides=${sides} />`)}
          ${FIGURES.map(([key, title, hint]) => html`<${FigureRow} key=${key} figure=${key} title=${title} hint=${hint} sides=${sides} />`)}
        </tbody>
      </table>
    </div>
  `;
}

const FIGURES = [
  ["total", "Weighted reward", "The weighted sum of the scores, as the trainer computes it"],
  ["plain_sum", "Plain sum", "The sum of the scores without weights, of the rewards that weigh anything"],
  ["advantage", "Advantage", "What the trainer made of the reward within its group"],
  ["tokens", "Length in tokens", "Tokens of the completion, where the trainer told them"],
];

function RewardRow({ reward, sides }) {
  const said = sides.map((side) => side?.scores.find((one) => one.reward === reward) || null);
  const [first, second] = said.map((one) => (one?.status === "scored" ? one.score : null));
  const weights = weightsOf(said);
  return html`
    <tr class="score-row">
      <th scope="row"><${Name} name=${reward} />${weightWords(weights)}</th>
      ${said.map((one, place) => html`<td key=${place}><${Said} said=${one} known=${Boolean(sides[place])} /></td>`)}
      <td class="right"><${Difference} from=${first} to=${second} counts=${weights.length === 1 ? weights[0] : 0} /></td>
    </tr>
  `;
}

/** The weights of a reward on both sides, each once. */
function weightsOf(said) {
  return [...new Set(said.filter(Boolean).map((one) => one.weight))].filter((one) => Number.isFinite(one));
}

/** What a reward counts in the weighted sum, where it is not once. */
function weightWords(weights) {
  if (weights.length !== 1 || weights[0] === 1) return null;
  return html` <span class="faint score-weight">${weights[0] === 0 ? "weight 0, not in the reward" : `weight ${number(weights[0])}`}</span>`;
}

function FigureRow({ figure, title, hint, sides }) {
  const values = sides.map((side) => side?.[figure] ?? null);
  return html`
    <tr class=${`figure-row figure-${figure}`}>
      <th scope="row" title=${hint}>${title}</th>
      ${sides.map(
        (side, place) => html`
          <td key=${place}>
            <span class="score">${number(values[place])}</span>
            ${figure === "tokens" && side?.truncated && html` <span class="chip is-warn">truncated</span>`}
          </td>
        `,
      )}
      <td class="right"><${Difference} from=${values[0]} to=${values[1]} counts=${figure === "tokens" ? 0 : 1} /></td>
    </tr>
  `;
}

/** The second number less the first; `counts` is what it adds to the reward, by which it is better, worse or neither. */
function Difference({ from, to, counts }) {
  if (from === null || to === null) return "–";
  const exact = to - from;
  const by = Math.abs(exact) < 1e-9 * Math.max(Math.abs(from), Math.abs(to)) ? 0 : exact;
  const way = ["worse", "even", "better"][1 + Math.sign(by * counts)];
  return html`<span class=${`difference difference-${way}`}>${by === 0 ? "0" : signed(by)}</span>`;
}

/** One call: score or what became of it, version, reason; error, metrics and output unfold. */
function Said({ said, known }) {
  if (!said) return known ? html`<span class="faint">not asked</span>` : "–";
  const metrics = Object.entries(said.metrics || {});
  const long = (said.reason || "").length > REASON_CHARS;
  const more = [
    ["reason", long ? said.reason : null],
    ["error", said.error],
    ["traceback", said.traceback],
    ["printed", said.logs],
    ["unanswered", (said.unanswered || []).map((one) => `${one.name}: ${one.kind}: ${one.message}`).join("\n")],
  ].filter(([, text]) => text);
  return html`
    <div class="said">
      <span class="said-head">
        <${Score} ...${said} /><${VersionChip} number=${said.version} />
        ${said.status === "failed" && said.score !== null && html`<span class="faint">${number(said.score)} stands in</span>`}
        ${said.attempts > 1 && html`<span class="faint">${count(said.attempts)} attempts</span>`}
        ${said.cached && html`<span class="faint">from the cache</span>`}
      </span>
      ${said.reason && html`<span class="said-reason">${visible(long ? `${said.reason.slice(0, REASON_CHARS)} …` : said.reason)} <${CopyButton} label="Copy the reason" text=${said.reason} /></span>`}
      ${metrics.length > 0 &&
      html`<dl class="said-metrics">${metrics.map(([name, value]) => html`<div key=${name}><dt>${visible(name)}</dt><dd>${number(value)}</dd></div>`)}</dl>`}
      ${more.length > 0 &&
      html`
        <details class="said-more">
          <summary>${more.map(([name]) => name).join(", ")}</summary>
          ${more.map(([name, text]) => html`<div key=${name} class="said-text"><${CopyButton} label=${`Copy the ${name}`} text=${text} /><${Plain} pieces=${[["same", visible(text)]]} /></div>`)}
          <p class="faint">took ${seconds(said.seconds)}</p>
        </details>
      `}
    </div>
  `;
}
