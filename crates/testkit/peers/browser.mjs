// A page in a headless Chromium as a peer: `node browser.mjs CHROMIUM`.
//
// The command `visit` opens a page and lets it try what a page can try against a server; for each attempt it returns
// what the page saw, and what really went over the wire: a page cannot tell a refusal from an answer that the browser
// keeps from it. `from` is a URL, or the name of a host, then the page is our own, served under that name.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { serve } from './lines.mjs';

const SWITCHES = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
  '--no-proxy-server', '--remote-debugging-pipe'];
// How long a page waits for a connection, and we for the last word on a request.
const PATIENCE = 3000;
/** How much later what went over the wire may be told than that it failed. */
const LATE = 2000;

/** Runs in the page, so it knows nothing of this file. */
async function attempt({ kind, url, init, patience }) {
  const late = (what) => new Promise((resolve) => setTimeout(resolve, patience, what));
  const connect = (opened, failed, socket) => new Promise((resolve) => {
    socket.onopen = () => resolve(opened);
    socket[failed] = () => resolve('refused');
  }).finally(() => socket.close());
  switch (kind) {
    case 'fetch':
      try {
        const answer = await fetch(url, init);
        const first = await Promise.race([answer.body?.getReader().read(), late({})]);
        const text = new TextDecoder().decode(first?.value);
        return { outcome: 'answered', status: answer.status, type: answer.type, text };
      } catch (error) {
        return { outcome: 'refused', text: String(error) };
      }
    case 'eventSource':
      return { outcome: await Promise.race([connect('answered', 'onerror', new EventSource(url)), late('silent')]) };
    case 'webSocket':
      return { outcome: await Promise.race([connect('answered', 'onclose', new WebSocket(url)), late('silent')]) };
    case 'form': {
      const form = document.createElement('form');
      Object.assign(form, { action: url, method: 'POST', enctype: 'text/plain' });
      // Sent as NAME=VALUE, which is made to be JSON.
      form.append(Object.assign(document.createElement('input'), { name: init.name, value: init.value }));
      document.body.append(form);
      form.submit();
    }
  }
}

/** Chromium by its debugging pipe: calls, and whoever listens to its events. */
function start(program) {
  const libraries = join(dirname(program), 'lib'); // comes with a build that must bring its own
  const env = { ...process.env, ...(existsSync(libraries) ? { LD_LIBRARY_PATH: libraries } : {}) };
  const profile = mkdtempSync(join(tmpdir(), 'profile-'));
  const stdio = ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'];
  const child = spawn(program, [...SWITCHES, `--user-data-dir=${profile}`, 'about:blank'], { env, stdio });
  const waiting = new Map();
  const listeners = new Map();
  let rest = '';
  let last = 0;
  const gone = once(child, 'exit').then(([code, signal]) => Promise.reject(new Error(`it ended: ${code ?? signal}`)));
  gone.catch(() => {});
  child.stdio[4].setEncoding('utf8').on('data', (text) => {
    const messages = (rest + text).split('\0');
    rest = messages.pop();
    for (const { id, result, error, method, params, sessionId } of messages.map((message) => JSON.parse(message))) {
      if (id === undefined) listeners.get(sessionId)?.(method, params);
      else if (error) waiting.get(id).reject(new Error(error.message));
      else waiting.get(id).resolve(result);
    }
  });
  const call = (method, params = {}, sessionId = undefined) => {
    const answer = new Promise((resolve, reject) => waiting.set(++last, { resolve, reject }));
    child.stdio[3].write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
    return Promise.race([answer, gone]);
  };
  return { call, listeners };
}

/** What one tab sends and gets, request by request. */
class Wire {
  constructor() {
    this.requests = new Map();
  }

  hear(method, { requestId, request, type, initiator, url, statusCode, response, errorMessage, errorText }) {
    // What is known of a request comes in any order, and what went over the wire may come before the request.
    const known = (facts) => this.requests.set(requestId, { ...this.requests.get(requestId), ...facts });
    // Some builds of Chromium fetch `/favicon.ico` for the tab: a request that no page made.
    const isBrowsers = type === 'Other' && initiator?.type === 'other';
    if (method === 'Network.requestWillBeSent' && !isBrowsers) known({ method: request.method, url: request.url });
    if (method === 'Network.webSocketCreated') known({ method: 'GET', url });
    if (method === 'Network.responseReceivedExtraInfo') known({ status: statusCode });
    if (method === 'Network.webSocketHandshakeResponseReceived') known({ status: response.status });
    if (method === 'Network.webSocketFrameError') known({ error: errorMessage, ended: true });
    if (method === 'Network.loadingFailed') known({ error: errorText, ended: true });
  }

  /** The requests since the last time, when each has a status or failed. */
  async settled() {
    const sent = () => [...this.requests.values()].filter((request) => request.url);
    const open = () => sent().length === 0 || sent().some((request) => !request.status && !request.ended);
    const rest = () => new Promise((resolve) => setTimeout(resolve, 20));
    for (const deadline = Date.now() + PATIENCE; open() && Date.now() < deadline;) await rest();
    // That it failed may be told before what went over the wire, and something did.
    const told = ({ status, error }) => status || error?.includes('response code');
    for (const deadline = Date.now() + LATE; !sent().some(told) && Date.now() < deadline;) await rest();
    const requests = sent();
    this.requests.clear();
    return requests.map(({ method, url, status, error }) => ({ method, url, status, error }));
  }
}

async function open(browser, url) {
  const { targetId } = await browser.call('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await browser.call('Target.attachToTarget', { targetId, flatten: true });
  const wire = new Wire();
  let loaded;
  const whole = new Promise((resolve) => (loaded = resolve));
  browser.listeners.set(sessionId, (method, params) => {
    if (method === 'Page.loadEventFired') loaded();
    wire.hear(method, params);
  });
  const call = (method, params) => browser.call(method, params, sessionId);
  await Promise.all([call('Page.enable'), call('Network.enable')]);
  const { errorText } = await call('Page.navigate', { url });
  if (!errorText) await whole;
  const [document] = await wire.settled();
  const close = () => browser.call('Target.closeTarget', { targetId });
  return { call, wire, close, page: { url, status: document?.status, error: errorText } };
}

const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>a page</title><body></body>');
}).listen(0);
await once(server, 'listening');
const browser = start(process.argv[2]);

async function visit({ from, attempts = [] }) {
  const url = from.includes('://') ? from : `http://${from}:${server.address().port}/`;
  const first = await open(browser, url);
  const outcomes = [];
  for (const each of attempts) {
    const tab = each.kind === 'form' ? await open(browser, url) : first; // a form takes its page away
    const expression = `(${attempt})(${JSON.stringify({ ...each, patience: PATIENCE })})`;
    const leaves = tab !== first;
    const asked = { expression, awaitPromise: !leaves, returnByValue: true };
    const { result, exceptionDetails: thrown } = await tab.call('Runtime.evaluate', asked);
    const saw = thrown ? { outcome: 'refused', text: thrown.exception?.description } : result.value;
    outcomes.push({ name: each.name, page: leaves ? { outcome: 'left' } : saw, wire: await tab.wire.settled() });
    if (leaves) await tab.close();
  }
  await first.close();
  return { ...first.page, attempts: outcomes };
}

await serve({ visit });
