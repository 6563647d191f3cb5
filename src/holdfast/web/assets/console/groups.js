// Consumer groups with their lag.

import {count, fill, h} from "/assets/dom.js";
import {all} from "/assets/state.js";

export function groups(content) {
  const body = h("div", {class: "scroll"});
  content.append(h("h2", {class: "only-read"}, "Groups"), body);
  const opened = new Set();
  return kinds => {
    if (!kinds.has("all") && !kinds.has("group")) return;
    const rows = all("group/").sort((a, b) => b.lag - a.lag || a.id.localeCompare(b.id));
    fill(body, rows.length ? table(rows, opened) : h("p", {class: "empty"},
      "No consumer group. A group appears when a consumer with a group.id joins or commits."));
  };
}

function table(rows, opened) {
  return h("table", {}, h("thead", {}, h("tr", {},
    ["group", "state", "members", "lag", "partitions", "coordinator", "furthest behind"]
      .map(title => h("th", {scope: "col"}, title)))),
  h("tbody", {}, rows.map(row => h("tr", {},
    h("th", {scope: "row"}, row.id),
    h("td", {}, h("span", {class: `pill ${row.state === "Stable" ? "good" : "soft"}`},
      row.state || row.kind)),
    h("td", {}, row.members), h("td", {class: row.lag ? "warned" : ""}, count(row.lag)),
    h("td", {}, row.partitions), h("td", {}, `b${row.coordinator}`),
    h("td", {}, worst(row, opened))))));
}

function worst(row, opened) {
  if (!row.worst.length) return "no committed offset";
  const details = h("details", {open: opened.has(row.id), ontoggle: event =>
    event.target.open ? opened.add(row.id) : opened.delete(row.id)},
  h("summary", {}, `${row.worst[0][0]}: ${count(row.worst[0][1])}`),
  h("ul", {}, row.worst.slice(1).map(([name, lag]) => h("li", {},
    h("a", {href: `#partition/${encodeURIComponent(name)}`}, name), `: ${count(lag)}`))));
  return details;
}
