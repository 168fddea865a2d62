/** What a saved page says of itself: when it was saved, what of the run it has, and what it leaves out. */
import { HOME } from "../lib/address.js";
import { count, visible } from "../lib/format.js";
import { SAVED } from "../lib/saved.js";
import { html } from "../lib/view.js";

/** A line under the tabs; nothing on a page that has a server. */
export function SavedNote() {
  if (!SAVED) return null;
  const { what, time, left_out: leftOut, completions, of, command } = SAVED;
  const size = completions === of ? count(of) : `${count(completions)} of ${count(of)}`;
  return html`
    <aside class="saved-note" aria-label="About this file">
      <p>
        <strong>Saved ${new Date(time * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}</strong>
        ${what && html`<span> · <a href=${HOME}>${visible(what)}</a></span>`}<span> · ${size} completions</span>
        ${leftOut.length === 0 && html`<span class="faint"> · one file, without a server</span>`}
      </p>
      ${leftOut.map((sentence) => html`<p key=${sentence} class="saved-left-out">${visible(sentence)}</p>`)}
      ${leftOut.length > 0 && html`<p class="faint">Saved again with more or with another part: <code>${visible(command)}</code></p>`}
    </aside>
  `;
}
