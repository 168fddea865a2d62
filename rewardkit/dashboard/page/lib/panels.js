/** The table of the panels, [{name, title, key}, ...] in the order of their tabs; the server writes it into the page. */
export const PANELS = JSON.parse(document.getElementById("page").dataset.panels);

/** What the tab of each panel is called. */
export const TITLES = Object.fromEntries(PANELS.map(({ name, title }) => [name, title]));
