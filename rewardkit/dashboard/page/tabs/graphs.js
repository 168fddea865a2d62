/** Graphs. */
import { html } from "../lib/view.js";
import { Empty } from "../parts/states.js";

/** The tab. */
export default function Graphs({ run }) {
  return html`<${Empty} title=${"Graphs of " + run} hint="This tab is being made." />`;
}
