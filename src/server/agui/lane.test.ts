import { expect, test } from 'vitest';
import { Lane } from './lane.ts';
import type { AguiEvent } from './shapes.ts';

test('a call whose input is null has empty arguments, as in the stored thread', () => {
  const events: AguiEvent[] = [];
  const lane = new Lane((event) => events.push(event));
  lane.request({ toolRequest: { name: 'clock', ref: '1', input: null } }, 'm');
  expect(events.map(({ type, delta }) => [type, delta])).toContainEqual(['TOOL_CALL_ARGS', '{}']);
});
