import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';

const text = v.pipe(v.string(), v.trim(), v.nonEmpty());

const data = v.strictObject({
  asOf: text,
  systems: v.record(v.string(), v.strictObject({ name: text, package: v.optional(text) })),
  tasks: v.array(
    v.strictObject({
      /** The folder of the task. */
      id: text,
      name: text,
      about: text,
      /** What a reader should know about the code of a library. */
      notes: v.optional(v.record(v.string(), text)),
      /** Why Waymark needs more than 20 % more than the shortest of the others. */
      longer: v.optional(text),
      /** Libraries without the task: what they have instead, and the page or type that says so. */
      notOffered: v.optional(v.record(v.string(), v.strictObject({ text, source: text }))),
    }),
  ),
});

type Data = v.InferOutput<typeof data>;
type Task = Data['tasks'][number];

/** The size of a task's code in one library. */
export interface Size {
  readonly lines: number;
  readonly characters: number;
}

/** A task with its size in each library; absent where a library does not offer it. */
export interface Row {
  readonly task: Task;
  readonly sizes: Readonly<Record<string, Size | undefined>>;
}

/** The tasks with their sizes, and what an application sets up once. */
export interface Ergonomics {
  readonly data: Data;
  /** The packages that were compared, with their versions. */
  readonly versions: readonly string[];
  readonly setup: Row['sizes'];
  readonly rows: readonly Row[];
}

const ours = 'waymark';
/** How much longer than the shortest of the others a task may be without an explanation. */
const allowed = 1.2;

/** Measures the files of bench/ergonomics. Throws when one is missing, or Waymark is longer without an explanation. */
export function readErgonomics(root: string): Ergonomics {
  const folder = join(root, 'bench/ergonomics');
  const json = (name: string): unknown => JSON.parse(readFileSync(join(folder, name), 'utf8'));
  const parsed = v.parse(data, json('tasks.json'));
  const { dependencies } = json('package.json') as { dependencies: Record<string, string> };
  const ids = Object.keys(parsed.systems);
  const sizeOf = (path: string): Size | undefined => {
    const found = [`${path}.ts`, `${path}.tsx`].find((name) => existsSync(join(folder, name)));
    return found === undefined
      ? undefined
      : measure(readFileSync(join(folder, found), 'utf8'), found);
  };
  const sizes = (place: string) => Object.fromEntries(ids.map((id) => [id, sizeOf(place + id)]));
  const rows = parsed.tasks.map((task) => ({ task, sizes: sizes(`tasks/${task.id}/`) }));
  for (const row of rows) checkRow(row, ids);
  return {
    data: parsed,
    versions: Object.values(parsed.systems).flatMap(({ package: from }) =>
      from === undefined ? [] : `${from} ${dependencies[from]}`,
    ),
    setup: sizes('given/'),
    rows,
  };
}

/**
 * The code between `// #region task` and `// #endregion`, without blank lines, comments (which have lines of their own),
 * and indentation.
 */
export function measure(source: string, name: string): Size {
  const parts = [...source.matchAll(/^\s*\/\/ #region task\n([\s\S]*?)^\s*\/\/ #endregion$/gm)];
  if (parts.length === 0 && /\btasks\//.test(name)) {
    throw new Error(`${name} has no region "task".`);
  }
  const lines = parts
    .flatMap(([, code = '']) => code.split('\n'))
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('//'));
  return { lines: lines.length, characters: lines.reduce((sum, line) => sum + line.length, 0) };
}

/** Throws when a library neither has the task nor is said not to offer it, and when a length lacks its explanation. */
export function checkRow({ task, sizes }: Row, ids: readonly string[]): void {
  for (const id of ids) {
    const isExcused = task.notOffered?.[id] !== undefined;
    if (isExcused === (sizes[id] !== undefined)) {
      throw new Error(
        isExcused
          ? `tasks.json says that ${id} does not offer "${task.name}", but there is code for it.`
          : `There is no code for "${task.name}" in ${id}: write it, or add the reason to tasks.json.`,
      );
    }
  }
  const tooLong = isLonger({ task, sizes });
  if (tooLong && task.longer === undefined) {
    throw new Error(
      `"${task.name}" is more than 20 % longer in Waymark than in another library. Shorten it, or explain it in tasks.json.`,
    );
  }
  if (!tooLong && task.longer !== undefined) {
    throw new Error(`tasks.json explains why "${task.name}" is long, which it is not.`);
  }
}

/** Whether Waymark has more than 20 % more lines, or characters, than the shortest of the others. */
function isLonger({ sizes }: Row): boolean {
  const { [ours]: own, ...rest } = sizes;
  const others = Object.values(rest).filter((size) => size !== undefined);
  if (own === undefined || others.length === 0) return false;
  return (['lines', 'characters'] as const).some(
    (unit) => own[unit] > allowed * Math.min(...others.map((size) => size[unit])),
  );
}

/** Lines and characters of every task, one column per library. The shortest of a row is bold. */
export function ergonomicsTable({ data: { systems }, setup, rows }: Ergonomics): string {
  const ids = Object.keys(systems);
  const complete = rows.filter(({ sizes }) => ids.every((id) => sizes[id]));
  const total = Object.fromEntries(
    ids.map((id) => [id, sum(complete.flatMap(({ sizes }) => sizes[id] ?? []))]),
  );
  const lines = [
    ['task', ...Object.values(systems).map(({ name }) => name)],
    ['---', ...ids.map(() => '---:')],
    ...rows.map(({ task, sizes }) => [task.name, ...cells(sizes, ids)]),
    [`the ${complete.length} tasks that all libraries offer`, ...cells(total, ids)],
    ['set up once', ...ids.map((id) => cell(setup[id] ?? sum([])))],
  ];
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n');
}

function cells(sizes: Row['sizes'], ids: readonly string[]): string[] {
  const shortest = Math.min(...ids.map((id) => sizes[id]?.characters ?? Number.POSITIVE_INFINITY));
  return ids.map((id) => {
    const size = sizes[id];
    if (size === undefined) return '–';
    return size.characters === shortest ? `**${cell(size)}**` : cell(size);
  });
}

const cell = ({ lines, characters }: Size): string =>
  `${lines} / ${characters.toLocaleString('en')}`;

const sum = (sizes: readonly Size[]): Size => ({
  lines: sizes.reduce((all, { lines }) => all + lines, 0),
  characters: sizes.reduce((all, { characters }) => all + characters, 0),
});

/** The versions; then what each task asks for, why Waymark is longer where it is, and what the libraries without it have instead. */
export function ergonomicsNotes({ data: { asOf, systems }, versions, rows }: Ergonomics): string {
  const nameOf = (id: string): string => systems[id]?.name ?? id;
  const tasks = rows
    .map(({ task }) => {
      const { name, about, longer, notes = {}, notOffered = {} } = task;
      const lines = [
        ...(longer === undefined ? [] : [`  - Waymark is longer: ${longer}`]),
        ...Object.entries(notes).map(([id, note]) => `  - ${nameOf(id)}: ${note}`),
        ...Object.entries(notOffered).map(
          ([id, { text: reason, source }]) =>
            `  - Not offered by ${nameOf(id)}: ${reason} (\`${source}\`)`,
        ),
      ];
      return [`- **${name}**: ${about}`, ...lines].join('\n');
    })
    .join('\n');
  return `As of ${asOf}: ${versions.join(', ')}.\n\n${tasks}`;
}
