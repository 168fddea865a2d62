/** Logs. */
import { html } from "../lib/view.js";
import { Empty } from "../parts/states.js";

/** The tab. */
export default function Logs({ run }) {
  return html`<${Empty} title=${"Logs of " + run} hint="This tab is being made." />`;
}
