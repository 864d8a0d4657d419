// A process that takes turns of one owner at the same time: `node budget-child.ts <store as JSON> <number of turns> <how the model answers>`.
// It says `ready`, begins when it is told to, says `call` for each model call, and at last how its turns ended.

import type { SharedStore } from '../support/shared-store.ts';
import { openBudgetApp, openShared, type TurnEnd, takeTurn } from './support/budget-app.ts';

const [shared = '', turns = '0', answers = 'answers'] = process.argv.slice(2);
const store = openShared(JSON.parse(shared) as SharedStore);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const { app, chat } = openBudgetApp({
  store,
  async onCall() {
    say('call');
    // A call takes some time, in which others begin.
    await new Promise((resolve) => setTimeout(resolve, answers === 'hangs' ? 2 ** 30 : 5));
  },
});
await store.open?.();
say('ready');
await new Promise((resolve) => process.stdin.once('data', resolve));
const ends: TurnEnd[] = await Promise.all(
  Array.from({ length: Number(turns) }, () => takeTurn(chat)),
);
say(JSON.stringify(ends));
await app.close();
process.exit();
