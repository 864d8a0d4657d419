import type { SessionInfo } from '../../../src/client/index.ts';
import { lastPage } from '../lib/message-pages.ts';
import { titleOf } from '../lib/turns.ts';
import { useSnapshot } from '../lib/use-snapshot.ts';
import { useWorkbench } from '../shell/workbench.tsx';

/** The message of a session's first turn, while it runs in the background: the session gets its title at the end. */
export function useAsked({ title, running, turnCount }: SessionInfo): string | undefined {
  const { agent } = useWorkbench();
  const isNew = title === undefined && turnCount === 0;
  const pending = useSnapshot(agent, isNew ? running : undefined, { page: lastPage.messages });
  return titleOf(pending?.state?.messages ?? []);
}
