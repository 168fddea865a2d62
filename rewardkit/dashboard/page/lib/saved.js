/** A page that was saved to a file has the answers of its views inside; this finds them in place of a server. */
import { completionsOf } from "./saved-completions.js";
import { tableOf } from "./saved-table.js";

const KEPT_BLOCKS = 12;
const element = document.getElementById("saved");
const blocks = new Map();

/** What the page was saved with: {run, what, start, time, left_out, command, views, answers}; null where a server answers. */
export const SAVED = element ? await unpacked(element) : null;

/** Return the answer to a view's query from what is inside; null where it is not. Throws TypeError for a wrong filter. */
export async function savedAnswer(view, query) {
  if (view === "runs") return { folder: "", there: true, whole: true, runs: [{ name: SAVED.run, flags: SAVED.flags }] };
  if (view === "logs" && query.what === "entry") return entryOf(query.key);
  for (const spec of SAVED.views[view] || []) {
    const places = SAVED.answers[keyOf(spec, query)];
    if (places) return answerOf(view, spec, places, query);
  }
  return null;
}

/** The name under which an answer lies in the file; as the writer of the file makes it. */
function keyOf({ name: own, keys }, query) {
  const pairs = keys.filter((name) => query[name] !== undefined && query[name] !== "").map((name) => `${name}=${query[name]}`);
  return `${own}?${pairs.sort().join("&")}`;
}

async function answerOf(view, spec, places, query) {
  const parts = [];
  for (let at = 0; at < places.length; at += 2) parts.push((await blockOf(places[at]))[places[at + 1]]);
  const [first] = parts;
  if (!spec.join) {
    const other = Object.keys(query).find((name) => query[name] && !spec.keys.includes(name) && !spec.applied.includes(name));
    if (other) throw new TypeError(other);
    return view === "graphs" ? withMetrics(first, query) : first;
  }
  const rest = Object.fromEntries(Object.entries(query).filter(([name]) => !spec.keys.includes(name)));
  const rows = parts.flatMap((part) => part[spec.join]);
  if (view === "table") return completionsOf({ ...first, rows }, rest, textsOf);
  const { text, search, ...others } = rest;
  const found = text ? await having(rows, said, text) : search ? await having(rows, promptText, search) : rows;
  return tableOf({ ...first, [spec.join]: found }, spec.join, others);
}

/** The rows with a text in what belongs to them, whatever the case, which lies elsewhere in the file. */
async function having(rows, textOf, text) {
  const found = [];
  const sought = text.toLowerCase();
  for (const row of rows) if ((await textOf(row)).toLowerCase().includes(sought)) found.push(row);
  return found;
}

/** The texts of a completion, as [field, name, text], in the order in which they are searched. */
async function textsOf(row) {
  const [completion, prompt] = [await savedAnswer("completion", { id: row.id }), await savedAnswer("prompt", { prompt: row.prompt })];
  const texts = [["completion", null, completion?.completion ? wholeOf(completion.completion) : (row.text ?? "")]];
  texts.push(["prompt", null, prompt?.prompt ? wholeOf(prompt.prompt) : (row.prompt_text ?? "")]);
  for (const [name, value] of Object.entries(prompt?.columns || row.data)) texts.push(["data", name, value]);
  for (const { reward, reason, error, traceback, logs } of completion?.scores || []) {
    for (const [field, part] of Object.entries({ reason, error, traceback, output: logs })) if (part) texts.push([field, reward, part]);
  }
  return texts;
}

function wholeOf(body) {
  return body.text ?? body.messages.flatMap(({ parts }) => parts.map((part) => part.text)).join("\n\n");
}

/** What a call of the logs said. */
async function said(row) {
  const call = callOf(await savedAnswer("completion", { id: row.completion }), row);
  return call ? [call.reason, call.error, call.traceback, call.logs].filter(Boolean).join("\n") : row.words;
}

function callOf(completion, row) {
  return completion?.scores.find(({ reward, version }) => reward === row.reward && version === row.version);
}

/** The whole text of a prompt. */
async function promptText(row) {
  if (row.text === null || row.length === row.text.length) return row.text ?? "";
  const prompt = (await savedAnswer("prompt", { prompt: row.index }))?.prompt;
  if (!prompt) return row.text;
  return wholeOf(prompt);
}

async function blockOf(number) {
  if (!blocks.has(number)) {
    blocks.set(number, unpacked(document.getElementById(`saved-${number}`)));
    if (blocks.size > KEPT_BLOCKS) blocks.delete(blocks.keys().next().value);
  }
  return blocks.get(number);
}

/** The JSON in an element: packed, and written in base64 within quotation marks. */
async function unpacked(from) {
  const bytes = Uint8Array.from(atob(from.textContent.slice(1, -1)), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

/** Curves with the metrics that are asked for; the file has those that it has. */
function withMetrics(answer, { metrics, usual }) {
  const wanted = new Set((metrics || "").split(",").filter(Boolean).map((name) => `metric/${decodeURIComponent(name)}`));
  const isWanted = ({ key }) => wanted.has(key) || (usual && answer.usual.includes(key.slice("metric/".length)));
  return { ...answer, graphs: answer.graphs.filter((graph) => graph.group !== "metrics" || isWanted(graph)) };
}

/** An entry of the logs: what its row has, with its completion and its prompt. */
async function entryOf(key) {
  const { entries } = await savedAnswer("logs", { limit: Infinity });
  const row = entries.find((entry) => entry.key === key);
  const completion = row && (await savedAnswer("completion", { id: row.completion }));
  const prompt = completion && (await savedAnswer("prompt", { prompt: completion.prompt }));
  if (!prompt) return null;
  const call = callOf(completion, row);
  const { tokens, truncated, total, plain_sum, advantage } = completion;
  const facts = { tokens, truncated, total, plain_sum, advantage, prompt_index: completion.prompt };
  return { ...call, ...row, ...facts, prompt: prompt.prompt, text: completion.completion };
}
