"""The pipe between a test and a peer: one command a line on stdin, what came of it on stdout, as lines.mjs tells."""

import asyncio
import json
import sys


def say(line):
    print(json.dumps(line), flush=True)


async def run(peer, command):
    number = command['id']
    try:
        result = await getattr(peer, command['do'])(command, lambda event: say({'id': number, 'event': event}))
        say({'id': number, 'result': result})
    except (Exception, asyncio.CancelledError) as error:
        told = {'name': type(error).__name__, 'message': str(error)}
        told |= {key: getattr(error, key) for key in ('code', 'data') if getattr(error, key, None) is not None}
        say({'id': number, 'error': json.loads(json.dumps(told, default=str))})


async def serve(peer):
    running = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        if command['do'] == 'hangUp':
            running[command['call']].cancel()
            say({'id': command['id'], 'result': None})
        else:
            running[command['id']] = asyncio.create_task(run(peer, command))
