// `npm run test:security`: runs the attacks of attacks/ against a real server, prints a table, exits with 1 on a breach.
import { readdirSync } from 'node:fs';
import type { Attack } from './attack.ts';
import { runAttack } from './run-attack.ts';

const folder = new URL('./attacks/', import.meta.url);
const wanted = process.argv.slice(2);
const files = readdirSync(folder).filter((file) => file.endsWith('.ts'));
const chosen = files.filter((file) => wanted.length === 0 || wanted.includes(file.slice(0, -3)));
if (chosen.length < wanted.length) {
  console.error(`Unknown attack. There are: ${files.map((file) => file.slice(0, -3)).join(', ')}`);
  process.exit(1);
}

const columns = [26, 10, 12, 12, 12, 9] as const;
const row = (cells: readonly string[]): string =>
  cells.map((cell, at) => (at === 0 ? cell.padEnd(26) : cell.padStart(columns[at] ?? 0))).join('');
console.log(row(['attack', 'requests', 'blocked', 'p99', 'memory', 'seconds']).concat('  result'));

let breaches = 0;
for (const file of chosen) {
  const { attack } = (await import(new URL(file, folder).href)) as { attack: Attack };
  const result = await runAttack(attack);
  breaches += result.breaches.length;
  const cells = [
    attack.name,
    String(result.requests),
    `${result.blockedMs.toFixed(0)} ms`,
    `${result.blockedP99Ms.toFixed(0)} ms`,
    `+${result.grownMb.toFixed(0)} MB`,
    result.seconds.toFixed(0),
  ];
  console.log(`${row(cells)}  ${result.breaches.length === 0 ? 'ok' : 'BREACH'}`);
  for (const note of result.notes) console.log(`    ${note}`);
  for (const breach of result.breaches.slice(0, 10)) console.log(`    ${breach}`);
}
console.log(breaches === 0 ? 'No breach.' : `${breaches} breaches.`);
process.exit(breaches === 0 ? 0 : 1);
