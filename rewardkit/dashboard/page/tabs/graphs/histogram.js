/** Spread: how the values of a reward lie at each step, and which part of them moved between two stretches of steps. */
import { go, of } from "../../lib/address.js";
import { useApi } from "../../lib/api.js";
import { count, number, percent, stepSpan, visible } from "../../lib/format.js";
import { SAVED } from "../../lib/saved.js";
import { html } from "../../lib/view.js";
import { Choice } from "../../parts/fields.js";
import { Reading } from "../../parts/reading.js";
import { Empty, Loading, ProblemNote } from "../../parts/states.js";

const DARKEST = 0.95;
const TOTAL = "";

/** Which reward's histogram is shown; the choice is in the address. */
export function SpreadOf({ value, rewards }) {
  const options = [["-", "nothing"], [TOTAL, "the reward"], ...rewards.map((name) => [`=${name}`, visible(name)])];
  const chosen = value === undefined ? "-" : value;
  const set = (next) => go({ query: { spread: next === "-" ? null : next || "total", before: null, after: null } }, { replace: true });
  return html`<${Choice} label="Spread of" value=${chosen === "total" ? TOTAL : chosen} options=${options} onChange=${set} />`;
}

/** The section. */
export function Spread({ run, split, spread, query }) {
  const reward = spread.startsWith("=") ? spread.slice(1) : null;
  const asked = { split, reward, before: query.before, after: query.after };
  const { data, problem, reload } = useApi(of(run, "histogram"), asked);
  const name = reward === null ? "the reward" : visible(reward);
  return html`
    <section class="graphs-group" aria-label=${`Spread of ${name}`}>
      <div class="bar">
        <h2 class="graphs-group-title">Spread of ${name}</h2>
        <span class="push"></span>
        <button type="button" class="button is-bare" onClick=${() => go({ query: { spread: null, before: null, after: null } }, { replace: true })}>Close</button>
      </div>
      ${problem && html`<${ProblemNote} problem=${problem} retry=${reload} />`}
      ${!data && !problem && html`<${Loading} rows=${4} label="Loading the histogram" />`}
      ${data && html`<${Reading} reading=${data.reading} reload=${reload} />`}
      ${data && !data.bins.length && !data.reading && html`<${Empty} title="No values" hint=${`No completion of ${split} has a value of ${name}: it was skipped, or failed, each time.`} />`}
      ${data && data.bins.length > 0 && html`
        <div class="graphs-split">
          <${Map} data=${data} name=${name} />
          <${Moved} data=${data} name=${name} />
        </div>
      `}
    </section>
  `;
}

/** What a bin holds, in words. */
function binWords({ low, high }) {
  if (low === null) return `below ${number(high)}`;
  if (high === null) return `${number(low)} and more`;
  return low === high ? number(low) : `${number(low)} to <${number(high)}`;
}

function sliceWords({ first, last }) {
  return first === null ? "no step" : stepSpan(first, last);
}

/** A row of cells for each bin, a column for each stretch of steps; the darker, the more of the stretch's values. */
function Map({ data, name }) {
  const { bins, slices, counts } = data;
  const shares = counts.map((row, place) => row.map((value) => (slices[place].values ? value / slices[place].values : 0)));
  const most = Math.max(...shares.flat(), 0);
  const words = `Spread of ${name} over ${sliceWords({ first: slices[0].first, last: slices.at(-1).last })}: ${meansOf(slices)}`;
  return html`
    <figure class="spread-map">
      <div class="spread-grid" role="img" aria-label=${words} style=${{ gridTemplateColumns: `repeat(${slices.length}, 1fr)` }}>
        ${bins.map((_, row) => {
          const bin = bins.length - 1 - row;
          return slices.map((slice, column) => {
            const share = shares[column][bin];
            const title = `${sliceWords(slice)}, ${binWords(bins[bin])}: ${percent(share)}`;
            const chosen = column === data.before || column === data.after;
            return html`<i key=${`${row}/${column}`} class=${chosen ? "is-chosen" : null} title=${title} style=${{ "--share": share ? 0.08 + (DARKEST - 0.08) * (share / most) : 0 }}></i>`;
          });
        })}
      </div>
      <div class="spread-scale" aria-hidden="true">${[bins.length - 1, ...(bins.length > 2 ? [Math.floor((bins.length - 1) / 2)] : []), 0].filter((bin, place, all) => all.indexOf(bin) === place).map((bin) => html`<span key=${bin}>${binWords(bins[bin])}</span>`)}</div>
      <figcaption>
        <span>${sliceWords(slices[0])}</span><span>the darker, the more of a step's completions</span><span>${sliceWords(slices.at(-1))}</span>
      </figcaption>
    </figure>
  `;
}

function meansOf(slices) {
  return `mean ${number(slices[0].mean)} at first, ${number(slices.at(-1).mean)} at last`;
}

/** Two stretches side by side, and what moved between them. */
function Moved({ data, name }) {
  const { bins, slices, counts, before, after } = data;
  const options = slices.map((slice, place) => [String(place), sliceWords(slice)]);
  const set = (key) => (value) => go({ query: { [key]: value } }, { replace: true });
  const share = (place, bin) => (slices[place].values ? counts[place][bin] / slices[place].values : 0);
  const most = Math.max(...bins.flatMap((_, bin) => [share(before, bin), share(after, bin)]), 1e-9);
  const bar = (place, bin, kind) => html`
    <span class=${`spread-bar is-${kind}`}><i style=${{ width: `${(100 * share(place, bin)) / most}%` }}></i><span>${percent(share(place, bin))}</span></span>
  `;
  return html`
    <div class="spread-moved">
      ${!SAVED && html`<div class="bar">
        <${Choice} label="From" value=${String(before)} options=${options} onChange=${set("before")} />
        <${Choice} label="To" value=${String(after)} options=${options} onChange=${set("after")} />
      </div>`}
      <p role="status">${movedWords(data)}</p>
      <table class="table spread-table">
        <thead><tr><th scope="col">${name}</th><th scope="col">${sliceWords(slices[before])}</th><th scope="col">${sliceWords(slices[after])}</th></tr></thead>
        <tbody>
          ${bins.map((_, row) => {
            const bin = bins.length - 1 - row;
            return html`<tr key=${bin}><th scope="row">${binWords(bins[bin])}</th><td>${bar(before, bin, "before")}</td><td>${bar(after, bin, "after")}</td></tr>`;
          })}
        </tbody>
      </table>
      <p class="faint">${[before, after].map((place) => leftOut(slices[place])).filter(Boolean).join("; ")}</p>
    </div>
  `;
}

function movedWords({ moved, distance, flows, bins, slices, before, after }) {
  if (moved === null) return "One of the two has no values.";
  if (before === after) return slices.length > 1 ? "Both are the same steps: choose two to see what moved between them." : "All are of the same steps, so nothing moved between any.";
  if (!moved) return "Nothing moved: both spread alike.";
  const moves = flows.map(({ start, end, share }) => `${percent(share)} from ${binWords(bins[start])} to ${binWords(bins[end])}`);
  return `${percent(moved)} lie elsewhere, ${number(distance)} on average over all. The largest moves: ${moves.join("; ")}.`;
}

/** Completions of a stretch that are in no bin. */
function leftOut({ first, last, skipped, failed }) {
  const parts = [skipped && `${count(skipped)} skipped`, failed && `${count(failed)} failed`].filter(Boolean);
  return parts.length ? `${sliceWords({ first, last })}: ${parts.join(", ")}, which have no value` : "";
}
