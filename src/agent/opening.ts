import { WaymarkError } from '../core/error.ts';
import { hashState } from '../session/session-state.ts';
import { clientState } from './init.ts';
import type { Invocation } from './invocation.ts';
import { withoutProviderOptions } from './remote-input.ts';

/** Goes to where the init says, as far as that can be known before the session is claimed. Changes nothing. */
export async function openInvocation(invocation: Invocation): Promise<void> {
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
  const loaded = await spec.ledger.load(scope, { snapshotId });
  if (loaded === undefined) {
    throw new WaymarkError(
      'NOT_FOUND',
      `No snapshot "${snapshotId.slice(0, 64)}" of agent "${spec.name}".`,
    );
  }
  const { snapshot, state } = loaded;
  const { sessionId } = request.init;
  if (sessionId !== undefined && sessionId !== snapshot.sessionId) {
    throw new WaymarkError('INVALID_ARGUMENT', 'The snapshot belongs to another session.');
  }
  if (snapshot.status !== 'succeeded') {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `The snapshot is ${snapshot.status}; only one that succeeded can be gone on from.`,
    );
  }
  invocation.sessionId = snapshot.sessionId;
  invocation.setState(state);
  invocation.opened = loaded;
  invocation.goodId = snapshotId;
  invocation.lastSnapshot = { id: snapshotId, hash: hashState(state), state };
}
