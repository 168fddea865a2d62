/** The page: the address says which run and tab are shown. */
import { followLinks, go, left, of, useAddress, visit } from "./lib/address.js";
import { useApi } from "./lib/api.js";
import { visible } from "./lib/format.js";
import { useKeys } from "./lib/keys.js";
import { PANELS, TITLES } from "./lib/panels.js";
import { SAVED } from "./lib/saved.js";
import { html, render, useErrorBoundary } from "./lib/view.js";
import { Frame } from "./parts/frame.js";
import { PicturesOf } from "./parts/pictures.js";
import { Loading, ProblemNote } from "./parts/states.js";
import Runs from "./tabs/runs.js";

const MODULES = Object.fromEntries(
  await Promise.all(PANELS.map(async ({ name }) => [name, await import(`./tabs/${name}.js`)])),
);
const LIST_EVERY_MS = 3000;
const SWITCHER_EVERY_MS = 15000;

function App() {
  const { run, tab, query } = useAddress();
  const list = useApi("/api/runs", {}, { every: SAVED ? 0 : run ? SWITCHER_EVERY_MS : LIST_EVERY_MS, live: false });
  const overview = useApi(run ? of(run, "overview") : null);
  const gone = run !== null && ["missing", "unreadable"].includes(overview.trouble?.state);
  useKeys(
    [
      ...(SAVED ? [] : [["g r", "All runs", () => go({ run: null, tab: null })]]),
      ...(run ? PANELS.flatMap((panel, index) => tabKeys(run, panel, index)) : []),
    ],
    "Go to",
  );
  return html`
    <${Frame} run=${run} tab=${tab} list=${list} overview=${overview}>
      <${Guarded} key=${`${run}/${tab}`}>
        ${run === null && html`<${Runs} list=${list} query=${query} />`}
        ${run !== null && html`<h1 class="unseen">${TITLES[tab]} of ${visible(run)}</h1>`}
        ${gone && html`<${ProblemNote} problem=${overview.trouble} />`}
        ${
          run !== null &&
          !gone &&
          html`<${PicturesOf.Provider} value=${run}><${Shown} run=${run} tab=${tab} query=${query} overview=${overview} list=${list} /><//>`
        }
      <//>
    <//>
  `;
}

function tabKeys(run, { name, title, key }, index) {
  const open = () => visit(left(run, name));
  return [
    [`g ${key}`, title, open],
    [String(index + 1), title, open],
  ];
}

/** The chosen tab, once the run's overview is there; at once where its module says that it does not wait for it. */
function Shown({ run, tab, query, overview, list }) {
  const { default: Tab, isAtOnce } = MODULES[tab];
  if (overview.data || (isAtOnce && !overview.problem)) {
    return html`<${Tab} run=${run} overview=${overview.data} query=${query} list=${list} />`;
  }
  if (overview.problem) return html`<${ProblemNote} problem=${overview.problem} retry=${overview.reload} />`;
  return html`<${Loading} rows=${8} label="Loading the run" />`;
}

/** Keep a fault of one tab within it. */
function Guarded({ children }) {
  const [fault, forget] = useErrorBoundary((wrong) => console.error(wrong));
  if (!fault) return children;
  return html`<${ProblemNote} problem=${{ status: -1, words: String(fault.message || fault) }} retry=${forget} />`;
}

followLinks();
render(html`<${App} />`, document.getElementById("page"));
