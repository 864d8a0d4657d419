import { WaymarkError } from '../../core/error.ts';
import { routes } from '../../protocol/routes.ts';
import type { Router, ServerContext } from '../http/server-context.ts';
import { mountAgents } from './agents.ts';
import { mountArtifacts } from './artifacts.ts';
import { mountEvents } from './events.ts';
import { mountRuns } from './runs.ts';
import { mountSessions } from './sessions.ts';
import { mountSnapshots } from './snapshots.ts';
import { mountTurns } from './turns.ts';
import { mountUsage } from './usage.ts';

/** The native dialect: REST, and streams of server-sent events. */
export function mountNative(router: Router, serverContext: ServerContext): void {
  mountAgents(router, serverContext);
  mountTurns(router, serverContext);
  mountSessions(router, serverContext);
  mountSnapshots(router, serverContext);
  mountArtifacts(router, serverContext);
  mountEvents(router, serverContext);
  mountRuns(router, serverContext);
  mountUsage(router, serverContext);
  // An upgrade never comes here: `serve` takes it before.
  router.get(routes.connect.path, () => {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'This is a WebSocket: connect to it with ws:// or wss://, at a server started by serve().',
    );
  });
}
