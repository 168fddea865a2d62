/** How far the server came with a reading that takes several answers. */
import { count, percent } from "../lib/format.js";
import { html, useEffect } from "../lib/view.js";

const AGAIN_MS = 60;

/** How far it came; asks again until it is done. */
export function Reading({ reading, reload, verb = "Read" }) {
  useEffect(() => {
    if (!reading) return undefined;
    const timer = setTimeout(reload, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [reading]);
  if (!reading) return null;
  const { what, done, of: all } = reading;
  return html`
    <p class="reading" role="status">
      <progress max=${all} value=${done} aria-label="Read so far"></progress>
      ${verb} ${count(done)} of ${count(all)} ${what} so far (${percent(done / all)})
    </p>
  `;
}
