/** "Share": saves this page, or what is open of it, as one file with its data inside. */
import { of, useAddress } from "../lib/address.js";
import { savedPage } from "../lib/api.js";
import { bytes, count, counted, percent, visible } from "../lib/format.js";
import { html, useEffect, useRef, useState } from "../lib/view.js";

const MEGABYTES = 20;

/** The parts that can be saved where one is: [name, words, query], the one that is open first. */
function partsOf({ run, tab, query }) {
  const parts = [];
  const split = query.split && query.split !== "train" ? { split: query.split } : {};
  if (tab === "completions") {
    if (query.prompt !== undefined) parts.push([`prompt-${query.prompt}`, `Prompt ${query.prompt}, through the epochs`, { prompt: query.prompt }]);
    if (query.step !== undefined) parts.push([`step-${query.step}`, `Step ${count(Number(query.step))}`, { step: query.step, ...split }]);
    if (query.list === "all" && (query.where || query.find)) {
      const words = [query.where, query.find && `“${query.find}”`].filter(Boolean).map(visible).join(", with ");
      parts.push(["chosen", `The completions with ${words}`, { where: query.where, [query.re === "1" ? "grep" : "find"]: query.find, ...split }]);
    }
  }
  return [...parts, [null, `The run ${visible(run)}`, {}]];
}

/** The button and its dialog. */
export function ShareButton() {
  const address = useAddress();
  const dialog = useRef(null);
  const [open, setOpen] = useState(false);
  const show = () => {
    setOpen(true);
    dialog.current?.showModal();
  };
  const close = () => dialog.current?.close();
  return html`
    <button type="button" class="button is-bare share-button" onClick=${show}>Share</button>
    <dialog ref=${dialog} class="keys share" aria-labelledby="share-title" onClose=${() => setOpen(false)}>
      <div class="keys-head">
        <h2 id="share-title">Save as one file</h2>
        <button type="button" class="button is-bare is-icon" aria-label="Close" onClick=${close}>
          <svg viewBox="0 0 16 16" aria-hidden="true"><path d="m4 4 8 8m0-8-8 8" /></svg>
        </button>
      </div>
      ${open && html`<${Choices} key=${address.run} address=${address} />`}
    </dialog>
  `;
}

function Choices({ address }) {
  const { run } = address;
  const parts = partsOf(address);
  const [chosen, setChosen] = useState(0);
  const [megabytes, setMegabytes] = useState(MEGABYTES);
  const [state, setState] = useState({});
  const flight = useRef(null);
  useEffect(() => () => flight.current?.abort(), []);
  const save = async (event) => {
    event.preventDefault();
    flight.current = new AbortController();
    const { signal } = flight.current;
    setState({ progress: { done: 0, of: 0 } });
    const [name, , query] = parts[chosen];
    try {
      const asked = { ...query, max_mb: megabytes };
      const { page, about } = await savedPage(of(run, "share"), asked, { signal, tell: (progress) => setState({ progress }) });
      download(page, [run.replace(/[^\w.-]+/g, "-"), name].filter(Boolean).join("-"));
      setState({ about });
    } catch (wrong) {
      setState(wrong.name === "AbortError" ? {} : { problem: wrong.words || String(wrong) });
    }
  };
  const { progress, about, problem } = state;
  return html`
    <form class="share-form" onSubmit=${save}>
      <p class="muted">This page with its data inside: it opens in a browser without a server and without the network. It has whole completions in it, so send it only to those who may read them.</p>
      <fieldset>
        <legend class="field-label">What is in it</legend>
        ${parts.map(
          ([name, words], place) => html`
            <label key=${name} class="line"><input type="radio" name="part" checked=${place === chosen} onChange=${() => setChosen(place)} />${words}</label>
          `,
        )}
      </fieldset>
      <label class="line">
        <span class="field-label">At most</span>
        <input class="input share-size" type="number" min="1" max="500" step="1" value=${megabytes} onChange=${(event) => setMegabytes(Number(event.target.value) || MEGABYTES)} /> MB
      </label>
      <div class="line">
        ${
          progress
            ? html`<button type="button" class="button" onClick=${() => flight.current.abort()}>Stop</button>`
            : html`<button type="submit" class="button is-main">Save</button>`
        }
        <span role="status">
          ${progress && html`<progress max=${progress.of || 1} value=${progress.done} aria-label="Saved so far"></progress> ${progress.done ? `${counted(progress.done, "completion")} of ${count(progress.of)} (${percent(progress.done / progress.of)})` : "Looking at the run …"}`}
          ${about && html`<span>Saved ${bytes(about.bytes)} with ${counted(about.completions, "completion")}.</span>`}
        </span>
      </div>
      ${about && about.left_out.map((sentence) => html`<p key=${sentence} class="muted">${visible(sentence)}</p>`)}
      ${problem && html`<p class="is-bad-words" role="alert">${visible(problem)}</p>`}
    </form>
  `;
}

function download(page, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(page);
  link.download = `${name}.html`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
