// The whole cluster on one page: partitions by health, traffic, brokers, topics, what happened.

import {bytes, clock, count, fill, h, health, LOOKS, ORDER, plural, section, state, unknown}
  from "/assets/dom.js";
import {all, facts, get, partitions, places, read} from "/assets/state.js";

export function overview(content) {
  const top = h("div", {class: "tiles"});
  const brokers = h("ul", {class: "cards"});
  const answer = h("div", {"aria-live": "polite"});
  const topics = h("div", {class: "scroll"});
  const events = h("ol", {class: "events", tabindex: "0", "aria-label": "Events, newest first"});
  const happened = section("What happened", events);
  const lower = h("div", {class: "columns"},
    h("div", {}, section("Brokers", brokers, answer), section("Topics", topics)), happened);
  content.append(top, lower);

  const update = kinds => {
    const changed = kind => kinds.has("all") || kinds.has(kind);
    if (changed("partition") || changed("traffic") || changed("cluster")) fill(top, tiles());
    if (changed("broker")) drawBrokers(brokers, answer);
    if (changed("topic")) fill(topics, topicTable());
    if (changed("events")) drawEvents(events);
    happened.hidden = !get("cluster")?.traced;
    lower.classList.toggle("one", happened.hidden);
  };
  return update;
}

function tiles() {
  const rows = partitions(), counted = Object.fromEntries(ORDER.map(name => [name, 0]));
  rows.forEach(row => counted[row[places.health]]++);
  const worst = ORDER.find(name => counted[name]) || "healthy";
  const controller = get("cluster")?.controller ?? -1;
  const holdfast = isHoldfast();
  return [
    h("div", {class: `tile ${rows.length ? LOOKS[worst][1] : ""}`}, h("h2", {}, "Partitions"),
      h("p", {class: "figure"}, rows.length ? headline(counted, worst, rows.length) : "none yet"),
      bar(counted, rows.length),
      h("ul", {class: "inline"}, ORDER.filter(name => counted[name]).map(name =>
        h("li", {}, h("a", {href: `#partitions?health=${name}`},
          `${LOOKS[name][0]} ${count(counted[name])} ${LOOKS[name][2]}`))))),
    traffic(),
    h("div", {class: "tile"}, h("h2", {}, "Controller"),
      h("p", {class: "figure"}, !holdfast ? unknown(NO_CONTROLLER)
        : controller < 0 ? "none" : `b${controller}`),
      h("p", {class: "soft"}, holdfast ? "decides about leaders and ISRs" : NO_CONTROLLER)),
  ];
}

const NO_CONTROLLER = "Kafka's Metadata names a random broker, not the controller.";
const isHoldfast = () => get("cluster")?.kind === "Holdfast";

function headline(counted, worst, total) {
  if (worst === "healthy") return `all ${count(total)} healthy`;
  return `${count(counted[worst])} of ${count(total)} ${LOOKS[worst][2]}`;
}

function bar(counted, total) {
  if (!total) return null;
  const parts = ORDER.filter(name => counted[name]).map(name => {
    const part = h("i", {class: LOOKS[name][1]});
    part.style.flexGrow = counted[name];
    return part;
  });
  return h("div", {class: "healthbar", role: "img", "aria-label":
    ORDER.map(name => `${counted[name]} ${LOOKS[name][2]}`).join(", ")}, parts);
}

const SVG = "http://www.w3.org/2000/svg";

function traffic() {
  const samples = get("traffic") || [];
  const now = samples.length ? samples[samples.length - 1][1] : 0;
  const most = Math.max(10, ...samples.map(one => one[1]));
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 180 40");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Traffic: now ${count(now)}, at most ${count(most)} per second`);
  const line = document.createElementNS(SVG, "path");
  const start = 180 - samples.length;
  const points = samples.map(([, rate], place) =>
    `${start + place} ${(38 - rate / most * 36).toFixed(1)}`);
  if (points.length) {
    line.setAttribute("d", `M${start} 39L${points.join("L")}L179 39Z`);
    svg.append(line);
  }
  return h("div", {class: "tile"}, h("h2", {}, "Traffic"),
    h("p", {class: "figure"}, `${count(now)} `, h("small", {}, "records/s")), svg);
}

// Cards stay the same elements, so that a click or the focus is not lost to an update.
function drawBrokers(list, answer) {
  const rows = all("broker/");
  while (list.children.length > rows.length) list.lastElementChild.remove();
  rows.forEach((row, place) => {
    const text = JSON.stringify(row);
    const old = list.children[place];
    if (old?.dataset.row === text) return;
    const had = old?.contains(document.activeElement) ? document.activeElement.dataset.what : "";
    const card = brokerCard(row, answer);
    card.dataset.row = text;
    if (old) old.replaceWith(card); else list.append(card);
    if (had) card.querySelector(`[data-what="${had}"]`)?.focus();
  });
}

function brokerCard(row, answer) {
  const canBreak = facts.faults.length > 0;
  const up = row.state === "running";
  return h("li", {class: `card ${up ? "" : "down"}`, "data-broker": row.id},
    h("h3", {}, `b${row.id}`, row.controller && isHoldfast()
      ? h("span", {class: "pill info"}, "★ controller") : null, state(row.state)),
    h("dl", {},
      h("div", {}, h("dt", {}, "leads"), h("dd", {}, count(row.leads))),
      h("div", {}, h("dt", {}, "replicas"), h("dd", {}, count(row.replicas))),
      h("div", {class: row.out ? "warned" : ""},
        h("dt", {}, "out of ISR"), h("dd", {}, count(row.out))),
      h("div", {}, h("dt", {}, "on disk"), h("dd", {}, bytes(row.bytes)))),
    row.faults.length ? h("p", {class: "warned"}, `⚠ ${row.faults.join(", ")}`) : null,
    h("p", {class: "actions"},
      canBreak ? h("a", {class: "button", "data-what": "break",
        href: `#faults?call=${up ? "kill" : "restart"}&brokers=${row.id}`},
      up ? "Break it" : "Restart") : null,
      up ? h("button", {"data-what": "dies", onclick: () => dies(row.id, answer)},
        "What if it dies?") : null));
}

async function dies(broker, answer) {
  const found = await read(`/why?why=dies&broker=${broker}`);
  const part = (title, one) => h("div", {class: `answer ${one.risk}`},
    h("h3", {}, title), h("ul", {}, one.lines.map(line => h("li", {}, line))));
  fill(answer, h("div", {class: "pair"},
    part(`If b${broker} is killed now`, found.kill),
    part(`If b${broker} loses its power now`, found["power-loss"])));
  answer.scrollIntoView({block: "nearest"});
}

function topicTable() {
  const inner = row => row.name.startsWith("__");
  const rows = all("topic/").sort((a, b) => ORDER.indexOf(a.health) - ORDER.indexOf(b.health)
    || inner(a) - inner(b) || a.name.localeCompare(b.name));
  if (!rows.length) return h("p", {class: "soft"}, "There is no topic yet.");
  return h("table", {}, h("thead", {}, h("tr", {},
    ["topic", "health", "partitions", "replicas", "min ISR", "records", "records/s"]
      .map(title => h("th", {scope: "col"}, title)))),
  h("tbody", {}, rows.slice(0, 200).map(row => h("tr", {},
    h("th", {scope: "row"}, h("a", {href: `#partitions?find=${encodeURIComponent(row.name)}`},
      row.name)),
    h("td", {}, health(row.health)), h("td", {}, count(row.partitions)),
    h("td", {}, row.replicas),
    h("td", {}, row.min_insync ?? "–",
      row.unclean ? h("span", {class: "pill warn"}, "unclean") : null),
    h("td", {}, count(row.records)), h("td", {}, count(row.rate))))));
}

function drawEvents(list) {
  const lines = get("events") || [];
  const link = name => h("a", {href: `#partition/${encodeURIComponent(name)}`}, name);
  fill(list, lines.map(line => h("li", {}, h("time", {}, clock(line.t)),
    line.names.map(link),
    line.count > line.names.length
      ? h("b", {}, `and ${plural(line.count - line.names.length, "other partition")}`) : null,
    h("span", {}, line.text))));
  if (!lines.length) fill(list, h("li", {class: "soft"}, "Nothing yet."));
}
