import { internalsOf } from '../../agent/define/create-agent.ts';
import { markReported } from '../../agent/spec/error-reports.ts';
import { isWaymarkError, messageOf, WaymarkError } from '../../core/error.ts';
import { parseIdentity } from './auth.ts';
import type { HandlerOptions } from './handler-options.ts';
import type { ServedApp } from './served-app.ts';

type Hooks = Pick<HandlerOptions, 'auth' | 'authorize'>;

/**
 * The hooks of a server. A `WaymarkError` that a hook throws is its answer; anything else is a failure of the hook, which is
 * reported to the app, and is INTERNAL for the client.
 */
export function guardHooks({ auth, authorize }: Hooks, app: ServedApp): Hooks {
  const guarded =
    <Subject, Answer>(
      name: 'auth' | 'authorize',
      hook: (subject: Subject) => Answer | Promise<Answer>,
      requestOf: (subject: Subject) => Request,
    ) =>
    async (subject: Subject): Promise<Answer> => {
      try {
        return await hook(subject);
      } catch (thrown) {
        if (isWaymarkError(thrown) && thrown.status !== 'INTERNAL') throw thrown;
        if (requestOf(subject).signal.aborted) {
          throw new WaymarkError('CANCELLED', 'The client has left.', { cause: thrown });
        }
        throw reported(app, name, thrown);
      }
    };
  return {
    auth:
      auth &&
      guarded(
        'auth',
        async (request) => parseIdentity(await auth(request)),
        (it) => it,
      ),
    authorize: authorize && guarded('authorize', authorize, ({ request }) => request),
  };
}

// The error for the client, after the owner of the app has got the original.
function reported(app: ServedApp, name: string, cause: unknown): WaymarkError {
  const error = new WaymarkError(
    'INTERNAL',
    `The \`${name}\` of the server failed: ${messageOf(cause)}`,
    { cause, publicMessage: 'An unexpected error occurred.' },
  );
  const [agent] = app.agents();
  // Without an agent there is no app to report to; the request is then logged as failed.
  if (agent !== undefined) {
    markReported(error);
    internalsOf(agent).host.report(cause, { phase: 'auth' });
  }
  return error;
}
