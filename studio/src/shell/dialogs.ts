import type { EditChange, SessionInfo, Snapshot } from '../../../src/client/index.ts';
import type { EditSubject } from '../edit/edit-subject.ts';
import { createSource } from '../lib/observable.ts';
import type { PageCommand } from './command-list.ts';
import type { RestoreSubject } from './restore-dialog.tsx';

/** The dialog that is open, with what it is about. */
export type OpenDialog =
  | { readonly type: 'help' }
  | {
      readonly type: 'palette';
      /** The commands of every page. */
      readonly commands: readonly PageCommand[];
    }
  | {
      readonly type: 'label';
      readonly snapshot: Pick<Snapshot, 'label'>;
      /** Puts the label on, or with `null` takes it off. */
      readonly save: (label: string | null) => void;
    }
  | {
      readonly type: 'edit';
      readonly subject: EditSubject;
      /** Resolves to what went wrong, if something did. */
      readonly save: (change: EditChange, reason: string) => Promise<string | undefined>;
    }
  | {
      readonly type: 'rerun';
      readonly agent: string;
      readonly model: string | undefined;
      readonly snapshot: Pick<Snapshot, 'snapshotId' | 'turnIndex'>;
    }
  | { readonly type: 'restore'; readonly subject: RestoreSubject }
  | { readonly type: 'rename' | 'delete'; readonly session: SessionInfo };

/** At most one is open. */
export const openDialog = createSource<OpenDialog | undefined>(undefined);
