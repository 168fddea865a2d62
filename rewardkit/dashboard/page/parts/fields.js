/** Fields of a form: each has a name for screen readers and tells its value through onChange. */
import { useKeys } from "../lib/keys.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/view.js";

const PAUSE_MS = 200;

/**
 * Return what an input needs whose value comes back from the address: what is typed stays in it, however often the page
 * is drawn meanwhile, until Enter, or until the field is left; then it is told. With `pause` it is also told while the
 * typing pauses. `read` makes a value of the text, or undefined of one that is no value, which is told to nobody and
 * stays. Escape takes back what was typed.
 */
export function useDraft(value, onChange, { pause = false, read = (text) => text } = {}) {
  const [draft, setDraft] = useState(null); // null: nothing was typed that is not in the value
  const timer = useRef(null);
  const told = useRef(value);
  const latest = useRef({});
  latest.current = { onChange, read, draft };
  useLayoutEffect(() => {
    if (!same(value, told.current)) setDraft(null); // somebody else has changed it: a button, the way back
    told.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const tell = (text) => {
    clearTimeout(timer.current);
    const next = latest.current.read(text);
    if (next === undefined) return false;
    if (!same(next, told.current)) {
      told.current = next;
      latest.current.onChange(next);
    }
    return true;
  };
  const end = (event) => {
    if (latest.current.draft !== null && !event.target.validity.badInput && tell(event.target.value)) setDraft(null);
  };
  return {
    value: draft ?? value ?? "",
    "aria-invalid": draft !== null && read(draft) === undefined ? "true" : null,
    onInput: (event) => {
      const text = event.target.value;
      latest.current.draft = text;
      setDraft(text);
      clearTimeout(timer.current);
      if (pause) timer.current = setTimeout(() => tell(text), PAUSE_MS);
    },
    onKeyDown: (event) => {
      if (event.key === "Enter" && !event.isComposing) end(event);
      if (event.key !== "Escape" || latest.current.draft === null || pause) return;
      event.stopPropagation();
      event.target.value = value ?? "";
      setDraft(null);
    },
    onChange: end,
    onBlur: end,
  };
}

function same(one, other) {
  return String(one ?? "") === String(other ?? "");
}

/** A search box; "/" leads to it. */
export function Search({ value = "", onChange, label = "Search", hint = label }) {
  const box = useRef(null);
  const draft = useDraft(value, onChange, { pause: true });
  useKeys([["/", label, () => box.current?.select()]]);
  return html`
    <label class="field search">
      <span class="unseen">${label}</span>
      <svg class="search-mark" viewBox="0 0 16 16" aria-hidden="true"><circle cx="7" cy="7" r="4.25" /><path d="m10.25 10.25 3.25 3.25" /></svg>
      <input
        ref=${box}
        type="search"
        class="input"
        placeholder=${hint}
        spellcheck=${false}
        autocomplete="off"
        ...${draft}
      />
      <kbd aria-hidden="true">/</kbd>
    </label>
  `;
}

/** One of several: options are values or [value, words]. */
export function Choice({ value, options, onChange, label, shown = true }) {
  const pairs = options.map((one) => (Array.isArray(one) ? one : [one, String(one)]));
  return html`
    <label class="field">
      <span class=${shown ? "field-label" : "unseen"}>${label}</span>
      <select class="input select" aria-label=${label} onChange=${(event) => onChange(event.target.value)}>
        ${pairs.map(
          ([one, words]) =>
            html`<option key=${one} value=${one} selected=${String(one) === String(value ?? "")}>${words}</option>`,
        )}
      </select>
    </label>
  `;
}

/** A number, or null where the field is empty; it is told on Enter and when the field is left. */
export function NumberField({ value, onChange, label, low, step = 1, hint = "" }) {
  const read = (text) => {
    if (text.trim() === "") return null;
    const next = Number(text);
    const fits = Number.isFinite(next) && (low === undefined || next >= low) && (step !== 1 || Number.isInteger(next));
    return fits ? next : undefined;
  };
  const draft = useDraft(value, onChange, { read });
  return html`
    <label class="field">
      <span class="field-label">${label}</span>
      <input type="number" class="input number-input" min=${low} step=${step} placeholder=${hint} ...${draft} />
    </label>
  `;
}

/** On or off. */
export function Toggle({ value, onChange, label }) {
  return html`
    <label class="field toggle">
      <input type="checkbox" role="switch" checked=${Boolean(value)} onChange=${(event) => onChange(event.target.checked)} />
      <span class="toggle-track" aria-hidden="true"></span>
      <span>${label}</span>
    </label>
  `;
}

const WAYS = { before: "m9.5 4-4 4 4 4", next: "m6.5 4 4 4-4 4" };

/** A button to what comes before or next, with an arrow. */
export function Turn({ to, label, disabled, onClick }) {
  return html`
    <button type="button" class="button is-icon" aria-label=${label} disabled=${disabled} onClick=${onClick}>
      <svg viewBox="0 0 16 16" aria-hidden="true"><path d=${WAYS[to]} /></svg>
    </button>
  `;
}
