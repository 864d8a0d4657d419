import * as v from 'valibot';
import { WaymarkError } from '../../core/error.ts';
import { currentTrace, inSpan } from '../../core/trace.ts';
import { ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { short } from '../http/errors.ts';
import { jsonResponse } from '../http/json-response.ts';
import { logFault } from '../http/log.ts';
import { requireLoopback } from '../http/origin.ts';
import {
  checkCall,
  type MountedProtocol,
  type Router,
  type ServerContext,
} from '../http/server-context.ts';
import { acquireStreamSlot } from '../stream/stream-response.ts';
import { requestIdOf } from '../stream/turn.ts';
import { createActive } from './active.ts';
import { toReflectionError } from './error.ts';
import { actionLines, ending, lineFormat } from './lines.ts';
import { findAction, listActions, type RunRequest } from './run-action.ts';

const anything = v.optional(v.unknown());

const runBody = v.looseObject({
  key: v.string(),
  input: anything,
  init: anything,
  context: v.optional(v.nullable(v.record(v.string(), v.unknown()))),
});

/** The calls of Genkit's development tools. */
export const reflectionProtocol: MountedProtocol = { name: 'reflection', mount: mountReflection };

/** The calls of Genkit's development tools, for clients on this machine only. */
function mountReflection(router: Router, serverContext: ServerContext): void {
  const active = createActive();
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
    await checkCall(serverContext, { request: c.req.raw, caller, operation: 'listAgents' });
    return jsonResponse(listActions(serverContext.app, caller));
  });
  router.get('/api/envs', () => jsonResponse(['dev']));
  router.post('/api/notify', (c) => c.text('OK'));

  router.post('/api/runAction', async (c) => {
    const body = await readBody(c, runBody, { what: 'action call', ...serverContext });
    const caller = c.get('caller');
    // Who calls, and what for, is for `auth` to say, not for the caller.
    const { owner: _, ...given } = body.context ?? {};
    const context = serverContext.options.auth ? {} : given;
    const { key } = body;
    const asked = { request: c.req.raw, caller, operation: 'runAction', action: key } as const;
    await checkCall(serverContext, asked);
    const action = findAction(serverContext.app, key, caller);
    const does = action.does?.(body);
    if (does) await checkCall(serverContext, { ...asked, ...does });
    const request: RunRequest = {
      ...body,
      context: { ...context, ...caller.context, ...ownerOf(caller) },
      requestId: requestIdOf(c),
    };
    return inSpan(`run ${key.slice(0, 100)}`, {}, async () => {
      const traceId = currentTrace()?.traceparent.split('-')[1] ?? crypto.randomUUID();
      const headers = { 'x-genkit-trace-id': traceId };
      const toError = (error: unknown): ReturnType<typeof toReflectionError> => {
        logFault(serverContext, error, c.get('logged'));
        return toReflectionError(error, traceId);
      };
      if (c.req.query('stream') === 'true') {
        const slot = acquireStreamSlot(serverContext, c);
        const run = active.begin(traceId, caller, slot.signal);
        const lines = actionLines(
          (onChunk) => action.run(request, { ...run, onChunk }),
          traceId,
          toError,
        );
        return slot.respond(ending(lines, run.end), lineFormat(headers));
      }
      const run = active.begin(traceId, caller, c.req.raw.signal);
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
    const { traceId } = await readBody(c, schema, { what: 'cancel', ...serverContext });
    if (!active.cancel(traceId, c.get('caller'))) {
      throw new WaymarkError('NOT_FOUND', `No action ${short(traceId)} is running.`);
    }
    return jsonResponse({ message: 'Action cancelled' });
  });
}
