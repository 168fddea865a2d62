/** A completion and its scores. */
import { visible } from "../lib/format.js";
import { html } from "../lib/view.js";

/** A completion, as text. */
export function CompletionText({ text }) {
  return html`<pre class="text">${visible(text)}</pre>`;
}

/** What each reward said about a completion. */
export function Scores() {
  return null;
}
