/** Whether this browser may change rewards: the write token is entered here and kept as long as its tab is open. */
import { post } from "../../lib/api.js";
import { visible } from "../../lib/format.js";
import { readPreference, writePreference } from "../../lib/store.js";
import { html, useState } from "../../lib/view.js";

const KEY = "write-token";
const SESSION = { session: true };

/** Return {server, can, enter, forget}: server says whether the server has a write token at all. */
export function useWriting(server) {
  const [token, setToken] = useState(() => readPreference(KEY, "", SESSION));
  const keep = (next) => {
    writePreference(KEY, next, SESSION);
    setToken(next);
  };
  const enter = async (next) => {
    writePreference(KEY, next, SESSION);
    try {
      await post("/api/write", {});
      setToken(next);
      return null;
    } catch (wrong) {
      keep("");
      return wrong.words || String(wrong);
    }
  };
  return { server, can: server && Boolean(token), enter, forget: () => keep("") };
}

/** How to get the right to change something; nothing once it is there. */
export function WriteToken({ writing }) {
  const [text, setText] = useState("");
  const [words, setWords] = useState(null);
  if (writing.can) return null;
  if (!writing.server) {
    return html`<p class="change-note">This page only reads. To try and change rewards, start it with <code>rewardkit ui --write</code>.</p>`;
  }
  const send = async () => text.trim() && setWords(await writing.enter(text.trim()));
  return html`
    <div class="change-note">
      <label class="field">
        <span>Trying a reward runs its code on the server. Enter the write token that <code>rewardkit ui --write</code> printed:</span>
        <input
          class="input mono"
          type="password"
          autocomplete="off"
          value=${text}
          aria-label="Write token"
          aria-invalid=${words ? "true" : null}
          onInput=${(event) => setText(event.target.value)}
          onKeyDown=${(event) => event.key === "Enter" && send()}
        />
      </label>
      <button type="button" class="button" onClick=${send}>Unlock</button>
      ${words && html`<span class="is-bad-words" role="alert">${visible(words)}</span>`}
    </div>
  `;
}
