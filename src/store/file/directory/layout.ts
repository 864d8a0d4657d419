import { sha256 } from '../../../core/json/hash.ts';
import type { Scope } from '../../contract/store.ts';

/**
 * Where things lie, relative to the store's directory:
 *
 *     waymark.json                                   the format number
 *     sessions/<owner, or _>/<agent>/<session>/      a session and its forks
 *       journal.jsonl                                one line a change: the truth
 *       artifacts/<hash>.json                        artifacts, by content
 *       artifacts/chunks.jsonl                       their long texts, in chunks
 *       sweep.tmp                                    there while unused artifacts are removed
 *       artifacts/<hash>.bin                         their data, and files
 *     sessions/<owner, or _>/<agent>/<fork>.json     names the folder that a fork lives in
 *     runs/<session>~<hash>.jsonl                    the run that works on a session; nothing while there is none
 *     requests/<key>.json                            the run that was claimed under a request id, for a while
 *     events/<run>.jsonl                             what a run streamed, until shortly after its end
 *     spend/<owner, or _>.jsonl                      one line for what each turn of an owner has spent
 *     uploads/<run>/<hash>.bin                       files that a run has stored and no snapshot names yet
 *     dead/<run>.json                                a run that was given up, until it is retried
 *     trash/                                         folders of deleted sessions, until they are removed
 *     lock, lock-mark, intent.json                   see lock.ts, holder-mark.ts and intent.ts
 */
export const formatFile = 'waymark.json';
export const lockFile = 'lock';
export const intentFile = 'intent.json';
export const ignoreFile = '.gitignore';
export const sessionsFolder = 'sessions';
export const runsFolder = 'runs';
export const eventsFolder = 'events';
export const deadFolder = 'dead';
export const requestsFolder = 'requests';
export const spendFolder = 'spend';
export const uploadsFolder = 'uploads';
export const journalName = 'journal.jsonl';
export const artifactsName = 'artifacts';
export const chunksName = 'chunks.jsonl';
export const sweepName = 'sweep.tmp';
export const trashFolder = 'trash';

/** The name of a file with data, by the hash of its content. */
export function dataName(hash: string): string {
  return `${hash}.bin`;
}

/** What version control should leave alone: what only running processes need. */
export const ignored: readonly string[] = [
  `/${lockFile}*`,
  `/${intentFile}`,
  `/${runsFolder}/`,
  `/${eventsFolder}/`,
  `/${deadFolder}/`,
  `/${requestsFolder}/`,
  `/${trashFolder}/`,
  `/${uploadsFolder}/`,
  '*.tmp',
];

// Names that Windows keeps for devices.
const reserved = /^(con|prn|aux|nul|com\d|lpt\d)$/;
const plain = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/**
 * The file name for an id that came from outside. A short lower-case id is its own name; any other becomes a readable
 * beginning and a hash, told apart by a `~` that no plain name has. Names that differ, differ on file systems without case too.
 */
export function safeName(id: string): string {
  return plain.test(id) && !reserved.test(id) ? id : `${slug(id)}~${shortHash(id)}`;
}

/** The folder that holds the sessions of a scope. */
export function scopeFolder({ owner, agent }: Scope): string {
  return `${ownerFolder(owner)}/${safeName(agent)}`;
}

/** The folder that holds everything of an owner, over all agents; `_` is not a valid owner. */
export function ownerFolder(owner: string | undefined): string {
  return `${sessionsFolder}/${owner === undefined ? '_' : safeName(owner)}`;
}

/** The file of the run that holds a session; there is at most one. */
export function runFile({ owner, agent }: Scope, sessionId: string): string {
  const hash = shortHash([owner ?? null, agent, sessionId]);
  return `${runsFolder}/${slug(sessionId)}~${hash}.jsonl`;
}

export function eventsFile(runId: string): string {
  return `${eventsFolder}/${safeName(runId)}.jsonl`;
}

/** The file of what an owner has spent. */
export function spendFile(owner: string): string {
  return `${spendFolder}/${owner === '' ? '_' : safeName(owner)}.jsonl`;
}

export function deadFile(runId: string): string {
  return `${deadFolder}/${safeName(runId)}.json`;
}

function slug(id: string): string {
  return id
    .slice(0, 200)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, 36)
    .replace(/-$/, '');
}

// As JSON, because a lone surrogate has no UTF-8 encoding and two of them would hash alike.
function shortHash(id: unknown): string {
  return sha256(JSON.stringify(id)).slice(0, 32);
}
