import { isUtf8 } from 'node:buffer';
import { lstatSync, readdirSync, readFileSync, readlinkSync, type Stats } from 'node:fs';
import { codeOf, WaymarkError } from '../core/error.ts';
import type { TreeEntry, TreeFile, TreeFolder, TreeLink } from './contract/contract.ts';
import { isAlwaysIgnored } from './contract/paths.ts';
import { type FileStat, hashFile, isSameStat, statOf } from './hash-file.ts';
import { addRules, type IgnoreRules, maxRulesBytes, noRules } from './ignore-rules.ts';
import { type FileNode, type FolderNode, isDenied, type ScanRun, skip } from './scan-run.ts';
import { isDue, type Steps } from './slices.ts';

const rulesName = '.gitignore';
const isWindows = process.platform === 'win32';

/** Reads a folder and all below it. Only files whose size, times or inode differ from the last scan are read. */
export function* scanFolder(
  run: ScanRun,
  path: string,
  {
    stat,
    outerRules,
    last,
  }: {
    readonly stat: Stats;
    readonly outerRules: IgnoreRules;
    readonly last: FolderNode | undefined;
  },
): Steps<FolderNode> {
  const folderStat = statOf(stat);
  const isRecent = wasRecent(run, folderStat);
  const listed =
    last?.listing !== undefined && isSameStat(last.listing.stat, folderStat)
      ? last.listing.names
      : undefined;
  let read = listed === undefined ? readNames(run, path) : undefined;
  const rules = readRules(run, path, { names: listed ?? read?.names ?? [], outerRules, last });
  const sameRules = rules === last?.rules;
  if (!sameRules) read ??= readNames(run, path);
  const names = read?.names ?? listed ?? [];

  const files = new Map<string, FileNode>();
  const folders = new Map<string, FolderNode>();
  const entries: [string, TreeEntry][] = [];
  const kept: string[] = [];
  for (const name of names) {
    if (isDue()) yield;
    const child = path === '' ? name : `${path}/${name}`;
    const found = statIfAny(run, child);
    if (found === undefined) continue;
    const isFolder = found.isDirectory();
    const isKnown =
      sameRules && (isFolder ? last.folders.has(name) : name !== rulesName && last.files.has(name));
    if (!isKnown && (run.isExcluded(child) || rules.excludes(child, isFolder))) {
      // The rules themselves count, even if they exclude their own file.
      if (name === rulesName) kept.push(name);
      continue;
    }
    kept.push(name);
    if (isFolder) {
      const known = last?.folders.get(name);
      const folder = yield* scanFolder(run, child, { stat: found, outerRules: rules, last: known });
      folders.set(name, folder);
      if (folder.isEmpty || folder.tree.entries.size > 0) entries.push([name, folder.tree]);
    } else if (found.isFile()) {
      const known = last?.files.get(name) ?? run.loaded(path, name);
      const file = yield* scanFile(run, child, { stat: found, known });
      if (file === undefined) continue;
      files.set(name, file);
      entries.push([name, file.entry]);
    } else {
      const link = readLink(run, child, found);
      if (link !== undefined) entries.push([name, sameLink(last?.tree.entries.get(name), link)]);
    }
  }
  const isWhole = read === undefined || !read.hasOddNames;
  return {
    tree: sameFolder(last?.tree, entries),
    files,
    folders,
    rules,
    listing: isRecent || !isWhole ? undefined : { names: kept, stat: folderStat },
    isEmpty: read === undefined ? last?.isEmpty === true : read.isEmpty,
  };
}

/** Reads whatever is at a path, without rules and without the last scan. */
export function* scanEntry(run: ScanRun, path: string, stat: Stats): Steps<TreeEntry | undefined> {
  if (stat.isFile()) return (yield* scanFile(run, path, { stat, known: undefined }))?.entry;
  if (!stat.isDirectory()) return readLink(run, path, stat);
  return (yield* scanFolder(run, path, { stat, outerRules: noRules, last: undefined })).tree;
}

/** Reads one file, or takes it from the last scan. `undefined` if it is skipped or gone. */
function* scanFile(
  run: ScanRun,
  path: string,
  { stat, known }: { readonly stat: Stats; readonly known: FileNode | undefined },
): Steps<FileNode | undefined> {
  if (stat.size > run.limits.maxFileBytes) return skip(run, path, 'too-large');
  countIn(run, stat.size);
  const found = statOf(stat);
  const isExecutable = isWindows ? known?.entry.isExecutable === true : (stat.mode & 0o100) !== 0;
  if (known !== undefined && !known.isRecent && isSameStat(known.stat, found)) {
    if ((known.entry.isExecutable === true) === isExecutable) return known;
  }
  run.hashed++;
  const hashed = yield* hashFile(`${run.root}/${path}`, run.limits.maxFileBytes);
  if (typeof hashed === 'string') return skip(run, path, hashed);
  if (hashed === undefined) return undefined;
  const { hash, stat: read } = hashed;
  const same = known?.entry.hash === hash && (known.entry.isExecutable === true) === isExecutable;
  const entry: TreeFile = same
    ? known.entry
    : { type: 'file', hash, size: read.size, ...(isExecutable && { isExecutable }) };
  return { entry, stat: read, isRecent: wasRecent(run, read) };
}

function countIn(run: ScanRun, size: number): void {
  run.count++;
  run.size += size;
  const { maxFiles, maxBytes } = run.limits;
  if (run.count > maxFiles) throw tooMuch(run, `more than ${maxFiles} files`, 'maxFiles');
  if (run.size > maxBytes) throw tooMuch(run, `more than ${maxBytes} bytes`, 'maxBytes');
}

function tooMuch({ workspace }: ScanRun, what: string, option: string): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `Workspace "${workspace}" has ${what}. Exclude some with a .gitignore, or raise \`${option}\`.`,
  );
}

function wasRecent({ recentFrom }: ScanRun, { changedAt, modifiedAt }: FileStat): boolean {
  return changedAt >= recentFrom || modifiedAt >= recentFrom;
}

function statIfAny(run: ScanRun, path: string): Stats | undefined {
  try {
    return lstatSync(`${run.root}/${path}`, { throwIfNoEntry: false });
  } catch (error) {
    if (isDenied(error)) return skip(run, path, 'unreadable');
    if (codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

interface Names {
  readonly names: readonly string[];
  readonly isEmpty: boolean;
  /** Whether some names cannot be listed, so that they must be read and reported again. */
  readonly hasOddNames: boolean;
}

function readNames(run: ScanRun, path: string): Names {
  const folder = `${run.root}/${path}`;
  let all: readonly string[];
  try {
    all = readdirSync(folder);
  } catch (error) {
    if (path === '' || !(isDenied(error) || codeOf(error) === 'ENOENT')) throw error;
    if (isDenied(error)) skip(run, path, 'unreadable');
    return { names: [], isEmpty: false, hasOddNames: true };
  }
  const isEmpty = all.length === 0;
  const isOdd = (name: string): boolean => name.includes('\ufffd') || !name.isWellFormed();
  const hasOddNames = all.some(isOdd);
  if (hasOddNames) {
    const prefix = path === '' ? '' : `${path}/`;
    const found = readdirSync(folder, { encoding: 'buffer' });
    for (const name of found) if (!isUtf8(name)) skip(run, prefix + escapeBytes(name), 'name');
    all = found.filter((name) => isUtf8(name)).map((name) => name.toString('utf8'));
  }
  return { names: all.filter((name) => !isAlwaysIgnored(name)).sort(), isEmpty, hasOddNames };
}

/** A name as text, with `\xNN` for bytes that are not ASCII. */
function escapeBytes(name: Uint8Array): string {
  return Array.from(name, (byte) =>
    byte < 128 ? String.fromCharCode(byte) : `\\x${byte.toString(16)}`,
  ).join('');
}

function readRules(
  run: ScanRun,
  path: string,
  {
    names,
    outerRules,
    last,
  }: {
    readonly names: readonly string[];
    readonly outerRules: IgnoreRules;
    readonly last: FolderNode | undefined;
  },
): IgnoreRules {
  if (!names.includes(rulesName)) return outerRules;
  const file = path === '' ? rulesName : `${path}/${rulesName}`;
  let text: string;
  try {
    // As git does: links are not followed.
    const stat = lstatSync(`${run.root}/${file}`);
    if (!stat.isFile() || stat.size > maxRulesBytes) {
      if (stat.isFile()) skip(run, `${file}:1`, 'rules');
      return outerRules;
    }
    text = readFileSync(`${run.root}/${file}`, 'utf8');
  } catch {
    // An unreadable file is listed as such when its turn comes.
    return outerRules;
  }
  const prefix = path === '' ? '' : `${path}/`;
  const rules = addRules(outerRules, { prefix, text, last: last?.rules });
  for (const line of rules.unusable) skip(run, `${file}:${line}`, 'rules');
  return rules;
}

function readLink(run: ScanRun, path: string, stat: Stats): TreeLink | undefined {
  if (!stat.isSymbolicLink()) return skip(run, path, 'special');
  if (isWindows) return skip(run, path, 'unsupported');
  try {
    const target = readlinkSync(`${run.root}/${path}`, { encoding: 'buffer' });
    if (!isUtf8(target)) return skip(run, path, 'name');
    countIn(run, 0);
    return { type: 'link', target: target.toString('utf8') };
  } catch (error) {
    if (isDenied(error)) return skip(run, path, 'unreadable');
    if (['ENOENT', 'EINVAL', 'ENOTDIR'].includes(codeOf(error) ?? '')) return undefined;
    throw error;
  }
}

function sameLink(last: TreeEntry | undefined, link: TreeLink): TreeLink {
  return last?.type === 'link' && last.target === link.target ? last : link;
}

/** The last tree if nothing in it has changed. */
function sameFolder(
  last: TreeFolder | undefined,
  entries: readonly [string, TreeEntry][],
): TreeFolder {
  const isSame =
    last?.entries.size === entries.length &&
    entries.every(([name, entry]) => last.entries.get(name) === entry);
  return isSame ? last : { type: 'folder', entries: new Map(entries) };
}
