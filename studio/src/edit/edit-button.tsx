import type { ReactNode } from 'react';
import { useAgentValue } from '../../../src/react/index.ts';
import { knownSnapshot } from '../lib/known-snapshot.ts';
import { openDialog } from '../shell/dialogs.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Icon } from '../ui/icon.tsx';
import type { EditSubject } from './edit-subject.ts';

/** Opens the editor for a part of the state. Only states that a session can continue from can be edited. */
export function EditButton({
  what,
  subject,
}: {
  /** The edited thing, for the label of the button. */
  readonly what: string;
  readonly subject: () => EditSubject | undefined;
}): ReactNode {
  const { store, commands, place, info } = useWorkbench();
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const isReady = useAgentValue(store, (view) => view.phase === 'ready');
  const snapshotId = place.snapshot ?? headId;
  const isGood = useAgentValue(
    store,
    (view) => knownSnapshot(view, snapshotId)?.status === 'succeeded',
  );
  if (!info.metadata.timeline || snapshotId === undefined || !isReady || !isGood) return null;
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={`Edit ${what}`}
      title={`Edit ${what}`}
      onClick={() => {
        const edited = subject();
        if (edited === undefined) return;
        const save = commands.edit.bind(commands, { snapshotId, head: headId });
        openDialog.set({ type: 'edit', subject: edited, save });
      }}
    >
      <Icon name="edit" />
    </button>
  );
}
