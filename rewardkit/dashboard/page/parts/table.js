/** A table with a head that stays, sorting, and rows that keys reach. */
import { useKeys } from "../lib/keys.js";
import { html, useRef, useState } from "../lib/view.js";

/**
 * Columns: {key, title, render(row)?, align: "right"?, sortable?, first: "down"|"up"?, hint?, className?}.
 * `sort` is a column's key, with "-" before it for downwards; `onSort` is told the next one.
 * A row opens by click or Enter, and j and k lead through them; `rowKey(row)` names it, and `selected` is such a name.
 */
export function Table({ columns, rows, sort, onSort, onRow, selected, rowKey, label }) {
  const body = useRef(null);
  const [focused, setFocused] = useState(null);
  const names = rows.map(rowKey);
  const reached = [focused, selected].find((one) => names.includes(one)) ?? names[0];
  const step = (by) => focusRow(body.current, by);
  useKeys(
    onRow
      ? [
          ["j", "Next row", () => step(1)],
          ["k", "Row before", () => step(-1)],
        ]
      : [],
  );
  return html`
    <div class="table-box" role="region" aria-label=${label} tabindex=${onRow ? null : 0}>
      <table class="table">
        <thead>
          <tr>
            ${columns.map((column) => html`<${Head} key=${column.key} column=${column} sort=${sort} onSort=${onSort} />`)}
          </tr>
        </thead>
        <tbody ref=${body}>
          ${rows.map((row, place) => {
            const name = names[place];
            return html`<${Row}
              key=${name}
              name=${name}
              row=${row}
              columns=${columns}
              onRow=${onRow}
              selected=${selected !== undefined && selected !== null && name === selected}
              reached=${name === reached}
              onFocus=${setFocused}
              onStep=${step}
            />`;
          })}
        </tbody>
      </table>
    </div>
  `;
}

/** Lead the focus so many rows on from where it is, or from the selected row. */
export function focusRow(table, by) {
  const rows = [...(table?.querySelectorAll("tr[tabindex]") || [])];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  const from = at < 0 ? rows.findIndex((one) => one.getAttribute("aria-selected") === "true") : at;
  rows[from < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(from + by, 0), rows.length - 1)].focus();
}

function Head({ column, sort, onSort }) {
  const down = sort === `-${column.key}`;
  const sorted = down || sort === column.key;
  const sortable = onSort && column.sortable !== false && column.title;
  const next = sorted ? (down ? column.key : `-${column.key}`) : column.first === "up" ? column.key : `-${column.key}`;
  return html`
    <th
      scope="col"
      class=${classOf(column)}
      title=${column.hint}
      aria-sort=${sorted ? (down ? "descending" : "ascending") : null}
    >
      ${
        sortable
          ? html`<button type="button" class="sort" onClick=${() => onSort(next)}>
              ${column.title}<span class=${`sort-mark${sorted ? " is-on" : ""}`} aria-hidden="true">${sorted && !down ? "↑" : "↓"}</span>
            </button>`
          : column.title || html`<span class="unseen">${column.label || column.key}</span>`
      }
    </th>
  `;
}

function classOf(column) {
  return [column.align === "right" && "right", column.className].filter(Boolean).join(" ") || null;
}

function Row({ row, name, columns, onRow, selected, reached, onFocus, onStep }) {
  const open = (event) => {
    if (event.target.closest("a, button, input, select, label") || String(window.getSelection())) return;
    onRow(row);
  };
  const onKeyDown = (event) => {
    if (event.target !== event.currentTarget) return;
    if (event.key === "Enter" || event.key === " ") onRow(row);
    else if (event.key === "ArrowDown") onStep(1);
    else if (event.key === "ArrowUp") onStep(-1);
    else return;
    event.preventDefault();
  };
  const ways = onRow
    ? { "data-row": name, tabindex: reached ? 0 : -1, onClick: open, onKeyDown, onFocus: () => onFocus(name), class: "row-opens" }
    : {};
  return html`
    <tr ...${ways} aria-selected=${onRow ? String(selected) : null}>
      ${columns.map(
        (column) => html`
          <td key=${column.key} class=${classOf(column)}>
            ${column.render ? column.render(row) : row[column.key]}
          </td>
        `,
      )}
    </tr>
  `;
}
