import { cp, mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { chooseModel } from '../choose-model.ts';
import { defineAssistant } from './assistant.ts';
import { fileTracker } from './tracker.ts';

const data = '.waymark/coding-assistant';
const { model, note } = await chooseModel();

// #region app
/** The app that `waymark dev`, `waymark chat` and `waymark acp` load. */
export const app = waymark({ store: sqliteStore(`${data}/sessions.db`) });

defineAssistant(app, {
  project: process.env.PROJECT ?? (await sampleProject()),
  tracker: fileTracker(`${data}/issues.json`),
  model,
});
// #endregion

/** Shown in the terminal and in Studio. */
export const modelNote = note;

/** A copy of the sample, so that you can change it. */
async function sampleProject(): Promise<string> {
  const copy = `${data}/project`;
  await mkdir(data, { recursive: true });
  const sample = fileURLToPath(new URL('sample', import.meta.url));
  await cp(sample, copy, { recursive: true, force: false });
  return copy;
}
