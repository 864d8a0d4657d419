import type { SessionInfo, Snapshot } from '../../../src/client/index.ts';
import { createSource } from '../lib/observable.ts';

/** The dialog that is open, with what it is about. */
export type OpenDialog =
  | { readonly type: 'help' }
  | {
      readonly type: 'label';
      readonly snapshot: Pick<Snapshot, 'label'>;
      /** Puts the label on, or with `null` takes it off. */
      readonly save: (label: string | null) => void;
    }
  | { readonly type: 'rename' | 'erase'; readonly session: SessionInfo };

/** At most one is open. */
export const openDialog = createSource<OpenDialog | undefined>(undefined);
