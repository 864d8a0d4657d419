import { WaymarkError } from '../../core/error.ts';
import { fitsLookup } from '../../protocol/lookup.ts';
import { clientState } from '../spec/init.ts';
import type { InvocationState } from './invocation-state.ts';
import { openedAt, startedWith } from './lineage.ts';
import { withoutProviderOptions } from './remote-input.ts';

/** Goes to where the init says, as far as that can be known before the session is claimed. Changes nothing. */
export async function openSession(invocation: InvocationState): Promise<void> {
  const { init } = invocation.request;
  if (init.state !== undefined) {
    const { spec, host, request, position } = invocation;
    position.sessionId = init.state.sessionId ?? position.sessionId;
    const subject = { owner: request.owner, now: host.clock.now() };
    const isForeign = request.remote === true && spec.clientState === undefined;
    const held = isForeign ? withoutProviderOptions(init.state) : init.state;
    const state = await clientState(spec, held, subject);
    invocation.moveTo(startedWith(state));
    position.turnIndex = state.history.countUserMessages() - 1;
  } else if (init.snapshotId !== undefined) {
    await openSnapshot(invocation, init.snapshotId);
  }
}

async function openSnapshot(invocation: InvocationState, snapshotId: string): Promise<void> {
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
  const { snapshot } = loaded;
  if (snapshot.status !== 'succeeded') {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `The snapshot is ${snapshot.status}. A session can continue only from a succeeded snapshot.`,
    );
  }
  invocation.position.sessionId = snapshot.sessionId;
  invocation.moveTo(openedAt(loaded));
}
