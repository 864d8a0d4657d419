#!/usr/bin/env node
const wanted = [22, 18] as const;

// Checked before the imports: on an older Node they fail with a message that does not help.
if (isOlder(process.versions.node, wanted)) {
  process.stderr.write(
    `waymark needs Node ${wanted.join('.')} or newer, and this is ${process.versions.node}. Install a newer version, or add the package "node" to the project and use npx.\n`,
  );
  process.exit(1);
}
const { run } = await import('./run.ts');
const { createTerminal } = await import('./terminal.ts');

const code = await run(process.argv.slice(2), createTerminal(process));
// Flush pipes first, then exit: an open timer or socket must not keep the shell waiting.
process.exitCode = code;
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));

function isOlder(version: string, [major, minor]: readonly [number, number]): boolean {
  const [itsMajor = 0, itsMinor = 0] = version.split('.').map(Number);
  return itsMajor < major || (itsMajor === major && itsMinor < minor);
}
