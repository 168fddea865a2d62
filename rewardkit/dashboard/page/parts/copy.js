/** Copying a text to the clipboard: a small button beside it, which says what became of it. */
import { html, useEffect, useRef, useState } from "../lib/view.js";

const SAYS_MS = 1500;

/** Put a text into the clipboard; false where the browser does not let the page. */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByCommand(text);
  }
}

/** The text of a body to copy: as it was recorded, control characters included; of several messages under their roles. */
export function exactText(body) {
  if (!body) return "";
  if (!body.messages) return body.text;
  const texts = body.messages.map(({ parts }) => parts.map(({ text }) => text).join("\n"));
  if (texts.length === 1) return texts[0];
  return body.messages.map(({ role, name }, place) => `[${[role || "message", name].filter(Boolean).join(" ")}]\n${texts[place]}`).join("\n\n");
}

/** The old way, which also works on a page that came without TLS. */
function copiedByCommand(text) {
  const box = document.createElement("textarea");
  box.value = text;
  box.setAttribute("readonly", "");
  box.className = "unseen";
  document.body.append(box);
  box.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    box.remove();
  }
}

/** A button that copies; `text` is the text, or a function that fetches it. */
export function CopyButton({ text, label, words = null }) {
  const [state, setState] = useState(null);
  const timer = useRef(null);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async (event) => {
    event.stopPropagation();
    setState("…");
    let done = false;
    try {
      done = await copied(typeof text === "function" ? await text() : text);
    } catch {
      done = false;
    }
    setState(done ? "Copied" : "Not copied");
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setState(null), SAYS_MS);
  };
  return html`
    <button type="button" class=${`copy${words ? " button" : ""}`} aria-label=${words ? null : label} title=${label} onClick=${copy}>
      ${words ? (state ?? words) : html`<svg viewBox="0 0 16 16" aria-hidden="true"><rect x="5.5" y="5.5" width="8" height="8" rx="1.5" /><path d="M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2" /></svg>`}
      <span class=${words ? "unseen" : "copy-says"} role="status">${words && !state ? "" : state}</span>
    </button>
  `;
}
