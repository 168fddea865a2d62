/** Completions: the prompts, their pass rates, two completions of one side by side, those of a step, and the table of all. */
import { go, href, of } from "../lib/address.js";
import { useApi } from "../lib/api.js";
import { SAVED } from "../lib/saved.js";
import { html, useEffect } from "../lib/view.js";
import { Empty, Loading, ProblemNote } from "../parts/states.js";
import { Compare } from "./completions/compare.js";
import { Profile } from "./completions/profile.js";
import { Prompts } from "./completions/prompts.js";
import { Step } from "./completions/step.js";
import { Table } from "./completions/table.js";

/** The tab. */
export default function Completions({ run, overview, query }) {
  if (query.id) return html`<${ById} run=${run} id=${query.id} />`;
  if (query.prompt !== undefined) return html`<${Compare} run=${run} overview=${overview} query=${query} />`;
  const list = query.list || (query.step === undefined ? "prompts" : "steps");
  const List = { prompts: Prompts, profile: Profile, steps: Step, all: Table }[list] || Prompts;
  if (!overview.completions) {
    return html`<${Empty} title="No completions yet" hint="They appear here as soon as the first batch is scored." />`;
  }
  return html`
    <div class="stack completions">
      <${Ways} list=${list} />
      <${List} run=${run} overview=${overview} query=${query} />
    </div>
  `;
}

const WAYS = [
  ["prompts", "Prompts"],
  ...(SAVED?.what ? [] : [["profile", "Pass rates"]]),
  ["steps", "By step"],
  ["all", "All completions"],
];

/** The ways to a completion. */
function Ways({ list }) {
  const query = (one) => ({ list: one === "prompts" ? null : one, ...(one === "steps" ? {} : { step: null }), from: null });
  return html`
    <nav class="segments ways" aria-label="Ways to a completion">
      ${WAYS.map(
        ([one, words]) => html`
          <a key=${one} class="segment" href=${href({ query: query(one) })} aria-current=${one === list ? "true" : null}>${words}</a>
        `,
      )}
    </nav>
  `;
}

/** A completion by its number: shown beside another one of its prompt. */
function ById({ run, id }) {
  const { data, problem, reload } = useApi(of(run, "completion"), { id });
  useEffect(() => {
    if (data) go({ query: { id: null, prompt: data.prompt, right: data.id } }, { replace: true });
  }, [data]);
  if (problem) return html`<${ProblemNote} problem=${problem} retry=${reload} />`;
  return html`<${Loading} label="Finding the completion" />`;
}
