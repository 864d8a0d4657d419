import { isJsonObject, type Json } from '../core/json/json.ts';
import type { Message, Part } from './message.ts';

/** The tools of an agent with skills. */
export const skillToolNames = { load: 'load_skill', read: 'read_skill_file' } as const;

/** A skill that a conversation has used. */
export interface LoadedSkill {
  readonly name: string;
  /** The hash of its files. */
  readonly version: string;
  /** Where it comes from, if another system serves it. */
  readonly origin?: string;
}

/**
 * The skills that messages loaded, or read files of, each with the version that was used last. The results of the tools say so, so that every
 * snapshot, export and branch has it.
 */
export function loadedSkills(messages: readonly Message[]): ReadonlyMap<string, LoadedSkill> {
  const loaded = new Map<string, LoadedSkill>();
  for (const { role, content } of messages) {
    if (role === 'user' || role === 'system') continue;
    for (const part of content) {
      const found = skillIn(part);
      if (found !== undefined) loaded.set(found.name, found);
    }
  }
  return loaded;
}

function skillIn(part: Part): LoadedSkill | undefined {
  if ('toolResponse' in part) return toLoaded(part.toolResponse.name, part.toolResponse.output);
  // The result of a call next to one that waits for a person.
  if ('toolRequest' in part) {
    return toLoaded(part.toolRequest.name, part.metadata?.pendingOutput as Json | undefined);
  }
  return undefined;
}

function toLoaded(tool: string, output: Json | undefined): LoadedSkill | undefined {
  if (tool !== skillToolNames.load && tool !== skillToolNames.read) return undefined;
  if (!isJsonObject(output)) return undefined;
  const { skill: name, version, origin } = output;
  if (typeof name !== 'string' || typeof version !== 'string') return undefined;
  return { name, version, ...(typeof origin === 'string' && { origin }) };
}
