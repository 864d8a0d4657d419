/** The coding assistant in an editor: `waymark acp`, and the client of the official SDK. */
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { TestEditor } from '../acp/support/editor.ts';
import { tempFolder } from '../cli/support/command.ts';
import { endProcesses } from '../support/child-process.ts';

const example = (path: string): string =>
  fileURLToPath(new URL(`../../examples/coding-assistant/${path}`, import.meta.url));

const folder = tempFolder();
afterEach(async () => {
  await endProcesses();
  folder.remove();
});

test('it works on the folder that is open in the editor, and the editor shows what it asks and changes', async () => {
  const project = join(folder.path, 'project');
  cpSync(example('sample'), project, { recursive: true });
  const editor = new TestEditor(folder.path, [], { file: example('agents.ts') });
  await editor.initialize();
  const id = await editor.open(project);
  expect(await editor.say(id, 'Make the tests pass')).toBe('end_turn');
  expect(editor.asked.map(({ toolCall }) => toolCall.rawInput)).toEqual([
    { command: 'node --test' },
    { command: 'node --test' },
  ]);
  const updates = editor.take();
  const path = join(project, 'src/slug.ts');
  expect(updates).toContainEqual(
    expect.objectContaining({
      content: [
        expect.objectContaining({ type: 'diff', path, newText: expect.stringContaining('match(') }),
      ],
    }),
  );
  const text = updates.flatMap((each) =>
    each.sessionUpdate === 'agent_message_chunk' && each.content.type === 'text'
      ? each.content.text
      : [],
  );
  expect(text.join('')).toMatch(/^All tests pass now/);
  expect(readFileSync(path, 'utf8')).toContain('match(');
});
