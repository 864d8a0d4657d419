// A server under test in a process of its own: `server-child.ts <name> <options as JSON>`. Sends its port.
import { loadServer } from './servers/server.ts';

const [name = '', options = ''] = process.argv.slice(2);
const listen = await loadServer(name);
process.send?.({ port: await listen(JSON.parse(options)) });
// Nobody is left to drive it.
process.on('disconnect', () => process.exit());
// What it has taken of the processor so far, for whoever asks.
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpu: user + system });
});
