"use strict";
// The case is in the address: `scenario`, `variant`, `after` (the last step of the scenario that is
// kept), `do` for each own command, `set` for each setting, `off` for the guards, and `step`.

const known = JSON.parse(el("known").textContent);
const worker = new Worker("worker.js", { type: "module" });
const waiting = new Map();
let shown = null;  // The worker's last answer about the whole case.
let asked = 0, newest = 0;

worker.addEventListener("message", ({ data }) => {
  const { resolve, reject } = waiting.get(data.id);
  waiting.delete(data.id);
  if (data.failed) reject(new Error(data.failed));
  else resolve(JSON.parse(data.answer));
});
worker.addEventListener("error", () => fail("The lab could not be loaded. "
  + "The page needs a web server and a browser with WebAssembly and module workers."));

function ask(question) {
  return new Promise((resolve, reject) => {
    waiting.set(++asked, { resolve, reject });
    worker.postMessage({ id: asked, question });
  });
}

function node(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function fail(words) {
  el("error").textContent = words;
  el("error").hidden = !words;
}

// The address.

function caseOfAddress() {
  const wish = new URLSearchParams(location.hash.slice(1));
  const scenario = wish.get("scenario") || known.first;
  const overrides = Object.fromEntries(wish.getAll("set").map(one => {
    const equals = one.indexOf("=");
    return [one.slice(0, equals), one.slice(equals + 1)];
  }));
  if (wish.has("off")) overrides.without = `(${wish.get("off")})`;
  const commands = wish.getAll("do"), isFree = scenario === known.free;
  const kept = wish.has("after") ? Number(wish.get("after")) : commands.length || isFree ? 0 : null;
  return { scenario, variant: wish.get("variant") || "", kept, commands, overrides };
}

function addressOf(one) {
  const link = new URLSearchParams({ scenario: one.scenario });
  if (one.variant) link.set("variant", one.variant);
  if (one.kept) link.set("after", one.kept);
  one.commands.forEach(command => link.append("do", command));
  Object.entries(one.overrides).forEach(([key, value]) =>
    key === "without" ? link.set("off", value.slice(1, -1)) : link.append("set", `${key}=${value}`));
  return link;
}

// Playing.

// The answer about the first case comes with the page; Python is loaded meanwhile.
const opening = fetch("opening.json").then(response => response.json());
const isOpening = ({ scenario, variant, kept, commands, overrides }, changes) =>
  scenario === known.first && !variant && kept === null && !commands.length
  && !Object.keys(overrides).length && !changes.command;

let isReady = false;
ask({ ask: "ready" }).then(() => { isReady = true; tell(""); }, error => fail(String(error)));

function tell(words) {
  el("status").textContent = words || (isReady ? "" : "Python is loading…");
}

// Shows a case; `at`: "address", "last" or the step to show.
async function open(one, at, changes = {}) {
  const mine = ++newest;
  tell(isReady ? "Playing…" : "");
  let result;
  try {
    result = await (isOpening(one, changes) ? opening : ask({ ask: "play", case: one, ...changes }));
  } catch (error) {
    return fail(`A bug in Holdfast: ${error.message}`);
  }
  if (mine !== newest) return;
  tell("");
  if (!result.data) return refuse(result, Boolean(changes.command));
  if (at !== "address") push(result, at);
  render(result, at);
}

// A command that prints, or cannot be carried out, leaves the case as it is.
function refuse(result, isCommand) {
  el("output").hidden = !isCommand;
  el("output").textContent = result.error || result.output.join("\n") || "It prints nothing.";
  el("output").classList.toggle("bad", Boolean(result.error));
  if (!isCommand) fail(result.error);
}

function push(result, at) {
  const link = addressOf(result.case);
  if (at !== "last") link.set("step", at);
  history.pushState(null, "", `#${link}`);
}

function render(result, at) {
  shown = result;
  fail(result.error && `Under these rules the scenario stops here: ${result.error}`);
  document.querySelector("main").hidden = false;
  el("output").hidden = el("explanation").hidden = true;
  load([result.data]);
  places[0] = result.case.kept === null ? result.data.opens : result.last;
  if (at !== "last") followHash();
  if (at === "end") places[0] = result.data.frames.length - 1;
  renderCase();
  show();
}

const isOwn = () => shown.case.kept !== null;
const stepNow = () => frames()[places[current]].step;

// What somebody presses while an answer is on its way belongs to the case that they see; it waits,
// and nothing happens if another case was chosen meanwhile.
let latest = Promise.resolve();

function start(one, at, changes) {
  latest = open(one, at, changes);
  return latest;
}

async function whenPlayed() {
  const seen = shown;
  await latest;
  const { scenario, variant } = seen.case;
  return scenario === shown.case.scenario && variant === shown.case.variant;
}

async function act(command) {
  stop();
  if (!await whenPlayed()) return;
  await start(shown.case, "last", { command, step: stepNow() });
  if (narrow.matches) el("command").scrollIntoView();
}

async function change(overrides) {
  if (await whenPlayed()) start({ ...shown.case, overrides }, stepNow());
}

onShow = frame => renderControls(shown.controls[frame.step], frame.step);
window.addEventListener("popstate", () => { stop(); start(caseOfAddress(), "address"); });
