/** What stands where there is nothing to show: loading, empty, wrong. */
import { html } from "../lib/view.js";
import { HOME } from "../lib/address.js";
import { visible } from "../lib/format.js";

/** A skeleton of the rows to come, below a graph if it is tall; it appears only if they take a moment. */
export function Loading({ rows = 5, label = "Loading", tall = false }) {
  return html`
    <div class="loading" role="status">
      <span class="unseen">${label} …</span>
      ${tall && html`<div class="loading-row is-tall" />`}
      ${Array.from({ length: rows }, (_, place) => html`<div class="loading-row" key=${place} />`)}
    </div>
  `;
}

/** Nothing to show, and what to do about it. */
export function Empty({ title, hint, children }) {
  return html`
    <div class="empty">
      <svg class="empty-mark" viewBox="0 0 48 32" aria-hidden="true">
        <path d="M4 28V4M4 28H44" /><path class="empty-line" d="M10 22 18 15 26 19 40 8" />
      </svg>
      <p class="empty-title">${title}</p>
      ${hint && html`<p class="empty-hint">${hint}</p>`} ${children}
    </div>
  `;
}

const TITLES = {
  "-1": "This view has a fault",
  0: "The server does not answer",
  400: "This address cannot be shown",
  401: "This link is no longer valid",
  404: "This is not there",
};
const STATES = {
  saved: "This is not in the file",
  missing: "This run is not there",
  unreadable: "This record cannot be read",
  busy: "The server is busy",
};
const HINTS = {
  0: "What is shown here comes back by itself when the server does.",
  401: "Open the address that rewardkit ui printed when it was started.",
  404: "It may have been removed or renamed; if it comes back, it appears here by itself.",
  503: "This page asks again by itself.",
};

/** A problem in words, with a way on. */
export function ProblemNote({ problem, retry }) {
  if (!problem) return null;
  const hint = problem.state === "saved" ? null : HINTS[problem.status];
  return html`
    <div class="problem" role="alert">
      <p class="problem-title">${STATES[problem.state] || TITLES[problem.status] || "This did not work"}</p>
      <p class="problem-words">${visible(problem.words)}</p>
      ${hint && html`<p class="problem-hint">${hint}</p>`}
      <p class="problem-ways">
        ${retry && html`<button class="button" type="button" onClick=${retry}>Try again</button>`}
        ${[404, 503].includes(problem.status) && html`<a class="button" href=${HOME}>${problem.state === "saved" ? "Where this page begins" : "All runs"}</a>`}
      </p>
    </div>
  `;
}
