/** All runs of the folder. */
import { count } from "../lib/format.js";
import { html } from "../lib/view.js";
import { Empty, Loading, ProblemNote } from "../parts/states.js";

/** The list of runs. */
export default function Runs({ list }) {
  if (!list.data) return list.problem ? html`<${ProblemNote} problem=${list.problem} />` : html`<${Loading} />`;
  if (!list.data.runs.length) return html`<${Empty} title="No runs yet" />`;
  return html`<ul>${list.data.runs.map((one) => html`<li key=${one.name}><a href=${`/runs/${encodeURIComponent(one.name)}/graphs`}>${one.name}</a> ${count(one.completions)}</li>`)}</ul>`;
}
