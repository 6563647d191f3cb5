// Small helpers: elements from plain data, numbers in words. Text is never parsed as HTML.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(one => one != null && one !== false));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter(one => one != null && one !== false));
  return element;
}

export const LOOKS = {
  "healthy": ["✓", "good", "healthy"],
  "under-replicated": ["◐", "warn", "under-replicated"],
  "below-min": ["⚠", "warn", "below min.insync"],
  "offline": ["✖", "bad", "offline"],
};
export const ORDER = ["offline", "below-min", "under-replicated", "healthy"];

export function health(name) {
  const [sign, look, words] = LOOKS[name];
  return h("span", {class: `pill ${look}`}, `${sign} ${words}`);
}

const STATES = {
  running: "good", paused: "warn", starting: "warn", stopping: "warn", silent: "warn",
};

export function state(name) {
  return h("span", {class: `pill ${STATES[name] || "bad"}`}, name);
}

export const count = number => number == null ? "–" : number.toLocaleString("en-US");

export function bytes(number) {
  if (number == null) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let place = 0;
  for (; number >= 1000 && place < units.length - 1; place++) number /= 1000;
  return `${number >= 100 || !place ? Math.round(number) : number.toFixed(1)} ${units[place]}`;
}

export const names = brokers => brokers.map(one => `b${one}`).join(" ");

export const clock = ms => new Date(ms).toLocaleTimeString("en-GB");

export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

// What is not known, greyed, with the reason.
export function unknown(reason) {
  return h("span", {class: "unknown", title: reason, tabindex: "0",
    "aria-label": `unknown: ${reason}`}, "n/a");
}

export function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), ...children);
}
