// A process that works on detached runs: `background-worker.ts <system> <variant> <directory> <postgres>`. The driver tells
// it what to do and hears when its model is called and when it is told to stop.
import { loadBackground } from './systems/background-systems.ts';

const [system = '', variant = '', directory = '', postgres = ''] = process.argv.slice(2);
const open = await loadBackground(system);
const worker = await open(variant, { directory, postgres }, (event) => {
  process.send?.({ event, at: now() });
});

process.on('message', async ({ text }: { readonly text: string }) => {
  const started = now();
  const id = await worker.detach(text);
  process.send?.({ event: 'detached', id, ms: now() - started, at: now() });
});
process.on('disconnect', () => process.exit());
process.send?.({ event: 'ready', at: now() });

// The same clock in all processes of the machine.
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
