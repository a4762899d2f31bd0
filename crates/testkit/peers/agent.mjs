// A sample agent on the JavaScript SDK, as it comes: an A2A server that tests call.
//
// `node agent.mjs FOLDER DIALECT TOKEN` listens at a free port and prints its address; FOLDER holds the SDK of that
// dialect, 1.0 or 0.3. What it does is said in `agents.md`.

import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, dialect, token] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(folder, "node_modules/@a2a-js/sdk/dist", path)));
const sdk = await load("index.js");
const { DefaultRequestHandler, InMemoryTaskStore, JsonRpcTransportHandler, ServerCallContext, defaultServerCallContextBuilder, UnauthenticatedUser } =
  await load("server/index.js");

// The events of each dialect, from the words of 1.0.
const state = (word) => `TASK_STATE_${word.toUpperCase().replace("-", "_")}`;
const dialects = {
  "1.0": {
    publish: {
      task: (bus, task) => bus.publish({ kind: "task", data: sdk.Task.fromJSON(task) }),
      // Each turn begins with the task.
      again: (bus, task) => bus.publish({ kind: "task", data: task }),
      status: (bus, update) => bus.publish({ kind: "statusUpdate", data: sdk.TaskStatusUpdateEvent.fromJSON(update) }),
      artifact: (bus, update) => bus.publish({ kind: "artifactUpdate", data: sdk.TaskArtifactUpdateEvent.fromJSON(update) }),
    },
    state,
    part: (text) => ({ text }),
    message: (message) => ({ ...message, role: "ROLE_AGENT" }),
    text: (message) => message.parts.map((part) => part.content?.value ?? "").join(""),
    card: (card) => sdk.AgentCard.fromJSON({ ...card, supportedInterfaces: [{ url: card.url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }] }),
    shown: (card) => sdk.AgentCard.toJSON(card),
    context: (request) =>
      defaultServerCallContextBuilder({ extensions: [], user: new UnauthenticatedUser(), headers: request.headers, requestedVersion: request.headers["a2a-version"] }),
  },
  "0.3": {
    publish: {
      task: (bus, task) => bus.publish({ kind: "task", ...task }),
      again: () => {},
      status: (bus, update) => bus.publish({ kind: "status-update", ...update }),
      artifact: (bus, update) => bus.publish({ kind: "artifact-update", ...update }),
    },
    state: (word) => word,
    part: (text) => ({ kind: "text", text }),
    message: (message) => ({ ...message, kind: "message", role: "agent" }),
    text: (message) => message.parts.map((part) => part.text ?? "").join(""),
    card: (card) => ({ ...card, protocolVersion: "0.3.0", preferredTransport: "JSONRPC" }),
    shown: (card) => card,
    context: () => new ServerCallContext(),
  },
};
const ours = dialects[dialect];
const waiting = new Set();
const stops = new Map();

const painter = {
  async execute({ userMessage, task, taskId, contextId }, bus) {
    const text = ours.text(userMessage);
    const status = (word, said) => {
      const message = said && ours.message({ messageId: randomUUID(), taskId, contextId, parts: [ours.part(said)] });
      const isFinal = !["working", "submitted"].includes(word);
      const update = { taskId, contextId, status: { state: ours.state(word), message, timestamp: new Date().toISOString() } };
      ours.publish.status(bus, dialect === "0.3" ? { ...update, final: isFinal } : update);
    };
    const artifact = (words, append) => {
      const made = { artifactId: "picture", name: "picture.txt", parts: [ours.part(words)] };
      ours.publish.artifact(bus, { taskId, contextId, artifact: made, append, lastChunk: append });
    };
    if (task) {
      ours.publish.again(bus, task);
    } else {
      ours.publish.task(bus, { id: taskId, contextId, status: { state: ours.state("submitted"), timestamp: new Date().toISOString() }, history: [], artifacts: [] });
    }
    status("working", "looking for a brush");
    if (waiting.delete(taskId)) {
      status("completed", `It is painted ${text}.`);
    } else if (text.startsWith("paint")) {
      waiting.add(taskId);
      status("input-required", "Which colour?");
    } else if (text === "draw") {
      artifact("first half, ", false);
      artifact("second half", true);
      status("completed", "Here is your picture.");
    } else if (/^\d+$/.test(text)) {
      for (let number = 0; number < Number(text); number += 1) status("working", "0123456789".repeat(4));
      status("completed");
    } else if (text === "fail") {
      status("failed", "no paint is left");
    } else if (text === "vault") {
      status("auth-required", "Show your badge.");
    } else if (text === "slow") {
      console.log("slow");
      await new Promise((stop) => stops.set(taskId, stop));
      status("canceled");
    } else {
      status("completed", `You said ${text}.`);
    }
    bus.finished();
  },
  async cancelTask(taskId) {
    console.log("cancelled");
    stops.get(taskId)?.();
  },
};

const server = createServer(async (request, response) => {
  const reply = (code, body, type = "application/json") => response.writeHead(code, { "content-type": type }).end(body);
  if (request.url.startsWith("/.well-known/")) return reply(200, JSON.stringify(ours.shown(card)));
  const isKnown = request.headers.authorization === `Bearer ${token}` || request.headers["x-api-key"] === token;
  if (!isKnown) return reply(401, "who are you?", "text/plain");
  let body = "";
  for await (const piece of request) body += piece;
  const answer = await rpc.handle(JSON.parse(body), ours.context(request));
  if (!answer[Symbol.asyncIterator]) return reply(200, JSON.stringify(answer));
  response.writeHead(200, { "content-type": "text/event-stream" });
  for await (const event of answer) response.write(`data: ${JSON.stringify(event)}\n\n`);
  response.end();
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const url = `http://127.0.0.1:${server.address().port}/`;
const card = ours.card({
  name: `JavaScript painter ${dialect}`,
  description: "Paints whatever you like.",
  version: "1",
  url,
  capabilities: { streaming: true },
  defaultInputModes: ["text"],
  defaultOutputModes: ["text"],
  skills: [{ id: "paint", name: "Paint", description: "Paints it", tags: ["paint"] }],
});
const rpc = new JsonRpcTransportHandler(new DefaultRequestHandler(card, new InMemoryTaskStore(), painter));
console.log(url);
