/** The changes that the training was asked for, with its answers. */
import { ago, clock, count, number, visible } from "../../lib/format.js";
import { html } from "../../lib/view.js";
import { WHAT } from "./trial.js";

const LOOKS = { asked: "is-warn", accepted: "is-good", applied: "is-good", refused: "is-bad", dropped: "" };

/** The list, newest first; `fresh` is the one that was asked for here. */
export function Asked({ changes, fresh, step }) {
  const mine = changes.find((one) => one.id === fresh);
  return html`
    <section class="panel" aria-labelledby="asked-title">
      <div class="panel-head"><h2 id="asked-title">Changes asked for</h2></div>
      <div class="unseen" role="status" aria-live="polite">${mine ? `Change ${mine.id}: ${told(mine, step)}` : ""}</div>
      ${changes.length ? html`<ol class="asked">${changes.map((one) => html`<${One} key=${one.id} one=${one} step=${step} fresh=${one.id === fresh} />`)}</ol>` : html`<p class="panel-body muted">None so far.</p>`}
    </section>
  `;
}

function One({ one, step, fresh }) {
  const weight = one.weight === null || one.action === "remove" ? "" : ` ${number(one.weight)}`;
  return html`
    <li class=${fresh ? "is-fresh" : null}>
      <p class="line">
        <span class=${`chip ${LOOKS[one.state]}`}>${one.state}</span>
        <b>${WHAT[one.action]}${one.action === "weight" ? weight : ""}</b>
        <span class="cut">${visible(one.reward)}</span>
      </p>
      <p class="muted asked-words">${visible(told(one, step))} <span class="faint" title=${clock(one.asked)}>· ${ago(one.asked)}</span></p>
      ${one.reference && html`<p class="faint asked-words" title=${visible(one.reference)}><code>${visible(one.reference.split("/").pop())}</code>${one.digits && html` · ${one.digits}`}</p>`}
    </li>
  `;
}

/** What became of a change, in words. */
function told(one, step) {
  if (one.state === "asked") return one.unheard ? "nobody answers: the training is gone" : "waiting for the training's answer";
  if (one.state === "refused") return `refused because ${one.words}`;
  if (one.state === "dropped") return one.words || "dropped";
  const since = step !== null && one.state === "accepted" ? `; the training is at step ${count(step)}` : "";
  return `${one.state === "accepted" ? "accepted, takes effect at" : "in effect from"} step ${count(one.step)}${one.state === "accepted" ? "" : " on"}${since}`;
}
