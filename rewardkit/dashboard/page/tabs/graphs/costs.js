/** What the calls of judges and other servers took in all: requests, tokens and money, a line a reward. */
import { of } from "../../lib/address.js";
import { useApi } from "../../lib/api.js";
import { count, number, visible } from "../../lib/format.js";
import { html } from "../../lib/view.js";

const UNITS = { requests: "request", prompt_tokens: "prompt token", completion_tokens: "completion token" };
const EVERY_MS = 30_000; // all calls are read for it

/** The lines; nothing where no reward asks a server. */
export function Costs({ run, split }) {
  const { data } = useApi(of(run, "costs"), { split }, { live: false, every: EVERY_MS });
  if (!data?.rewards.length) return null;
  return html`
    <ul class="muted" aria-label="What the calls took">
      ${data.rewards.map((one) => html`<li key=${one.reward}><b>${visible(one.reward)}</b> took ${Object.entries(one.costs).map(amount).join(", ")}</li>`)}
    </ul>
  `;
}

function amount([metric, { sum, complete }]) {
  const unit = metric === "cost_usd" ? "USD" : UNITS[metric] + (sum === 1 ? "" : "s");
  return `${complete ? "" : "at least "}${metric === "cost_usd" ? number(sum) : count(Math.round(sum))} ${unit}`;
}
