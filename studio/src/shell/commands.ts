import type { Input, Message, Part, RemoteAgent, Snapshot } from '../../../src/client/index.ts';
import { type AgentStore, snapshotBefore } from '../../../src/react/index.ts';
import { goTo, type Place } from '../lib/place.ts';
import { lookNow } from '../lib/pulse.ts';
import { dropToasts, toast } from '../ui/toasts.tsx';
import { openDialog } from './dialogs.ts';
import { closeSheet } from './panels.ts';

/** What can be done from anywhere on the page: by buttons and by keys. */
export interface Commands {
  /** Shows the session as it was at a snapshot, or with `undefined` as it is now. Changes nothing. */
  look(snapshotId: string | undefined): void;
  /** Restores a snapshot, and offers to undo it. */
  goBack(snapshotId: string): Promise<void>;
  /** Forks a snapshot into a new session. */
  branch(snapshotId: string): Promise<void>;
  /** Compares a snapshot with another, or with now; with `undefined` ends that. */
  compare(base: string | undefined, withSnapshot?: string): void;
  label(snapshot: Pick<Snapshot, 'snapshotId' | 'label'>): void;
  openSession(sessionId: string | undefined): void;
  /** Sends something in this session; `afresh` in a new one. */
  send(
    input: Input,
    options?: { readonly detach?: boolean; readonly afresh?: boolean },
  ): Promise<void>;
  /** Sends something else in place of a message: a branch from before it. */
  resend(messages: readonly Message[], index: number, content: Part[]): Promise<void>;
}

/** The commands of one conversation. */
export function createCommands(
  store: AgentStore,
  agent: RemoteAgent,
  placeNow: () => Place,
): Commands {
  const { actions } = store;
  const turnOf = (snapshotId: string): string => {
    const found = store.getView().timeline.find((each) => each.snapshotId === snapshotId);
    return found ? `turn ${found.turnIndex + 1}` : 'that snapshot';
  };
  const fault = (text: string): void => {
    const { error } = store.getView();
    toast({ text: error ? `${text} ${error.message}` : text, isFault: true });
  };
  const session = (): Place => {
    const { agent: name = agent.name } = placeNow();
    const { sessionId } = store.getView();
    return { view: 'chat', agent: name, ...(sessionId !== undefined && { session: sessionId }) };
  };

  const begin = async (): Promise<void> => {
    goTo({ view: 'chat', agent: agent.name });
    await actions.load(undefined);
  };

  const commands: Commands = {
    look(snapshotId) {
      closeSheet();
      const { base, snapshot } = placeNow();
      const isPast = snapshotId !== undefined && snapshotId !== store.getView().snapshotId;
      const there = {
        ...session(),
        ...(isPast && { snapshot: snapshotId }),
        ...(base !== undefined && { base }),
      };
      // Stepping through the past leaves one step to come back to, not fifty.
      goTo(there, { replace: snapshot !== undefined });
    },
    async goBack(snapshotId) {
      const before = store.getView().snapshotId;
      if (before === snapshotId) return commands.look(undefined);
      if (!(await actions.restore(snapshotId))) return fault('Could not go back.');
      goTo(session());
      toast({
        about: 'head',
        text: `Went back to ${turnOf(snapshotId)}. What came after it stays in the timeline.`,
        ...(before !== undefined && {
          action: { label: 'Undo', run: () => void commands.goBack(before) },
        }),
      });
    },
    async branch(snapshotId) {
      const from = session();
      const turn = turnOf(snapshotId);
      const sessionId = await actions.fork(snapshotId);
      if (sessionId === undefined) return fault('Could not branch.');
      goTo({ ...from, session: sessionId });
      toast({
        text: `A new session that continues from ${turn}.`,
        action: { label: 'Back to the old one', run: () => goTo(from) },
      });
      lookNow();
    },
    compare(base, withSnapshot) {
      const { snapshotId: head } = store.getView();
      goTo({
        ...session(),
        ...(base !== undefined && { base }),
        ...(withSnapshot !== undefined && withSnapshot !== head && { snapshot: withSnapshot }),
      });
    },
    label(snapshot) {
      const save = async (label: string | null): Promise<void> => {
        if (!(await actions.label(snapshot.snapshotId, label))) fault('Could not label it.');
      };
      openDialog.set({ type: 'label', snapshot, save: (label) => void save(label) });
    },
    openSession(sessionId) {
      closeSheet();
      goTo({
        view: 'chat',
        agent: agent.name,
        ...(sessionId !== undefined && { session: sessionId }),
      });
    },
    async send(input, { detach = false, afresh = false } = {}) {
      const { snapshot } = afresh ? {} : placeNow();
      dropToasts('head');
      if (afresh) await begin();
      else goTo(session());
      const sent = actions.send(input, {
        detach,
        ...(snapshot !== undefined && { snapshotId: snapshot }),
      });
      lookNow();
      await sent;
      lookNow();
    },
    async resend(messages, index, content) {
      const message: Message = { role: 'user', content };
      const from = snapshotBefore(messages, index);
      if (from === undefined) {
        // Before the first turn there is nothing to branch from.
        await begin();
      } else goTo(session());
      await actions.send({ message }, from === undefined ? {} : { from });
      lookNow();
    },
  };
  return commands;
}
