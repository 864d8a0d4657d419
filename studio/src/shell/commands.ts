import {
  type EditChange,
  type FileDiff,
  type Input,
  isWaymarkError,
  type Message,
  type Part,
  type RemoteAgent,
  type Snapshot,
  type UndoPlan,
} from '../../../src/client/index.ts';
import { type AgentStore, snapshotBefore } from '../../../src/react/index.ts';
import { lastGood } from '../lib/failed-turns.ts';
import { knownSnapshot } from '../lib/known-snapshot.ts';
import { pageSize } from '../lib/message-pages.ts';
import { goTo, type Place } from '../lib/place.ts';
import { lookNow } from '../lib/pulse.ts';
import { watchTurnStart } from '../lib/turn-start.ts';
import { dropToasts, toast } from '../ui/toasts.tsx';
import { openDialog } from './dialogs.ts';
import { closeSheet } from './panels.ts';

/** The commands of the whole page: by buttons and by keys. */
export interface Commands {
  /** Shows the session as it was at a snapshot, or with `undefined` as it is now. Changes nothing. */
  look(snapshotId: string | undefined): void;
  /** Restores a snapshot, and offers to undo it. */
  restore(snapshotId: string, options?: { readonly partial?: boolean }): Promise<void>;
  /** Forks a snapshot into a new session. */
  fork(snapshotId: string): Promise<void>;
  /** Compares a snapshot with another, or with now; with `undefined` ends that. */
  compare(base: string | undefined, withSnapshot?: string): void;
  label(snapshot: Pick<Snapshot, 'snapshotId' | 'label'>): void;
  /**
   * Saves an edited state as a branch and compares it with the one before, unless the session has continued from `head`.
   * Resolves to what went wrong, if something did.
   */
  edit(
    at: { readonly snapshotId: string; readonly head: string | undefined },
    change: EditChange,
    reason: string,
  ): Promise<string | undefined>;
  /** Opens the form for running a turn again with something changed. */
  rerun(snapshot: Pick<Snapshot, 'snapshotId' | 'turnIndex'>): void;
  openSession(sessionId: string | undefined): void;
  /** Sends something in this session; `afresh` in a new one. `false` when the server did not take it. */
  send(
    input: Input,
    options?: { readonly detach?: boolean; readonly afresh?: boolean },
  ): Promise<boolean>;
  /** Sends something else in place of a message: a branch from before it. */
  resend(index: number, content: Part[]): Promise<void>;
}

const continuedMeanwhile =
  'Not saved: the session has continued since you opened this dialog. Copy your text, close the dialog and edit the current state.';

/** The commands of one conversation. */
export function createCommands(
  store: AgentStore,
  agent: RemoteAgent,
  placeNow: () => Place,
  /** The model that the agent uses. */
  modelNow: () => string | undefined = () => undefined,
): Commands {
  const { actions } = store;
  const turnOf = (snapshotId: string): string => {
    const found = knownSnapshot(store.getView(), snapshotId);
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

  /** The snapshot before a message of what is shown, which may be among messages that are not loaded. */
  const turnBefore = async (index: number): Promise<string | undefined> => {
    const { past } = store.getView();
    if (past !== undefined) {
      const { snapshotId } = past;
      for (let before = index; before > 0; ) {
        const page = await agent.getSnapshot(snapshotId, { messages: { last: pageSize, before } });
        const messages = page?.state?.messages ?? [];
        const found = snapshotBefore(messages, messages.length);
        if (found !== undefined) return found;
        before = page?.messageRange?.from ?? 0;
      }
      return undefined;
    }
    for (;;) {
      const { transcript, earlier } = store.getView();
      const found = snapshotBefore(transcript, index - earlier);
      if (found !== undefined || earlier === 0) return found;
      await actions.loadEarlier();
      if (store.getView().earlier === earlier) return undefined;
    }
  };

  const begin = async (): Promise<void> => {
    goTo({ view: 'chat', agent: agent.name });
    await actions.load(undefined);
  };

  /** The plan of a restore that has something to undo, or that does not bring back what was undone. */
  const planOf = async (snapshotId: string): Promise<UndoPlan | undefined> => {
    // An older server, or a store without effects, has none.
    const plan = await agent.planUndo(snapshotId).catch(() => undefined);
    return plan?.effects.some(({ undo }) => undo !== 'impossible') ? plan : undefined;
  };

  /** The files that a restore changes in the folder of the session. */
  const filesOf = async (headId: string, snapshotId: string): Promise<readonly FileDiff[]> => {
    // An older server, or a folder that cannot be read, has none to show.
    const diff = await agent.diff(headId, snapshotId, { workspace: 'now' }).catch(() => undefined);
    return diff?.files ?? [];
  };

  const restored = (snapshotId: string, before: string | undefined): void => {
    goTo(session());
    toast({
      about: 'head',
      text: `Restored ${turnOf(snapshotId)}. Later turns stay in the timeline.`,
      ...(before !== undefined && {
        action: { label: 'Undo', run: () => void commands.restore(before) },
      }),
    });
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
    async restore(snapshotId, options) {
      const before = store.getView().snapshotId;
      if (before === snapshotId) return commands.look(undefined);
      const isWhole = options?.partial !== true;
      const [plan, files] = await Promise.all([
        isWhole ? planOf(snapshotId) : undefined,
        isWhole && before !== undefined ? filesOf(before, snapshotId) : [],
      ]);
      if (plan === undefined && files.length === 0) {
        if (!(await actions.restore(snapshotId, options))) return fault('Could not restore it.');
        restored(snapshotId, before);
        return;
      }
      const [now, then] = await Promise.all(
        [before, snapshotId].map((id) => id && agent.getSnapshot(id, { messages: { last: 200 } })),
      );
      openDialog.set({
        type: 'restore',
        subject: {
          turn: turnOf(snapshotId),
          plan,
          files,
          before: now ? now.state : undefined,
          after: then ? then.state : undefined,
          async restore({ undo, force, workspace }) {
            const how = {
              ...(undo && plan !== undefined && { undo: plan, ...(force && { force }) }),
              ...(!workspace && { workspace }),
            };
            if (!(await actions.restore(snapshotId, how))) {
              return store.getView().error?.message ?? 'Could not restore it.';
            }
            restored(snapshotId, undo ? undefined : before);
            return undefined;
          },
        },
      });
    },
    async fork(snapshotId) {
      const from = session();
      const turn = turnOf(snapshotId);
      const sessionId = await actions.fork(snapshotId);
      if (sessionId === undefined) return fault('Could not fork it.');
      goTo({ ...from, session: sessionId });
      toast({
        text: `Forked ${turn} into a new session.`,
        action: { label: 'Back to the original', run: () => goTo(from) },
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
    async edit({ snapshotId, head }, change, reason) {
      let edited: string;
      try {
        const options = {
          ...(reason !== '' && { reason }),
          ...(head !== undefined && { ifHead: head }),
        };
        edited = (await agent.edit(snapshotId, change, options)).snapshotId;
      } catch (error) {
        if (isWaymarkError(error) && error.status === 'ABORTED') return continuedMeanwhile;
        return error instanceof Error ? error.message : String(error);
      }
      // It is the head already: this reads the session again, and moves nothing if a newer turn is the head by now.
      if (!(await actions.restore(edited, { ifHead: edited }))) {
        await actions.refresh();
        if (store.getView().error) {
          fault('Saved, but the session could not be reloaded.');
          return undefined;
        }
      }
      commands.compare(snapshotId, edited);
      lookNow();
      if (store.getView().snapshotId !== edited) {
        toast({ about: 'head', text: 'Saved as a branch. The session has continued without it.' });
        return undefined;
      }
      toast({
        about: 'head',
        text: 'Saved as a new snapshot. The next message continues from it.',
        ...(head !== undefined && {
          action: { label: 'Undo', run: () => void commands.restore(head) },
        }),
      });
      return undefined;
    },
    rerun: (snapshot) =>
      openDialog.set({ type: 'rerun', agent: agent.name, model: modelNow(), snapshot }),
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
      const { timeline } = store.getView();
      // Nothing continues from a failed turn; the last good snapshot before it is what was meant.
      const from = snapshot === undefined ? undefined : lastGood(timeline, snapshot);
      dropToasts('head');
      if (afresh) await begin();
      else goTo(session());
      const turn = watchTurnStart(store);
      const sent = actions.send(input, {
        detach,
        ...(from !== undefined && { from }),
      });
      lookNow();
      const output = await sent;
      turn.end();
      lookNow();
      // A turn whose session is no longer shown has only its output.
      return turn.hasStarted() || output?.snapshotId !== undefined;
    },
    async resend(index, content) {
      const message: Message = { role: 'user', content };
      const from = (await turnBefore(index)) ?? null;
      goTo(session());
      await actions.send({ message }, { from });
      lookNow();
    },
  };
  return commands;
}
