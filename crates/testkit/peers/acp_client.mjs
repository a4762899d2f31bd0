// The TypeScript SDK of ACP as a peer: `node acp_client.mjs FOLDER`, where FOLDER holds its node_modules.
//
// `connect` runs while the connection is open: to an agent that it starts with {command: WORDS}, or over the WebSocket
// {url}. It tells {connected: true}, then {sent: message} and {got: message} as they are on the wire, {update: params} as
// the SDK delivers them, and {withdrawn: id} when a question is taken back. It returns how a WebSocket was closed,
// {code, wasClean}. `answer` gives {result} to the question with that id, about a permission or with a form.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { serve } from './lines.mjs';

const require = createRequire(`${process.argv[2]}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { client, methods, ndJsonStream } = await load('@agentclientprotocol/sdk');
const { createWebSocketStream } = await load('@agentclientprotocol/sdk/experimental/ws-client');

const CANCELLED = { outcome: { outcome: 'cancelled' } };
const questions = new Map();
let connection;

/** The stream that carries the protocol, and what ends it. */
function dial({ command, url }) {
  if (url) {
    let closed;
    const end = new Promise((resolve) => (closed = resolve));
    class Socket extends WebSocket {
      constructor(...given) {
        super(...given);
        this.addEventListener('close', ({ code, wasClean }) => closed({ code, wasClean }));
      }
    }
    return { stream: createWebSocketStream(url, { WebSocket: Socket }), end: () => end };
  }
  const agent = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
  const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  return { stream, end: () => void agent.stdin.end() };
}

/** The same stream, which tells every message that passes. */
function tapped({ readable, writable }, event) {
  const tap = (way) =>
    new TransformStream({
      transform(message, passed) {
        event({ [way]: message });
        passed.enqueue(message);
      },
    });
  const sent = tap('sent');
  sent.readable.pipeTo(writable).catch(() => {}); // a connection that is closed fails its calls
  return { readable: readable.pipeThrough(tap('got')), writable: sent.writable };
}

await serve({
  async connect(command, event, hangUp) {
    const ask = ({ requestId, signal }) =>
      new Promise((resolve) => {
        questions.set(requestId, resolve);
        signal.addEventListener('abort', () => {
          event({ withdrawn: requestId });
          resolve(CANCELLED);
        });
      });
    const app = client({ name: 'peer' })
      .onNotification(methods.client.session.update, ({ params }) => event({ update: params }))
      .onRequest(methods.client.session.requestPermission, ask)
      .onRequest(methods.client.elicitation.create, ask);
    const { stream, end } = dial(command);
    connection = app.connect(tapped(stream, event));
    event({ connected: true });
    hangUp.addEventListener('abort', () => connection.close());
    await connection.closed;
    return end();
  },
  request: ({ method, params }) => connection.agent.request(method, params),
  notify: ({ method, params }) => connection.agent.notify(method, params),
  answer: ({ question, result }) => questions.get(question)(result),
});
