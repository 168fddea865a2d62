/** The columns of the table of completions: which there are, which are shown, and how the address keeps them. */
import { count, epochsPassed, number, seconds, visible } from "../../lib/format.js";
import { html } from "../../lib/view.js";
import { Name, Status, VersionChip } from "../../parts/chip.js";
import { Score } from "../../parts/completion.js";
import { Line, PLAIN, TOTAL } from "./fields.js";
import { pictureless } from "../../parts/pictures.js";

const FEW_REWARDS = 8;
const faint = (text) => html`<span class="faint">${text}</span>`;
const dash = faint("–");

const BASE = [
  { key: "id", title: "Number", className: "narrow", render: (row) => faint(count(row.id)) },
  { key: "step", title: "Step", render: (row) => count(row.step) },
  { key: "epoch", title: "Epoch", render: (row) => epochsPassed(row.epoch) },
  { key: "split", title: "Split", first: "up", align: null, render: (row) => row.split },
  { key: "prompt", title: "Prompt", first: "up", render: (row) => count(row.prompt) },
  { key: "prompt_text", title: "Prompt's text", first: "up", filters: false, align: null, className: "text-cell", copies: "prompt", render: (row) => html`<${Line} text=${row.prompt_text} />` },
  { key: "completion", title: "Completion", first: "up", filters: false, align: null, className: "text-cell", copies: "completion", render: (row) => html`<${Line} text=${row.text} />` },
  { key: "reward", title: "Reward", hint: TOTAL, render: (row) => html`<b>${number(row.total)}</b>` },
  { key: "plain_sum", title: "Plain sum", hint: PLAIN, render: (row) => number(row.plain_sum) },
  { key: "advantage", title: "Advantage", hint: "What the trainer made of the reward within its group", render: (row) => number(row.advantage) },
  { key: "tokens", title: "Tokens", hint: "Length in tokens, where the trainer told it", render: (row) => count(row.tokens) },
  { key: "characters", title: "Characters", hint: "Length in characters; of a conversation, that of the last message", render: (row) => count(row.characters) },
  { key: "truncated", title: "Truncated", hint: "Whether it was cut at the token limit", render: (row) => (row.truncated === null ? dash : row.truncated ? "yes" : "no") },
];

const PARTS = [
  ["reason", "reason", (one) => textOr(one.reason)],
  ["status", "status", (one) => html`<${Status} status=${one.status} cause=${one.cause} />`],
  ["version", "version", (one) => html`<${VersionChip} number=${one.version} />`],
  ["seconds", "time", (one) => seconds(one.seconds)],
  ["error", "error", (one) => textOr(one.error)],
];
const TEXTS = ["reason", "error"];

function textOr(text) {
  return text === null ? dash : html`<${Line} text=${text} />`;
}

/** All columns that the table can have, in order: of the completion, of each reward, of the data. */
export function allColumns({ rewards, data }) {
  const taken = new Set([...BASE.map((one) => one.key), ...rewards.map((one) => one.name)]);
  const base = BASE.map((one) => ({ group: "The completion", label: one.title, align: "right", sort: one.key, ...one }));
  const texts = base.findIndex((one) => one.key === "reward");
  return [
    ...base.slice(0, texts),
    ...rewards.flatMap((one) => rewardColumns(one)),
    ...base.slice(texts),
    ...data.map((name) => ({
      key: `column.${name}`,
      group: "The data",
      label: name,
      title: html`<${Name} name=${name} />`,
      sort: taken.has(name) ? `column.${name}` : name,
      first: "up",
      className: "column-cell",
      render: (row) => (name in row.data ? html`<span class="line-of-text">${pictureless(visible(row.data[name]))}</span>` : dash),
    })),
  ];
}

function rewardColumns({ name, versions }) {
  const said = (row) => row.scores[name];
  const several = versions.length > 1;
  const score = (row) =>
    said(row) ? html`<span class="score-line"><${Score} ...${said(row)} />${several && html`<${VersionChip} number=${said(row).version} />`}</span>` : dash;
  return [
    { key: name, group: "Rewards", label: name, title: html`<${Name} name=${name} />`, sort: name, align: "right", className: "score-cell", render: score },
    ...PARTS.map(([part, words, draw]) => ({
      key: `${name}.${part}`,
      group: "Rewards",
      label: `${name}: ${words}`,
      title: html`<${Name} name=${name} /> ${words}`,
      sort: `${name}.${part}`,
      first: TEXTS.includes(part) ? "up" : null,
      filters: !TEXTS.includes(part),
      align: part === "seconds" ? "right" : null,
      className: TEXTS.includes(part) ? "text-cell" : "score-cell",
      copies: TEXTS.includes(part) ? part : null,
      reward: name,
      render: (row) => (said(row) ? draw(said(row)) : dash),
    })),
  ];
}

/** The columns that are shown unless the address says others. */
export function usualKeys({ rewards }) {
  const names = rewards.slice(0, FEW_REWARDS).map((one) => one.name);
  return ["id", "step", "prompt", "completion", ...names, "reward", "advantage", "tokens"];
}

/** The keys in the address; null where it has none. */
export function keysIn(text) {
  return text ? text.split(",").map(decoded).filter(Boolean) : null;
}

/** Keys as the address has them. */
export function textOf(keys) {
  return keys.map((key) => encodeURIComponent(key).replaceAll("%20", " ")).join(",");
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What the server sorts by for a column's key, with "-" before it for downwards. */
export function sortOf(columns, key) {
  const down = key.startsWith("-");
  const column = columns.find((one) => one.key === key.replace(/^-/, ""));
  const name = column ? column.sort : key.replace(/^-/, "");
  return `${down ? "-" : ""}${name}`;
}
