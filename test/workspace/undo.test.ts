import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type AppOptions, type Store, type UndoCall, waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { directory } from 'waymark/workspace';
import { z } from 'zod';
import { eventually } from '../support/eventually.ts';
import { Ledger } from '../support/ledger.ts';
import { hashFolder, testFolder } from './support.ts';

/** A coder whose `book` books a hotel and notes it in a file. */
function openCoder(
  project: string,
  store: Store,
  undo: (call: UndoCall<{ readonly hotel: string }, { readonly id: string }>) => unknown,
  options: Partial<AppOptions> = {},
) {
  const hotels = new Ledger();
  const model = scriptedModel({
    patterns: [
      [/^book (\w+)/, ([, hotel = '']) => ({ toolCalls: [{ name: 'book', input: { hotel } }] })],
    ],
    afterTools: () => 'Done.',
    otherwise: 'Hello.',
  });
  const app = waymark({ model, store, onError: () => {}, ...options });
  const book = app.defineTool(
    {
      name: 'book',
      description: 'Books a hotel',
      input: z.object({ hotel: z.string() }),
      output: z.object({ id: z.string() }),
      undo,
    },
    ({ hotel }, { idempotencyKey, workspace }) => {
      writeFileSync(join(workspace?.path ?? '', 'trip.md'), hotel);
      return hotels.do(hotel, idempotencyKey);
    },
  );
  const coder = app.defineAgent({ name: 'coder', workspace: directory(project), tools: [book] });
  return { app, coder, hotels };
}

const storeIn = (path: string): Store => sqliteStore(join(path, 'store.db'));

test('S778 undoes before it restores the files, and saves unsaved changes without another plan', async () => {
  using folder = testFolder();
  const { project, path } = folder;
  const trip = (): string => readFileSync(join(project, 'trip.md'), 'utf8');
  const seen: string[] = [];
  const undo = () => seen.push(trip());
  const { app, coder } = openCoder(project, storeIn(path), undo);
  writeFileSync(join(project, 'trip.md'), 'nothing');
  const first = await coder.run('Hi');
  const { sessionId } = first;
  await coder.run('book Ritz', { sessionId });
  writeFileSync(join(project, 'note.md'), 'by hand');
  const plan = await coder.planUndo(first);
  await coder.restore(first, { undo: plan });
  expect(seen).toEqual(['Ritz']);
  expect(trip()).toBe('nothing');
  expect(Object.keys(hashFolder(project))).toEqual(['trip.md']);
  const { items } = await coder.listSnapshots(sessionId, { includeOrphaned: true });
  const edit = items.find(({ event }) => event === 'edit');
  const { items: files } = await coder.listFiles(edit ?? '');
  expect(files.map((file) => file.path)).toEqual(['note.md', 'trip.md']);
  expect((await coder.getSession(sessionId))?.headId).toBe(first.snapshotId);
  // The files may stay.
  await coder.run('book Savoy', { sessionId });
  await coder.restore(first, { undo: true, workspace: false });
  expect(trip()).toBe('Savoy');
  expect(seen).toEqual(['Ritz', 'Savoy']);
  await app.close();
});

test('S778 keeps the files if an undo fails, and undoes nothing while another session works on them', async () => {
  using folder = testFolder();
  const { project, path } = folder;
  let fault: Error | undefined;
  let undone = 0;
  const undo = (): void => {
    if (fault !== undefined) throw fault;
    undone++;
  };
  const { app, coder } = openCoder(project, storeIn(path), undo);
  const first = await coder.run('Hi');
  const { sessionId } = first;
  const booked = await coder.run('book Ritz', { sessionId });
  writeFileSync(join(project, 'note.md'), 'by hand');
  const before = hashFolder(project);
  fault = new Error('closed');
  await expect(coder.restore(first, { undo: true })).rejects.toMatchObject({ status: 'UNKNOWN' });
  expect(hashFolder(project)).toEqual(before);
  const { items } = await coder.listSnapshots(sessionId, { includeOrphaned: true });
  expect(items.slice(-2)).toMatchObject([
    { event: 'edit', parentId: booked.snapshotId, status: 'succeeded' },
    { event: 'detach', parentId: items.at(-2)?.snapshotId, status: 'failed' },
  ]);
  fault = undefined;
  // Another program works there.
  const open = await directory(project).open({ agent: 'coder', sessionId: 'other' });
  const lock = await open.lock({ runId: '01900000-0000-7000-8000-000000000000' });
  await expect(coder.restore(first, { undo: true })).rejects.toMatchObject({ status: 'ABORTED' });
  expect(undone).toBe(0);
  expect((await coder.listSnapshots(sessionId, { includeOrphaned: true })).items).toEqual(items);
  expect((await coder.listRuns()).items).toEqual([]);
  await lock.release();
  await coder.restore(first, { undo: true });
  expect(undone).toBe(1);
  expect(hashFolder(project)).toEqual({});
  await app.close();
});

test('S773 S778 a process that takes over an undo restores the files as well', async () => {
  using folder = testFolder();
  const { project, path } = folder;
  const begun = Promise.withResolvers<void>();
  let hanging = true;
  const undone: string[] = [];
  const undo = ({ input }: { readonly input: { readonly hotel: string } }): unknown => {
    undone.push(input.hotel);
    if (!hanging || input.hotel !== 'Ritz') return undefined;
    begun.resolve();
    return new Promise(() => {});
  };
  const one = openCoder(project, storeIn(path), undo);
  const first = await one.coder.run('Hi');
  const { sessionId } = first;
  await one.coder.run('book Ritz', { sessionId });
  await one.coder.run('book Savoy', { sessionId });
  const restoring = one.coder.restore(first, { undo: true }).catch((error: unknown) => error);
  await begun.promise;
  const { items } = await one.coder.listRuns();
  expect(items).toMatchObject([{ sessionId }]);
  hanging = false;
  await one.app.close({ grace: 0 });
  expect(await restoring).toMatchObject({ status: 'ABORTED' });
  const two = openCoder(project, storeIn(path), undo);
  await two.app.ready();
  await eventually(async () => {
    const session = await two.coder.getSession(sessionId);
    return session?.headId === first.snapshotId;
  });
  expect(undone).toEqual(['Savoy', 'Ritz', 'Ritz']);
  await eventually(() => Object.keys(hashFolder(project)).length === 0);
  expect((await two.coder.planUndo(first)).effects).toEqual([]);
  expect((await two.coder.listRuns()).items).toEqual([]);
  await two.app.close();
});
