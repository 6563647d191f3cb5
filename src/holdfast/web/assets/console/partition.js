// One partition: its lanes as they move, the numbers, "why?", and the replay of its last minutes.

import {bytes, count, fill, h, health, names, section, state, unknown} from "/assets/dom.js";
import {facts, get, hasToken, lanes, places, post, read} from "/assets/state.js";

const narrow = matchMedia("(max-width:700px)");
const SVG = "http://www.w3.org/2000/svg";

export function partition(content, name) {
  const row = () => get(`partition/${name}`);
  const badge = h("span", {}), summary = h("p", {class: "soft"});
  const said = h("p", {class: "said", "aria-live": "polite"});
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("class", "hf");
  picture.setAttribute("role", "img");
  const live = h("div", {class: "picture"}, picture);
  const replay = h("div", {class: "replay"});
  const bar = h("div", {class: "bar"});
  const table = h("div", {class: "scroll"});
  const questions = h("div", {class: "bar"});
  const answer = h("div", {class: "answers", "aria-live": "polite"});
  const why = query => ask(answer, new URLSearchParams({partition: name, ...query}));
  content.append(
    h("p", {class: "back"}, h("a", {href: "#partitions"}, "‹ All partitions")),
    h("div", {class: "heading"}, h("h2", {}, name), badge), summary, said, bar, live, replay,
    section("Why?", questions, answer), section("Replicas", table, greyed()));
  timeline(bar, live, said, replay, name);
  const offset = offsetForm(why);
  let asked = "";

  const update = kinds => {
    const now = row();
    if (!now) {
      summary.textContent = get("cluster") ? "There is no such partition." : "";
      return;
    }
    fill(badge, health(now[places.health]));
    summary.textContent = describe(now);
    const buttons = questionsOf(now);
    if (JSON.stringify(buttons) !== asked) {
      asked = JSON.stringify(buttons);
      fill(questions, buttons.map(([words, query]) =>
        h("button", {"data-why": query.why, onclick: () => why(query)}, words)), offset,
      adviceButton(answer, name), breakLink(now));
    }
    if (lanes.now?.partition === name && (kinds.has("lanes") || kinds.has("all"))) {
      draw(picture, now);
      if (said.textContent !== lanes.now.said) said.textContent = lanes.now.said;
      fill(table, replicas(lanes.now.table));
    }
  };
  const redraw = () => update(new Set(["lanes"]));
  narrow.addEventListener("change", redraw);
  update.end = () => narrow.removeEventListener("change", redraw);
  return update;
}

// Against other clusters: what their APIs do not tell.
function greyed() {
  if (get("cluster")?.owned !== false) return null;
  return h("details", {class: "soft"}, h("summary", {}, "What is greyed, and why"),
    h("ul", {}, Object.values(facts.reasons).map(reason => h("li", {}, reason))));
}

function draw(picture, row) {
  const drawn = narrow.matches ? lanes.now.narrow : lanes.now.wide;
  picture.setAttribute("viewBox", `-2 -2 ${drawn.width + 4} ${drawn.height + 4}`);
  picture.innerHTML = drawn.parts.join("");
  picture.setAttribute("aria-label", `The logs of ${row[places.replicas].length} replicas. `
    + "The table below has their numbers.");
}

function describe(row) {
  const leader = row[places.leader] < 0 ? "no leader" : `b${row[places.leader]} leads`;
  const eligible = row[places.eligible]?.length
    ? `, eligible leader replicas: ${names(row[places.eligible])}` : "";
  return `${leader} in epoch ${row[places.epoch]}, in sync: ${names(row[places.isr]) || "nobody"}`
    + `${eligible}, ${count(row[places.rate])} records/s`;
}

function questionsOf(row) {
  const found = [];
  if (row[places.leader] < 0) found.push(["Why is it offline?", {why: "offline"}]);
  for (const broker of row[places.replicas])
    if (!row[places.isr].includes(broker))
      found.push([`Why is b${broker} not in sync?`, {why: "out", broker}]);
  if (row[places.leader] >= 0)
    found.push([`What if b${row[places.leader]} dies now?`,
      {why: "dies", broker: row[places.leader]}]);
  return found;
}

function breakLink(row) {
  if (!facts.faults.length || row[places.leader] < 0) return null;
  return h("a", {class: "button", href: `#faults?call=kill&brokers=${row[places.leader]}`},
    "Break the leader");
}

function offsetForm(why) {
  const input = h("input", {type: "text", inputmode: "numeric", pattern: "\\d+", size: 8,
    placeholder: "offset", "aria-label": "Offset", required: true});
  const traced = get("cluster")?.traced ?? true;
  return h("form", {class: "inlineform", title: traced ? null : facts.reasons.trace,
    onsubmit: event => {
      event.preventDefault();
      why({why: "lost", offset: input.value.replaceAll(",", "")});
    }}, h("label", {}, "What became of ", input), h("button", {disabled: !traced}, "Ask"));
}

function adviceButton(answer, name) {
  const reason = hasToken() ? null : "This needs the token that was printed at the start.";
  return h("button", {disabled: !hasToken(), title: reason, onclick: async () => {
    fill(answer, h("p", {class: "soft"}, "The advisor searches for some seconds …"));
    let found;
    try {
      found = await post("/advice", {partition: name});
    } catch (error) {
      fill(answer, h("p", {class: "answer availability"}, error.message));
      return;
    }
    const bad = found.lines.some(line => line.loss);
    fill(answer, h("div", {class: `answer ${bad ? "loss" : "none"}`},
      h("h3", {}, "What the topic's settings can lose with one failure of each kind"),
      found.lines.length ? h("ul", {}, found.lines.map(line => h("li", {},
        `${line.faults}: ${line.meaning}`, line.remedies.length
          ? h("span", {class: "soft"}, ` Prevented by ${line.remedies.join(" or ")}.`) : null)))
        : h("p", {}, "Nothing that was tried loses an acknowledged record.")));
  }}, "What can the settings lose?");
}

async function ask(answer, query) {
  let found;
  try {
    found = await read(`/why?${query}`);
  } catch (error) {
    fill(answer, h("p", {class: "answer availability"}, error.message));
    return;
  }
  if (found.kill) {
    fill(answer, h("div", {class: "pair"}, ...[["If it is killed", found.kill],
      ["If it loses its power", found["power-loss"]]].map(([title, one]) =>
      h("div", {class: `answer ${one.risk}`}, h("h3", {}, title),
        h("ul", {}, one.lines.map(line => h("li", {}, line)))))));
    return;
  }
  fill(answer, h("div", {class: "answer"}, h("h3", {}, found.question), h("p", {}, found.reason),
    found.remedies.length ? h("p", {}, h("b", {}, "What helps: "), found.remedies.join("; ")) : null,
    found.events.length ? h("details", {}, h("summary", {}, "What led there"),
      h("ol", {}, found.events.map(one => h("li", {}, one.text)))) : null,
    found.text ? h("details", {}, h("summary", {}, "The whole account"),
      h("pre", {tabindex: "0"}, found.text)) : null));
}

// Stop and scrub back: the stepper, with the last minutes of this partition's trace.
function timeline(bar, live, said, replay, name) {
  const traced = get("cluster")?.traced ?? false;
  const minutes = h("select", {"aria-label": "How far back"}, [["0.25", "15 seconds"],
    ["1", "minute"], ["2", "2 minutes"], ["5", "5 minutes"]].map(([value, words]) =>
    h("option", {value, selected: value === "1"}, words)));
  const button = h("button", {id: "stop", "aria-pressed": "false", disabled: !traced,
    title: traced ? null : facts.reasons.trace}, "❚❚ Stop and step back");
  const scenario = h("a", {class: "button", id: "save", download: true,
    href: `/scenario?partition=${encodeURIComponent(name)}`}, "Save as a scenario");
  const toggle = stopped => {
    live.hidden = said.hidden = stopped;
    button.setAttribute("aria-pressed", String(stopped));
    button.textContent = stopped ? "▶ Live again" : "❚❚ Stop and step back";
    const loading = h("p", {class: "soft"}, "The replay is loading …");
    fill(replay, stopped ? [loading, h("iframe", {title: `Replay of ${name}`,
      sandbox: "allow-scripts", onload: () => loading.remove(),
      src: `/stepper?partition=${encodeURIComponent(name)}&minutes=${minutes.value}`})] : null);
  };
  button.addEventListener("click", () => toggle(!live.hidden));
  minutes.addEventListener("change", () => { if (live.hidden) toggle(true); });
  fill(bar, button, h("label", {class: "soft"}, "the last ", minutes),
    facts.faults.length ? scenario : null);
}

function replicas(rows) {
  const traced = get("cluster")?.owned;
  const no = facts.reasons;
  const cell = (value, reason) => h("td", {}, value == null
    ? (traced ? "–" : unknown(reason)) : count(value));
  return h("table", {}, h("thead", {}, h("tr", {}, ["replica", "broker", "role", "ISR",
    "log end", "high watermark", "flushed below", "leader epoch", "lag", "size"]
    .map(title => h("th", {scope: "col"}, title)))),
  h("tbody", {}, rows.map(one => h("tr", {}, h("th", {scope: "row"}, `b${one.broker}`),
    h("td", {}, state(one.state)), h("td", {}, one.role,
      one.copy_problem ? h("span", {class: "warned"}, ` ⚠ ${one.copy_problem}`) : null),
    h("td", {}, one.in_isr ? "in sync" : one.eligible ? "eligible" : "out"),
    h("td", {}, one.leo == null ? "–" : one.at_least
      ? h("span", {class: "unknown", title: no.leo, tabindex: "0"}, `≥ ${count(one.leo)}`)
      : count(one.leo)),
    cell(one.hw, no.hw), cell(one.flushed, no.flushed), cell(one.epoch, no.epoch),
    h("td", {class: one.lag ? "warned" : ""}, count(one.lag)), h("td", {}, bytes(one.bytes))))));
}
