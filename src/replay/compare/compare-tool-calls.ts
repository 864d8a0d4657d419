import { type Json, jsonEqual } from '../../core/json/json.ts';
import type { ToolCall } from '../recording/tool-calls.ts';
import { compareJson } from './compare-json.ts';
import type { Divergence } from './divergence.ts';

/** The tool calls that differ. Calls are paired in order: first those that ask the same, then those of the same tool. */
export function compareToolCalls(
  recorded: readonly ToolCall[],
  replayed: readonly ToolCall[],
): Divergence[] {
  const pairs = pair(recorded, replayed);
  const taken = new Set(pairs.values());
  const divergences: Divergence[] = [];
  for (const [at, call] of recorded.entries()) {
    const path = `/toolCalls/${at}`;
    const other = pairs.get(at);
    const found = other === undefined ? undefined : replayed[other];
    if (found === undefined)
      divergences.push({ kind: 'toolCall', path, change: 'removed', recorded: asked(call) });
    else divergences.push(...compareCall(path, call, found));
  }
  for (const [at, call] of replayed.entries()) {
    if (taken.has(at)) continue;
    const path = `/toolCalls/${at}`;
    divergences.push({ kind: 'toolCall', path, change: 'added', replayed: asked(call) });
  }
  return divergences;
}

/** The replayed call for each recorded one, by place. */
function pair(
  recorded: readonly ToolCall[],
  replayed: readonly ToolCall[],
): ReadonlyMap<number, number> {
  const pairs = new Map<number, number>();
  const free = new Set(replayed.keys());
  const match = (same: (a: ToolCall, b: ToolCall) => boolean): void => {
    for (const [at, call] of recorded.entries()) {
      if (pairs.has(at)) continue;
      const other = [...free].find((place) => same(call, replayed[place] as ToolCall));
      if (other === undefined) continue;
      pairs.set(at, other);
      free.delete(other);
    }
  };
  match((a, b) => a.name === b.name && jsonEqual(a.input, b.input));
  match((a, b) => a.name === b.name);
  return pairs;
}

function compareCall(path: string, recorded: ToolCall, replayed: ToolCall): Divergence[] {
  return [
    ...compareJson('toolCall', `${path}/input`, recorded.input, replayed.input),
    ...compareJson('toolResult', `${path}/output`, recorded.output, replayed.output),
    ...compareJson('toolResult', `${path}/content`, recorded.content, replayed.content),
    ...compareJson('toolResult', `${path}/error`, recorded.error, replayed.error),
    ...compareJson('toolResult', `${path}/interrupt`, recorded.interrupt, replayed.interrupt),
  ];
}

function asked({ name, input }: ToolCall): Json {
  return { name, input };
}
