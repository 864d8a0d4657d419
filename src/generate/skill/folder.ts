import type { Stats } from 'node:fs';
import { invalid, isWaymarkError, type WaymarkError } from '../../core/error.ts';
import { fileSystem } from '../../core/file-system.ts';
import {
  checkBodySize,
  checkFrontMatter,
  hashOf,
  parseSkillText,
  type Skill,
  type SkillFile,
  type SkillSource,
  skillFile,
  skillLimits,
} from './skill.ts';

/** The skills in the folders of a folder, or the one skill that the folder is. They are looked for once, and read again when they are loaded. */
export function folderSkills(folder: string): SkillSource {
  let listing: Promise<readonly Skill[]> | undefined;
  /** A skill that is up to date in the list once it was read again. */
  const listed = (skill: Skill): Skill => ({
    ...skill,
    async refresh() {
      const fresh = listed(await skill.refresh());
      listing = listing?.then((all) =>
        all.map((each) => (each.name === fresh.name ? fresh : each)),
      );
      return fresh;
    },
  });
  return {
    name: folder,
    listSkills() {
      listing ??= readSkills(folder).then(
        (skills) => skills.map(listed),
        (error: unknown) => {
          listing = undefined;
          throw error;
        },
      );
      return listing;
    },
  };
}

async function readSkills(folder: string): Promise<readonly Skill[]> {
  const { fs, path } = fileSystem();
  const root = await fs.realpath(folder).catch((cause: unknown) => {
    throw invalid(
      `There is no folder "${folder}" with skills. \`skills\` is relative to the working directory.`,
      { cause },
    );
  });
  const entries = await fs.readdir(root, { withFileTypes: true }).catch((cause: unknown) => {
    throw unreadable(`the folder "${folder}"`, cause);
  });
  if (entries.some(({ name }) => name === skillFile)) {
    return [await readSkill(root, `"${folder}"`, path.basename(path.resolve(folder)))];
  }
  const folders: string[] = [];
  for (const entry of entries) {
    if (isHidden(entry.name)) continue;
    const at = path.join(root, entry.name);
    if (entry.isSymbolicLink()) await checkInside(at, root, `"${folder}/${entry.name}"`);
    if ((await fs.stat(at)).isDirectory()) folders.push(entry.name);
  }
  if (folders.length > skillLimits.perSource) {
    throw invalid(
      `The folder "${folder}" has ${folders.length} skills; the limit is ${skillLimits.perSource}.`,
    );
  }
  return await Promise.all(
    folders.sort().map((name) => readSkill(path.join(root, name), `"${folder}/${name}"`, name)),
  );
}

async function readSkill(folder: string, shown: string, folderName: string): Promise<Skill> {
  const { fs, path } = fileSystem();
  const what = `the skill ${shown}`;
  const root = await fs.realpath(folder).catch((cause: unknown) => {
    throw unreadable(what, cause);
  });
  const paths = await filesIn(root, what);
  if (!paths.has(skillFile)) {
    throw invalid(
      `The skill ${shown} has no file ${skillFile}. Add one, or move the folder elsewhere.`,
    );
  }
  let total = 0;
  const files: SkillFile[] = [];
  let source: Uint8Array = new Uint8Array();
  for (const [file, { size }] of paths) {
    total += size;
    if (file === skillFile) checkBodySize(size, `${skillFile} of ${what}`);
    if (total > skillLimits.bytes) {
      throw invalid(
        `The skill ${shown} has more than ${skillLimits.bytes} bytes in its files. Move large files elsewhere.`,
      );
    }
    const bytes = await fs.readFile(path.join(root, file)).catch((cause: unknown) => {
      throw unreadable(`"${file}" of ${what}`, cause);
    });
    if (file === skillFile) source = bytes;
    files.push({ path: file, size: bytes.length, hash: hashOf(bytes) });
  }
  const { frontMatter } = await parseSkillText(source, what);
  return {
    ...checkFrontMatter(frontMatter, folderName, what),
    frontMatter,
    files,
    folder: root,
    read: async (file) => new Uint8Array(await fs.readFile(path.join(root, file))),
    // A model may get the error, and needs no path of the machine.
    refresh: () => readSkill(folder, `"${folderName}"`, folderName),
  };
}

/** The files below a folder by path, sorted. Links lead to files inside of it. */
async function filesIn(root: string, what: string): Promise<ReadonlyMap<string, Stats>> {
  const { fs, path } = fileSystem();
  const found: [string, Stats][] = [];
  const visit = async (below: string): Promise<void> => {
    for (const entry of await fs.readdir(path.join(root, below), { withFileTypes: true })) {
      if (isHidden(entry.name)) continue;
      const file = below === '' ? entry.name : `${below}/${entry.name}`;
      const at = path.join(root, file);
      if (entry.isDirectory()) {
        await visit(file);
        continue;
      }
      if (entry.isSymbolicLink()) await checkInside(at, root, `"${file}" of ${what}`);
      const stats = await fs.stat(at);
      if (!stats.isFile()) {
        throw invalid(`"${file}" of ${what} is neither a file nor a folder. Remove it.`);
      }
      found.push([file, stats]);
      if (found.length > skillLimits.files) {
        throw invalid(
          `There are more than ${skillLimits.files} files in ${what}. Remove some of them.`,
        );
      }
    }
  };
  try {
    await visit('');
  } catch (error) {
    throw isWaymarkError(error) ? error : unreadable(what, error);
  }
  return new Map(found.sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function checkInside(link: string, root: string, what: string): Promise<void> {
  const { fs, path } = fileSystem();
  const target = await fs.realpath(link).catch((cause: unknown) => {
    throw invalid(`${what} is a link to a file that does not exist. Remove it.`, { cause });
  });
  if (target.startsWith(root + path.sep)) return;
  throw invalid(`${what} is a link out of its folder. Replace it by a copy.`);
}

// What editors, version control and interpreters leave is no part of a skill.
function isHidden(name: string): boolean {
  return name.startsWith('.') || name === 'node_modules' || name === '__pycache__';
}

// The message of the cause has a path of the machine, and a model may get this one.
function unreadable(what: string, cause: unknown): WaymarkError {
  const { code = 'unknown error' } = cause as { readonly code?: string };
  return invalid(`Cannot read ${what} (${code}).`, { cause });
}
