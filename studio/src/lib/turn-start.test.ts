import { expect, test } from 'vitest';
import type { WireTypes } from '../../../src/client/index.ts';
import { createEmitter } from '../../../src/core/async/emitter.ts';
import { type AgentView, createAgentStore } from '../../../src/react/index.ts';
import { watchTurnStart } from './turn-start.ts';

test.each<[string, AgentView['phase'][], boolean]>([
  ['a turn that started', ['sending', 'running', 'ready'], true],
  ['a turn that was stopped early and started', ['sending', 'stopping', 'running'], true],
  ['a turn that was refused', ['sending', 'ready'], false],
  ['a run of another client', ['loading', 'running', 'ready'], false],
  ['a running session that was opened meanwhile', ['sending', 'loading', 'running'], false],
  ['a later turn', ['sending', 'ready', 'sending', 'running'], false],
])('%s', (_, phases, expected) => {
  let view = createAgentStore<WireTypes>({ agent: {} as never }).initialView;
  const changed = createEmitter();
  const turn = watchTurnStart({ getView: () => view, subscribe: changed.subscribe });
  for (const phase of phases) {
    view = { ...view, phase };
    changed.emit();
  }
  expect(turn.hasStarted()).toBe(expected);
  turn.end();
  expect(changed.size).toBe(0);
});
