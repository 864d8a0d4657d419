#!/usr/bin/env node
import { isSupportedNode, supportedNode } from './node-version.ts';

// Checked before the other imports: on an older Node they fail with a message that does not help. Bun and Deno also name a
// version of Node, which says nothing about them.
const { node, bun, deno } = process.versions;
if (bun === undefined && deno === undefined && !isSupportedNode(node)) {
  process.stderr.write(
    `waymark needs ${supportedNode}, and this is ${node}. Install a newer version, or add the package "node" to the project and use npx.\n`,
  );
  process.exit(1);
}
const { run } = await import('./run.ts');
const { createTerminal } = await import('./terminal.ts');

const code = await run(process.argv.slice(2), createTerminal(process));
// Flush pipes first, then exit: an open timer or socket must not keep the shell waiting.
process.exitCode = code;
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
