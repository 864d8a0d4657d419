// A server under test in a process of its own: `server-child.ts <name> <directory> <pieces>`. Sends its port.
import { loadServer } from './servers/server.ts';

const [name = '', directory = '', pieces = ''] = process.argv.slice(2);
const listen = await loadServer(name);
process.send?.({ port: await listen({ directory, pieces: Number(pieces) }) });
// Nobody is left to drive it.
process.on('disconnect', () => process.exit());
// What it has taken of the processor so far, for whoever asks.
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpu: user + system });
});
