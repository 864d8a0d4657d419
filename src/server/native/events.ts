import { routes } from '../../protocol/routes.ts';
import { ownerOf } from '../http/auth.ts';
import { logFault } from '../http/log.ts';
import { openCall, type Router, type ServerContext } from '../http/server-context.ts';
import { runFeed, startingWith, throwFirstError } from '../stream/feed.ts';
import { acquireStreamSlot, waitForAcceptance } from '../stream/stream-response.ts';
import { requestIdOf } from '../stream/turn.ts';
import { nativeFormat } from './format.ts';
import { lastEventId } from './request.ts';
import { snapshotParam } from './snapshots.ts';

/** `watch`: the events of a run, live or past, from the last one a reader has seen. */
export function mountEvents(router: Router, serverContext: ServerContext): void {
  router.get(routes.watch.path, async (c) => {
    const snapshotId = snapshotParam(c);
    const after = lastEventId(c);
    const { agent, caller } = await openCall(serverContext, c, 'watch', { snapshotId });
    const slot = acquireStreamSlot(serverContext, c, { own: false });
    const feed = runFeed(agent, snapshotId, {
      ...ownerOf(caller),
      reader: slot.signal,
      requestId: requestIdOf(c),
      onFault: (error) => logFault(serverContext, error, c.get('logged')),
      ...(after !== undefined && { after }),
    });
    const first = feed.next();
    try {
      await waitForAcceptance(serverContext, first.then(throwFirstError), 250);
    } catch (error) {
      slot.leave();
      throw error;
    }
    return slot.respond(startingWith(first, feed), nativeFormat(c.req.url));
  });
}
