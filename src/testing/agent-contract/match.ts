import { expect } from 'vitest';
import {
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonEqual,
  toJson,
} from '../../core/json/json.ts';
import type { Message, Part } from '../../protocol/message.ts';
import type { Pattern } from './case.ts';

/** Fails unless a value matches a pattern; the error names the path. */
export function expectMatch(actual: unknown, pattern: Pattern, what: string): void {
  const fault = faultOf(plain(actual), pattern, what);
  if (fault !== undefined) expect.fail(`${fault}\nin ${JSON.stringify(plain(actual), null, 2)}`);
}

/** Whether a value matches a pattern. */
export function matches(actual: unknown, pattern: Pattern): boolean {
  return faultOf(plain(actual), pattern, '') === undefined;
}

function plain(value: unknown): Json | undefined {
  return value === undefined ? undefined : toJson(JSON.parse(JSON.stringify(value)), 'value');
}

function faultOf(actual: Json | undefined, pattern: Pattern, at: string): string | undefined {
  if (isJsonObject(pattern)) {
    if ('$absent' in pattern) return actual === undefined ? undefined : `${at} is there`;
    if ('$any' in pattern) return actual === undefined ? `${at} is not there` : undefined;
    if ('$not' in pattern) return notFault(actual, pattern.$not ?? null, at);
    if ('$told' in pattern) return toldFault(actual, pattern.$told ?? null, at);
    return objectFault(actual, pattern, at);
  }
  if (isJsonArray(pattern)) return arrayFault(actual, pattern, at);
  if (actual !== undefined && jsonEqual(actual, pattern)) return undefined;
  return `${at} is ${JSON.stringify(actual)}, expected ${JSON.stringify(pattern)}`;
}

function notFault(actual: Json | undefined, pattern: Pattern, at: string): string | undefined {
  const fits = faultOf(actual, pattern, at) === undefined;
  return fits ? `${at} is ${JSON.stringify(pattern)}` : undefined;
}

function toldFault(actual: Json | undefined, pattern: Pattern, at: string): string | undefined {
  const said = toldBy((actual ?? []) as unknown as readonly Message[]);
  return jsonEqual(said, pattern)
    ? undefined
    : `${at} says ${JSON.stringify(said)}, expected ${JSON.stringify(pattern)}`;
}

function objectFault(
  actual: Json | undefined,
  pattern: JsonObject,
  at: string,
): string | undefined {
  if (!isJsonObject(actual)) return `${at} is ${JSON.stringify(actual)}, expected an object`;
  for (const [key, value] of Object.entries(pattern)) {
    const fault = faultOf(actual[key], value ?? null, `${at}.${key}`);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function arrayFault(
  actual: Json | undefined,
  pattern: readonly Json[],
  at: string,
): string | undefined {
  if (!isJsonArray(actual)) return `${at} is ${JSON.stringify(actual)}, expected a list`;
  if (actual.length !== pattern.length) {
    return `${at} has ${actual.length} items, expected ${pattern.length}`;
  }
  for (const [index, item] of pattern.entries()) {
    const fault = faultOf(actual[index], item, `${at}[${index}]`);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Messages in short form: `role: text`, tool parts by tool name. */
export function toldBy(messages: readonly Message[]): string[] {
  return messages.map(({ role, content }) => `${role}: ${content.map(saidBy).join('')}`);
}

function saidBy(part: Part): string {
  if ('text' in part) return part.text;
  if ('toolRequest' in part) return `[${part.toolRequest.name}?]`;
  if ('toolResponse' in part) {
    return `[${part.toolResponse.name}: ${JSON.stringify(part.toolResponse.output ?? null)}]`;
  }
  return `[${Object.keys(part)[0]}]`;
}
