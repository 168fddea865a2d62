// Answers questions by the search of a built site: its own worker over its own index, as the browser runs it.
// node site_search.mjs SITE < questions.json prints the pages that each question finds, best first, as JSON.
import { readFileSync, readdirSync } from "node:fs";
import { createContext, runInContext } from "node:vm";

const SETUP = 0, QUERY = 2; // message types of mkdocs-material's search worker
const site = process.argv[2];
const folder = `${site}/assets/javascripts/workers`;
const script = readdirSync(folder).find((name) => /^search\.\w+\.min\.js$/.test(name));
const index = JSON.parse(readFileSync(`${site}/search/search_index.json`, "utf8"));
index.options = { suggest: true };

let listener, deliver;
const worker = {
  setTimeout, clearTimeout, queueMicrotask,
  addEventListener(type, handler) { if (type === "message") listener = handler; },
  postMessage(message) { deliver(message.data); },
};
worker.self = worker;
runInContext(readFileSync(`${folder}/${script}`, "utf8"), createContext(worker));
const ask = (type, data) => new Promise((resolve) => { deliver = resolve; listener({ data: { type, data } }); });

await ask(SETUP, index);
const pages = [];
for (const question of JSON.parse(readFileSync(0, "utf8"))) {
  const { items } = await ask(QUERY, question);
  pages.push(items.map((sections) => sections[0].location.split("#")[0]));
}
console.log(JSON.stringify(pages));
