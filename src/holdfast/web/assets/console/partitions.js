// All partitions in one list. Only the rows in view are elements, however many there are.

import {count, fill, h, health, LOOKS, names, ORDER} from "/assets/dom.js";
import {nameOf, partitions as rowsOf, places} from "/assets/state.js";

const narrow = matchMedia("(max-width:700px)");
const SPARE = 4;

export function partitions(content, _, more) {
  const find = h("input", {type: "search", placeholder: "topic or topic-0", value:
    more.get("find") || "", "aria-label": "Find partitions by name"});
  const choose = h("select", {"aria-label": "Health"}, h("option", {value: ""}, "any health"),
    ORDER.map(name => h("option", {value: name, selected: more.get("health") === name},
      LOOKS[name][2])));
  const order = h("select", {"aria-label": "Order"},
    h("option", {value: "health"}, "worst first"), h("option", {value: "name"}, "by name"),
    h("option", {value: "rate"}, "busiest first"));
  const said = h("p", {class: "soft", role: "status"});
  const window_ = h("div", {class: "rows", role: "rowgroup"});
  const space = h("div", {class: "space"}, window_);
  const list = h("div", {class: "list", role: "grid", tabindex: "0", "aria-label": "Partitions",
    "aria-describedby": "list-keys"}, space);
  content.append(
    h("h2", {class: "only-read"}, "Partitions"),
    h("div", {class: "bar"}, find, choose, order, said),
    h("div", {class: "listhead", "aria-hidden": "true"}, ["partition", "health", "leader", "in sync",
      "end", "records/s"].map(title => h("span", {}, title))),
    list,
    h("p", {class: "soft keys", id: "list-keys"}, "Arrows, Page Up and Page Down, Home and End move, "
      + "Enter opens."));
  let shown = [], active = 0, height = 44;

  function measure() {
    height = narrow.matches ? 60 : 44;  // as in console.css
    space.style.height = `${shown.length * height}px`;
    draw();
  }

  function select() {
    const text = find.value.trim().toLowerCase();
    shown = rowsOf().filter(row => (!choose.value || row[places.health] === choose.value)
      && (!text || nameOf(row).toLowerCase().includes(text)));
    // Internal topics come last.
    const inner = row => row[places.topic].startsWith("__");
    const byName = (a, b) => inner(a) - inner(b) || (a[places.topic] < b[places.topic] ? -1
      : a[places.topic] > b[places.topic] ? 1 : a[places.index] - b[places.index]);
    const byHealth = (a, b) =>
      ORDER.indexOf(a[places.health]) - ORDER.indexOf(b[places.health]) || byName(a, b);
    const byRate = (a, b) => b[places.rate] - a[places.rate] || byName(a, b);
    shown.sort({health: byHealth, name: byName, rate: byRate}[order.value]);
    active = Math.min(active, Math.max(0, shown.length - 1));
    said.textContent = `${count(shown.length)} of ${count(rowsOf().length)}`;
    list.setAttribute("aria-rowcount", shown.length);
    measure();
  }

  function draw() {
    const first = Math.max(0, Math.floor(list.scrollTop / height) - SPARE);
    const last = Math.min(shown.length, first + Math.ceil(list.clientHeight / height) + 2 * SPARE);
    window_.style.transform = `translateY(${first * height}px)`;
    fill(window_, shown.slice(first, last).map((row, place) => rowOf(row, first + place)));
    list.setAttribute("aria-activedescendant", shown.length ? `row-${active}` : "");
  }

  function rowOf(row, place) {
    const name = nameOf(row), out = row[places.isr].length < row[places.replicas].length;
    return h("div", {class: place === active ? "row active" : "row", role: "row", id: `row-${place}`,
      "aria-rowindex": place + 1, "aria-selected": place === active ? "true" : "false",
      "data-name": name, onclick: () => open(name)},
    h("span", {role: "rowheader", title: name}, name),
    h("span", {role: "gridcell"}, health(row[places.health])),
    h("span", {role: "gridcell"}, row[places.leader] < 0 ? "none" : `b${row[places.leader]}`),
    h("span", {role: "gridcell", class: out ? "warned" : ""}, names(row[places.isr]) || "nobody"),
    h("span", {role: "gridcell"}, count(row[places.end])),
    h("span", {role: "gridcell"}, count(row[places.rate])));
  }

  const open = name => { location.hash = `#partition/${encodeURIComponent(name)}`; };
  const page = () => Math.max(1, Math.floor(list.clientHeight / height) - 1);
  const moves = {
    ArrowDown: () => active + 1, ArrowUp: () => active - 1, PageDown: () => active + page(),
    PageUp: () => active - page(), Home: () => 0, End: () => shown.length - 1,
  };
  list.addEventListener("keydown", event => {
    if (event.key === "Enter" && shown[active]) return open(nameOf(shown[active]));
    if (!moves[event.key] || !shown.length) return;
    event.preventDefault();
    active = Math.max(0, Math.min(shown.length - 1, moves[event.key]()));
    const top = active * height;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + height > list.scrollTop + list.clientHeight)
      list.scrollTop = top + height - list.clientHeight;
    draw();
  });
  list.addEventListener("scroll", () => requestAnimationFrame(draw));
  [find, choose, order].forEach(one => one.addEventListener("input", () => {
    list.scrollTop = active = 0;
    select();
  }));
  narrow.addEventListener("change", measure);
  const update = kinds => {
    if (kinds.has("all") || kinds.has("partition")) select();
  };
  return Object.assign(update, {end: () => narrow.removeEventListener("change", measure)});
}
