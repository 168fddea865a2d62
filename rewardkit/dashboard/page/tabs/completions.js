/** Completions. */
import { html } from "../lib/view.js";
import { Empty } from "../parts/states.js";

/** The tab. */
export default function Completions({ run }) {
  return html`<${Empty} title=${"Completions of " + run} hint="This tab is being made." />`;
}
