import { WaymarkError } from '../../core/error.ts';
import { fitsLookup } from '../../protocol/lookup.ts';
import { hashState } from '../../session/session-state.ts';
import { clientState } from '../spec/init.ts';
import type { Invocation } from './invocation.ts';
import { withoutProviderOptions } from './remote-input.ts';

/** Goes to where the init says, as far as that can be known before the session is claimed. Changes nothing. */
export async function openSession(invocation: Invocation): Promise<void> {
  const { init } = invocation.request;
  if (init.state !== undefined) {
    invocation.sessionId = init.state.sessionId ?? invocation.sessionId;
    const { spec, host, request } = invocation;
    const subject = { owner: request.owner, now: host.clock.now() };
    const isForeign = request.remote === true && spec.clientState === undefined;
    const held = isForeign ? withoutProviderOptions(init.state) : init.state;
    invocation.setState(await clientState(spec, held, subject));
    invocation.turnIndex = invocation.working.state.history.countUserMessages() - 1;
  } else if (init.snapshotId !== undefined) {
    await openSnapshot(invocation, init.snapshotId);
  }
}

async function openSnapshot(invocation: Invocation, snapshotId: string): Promise<void> {
  const { spec, scope, request } = invocation;
  const { sessionId } = request.init;
  const loaded = await spec.turnStore.load(scope, { snapshotId });
  if (loaded === undefined || !fitsLookup({ snapshotId, sessionId }, loaded.snapshot.sessionId)) {
    const where = sessionId === undefined ? '' : ` in session "${sessionId.slice(0, 64)}"`;
    throw new WaymarkError(
      'NOT_FOUND',
      `No snapshot "${snapshotId.slice(0, 64)}" of agent "${spec.name}"${where}.`,
    );
  }
  const { snapshot, state } = loaded;
  if (snapshot.status !== 'succeeded') {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `The snapshot is ${snapshot.status}. A session can continue only from a succeeded snapshot.`,
    );
  }
  invocation.sessionId = snapshot.sessionId;
  invocation.setState(state);
  invocation.opened = loaded;
  invocation.goodId = snapshotId;
  invocation.lastSnapshot = { id: snapshotId, hash: hashState(state), state };
}
