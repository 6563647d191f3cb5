// The newest value of every item that the server sends, and the requests to it.

const items = new Map();
const listeners = new Set();
let source = null, opened = null, waiting = false;

export const places = {
  topic: 0, index: 1, health: 2, leader: 3, epoch: 4, replicas: 5, isr: 6, eligible: 7, start: 8,
  end: 9, rate: 10,
};

export const facts = {faults: [], reasons: {}, reports: false};
export const lanes = {now: null};
export const get = key => items.get(key);

export function all(prefix) {
  const found = [];
  for (const [key, value] of items) if (key.startsWith(prefix)) found.push(value);
  return found;
}

export const partitions = () => all("partition/");
export const nameOf = row => `${row[places.topic]}-${row[places.index]}`;

// Called after every update, at most once per drawn frame, with the kinds of items that changed.
const changed = new Set();

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notify(kinds) {
  kinds.forEach(kind => changed.add(kind));
  if (waiting) return;
  waiting = true;
  // A hidden page gets no frames; it catches up when it is shown.
  requestAnimationFrame(() => {
    waiting = false;
    const now = new Set(changed);
    changed.clear();
    listeners.forEach(listener => listener(now));
  });
}

const kindOf = key => key.split("/")[0];

function take(update) {
  const kinds = new Set();
  if (update.full) {
    items.forEach((_, key) => kinds.add(kindOf(key)));
    items.clear();
  }
  for (const key of update.removed) {
    items.delete(key);
    kinds.add(kindOf(key));
  }
  for (const [key, value] of Object.entries(update.items)) {
    items.set(key, value);
    kinds.add(kindOf(key));
  }
  notify(kinds);
}

export function connect(partition, onLink) {
  if (source && opened === partition) return;
  source?.close();
  opened = partition;
  lanes.now = null;
  source = new EventSource(`/events?partition=${encodeURIComponent(partition)}`);
  source.addEventListener("open", () => onLink(true));
  source.addEventListener("error", () => onLink(false));
  source.addEventListener("update", event => take(JSON.parse(event.data)));
  source.addEventListener("lanes", event => {
    lanes.now = JSON.parse(event.data);
    notify(["lanes"]);
  });
}

export function pause() {
  source?.close();
  source = opened = null;
}

// The token came after the # of the address, and stays in this tab.
const KEY = "holdfast-token";

export function keepToken() {
  const found = /^#token=([\w-]+)/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(KEY, found[1]);
  history.replaceState(null, "", "#overview");
}

export const hasToken = () => sessionStorage.getItem(KEY) !== null;

export async function read(path) {
  return answer(await fetch(path));
}

export async function post(path, body) {
  return answer(await fetch(path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-holdfast-token": sessionStorage.getItem(KEY) || "",
    },
    body: JSON.stringify(body),
  }));
}

async function answer(response) {
  const body = await response.json().catch(() => ({error: `HTTP ${response.status}`}));
  if (!response.ok) throw new Error(body.hint ? `${body.error} (${body.hint})` : body.error);
  return body;
}
