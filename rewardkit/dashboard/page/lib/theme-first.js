// Runs before the first paint, so that a dark page does not begin with a white flash.
(function () {
  let theme = "system";
  try {
    theme = JSON.parse(window.localStorage.getItem("rewardkit:theme")) || "system";
  } catch {
    theme = "system";
  }
  const dark = theme === "dark" || (theme !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
