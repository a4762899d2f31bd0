"""The Python SDK of A2A as a peer."""

import asyncio
import uuid

import grpc
from a2a.client import ClientCallContext, ClientConfig, create_client
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.types.a2a_pb2 import (
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest, SubscribeToTaskRequest,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from lines import serve

# Its own five seconds without a byte are short on a busy machine.
TIMEOUT = 60.0


def request(command):
    parts = [{kind: command[kind]} for kind in ('text', 'data') if kind in command]
    message = {'messageId': str(uuid.uuid4()), 'role': 'ROLE_USER', 'parts': parts}
    message |= {key: command[key] for key in ('taskId', 'contextId', 'metadata') if key in command}
    configuration = {'returnImmediately': not command.get('blocking', True)}
    return ParseDict({'message': message, 'configuration': configuration}, SendMessageRequest())


class Peer:
    """A client for each way of asking: what streams and what does not is settled when it is made."""

    def __init__(self):
        self.streaming = self.plain = None
        self.extensions = []

    def context(self):
        parameters = ServiceParametersFactory.create([with_a2a_extensions(self.extensions)])
        return ClientCallContext(timeout=TIMEOUT, service_parameters=parameters)

    async def card(self, command, _tell):
        self.extensions = command.get('extensions', [])
        bindings = [command['transport']] if 'transport' in command else []
        for streaming in (True, False):
            config = ClientConfig(
                streaming=streaming,
                supported_protocol_bindings=bindings,
                grpc_channel_factory=grpc.aio.insecure_channel,
            )
            client = await create_client(command['url'], config)
            if streaming:
                self.streaming = client
            else:
                self.plain = client
        card = MessageToDict(self.plain._card)
        return {'card': card, 'transport': (bindings or ['JSONRPC'])[0], 'version': '1.0'}

    async def send(self, command, _tell):
        async for answer in self.plain.send_message(request(command), context=self.context()):
            return MessageToDict(answer)

    async def stream(self, command, tell):
        async for item in self.streaming.send_message(request(command), context=self.context()):
            tell(MessageToDict(item))

    answer = stream

    async def get(self, command, _tell):
        wanted = {'id': command['taskId'], 'historyLength': command.get('historyLength')}
        asked = ParseDict({key: value for key, value in wanted.items() if value is not None}, GetTaskRequest())
        return MessageToDict(await self.plain.get_task(asked, context=self.context()))

    async def cancel(self, command, _tell):
        asked = CancelTaskRequest(id=command['taskId'])
        return MessageToDict(await self.plain.cancel_task(asked, context=self.context()))

    async def list(self, command, _tell):
        asked = ListTasksRequest(context_id=command['contextId'], include_artifacts=True)
        return MessageToDict(await self.plain.list_tasks(asked, context=self.context()))

    async def resubscribe(self, command, tell):
        asked = SubscribeToTaskRequest(id=command['taskId'])
        async for item in self.streaming.subscribe(asked, context=self.context()):
            tell(MessageToDict(item))


asyncio.run(serve(Peer()))
