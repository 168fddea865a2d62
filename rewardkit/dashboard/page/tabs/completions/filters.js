/** The fields of the table of completions: conditions, a helper that writes one, and the choice of columns. */
import { count, visible } from "../../lib/format.js";
import { useKeys } from "../../lib/keys.js";
import { html, useRef, useState } from "../../lib/view.js";
import { Choice, useDraft } from "../../parts/fields.js";

const SIGNS = ["=", "!=", "<", "<=", ">", ">="];
const OUTCOMES = ["scored", "skipped", "failed", "exception", "timeout", "bad_return", "coercion", "crashed", "infrastructure", "none"];

/** Conditions, in the language of the command line; they are told on Enter and when the field is left. */
export function Where({ value, example, onChange }) {
  const box = useRef(null);
  const draft = useDraft(value, (text) => onChange(text.trim() || null));
  useKeys([["f", "Filter the completions", () => box.current?.select()]]);
  return html`
    <label class="field where">
      <span class="field-label">Filter</span>
      <input ref=${box} class="input" type="text" placeholder=${`${example}<0.2 and step>=10`} spellcheck=${false} autocomplete="off" title="Conditions joined by and: a name, a sign (= != < <= > >=) and a value" ...${draft} />
    </label>
    ${value && html`<button type="button" class="button is-bare" onClick=${() => onChange(null)}>Clear</button>`}
  `;
}

/** A box that opens below its button; Escape closes it. */
function Menu({ label, children, className }) {
  const box = useRef(null);
  const close = (event) => {
    if (event.key !== "Escape" || !box.current.open) return;
    event.stopPropagation();
    box.current.open = false;
    box.current.querySelector("summary").focus();
  };
  const left = (event) => {
    if (event.relatedTarget && !box.current.contains(event.relatedTarget)) box.current.open = false;
  };
  return html`
    <details class=${`menu ${className || ""}`} ref=${box} onKeyDown=${close} onFocusOut=${left}>
      <summary class="button">${label}</summary>
      <div class="menu-box">${children}</div>
    </details>
  `;
}

/** Writes a condition: a column, a sign and a value. */
export function AddFilter({ columns, onAdd }) {
  const able = columns.filter((one) => one.filters !== false);
  const others = [
    ["outcome", "outcome of any reward"],
    ["cause", "cause of any failure"],
  ];
  const options = [...able.map((one) => [one.sort, visible(one.label)]), ...others];
  const [name, setName] = useState(null);
  const [sign, setSign] = useState("=");
  const [value, setValue] = useState("");
  const chosen = name ?? options[0]?.[0] ?? "";
  const add = (event) => {
    event.preventDefault();
    if (value.trim() === "") return;
    onAdd(chosen, sign, value);
    setValue("");
  };
  return html`
    <${Menu} label="Add a filter">
      <form class="add-filter" onSubmit=${add}>
        <${Choice} label="Column" value=${chosen} options=${options} onChange=${setName} />
        <${Choice} label="Sign" value=${sign} options=${SIGNS} onChange=${setSign} />
        <label class="field">
          <span class="field-label">Value</span>
          <input class="input" type="text" list="filter-values" spellcheck=${false} autocomplete="off" value=${value} onInput=${(event) => setValue(event.target.value)} />
        </label>
        <datalist id="filter-values">${OUTCOMES.map((one) => html`<option key=${one} value=${one} />`)}</datalist>
        <button class="button is-main" type="submit">Add</button>
      </form>
    <//>
  `;
}

/** Which columns the table has. */
export function ChooseColumns({ columns, chosen, usual, left, onChange }) {
  const toggle = (key, on) => {
    const keys = on ? [...chosen, key] : chosen.filter((one) => one !== key);
    onChange(columns.map((one) => one.key).filter((one) => keys.includes(one)));
  };
  const groups = [...new Set(columns.map((one) => one.group))];
  return html`
    <${Menu} label="Columns" className="choose-columns">
      ${groups.map(
        (group) => html`
          <fieldset key=${group}>
            <legend>${group}</legend>
            ${columns
              .filter((one) => one.group === group)
              .map(
                ({ key, label }) => html`
                  <label key=${key} class="check">
                    <input type="checkbox" checked=${chosen.includes(key)} disabled=${chosen.length === 1 && chosen[0] === key} onChange=${(event) => toggle(key, event.target.checked)} />
                    <span>${visible(label)}</span>
                  </label>
                `,
              )}
          </fieldset>
        `,
      )}
      ${left > 0 && html`<p class="faint">${count(left)} more columns of the data are not listed; a filter can name them</p>`}
      <button type="button" class="button" disabled=${String(chosen) === String(usual)} onClick=${() => onChange(null)}>Usual columns</button>
    <//>
  `;
}
