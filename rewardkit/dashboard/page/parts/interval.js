/** A mean or a rate with its interval, as a mark on a line and in words. */
import { UNKNOWN, number } from "../lib/format.js";
import { html } from "../lib/view.js";

/** The interval from low to high around a value, between the bounds [least, most]; null low for a value without one. */
export function Interval({ value, low, high, bounds: [least, most], write = number }) {
  if (!Number.isFinite(value)) return html`<span class="faint">${UNKNOWN}</span>`;
  const at = (point) => `${(100 * (point - least)) / (most - least)}%`;
  const isKnown = Number.isFinite(low);
  return html`
    <span class="interval">
      <span class="interval-bar" aria-hidden="true">
        ${isKnown && html`<i class="interval-range" style=${{ left: at(low), width: `calc(${at(high)} - ${at(low)})` }}></i>`}
        <i class="interval-mean" style=${{ left: at(value) }}></i>
      </span>
      <span class="interval-words">${isKnown ? `${write(low)} to ${write(high)}` : "one value: no interval"}</span>
    </span>
  `;
}
