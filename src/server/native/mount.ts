import { WaymarkError } from '../../core/error.ts';
import { routes } from '../../protocol/routes.ts';
import type { Router, ServerRequest } from '../http/server-context.ts';
import { mountAgents } from './agents.ts';
import { mountEvents } from './events.ts';
import { mountRuns } from './runs.ts';
import { mountSessions } from './sessions.ts';
import { mountSnapshots } from './snapshots.ts';
import { mountTurns } from './turns.ts';

/** The native dialect: REST, and streams of server-sent events. */
export function mountNative(router: Router, served: ServerRequest): void {
  mountAgents(router, served);
  mountTurns(router, served);
  mountSessions(router, served);
  mountSnapshots(router, served);
  mountEvents(router, served);
  mountRuns(router, served);
  // An upgrade never comes here: `serve` takes it before.
  router.get(routes.connect.path, () => {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'This is a WebSocket: connect to it with ws:// or wss://, at a server started by serve().',
    );
  });
}
