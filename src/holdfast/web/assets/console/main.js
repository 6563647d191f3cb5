// Which view is shown, the connection, and the colours.

import {fill, h} from "/assets/dom.js";
import {connect, facts, get, keepToken, listen, pause, read} from "/assets/state.js";
import {overview} from "/assets/overview.js";
import {partitions} from "/assets/partitions.js";
import {partition} from "/assets/partition.js";
import {groups} from "/assets/groups.js";
import {faults} from "/assets/faults.js";
import {reports} from "/assets/reports.js";

const el = id => document.getElementById(id);
const VIEWS = {overview, partitions, partition, groups, faults, reports};
const TITLES = {
  overview: "Overview", partitions: "Partitions", groups: "Groups", faults: "Break it",
  reports: "Reports",
};
let current = null, end = () => {};

// #view/argument?more
function wish() {
  const [path, more] = location.hash.slice(1).split("?");
  const [view, ...rest] = path.split("/");
  const argument = decodeURIComponent(rest.join("/"));
  return VIEWS[view] ? {view, argument, more: new URLSearchParams(more)}
    : {view: "overview", argument: "", more: new URLSearchParams()};
}

function show() {
  const {view, argument, more} = wish();
  end();
  const content = h("div", {class: `view ${view}`});
  const update = VIEWS[view](content, argument, more);
  const stop = listen(kinds => update(kinds));
  const tidy = update.end || (() => {});
  end = () => { stop(); tidy(); };
  connect(view === "partition" ? argument : "", link);
  fill(el("main"), content);
  mark(view === "partition" ? "partitions" : view);
  const title = view === "partition" ? argument : TITLES[view];
  document.title = `${title} · Holdfast console`;
  update(new Set(["all"]));
  if (current !== null && current !== location.hash) el("main").focus({preventScroll: true});
  if (current !== location.hash) scrollTo(0, 0);
  current = location.hash;
}

function mark(view) {
  fill(el("views"), Object.entries(TITLES).map(([name, title]) =>
    h("li", {}, h("a", {href: `#${name}`, "aria-current": name === view ? "page" : null}, title))));
}

function link(isOpen) {
  el("link").textContent = isOpen ? "● live" : "○ reconnecting";
  el("link").className = `pill ${isOpen ? "good" : "warn"}`;
}

listen(kinds => {
  if (!kinds.has("cluster")) return;
  const cluster = get("cluster");
  if (!cluster) return;
  const words = `${cluster.kind} ${cluster.id}`;
  if (el("cluster").textContent !== words) el("cluster").textContent = words;
  el("problem").hidden = !cluster.problem;
  el("problem").textContent =
    cluster.problem ? "No broker answers. This is the last state that was seen." : "";
  el("problem").title = cluster.problem;
});

// Colours: as the system, light, dark.
const MODES = ["", "light", "dark"], SIGNS = ["◐", "☀", "☾"];
const WORDS = ["as the system", "light", "dark"];

function colours(mode) {
  document.documentElement.classList.remove("light", "dark");
  if (mode) document.documentElement.classList.add(mode);
  const place = MODES.indexOf(mode);
  el("theme").textContent = SIGNS[place];
  el("theme").setAttribute("aria-label", `Colours: ${WORDS[place]}`);
  el("theme").title = `Colours: ${WORDS[place]}`;
}

el("theme").addEventListener("click", () => {
  const mode = MODES[(MODES.indexOf(localStorage.getItem("colours") || "") + 1) % MODES.length];
  localStorage.setItem("colours", mode);
  colours(mode);
});
el("skip").addEventListener("click", event => { event.preventDefault(); el("main").focus(); });
window.addEventListener("hashchange", show);
// A hidden page needs no updates; it gets a full snapshot when it is shown again.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) pause();
  else connect(wish().view === "partition" ? wish().argument : "", link);
});

keepToken();
colours(localStorage.getItem("colours") || "");
Object.assign(facts, await read("/facts"));
show();
