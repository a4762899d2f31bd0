"""A sample agent on the Python SDK, as it comes: an A2A server that tests call.

`python agent.py TOKEN BINDING DIALECT` listens at a free port and prints its address; BINDING is JSONRPC or HTTP+JSON, and
DIALECT 1.0 or 0.3. What it does is said in `agents.md`.
"""

import asyncio
import hmac
import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import get_message_text, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

TOKEN, BINDING, DIALECT = sys.argv[1:4]


class Painter(AgentExecutor):
    async def execute(self, context, event_queue):
        text = get_message_text(context.message)
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)

        def say(words):
            return updater.new_agent_message([new_text_part(words)])

        await updater.start_work(say("looking for a brush"))
        if context.current_task is not None and "Which colour?" in str(task):
            await updater.complete(say(f"It is painted {text}."))
        elif text.startswith("paint"):
            await updater.requires_input(say("Which colour?"))
        elif text.isdecimal():
            for _ in range(int(text)):
                await updater.update_status(TaskState.TASK_STATE_WORKING, say("0123456789" * 4))
            await updater.complete()
        elif text == "draw":
            await updater.add_artifact([new_text_part("first half, ")], artifact_id="picture", name="picture.txt")
            await updater.add_artifact([new_text_part("second half")], artifact_id="picture", append=True, last_chunk=True)
            await updater.complete(say("Here is your picture."))
        elif text == "fail":
            await updater.failed(say("no paint is left"))
        elif text == "vault":
            await updater.requires_auth(say("Show your badge."))
        elif text == "slow":
            print("slow", flush=True)
            await asyncio.sleep(600)
        else:
            await updater.complete(say(f"You said {text}."))

    async def cancel(self, context, event_queue):
        print("cancelled", flush=True)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def guarded(app):
    """Only whoever has the token gets beyond the card."""

    async def serve(scope, receive, send):
        if scope["type"] == "http" and not scope["path"].startswith("/.well-known/"):
            headers = dict(scope["headers"])
            bearer, key = headers.get(b"authorization", b""), headers.get(b"x-api-key", b"")
            if not (hmac.compare_digest(bearer, f"Bearer {TOKEN}".encode()) or hmac.compare_digest(key, TOKEN.encode())):
                return await PlainTextResponse("who are you?", status_code=401)(scope, receive, send)
        return await app(scope, receive, send)

    return serve


listener = socket.create_server(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listener.getsockname()[1]}"
card = AgentCard(
    name="Python painter",
    description="Paints whatever you like.",
    version="1",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text"],
    default_output_modes=["text"],
    skills=[AgentSkill(id="paint", name="Paint", description="Paints it", tags=["paint"])],
    supported_interfaces=[AgentInterface(url=url, protocol_binding=BINDING, protocol_version=DIALECT)],
)
handler = DefaultRequestHandler(agent_executor=Painter(), task_store=InMemoryTaskStore(), agent_card=card)
old = {"enable_v0_3_compat": DIALECT == "0.3"}
routes = create_jsonrpc_routes(handler, "/", **old) if BINDING == "JSONRPC" else create_rest_routes(handler, **old)
app = guarded(Starlette(routes=[*create_agent_card_routes(card), *routes]))
print(url, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
