// A process that works on detached runs: `background-worker.ts <system> <variant> <directory> <postgres>`. The driver tells
// it what to do and hears when its model is called and when it is told to stop.
import { loadBackground } from './systems/background-systems.ts';

const [system = '', variant = '', directory = '', postgres = ''] = process.argv.slice(2);
const open = await loadBackground(system);
const worker = await open(variant, { directory, postgres }, (event) => {
  process.send?.({ event, at: now() });
});

process.on('message', async (order: { readonly [name: string]: string }) => {
  const started = now();
  if (order.text !== undefined) {
    const id = await worker.detach(order.text);
    process.send?.({ event: 'detached', id, ms: now() - started, at: now() });
  } else if (order.lastSeen !== undefined) {
    // How long ago, as others count by another clock.
    const ago = Date.now() - ((await worker.lastSeen?.(order.lastSeen)) ?? Number.NaN);
    process.send?.({ event: 'seen', at: now() - ago });
  } else if (order.abort !== undefined) {
    await worker.abort(order.abort);
    process.send?.({ event: 'aborted', at: now() });
  } else {
    await worker.close();
    process.exit();
  }
});
process.on('disconnect', () => process.exit());
process.send?.({ event: 'ready', at: now() });

// The same clock in all processes of the machine.
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
