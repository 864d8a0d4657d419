import { sha256 } from '../../core/json/hash.ts';
import type { Scope } from '../contract/store.ts';

/**
 * Where things lie, relative to the store's directory:
 *
 *     waymark.json                                   the format number
 *     sessions/<owner, or _>/<agent>/<session>/      a session and its forks
 *       journal.jsonl                                one line per change, and one per artifact; runs and events included
 *       files/<hash>.bin                             saved files that its snapshots name
 *       trees/<hash>.tree, trees/<hash>.bin          folders and files of workspaces that its snapshots name
 *     sessions/<owner, or _>/<agent>/<fork>.json     names the folder that contains a fork
 *     runs/<run>.json                                names the folder that contains an open run
 *     requests/<key>.json                            names the folder of the run that was claimed under a request id
 *     spend/<owner, or _>.jsonl                      what an owner has spent
 *     uploads/<run>/<hash>.bin, <hash>.tree          saved files and folders that no snapshot names yet
 *     memory/<owner, or _>.jsonl                     what an owner's turns and calls have remembered
 *     trash/                                         the folder of a deleted session, until it is removed
 *     lock                                           see lock.ts
 */
export const formatFile = 'waymark.json';
export const lockFile = 'lock';
export const ignoreFile = '.gitignore';
export const sessionsFolder = 'sessions';
export const runsFolder = 'runs';
export const requestsFolder = 'requests';
export const spendFolder = 'spend';
export const memoryFolder = 'memory';
export const uploadsFolder = 'uploads';
export const trashFolder = 'trash';
export const journalName = 'journal.jsonl';
export const filesName = 'files';
export const treesName = 'trees';
export const extension = '.jsonl';

/** The paths that version control should leave alone: only running processes need them. */
export const ignored: readonly string[] = [
  `/${lockFile}*`,
  `/${runsFolder}/`,
  `/${requestsFolder}/`,
  `/${uploadsFolder}/`,
  `/${trashFolder}/`,
  '*.tmp',
];

/** The name of a saved file, by the hash of its content. */
export function fileName(hash: string): string {
  return `${hash}.bin`;
}

/** The name of a node of a tree, by the hash of its bytes. */
export function nodeName(hash: string): string {
  return `${hash}.tree`;
}

// Names that Windows reserves for devices.
const reserved = /^(con|prn|aux|nul|com\d|lpt\d)$/;
const plain = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/**
 * The file name for an id from outside. A short lower-case id is its own name; any other becomes a readable beginning and a
 * hash, separated by a `~` that no plain name has. Different ids have different names on file systems without case, too.
 */
function safeName(id: string): string {
  return plain.test(id) && !reserved.test(id) ? id : `${slug(id)}~${shortHash(id)}`;
}

/** The folder with the sessions of a scope. */
export function scopeFolder({ owner, agent }: Scope): string {
  return `${ownerFolder(owner)}/${safeName(agent)}`;
}

/** The folder with all sessions of an owner; `_` is not a valid owner. */
export function ownerFolder(owner: string | undefined): string {
  return `${sessionsFolder}/${owner === undefined ? '_' : safeName(owner)}`;
}

/** The folder of a session that is not a fork. */
export function sessionFolder(scope: Scope, sessionId: string): string {
  return `${scopeFolder(scope)}/${safeName(sessionId)}`;
}

/** The file that names the folder of a fork. */
export function pointerFile(scope: Scope, sessionId: string): string {
  return `${sessionFolder(scope, sessionId)}.json`;
}

/** The file that names the folder of an open run. */
export function runFile(runId: string): string {
  return `${runsFolder}/${safeName(runId)}.json`;
}

/** The file that names the folder of the run that was claimed under a key. */
export function requestFile(key: string): string {
  return `${requestsFolder}/${key}.json`;
}

/** The file with the spend of an owner; an empty name is no owner. */
export function spendFile(owner: string): string {
  return `${spendFolder}/${owner === '' ? '_' : safeName(owner)}${extension}`;
}

/** The file with the memory of an owner; an empty name is no owner. */
export function memoryFile(owner: string): string {
  return `${memoryFolder}/${owner === '' ? '_' : safeName(owner)}${extension}`;
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
