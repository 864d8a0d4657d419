import { type FormEvent, type ReactNode, useState } from 'react';
import type { AgentInfo, SessionInfo } from '../../../src/client/index.ts';
import { EditDialog } from '../edit/edit-dialog.tsx';
import { goTo, usePlace } from '../lib/place.ts';
import { lookNow } from '../lib/pulse.ts';
import { agentOf } from '../lib/server.ts';
import { useSource } from '../lib/use-source.ts';
import { Palette } from '../palette/palette.tsx';
import { RerunDialog } from '../rerun/rerun-dialog.tsx';
import { sessionTitle } from '../sessions/session-title.ts';
import { Dialog } from '../ui/dialog.tsx';
import { FormButtons } from '../ui/form-buttons.tsx';
import { toast } from '../ui/toasts.tsx';
import { openDialog } from './dialogs.ts';
import { HelpDialog } from './help-dialog.tsx';
import { RestoreDialog } from './restore-dialog.tsx';

/** The dialog that is open, if one is. The palette may be opened before the agents are known. */
export function DialogHost({ agents }: { readonly agents: readonly AgentInfo[] }): ReactNode {
  const dialog = useSource(openDialog);
  const close = (): void => openDialog.set(undefined);
  switch (dialog?.type) {
    case 'help':
      return <HelpDialog onClose={close} />;
    case 'palette':
      return <Palette agents={agents} commands={dialog.commands} onClose={close} />;
    case 'label':
      return <LabelDialog label={dialog.snapshot.label} save={dialog.save} onClose={close} />;
    case 'edit':
      return <EditDialog subject={dialog.subject} save={dialog.save} onClose={close} />;
    case 'rerun':
      return (
        <RerunDialog
          agent={dialog.agent}
          model={dialog.model}
          snapshotId={dialog.snapshot.snapshotId}
          turn={dialog.snapshot.turnIndex + 1}
          onClose={close}
        />
      );
    case 'restore':
      return <RestoreDialog subject={dialog.subject} onClose={close} />;
    case 'rename':
      return <RenameDialog session={dialog.session} onClose={close} />;
    case 'delete':
      return <DeleteDialog session={dialog.session} onClose={close} />;
    case undefined:
      return null;
  }
}

function LabelDialog({
  label,
  save,
  onClose,
}: {
  readonly label: string | undefined;
  readonly save: (label: string | null) => void;
  readonly onClose: () => void;
}): ReactNode {
  const [text, setText] = useState(label ?? '');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save(text.trim() === '' ? null : text.trim());
    onClose();
  };
  return (
    <Dialog title="Label this snapshot" onClose={onClose}>
      <form onSubmit={submit}>
        <div className="field">
          <label htmlFor="label-text">Label</label>
          <input
            id="label-text"
            type="text"
            dir="auto"
            value={text}
            maxLength={120}
            onChange={(event) => setText(event.target.value)}
          />
          <p className="quiet">
            A flag in the timeline. Labelled snapshots are kept when old ones are pruned.
          </p>
        </div>
        <FormButtons onCancel={onClose}>
          {text.trim() === '' && label !== undefined ? 'Remove the label' : 'Label'}
        </FormButtons>
      </form>
    </Dialog>
  );
}

function RenameDialog({
  session,
  onClose,
}: {
  readonly session: SessionInfo;
  readonly onClose: () => void;
}): ReactNode {
  const [title, setTitle] = useState(session.title ?? '');
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    onClose();
    const change = { title: title.trim() === '' ? null : title.trim() };
    await attempt('rename the session', () =>
      agentOf(session.agent).updateSession(session.sessionId, change),
    );
    lookNow();
  };
  return (
    <Dialog title="Rename the session" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <div className="field">
          <label htmlFor="session-title">Title</label>
          <input
            id="session-title"
            type="text"
            dir="auto"
            value={title}
            maxLength={200}
            onChange={(event) => setTitle(event.target.value)}
          />
        </div>
        <FormButtons onCancel={onClose}>Rename</FormButtons>
      </form>
    </Dialog>
  );
}

function DeleteDialog({
  session,
  onClose,
}: {
  readonly session: SessionInfo;
  readonly onClose: () => void;
}): ReactNode {
  const place = usePlace();
  const remove = async (): Promise<void> => {
    onClose();
    const isDone = await attempt('delete the session', () =>
      agentOf(session.agent).deleteSession(session.sessionId),
    );
    if (!isDone) return;
    if (place.session === session.sessionId) goTo({ view: 'chat', agent: session.agent });
    toast({ text: 'Deleted.' });
    lookNow();
  };
  return (
    <Dialog title="Delete this session?" onClose={onClose}>
      <p dir="auto">
        This deletes “{sessionTitle(session)}” with its snapshots, files, runs and the sessions of
        its sub-agents. Forks are kept. This cannot be undone.
      </p>
      <div className="buttons">
        <button type="button" className="button danger" onClick={() => void remove()}>
          Delete
        </button>
        <button type="button" className="button" onClick={onClose}>
          Keep it
        </button>
      </div>
    </Dialog>
  );
}

async function attempt(what: string, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    toast({ text: `Could not ${what}. ${reason}`, isFault: true });
    return false;
  }
}
