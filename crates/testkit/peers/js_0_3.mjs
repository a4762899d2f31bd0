// The JavaScript SDK of A2A 0.3 as a peer: `node js_0_3.mjs FOLDER`, where FOLDER holds its node_modules.

import { createRequire } from 'node:module';
import { randomUUID } from 'node:crypto';
import { serve } from './lines.mjs';

const require = createRequire(`${process.argv[2]}/package.json`);
const { ClientFactory, ClientFactoryOptions, ServiceParameters, withA2AExtensions } = require('@a2a-js/sdk/client');

let client;
let extensions;

const options = (signal) => ({
  signal,
  serviceParameters: extensions && ServiceParameters.create(withA2AExtensions(...extensions)),
});

function request({ text, data, taskId, contextId, metadata, blocking = true }) {
  const said = text === undefined ? [] : [{ kind: 'text', text }];
  const parts = data === undefined ? said : [...said, { kind: 'data', data }];
  const message = { kind: 'message', messageId: randomUUID(), role: 'user', parts, taskId, contextId, metadata };
  return { message: { ...message, extensions }, configuration: { blocking } };
}

async function tell(stream, event) {
  for await (const item of stream) event(item);
}

await serve({
  async card({ url, transport, extensions: wanted }) {
    extensions = wanted;
    const preferred = transport ? { preferredTransports: [transport] } : {};
    const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, preferred));
    client = await factory.createFromUrl(url);
    // What it speaks is known by the class alone in this version.
    const chosen = client.transport.constructor.name.includes('Rest') ? 'HTTP+JSON' : 'JSONRPC';
    const card = await client.getAgentCard();
    return { card, transport: chosen, version: card.protocolVersion };
  },
  send: (command, _event, signal) => client.sendMessage(request(command), options(signal)),
  stream: (command, event, signal) => tell(client.sendMessageStream(request(command), options(signal)), event),
  answer: (command, event, signal) => tell(client.sendMessageStream(request(command), options(signal)), event),
  get: ({ taskId, historyLength }, _event, signal) => client.getTask({ id: taskId, historyLength }, options(signal)),
  cancel: ({ taskId }, _event, signal) => client.cancelTask({ id: taskId }, options(signal)),
  async hook({ taskId, url, token, credentials }) {
    const authentication = { schemes: ['Bearer'], credentials };
    const config = { id: 'hook', url, token, authentication };
    const set = await client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: config });
    const got = await client.getTaskPushNotificationConfig({ id: taskId, pushNotificationConfigId: 'hook' });
    const listed = await client.listTaskPushNotificationConfig({ id: taskId });
    return { same: JSON.stringify(got) === JSON.stringify(set), count: listed.length };
  },
  async unhook({ taskId }) {
    await client.deleteTaskPushNotificationConfig({ id: taskId, pushNotificationConfigId: 'hook' });
    return { count: (await client.listTaskPushNotificationConfig({ id: taskId })).length };
  },
  // This version has no code that reads a task.
  read: async ({ body }) => body,
  resubscribe: ({ taskId }, event, signal) => tell(client.resubscribeTask({ id: taskId }, options(signal)), event),
});
