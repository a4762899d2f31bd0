// The pipe between a test and a peer: one command a line on stdin, what came of it on stdout.
//
// A command is {"id": N, "do": NAME, …}. Every event of it comes as {"id": N, "event": …}; it ends with
// {"id": N, "result": …} or {"id": N, "error": {name, message, code, data}}. Commands run side by side. The command
// `hangUp` with {"call": N} drops the connection of another one. The end of stdin ends the peer.

import { createInterface } from 'node:readline';

const running = new Map();

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** Runs commands: each handler gets the command, a way to tell events, and a signal that fires when it is dropped. */
export async function serve(handlers) {
  handlers.hangUp = ({ call }) => running.get(call)?.abort();
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    run(handlers, command); // not awaited: a stream may run while a task is cancelled
  }
  process.exit(0);
}

async function run(handlers, command) {
  const { id } = command;
  const hangUp = new AbortController();
  running.set(id, hangUp);
  try {
    const handler = handlers[command.do];
    if (!handler) throw new Error(`no command ${command.do}`);
    const result = await handler(command, (event) => say({ id, event }), hangUp.signal);
    say({ id, result: result ?? null });
  } catch (error) {
    const { name, message, code, data } = error;
    say({ id, error: { name, message: [message, error.cause?.message].filter(Boolean).join(': '), code, data } });
  } finally {
    running.delete(id);
  }
}
