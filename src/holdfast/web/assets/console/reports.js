// Reports of audits in the folder that the console was given.

import {bytes, fill, h} from "/assets/dom.js";
import {facts, read} from "/assets/state.js";

const SIGNS = {good: "✓", warn: "⚠", bad: "✖"};

export function reports(content) {
  const body = h("div", {});
  content.append(h("h2", {class: "only-read"}, "Reports"), body);
  if (!facts.reports) {
    fill(body, h("p", {class: "empty"}, "No folder with reports was given. ",
      h("code", {}, "holdfast console --reports DIR"), " lists the pages that ",
      h("code", {}, "holdfast audit run --html DIR/NAME.html"), " writes."));
    return () => {};
  }
  const load = async () => {
    const rows = await read("/reports");
    fill(body, rows.length ? h("ul", {class: "cards wide"}, rows.map(row =>
      h("li", {class: "card"}, h("h3", {},
        h("span", {class: `pill ${row.look}`}, SIGNS[row.look]),
        h("a", {href: `/reports/${encodeURIComponent(row.name)}`, target: "_blank",
          rel: "noopener"}, row.title)),
      h("p", {class: "soft"},
        `${row.name}, ${new Date(row.at).toLocaleString("en-GB")}, ${bytes(row.bytes)}`))))
      : h("p", {class: "empty"}, "The folder has no report yet."));
  };
  load();
  const timer = setInterval(load, 5000);
  return Object.assign(() => {}, {end: () => clearInterval(timer)});
}
