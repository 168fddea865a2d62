/** Health. */
import { html } from "../lib/view.js";
import { Empty } from "../parts/states.js";

/** The tab. */
export default function Health({ run }) {
  return html`<${Empty} title=${"Health of " + run} hint="This tab is being made." />`;
}
