/** Pictures of a record: each as it is stored, or in its place the reason why it is not there. */
import { of } from "../lib/address.js";
import { count, visible } from "../lib/format.js";
import { SAVED, savedAnswer } from "../lib/saved.js";
import { createContext, html, useContext, useEffect, useState } from "../lib/view.js";

const REFERENCE = /picture:[0-9a-f]{32}/g;
const ALONE = /^\{"bytes": "\[picture\]"(, "path": null)?\}$/;

/** A text with references to pictures written as what they are; a picture as `datasets` has it is a picture alone. */
export function pictureless(text) {
  const written = text.replace(REFERENCE, "[picture]");
  return ALONE.test(written) ? "[picture]" : written;
}

/** The run whose pictures are shown. */
export const PicturesOf = createContext(null);

/** The address of a picture's file; in a saved page the picture itself, once it is unpacked. */
function usePictureAddress(run, key) {
  const [data, setData] = useState(null);
  useEffect(() => {
    setData(null);
    if (SAVED && key) savedAnswer("picture_data", { key }).then((answer) => setData(answer?.url ?? ""), () => setData(""));
  }, [key]);
  return SAVED || !key ? data : of(run, `picture/${encodeURIComponent(key)}`);
}

/** What of a picture fits in a line. */
export function pictureWords({ about, text }) {
  const named = text ? ` ${visible(text)}` : "";
  if (!about) return `[picture${named}: only its address is in the record; nothing is loaded from there]`;
  return about.reason ? `[picture${named}: ${visible(about.reason)}]` : `[picture${named}, ${sizeOf(about)}]`;
}

function sizeOf({ width, height, original_width: fullWidth, original_height: fullHeight }) {
  const size = `${count(width)} × ${count(height)}`;
  return fullWidth && (fullWidth !== width || fullHeight !== height) ? `${size}, scaled from ${count(fullWidth)} × ${count(fullHeight)}` : size;
}

/** One picture; it opens by itself in another tab of the browser. */
export function Picture({ about = null, text = "", name = "" }) {
  const run = useContext(PicturesOf);
  const [broken, setBroken] = useState(null);
  const address = usePictureAddress(run, about && !about.reason ? about.key : null);
  const missing = !about || about.reason || broken === about.key || run === null || address === "";
  if (missing) {
    const words = broken ? `[picture: damaged in the record]` : pictureWords({ about, text });
    return html`<p class="picture-missing">${words}</p>`;
  }
  if (address === null) return html`<p class="picture-missing">Loading …</p>`;
  const label = `Picture${name ? ` of ${visible(name)}` : ""}, ${sizeOf(about)}`;
  return html`
    <figure class="picture">
      <a href=${SAVED ? null : address} target="_blank" rel="noopener" title=${label}>
        <img
          src=${address}
          width=${about.width}
          height=${about.height}
          alt=${label}
          loading="lazy"
          decoding="async"
          onError=${() => setBroken(about.key)}
        />
      </a>
      <figcaption class="faint">${sizeOf(about)}</figcaption>
    </figure>
  `;
}

/** The pictures of a column. */
export function Pictures({ pictures, name }) {
  return html`<div class="pictures">${pictures.map((about, place) => html`<${Picture} key=${place} about=${about} name=${name} />`)}</div>`;
}
