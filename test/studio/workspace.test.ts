import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { directory, workspaceTools } from 'waymark/workspace';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

let studio: Studio;
let folder: string;

const parser = 'export function parse(text: string): string[] {\n  return text.split(",");\n}\n';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waymark-studio-files-'));
  const project = join(folder, 'project');
  mkdirSync(join(project, 'docs/guide/images'), { recursive: true });
  writeFileSync(join(project, 'docs/guide/images/logo.png'), new Uint8Array([0, 1, 2, 3]));
  writeFileSync(join(project, 'readme.md'), '# Reader\n\nReads lists.\n');
  const write = (path: string, content: string) => ({
    toolCalls: [{ name: 'write', input: { path, content } }],
  });
  const model = scriptedModel({
    patterns: [
      [/^parse/, () => write('src/parse.ts', parser)],
      [/^trim/, () => write('src/parse.ts', parser.replace('(",")', '(",").map((s) => s.trim())'))],
      [/^script/, () => ({ toolCalls: [{ name: 'shell', input: { command: script } }] })],
    ],
    afterTools: () => 'Done.',
    otherwise: 'What shall I do?',
  });
  const script =
    'mkdir -p bin && printf "#!/bin/sh\\nnode src/parse.ts\\n" > bin/run && chmod +x bin/run && ln -s bin/run run && rm readme.md';
  const app = waymark({ model, store: memoryStore() });
  app.defineAgent({
    name: 'coder',
    workspace: directory(project),
    tools: [workspaceTools({ shell: true })],
  });
  studio = await openStudio(app);
});
afterAll(async () => {
  await studio?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

// SCREENSHOTS=<folder> keeps pictures.
const { SCREENSHOTS: out } = process.env;

test.each(['light', 'dark'] as const)(
  'shows the files of a snapshot, what differs, and what a restore changes, in the %s theme',
  async (colorScheme) => {
    const { page, errors } = await studio.open('agents/coder', { colorScheme });
    const hands = handsOn(page);
    const project = join(folder, 'project');
    const picture = async (name: string): Promise<void> => {
      if (out === undefined) return;
      await mkdir(out, { recursive: true });
      await page.screenshot({ path: join(out, `files-${name}-${colorScheme}.png`) });
    };
    if (!existsSync(join(project, 'readme.md'))) {
      writeFileSync(join(project, 'readme.md'), '# Reader\n\nReads lists.\n');
      rmSync(join(project, 'run'));
    }
    await hands.say('parse lists');
    await hands.say('trim them');
    await hands.say('script it');

    await hands.tab('Files');
    const workspace = page.getByRole('region', { name: 'Workspace' });
    await soon(() => workspace.textContent()).toContain('4 files');
    await soon(() => workspace.textContent()).toContain('docs/guide/images');
    expect(await workspace.textContent()).toContain('→ bin/run');
    await workspace.getByRole('button', { name: /parse\.ts/ }).click();
    await soon(() => workspace.textContent()).toContain('s.trim()');
    expect(await findBarriers(page)).toEqual([]);
    await picture('tree');

    await hands.tab('Diff');
    await soon(() => hands.inspector.textContent()).toContain('readme.md');
    await picture('diff');
    await hands.row(/parse lists/).click();
    await hands.pastBar.getByRole('button', { name: /Compare/ }).click();
    await soon(() => hands.comparison.textContent()).toContain('s.trim()');
    expect(await findBarriers(page)).toEqual([]);
    await picture('compare');
    await hands.comparison.getByRole('button', { name: 'Done' }).click();

    writeFileSync(join(project, 'notes.txt'), 'by a person\n');
    const restore = async (): Promise<void> => {
      await hands.row(/parse lists/).click();
      await hands.pastBar.getByRole('button', { name: /^Restore/ }).click();
    };
    await restore();
    const dialog = page.getByRole('dialog', { name: /^Restore turn 1/ });
    await soon(() => dialog.textContent()).toContain('notes.txt');
    expect(await dialog.textContent()).toContain('Changes to 5 files in the folder');
    expect(await findBarriers(page)).toEqual([]);
    await picture('restore');
    expect(existsSync(join(project, 'notes.txt'))).toBe(true);
    await dialog.getByRole('checkbox', { name: 'Restore the files as well' }).uncheck();
    await soon(() => dialog.textContent()).toContain('The files stay as they are.');
    await dialog.getByRole('checkbox').check();
    await dialog.getByRole('button', { name: 'Restore', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await hands.row(/parse lists.*head/).waitFor();
    expect(readFileSync(join(project, 'src/parse.ts'), 'utf8')).toBe(parser);
    expect(existsSync(join(project, 'notes.txt'))).toBe(false);
    expect(existsSync(join(project, 'run'))).toBe(false);
    expect(errors).toEqual([]);
  },
);
