/** An editor for short texts: line numbers, Tab indents, Enter keeps the indentation, Escape leaves. */
import { html, useLayoutEffect, useRef } from "../../lib/view.js";

const INDENT = "    ";
const LINE_PX = 20;
const LEAST_LINES = 8;
const MOST_LINES = 34;

/**
 * A text that can be edited, unless it is fixed; `wrong` is the number of a line with a fault, and onSend is told
 * Ctrl+Enter.
 */
export function Editor({ value, onChange, onSend, label, wrong = null, describedby, isFixed = false }) {
  const area = useRef(null);
  const gutter = useRef(null);
  const lines = value.split("\n").length;
  const height = Math.min(Math.max(lines, LEAST_LINES), MOST_LINES) * LINE_PX + 26;

  useLayoutEffect(() => {
    if (area.current && area.current.value !== value) area.current.value = value;
  }, [value]);
  useLayoutEffect(() => {
    if (wrong) showLine(area.current, wrong);
  }, [wrong]);

  const onScroll = () => {
    gutter.current.scrollTop = area.current.scrollTop;
  };
  const onKeyDown = (event) => {
    if (event.isComposing || isFixed) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onSend?.();
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "Tab") indent(area.current, event.shiftKey);
    else if (event.key === "Enter") insert(area.current, `\n${indentation(area.current)}`);
    else return;
    event.preventDefault();
  };
  return html`
    <div class="editor" style=${{ height: `${height}px` }}>
      <pre class="editor-lines" ref=${gutter} aria-hidden="true">
${Array.from({ length: lines }, (_, place) => html`<span key=${place} class=${place + 1 === wrong ? "is-wrong" : null}>${place + 1}${"\n"}</span>`)}</pre
      >
      <textarea
        ref=${area}
        class="editor-text"
        wrap="off"
        readonly=${isFixed}
        spellcheck=${false}
        autocapitalize="off"
        autocomplete="off"
        aria-label=${label}
        aria-describedby=${describedby}
        aria-invalid=${wrong ? "true" : null}
        onInput=${(event) => onChange(event.target.value)}
        onScroll=${onScroll}
        onKeyDown=${onKeyDown}
      ></textarea>
    </div>
  `;
}

/** Put a line into sight, and the cursor at its beginning where the editor has the focus. */
function showLine(area, line) {
  if (!area) return;
  const start = area.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  area.setSelectionRange(start, start);
  area.scrollTop = Math.max((line - 6) * LINE_PX, 0);
}

/** Write at the cursor, in a way that the browser can undo. */
function insert(area, text) {
  const done = text === "" ? document.execCommand("delete") : document.execCommand("insertText", false, text);
  if (done) return;
  area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

function lineStart(area) {
  return area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
}

function indentation(area) {
  const before = area.value.slice(lineStart(area), area.selectionStart);
  const kept = before.match(/^[ \t]*/)[0];
  return before.trimEnd().endsWith(":") ? kept + INDENT : kept;
}

/** Indent at the cursor, or the lines that are selected; back takes the indentation away. */
function indent(area, back) {
  const { selectionStart: from, selectionEnd: to, value } = area;
  if (!back && from === to) {
    insert(area, INDENT.slice((from - lineStart(area)) % INDENT.length));
    return;
  }
  const start = lineStart(area);
  const chosen = value.slice(start, to);
  const changed = chosen
    .split("\n")
    .map((line) => (back ? line.replace(/^( {1,4}|\t)/, "") : line && INDENT + line))
    .join("\n");
  if (changed === chosen) return;
  area.setSelectionRange(start, to);
  insert(area, changed);
  area.setSelectionRange(from === to ? Math.max(start, from + changed.length - chosen.length) : start, start + changed.length);
}
