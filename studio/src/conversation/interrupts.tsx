import type { ReactNode } from 'react';
import { useAgentValue } from '../../../src/react/index.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { InterruptCard } from './interrupt-card.tsx';

/** The pending approvals at the end of the conversation. */
export function Interrupts(): ReactNode {
  const { store, info } = useWorkbench();
  const interrupts = useAgentValue(store, (view) => view.interrupts);
  const isBusy = useAgentValue(store, (view) => view.phase !== 'ready');
  return interrupts.map((interrupt) => (
    <InterruptCard
      key={interrupt.key}
      interrupt={interrupt}
      tool={info.tools?.find(({ name }) => name === interrupt.toolName)}
      actions={store.actions}
      isBusy={isBusy}
    />
  ));
}
