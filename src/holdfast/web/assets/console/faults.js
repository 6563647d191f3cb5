// Faults: what will probably happen, the button, and what did happen.

import {clock, fill, h, section} from "/assets/dom.js";
import {all, facts, hasToken, nameOf, partitions, post} from "/assets/state.js";

const KINDS = {process: "The process", link: "Its links", disk: "Its disk", store: "Its session",
  end: "The end of faults"};

export function faults(content, _, more) {
  if (!facts.faults.length) {
    content.append(h("p", {class: "empty"}, facts.reasons.faults));
    return () => {};
  }
  if (!hasToken()) content.append(h("p", {class: "note", role: "note"},
    "This page may only look: it lacks the token. Open the address that ",
    h("code", {}, "holdfast up --console"), " printed at its start, with all that follows the #."));
  const form = new Form(more.get("call"), (more.get("brokers") || "").split(",").map(Number));
  const done = h("ol", {class: "actions"});
  content.append(
    h("div", {class: "columns break"},
      section("What to break", form.choice, form.fields, form.expected, form.button, form.failed),
      section("What was done", h("p", {class: "soft", id: "nothing"},
        "Nothing yet. Every action appears here with what came of it."), done)));
  return kinds => {
    if (kinds.has("all") || kinds.has("broker")) form.brokersChanged();
    if (kinds.has("partition") || kinds.has("broker")) form.mayBeOld();
    if (kinds.has("all") || kinds.has("action")) drawActions(done);
  };
}

class Form {
  constructor(call, brokers) {
    this.fault = facts.faults.find(one => one.call === call) || facts.faults[0];
    this.chosen = new Set(brokers.filter(Boolean));
    this.values = {seconds: 0.2, probability: 1, partition: "", to: "", groups: ""};
    this.choice = h("div", {class: "faults", role: "radiogroup", "aria-label": "Fault"});
    this.fields = h("div", {class: "fields"});
    this.expected = h("div", {class: "expected", "aria-live": "polite"});
    this.button = h("button", {class: "danger", id: "do", onclick: () => this.do()});
    this.failed = h("p", {class: "warned", role: "alert"});
    this.shownBrokers = "";
    this.asked = 0;
    this.drawChoice();
    this.drawFields();
  }

  drawChoice() {
    const group = kind => [h("h3", {}, KINDS[kind]), h("div", {class: "options"},
      facts.faults.filter(one => one.kind === kind).map(one => {
        const input = h("input", {type: "radio", name: "fault", value: one.call,
          checked: one === this.fault, onchange: () => {
            this.fault = one;
            this.drawFields();
          }});
        return h("label", {title: one.meaning}, input, h("span", {}, one.title));
      }))];
    fill(this.choice, ...Object.keys(KINDS).flatMap(group));
  }

  brokersChanged() {
    const now = JSON.stringify(all("broker/").map(one => [one.id, one.state, one.controller]));
    if (now === this.shownBrokers) return;
    this.shownBrokers = now;
    this.drawFields();
  }

  can(broker) {
    const down = !["running", "paused", "silent", "starting", "stopping"].includes(broker.state);
    if (this.fault.needs === "any") return true;
    if (this.fault.needs === "paused") return broker.state === "paused";
    return !down && (broker.state !== "paused" || ["kill", "power-loss"].includes(this.fault.call));
  }

  drawFields() {
    const focused = document.activeElement?.name || "";
    const parts = [h("p", {class: "soft"}, this.fault.meaning)];
    const has = name => this.fault.fields.includes(name);
    if (has("brokers")) parts.push(this.brokerBoxes());
    if (has("groups")) parts.push(this.text("groups", "Groups", "1,2 3",
      "separate groups by a space; brokers not named are one more group"));
    if (has("to")) parts.push(this.text("to", "To", "all other brokers",
      "broker ids with commas, or clients"));
    if (has("seconds")) parts.push(this.number("seconds", "Seconds", 0, 3600, 0.05));
    if (has("probability")) parts.push(this.number("probability", "Probability", 0, 1, 0.05));
    if (has("partition")) parts.push(this.partitionBox());
    fill(this.fields, ...parts);
    if (focused && focused !== "fault")
      this.fields.querySelector(`[name="${focused}"]`)?.focus();
    this.changed();
  }

  brokerBoxes() {
    return h("fieldset", {class: "options"}, h("legend", {}, "Brokers"),
      all("broker/").map(broker => {
        const able = this.can(broker);
        const input = h("input", {type: "checkbox", name: `broker-${broker.id}`, disabled: !able,
          checked: able && this.chosen.has(broker.id), onchange: event => {
            if (event.target.checked) this.chosen.add(broker.id);
            else this.chosen.delete(broker.id);
            this.changed();
          }});
        return h("label", {}, input, h("span", {}, `b${broker.id}${broker.controller ? " ★" : ""}`,
          broker.state === "running" ? null : h("small", {}, ` ${broker.state}`)));
      }));
  }

  text(name, title, placeholder, hint) {
    return h("label", {class: "field"}, h("span", {}, title), h("input", {type: "text", name,
      placeholder, value: this.values[name], oninput: event => this.set(name, event.target.value)}),
    h("small", {class: "soft"}, hint));
  }

  number(name, title, min, max, step) {
    return h("label", {class: "field"}, h("span", {}, title), h("input", {type: "number", name, min,
      max, step, value: this.values[name],
      oninput: event => this.set(name, Number(event.target.value))}));
  }

  partitionBox() {
    return h("label", {class: "field"}, h("span", {}, "Only of"), h("select", {name: "partition",
      onchange: event => this.set("partition", event.target.value)},
    h("option", {value: ""}, "every partition"), partitions().slice(0, 500).map(row =>
      h("option", {selected: this.values.partition === nameOf(row)}, nameOf(row)))));
  }

  set(name, value) {
    this.values[name] = value;
    this.changed();
  }

  request() {
    const fields = {}, has = name => this.fault.fields.includes(name);
    if (has("brokers")) fields.brokers = all("broker/")
      .filter(one => this.chosen.has(one.id) && this.can(one)).map(one => one.id);
    if (has("groups")) fields.groups = this.values.groups.trim().split(/\s+/).filter(Boolean)
      .map(group => group.split(",").map(Number));
    if (has("to") && this.values.to.trim()) fields.to = this.values.to.split(",")
      .map(one => one.trim() === "clients" ? "clients" : Number(one));
    if (has("seconds")) fields.seconds = this.values.seconds;
    if (has("probability")) fields.probability = this.values.probability;
    if (has("partition") && this.values.partition) fields.partition = this.values.partition;
    return {call: this.fault.call, fields};
  }

  isComplete() {
    const {fields} = this.request();
    if (fields.groups) return fields.groups.length > 0 && fields.groups.flat().every(Number.isInteger);
    return this.fault.call === "heal" || fields.brokers.length > 0;
  }

  changed() {
    const {fields} = this.request();
    const whom = (fields.brokers || []).map(one => `b${one}`).join(", ");
    this.button.textContent = `${this.fault.title}${whom ? ` ${whom}` : ""}`;
    this.button.disabled = !this.isComplete() || !hasToken() || this.isBusy === true;
    this.failed.textContent = "";
    this.forecast();
  }

  // The state has changed: ask again, at most every two seconds.
  mayBeOld() {
    if (performance.now() - this.asked > 2000) this.forecast();
  }

  async forecast() {
    this.asked = performance.now();
    if (!hasToken() || !this.isComplete()) {
      fill(this.expected, h("p", {class: "soft"}, "Choose one or more brokers."));
      return;
    }
    const request = this.request(), text = JSON.stringify(request);
    let found;
    try {
      found = await post("/forecast", request);
    } catch (error) {
      fill(this.expected, h("p", {class: "warned"}, error.message));
      return;
    }
    if (text !== JSON.stringify(this.request())) return;
    const shown = JSON.stringify(found);
    if (this.expected.dataset.shown === shown && this.expected.querySelector("ul")) return;
    this.expected.dataset.shown = shown;
    fill(this.expected, h("div", {class: `answer ${found.risk}`},
      h("h3", {}, "What will probably happen"),
      h("ul", {}, found.lines.map(line => h("li", {}, line)))));
  }

  async do() {
    this.isBusy = true;
    this.button.disabled = true;
    const request = this.request();
    this.chosen.clear();
    let problem = "";
    try {
      await post("/faults", request);
    } catch (error) {
      problem = error.message;
    }
    this.isBusy = false;
    this.drawFields();
    this.failed.textContent = problem;
  }
}

function drawActions(list) {
  const rows = all("action/").sort((a, b) => b.number - a.number);
  document.getElementById("nothing").hidden = rows.length > 0;
  const kept = new Map([...list.children].map(one => [one.dataset.action, one]));
  fill(list, rows.map(row => {
    const text = JSON.stringify(row), old = kept.get(String(row.number));
    return old?.dataset.row === text ? old : actionItem(row, text);
  }));
}

const STATES = {running: ["soft", "…"], done: ["good", "done"], failed: ["bad", "failed"]};

function actionItem(row, text) {
  const [look, words] = STATES[row.state];
  return h("li", {class: "card", "data-action": row.number, "data-row": text},
    h("h3", {}, h("time", {}, clock(row.at)), h("code", {}, row.command),
      h("span", {class: `pill ${look}`}, words)),
    row.error ? h("p", {class: "warned"}, row.error) : null,
    h("div", {class: "pair"},
      h("div", {}, h("h4", {}, "Expected"), h("ul", {}, row.expected.map(one => h("li", {}, one)))),
      h("div", {class: "happened"}, h("h4", {}, "Happened"), row.happened.length
        ? h("ul", {}, row.happened.map(one => h("li", {}, one)))
        : h("p", {class: "soft"}, row.state === "running" ? "It is being done." : "Nothing yet."))));
}

