import { WaymarkError } from '../../core/error.ts';
import { toJson } from '../../core/json/json.ts';
import { parse } from '../../core/schema/schema.ts';
import { fitsLookup } from '../../protocol/ids.ts';
import type { State } from '../../protocol/state.ts';
import { fromPlainState, type SessionState } from '../../session/session-state.ts';
import { checkSignature, type SignatureSubject } from '../persistence/sign-state.ts';
import { unknownSnapshot } from '../persistence/unknown-snapshot.ts';
import { withInitial } from '../spec/init.ts';
import type { AgentSpec } from '../spec/spec.ts';
import type { InvocationState } from './invocation-state.ts';
import { openedAt, startedWith } from './lineage.ts';
import { withoutProviderOptions } from './remote-input.ts';

/** Whether the init names a state or a snapshot, which is loaded before the session is claimed. */
export function needsOpening({ request: { init } }: InvocationState): boolean {
  return init.state !== undefined || init.snapshotId !== undefined;
}

/** Loads the state or the snapshot that the init names, before the session is claimed. Writes nothing. */
export async function openSession(invocation: InvocationState): Promise<void> {
  const { init } = invocation.request;
  if (init.state !== undefined) {
    const { spec, host, request, position } = invocation;
    position.sessionId = init.state.sessionId ?? position.sessionId;
    const subject = { owner: request.owner, now: host.clock.now() };
    const isForeign = request.remote === true && spec.clientState === undefined;
    const held = isForeign ? withoutProviderOptions(init.state) : init.state;
    const state = await loadClientState(spec, held, subject);
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
  if (loaded === undefined) {
    const otherwise = `No snapshot "${snapshotId.slice(0, 64)}" of agent "${spec.name}".`;
    throw await unknownSnapshot(spec, scope, snapshotId, otherwise);
  }
  const { snapshot } = loaded;
  // The snapshot was read in the caller's scope, so naming its session tells nothing about others.
  if (!fitsLookup({ snapshotId, sessionId }, snapshot.sessionId)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `Snapshot "${snapshotId}" does not belong to session "${sessionId?.slice(0, 64)}", but to session "${snapshot.sessionId}".`,
    );
  }
  if (snapshot.status !== 'succeeded') {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `The snapshot is ${snapshot.status}. A session can continue only from a succeeded snapshot.`,
    );
  }
  invocation.position.sessionId = snapshot.sessionId;
  invocation.moveTo(openedAt(loaded));
}

/** Checks a state that the client held. */
async function loadClientState(
  spec: AgentSpec,
  state: State,
  subject: Omit<SignatureSubject, 'agent'>,
): Promise<SessionState> {
  if (spec.clientState !== undefined) {
    checkSignature(spec.clientState, { ...subject, agent: spec.name }, state);
  }
  const loaded = withInitial(spec, fromPlainState(state));
  if (loaded.custom === undefined || spec.stateSchema === undefined) return loaded;
  const custom = await parse(spec.stateSchema, loaded.custom, 'The custom state');
  return { ...loaded, custom: toJson(custom, 'custom state') };
}
