"""The Python SDK of ACP as a peer, with the commands and events of acp_client.mjs."""

import asyncio
import os
from collections import deque

import acp
from acp import schema
from acp.connection import StreamDirection
from acp.ws.client import create_websocket_stream
from lines import serve
from pydantic import TypeAdapter

# The largest message that it reads from an agent's stdout.
LIMIT = 50 * 1024 * 1024

QUESTIONS = ('session/request_permission', 'elicitation/create')
REQUESTS = {
    'initialize': (schema.InitializeRequest, 'initialize'),
    'session/new': (schema.NewSessionRequest, 'new_session'),
    'session/load': (schema.LoadSessionRequest, 'load_session'),
    'session/resume': (schema.ResumeSessionRequest, 'resume_session'),
    'session/list': (schema.ListSessionsRequest, 'list_sessions'),
    'session/close': (schema.CloseSessionRequest, 'close_session'),
    'session/prompt': (schema.PromptRequest, 'prompt'),
    'session/set_mode': (schema.SetSessionModeRequest, 'set_session_mode'),
    'session/set_config_option': (schema.SetSessionConfigOptionSelectRequest, 'set_config_option'),
    'session/cancel': (schema.CancelNotification, 'cancel'),
}


def written(model):
    return model and model.model_dump(mode='json', by_alias=True, exclude_none=True)


class Editor:
    """What the SDK calls. The SDK does not tell the ids of requests, but it handles them in order."""

    def __init__(self, tell):
        self.tell = tell
        self.asked = deque()
        self.questions = {}

    def observe(self, event):
        is_incoming = event.direction == StreamDirection.INCOMING
        self.tell({'got' if is_incoming else 'sent': event.message})
        if is_incoming and event.message.get('method') in QUESTIONS:
            question = event.message['id']
            self.asked.append(question)
            self.questions[question] = asyncio.get_running_loop().create_future()

    async def session_update(self, session_id, update, **_meta):
        self.tell({'update': {'sessionId': session_id, 'update': written(update)}})

    async def request_permission(self, **_params):
        return schema.RequestPermissionResponse.model_validate(await self.answered())

    async def create_elicitation(self, **_params):
        return TypeAdapter(schema.CreateElicitationResponse).validate_python(await self.answered())

    def answered(self):
        return self.questions[self.asked.popleft()]


class Peer:
    def __init__(self):
        self.editor = self.connection = None

    async def connect(self, command, tell):
        self.editor = Editor(tell)
        # Questions with a form are not stable in this SDK.
        options = {'observers': [self.editor.observe], 'use_unstable_protocol': True}
        if 'url' in command:
            stream = await create_websocket_stream(command['url'])
            async with acp.connect_to_agent(self.editor, stream, **options) as self.connection:
                await self.stay(tell)
        options |= {'env': dict(os.environ), 'transport_kwargs': {'stderr': None, 'limit': LIMIT}}
        started = acp.spawn_agent_process(self.editor, *command['command'], **options)
        async with started as (self.connection, _process):
            await self.stay(tell)

    async def stay(self, tell):
        tell({'connected': True})
        await asyncio.Future()

    async def request(self, command, _tell):
        model, function = REQUESTS[command['method']]
        params = model.model_validate(command['params'])
        fields = (name for name in params.model_fields_set if name != 'field_meta')
        return written(await getattr(self.connection, function)(**{name: getattr(params, name) for name in fields}))

    notify = request

    async def answer(self, command, _tell):
        self.editor.questions[command['question']].set_result(command['result'])


asyncio.run(serve(Peer()))
