/** A chart. */
import { html } from "../lib/view.js";

/** A line chart over steps. */
export function Chart({ title }) {
  return html`<figure class="panel"><figcaption>${title}</figcaption></figure>`;
}
