/** Change. */
import { html } from "../lib/view.js";
import { Empty } from "../parts/states.js";

/** The tab. */
export default function Change({ run }) {
  return html`<${Empty} title=${"Change of " + run} hint="This tab is being made." />`;
}
