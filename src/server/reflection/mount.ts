import * as v from 'valibot';
import { type LinkedSignal, linkSignals } from '../../core/async/signal.ts';
import { type Status, WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import { inSpan } from '../../core/trace.ts';
import { currentTrace } from '../../core/trace-context.ts';
import { jsonResponse, safetyHeaders, short, toWireError } from '../http/answer.ts';
import { type Caller, ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { requireLoopback } from '../http/origin.ts';
import {
  authorize,
  logRequestFault,
  type MountedProtocol,
  type Router,
} from '../http/server-context.ts';
import { type StreamFormat, withStreamSlot } from '../stream/stream-response.ts';
import { requestIdOf } from '../stream/turn.ts';
import { findAction, listActions, type RunRequest } from './run-action.ts';

const anything = v.optional(v.unknown());

const runBody = v.looseObject({
  key: v.string(),
  input: anything,
  init: anything,
  context: v.optional(v.nullable(v.record(v.string(), v.unknown()))),
});

export const reflectionProtocol: MountedProtocol = { name: 'reflection', mount: mountReflection };

/** The calls of Genkit's development tools, for clients on this machine only. */
function mountReflection(router: Router): void {
  const running: Running = new Map();
  router.use('/api/*', async (c, next) => {
    requireLoopback(c);
    await next();
  });

  router.get('/api/__health', (c) => {
    const id = c.req.query('id');
    if (id !== undefined && !id.startsWith(`${process.pid}`)) {
      throw new WaymarkError('UNAVAILABLE', 'This is another runtime.');
    }
    return c.text('OK');
  });
  router.get('/api/actions', async (c) => {
    const caller = c.get('caller');
    await authorize(c, { operation: 'listAgents' });
    return jsonResponse(listActions(c.get('server').app, caller));
  });
  router.get('/api/envs', () => jsonResponse(['dev']));
  router.post('/api/notify', (c) => c.text('OK'));

  router.post('/api/runAction', async (c) => {
    const body = await readBody(c, runBody, 'action call');
    const caller = c.get('caller');
    // Who calls, and what for, is for `auth` to say, not for the caller.
    const { owner: _, ...given } = body.context ?? {};
    const { app, options } = c.get('server');
    const context = options.auth ? {} : given;
    const { key } = body;
    await authorize(c, { operation: 'runAction', action: key });
    const action = findAction(app, key, caller);
    const does = action.does?.(body);
    if (does) await authorize(c, { action: key, ...does });
    const request: RunRequest = {
      ...body,
      context: { ...context, ...caller.context, ...ownerOf(caller) },
      requestId: requestIdOf(c),
    };
    return inSpan(`run ${key.slice(0, 100)}`, {}, async () => {
      const traceId = currentTrace()?.traceparent.split('-')[1] ?? crypto.randomUUID();
      const id = keyOf(traceId, caller);
      const headers = { 'x-genkit-trace-id': traceId };
      const toError = (error: unknown): ReturnType<typeof toReflectionError> => {
        logRequestFault(c, error);
        return toReflectionError(error, traceId);
      };
      if (c.req.query('stream') === 'true') {
        return await withStreamSlot(c, (slot) => {
          const run = enter(running, id, slot.signal);
          const lines = actionLines(
            (onChunk) => action.run(request, { ...run, onChunk }),
            traceId,
            toError,
          );
          return slot.respond(ending(lines, run.end), lineFormat(headers));
        });
      }
      const run = enter(running, id, c.req.raw.signal);
      try {
        const result = await action.run(request, run);
        return jsonResponse({ result, telemetry: { traceId } }, { headers });
      } catch (error) {
        return jsonResponse({ error: toError(error) }, { headers });
      } finally {
        run.end();
      }
    });
  });

  router.post('/api/cancelAction', async (c) => {
    const schema = v.looseObject({ traceId: v.string() });
    const { traceId } = await readBody(c, schema, 'cancel');
    const run = running.get(keyOf(traceId, c.get('caller')));
    if (!run) throw new WaymarkError('NOT_FOUND', `No action ${short(traceId)} is running.`);
    run.abort(new WaymarkError('CANCELLED', 'The action was cancelled.'));
    return jsonResponse({ message: 'Action cancelled' });
  });
}

/** The actions that are being run, by trace id and whose they are: a client may choose the id of its trace. */
type Running = Map<string, LinkedSignal>;

/** Lets a caller cancel an action; the link has its signal, and `end` is called when it is over. */
function enter(running: Running, key: string, signal: AbortSignal) {
  const link = linkSignals(signal);
  running.set(key, link);
  const end = (): void => {
    if (running.get(key) === link) running.delete(key);
    link.release();
  };
  return { signal: link.signal, end };
}

function keyOf(traceId: string, { principal }: Caller): string {
  return JSON.stringify([traceId, principal]);
}

/** The numbers of gRPC's canonical codes, which the development tools read. */
const codes: Record<Status, number> = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
};

function toReflectionError(
  error: unknown,
  traceId: string,
): { readonly code: number; readonly message: string; readonly details: Json } {
  const { status, message, details } = toWireError(error);
  return {
    code: codes[status],
    message,
    details: { status, traceId, ...(details !== undefined && { details }) },
  };
}

/** One JSON per line: the chunks of an action, then its result or its error. */
async function* actionLines(
  run: (onChunk: (chunk: unknown) => void) => Promise<unknown>,
  traceId: string,
  toError: (error: unknown) => object,
): AsyncGenerator<readonly unknown[]> {
  const chunks: unknown[] = [];
  let more = Promise.withResolvers<void>();
  let last: object | undefined;
  const end = (line: object): void => {
    last = line;
    more.resolve();
  };
  run((chunk) => {
    chunks.push(chunk);
    more.resolve();
  }).then(
    (result) => end({ result, telemetry: { traceId } }),
    (error: unknown) => end({ error: toError(error) }),
  );
  while (!last) {
    await more.promise;
    more = Promise.withResolvers();
    yield chunks.splice(0);
  }
  yield [last];
}

/** Calls a function when these have ended, or are left. */
async function* ending<T>(lines: AsyncGenerator<T>, end: () => void): AsyncGenerator<T> {
  try {
    yield* lines;
  } finally {
    end();
  }
}

/** How lines are written. An empty one says nothing, and JSON readers skip it. */
function lineFormat(headers: Readonly<Record<string, string>>): StreamFormat<unknown> {
  return {
    encode: (line) => `${JSON.stringify(line)}\n`,
    keepAlive: '\n',
    headers: { ...safetyHeaders, 'content-type': 'text/plain; charset=utf-8', ...headers },
  };
}
