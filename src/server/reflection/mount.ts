import * as v from 'valibot';
import { WaymarkError } from '../../core/error.ts';
import { currentTrace, inSpan } from '../../core/trace.ts';
import { readBody } from '../body.ts';
import { jsonResponse } from '../json-response.ts';
import { checkLocal } from '../local.ts';
import { short } from '../not-found.ts';
import type { Router, Served } from '../served.ts';
import { type StreamFormat, takeSeat } from '../stream-response.ts';
import { ownerOf } from '../turn.ts';
import { createActive } from './active.ts';
import { toReflectionError } from './error.ts';
import { findAction, listActions, type RunRequest, runAction } from './run-action.ts';

const anything = v.optional(v.unknown());

const runBody = v.looseObject({
  key: v.string(),
  input: anything,
  init: anything,
  context: v.optional(v.nullable(v.record(v.string(), v.unknown()))),
});

/** The calls of Genkit's development tools, for clients on this machine only. */
export function mountReflection(router: Router, served: Served): void {
  const active = createActive();
  router.use('/api/*', async (c, next) => {
    checkLocal(c);
    await next();
  });

  router.get('/api/__health', (c) => {
    const id = c.req.query('id');
    if (id !== undefined && !id.startsWith(`${process.pid}`)) {
      throw new WaymarkError('UNAVAILABLE', 'This is another runtime.');
    }
    return c.text('OK');
  });
  router.get('/api/actions', (c) => jsonResponse(listActions(served.app, c.get('caller'))));
  router.get('/api/envs', () => jsonResponse(['dev']));
  router.post('/api/notify', (c) => c.text('OK'));

  router.post('/api/runAction', async (c) => {
    const body = await readBody(c.req.raw, runBody, { what: 'action call', ...served });
    const caller = c.get('caller');
    // Whose sessions they are is for `auth` to say, not for the caller.
    const { owner: _, ...context } = body.context ?? {};
    const action = findAction(served.app, body.key, caller);
    const request: RunRequest = {
      ...body,
      context: { ...context, ...caller.context, ...ownerOf(caller) },
    };
    return inSpan(`run ${body.key.slice(0, 100)}`, {}, async () => {
      const traceId = currentTrace()?.traceparent.split('-')[1] ?? crypto.randomUUID();
      const run = active.begin(traceId, c.req.raw.signal);
      const headers = { 'x-genkit-trace-id': traceId };
      if (c.req.query('stream') !== 'true') {
        try {
          const result = await runAction(action, request, { signal: run.signal });
          return jsonResponse({ result, telemetry: { traceId } }, { headers });
        } catch (error) {
          return jsonResponse({ error: toReflectionError(error, traceId) }, { headers });
        } finally {
          run.end();
        }
      }
      const lines = actionLines(
        (onChunk) => runAction(action, request, { signal: run.signal, onChunk }),
        traceId,
      );
      return takeSeat(served, c).respond(ending(lines, run.end), lineFormat(headers));
    });
  });

  router.post('/api/cancelAction', async (c) => {
    const schema = v.looseObject({ traceId: v.string() });
    const { traceId } = await readBody(c.req.raw, schema, { what: 'cancel', ...served });
    if (!active.cancel(traceId)) {
      throw new WaymarkError('NOT_FOUND', `No action ${short(traceId)} is running.`);
    }
    return jsonResponse({ message: 'Action cancelled' });
  });
}

type Line = Record<string, unknown> | unknown;

// One JSON per line: the chunks, then the result or the error.
async function* actionLines(
  run: (onChunk: (chunk: unknown) => void) => Promise<unknown>,
  traceId: string,
): AsyncGenerator<readonly Line[]> {
  const chunks: unknown[] = [];
  let more = Promise.withResolvers<void>();
  const output = run((chunk) => {
    chunks.push(chunk);
    more.resolve();
  });
  const done = output.then(
    (result) => ({ result, telemetry: { traceId } }),
    (error: unknown) => ({ error: toReflectionError(error, traceId) }),
  );
  let last: Line;
  void done.then((line) => {
    last = line;
    more.resolve();
  });
  for (;;) {
    await more.promise;
    more = Promise.withResolvers();
    yield chunks.splice(0);
    if (last !== undefined) break;
  }
  yield [last];
}

async function* ending<T>(lines: AsyncGenerator<T>, end: () => void): AsyncGenerator<T> {
  try {
    yield* lines;
  } finally {
    end();
  }
}

function lineFormat(headers: Readonly<Record<string, string>>): StreamFormat<Line> {
  return {
    encode: (line) => `${JSON.stringify(line)}\n`,
    // An empty line says nothing, and JSON readers skip it.
    keepAlive: '\n',
    headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
  };
}
