"use strict";
const el = id => document.getElementById(id);
const narrow = matchMedia("(max-width:700px)");
let scenarios = [], places = [];
let current = 0, timer = null;
let onShow = () => {};  // The playground's controls follow the shown frame.

const scenario = () => scenarios[current];
const frames = () => scenario().frames;
const clamp = place => Math.max(0, Math.min(frames().length - 1, place));

// The link to a frame: #step=3 is the state after step 3, #step=3.1 its first event.
function hash() {
  const place = places[current], all = frames(), step = all[place].step;
  const first = all.findIndex(frame => frame.step === step);
  const isLast = place === all.length - 1 || all[place + 1].step !== step;
  const link = new URLSearchParams(location.hash.slice(1));
  if (scenarios.length > 1) link.set("story", current + 1);
  link.set("step", step + (isLast ? "" : "." + (place - first + 1)));
  return link.toString();
}

function followHash() {
  const wish = new URLSearchParams(location.hash.slice(1));
  const chosen = Number(wish.get("story")) - 1;
  if (scenarios[chosen] && chosen !== current) openScenario(chosen);
  const found = /^(\d+)(?:\.(\d+))?$/.exec(wish.get("step") || "");
  if (!found) return;
  const inStep = frames().map((frame, place) => [frame.step, place])
    .filter(([step]) => step === Number(found[1]));
  if (!inStep.length) return;
  const nth = found[2] ? Math.min(Number(found[2]), inStep.length) : inStep.length;
  places[current] = inStep[Math.max(nth, 1) - 1][1];
}

function show() {
  const place = places[current], frame = frames()[place], texts = scenario().texts;
  const svg = el("picture"), drawn = narrow.matches ? scenario().narrow : scenario().wide;
  svg.setAttribute("viewBox", `-2 -2 ${drawn.width + 4} ${drawn.height + 4}`);
  svg.innerHTML = drawn.parts[place].map(part => drawn.pieces[part]).join("");
  svg.setAttribute("aria-label", texts[frame.sentence]);
  el("said").textContent = texts[frame.said];
  el("said").style.visibility = texts[frame.said] ? "" : "hidden";
  el("said").hidden = !scenario().narrated;
  el("command").replaceChildren(bold(frame.step), " " + texts[frame.text]);
  el("sentence").textContent = texts[frame.sentence];
  el("slider").max = frames().length - 1;
  el("slider").value = place;
  el("slider").setAttribute("aria-valuetext", texts[frame.sentence]);
  el("count").textContent = `${place + 1} / ${frames().length} · ${frame.t} ms`;
  mark(place);
  history.replaceState(null, "", "#" + hash());
  onShow(frame);
}

function bold(words) {
  const b = document.createElement("b");
  b.textContent = words;
  return b;
}

function mark(place) {
  const list = el("events");
  list.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const entry = list.querySelector(`[data-place="${place}"]`);
  entry.setAttribute("aria-current", "step");
  const top = entry.offsetTop - list.offsetTop;
  if (top < list.scrollTop + 40 || top > list.scrollTop + list.clientHeight - 60)
    list.scrollTop = top - list.clientHeight / 2;
}

function openScenario(chosen) {
  current = chosen;
  const list = el("events"), texts = scenario().texts;
  list.replaceChildren();
  let step = null;
  const commands = frames().some(frame => texts[frame.text] !== frame.line);
  frames().forEach((frame, place) => {
    if (commands && frame.step !== step) {
      step = frame.step;
      const item = document.createElement("li");
      const number = document.createElement("span");
      number.textContent = step;
      item.className = "cmd mono";
      item.append(number, texts[frame.text]);
      list.append(item);
    }
    const item = document.createElement("li"), button = document.createElement("button");
    button.className = "mono";
    button.dataset.place = place;
    button.textContent = frame.line || texts[frame.sentence];
    item.append(button);
    list.append(item);
  });
  showRules();
  document.querySelectorAll("#tabs button").forEach((tab, number) =>
    tab.setAttribute("aria-selected", String(number === current)));
}

// What differs between the scenarios comes first: that is why they are on one page.
function showRules() {
  const same = ([name, value]) => scenarios.every(one =>
    one.rules.some(rule => rule[0] === name && rule[1] === value));
  const rules = [...scenario().rules].sort((a, b) => same(a) - same(b));
  const items = rules.map(rule => {
    const item = document.createElement("li");
    item.className = same(rule) ? "" : "differs";
    item.append(rule[0].replaceAll("_", "-") + (rule[1] ? " " : ""), bold(rule[1]));
    return item;
  });
  const more = document.createElement("li"), button = document.createElement("button");
  more.className = "more";
  button.textContent = `+${rules.length - 5} more`;
  button.addEventListener("click", () => el("rules").classList.remove("short"));
  more.append(button);
  el("rules").replaceChildren(...items, ...(rules.length > 5 ? [more] : []));
  el("rules").classList.add("short");
}

function go(place) {
  places[current] = clamp(place);
  show();
}

function stepFrom(place, direction) {
  const all = frames(), step = all[place].step;
  if (direction > 0) {
    const isLast = place === all.length - 1 || all[place + 1].step !== step;
    const wanted = isLast && place < all.length - 1 ? all[place + 1].step : step;
    return all.findLastIndex(frame => frame.step === wanted);
  }
  const before = all.findLastIndex((frame, other) => other < place && frame.step !== step);
  return before < 0 ? 0 : before;
}

function stop() {
  clearInterval(timer);
  timer = null;
  el("play").textContent = "▶ Play";
}

function play() {
  if (timer) return stop();
  if (places[current] === frames().length - 1) go(0);
  el("play").textContent = "❚❚ Pause";
  timer = setInterval(() => {
    go(places[current] + 1);
    if (places[current] === frames().length - 1) stop();
  }, 1500);
}

const moves = {
  "first": () => go(0),
  "last": () => go(frames().length - 1),
  "back": () => go(places[current] - 1),
  "next": () => go(places[current] + 1),
  "step-back": () => go(stepFrom(places[current], -1)),
  "step-next": () => go(stepFrom(places[current], 1)),
  "play": play,
};
const keys = {
  ArrowRight: "next", ArrowLeft: "back", n: "next", p: "back", j: "next", k: "back",
  Home: "first", End: "last", PageDown: "step-next", PageUp: "step-back", " ": "play",
};

document.addEventListener("keydown", event => {
  const move = keys[event.key];
  const pressing = event.key === " " && event.target.matches("button, summary");
  const typing = event.target.matches("input:not([type=range]), select, textarea");
  if (!move || pressing || typing || !scenarios.length || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (move !== "play") stop();
  moves[move]();
});
document.querySelectorAll("[data-go]").forEach(button => button.addEventListener("click", () => {
  if (button.dataset.go !== "play") stop();
  moves[button.dataset.go]();
}));
el("slider").addEventListener("input", event => { stop(); go(Number(event.target.value)); });
el("events").addEventListener("click", event => {
  const entry = event.target.closest("[data-place]");
  if (entry) { stop(); go(Number(entry.dataset.place)); }
});
window.addEventListener("resize", () => scenarios.length && mark(places[current]));
narrow.addEventListener("change", () => scenarios.length && show());

// Replaces what the page shows; a tab each if there are several scenarios.
function load(data) {
  stop();
  scenarios = data;
  places = scenarios.map(one => one.opens);
  scenarios.length > 1 && scenarios.forEach((one, number) => {
    const tab = document.createElement("button"), sign = document.createElement("span");
    tab.setAttribute("role", "tab");
    sign.textContent = one.sign ? " " + one.sign : "";
    sign.className = one.sign === "✓" ? "good" : "bad";
    tab.append(one.name, sign);
    tab.addEventListener("click", () => { stop(); openScenario(number); show(); });
    el("tabs").append(tab);
  });
  openScenario(0);
}
