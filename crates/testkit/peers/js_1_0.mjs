// The JavaScript SDK of A2A 1.0 as a peer: `node js_1_0.mjs FOLDER`, where FOLDER holds its node_modules.

import { createRequire } from 'node:module';
import { randomUUID } from 'node:crypto';
import { serve } from './lines.mjs';

const require = createRequire(`${process.argv[2]}/package.json`);
const { GrpcTransportFactory } = require('@a2a-js/sdk/client/grpc');
const { ClientFactory, ClientFactoryOptions, ServiceParameters, withA2AExtensions } = require('@a2a-js/sdk/client');
const { AgentCard, ListTasksRequest, ListTasksResponse, Message, SendMessageRequest, StreamResponse, Task } =
  require('@a2a-js/sdk');

let client;
let extensions;

const options = (signal) => ({
  signal,
  serviceParameters: extensions && ServiceParameters.create(withA2AExtensions(...extensions)),
});

function request({ text, data, taskId, contextId, metadata, blocking = true }) {
  const parts = [...(text === undefined ? [] : [{ text }]), ...(data === undefined ? [] : [{ data }])];
  const message = { messageId: randomUUID(), role: 'ROLE_USER', parts, taskId, contextId, metadata, extensions };
  return SendMessageRequest.fromJSON({ message, configuration: { returnImmediately: !blocking } });
}

async function tell(stream, event) {
  for await (const item of stream) event(StreamResponse.toJSON(item));
}

await serve({
  async card({ url, transport, extensions: wanted }) {
    extensions = wanted;
    const preferred = transport ? { preferredTransports: [transport] } : {};
    if (transport === 'GRPC') preferred.transports = [new GrpcTransportFactory()];
    const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, preferred));
    client = await factory.createFromUrl(url);
    const card = AgentCard.toJSON(await client.getAgentCard());
    return { card, transport: client.transport.protocolName, version: client.protocolVersion };
  },
  async send(command, _event, signal) {
    const answer = await client.sendMessage(request(command), options(signal));
    return 'status' in answer ? { task: Task.toJSON(answer) } : { message: Message.toJSON(answer) };
  },
  stream: (command, event, signal) => tell(client.sendMessageStream(request(command), options(signal)), event),
  answer: (command, event, signal) => tell(client.sendMessageStream(request(command), options(signal)), event),
  get: async ({ taskId, historyLength }, _event, signal) =>
    Task.toJSON(await client.getTask({ tenant: '', id: taskId, historyLength }, options(signal))),
  cancel: async ({ taskId }, _event, signal) =>
    Task.toJSON(await client.cancelTask({ tenant: '', id: taskId, metadata: undefined }, options(signal))),
  list: async ({ contextId }, _event, signal) =>
    ListTasksResponse.toJSON(
      await client.listTasks(ListTasksRequest.fromJSON({ contextId, includeArtifacts: true }), options(signal)),
    ),
  resubscribe: ({ taskId }, event, signal) =>
    tell(client.resubscribeTask({ tenant: '', id: taskId }, options(signal)), event),
});
