// Runs before the page is painted, so that a dark page does not flash.
"use strict";
{
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
