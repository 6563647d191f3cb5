// Runs the lab, in Python, away from the page's own thread.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const ready = begin();

async function begin() {
  const [pyodide, code] = await Promise.all([loadPyodide(), fetched("holdfast.zip")]);
  pyodide.unpackArchive(code, "zip");
  return pyodide.pyimport("holdfast.web.playground").answer;
}

async function fetched(name) {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response.arrayBuffer();
}

self.addEventListener("message", async ({ data: { id, question } }) => {
  try {
    const answer = await ready;
    const isReady = question.ask === "ready";
    self.postMessage({ id, answer: isReady ? "true" : answer(JSON.stringify(question)) });
  } catch (error) {
    self.postMessage({ id, failed: String(error) });
  }
});
