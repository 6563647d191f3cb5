"use strict";
// What surrounds the stepper: the choice of a case, the buttons, the verdict.

const plain = text => text.replaceAll("_", "-");
let controlsOf = null;  // What the buttons on the page belong to.

function fillScenarios() {
  const free = node("option", { value: known.free, textContent: "Free play" });
  const groups = known.sections.map(({ name, scenarios: list }) => {
    const group = node("optgroup", { label: name });
    group.append(...list.map(one => node("option", { value: one.id, textContent: one.id })));
    return group;
  });
  el("scenario").append(free, ...groups);
}

const scenarioOf = id =>
  known.sections.flatMap(one => one.scenarios).find(one => one.id === id) || known.freePlay;

function fillVariants() {
  const { variants } = scenarioOf(el("scenario").value);
  el("variant").replaceChildren(...variants.map(name =>
    node("option", { value: name, textContent: name })));
  el("variant").parentElement.hidden = variants.length < 2;
}

function renderCase() {
  const one = shown.case, chosen = scenarioOf(one.scenario);
  el("scenario").value = one.scenario;
  fillVariants();
  el("variant").value = shown.variant;
  el("about").textContent = chosen.title;
  el("restart").hidden = !one.commands.length && !Object.keys(one.overrides).length;
  renderVerdict();
  renderChanges();
  controlsOf = null;
}

// The verdict, the explanation.

function renderVerdict() {
  const judged = shown.verdict;
  el("verdict-title").textContent = isOwn() ? "VERDICT, IF IT ENDED HERE" : "VERDICT";
  el("verdict").textContent = judged ? judged.lines.join("\n") : "The scenario did not reach its end.";
  el("verdict").className = !judged ? "warn"
    : judged.verdict === "invalid" ? "bad" : judged.verdict === "valid" ? "good" : "warn";
  el("question").hidden = !shown.records.length;
  el("record").replaceChildren(...shown.records.map(label =>
    node("option", { value: label, textContent: label })));
  if (judged?.lost.length) el("record").value = judged.lost[0];
  el("shell-words").textContent = isOwn() ? "Save it as a file, then in a terminal:" : "In a terminal:";
  el("shell").textContent = shellCommand();
}

function shellCommand() {
  const { scenario, overrides } = shown.case;
  if (isOwn()) return `holdfast lab step ${scenario}-played.scenario`;
  const words = ["holdfast lab step", scenario, "--variant", shown.variant];
  Object.entries(overrides).forEach(([key, value]) => {
    if (key !== "without") return words.push("--set", `${plain(key)}=${value}`);
    value.slice(1, -1).split(",").filter(Boolean).forEach(one => words.push("--without", one));
  });
  return words.join(" ");
}

el("question").addEventListener("submit", async event => {
  event.preventDefault();
  const result = await ask({ ask: "explain", case: shown.case, about: el("record").value });
  el("explanation").hidden = false;
  el("explanation").textContent = result.error || result.text;
});

// Guards and settings.

function renderChanges() {
  const off = shown.off, set = shown.case.overrides;
  const words = off.length ? `${off.length} guard${off.length > 1 ? "s" : ""} off` : "all guards on";
  el("changed").textContent = `(${words})`;
  el("guards").replaceChildren(...known.guards.map(guard => {
    const box = node("input", { type: "checkbox", checked: !off.includes(guard.name) });
    box.addEventListener("change", () => {
      const others = off.filter(one => one !== guard.name);
      const now = box.checked ? others : [...others, guard.name];
      change({ ...set, without: `(${now.join(",")})` });
    });
    return node("label", {}, box, node("span", {},
      node("b", { className: "mono", textContent: guard.name }), ` ${guard.explanation}`));
  }));
  el("settings").replaceChildren(...known.settings.map(setting => settingField(setting, set)));
}

function settingField({ name, values, meaning }, set) {
  const words = values.includes(" | ") ? values.split(" | ") : null;
  const given = set[name] || "";
  const field = words
    ? node("select", {}, ...["", ...words].map(one =>
      node("option", { value: one, textContent: one || "as the scenario says", selected: one === given })))
    : node("input", { value: given, inputMode: "numeric", placeholder: values });
  field.addEventListener("change", () => {
    const { [name]: _, ...others } = set;
    change(field.value.trim() ? { ...others, [name]: field.value.trim() } : others);
  });
  return node("label", {}, node("span", {},
    node("b", { className: "mono", textContent: plain(name) }), ` ${meaning}`), field);
}

// The buttons.

function renderControls(controls, step) {
  if (controlsOf === controls) return;
  controlsOf = controls;
  const focused = document.activeElement?.dataset?.place;
  const last = Math.max(...Object.keys(shown.controls).map(Number));
  el("where").textContent = step < last
    ? `You are at step ${step} of ${last}: what you do here replaces the later steps.`
    : "What happens next?";
  el("controls").replaceChildren(
    messageList(controls.messages),
    group("Cluster", "", controls.cluster, "cluster"),
    ...controls.brokers.map(one => group(one.name, one.state, one.buttons, one.alive ? "" : "down")),
    group("Controller", controls.controller.state, controls.controller.buttons, ""),
  );
  refocus(focused);
}

function button(words, command, hint, place, label) {
  const made = node("button", { type: "button", textContent: words, title: hint });
  made.dataset.command = command;
  made.dataset.place = place;
  if (label) made.setAttribute("aria-label", label);
  return made;
}

function messageList(messages) {
  const rows = messages.map(one => node("li", {},
    node("span", { className: "what" }, node("b", { textContent: one.link }), ` ${one.what}`),
    node("span", { className: "acts" },
      button("Deliver", one.deliver, "It arrives.", "messages/Deliver", `Deliver ${one.link}: ${one.what}`),
      button("Drop", one.drop, "It is lost.", "messages/Drop", `Drop ${one.link}: ${one.what}`),
      button("×2", one.duplicate, "It is on its way twice.", "messages/×2", `Duplicate ${one.link}: ${one.what}`))));
  const list = rows.length ? node("ul", { className: "messages" }, ...rows)
    : node("p", { className: "none", textContent: "No message is on its way." });
  const title = rows.length ? `On their way (${rows.length})` : "On their way";
  return node("section", { className: "group" }, node("h2", { textContent: title }), list);
}

function group(name, state, buttons, kind) {
  const title = node("h2", { textContent: name });
  if (state) title.append(node("span", { className: "state", textContent: state }));
  const made = buttons.map(one => button(one.label, one.command, one.hint,
    `${name}/${one.label}`, kind === "cluster" ? "" : `${one.label}: ${name}`));
  const row = node("div", { className: "buttons" }, ...made.filter((_, place) => !buttons[place].rare));
  const rare = made.filter((_, place) => buttons[place].rare);
  if (rare.length) row.append(unfolding(name, rare));
  return node("section", { className: `group ${kind}` }, title, row);
}

// Unfolded stays unfolded when the buttons are made again.
const unfolded = new Set();

function unfolding(name, buttons) {
  const more = node("details", { className: "rare", open: unfolded.has(name) },
    node("summary", { textContent: "More" }), node("div", { className: "buttons" }, ...buttons));
  more.querySelector("summary").setAttribute("aria-label", `More for ${name}`);
  more.addEventListener("toggle", () => more.open ? unfolded.add(name) : unfolded.delete(name));
  return more;
}

// A keyboard stays where it was although the buttons are new.
function refocus(place) {
  if (!place) return;
  const all = [...el("controls").querySelectorAll("button")];
  const family = place.split("/")[0];
  const next = all.find(one => one.dataset.place === place)
    || all.find(one => one.dataset.place.startsWith(`${family}/`)) || all[0];
  next?.focus({ preventScroll: true });
}

el("controls").addEventListener("click", event => {
  const pressed = event.target.closest("[data-command]");
  if (pressed) act(pressed.dataset.command);
});
el("typed").addEventListener("submit", event => {
  event.preventDefault();
  const line = el("line").value.trim();
  if (line) act(line.replace(/^(produce [^:]*): */, "$1\n  "));
});

// The choice of a case.

const chosenCase = (scenario, variant) => ({
  scenario, variant, kept: scenario === known.free ? 0 : null, commands: [], overrides: {},
});
el("scenario").addEventListener("change", () => {
  fillVariants();
  start(chosenCase(el("scenario").value, el("variant").value), "last");
});
el("variant").addEventListener("change", () => {
  const scenario = el("scenario").value, variant = el("variant").value;
  // A variant of the shown scenario keeps the own commands, and the moment.
  if (scenario !== shown.case.scenario) return start(chosenCase(scenario, variant), "last");
  start({ ...shown.case, variant }, stepNow());
});
el("restart").addEventListener("click", () =>
  start(chosenCase(shown.case.scenario, shown.case.variant), "last"));
el("copy").addEventListener("click", async () => {
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  el("status").textContent = copied ? "The link is copied." : "Copy the link from the address bar.";
});
el("save").addEventListener("click", async () => {
  const { name, text } = await ask({ ask: "file", case: shown.case });
  const link = node("a", { download: name, href: URL.createObjectURL(new Blob([text])) });
  link.click();
  URL.revokeObjectURL(link.href);
});

fillScenarios();
el("usages").append(...known.commands.map(value => node("option", { value })));
start(caseOfAddress(), "address");
