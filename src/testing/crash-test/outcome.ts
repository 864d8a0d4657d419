import { defined, isJsonArray, isJsonObject, type Json, jsonEqual } from '../../core/json/json.ts';
import { escapeStep } from '../../core/json/pointer.ts';
import type { Message } from '../../protocol/message.ts';
import type { LostState } from './crash-report.ts';

/** A place where two runs ended differently. */
export type Difference = Pick<LostState, 'path' | 'expected' | 'actual'>;

/** The places where two outcomes differ; a value that only one of them has counts as one. */
export function differences(
  expected: Json | undefined,
  actual: Json | undefined,
  path = '',
): readonly Difference[] {
  if (expected === undefined || actual === undefined || !isSameKind(expected, actual)) {
    const isSame = expected !== undefined && actual !== undefined && jsonEqual(expected, actual);
    return isSame || expected === actual ? [] : [{ path, ...defined({ expected, actual }) }];
  }
  const [a, b] = [expected, actual] as unknown as [Record<string, Json>, Record<string, Json>];
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].flatMap((key) => differences(a[key], b[key], `${path}/${escapeStep(key)}`));
}

function isSameKind(a: Json, b: Json): boolean {
  return (isJsonArray(a) && isJsonArray(b)) || (isJsonObject(a) && isJsonObject(b));
}

/** Messages without metadata and the ids of tool calls, which differ between runs. */
export function shownMessages(messages: readonly Message[]): Json {
  const shown = messages.map(({ role, content }) => ({
    role,
    content: content.map(({ metadata: _, ...part }) => {
      if ('toolRequest' in part) return { toolRequest: { ...part.toolRequest, ref: '' } };
      return 'toolResponse' in part ? { toolResponse: { ...part.toolResponse, ref: '' } } : part;
    }),
  }));
  return shown as unknown as Json;
}

const ids = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32,}\b/gi;
const times = /\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?/g;

/** A value without ids and times, which differ between runs. */
export function masked(value: Json): Json {
  if (typeof value === 'string') return value.replace(ids, '<id>').replace(times, '<time>');
  if (typeof value === 'number') return value > 1.5e12 && value < 4e12 ? '<time>' : value;
  if (isJsonArray(value)) return value.map(masked);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, masked(item ?? null)]),
  );
}

export function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
